"""Datasets in the forms people have them, as a list of examples."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..explanation import plain_text
from ..models import is_chat

if TYPE_CHECKING:
    from ..tokens import Token

# Columns are found by these names, in this order.
TEXT: tuple[str, ...] = ("text", "sentence", "masked", "sentence1", "question1", "premise")
TEXT += ("question", "review", "messages", "chat", "prompt")
PAIR = ("text_pair", "pair", "sentence2", "question2", "hypothesis", "context")
LABEL = ("label", "labels", "class")
COLUMNS: dict[str, tuple[str, ...]] = {
    "text": TEXT,
    "text_pair": PAIR,
    "label": LABEL,
    "target": ("target",),
    "foil": ("foil",),
    "focus": ("focus",),
    "cues": ("cues",),
    "cue_words": ("cue_words", "cue_indices"),
    "answer": ("answer", "answers"),
}


@dataclass(frozen=True)
class Example:
    """One example of a benchmark.

    Attributes:
        text: or a chat, a list of messages.
        target: what is explained; None: what the benchmark says (prediction or label).
        cues: words that should matter: (start, end) of their characters, in a chat (message,
            start, end).
        answer: the answer's (start, end) in the text pair, or in the text if there is none.
        said: of a language model the answer that is explained, or True for its own.
    """

    text: str | list[dict[str, Any]]
    text_pair: str | None = None
    label: Any = None
    target: Any = None
    focus: int | None = None
    cues: tuple[tuple[int, ...], ...] = ()
    answer: tuple[int, int] | None = None
    said: Any = None

    @property
    def shown(self) -> str:
        return plain_text(self.text)

    def key(self) -> str:
        """The same for the same content, whatever its place in the dataset."""
        content = json.dumps(asdict(self), sort_keys=True, default=repr)
        return hashlib.sha256(content.encode()).hexdigest()[:20]


def read_examples(
    dataset: Any,
    columns: Mapping[str, str] | None = None,
    labels: Callable[[], Sequence[str]] = tuple,
    writes: Callable[[], bool] = lambda: False,
) -> list[Example]:
    """Texts, chats, (text, label) or (text, pair) tuples, dicts, a file, a frame or a Dataset.

    Args:
        columns: names of columns that are not found by themselves: {"text": "comment_body"}.
        labels: gives the model's class names, asked only if tuples could be read both ways.
        writes: says whether the model writes text, asked only if there are answers: then these
            are what is explained.
    """
    if is_chat(dataset):
        dataset = [dataset]
    if isinstance(dataset, str | os.PathLike):
        dataset = rows_of_file(Path(dataset))
    elif hasattr(dataset, "to_dict") and hasattr(dataset, "columns"):  # a pandas frame
        dataset = dataset.to_dict("records")
    if isinstance(dataset, Mapping) or not isinstance(dataset, Iterable):
        hint = "Choose one split of it. " if isinstance(dataset, Mapping) else ""
        raise InputError(
            f"dataset is {type(dataset).__name__}. {hint}It can be a list of texts, of (text, "
            "label), of (text, pair) or of dicts, a .tsv, .csv or .jsonl path, a pandas frame "
            "or a datasets.Dataset."
        )
    rows = list(dataset)
    if not rows:
        raise InputError("The dataset is empty.")
    second = _second_is_pair(rows, labels)
    form = _Form(columns or {}, second, writes)
    return [_example(row, number, form) for number, row in enumerate(rows)]


def answered_by_all(examples: Sequence[Example], answer: Any) -> list[Example]:
    """The same, the model's own answer explained where a row has none and names no target."""
    if answer is not True:
        raise InputError(
            f"answer is {answer!r}; for all rows it can only be True, what the model writes "
            "itself. Give each row an answer of its own in a column `answer`."
        )

    def open_(one: Example) -> bool:
        ends = isinstance(one.text, list) and one.text[-1].get("role") == "assistant"
        return one.said is None and one.target is None and not ends

    return [replace(one, said=True) if open_(one) else one for one in examples]


def rows_of_file(path: Path) -> list[dict[str, Any]]:
    """The rows of a .tsv, .csv or .jsonl file."""
    if not path.is_file():
        raise InputError(f"There is no dataset file {str(path)!r}.")
    ending = path.suffix.lower()
    try:
        if ending in (".jsonl", ".ndjson"):
            # Not splitlines: texts hold other line separators than the newline.
            lines = path.read_text(encoding="utf-8-sig").split("\n")
            return [json.loads(line) for line in lines if line.strip()]
        if ending in (".tsv", ".csv"):
            # Quotes are text in a .tsv (SST-2 is full of them), and quote in a .csv.
            form: dict[str, Any] = (
                {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if ending == ".tsv" else {}
            )
            with path.open(encoding="utf-8-sig", newline="") as file:
                return [_numbers(row) for row in csv.DictReader(file, **form)]
    except (json.JSONDecodeError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path.name} cannot be read: {error}") from error
    raise InputError(f"{path.name}: the ending must be .tsv, .csv or .jsonl.")


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    """A label that is written as a number is one."""
    for name in LABEL:
        value = row.get(name)
        if isinstance(value, str) and value.strip().lstrip("-").isdigit():
            row[name] = int(value)
    return row


def _second_is_pair(rows: Sequence[Any], labels: Callable[[], Sequence[str]]) -> bool:
    """Whether the second of (text, something) is a text pair and not a label."""
    seconds = [row[1] for row in rows if isinstance(row, tuple | list) and len(row) == 2]
    if not seconds or not all(isinstance(second, str) for second in seconds):
        return False
    names = {name.lower() for name in labels()}
    return not all(second.lower() in names for second in seconds)


@dataclass(frozen=True)
class _Form:
    """How rows are to be read."""

    columns: Mapping[str, str]
    second_is_pair: bool
    writes: Callable[[], bool]


def _example(row: Any, number: int, form: _Form) -> Example:
    if isinstance(row, Example):
        return row
    if isinstance(row, str) or is_chat(row):
        return Example(row if isinstance(row, str) else list(row))
    if isinstance(row, tuple | list):
        if len(row) == 2:
            if form.second_is_pair:
                return Example(row[0], row[1])
            return Example(row[0], label=row[1])
        if len(row) == 3:
            return Example(row[0], row[1], row[2])
        raise InputError(f"Example {number} has {len(row)} parts; give (text, label) or such.")
    if not isinstance(row, Mapping):
        raise InputError(f"Example {number} is {type(row).__name__}: no text, tuple or dict.")
    columns = form.columns
    found = {name: column_of(row, name, columns) for name in COLUMNS}
    if not isinstance(found["text"], str) and not is_chat(found["text"]):
        known = ", ".join(str(name) for name in row)
        raise InputError(
            f"Example {number} has no text among its columns {known}. Name it: "
            'columns={"text": ...}.'
        )
    target = found["target"]
    if target is not None and found["foil"] is not None:
        target = (target, found["foil"])
    text, pair = found["text"], found["text_pair"]
    # A column `pair` may also number the pairs of a dataset, as in BLiMP.
    guessed = "text_pair" not in columns and "text_pair" not in row and "pair" in row
    if not isinstance(pair, str) or not pair or (guessed and pair.isdigit()):
        pair = None
    span, said = _answers(pair or text, found["answer"], target is None, form)
    return Example(
        text,
        pair,
        _plain(found["label"]),
        _plain(target),
        _plain(found["focus"]),
        _cue_spans(text, found["cues"], found["cue_words"]),
        span,
        said,
    )


def column_of(row: Mapping[str, Any], name: str, columns: Mapping[str, str]) -> Any:
    """A row's value in the column that is named for it, or else has one of its usual names."""
    if name in columns:
        if columns[name] not in row:
            raise InputError(f"There is no column {columns[name]!r} in the dataset.")
        return row[columns[name]]
    return next((row[key] for key in COLUMNS[name] if key in row), None)


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, so that examples compare and pickle alike everywhere."""
    if isinstance(value, list | tuple):
        return tuple(_plain(one) for one in value)
    if isinstance(value, float) and value != value:
        return None  # how a frame says that there is none
    return value.item() if hasattr(value, "item") else value


def _cue_spans(text: Any, cues: Any, words: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(text, str):
        return _chat_cues(text, cues, words)
    spans: list[tuple[int, int]] = []
    if words is not None:
        places = _word_spans(text)
        if any(not 0 <= int(i) < len(places) for i in words):
            raise InputError(f"cue_words {list(words)} do not fit {len(places)} words: {text!r}")
        spans += [places[int(i)] for i in words]
    for cue in cues if cues is not None else ():
        if not isinstance(cue, str):
            spans.append((int(cue[0]), int(cue[1])))
            continue
        start = text.find(cue)
        if start < 0:
            raise InputError(f"The cue {cue!r} is not in the text {text!r}.")
        spans.append((start, start + len(cue)))
    return tuple(spans)


def _chat_cues(chat: Any, cues: Any, words: Any) -> tuple[tuple[int, ...], ...]:
    """In a chat a cue stands in the first message that holds it."""
    if words is not None:
        raise InputError("cue_words number the words of a text; of a chat give cues, its texts.")
    said = [str(one["content"]) for one in chat]
    spans: list[tuple[int, ...]] = []
    for cue in cues if cues is not None else ():
        if not isinstance(cue, str):
            spans.append(tuple(int(one) for one in cue))
            continue
        number = next((i for i, text in enumerate(said) if cue in text), None)
        if number is None:
            raise InputError(f"The cue {cue!r} is in no message of the chat.")
        start = said[number].index(cue)
        spans.append((number, start, start + len(cue)))
    return tuple(spans)


def _word_spans(text: str) -> list[tuple[int, int]]:
    spans, end = [], 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    return spans


def _answers(
    text: Any, answer: Any, asked: bool, form: _Form
) -> tuple[tuple[int, int] | None, Any]:
    """(where it stands in the text, what a model that writes is to have said)."""
    ids = isinstance(answer, list | tuple) and len(answer) != 2
    if not (answer is True or ids or isinstance(answer, str)) or not form.writes():
        return (None, None) if answer is True else (_answer(plain_text(text), answer), None)
    inside = isinstance(answer, str) and isinstance(text, str) and answer in text
    span = _answer(text, answer) if inside else None
    return span, (_plain(answer) if asked else None)


def _answer(text: str, answer: Any) -> tuple[int, int] | None:
    if isinstance(answer, Mapping):  # SQuAD: {"text": [...], "answer_start": [...]}
        if not len(answer["text"]):
            return None
        start = int(answer["answer_start"][0])
        return start, start + len(answer["text"][0])
    if answer is None:
        return None
    if not isinstance(answer, str):
        return int(answer[0]), int(answer[1])
    start = text.find(answer)
    if start < 0:
        raise InputError(f"The answer {answer!r} is not in the text.")
    return start, start + len(answer)


def tokens_of_spans(
    tokens: Sequence[Token], spans: Sequence[tuple[int, ...]], segment: int = 0
) -> list[int]:
    """Places of the tokens that share a character with one of the spans: (start, end), in a chat
    (message, start, end)."""
    return [
        token.position
        for token in tokens
        if token.segment == segment
        and token.start is not None
        and token.end is not None
        and any(
            token.start < span[-1]
            and span[-2] < token.end
            and token.message == (span[0] if len(span) == 3 else None)
            for span in spans
        )
    ]
