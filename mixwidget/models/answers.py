"""Answers: what a language model wrote or could have written after a text, token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError, TextTooLongError, UnsupportedMethodError
from ..tokens import Target, Token
from .chat import encode_chat, is_chat
from .encode import Encoding, encode
from .greedy import greedy
from .predict import edit, outputs
from .readable import CONTINUED, readable
from .source import Source
from .spelling import Spelling, Spelt, spellings
from .targets import answer_target, resolve_target

LONGEST = 64


def encode_question(
    source: Source,
    text: Any,
    text_pair: str | None = None,
    truncate: bool = False,
    answer: Any = None,
    max_new_tokens: int = LONGEST,
) -> Encoding:
    """A text or chat, with the answer that is to be explained, if there is one."""
    if is_chat(text):
        if text_pair is not None:
            raise InputError("A chat has no text pair; make it another message.")
        encoding = encode_chat(source, text, truncate)
    else:
        encoding = encode(source, text, text_pair, truncate)
    if answer is None:
        return encoding
    if source.task not in ("causal_lm", "seq2seq_lm"):
        raise UnsupportedMethodError(
            f"An answer can be explained for models that write text; this one does {source.task}."
        )
    if text_pair is not None:
        raise InputError("answer and text_pair exclude each other: the answer follows the text.")
    if encoding.answer is not None:
        raise InputError(
            "The chat ends with the assistant's message, which is the answer that is explained. "
            "Leave that message out, or leave out answer=..."
        )
    return _answered(source, encoding, answer, max_new_tokens)


def _answered(source: Source, encoding: Encoding, answer: Any, longest: int) -> Encoding:
    told: dict[str, Any] = {}
    if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
        raise InputError(f"max_new_tokens is {longest!r}; it is how many tokens to write, from 1.")
    if answer is True:
        ids = greedy(source.shadowed(), encoding, longest)
        if not ids:
            raise InputError(
                "The model's answer is empty: it ends at once. Ask something else, or pass "
                "answer='...' with an answer of your own."
            )
    elif isinstance(answer, str):
        spelt = _spelt(source, encoding, answer)
        ids, told = list(spelt.chosen.ids), spelt.told()
    else:
        ids = _checked(source, answer)
    return replace(with_answer(source, encoding, ids), told=told)


def _checked(source: Source, answer: Any) -> list[int]:
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if hasattr(answer, "__index__") and not isinstance(answer, bool):
        answer = [answer]
    if isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], list):
        answer = answer[0]  # a batch of one
    if not isinstance(answer, Sequence) or not answer:
        raise InputError(
            f"answer is {answer!r}; it can be a text, token ids, or True for the model's own."
        )
    count = int(getattr(source.model.config, "vocab_size", 0) or len(source.tokenizer))
    for one in answer:
        if isinstance(one, bool) or not hasattr(one, "__index__") or not 0 <= one < count:
            raise InputError(f"answer holds {one!r}, which is not a token id (0 to {count - 1}).")
    return [int(one) for one in answer]


def _spelt(source: Source, encoding: Encoding, answer: str) -> Spelt:
    """After a chat literally, after plain text the likelier way to go on."""
    if not answer:
        raise InputError("answer is empty; give it a token, or leave it out.")
    tokenizer = source.tokenizer
    if isinstance(encoding.text, list):
        ids = tuple(tokenizer(answer, add_special_tokens=False, verbose=False)["input_ids"])
        if not ids:
            raise InputError(f"answer {answer!r} is no token of this model; give it some words.")
        return Spelt(Spelling(answer, ids), {})
    ways = [way for way in spellings(tokenizer, answer) if way.ids]
    if not ways:
        raise InputError(f"answer {answer!r} holds tokens that this model does not know.")
    if len(ways) == 1:
        return Spelt.of(ways, [0.0])
    asked = source.shadowed()
    shares = [likelihood(asked, with_answer(source, encoding, way.ids)) for way in ways]
    spelt = Spelt.of(ways, shares)
    spelt.warn(answer)
    return spelt


def likelihood(source: Source, encoding: Encoding) -> float:
    """Log probability of an encoding's answer."""
    return float(likelihoods(source, encoding).sum())


def likelihoods(source: Source, encoding: Encoding, gone: Sequence[int] = ()) -> Tensor:
    """Log probability of each answer token, [T], with some tokens deleted. `source` is a case's,
    whose model is a shadow."""
    one = edit(source, encoding, bare_target(encoding), gone, "delete")
    if one.target is None:
        raise InputError("Nothing is left before the answer to read its probability from.")
    (output,) = outputs(source, encoding, [one])
    return answer_target(output, one.target, each=True)[0].cpu()


def with_answer(source: Source, encoding: Encoding, ids: Sequence[int]) -> Encoding:
    """The text followed by the answer's tokens."""
    start, tokenizer = len(encoding.tokens), source.tokenizer
    limit = source.limit
    size = start - encoding.first_row + len(ids)
    if limit is not None and size > limit:
        raise TextTooLongError(size, limit)
    tokens, text = _answer_tokens(tokenizer, encoding, list(ids))
    name = "decoder_input_ids" if "decoder_input_ids" in encoding.inputs else "input_ids"
    inputs = dict(encoding.inputs)
    added = torch.tensor([list(ids)], device=inputs[name].device)
    for key, tensor in encoding.inputs.items():
        if key == name:
            inputs[key] = torch.cat([tensor, added], -1)
        elif name == "input_ids" and tensor.shape[-1] == start:
            last = tensor[:, -1:] if key == "token_type_ids" else torch.ones_like(tensor[:, -1:])
            inputs[key] = torch.cat([tensor, last.expand(-1, len(ids))], -1)
    return replace(
        encoding,
        tokens=[*encoding.tokens, *tokens],
        inputs=inputs,
        answer=slice(start, start + len(ids)),
        answer_text=text,
        prompt=start,
    )


def _answer_tokens(tokenizer: Any, encoding: Encoding, ids: list[int]) -> tuple[list[Token], str]:
    pieces = [str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)]
    special = set(getattr(tokenizer, "all_special_ids", None) or ())
    texts = readable(tokenizer, pieces, [one in special for one in ids])

    def decoded(count: int) -> str:
        made = tokenizer.decode(ids[:count], clean_up_tokenization_spaces=False)
        return str(made)

    whole = decoded(len(ids))
    ends = [min(len(decoded(count)), len(whole)) for count in range(len(ids) + 1)]
    chat = isinstance(encoding.text, list)
    words = [token.word for token in encoding.tokens if token.word is not None]
    word, made, before = 1 + max(words, default=-1), list[Token](), ""
    for number, piece in enumerate(pieces):
        read = whole[ends[number] : ends[number + 1]]
        if made and _begins_word(before, read) and texts[number] != CONTINUED:
            word += 1
        before = read or before
        known: dict[str, Any] = {
            "id": ids[number], "position": len(encoding.tokens) + number, "special": False,
            "word": word, "segment": 0 if chat else 1, "text": texts[number],
            "start": ends[number], "end": ends[number + 1],
        }  # fmt: skip
        if chat:
            known |= {"role": "assistant", "message": len(encoding.text)}
        made.append(Token(piece, **known))
    return made, whole


def _begins_word(before: str, text: str) -> bool:
    if not text or not before:
        return False
    return text[0].isspace() or not (text[0].isalnum() and before[-1].isalnum())


def answer_targets(source: Source, encoding: Encoding, output: Any) -> list[Target]:
    """What each answer token is, as a target of the text before it."""
    assert encoding.answer is not None
    return [
        resolve_target(encoding.tokens[place].id, source, encoding, output, place - 1)
        for place in range(encoding.answer.start, encoding.answer.stop)
    ]


def bare_target(encoding: Encoding) -> Target:
    """The answer as one target, before a model has been asked."""
    assert encoding.answer is not None
    tokens = encoding.tokens[encoding.answer]
    rows = tuple(token.position - 1 - encoding.first_row for token in tokens)
    return Target("answer", tuple(token.id for token in tokens), answer_text(encoding), rows)


def whole_target(encoding: Encoding, output: Any) -> Target:
    """The same with what the model gave it."""
    bare = bare_target(encoding)
    share = float(answer_target(output, bare)[0].detach())
    return replace(bare, logit=share, probability=math.exp(share))


def answer_text(encoding: Encoding) -> str:
    """What the answer reads."""
    if encoding.answer_text is not None:
        return encoding.answer_text
    assert isinstance(encoding.text, list)
    return str(encoding.text[-1]["content"])
