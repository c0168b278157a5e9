"""Chats: message lists as the model's own template writes them, each token with its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InputError, TextTooLongError
from ..tokens import Token, check_characters
from .encode import Encoding, inputs_of, tokens_of
from .source import Source

Message = dict[str, Any]

# Stand in for the messages' texts while the template shows what it writes around them.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"


def is_chat(text: Any) -> bool:
    """Whether this is a list of messages with `role` and `content`."""
    return (
        isinstance(text, Sequence)
        and not isinstance(text, str)
        and len(text) > 0
        and all(isinstance(one, Mapping) and "role" in one for one in text)
    )


def messages_of(chat: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages with plain contents; what is not text is refused in words."""
    return [{**one, "content": _content(one, number)} for number, one in enumerate(chat)]


def _content(message: Mapping[str, Any], number: int) -> str:
    where = f"Message {number} ({message.get('role')!r})"
    if not isinstance(message.get("role"), str):
        raise InputError(f"Message {number} has no role; give each a role and a content.")
    content = message.get("content")
    if content is None and message.get("tool_calls"):
        return ""
    if isinstance(content, str):
        check_characters(content, where)
        return content
    if not isinstance(content, Sequence):
        raise InputError(f"{where} has no text: its content is {type(content).__name__}.")
    parts = []
    for part in content:
        kind = part.get("type", "text") if isinstance(part, Mapping) else type(part).__name__
        text = part.get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str) or kind not in ("text", "str"):
            raise InputError(
                f"{where} holds a part of type {kind!r}. Only text can be explained: leave that "
                "part out, or put it into words."
            )
        check_characters(text, where)
        parts.append(text)
    return "".join(parts)


def encode_chat(
    source: Source,
    chat: Sequence[Mapping[str, Any]],
    truncate: bool = False,
    empty: bool = False,
) -> Encoding:
    """The ids that the model's template gives, never tokenised again; a generation prompt unless
    the last message is the assistant's, which is then the answer.

    Args:
        empty: whether the messages may hold nothing.
    """
    messages = messages_of(chat)
    answered = messages[-1]["role"] == "assistant"
    if truncate:
        raise InputError("A chat cannot be cut; leave out messages instead of truncate=True.")
    if not empty and not any(one["content"].strip() for one in messages):
        raise InputError("The chat's messages are empty; give one some words.")
    render = template_of(source, answered)
    text, tokenizer = render(messages), source.tokenizer
    ids = _ids(tokenizer, messages, answered)
    fast = bool(getattr(tokenizer, "is_fast", False))
    batch = tokenizer(text, add_special_tokens=False, return_offsets_mapping=fast, verbose=False)
    if list(batch["input_ids"]) != ids:
        raise InputError(
            "This tokenizer's chat template gives other ids than its text does, so tokens cannot "
            "be put down to messages. Pass the text of the chat instead."
        )
    if source.limit is not None and len(ids) > source.limit:
        raise TextTooLongError(len(ids), source.limit)
    offsets = list(batch["offset_mapping"]) if fast else _offsets(tokenizer, text, len(ids))
    tokens = _placed(
        tokens_of(tokenizer, batch, ids, fast), offsets, messages, places(render, messages, text)
    )
    answer = _answer(tokens, len(messages) - 1) if answered else None
    batch = {name: batch[name] for name in ("input_ids", "attention_mask") if name in batch}
    inputs = inputs_of(source, batch, ids)
    prompt = None if answer is None else answer.start
    return Encoding(messages, None, tokens, inputs, answer, prompt=prompt)


def template_of(source: Source, answered: bool = False) -> Callable[[list[Message]], str]:
    """Messages -> the text that the model reads."""
    tokenizer = source.tokenizer
    if not getattr(tokenizer, "chat_template", None):
        raise InputError(
            "This tokenizer has no chat template, so a list of messages cannot be read. Pass a "
            "text, or set tokenizer.chat_template."
        )

    def render(messages: list[Message]) -> str:
        return str(_applied(tokenizer, messages, answered, tokenize=False))

    return render


def _ids(tokenizer: Any, messages: list[Message], answered: bool) -> list[int]:
    made = _applied(tokenizer, messages, answered, tokenize=True)
    return [int(i) for i in (made["input_ids"] if hasattr(made, "keys") else made)]


def _applied(tokenizer: Any, messages: list[Message], answered: bool, tokenize: bool) -> Any:
    try:
        return tokenizer.apply_chat_template(
            messages, tokenize=tokenize, add_generation_prompt=not answered
        )
    except Exception as error:  # templates are programs: they raise what they like
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        roles = ", ".join(one["role"] for one in messages)
        raise InputError(
            f"The model's chat template refuses these messages ({roles}): {first}"
        ) from error


def places(
    render: Callable[[list[Message]], str], messages: list[Message], text: str
) -> list[tuple[int, int, int] | None]:
    """Where each message's content stands in the template's text: (start, end, first character of
    the content that is there); None for what the template leaves out."""
    literals = _literals(render, messages)
    cursor, found = 0, list[tuple[int, int, int] | None]()
    for number, message in enumerate(messages):
        before = literals.get(number, "")
        if before and (start := text.find(before, cursor)) >= 0:
            cursor = start + len(before)
        content = message["content"]
        inner = content.strip()
        ways = [w for w in (content, content.rstrip(), content.lstrip(), inner) if w]
        here = next((w for w in ways if text.startswith(w, cursor)), None)
        start = cursor if here is not None else text.find(inner, cursor) if inner else -1
        if start < 0:
            found.append(None)
            continue
        here = here if here is not None else inner
        found.append((start, start + len(here), content.find(here)))
        cursor = start + len(here)
    return found


def _literals(render: Callable[[list[Message]], str], messages: list[Message]) -> dict[int, str]:
    """What the template writes before each message's content, as far as it can be told."""
    marks = [f"{_OPEN}{number}{_CLOSE}" for number in range(len(messages))]
    marked = [{**one, "content": mark} for one, mark in zip(messages, marks, strict=True)]
    try:
        text = render(marked)
    except InputError:
        return {}
    found, cursor = dict[int, str](), 0
    for number, mark in enumerate(marks):
        if (start := text.find(mark, cursor)) >= 0:
            found[number] = text[cursor:start]
            cursor = start + len(mark)
    return found


def _offsets(tokenizer: Any, text: str, count: int) -> list[tuple[int, int]]:
    """Characters of each token of a tokenizer that cannot say: how many tokens a beginning of the
    text has."""
    ends = [0] * count
    for place in range(1, len(text) + 1):
        done = len(tokenizer(text[:place], add_special_tokens=False)["input_ids"])
        for index in range(min(done, count)):
            ends[index] = ends[index] or place
    ends = [end or len(text) for end in ends]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _placed(
    tokens: list[Token],
    offsets: list[tuple[int, int]],
    messages: list[Message],
    spans: list[tuple[int, int, int] | None],
) -> list[Token]:
    """Tokens with their message and their characters in it; all else is the template's."""
    made, number = [], 0
    for token, (start, end) in zip(tokens, offsets, strict=True):
        while number < len(spans) and (
            (span := spans[number]) is None or span[1] <= start or span[1] == span[0]
        ):
            number += 1
        span = spans[number] if number < len(spans) else None
        known = token.as_dict()
        if span is None or end <= span[0] or (start >= end and not span[0] <= start < span[1]):
            known |= {"special": True, "word": None, "start": None, "end": None}
        else:
            first, last = max(start, span[0]), min(end, span[1])
            known |= {"role": messages[number]["role"], "message": number}
            known |= {"start": first - span[0] + span[2], "end": last - span[0] + span[2]}
        made.append(Token(str(token), **known))
    return made


def _answer(tokens: list[Token], message: int) -> slice:
    inside = [token.position for token in tokens if token.message == message]
    if not inside:
        raise InputError(
            "The chat's last message is the assistant's, which is the answer to explain, and it "
            "is empty. Leave it out, or give it some words."
        )
    return slice(inside[0], inside[-1] + 1)
