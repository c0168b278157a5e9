"""`explain_frame`: the texts of a table, and a table of their tokens' scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..explanation import Explanation, Failure
from ..methods import MethodId, get_method, recommended
from ..models import open_source
from .asked import Asked
from .explaining import Progress, shown
from .many import Errors, Many

if TYPE_CHECKING:
    import pandas as pd

# One row a token, of many texts.
TOKEN_COLUMNS = ["text_id", "method", "target", "probability", "position", "token", "word"]
TOKEN_COLUMNS += ["special", "score", "error"]


def explain_frame(
    model: Any,
    frame: pd.DataFrame,
    text: str = "text",
    target: str | None = None,
    method: MethodId | str | None = None,
    *,
    tokenizer: Any = None,
    text_pair: str | None = None,
    keep: Sequence[str] = (),
    focus: Any = None,
    truncate: bool = False,
    errors: Errors = "row",
    progress: Progress = False,
    **params: Any,
) -> pd.DataFrame:
    """Explain the texts of a table: one row a token, with its score.

    Columns are `text_id` (the row's label in `frame`), `method`, `target` and `probability` (what
    is explained), `position`, `token`, `word` (tokens of a word have its number), `special`,
    `score` and `error`. A text that fails has one row, with the reason and no score.

    Args:
        model: as in `explain`, and so are the arguments that are not named here.
        frame: a pandas frame.
        text: the column that holds the texts.
        target: the column that holds what is to be explained of each; None explains what the
            model predicts.
        text_pair: the column that holds the second texts of pairs.
        keep: columns of `frame` that every row is to have too.

    Example:
        >>> import pandas as pd
        >>> from mixwidget import demo, explain_frame
        >>> model, tokenizer = demo.load()
        >>> reviews = pd.DataFrame({"text": ["not bad", "a thin plot"], "stars": [4, 1]})
        >>> found = explain_frame(model, reviews, tokenizer=tokenizer, keep=["stars"])
        >>> found.query("not special").groupby("text_id")["token"].agg(" ".join).tolist()
        ['not bad', 'a thin plot']
    """
    import pandas as pd

    if method is not None:
        get_method(method).options(params)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"frame is {type(frame).__name__}, not a pandas frame. For texts alone use explain."
        )
    for column in (text, target, text_pair, *keep):
        if column is not None and column not in frame.columns:
            have = ", ".join(map(str, frame.columns))
            raise InputError(f"There is no column {column!r} in the frame. It has: {have}.")
    taken = [column for column in keep if column in TOKEN_COLUMNS]
    if taken:
        raise InputError(f"The table has a column {taken[0]!r} of its own; rename yours.")
    source = open_source(model, tokenizer)
    method = recommended(source)[0] if method is None else method
    many = Many(source, method, focus, truncate, params, errors, "scores")
    results = many.explained(_rows(frame, text, target, text_pair))
    own: list[Any] = frame[list(keep)].to_dict("records")
    return token_frame(zip(shown(results, len(frame), progress), own, strict=True), keep)


def _rows(
    frame: pd.DataFrame, text: str, target: str | None, text_pair: str | None
) -> Iterator[Asked]:
    held = {"text": text, "target": target, "text_pair": text_pair}
    columns = {
        name: frame[column].astype(object).where(frame[column].notna(), None).tolist()
        for name, column in held.items()
        if column is not None
    }
    for number, label in enumerate(frame.index):
        yield Asked(number, label, **{name: values[number] for name, values in columns.items()})


def token_frame(
    results: Iterable[tuple[Explanation | Failure, Mapping[str, Any]]], own: Sequence[str] = ()
) -> pd.DataFrame:
    """A row for each token with its final score; for a failure one row that gives the reason.

    Args:
        results: each with its values of further columns, which all its rows have.
        own: the names of these columns.
    """
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in (*TOKEN_COLUMNS, *own)}
    for one, values in results:
        for name, cell in (_cells(one) | {name: values[name] for name in own}).items():
            count = 1 if isinstance(one, Failure) else len(one.tokens)
            columns[name] += cell if isinstance(cell, list) else [cell] * count
    table = pd.DataFrame(columns)
    kinds = {"position": "Int64", "word": "Int64", "special": "boolean", "score": "float32"}
    texts = dict.fromkeys(("method", "target", "token", "error"), "string")
    return table.astype({**kinds, **texts, "probability": "float64"})


def _cells(one: Explanation | Failure) -> dict[str, Any]:
    """What stands in each column: a list with a cell for each token, or one cell for all."""
    nothing = dict.fromkeys(TOKEN_COLUMNS)
    if isinstance(one, Failure):
        reason = f"{type(one.error).__name__}: {one.error}"
        return {**nothing, "text_id": one.id, "error": reason}
    return {
        **nothing,
        "text_id": one.id,
        "method": one.method,
        "target": one.target.label,
        "probability": one.target.probability,
        "position": [token.position for token in one.tokens],
        "token": [token.text for token in one.tokens],
        "word": [token.word for token in one.tokens],
        "special": [token.special for token in one.tokens],
        "score": one.scores.tolist(),
    }
