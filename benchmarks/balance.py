"""Methods that share a prediction out, on every model type: what they make adds up to it.

    python -m benchmarks.balance                       # all types of all tasks
    python -m benchmarks.balance causal llama gpt2     # some types of one task

Tiny models with random weights, in float32, each type in a process of its own. What counts is the
balance: the target's logit against what the tokens get and what is known to belong to none of them
(biases, the softmax), relative to the sum of the absolute values; of the older relevance rules
the share of relevance that no layer may lose.
"""

from __future__ import annotations

import argparse
import functools
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import shrunk
from benchmarks.breadth import PREFIX, TEXT, in_processes, warm_up

METHODS = ("attn_lrp", "cp_lrp", "logit", "alti_logit", "decompx", "ifr", "lrp", "transatt")
NEAR = 1e-4


@dataclass
class Balanced:
    """What became of one type with one head."""

    model_type: str
    task: str
    built: str = ""  # why it could not be built, if so
    error: dict[str, float] = field(default_factory=dict)  # of the balance, where it ran
    refused: dict[str, str] = field(default_factory=dict)
    unmet: list[str] = field(default_factory=list)  # functions without a rule
    crash: str = ""

    @property
    def verdict(self) -> str:
        if self.built:
            return "not built"
        if self.crash:
            return "crash"
        return "open" if any(not error < NEAR for error in self.error.values()) else "closes"


def examined(model_type: str, task: str, methods: Sequence[str] = METHODS) -> Balanced:
    """One type, in this process."""
    import torch

    from mixwidget.engine import explain
    from mixwidget.errors import MixwidgetError

    torch.set_num_threads(1)
    found = Balanced(model_type, task)
    try:
        model = shrunk.build(model_type, task)
        shrunk.runs(model, task, TEXT)
    except Exception as error:
        found.built = f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"
        return found
    given = {"tokenizer": shrunk.tokenizer()}
    if task == "encoder-decoder":
        given["text_pair"] = PREFIX
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = explain(model, TEXT, method, **given)
            except MixwidgetError as error:
                found.refused[method] = str(error)
                continue
            except Exception as error:
                import traceback

                found.crash += f"{method}: {type(error).__name__}: {error} "
                found.crash += traceback.format_exc()[-300:]
                continue
        if method == "ifr":
            found.error[method] = float(abs(made.maps.sum(-1) - 1).max())
            continue
        if method in ("lrp", "transatt"):
            found.error[method] = max(abs(total - 1) for total in made.info["conservation"])
            continue
        found.error[method] = made.info["balance"]["error"]
        found.unmet = sorted({*found.unmet, *made.info.get("rules", {}).get("unmet", ())})
    return found


def main(arguments: list[str] | None = None) -> list[Balanced]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", choices=[*shrunk.HEADS, "all"], default="all")
    parser.add_argument("types", nargs="*")
    parser.add_argument("--json", type=Path, help="every outcome in full")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    given = parser.parse_args(arguments)
    warm_up()
    examine = functools.partial(examined, methods=given.methods)
    tasks = list(shrunk.HEADS) if given.task == "all" else [given.task]
    jobs = [(t, k) for k in tasks for t in shrunk.types(k) if not given.types or t in given.types]
    outcomes = in_processes(examine, jobs, Balanced, given.workers)
    for task in tasks:
        mine = [one for one in outcomes if one.task == task and not one.built]
        print(f"== {task}: {len(mine)} types")
        for method in given.methods:
            ran = [one for one in mine if method in one.error]
            near = sum(one.error[method] < NEAR for one in ran)
            refused = sum(method in one.refused for one in mine)
            print(f"  {method}: below {NEAR:g} {near}, above {len(ran) - near}, refused {refused}")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1))
    return outcomes


if __name__ == "__main__":
    main()
