"""Pages of the documentation that are written from the tables in the code.

python -m tools.docs_methods [methods | metrics | commands]    print one as Markdown
"""

from __future__ import annotations

import inspect
import sys
from argparse import HelpFormatter
from functools import partial
from itertools import groupby

from mixwidget.methods.registry import Method, all_methods
from mixwidget.metrics.table import METRICS
from mixwidget.models.case import Size

# What costs are stated for: BERT-base and a long sentence.
SIZE = Size(tokens=128, layers=12, heads=12, width=768, inner=3072)
YIELDS = {"maps": "maps", "layer_scores": "scores per layer", "scores": "scores"}
SCORES_FROM = {
    "rollout": "the focus row of the rollout",
    "last": "the focus row of the last layer",
    "sum": "the sum over layers",
    "mean": "the mean over layers",
    "first": "those of the first layer",
    "own": "what the method itself gives",
}
COMBINE = {
    "product": "maps are multiplied",
    "normalised": "rows are normalised, then maps are multiplied",
    "with_identity": "maps are multiplied, with the identity added to each",
    "whole": "each layer's map begins at the input: nothing is combined",
    "flow": "maximum flow through the maps",
}
NEEDS = {"values": "value vectors", "passes": "more forward passes", "target": "a target"}


def methods_page() -> str:
    """The table of methods, then a section for each with its formula, paper and options."""
    entries = all_methods()
    lines = [
        "# All methods",
        "",
        f"The {len(entries)} methods of the registry, as this page was built. The same table is",
        "`mixwidget.methods()` in Python and `mixwidget methods` on the command line.",
        "Symbols: $A^h$ attention weights of head $h$, $v_j^h$ value vectors with their bias,",
        "$x_i$ input and $o_i$ output of a layer, $i$ the target (row), $j$ the source (column);",
        "$W$ the mean of $A^h$ over heads, $z_{ij} = \\sum_h A^h_{ij} W_O^h v_j^h$ what attention",
        "brings from $j$ to $i$, $u_{ij}$ that with the residual, $t_{ij}$ after the first norm;",
        "$p_i$, $y_i$ and $q_i$ what the first norm reads and makes, and what the second reads;",
        "$\\gamma$ weights of a norm; $h^l$ the output of layer $l$, $R^l$ the rollout up to it",
        "($R$ of the relevance methods: relevance), $f$ the focus token. $y_c$ and $p_c$ are logit",
        "and probability of the target class $c$, $e_j$ is the embedding of token $j$, $e'_j$ the",
        "baseline's.",
        "",
        "*Gives*: a map [n, n] for each layer, token scores for each layer, or only final scores.",
        "*Cost* is time relative to one forward pass that the method needs besides, as estimated",
        f"for a model of the size of BERT-base and {SIZE.tokens} tokens.",
        "",
        "| id | what it is | gives | signed | explains | cost |",
        "|---|---|---|---|---|---|",
        *map(_row, entries),
        "",
    ]
    for family, members in groupby(entries, key=lambda entry: entry.family):
        lines += [f"## {family.capitalize()}", ""]
        for entry in members:
            lines += _section(entry)
    return "\n".join(lines)


def _row(entry: Method) -> str:
    explains = "a prediction" if entry.class_specific else "a token"
    cells = [f"[`{entry.id}`](#{entry.id})", entry.title, YIELDS[entry.yields]]
    cells += ["yes" if entry.signed else "", explains, _times(entry.cost(SIZE))]
    return "| " + " | ".join(cells) + " |"


def _times(cost: float) -> str:
    """A cost as a reader would say it."""
    if cost < 0.1:
        return "none" if cost == 0 else "&lt; 0.1"
    return f"{cost:.1f}" if cost < 10 else f"{float(f'{cost:.2g}'):,.0f}"


def _section(entry: Method) -> list[str]:
    needs = [NEEDS.get(need, need) for need in entry.needs]
    lines = [
        f"### `{entry.id}` {{ #{entry.id} }}",
        "",
        f"**{entry.title}.** {entry.measures}",
        "",
        f"$$\n{entry.formula}\n$$",
        "",
        f"*Ignores:* {entry.ignores}",
        "",
    ]
    text = inspect.getdoc(entry.run) or ""
    if text:
        first, *others = text.split("\n\n")
        lines += [f"*Definition:* {_words(first)}", ""]
        lines += [part for other in others for part in (_words(other), "")]
    facts = [f"Needs {', '.join(needs)}"] if needs else []
    facts += [f"scores: {SCORES_FROM[entry.scores_from]}"]
    if entry.yields == "maps":
        facts.append(f"rollout: {COMBINE[entry.combine]}")
    if entry.downward:
        facts.append("streams from the top layer down")
    said = "; ".join(facts)
    lines += [f"{said[0].upper()}{said[1:]}.", "{ .facts }", ""]
    lines += [f"Paper: [{entry.paper} ({entry.year})]({entry.link})", "{ .facts }", ""]
    if entry.params:
        lines += ["| option | default | values | |", "|---|---|---|---|"]
        for param in entry.params:
            allowed = "" if param.choices is None else ", ".join(f"`{c!r}`" for c in param.choices)
            lines.append(f"| `{param.name}` | `{param.default!r}` | {allowed} | {param.help} |")
        lines.append("")
    return lines


def _words(text: str) -> str:
    """A paragraph of a docstring as Markdown: what looks like markup there is none."""
    parts = " ".join(text.split()).split("`")
    for place in range(0, len(parts), 2):  # what stands between backticks stays
        for mark in ("\\", "*", "_", "|", "$", "[", "]"):
            parts[place] = parts[place].replace(mark, f"\\{mark}")
        parts[place] = parts[place].replace("<", "&lt;").replace(">", "&gt;")
    return "`".join(parts)


def metrics_page() -> str:
    """The table of metrics, with the first sentence of each function."""
    given = {
        "model": "the model",
        "cues": "cue tokens of the dataset",
        "answer": "the answer's span",
    }
    lines = [
        "# All metrics",
        "",
        "Ids for `benchmark(..., metrics=[...])`; each is also a plain function of an explanation",
        "in `mixwidget.metrics`, described with its options under",
        "[Metrics](api/metrics.md).",
        "",
        "| id | what it is | better | needs |",
        "|---|---|---|---|",
    ]
    for metric in METRICS.values():
        first = _words((inspect.getdoc(metric.function) or "").split("\n\n")[0])
        needs = given[metric.needs]
        lines.append(
            f"| [`{metric.id}`][{_home(metric.function)}] | **{metric.title}.** {first} "
            f"| {metric.better} | {needs} |"
        )
    return "\n".join([*lines, ""])


def _home(function: object) -> str:
    return f"{function.__module__}.{function.__qualname__}"  # type: ignore[attr-defined]


def commands_part() -> str:
    """What `mixwidget ... --help` says, at a fixed width."""
    from mixwidget.cli.arguments import PARSERS

    blocks = []
    for name, make in PARSERS.items():
        parser = make()
        parser.formatter_class = partial(HelpFormatter, width=88)
        blocks += [f"## {name}", "", "```text", parser.format_help().rstrip(), "```", ""]
    return "\n".join(blocks)


PAGES = {"methods": methods_page, "metrics": metrics_page, "commands": commands_part}

if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1] if len(sys.argv) > 1 else "methods"]())
