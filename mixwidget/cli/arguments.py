"""What can be said on the command line, and what is meant by it. Imports nothing heavy."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from .. import __version__
from ..errors import InputError

_USAGE = """\
mixwidget [explain] TEXT [--model X] [--method M ...] [-o FILE]
       mixwidget explain --chat FILE --model X [--answer TEXT | --generate] [--units U]
       mixwidget explain --data FILE --out FILE [--model X] [--method M ...]
       mixwidget methods [--json]
       mixwidget benchmark --data FILE [--model X] [--method M ...] [-o FILE]"""


def _explain_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "Explain a text: how its tokens mix, or which of them drove the prediction.",
        usage=_USAGE,
        epilog="Without -o a small picture is printed. A text that is the name of a command goes "
        "after `explain`. Exit codes: 0 done, 1 refused or failed, 2 wrong usage.",
    )
    parser.add_argument("text", nargs="?", help='the input; "-" reads it from stdin')
    parser.add_argument("--text-pair", metavar="TEXT", help="the second text of a pair")
    parser.add_argument(
        *("--chat",),
        metavar="FILE",
        help='a chat in the place of the text: JSON, a list of messages with "role" and "content"',
    )
    parser.add_argument(
        "--answer", metavar="TEXT", help="of a language model: explain this answer to the text"
    )
    parser.add_argument(
        "--generate", action="store_true", help="of a language model: explain its own answer"
    )
    parser.add_argument(
        *("--max-new-tokens",),
        metavar="N",
        type=int,
        default=64,
        help="at most so many tokens of its own answer (64)",
    )
    parser.add_argument(
        *("--units",),
        metavar="U",
        help="sum scores over words, sentences, lines or messages; methods that take units away "
        "take these",
    )
    parser.add_argument(
        "--data", metavar="FILE", help="many texts: a .csv, .tsv or .jsonl file (then --out)"
    )
    _column_argument(parser)
    _model_arguments(parser)
    parser.add_argument(
        "--target", metavar="T", help="class or token to explain; default: what the model predicts"
    )
    parser.add_argument("--focus", metavar="TOKEN", help="token (number or text) whose row is read")
    parser.add_argument(
        *("--option",),
        metavar="KEY=VALUE",
        action="append",
        default=[],
        type=_key_value,
        help="option of a method (alti.p=2: of that one); may be given again",
    )
    parser.add_argument(
        *("-o", "--output", "--out"),
        metavar="FILE",
        action="append",
        default=[],
        help="write html, png, svg, pdf, json or csv (with --data csv, jsonl or parquet), by the "
        "ending; may be given again",
    )
    return parser


def _methods_parser() -> argparse.ArgumentParser:
    parser = _parser("List the methods.", prog="mixwidget methods")
    parser.add_argument("--json", action="store_true", help="everything known, as JSON")
    return parser


def _benchmark_parser() -> argparse.ArgumentParser:
    parser = _parser("Measure methods on a dataset.", prog="mixwidget benchmark")
    parser.add_argument("--data", required=True, metavar="FILE", help="a .tsv, .csv or .jsonl file")
    _model_arguments(parser, "default: all that are cheap")
    parser.add_argument(
        *("--metric",),
        action="append",
        metavar="M",
        help="metric, may be given again; default: the four of faithfulness",
    )
    parser.add_argument(
        "--target", choices=("predicted", "label"), default="predicted", help="what is explained"
    )
    _column_argument(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    parser.add_argument("--seed", type=int, default=0, help="of the random method (0)")
    parser.add_argument("--cache", metavar="FOLDER", help="keep what is finished, and go on there")
    parser.add_argument("--per-example", action="store_true", help="a row for each example too")
    parser.add_argument("-o", "--output", metavar="FILE", help="a .csv, .tsv or .json file")
    return parser


def _column_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *("--column",),
        metavar="KEY=NAME",
        action="append",
        default=[],
        type=_key_value,
        help="a column with an unusual name (text=comment)",
    )


def _parser(description: str, **settings: Any) -> argparse.ArgumentParser:
    settings.setdefault("prog", "mixwidget")
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False, **settings)
    parser.add_argument("--version", action="version", version=f"mixwidget {__version__}")
    return parser


def _model_arguments(
    parser: argparse.ArgumentParser, default: str = "default: the recommended one"
) -> None:
    parser.add_argument(
        "--model", metavar="X", help="name on the hub or folder; default: the embedded demo model"
    )
    parser.add_argument(
        *("--method",),
        action="append",
        metavar="M",
        help=f"id from `mixwidget methods`, may be given again; {default}",
    )
    parser.add_argument("--truncate", action="store_true", help="cut texts that are too long")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _key_value(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key, value


def _value(text: str) -> Any:
    """A number, tuple or quoted text as Python writes it; true and false; else the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return tuple(found) if isinstance(found, list) else found


def options_for(given: list[tuple[str, str]], methods: list[str]) -> dict[str, dict[str, Any]]:
    """For each method the options that are meant for it; one that nobody has raises."""
    from ..methods import get_method

    known = {id: {param.name for param in get_method(id).params} for id in methods}
    found: dict[str, dict[str, Any]] = {id: {} for id in known}
    for key, text in given:
        owner, dot, name = key.rpartition(".")
        meant = [owner] if dot else [id for id in known if name in known[id]]
        if not meant or not set(meant) <= set(known) or any(name not in known[id] for id in meant):
            have = "; ".join(f"{id}: {', '.join(sorted(known[id])) or 'none'}" for id in known)
            raise InputError(f"No chosen method has the option {key!r}. Options: {have}.")
        for id in meant:
            found[id][name] = _value(text)
    return found


def with_units(given: str | None, params: dict[str, dict[str, Any]]) -> Any:
    """The units scores are summed over; methods that take units away are given them too."""
    if given is None:
        return None
    from ..methods import get_method

    units = _value(given)
    for id, options in params.items():
        if any(param.name == "units" for param in get_method(id).params):
            options.setdefault("units", units)
    return units


def target_of(text: str) -> Any:
    """Numbers, pairs and quoted texts are read as such; anything else is a name."""
    found = _value(text)
    return found if isinstance(found, int | str | tuple) and not isinstance(found, bool) else text


def focus_of(text: str) -> int | str:
    """A number is a place, all else a token's text."""
    return int(text) if text.lstrip("-").isdigit() else text


PARSERS = {
    "explain": _explain_parser,
    "methods": _methods_parser,
    "benchmark": _benchmark_parser,
}
