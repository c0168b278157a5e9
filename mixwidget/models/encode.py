"""From text to the model's inputs and to tokens that know where they come from."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError, TextTooLongError
from ..tokens import Token, check_text
from .readable import readable
from .source import Source, table_of


@dataclass(frozen=True)
class Encoding:
    """One text or chat, ready for the model: inputs with a batch of one, and its tokens.

    `answer` are the tokens that are explained as the model's answer, `answer_text` what they read
    where they do not stand in the text itself, `told` what there is to say about it. `prompt` is
    how many tokens stand before an answer, also in a text that ends within it.
    """

    text: str | list[dict[str, Any]]
    text_pair: str | None
    tokens: list[Token]
    inputs: dict[str, Tensor]
    answer: slice | None = None
    answer_text: str | None = None
    prompt: int | None = None
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> Tensor:
        """Of all tokens, [n]: in an encoder-decoder the source's, then the prefix's."""
        both = (self.inputs.get(name) for name in ("input_ids", "decoder_input_ids"))
        return torch.cat([ids[0] for ids in both if ids is not None])

    @property
    def first_row(self) -> int:
        """Index of the token that the first row of the model's output belongs to: 0, but in an
        encoder-decoder, whose rows are those of the prefix."""
        prefix = self.inputs.get("decoder_input_ids")
        return 0 if prefix is None else len(self.tokens) - prefix.shape[1]

    def prefix(self, length: int) -> Encoding:
        """The first tokens alone, as a text of their own: what a causal model, or a decoder, has
        read when it writes the next."""
        decodes = "decoder_input_ids" in self.inputs
        inputs, n = dict[str, Tensor](), len(self.tokens)
        for name, tensor in self.inputs.items():
            cut = name.startswith("decoder_") if decodes else tensor.shape[-1] == n
            first = self.first_row if decodes else 0
            inputs[name] = tensor[..., : length - first] if cut else tensor
        tokens = self.tokens[:length]
        return replace(self, tokens=tokens, inputs=inputs, answer=None, told={})

    @property
    def texts(self) -> list[str]:
        """What the tokens' characters count in: a chat's messages, else text and pair; then the
        answer, if it stands in neither."""
        if isinstance(self.text, list):
            found = [str(one["content"]) for one in self.text]
        else:
            found = [self.text, *([] if self.text_pair is None else [self.text_pair])]
        return found if self.answer_text is None else [*found, self.answer_text]

    def ordinary(self) -> list[int]:
        """Indices of the tokens that are part of the text."""
        return [token.position for token in self.tokens if not token.special]


def encode(
    source: Source, text: str, text_pair: str | None = None, truncate: bool = False
) -> Encoding:
    """Tokenize. Empty text, wrong types and too long text raise an `InputError`."""
    check_text(text, "text")
    if text_pair is not None:
        check_text(text_pair, "text_pair")
    tokenizer, limit = source.tokenizer, source.limit
    if not callable(tokenizer) or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise InputError(
            f"tokenizer is {type(tokenizer).__name__}, not a transformers tokenizer: besides being "
            "called it must name its tokens. Pass AutoTokenizer.from_pretrained(...)."
        )
    fast = bool(getattr(tokenizer, "is_fast", False))
    options: dict[str, Any] = {"truncation": False, "verbose": False}
    if truncate and limit is not None:
        options |= {"truncation": True, "max_length": limit}
    # An encoder-decoder's pair is what the decoder has written; one that classifies has its
    # decoder read the text itself.
    reads_again = source.decodes and source.task != "seq2seq_lm"
    decodes = source.decodes and not reads_again
    batch = tokenizer(
        text,
        None if decodes else text_pair,
        return_special_tokens_mask=True,
        return_offsets_mapping=fast,
        **options,
    )
    ids = list(batch["input_ids"])
    _check_ids(ids, table_of(source.model))
    if not ids:
        raise InputError("The tokenizer found no token in the text; give it some words.")
    if limit is not None and len(ids) > limit:
        raise TextTooLongError(len(ids), limit)
    tokens = tokens_of(tokenizer, batch, ids, fast)
    told: dict[str, Any] = {}
    if truncate and len(ids) == limit:
        whole = tokenizer(text, None if decodes else text_pair, truncation=False, verbose=False)
        if cut := len(whole["input_ids"]) - len(ids):
            told = {"cut": cut}
    encoding = Encoding(text, text_pair, tokens, inputs_of(source, batch, ids), told=told)
    if decodes:
        return _with_prefix(source, encoding)
    if all(token.special for token in tokens):
        raise InputError("The text holds no token but special ones; give it some words.")
    return _with_shifted(source, encoding) if reads_again else encoding


def _check_ids(ids: list[int], embeddings: Any) -> None:
    """A tokenizer of another model may give ids that this one has no embedding for."""
    weight = getattr(embeddings, "weight", None)
    known = len(weight) if isinstance(weight, Tensor) else None
    if known is not None and max(ids, default=0) >= known:
        raise InputError(
            f"The tokenizer gives token id {max(ids)}, but the model knows only {known} tokens. "
            "Pass the model's own tokenizer, or call model.resize_token_embeddings(len(tokenizer)) "
            "if tokens were added."
        )


def inputs_of(source: Source, batch: Any, ids: list[int]) -> dict[str, Tensor]:
    known = getattr(source.tokenizer, "model_input_names", ["input_ids", "attention_mask"])
    inputs = {
        name: torch.tensor([batch[name]], device=source.device) for name in known if name in batch
    }
    inputs.setdefault("input_ids", torch.tensor([ids], device=source.device))
    inputs.setdefault("attention_mask", torch.ones_like(inputs["input_ids"]))
    return inputs


def _with_prefix(source: Source, encoding: Encoding) -> Encoding:
    """An encoder-decoder's input: the source, then what the decoder has written so far."""
    tokenizer, begin = source.tokenizer, _beginning(source)
    written: list[Token] = []
    if encoding.text_pair is not None:
        fast = bool(getattr(tokenizer, "is_fast", False))
        batch = tokenizer(
            text_target=encoding.text_pair, add_special_tokens=False, return_offsets_mapping=fast
        )
        _check_ids(list(batch["input_ids"]), table_of(source.model.get_decoder()))
        written = tokens_of(tokenizer, batch, list(batch["input_ids"]), fast)
    limit = source.limit
    if limit is not None and len(written) + 1 > limit:
        raise TextTooLongError(len(written) + 1, limit)
    first = len(encoding.tokens)
    words = 1 + max((token.word for token in encoding.tokens if token.word is not None), default=-1)
    name = str(tokenizer.convert_ids_to_tokens(begin))
    start = {"id": begin, "position": first, "special": True, "word": None, "segment": 1}
    tokens = [*encoding.tokens, Token(name, **start, start=None, end=None, text=name)]
    for place, token in enumerate(written, first + 1):
        moved = {"position": place, "segment": 1, "special": False}
        word = None if token.word is None else token.word + words
        tokens.append(Token(str(token), **{**token.as_dict(), **moved, "word": word}))
    ids = torch.tensor([[token.id for token in tokens[first:]]], device=source.device)
    inputs = {**encoding.inputs, "decoder_input_ids": ids}
    inputs.pop("token_type_ids", None)
    return Encoding(encoding.text, encoding.text_pair, tokens, inputs)


def _beginning(source: Source) -> int:
    """The token that the decoder begins with."""
    config = source.model.config
    generation = getattr(source.model, "generation_config", None)
    for name in ("decoder_start_token_id", "bos_token_id"):
        # A config that has no such entry leaves it to the model's way of generating.
        holder = config if hasattr(config, name) else generation
        if (begin := getattr(holder, name, None)) is not None:
            return int(begin)
    if not hasattr(config, "decoder_start_token_id"):  # T5 begins with its padding
        begin = getattr(config, "pad_token_id", None)
        if begin is not None:
            return int(begin)
    raise InputError(
        "The model does not say which token its decoder begins with; set "
        "model.config.decoder_start_token_id."
    )


def _with_shifted(source: Source, encoding: Encoding) -> Encoding:
    """An encoder-decoder that classifies: its decoder reads the text once more, shifted by one
    behind the token that it begins with, as the model itself does it."""
    ids = encoding.inputs["input_ids"]
    begin = _decoder_ids(source.model, ids)
    if begin is None:
        first = torch.full_like(ids[:, :1], _beginning(source))
        begin = torch.cat([first, ids[:, :-1]], 1)
    count = len(encoding.tokens)
    known = {token.id: token for token in encoding.tokens}
    written: list[Token] = []
    words = 1 + max((t.word for t in encoding.tokens if t.word is not None), default=-1)
    for place, number in enumerate(begin[0].tolist()):
        token = encoding.tokens[place - 1] if place else known.get(number)
        name = str(source.tokenizer.convert_ids_to_tokens(number)) if token is None else str(token)
        held = {} if token is None else token.as_dict()
        word = held.get("word")
        written.append(
            Token(
                name,
                **{
                    "word": None,
                    "start": None,
                    "end": None,
                    "text": name,
                    **held,
                    "id": number,
                    "position": count + place,
                    "segment": 1,
                    "special": not place or bool(held.get("special")),
                    **({} if word is None or not place else {"word": word + words}),
                    **({} if place else {"word": None}),
                },
            )
        )
    inputs = {**encoding.inputs, "decoder_input_ids": begin}
    return Encoding(encoding.text, encoding.text_pair, [*encoding.tokens, *written], inputs)


def _decoder_ids(model: Any, ids: Tensor) -> Tensor | None:
    """What the model's decoder reads when it is given nothing: the ids in its own order."""
    shift = getattr(sys.modules[type(model).__module__], "shift_tokens_right", None)
    config = model.config
    start = getattr(config, "decoder_start_token_id", None)
    own = getattr(model, "_shift_right", None)
    try:
        if shift is None:
            return None if own is None else own(ids)
        try:
            return shift(ids, config.pad_token_id, start)
        except TypeError:  # mBART's wraps the last token around
            return shift(ids, config.pad_token_id)
    except (AttributeError, ValueError):  # the config does not say what the decoder begins with
        return None


def tokens_of(tokenizer: Any, batch: Any, ids: list[int], fast: bool) -> list[Token]:
    pieces = [str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)]
    specials = _specials(tokenizer, batch, ids)
    words = batch.word_ids(0) if fast else [None] * len(ids)
    segments = batch.sequence_ids(0) if fast else list(batch.get("token_type_ids", [0] * len(ids)))
    offsets: list[tuple[int, int] | None] = (
        list(batch["offset_mapping"]) if fast else [None] * len(ids)
    )
    texts = readable(tokenizer, pieces, specials)
    tokens: list[Token] = []
    number, before = -1, None
    segment = 0
    for i, piece in enumerate(pieces):
        if segments[i] is not None:
            segment = int(segments[i])
        word: int | None = None
        if not specials[i]:
            # Words are numbered through both segments; a tokenizer that cannot say which
            # word a piece belongs to marks the beginning or the continuation in the piece.
            key = (segment, words[i]) if fast and words[i] is not None else None
            if key is None:
                number += 0 if tokens and _continues(piece, pieces[i - 1], tokens[-1]) else 1
            elif key != before:
                number += 1
            before, word = key, number
        span = None if specials[i] else offsets[i]
        start, end = (None, None) if span is None else span
        tokens.append(
            Token(
                piece,
                id=int(ids[i]),
                position=i,
                special=specials[i],
                word=word,
                segment=segment,
                start=start,
                end=end,
                text=texts[i],
            )
        )
    return tokens


def _specials(tokenizer: Any, batch: Any, ids: list[int]) -> list[bool]:
    """Tokens the tokenizer added. [MASK] and [UNK] stand for words: they are not special."""
    frame = {
        getattr(tokenizer, f"{name}_token_id", None) for name in ("cls", "sep", "bos", "eos", "pad")
    } - {None, getattr(tokenizer, "unk_token_id", None), getattr(tokenizer, "mask_token_id", None)}
    mask = batch.get("special_tokens_mask", [0] * len(ids))
    return [bool(flag) or token in frame for flag, token in zip(mask, ids, strict=True)]


_STARTS = ("Ġ", "▁", " ")  # byte-level BPE and SentencePiece mark the beginning of a word


def _continues(piece: str, before: str, last: Token) -> bool:
    if last.special:
        return False
    if piece.startswith("##"):
        return True
    marked = any(text.startswith(_STARTS) for text in (piece, before))
    return marked and not piece.startswith(_STARTS)
