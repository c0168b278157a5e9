"""Every model type of the installed transformers, tiny, through the engine and against references.

    python -m benchmarks.breadth --write             # all types; writes docs/support.md
    python -m benchmarks.breadth causal llama gpt2   # some types of one task; prints only

Each type runs in a process of its own. The references know nothing of the engine: attention is
what the model itself gives out (`output_attentions`), GAE is autograd from there, Value Zeroing
really zeroes the values of a token in every layer, one level below torch's functions, and logits
are those of the model as it came.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import shrunk

METHODS = ("raw_attention", "alti", "value_zeroing", "attcat", "gae")
TEXT, PREFIX = "the film is not bad and deep", "a good old film"
SECONDS = 180
KEPT = Path(__file__).parent / "tables" / "types.json"
TASKS = {
    "causal": "Causal language models",
    "masked": "Masked language models",
    "classifier": "Classifiers",
    "encoder-decoder": "Encoder-decoders",
}


@dataclass
class Outcome:
    """What became of one type with one head."""

    model_type: str
    task: str
    built: str = ""  # why it could not be built, if so
    methods: dict[str, str] = field(default_factory=dict)  # "" or the refusal
    differs: dict[str, float] = field(default_factory=dict)  # from the references, where too far
    compared: list[str] = field(default_factory=list)
    crash: str = ""
    adds_up: float = 0.0
    unlike: int = 0  # layers without attention

    @property
    def verdict(self) -> str:
        if self.built:
            return "not built"
        if self.crash:
            return "crash"
        if self.differs:
            return "wrong"
        refused = [m for m, reason in self.methods.items() if reason]
        if not refused:
            return "works"
        return "refused" if len(refused) == len(METHODS) else "in part"


def examined(model_type: str, task: str) -> Outcome:
    """One type, in this process."""
    import torch

    torch.set_num_threads(1)
    outcome = Outcome(model_type, task)
    try:
        model = shrunk.build(model_type, task)
        again = shrunk.build(model_type, task)
        try:
            eager = shrunk.build(model_type, task, attn_implementation="eager")
        except Exception:
            eager = again
        shrunk.runs(again, task, TEXT)
    except Exception as error:
        outcome.built = _line(error)
        return outcome
    try:
        _examine(model, again, eager, task, outcome)
    except Exception as error:
        import traceback

        outcome.crash = f"{type(error).__name__}: {error} {traceback.format_exc()[-300:]}"
    return outcome


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"


def _examine(model: Any, reference: Any, eager: Any, task: str, outcome: Outcome) -> None:
    from mixwidget.engine import explain, prepare
    from mixwidget.errors import MixwidgetError

    tokenizer = shrunk.tokenizer()
    pair = PREFIX if task == "encoder-decoder" else None
    found = {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[method] = explain(model, TEXT, method, tokenizer=tokenizer, text_pair=pair)
                outcome.methods[method] = ""
                outcome.adds_up = max(outcome.adds_up, *found[method].info["adds_up"])
            except MixwidgetError as error:
                outcome.methods[method] = str(error)
                # A refusal is in words: of the typed ones, none that passes an error on.
                if any(word in str(error) for word in ("Error", "Traceback", "NoneType")):
                    outcome.crash = f"unclear: {error}"
    if not found:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = prepare(model, TEXT, tokenizer=tokenizer, text_pair=pair)
        trace = case.trace()
    outcome.unlike = len(trace) - len(trace.attending)
    if outcome.adds_up > 1e-3:
        outcome.differs["adds_up"] = outcome.adds_up
    from benchmarks import references

    references.compare(reference, eager, case, found, outcome)


def in_processes(
    examine: Callable[[str, str], Any], jobs: list[tuple[str, str]], kind: Any, workers: int = 2
) -> list[Any]:
    """What `examine` says of every (type, task), each asked in a process of its own; `kind` is what
    it gives."""
    context = multiprocessing.get_context("fork")

    def one(job: tuple[str, str]) -> Any:
        queue = context.Queue()

        def child() -> None:
            queue.put(asdict(examine(*job)))

        process = context.Process(target=child)
        process.start()
        try:
            outcome = kind(**queue.get(timeout=SECONDS))
            print(job, outcome.verdict, asdict(outcome), file=sys.stderr, flush=True)
            return outcome
        except Exception:
            return kind(*job, crash=f"no answer in {SECONDS} s")
        finally:
            process.kill()
            process.join()

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, jobs))


def warm_up() -> None:
    """Import what all types share before processes are forked."""
    import transformers

    import mixwidget.engine
    import mixwidget.methods.registry

    transformers.logging.set_verbosity_error()
    mixwidget.methods.registry.all_methods()
    for model_type, task in (("llama", "causal"), ("t5", "encoder-decoder"), ("gemma3", "causal"),
                             ("bert", "masked"), ("mixtral", "classifier")):  # fmt: skip
        shrunk.build(model_type, task)


def main(arguments: list[str] | None = None) -> list[Outcome]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", choices=[*shrunk.HEADS, "all"], default="all")
    parser.add_argument("types", nargs="*")
    parser.add_argument("--json", type=Path, help="every outcome in full")
    parser.add_argument("--write", action="store_true", help="into docs/support.md")
    given = parser.parse_args(arguments)
    warm_up()
    tasks = list(shrunk.HEADS) if given.task == "all" else [given.task]
    jobs = [(t, k) for k in tasks for t in shrunk.types(k) if not given.types or t in given.types]
    outcomes = in_processes(examined, jobs, Outcome)
    for task in tasks:
        mine = [o for o in outcomes if o.task == task]
        counts = {
            v: sum(o.verdict == v for o in mine) for v in dict.fromkeys(o.verdict for o in mine)
        }
        print(f"== {task}: {counts}")
        for o in mine:
            if o.verdict != "works" or given.types:
                reasons = sorted({r for r in o.methods.values() if r})
                print(f"  {o.model_type}: {o.verdict} {o.built or o.crash or o.differs or reasons}"
                      f" compared={','.join(o.compared)}")  # fmt: skip
    if given.json:
        given.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
    if given.write:
        write(outcomes)
    return outcomes


def write(outcomes: list[Outcome]) -> None:
    """Keep what came out, and put it into docs/support.md."""
    import transformers

    from tests.lib import support

    kept: dict[str, Any] = {"transformers": transformers.__version__, "tasks": {}}
    for o in outcomes:
        if o.verdict == "not built":
            continue
        refused = {m: r for m, r in o.methods.items() if r}
        reason = o.crash or (json.dumps(o.differs) if o.differs else "")
        without = {"verdict": o.verdict, "unlike": o.unlike}
        if refused and not reason:
            # One sentence, without what it says of adding a family by hand.
            said = next(iter(refused.values())).split(" To add the family")[0]
            without |= {"methods": sorted(refused), "reason": said}
        elif reason:
            without |= {"reason": reason}
        kept["tasks"].setdefault(o.task, {})[o.model_type] = without
    KEPT.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    support.PAGE.write_text(support.table(), encoding="utf-8")


def section() -> list[str]:
    """Lines of docs/support.md: what works of every model type, in part and why, and what not."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    lines = [
        "## Every model type",
        "",
        f"Made by `python -m benchmarks.breadth --write`: every model type of transformers "
        f"{kept['transformers']} that",
        "can be built tiny is run through raw attention, ALTI, Value Zeroing, AttCAT and GAE, and "
        "compared",
        "with references made of the model alone: its logits, the attention it gives out, GAE by "
        "autograd",
        "from there, Value Zeroing by really zeroing values one level below torch's functions.",
    ]
    for task, title in TASKS.items():
        types = kept["tasks"].get(task, {})
        works = sorted(name for name, one in types.items() if one["verdict"] == "works")
        hybrid = sorted(name for name in works if types[name]["unlike"])
        lines += [
            "",
            f"### {title}",
            "",
            f"{len(works)} of {len(types)} work: " + ", ".join(f"`{name}`" for name in works) + ".",
        ]
        if hybrid:
            lines += [
                "",
                "With layers that do not attend, which are named with the share they write: "
                + ", ".join(f"`{name}`" for name in hybrid)
                + ".",
            ]
        rest = {name: one for name, one in types.items() if one["verdict"] != "works"}
        if rest:
            lines += ["", "| type | | why |", "|---|---|---|"]
        for name, one in sorted(rest.items()):
            which = one["verdict"]
            if which == "in part":
                which = "all but " + ", ".join(f"`{m}`" for m in one["methods"])
            lines.append(f"| `{name}` | {which} | {one['reason']} |")
    return lines


if __name__ == "__main__":
    main()
