"""Every table and figure of the five papers: the call that makes it, and what came out.

    python -m benchmarks.papers --write                        docs/papers.md, from the list
    python -m benchmarks.papers "ALTI Figure 3" --model ... --texts sst2_dev.tsv [--out FOLDER]

The one list is `papers.txt`. Its calls know the names of `Scope`; the tests run them all on small
models, this command on what is named. `where` says what is known: a section of the documentation,
`run` (made by this command), `seen` (a picture, looked at), or `no` and why.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas

import mixwidget
from benchmarks.tables import alti, answers, attcat, globenc, mask_lrp, value_zeroing
from mixwidget.evaluation import rows_of_file

LIST = Path(__file__).with_suffix(".txt")
PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
TABLES = {
    "alti": alti,
    "answers": answers,
    "attcat": attcat,
    "globenc": globenc,
    "mask_lrp": mask_lrp,
    "value_zeroing": value_zeroing,
}
FIELDS = ("shows", "call", "where", "found")
STEPS = tuple(range(10, 101, 10))


@dataclass(frozen=True)
class Item:
    """A table or figure."""

    paper: str
    name: str
    shows: str
    call: str
    where: str
    found: str

    def __str__(self) -> str:
        return f"{self.paper} {self.name}"


def items(text: str | None = None) -> tuple[list[Item], dict[str, str]]:
    """The list, and the authors of each paper."""
    found: list[Item] = []
    authors: dict[str, str] = {}
    paper, name = "", ""
    told: dict[str, str] = {}
    for line in [*(LIST.read_text("utf-8") if text is None else text).splitlines(), "## "]:
        if line.startswith("#"):
            if name:
                if set(told) != set(FIELDS) or not all(told.values()):
                    raise ValueError(f"{paper} {name} must say {', '.join(FIELDS)}.")
                found.append(Item(paper, name, **told))
            level, _, rest = line.partition(" ")
            name, told = (rest, {}) if level == "##" else ("", {})
            if level == "#":
                paper, _, by = rest.partition(" | ")
                authors[paper] = by
        elif line.strip():
            key, _, value = line.partition(": ")
            told[key] = value.strip()
    return found, authors


@dataclass
class Scope:
    """What the calls speak of.

    Attributes:
        model: a sentiment classifier; `builds` are several by name, `seeds` one trained anew.
        texts: labelled rows; of them `sentences` (the texts), `labelled` (with numbers of classes).
        review: a long text.
        mlm, agreement: a masked language model and rows of number agreement.
        qa, questions: a model that answers, and rows of questions.
        pair_model, pair: a classifier of two texts, and two texts.
        masks: [layers][heads], found by `head_masks`.
        data: the datasets by name.
    """

    model: Any = None
    texts: Any = None
    review: str = ""
    mlm: Any = None
    agreement: Sequence[Mapping[str, Any]] = ()
    qa: Any = None
    questions: Sequence[Mapping[str, Any]] = ()
    builds: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[Any] = ()
    pair_model: Any = None
    pair: tuple[str, str] = ("", "")
    found: Any = None

    def names(self) -> dict[str, Any]:
        rows = list(self.texts or ())
        sentences = [row["sentence"] for row in rows]
        kept = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "found"}
        kept |= {"plain": self.mlm, "other_mlm": self.mlm, "pandas": pandas}
        kept |= {"sentences": sentences, "text": sentences[0] if sentences else ""}
        kept |= {"labelled": [(row["sentence"], int(row["label"])) for row in rows]}
        kept |= {"data": {"texts": rows, "agreement": self.agreement, "questions": self.questions}}
        kept |= {name: getattr(mixwidget, name) for name in mixwidget.__all__}
        kept |= {"right": right, "wrong": wrong, "by_share": by_share, **TABLES}
        return kept


def run(call: str, scope: Scope) -> Any:
    """What a call of the list gives."""
    names = scope.names()
    if "masks" in call.replace("head_masks", ""):
        if scope.found is None:
            scope.found = mixwidget.head_masks(scope.model, names["sentences"], progress=False)
        names["masks"] = scope.found
    return eval(call, names)


def wrong(model: Any, labelled: Sequence[tuple[str, int]]) -> list[str]:
    """The texts of which the model predicts something else than their label."""
    texts = [text for text, _ in labelled]
    made = mixwidget.explain(model, texts, "raw_attention")
    return [e.text for e, (_, label) in zip(made, labelled) if e.target.index != label]


def right(model: Any, labelled: Sequence[tuple[str, int]]) -> float:
    """The share of texts that the model labels as they are labelled."""
    return 1 - len(wrong(model, labelled)) / len(labelled)


def by_share() -> dict[str, Any]:
    """AOPC and log-odds at each share of tokens removed, as metrics."""
    kinds: dict[str, dict[str, Any]] = {"aopc": {"as_released": True}, "log_odds": {}}
    return {
        f"{kind} at {share}%": (kind, {**options, "bins": [share]})
        for kind, options in kinds.items()
        for share in STEPS
    }


# --- The page ------------------------------------------------------------------------------------


def page() -> str:
    """docs/papers.md."""
    listed, authors = items()
    told = [one.where.partition(":")[0].partition(".")[0] for one in listed]
    drawn, missing = told.count("seen"), told.count("no")
    lines = [
        "# The papers, table by table",
        "",
        f"Every table and figure of the five papers, {len(listed)} in all, with the call that",
        f"makes it. {len(listed) - drawn - missing} are measured or computed, {drawn} are pictures",
        f"of single texts, and {missing} need data or a model that is not at hand: their calls run",
        "on others.",
        *INTRODUCTION.split("\n"),
    ]
    for paper, by in authors.items():
        lines += ["", f"## {paper}", "", f"{by}.", ""]
        lines += ["| | shows | call | measured | what came out |", "|---|---|---|---|---|"]
        for one in listed:
            if one.paper == paper:
                cells = (one.name, one.shows, f"`{one.call}`", _where(one.where), one.found)
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


INTRODUCTION = """
Written by `python -m benchmarks.papers --write` from the list `benchmarks/papers.txt`; the tests
run every call of it on small models. The names in the calls:

- `model` is a classifier, `texts` are its labelled sentences, `sentences` the same without labels,
  `text` the first of them, `review` a long one; `builds` holds classifiers of several builds by
  name, `seeds` some that differ in the seed of their training alone.
- `mlm` is a masked language model and `agreement` the rows of number agreement it is asked about;
  `plain` a pretrained one, `other_mlm` one of another build.
- `qa` answers `questions`; `pair_model` reads `pair`, two texts.
- `masks` is what `head_masks(model, sentences)` found. `alti`, `globenc`, `mask_lrp`, `attcat`,
  `value_zeroing` and `answers` are the scripts of `benchmarks/tables`.

A name in the column "measured" leads to the table and the command that made it; *run* means

```sh
python -m benchmarks.papers "ALTI Figure 3" --limit 100 \\
    --model $MIXWIDGET_SHARED/models/minilm-sst2 --texts $MIXWIDGET_SHARED/data/sst2_dev.tsv
```

with `--mlm`, `--agreement`, `--qa`, `--questions`, `--builds` or `--seeds` where the call has them.
Models and data are those of [the tables](tables.md)."""


def _where(where: str) -> str:
    if where.startswith("no: "):
        return where
    if where in ("run", "seen"):
        return {"run": "*run*", "seen": "drawn"}[where]
    return f"[{where.partition('#')[2]}]({where})"


# --- The command ---------------------------------------------------------------------------------


def sample(path: str | None, limit: int, seed: int = 0) -> list[dict[str, Any]]:
    """Some rows of a file, the same for the same seed."""
    if path is None:
        return []
    rows = rows_of_file(Path(path))
    chosen = random.Random(seed).sample(range(len(rows)), min(limit, len(rows)))
    return [rows[i] for i in sorted(chosen)]


def told(result: Any, out: Path | None, name: str) -> Iterator[str]:
    """What came out, as text; pictures are written into a folder, and their numbers told."""
    for number, one in enumerate(result if isinstance(result, list) else [result]):
        if hasattr(one, "axes") and hasattr(one, "savefig"):
            if out is not None:
                one.savefig(out / f"{name}-{number}.png".replace(" ", "-"), dpi=120)
            yield from _drawn(one)
        elif isinstance(one, pandas.DataFrame):
            with pandas.option_context("display.width", 200, "display.max_rows", None):
                yield one.drop(columns=["example", "text", "value"], errors="ignore").to_string()
        else:
            yield str(one)


def _drawn(figure: Any) -> Iterator[str]:
    """The curves of a picture by their names; the numbers that stand in a grid."""
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            line = handle[0] if isinstance(handle, tuple) else handle  # with bars of errors
            if hasattr(line, "get_ydata"):
                yield f"{label}: " + ", ".join(f"{value:.3f}" for value in line.get_ydata())
        if axes.images and axes.texts:
            rows = [label.get_text() for label in axes.get_yticklabels()]
            cells = [text.get_text() for text in axes.texts]
            size = len(cells) // max(1, len(rows))
            for number, row in enumerate(rows):
                yield f"{row}: " + ", ".join(cells[number * size : (number + 1) * size])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help='such as "ALTI Figure 3"')
    parser.add_argument("--write", action="store_true", help="write docs/papers.md")
    for one in ("model", "texts", "review", "mlm", "agreement", "qa", "questions"):
        parser.add_argument(f"--{one}")
    parser.add_argument("--builds", nargs="*", default=[], help="folders of models")
    parser.add_argument("--seeds", nargs="*", default=[], help="folders of models")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a folder for pictures")
    given = parser.parse_args()
    if given.write:
        PAGE.write_text(page(), "utf-8")
        return
    scope = Scope(
        given.model,
        sample(given.texts, given.limit),
        given.review or "",
        given.mlm,
        sample(given.agreement, given.limit),
        given.qa,
        sample(given.questions, given.limit),
        {Path(one).name.partition("-")[0]: one for one in given.builds},
        given.seeds,
    )
    known = {str(one): one for one in items()[0]}
    for name in given.names or sys.exit("Say which, or --write."):
        item = known[name]
        print(f"\n{name}: {item.shows}\n{item.call}", flush=True)
        print("\n".join(told(run(item.call, scope), given.out, name)), flush=True)


if __name__ == "__main__":
    main()
