"""`benchmark`: methods against metrics over a dataset, on one machine or many."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import pickle
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import InputError, MixwidgetError
from ..methods import all_methods, get_method
from ..metrics import FAITHFULNESS, Choice, choices, get_metric
from ..models import Size, Source, open_source
from .examples import Example, read_examples
from .worker import ModelRef, Row, Unit, pinned, run_unit

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["method", "metric", "mean", "stderr", "n", "errors", "better", "example", "text"]
COLUMNS += ["value", "error"]
# Methods that take at most this many times a forward pass are run unless others are named.
CHEAP = 20.0


class WorkerLostError(MixwidgetError, RuntimeError):
    """A worker died. What was finished before is in the cache, if there is one."""


def cheap_methods(size: Size | None = None) -> list[str]:
    """Ids of the methods that cost at most `CHEAP` forward passes on a 30-token text."""
    size = size or Size(tokens=30, layers=6, heads=12, width=384, inner=1536)
    return [entry.id for entry in all_methods() if entry.cost(size) <= CHEAP]


def benchmark(
    model: Any,
    dataset: Any,
    methods: Any = None,
    metrics: Any = FAITHFULNESS,
    executor: Executor | None = None,
    *,
    tokenizer: Any = None,
    per_example: bool = False,
    target: str = "predicted",
    truncate: bool = False,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
    chunk_size: int = 8,
    threads: int | None = 1,
    progress: bool = True,
) -> pd.DataFrame:
    """Measure methods on a dataset: one row for each method and metric.

    Args:
        model: what `explain` takes. A name or folder is opened by each worker; a model in
            memory is sent to each worker once.
        dataset: a list of texts, of (text, label), of (text, pair), of dicts, a .tsv, .csv or
            .jsonl path, a pandas frame or a `datasets.Dataset`. Columns are found by their
            usual names; `columns={"text": "comment"}` names others.
        methods: ids, ("id", {options}) or {label: either}; None means all cheap ones.
        metrics: likewise; see `mixwidget.metrics.METRICS`.
        executor: any `concurrent.futures.Executor` (a process pool, Dask's
            `client.get_executor()`); None runs here.
        per_example: a row for each example too.
        target: "predicted", or "label" to explain the example's label. An example's own
            `target` goes before both.
        truncate: cut texts that are too long; otherwise they are rows with an error.
        limit: only the first examples.
        seed: of the `random` method; each text has its own random scores.
        cache: a folder. What is finished is kept there, and not computed again by the next
            call with the same model, methods, metrics and texts.
        chunk_size: examples sent to a worker at a time.
        threads: of torch in each worker process; None leaves it alone.
        progress: show a progress bar.

    Returns:
        Columns method, metric, mean, stderr (of the mean), n (examples with a value), errors
        (examples that failed), better ("higher" or "lower"); `example`, `text`, `value` and
        `error` are filled in rows of single examples. An example that fails is such a row
        whatever `per_example` says. A metric that does not apply to a method has n = 0 and
        the reason in `error`.

    >>> from mixwidget import benchmark, demo
    >>> texts = [("never boring", "positive"), ("a dull plot", "negative")]
    >>> names = ["alti", "random"], ["comprehensiveness"]
    >>> table = benchmark(demo.load()[0], texts, *names, progress=False)
    >>> table["n"].tolist()
    [2, 2]
    """
    if target not in ("predicted", "label"):
        raise InputError(f'target is {target!r}; it can be "predicted" or "label".')
    if chunk_size < 1:
        raise InputError(f"chunk_size is {chunk_size}; it must be at least 1.")
    chosen = tuple(choices(cheap_methods() if methods is None else methods, "method"))
    measured = tuple(choices(metrics, "metric"))
    for choice in chosen:
        get_method(choice.id).options(choice.options)
    for choice in measured:
        get_metric(choice.id).check(choice.options)
    source = None if _by_name(model, tokenizer, executor) else open_source(model, tokenizer)
    examples = read_examples(dataset, columns, lambda: _labels(model, source))[:limit]
    with contextlib.ExitStack() as stack:
        ref, data = _reference(model, source, executor, stack)
        unit = Unit(ref, (), chosen, measured, target, truncate, seed, threads)
        run_key = _run_key(unit, source, model) if cache is not None else ""
        store = _Store(cache, run_key)
        done = store.load()
        todo = [e for key, e in {e.key(): e for e in examples}.items() if key not in done]
        units = _units(unit, todo, chunk_size)
        bar = stack.enter_context(_progress(len(todo), progress))
        for finished, rows in _results(units, executor, data):
            store.save(rows)
            for row in rows:
                done.setdefault(row.example, []).append(row)
            bar.update(len(finished.examples))
    return _frame(examples, done, chosen, measured, per_example)


def _by_name(model: Any, tokenizer: Any, executor: Executor | None) -> bool:
    """Whether workers can open the model by themselves, so that it need not be opened here."""
    elsewhere = executor is not None and not isinstance(executor, ThreadPoolExecutor)
    return elsewhere and tokenizer is None and isinstance(model, str | os.PathLike)


def _labels(model: Any, source: Source | None) -> list[str]:
    if source is not None:
        return source.labels
    from transformers import AutoConfig

    names = getattr(AutoConfig.from_pretrained(os.fspath(model)), "id2label", None) or {}
    return [str(name) for name in names.values()]


def _reference(
    model: Any, source: Source | None, executor: Executor | None, stack: contextlib.ExitStack
) -> tuple[ModelRef, bytes | None]:
    """How units refer to the model, and its bytes for workers that cannot see our files."""
    if source is None:
        name = os.fspath(model)
        return ModelRef(f"name:{name}", name=name), None
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        ref = ModelRef(f"here:{uuid.uuid4()}")
        stack.enter_context(pinned(ref, source))
        return ref, None
    try:
        data = pickle.dumps((source.model, source.tokenizer), protocol=5)
    except Exception as error:
        raise InputError(
            f"The model cannot be sent to workers ({error}). Pass its name or folder instead."
        ) from error
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mixwidget-"))
    path = Path(folder) / "model.pickle"
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return ModelRef(f"bytes:{digest}", path=str(path)), data


def _units(unit: Unit, examples: Sequence[Example], size: int) -> list[Unit]:
    chunks = [tuple(examples[i : i + size]) for i in range(0, len(examples), size)]
    return [replace(unit, examples=chunk) for chunk in chunks]


def _results(
    units: list[Unit], executor: Executor | None, data: bytes | None
) -> Iterator[tuple[Unit, list[Row]]]:
    """Finished units in any order."""
    if executor is None:
        for unit in units:
            yield unit, run_unit(unit) or []
        return
    waiting: dict[Future[list[Row] | None], Unit] = {}
    lost: Exception | None = None
    try:
        for unit in units:
            try:
                waiting[executor.submit(run_unit, unit)] = unit
            except Exception as error:  # a pool that broke meanwhile takes no more
                lost = error
                break
        while waiting:
            for future in as_completed(list(waiting)):
                unit = waiting.pop(future)
                try:
                    rows = future.result()
                    if rows is None:  # the worker does not see our files: send the model along
                        if data is None or unit.model.data is not None:
                            raise WorkerLostError("it could not open the model it was sent")
                        again = unit.with_bytes(data)
                        waiting[executor.submit(run_unit, again)] = again
                        continue
                except Exception as error:  # go on: what others finished is not to be lost
                    lost = error
                    continue
                yield unit, rows
    finally:
        for future in waiting:
            future.cancel()
    if lost is not None:
        raise WorkerLostError(
            f"A worker was lost ({type(lost).__name__}: {lost}). With cache=folder the next call "
            "goes on where this one stopped."
        ) from lost


class _Store:
    """Finished rows in a folder: one JSON file for each finished unit, written at once."""

    def __init__(self, folder: str | os.PathLike[str] | None, key: str) -> None:
        self.folder = None if folder is None else Path(folder) / key
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> dict[str, list[Row]]:
        """Rows by example. A file that cannot be read was cut off: its examples run again."""
        found: dict[str, list[Row]] = {}
        for path in sorted(self.folder.glob("*.json")) if self.folder is not None else ():
            try:
                rows = [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
            except (OSError, ValueError, TypeError):
                continue
            mine: dict[str, list[Row]] = {}
            for row in rows:
                mine.setdefault(row.example, []).append(row)
            found.update(mine)
        return found

    def save(self, rows: list[Row]) -> None:
        if self.folder is None or not rows:
            return
        name = hashlib.sha256("".join(sorted({r.example for r in rows})).encode()).hexdigest()[:20]
        part = self.folder / f"{name}.{os.getpid()}.part"
        part.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
        part.replace(self.folder / f"{name}.json")


def _run_key(unit: Unit, source: Source | None, model: Any) -> str:
    """What results depend on besides the texts."""

    asked = [[(c.label, c.id, c.options) for c in group] for group in (unit.methods, unit.metrics)]
    settings = [unit.target, unit.truncate, unit.seed]
    content = [__version__, _fingerprint(source, model), asked, settings]
    text = json.dumps(content, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _fingerprint(source: Source | None, model: Any) -> str:
    """Of the weights in memory, or of the name and the files behind it."""
    digest = hashlib.sha256()
    if source is None:
        name = os.fspath(model)
        digest.update(name.encode())
        if Path(name).is_dir():
            for path in sorted(Path(name).iterdir()):
                state = path.stat()
                digest.update(f"{path.name}:{state.st_size}:{state.st_mtime_ns}".encode())
        return digest.hexdigest()
    import torch

    digest.update(repr(sorted(source.model.config.to_dict().items(), key=str)).encode())
    for name, tensor in source.model.state_dict().items():
        digest.update(name.encode())
        whole = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(memoryview(whole.view(torch.uint8).numpy()))
    return digest.hexdigest()


@contextlib.contextmanager
def _progress(total: int, wanted: bool) -> Iterator[Any]:
    from tqdm.auto import tqdm

    with tqdm(total=total, unit="text", disable=not wanted) as bar:
        yield bar


def _frame(
    examples: Sequence[Example],
    done: dict[str, list[Row]],
    methods: Iterable[Choice],
    metrics: Iterable[Choice],
    per_example: bool,
) -> pd.DataFrame:
    import pandas as pd

    by_pair: dict[tuple[str, str], list[tuple[int, Row]]] = {}
    for number, example in enumerate(examples):
        for row in done.get(example.key(), ()):
            by_pair.setdefault((row.method, row.metric), []).append((number, row))
    table: list[dict[str, Any]] = []
    single: list[dict[str, Any]] = []
    for method in methods:
        for metric in metrics:
            rows = by_pair.get((method.label, metric.label), [])
            table.append(_summary(method, metric, [row for _, row in rows]))
            for number, row in rows:
                failed = bool(row.error) and not row.undefined
                if per_example or failed:
                    single.append(_single(number, examples[number], row, metric))
    frame = pd.DataFrame(table + single, columns=COLUMNS)
    frame["example"] = frame["example"].astype("Int64")
    return frame


def _summary(method: Choice, metric: Choice, rows: list[Row]) -> dict[str, Any]:
    values = [row.value for row in rows if not row.error]
    reasons = {row.error for row in rows if row.undefined}
    # fsum: the same whatever the order
    mean = math.fsum(values) / len(values) if values else float("nan")
    spread = math.fsum((value - mean) ** 2 for value in values)
    several = len(values) > 1
    return {
        "method": method.label,
        "metric": metric.label,
        "mean": mean,
        "stderr": math.sqrt(spread / (len(values) - 1) / len(values)) if several else float("nan"),
        "n": len(values),
        "errors": sum(bool(row.error) and not row.undefined for row in rows),
        "better": get_metric(metric.id).better,
        "error": min(reasons) if reasons and not values else None,
    }


def _single(number: int, example: Example, row: Row, metric: Choice) -> dict[str, Any]:
    return {
        "method": row.method,
        "metric": row.metric,
        "mean": row.value,
        "n": 0 if row.error else 1,
        "errors": int(bool(row.error) and not row.undefined),
        "better": get_metric(metric.id).better,
        "example": number,
        "text": example.text,
        "value": row.value,
        "error": row.error or None,
    }
