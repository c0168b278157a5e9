"""`mixwidget explain --data`: a file of texts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import demo
from ..errors import InputError
from .arguments import options_for

if TYPE_CHECKING:
    from ..engine import Asked
    from ..saving import Table


def chat_of(path: str) -> list[dict[str, Any]]:
    """The messages of a JSON file: a list of them, or an object that has one."""
    from ..models import is_chat

    try:
        found = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    if isinstance(found, dict):
        found = found.get("messages", found.get("text"))
    if not is_chat(found):
        raise InputError(
            f'{path} holds no chat: a list of messages, each {{"role": ..., "content": ...}}.'
        )
    return list(found)


def explain_data(options: argparse.Namespace, target: Any, tables: Sequence[Table]) -> int:
    """Explain every row by every method (by default the recommended one), into the tables; how
    many texts failed."""
    from ..engine import Many, shown
    from ..evaluation import rows_of_file
    from ..methods import recommended
    from ..models import open_source

    if options.method:  # a wrong name is cheaper to find before loading a model
        options_for(options.option, options.method)
    rows = rows_of_file(Path(options.data))
    if not rows:
        raise InputError(f"{options.data} holds no rows.")
    if options.model is None:
        source = replace(open_source(*demo.load()), name="demo model")
    else:
        source = open_source(options.model)
    methods = list(dict.fromkeys(options.method or [recommended(source)[0]]))
    params = options_for(options.option, methods)
    failed = set()
    for id in methods:
        texts = _asked(rows, dict(options.column), target)
        many = Many(source, id, None, options.truncate, params[id], "row", "scores")
        for result in shown(many.explained(texts), len(rows), not options.quiet):
            if hasattr(result, "error"):
                failed.add(result.id)
            for table in tables:
                table.add(result)
    return len(failed)


def _asked(rows: Sequence[dict[str, Any]], columns: dict[str, str], target: Any) -> Iterator[Asked]:
    from ..engine import Asked
    from ..evaluation import column_of

    if all(column_of(row, "text", columns) is None for row in rows):
        known = ", ".join(str(name) for name in rows[0])
        raise InputError(
            f'No text is found in the columns {known}. Name it: columns={{"text": ...}}.'
        )
    for number, row in enumerate(rows):
        text, pair, own = (
            column_of(row, name, columns) for name in ("text", "text_pair", "target")
        )
        yield Asked(number, number, text, pair or None, target if own in (None, "") else own)
