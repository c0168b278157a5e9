"""Models set by hand, whose decisive words are known by construction.

A vector holds what the model knows in directions of its own: which word this is, where it stands,
what it has been told, what is to be answered. Every direction is stored twice, with opposite
signs, so that a layer norm finds mean 0 and only scales. Feed-forwards are zero; every layer has
one head, which is made of "this looks for that, and takes that along". The same construction is
set into a decoder (GPT-2, norms before) and an encoder (BERT, norms after; read at [CLS]).

- *marker*: the answer is the content word that stands after the marker, among other content words.
  Layer 0 tells every place whether the marker stands before it, layer 1 looks for that.
- *copy* (decoder): the last word stood there before; the answer is the word that followed it.
  Layer 0 tells every place which word stands before it, layer 1 looks for its own there.
- *decoy*: a word that draws nine tenths of the attention and brings nothing; the answer is the
  content word that gets what is left.
- *pair*: three words speak of the answer: one for it (2), one against it (-2), one for it (1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CONTENT = ["red", "blue", "green", "white", "black", "brown", "pink", "grey"]
FILLERS = ["we", "saw", "some", "then", "there", "it", "was", "so", "all", "at", "by", "of"]
MARKER, DECOY, ASKS = "called", "wow", "answer"
FOR, AGAINST, ALSO = "great", "awful", "fine"
WORDS = [*SPECIALS, *CONTENT, *FILLERS, MARKER, DECOY, ASKS, FOR, AGAINST, ALSO]
VOCAB = {word: i for i, word in enumerate(WORDS)}
PLACES, TEXT = 20, 12

# Directions: which word, where, which word before, told, the answer.
WORD, PLACE = 0, len(WORDS)
BEFORE = PLACE + PLACES
TOLD = BEFORE + len(WORDS)
ANSWER = TOLD + 1
BASE = ANSWER + len(CONTENT)
WIDTH = 2 * BASE


@dataclass
class Head:
    """What a layer's one head does, between directions. [BASE, BASE] each"""

    looks: Tensor
    for_that: Tensor
    takes: Tensor


@dataclass(frozen=True)
class Known:
    """A text, what the model must answer, and the words that decide it.

    Attributes:
        what: the word whose content is the answer.
        where: the word that told where to look, if another one did.
        against: the word that speaks against the answer.
    """

    text: str
    answer: str
    what: int
    where: int | None = None
    against: int | None = None


def doubled(base: Tensor) -> Tensor:
    """A map between directions as one between vectors that hold each direction twice."""
    return torch.cat([torch.cat([base, -base], 1), torch.cat([-base, base], 1)]) / 2


def _none() -> Tensor:
    return torch.zeros(BASE, BASE)


def _sharp(score: float) -> float:
    """The factor on both sides that makes one found direction worth `score` in the softmax."""
    return (2 * score / WIDTH**0.5) ** 0.5


def _before(what: Callable[[Tensor], None]) -> Head:
    """Every place looks for the one before it."""
    looks, for_that, takes = _none(), _none(), _none()
    for place in range(1, PLACES):
        looks[PLACE + place, PLACE + place - 1] = _sharp(7)
        for_that[PLACE + place - 1, PLACE + place - 1] = _sharp(7)
    what(takes)
    return Head(looks, for_that, takes)


def _content(takes: Tensor, factor: float = 1.0) -> Tensor:
    for i, word in enumerate(CONTENT):
        takes[WORD + VOCAB[word], ANSWER + i] = factor
    return takes


def marker(reader: str) -> list[Head]:
    def told(takes: Tensor) -> None:
        takes[WORD + VOCAB[MARKER], TOLD] = 1.0

    looks, for_that = _none(), _none()
    looks[WORD + VOCAB[reader], TOLD] = _sharp(5)
    for_that[TOLD, TOLD] = _sharp(5)
    return [_before(told), Head(looks, for_that, _content(_none()))]


def copy(reader: str) -> list[Head]:
    def told(takes: Tensor) -> None:
        for i in range(len(WORDS)):
            takes[WORD + i, BEFORE + i] = 1.0

    looks, for_that = _none(), _none()
    for i in range(len(WORDS)):
        looks[WORD + i, BEFORE + i] = _sharp(8)
        for_that[BEFORE + i, BEFORE + i] = _sharp(8)
    return [_before(told), Head(looks, for_that, _content(_none()))]


def decoy(reader: str) -> list[Head]:
    looks, for_that = _none(), _none()
    looks[WORD + VOCAB[reader], TOLD] = _sharp(6)
    for_that[WORD + VOCAB[DECOY], TOLD] = _sharp(6)
    for word in CONTENT:
        for_that[WORD + VOCAB[word], TOLD] = 0.6 * _sharp(6)
    return [Head(looks, for_that, _content(_none(), 8.0))]


def pair(reader: str) -> list[Head]:
    looks, for_that, takes = _none(), _none(), _none()
    looks[WORD + VOCAB[reader], TOLD] = _sharp(4)
    for word, worth in ((FOR, 2.0), (AGAINST, -2.0), (ALSO, 1.0)):
        for_that[WORD + VOCAB[word], TOLD] = _sharp(4)
        takes[WORD + VOCAB[word], ANSWER] = 2 * worth
    return [Head(looks, for_that, takes)]


def _vectors(places: Tensor, words: Tensor) -> None:
    """One direction for each word and each place, stored twice."""
    for i in range(len(WORDS)):
        words[i, WORD + i], words[i, BASE + WORD + i] = 1.0, -1.0
    for i in range(PLACES):
        places[i, PLACE + i], places[i, BASE + PLACE + i] = 1.0, -1.0


def _emptied(model: Any) -> Any:
    """All weights zero, all norms as they begin."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = name.endswith("weight") and ("ln_" in name or "LayerNorm" in name)
            parameter.fill_(1.0 if norm else 0.0)
    return model.eval()


def _tokenizer(wrapped: bool) -> Any:
    inner = Tokenizer(models.WordLevel(VOCAB, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if wrapped:
        ends = [("[CLS]", VOCAB["[CLS]"]), ("[SEP]", VOCAB["[SEP]"])]
        inner.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=ends
        )
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"} if wrapped else {}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", **names
    )


def decoder(heads: list[Head]) -> tuple[Any, Any]:
    """(model, tokenizer): GPT-2, whose last word asks."""
    config = transformers.GPT2Config(
        vocab_size=len(WORDS),
        n_embd=WIDTH,
        n_layer=len(heads),
        n_head=1,
        n_positions=PLACES,
        n_inner=2,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = _emptied(transformers.GPT2LMHeadModel(config))
    unit = 2 / WIDTH**0.5  # of a direction after the first norm, whose inverse is written
    with torch.no_grad():
        _vectors(model.transformer.wpe.weight, model.transformer.wte.weight)
        for block, head in zip(model.transformer.h, heads, strict=True):
            joined = [doubled(head.looks), doubled(head.for_that), doubled(unit * head.takes)]
            block.attn.c_attn.weight.copy_(torch.cat(joined, 1))
            block.attn.c_proj.weight.copy_(torch.eye(WIDTH))
        for i, word in enumerate(CONTENT):
            row = model.lm_head.weight[VOCAB[word]]
            row[ANSWER + i], row[BASE + ANSWER + i] = 1.0, -1.0
    return model, _tokenizer(wrapped=False)


def encoder(heads: list[Head]) -> tuple[Any, Any]:
    """(model, tokenizer): BERT as a classifier; a class for each content word."""
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=WIDTH,
        num_hidden_layers=len(heads),
        num_attention_heads=1,
        intermediate_size=2,
        max_position_embeddings=PLACES,
        num_labels=len(CONTENT),
        id2label=dict(enumerate(CONTENT)),
        label2id={word: i for i, word in enumerate(CONTENT)},
        pad_token_id=0,
    )
    model = _emptied(transformers.BertForSequenceClassification(config))
    bert = model.bert
    with torch.no_grad():
        _vectors(bert.embeddings.position_embeddings.weight, bert.embeddings.word_embeddings.weight)
        for block, head in zip(bert.encoder.layer, heads, strict=True):
            attention = block.attention.self
            for part, map in (
                (attention.query, head.looks),
                (attention.key, head.for_that),
                (attention.value, head.takes),
            ):
                part.weight.copy_(doubled(map).T)
            block.attention.output.dense.weight.copy_(torch.eye(WIDTH))
        bert.pooler.dense.weight.copy_(0.1 * torch.eye(WIDTH))
        for i in range(len(CONTENT)):
            model.classifier.weight[i, ANSWER + i] = 8.0
            model.classifier.weight[i, BASE + ANSWER + i] = -8.0
    return model, _tokenizer(wrapped=True)


MADE: dict[str, Callable[[str], list[Head]]] = {
    "marker": marker,
    "copy": copy,
    "decoy": decoy,
    "pair": pair,
}


def build(task: str, kind: str) -> tuple[Any, Any]:
    """The model of a task, as a "decoder" or an "encoder", and its tokenizer."""
    if kind == "decoder":
        return decoder(MADE[task](ASKS))
    return encoder(MADE[task]("[CLS]"))


def known(task: str, rng: np.random.Generator) -> Known:
    """A text of fillers in which the words that decide stand at places drawn at random."""
    words = [str(word) for word in rng.choice(FILLERS, TEXT)]
    contents = [str(word) for word in rng.choice(CONTENT, 3, replace=False)]
    # Every second place but the first and the last, so that none stands beside another.
    spots = [int(i) for i in rng.choice(np.arange(2, TEXT - 1, 2), 3, replace=False)]
    one, two, three = spots
    if task == "marker":
        for spot, word in zip(spots, contents, strict=True):
            words[spot] = word
        words[one - 1], words[-1] = MARKER, ASKS
        return Known(" ".join(words), contents[0], one, where=one - 1)
    if task == "copy":
        # Each of three fillers stands once, before a content word; the last word is one of them.
        names = [str(word) for word in rng.choice(FILLERS, TEXT, replace=False)]
        words = [*names[:-1], ""]
        for spot, word in zip(spots, contents, strict=True):
            words[spot] = word
        words[-1] = words[one - 1]
        return Known(" ".join(words), contents[0], one, where=one - 1)
    words[-1] = ASKS
    if task == "decoy":
        words[one], words[two] = contents[0], DECOY
        return Known(" ".join(words), contents[0], one)
    words[one], words[two], words[three] = FOR, AGAINST, ALSO
    return Known(" ".join(words), CONTENT[0], one, against=two)
