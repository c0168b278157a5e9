"""The command line: the same engine, without a notebook.

Exit codes: 0 done, 1 refused or failed (one line on stderr says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from .. import demo
from ..errors import InputError, MixwidgetError
from .arguments import PARSERS, focus_of, options_for, target_of, with_units
from .data import chat_of, explain_data
from .terminal import by_unit, picture, prediction

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..models import Case

PICTURES = ("png", "svg", "pdf")
# What errors advise in Python, and how it is said here.
_SPOKEN = {
    "pass truncate=True": "use --truncate",
    'columns={"text": ...}': "--column text=NAME",
    "pass a loaded model and its tokenizer": "name a folder that holds the model and its tokenizer",
}
_SAY_EVERY = 10.0  # seconds between two lines of progress where stderr is no terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what the process should exit with."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    named = bool(given) and given[0] in PARSERS
    command = given.pop(0) if named else "explain"
    parser = PARSERS[command]()
    try:
        options = parser.parse_args(given)
        with _plain_warnings():
            _COMMANDS[command](options, parser)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse: help and version, or wrong usage
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        sys.stderr.write("mixwidget: interrupted\n")
        return 130
    except BrokenPipeError:  # a reader like `head` has gone; nothing more may be flushed there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("MIXWIDGET_DEBUG"):
            raise
        sys.stderr.write(f"mixwidget: {_one_line(error)}\n")
        return 1
    return 0


def _one_line(error: BaseException) -> str:

    text = " ".join(str(error).split())
    for python, here in _SPOKEN.items():
        text = text.replace(python, here)
    known = isinstance(error, MixwidgetError | OSError)
    return text if known and text else f"{type(error).__name__}: {text}".removesuffix(": ")


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Our own warnings in one line, without a place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        sys.stderr.write(f"mixwidget: warning: {' '.join(str(message).split())}\n")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


# mixwidget [explain] TEXT


def _explain(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    from ..methods import recommended

    if options.data is not None:
        _many(options, parser)
        return
    if options.chat is not None:
        if options.text is not None or options.text_pair is not None:
            parser.error("--chat brings the text: leave TEXT and --text-pair out")
        text: Any = chat_of(options.chat)
    else:
        text = sys.stdin.read().strip() if options.text == "-" else options.text
    if options.answer is not None and options.generate:
        parser.error("--answer and --generate exclude each other")
    if text is None:
        if options.model is not None:
            parser.error("the text is missing")
        text = demo.SENTENCE
    for path in options.output:
        _check_output(path)
    show = _Progress(options.quiet)
    if options.method:  # a wrong name is cheaper to find before loading a model
        options_for(options.option, options.method)
    if not text:
        raise InputError("The text is empty.")
    near = get_close_matches(text, PARSERS, n=1, cutoff=0.8) if isinstance(text, str) else []
    if options.model is None and near:
        show.say(f"explaining the text {text!r}; the command is: mixwidget {near[0]}")
    case = _prepare(options, text)
    methods = list(dict.fromkeys(options.method or [recommended(case.source)[0]]))
    params = options_for(options.option, methods)
    units = with_units(options.units, params)
    target = None if options.target is None else target_of(options.target)
    focus = None if options.focus is None else focus_of(options.focus)
    found = {}
    for id in methods:
        found[id] = _run(case, id, target, focus, params[id], show)
    for path in options.output:
        _write(case, found, path)
        show.say(f"wrote {path}")
    if not options.output:
        _print(list(found.values()), target is not None, units)


def _many(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """A file of texts into files of scores; one that fails is a row with the reason."""
    for given in ("text", "text_pair", "focus", "chat", "answer", "units"):
        if getattr(options, given) is not None:
            parser.error(f"--data brings the texts: leave {given} out")
    if not options.output:
        parser.error("--data needs --out FILE, with the ending csv, jsonl or parquet")
    from ..saving import Table

    target = None if options.target is None else target_of(options.target)
    with ExitStack() as stack:
        tables = [stack.enter_context(Table(path)) for path in options.output]
        failed = explain_data(options, target, tables)
    show = _Progress(options.quiet)
    for path in options.output:
        show.say(f"wrote {path}")
    if failed:
        texts = "text" if failed == 1 else "texts"
        sys.stderr.write(f"mixwidget: warning: {failed} {texts} could not be explained\n")


def _prepare(options: argparse.Namespace, text: Any) -> Case:

    from ..engine import prepare
    from ..models import open_source

    model = options.model
    if model is None:
        model = replace(open_source(*demo.load()), name="demo model")
    return prepare(
        model,
        text,
        text_pair=options.text_pair,
        truncate=options.truncate,
        answer=True if options.generate else options.answer,
        max_new_tokens=options.max_new_tokens,
    )


def _run(
    case: Case, id: str, target: Any, focus: Any, params: dict[str, Any], show: _Progress
) -> Explanation:
    from ..engine import assemble, parts, start

    begin = time.perf_counter()
    run = start(case, id, target=target, focus=focus, params=params, report=show.report(id))
    collected = list(parts(run))
    case.warn()
    one = assemble(run, collected, time.perf_counter() - begin)
    show.say(f"{id}: {one.info['seconds']:.2f} s")
    return one


class _Progress:
    """Progress on stderr: a line that is rewritten on a terminal, else a line now and then."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()

    def report(self, id: str) -> Callable[[float], None]:
        said = time.monotonic()

        def show(share: float) -> None:
            nonlocal said
            if self.live:
                sys.stderr.write(f"\r\033[K{id}: {share:4.0%}")
                sys.stderr.flush()
            elif time.monotonic() - said > _SAY_EVERY:
                said = time.monotonic()
                self.say(f"{id}: {share:.0%}")

        return show

    def say(self, line: str) -> None:
        if not self.quiet:
            start = "\r\033[K" if self.live else ""
            sys.stderr.write(f"{start}{line}\n")


def _check_output(path: str) -> None:
    """Refuse what cannot be written before anything is computed."""
    from ..saving import format_of

    if Path(path).suffix.lower() != ".csv":
        try:
            format_of(path)
        except InputError as error:
            raise InputError(f"{path}: {str(error).removesuffix('.')}, csv.") from error
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r} to write into.")


def _write(case: Case, found: dict[str, Explanation], path: str) -> None:
    """All methods into one file, one below the other in a picture."""
    from ..saving import exported, page_of

    ending = Path(path).suffix.lower().removeprefix(".")
    first, *others = found.values()
    if ending == "csv":
        import pandas as pd

        frames = [one.to_frame() for one in found.values()]
        pd.concat(frames, ignore_index=True).to_csv(path, index=False)
    elif ending in PICTURES and others:
        first.plot("compare", others=others, difference=False).savefig(path)
    else:
        page = partial(page_of, case, list(found.values()), sys.stderr.isatty())
        Path(path).write_bytes(exported(found, ending, page)[2])


def _print(found: list[Explanation], asked: bool, units: Any = None) -> None:
    """Pictures below what the model predicts, or says of the target that was asked about."""

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    ascii = "utf" not in (sys.stdout.encoding or "").lower()
    width = min(get_terminal_size().columns, 100)
    first = found[0]
    answered = first.answer is not None
    verb = "answers" if answered else "asked about" if asked else "predicts"
    target = prediction(first)
    said = f"{first.info['model']}: {verb} {target}" if target else str(first.info["model"])
    if units is None:
        blocks = [picture(one, width=width, colour=colour, ascii=ascii) for one in found]
    else:
        blocks = [by_unit(one, units, width, ascii) for one in found]
    text = "\n\n".join([said, *blocks]) + "\n"
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


# mixwidget methods


def _methods(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    from ..methods import methods

    table = methods()
    if options.json:
        sys.stdout.write(table.to_json(orient="records", indent=2, force_ascii=False) + "\n")
        return
    rows = [("id", "family", "yields", "title")]
    rows += list(table[["id", "family", "yields", "title"]].itertuples(index=False, name=None))
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    for row in rows:
        head = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths))
        sys.stdout.write(f"{head}  {row[3]}\n")


# mixwidget benchmark


def _benchmark(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:

    from ..evaluation import benchmark
    from ..metrics import FAITHFULNESS

    if options.workers < 1:
        parser.error("--workers must be at least 1")
    ending = Path(options.output).suffix.lower() if options.output else ".txt"
    if ending not in (".csv", ".tsv", ".json", ".txt"):
        raise InputError(f"{options.output}: the ending must be .csv, .tsv or .json.")
    model, tokenizer = (options.model, None) if options.model else demo.load()
    with ExitStack() as stack:
        pool = None
        if options.workers > 1:  # spawned: a forked copy of torch's threads would hang
            pool = ProcessPoolExecutor(options.workers, get_context("spawn"))
            stack.enter_context(pool)
        table = benchmark(
            model,
            options.data,
            options.method,
            options.metric or FAITHFULNESS,
            pool,
            tokenizer=tokenizer,
            per_example=options.per_example,
            target=options.target,
            truncate=options.truncate,
            columns=dict(options.column),
            limit=options.limit,
            seed=options.seed,
            cache=options.cache,
            progress=not options.quiet,
        )
    if options.output is None:
        single = table["example"].notna()
        shown = table[~single][["method", "metric", "mean", "stderr", "n"]]
        sys.stdout.write(_table(shown))
        if options.per_example:
            shown = table[single][["example", "method", "metric", "value", "text"]]
            sys.stdout.write("\n" + _table(shown.sort_values("example", kind="stable")))
    elif ending == ".json":
        table.to_json(options.output, orient="records", indent=2, force_ascii=False)
    else:
        table.to_csv(options.output, index=False, sep="\t" if ending == ".tsv" else ",")
    if options.output is not None:
        _Progress(options.quiet).say(f"wrote {options.output}")
    failed = int(table[table["example"].isna()]["errors"].sum())
    if failed:
        sys.stderr.write(f"mixwidget: warning: {failed} values could not be computed\n")


def _table(frame: Any) -> str:
    return str(frame.to_string(index=False, float_format=lambda x: f"{x:.4f}")) + "\n"


_COMMANDS = {"explain": _explain, "methods": _methods, "benchmark": _benchmark}
