"""One question to one model or several, over a dataset: from what a user says to rows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError
from ..explanation import named
from ..methods import get_method
from ..metrics import Choice
from ..models import Source, open_source
from .examples import Example
from .reference import reference
from .running import WorkerLostError, results
from .store import Store, run_key
from .worker import Row, Unit, strangers

# What the classes of models that write are called.
_WRITE = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
# The rows of one model, by the key of their example.
Found = dict[str, list[Row]]


@dataclass(frozen=True)
class Entrant:
    """One of the models. `source` is None where the workers open it by its name."""

    name: str
    model: Any
    source: Source | None

    def labels(self) -> list[str]:
        if self.source is not None:
            return self.source.labels
        return [str(name) for name in (getattr(self._config(), "id2label", None) or {}).values()]

    def writes(self) -> bool:
        """Whether it is a language model that goes on from a text."""
        if self.source is not None:
            return self.source.task in ("causal_lm", "seq2seq_lm")
        made = getattr(self._config(), "architectures", None) or ()
        return any(name.endswith(_WRITE) for name in made)

    def _config(self) -> Any:
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(os.fspath(self.model))


def entrants(
    model: Any, names: Sequence[str] | None, tokenizer: Any, executor: Executor | None
) -> list[Entrant]:
    """One model, or a list of them, opened where they have to be.

    Args:
        names: what to call them; None: by their folders, numbered where these are the same.
        tokenizer: one for all, or a list with one for each.
    """
    models = list(model) if isinstance(model, list | tuple) else [model]
    if not models:
        raise InputError("Give at least one model.")
    each = list(tokenizer) if isinstance(tokenizer, list | tuple) else [tokenizer] * len(models)
    if len(each) != len(models):
        raise InputError(f"There are {len(each)} tokenizers for {len(models)} models.")
    sources = [
        None if _by_name(one, own, executor) else open_source(one, own)
        for one, own in zip(models, each, strict=True)
    ]
    pairs = zip(models, sources, strict=True)
    called = named([source.name if source else os.fspath(one) for one, source in pairs], names)
    return [Entrant(*one) for one in zip(called, models, sources, strict=True)]


def _by_name(model: Any, tokenizer: Any, executor: Executor | None) -> bool:
    """Whether workers can open the model by themselves, so that it need not be opened here."""
    elsewhere = executor is not None and not isinstance(executor, ThreadPoolExecutor)
    return elsewhere and tokenizer is None and isinstance(model, str | os.PathLike)


@dataclass
class Campaign:
    """How the question is carried out.

    Attributes:
        unit: what is asked, as a unit of work without a model.
    """

    entrants: list[Entrant]
    examples: list[Example]
    unit: Unit
    executor: Executor | None = None
    cache: str | os.PathLike[str] | None = None
    chunk_size: int = 8
    progress: bool = True

    def rows(self) -> list[Found]:
        """What was found of each model. Workers are given one model after another, so that each
        of them opens a model once."""
        if self.chunk_size < 1:
            raise InputError(f"chunk_size is {self.chunk_size}; it must be at least 1.")
        with contextlib.ExitStack() as stack:
            unit = replace(self.unit, methods=self._known())
            units: list[Unit] = []
            stores: dict[str, tuple[Store, Found]] = {}
            sent: dict[str, bytes | None] = {}
            found: list[Found] = []
            for entrant in self.entrants:
                ref, data = reference(entrant.model, entrant.source, self.executor, stack)
                mine = replace(unit, model=ref)
                cached = self.cache is not None
                key = run_key(mine, entrant.source, entrant.model) if cached else ""
                store = Store(self.cache, key)
                done = store.load()
                if ref.key in stores:  # the same model twice
                    found.append(stores[ref.key][1])
                    continue
                stores[ref.key], sent[ref.key] = (store, done), data
                found.append(done)
                todo = {e.key(): e for e in self.examples if e.key() not in done}
                units += _units(mine, list(todo.values()), self.chunk_size)
            total = sum(len(one.examples) for one in units)
            bar = stack.enter_context(_bar(total, self.progress))
            for finished, rows in results(units, self.executor, sent):
                store, done = stores[finished.model.key]
                store.save(rows)
                for row in rows:
                    done.setdefault(row.example, []).append(row)
                bar.update(len(finished.examples))
        return found

    def _known(self) -> tuple[Choice, ...]:
        """The methods as workers know them: one's own by the module that registers it. What they
        do not know is refused before anything is computed."""
        chosen = self.unit.methods
        if self.executor is None or isinstance(self.executor, ThreadPoolExecutor):
            return chosen
        own = {c.id: get_method(c.id).run.__module__ for c in chosen}
        own = {id: home for id, home in own.items() if not home.startswith("mixwidget.")}
        if not own:
            return chosen
        named = {
            id: id if ":" in id or home == "__main__" else f"{home}:{id}"
            for id, home in own.items()
        }
        try:
            unknown = self.executor.submit(strangers, tuple(named.values())).result()
        except Exception as error:
            raise WorkerLostError(
                f"A worker was lost ({type(error).__name__}: {error}) when it was asked for the "
                f"methods {', '.join(own)}. A script that starts processes needs "
                "`if __name__ == '__main__':` around what it does."
            ) from error
        if unknown:
            listed = ", ".join(repr(one.rpartition(":")[2]) for one in unknown)
            raise InputError(
                f"The workers do not know the method {listed}: it was registered here, in a "
                "notebook or script. Put it into a module that they can import too, import that, "
                'or name it "module:id"; or run without an executor.'
            )
        return tuple(replace(c, id=named.get(c.id, c.id)) for c in chosen)


def _units(unit: Unit, examples: Sequence[Example], size: int) -> list[Unit]:
    chunks = [tuple(examples[i : i + size]) for i in range(0, len(examples), size)]
    return [replace(unit, examples=chunk) for chunk in chunks]


@contextlib.contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Any]:
    from tqdm.auto import tqdm

    with tqdm(total=total, unit="text", disable=not wanted) as bar:
        yield bar
