"""Methods that change the text and look at the prediction, and the random floor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..explanation import REST, Part
from ..models import WAYS, edit, predict, prompt_units, stand_in_name
from .registry import method

if TYPE_CHECKING:
    from .run import Run


@method(
    "blank_out",
    title="Blank-out",
    family="perturbation",
    yields="scores",
    paper="Li et al.: Understanding Neural Networks through Representation Erasure",
    year=2016,
    link="https://arxiv.org/abs/1612.08220",
    needs=("passes", "target"),
    signed=True,
    says="removal",
    any_focus=True,
    measures="How much the target's probability falls when one token is taken away. Negative: "
    "it rises.",
    formula=r"s_j = p_c(x) - p_c(x_{\setminus j})",
    ignores="Tokens that matter only together, and those that another one can replace. Finds "
    "what was copied and what told where to look. The "
    "edited text may be unlike anything the model has seen.",
    cost=lambda size: 1.0 + size.tokens,
    options={
        "by": (WAYS, "Replace the token by the mask, unknown or padding token, or delete it."),
        "units": (
            None,
            "What is taken away together: 'tokens', 'words', 'sentences', 'lines', "
            "'messages', or spans of characters.",
        ),
    },
)
def blank_out(run: Run, *, by: str = "mask", units: Any = "tokens") -> Iterator[Part]:
    """s_j = p_c(x) - p_c(x with token j replaced or deleted), [n], for every token.

    Special tokens are blanked too. Li et al. 2016. A tokenizer without a mask token replaces by
    the unknown token, then by padding, but never by one that begins or ends texts (GPT-2): then
    the token is left out of attention. `info["replaced_by"]` says which. Where
    the target can no longer be read (the mask of a masked LM is deleted) p_c counts as 0.

    With `units` whole words, sentences, ... of the text (of a prompt: before the answer) are taken
    away, and what none of them covers as one more; special tokens stay. A unit's value is spread
    evenly over its tokens; `info["values"]` holds the units' own.
    """
    source, encoding = run.source, run.encoding
    whole = isinstance(units, str) and units == "tokens"
    groups = [(j,) for j in range(len(encoding.tokens))] if whole else groups_of(run, units)[1]
    edits = [edit(source, encoding, run.target, (), "delete")]
    edits += [edit(source, encoding, run.target, group, by) for group in groups]  # type: ignore[arg-type]
    values = predict(source, encoding, edits, check=run.check, report=run.report)
    falls = values[0] - values[1:]
    info = (
        {}
        if whole
        else {"units": groups, "names": groups_of(run, units)[0], "values": falls.tolist()}
    )
    yield run.final(spread(run, groups, falls), replaced_by=stand_in_name(source, by), **info)


def groups_of(run: Run, units: Any) -> tuple[list[str], list[tuple[int, ...]]]:
    """Names and tokens of the units before an answer, and of what none of them covers."""
    encoding = run.encoding
    found = prompt_units(encoding, units)
    covered = {index for unit in found for index in unit.tokens}
    rest = tuple(t.position for t in encoding.tokens[: encoding.prompt]
                 if not t.special and t.position not in covered)  # fmt: skip
    names, groups = [unit.name for unit in found], [unit.tokens for unit in found]
    return ([*names, REST], [*groups, rest]) if rest else (names, groups)


def spread(run: Run, groups: Sequence[Sequence[int]], values: Tensor) -> Tensor:
    """Values of groups spread evenly over their tokens, [n]."""
    scores = torch.zeros(len(run.encoding.tokens), dtype=torch.float64)
    for group, value in zip(groups, values, strict=True):
        scores[list(group)] = value / len(group)
    return scores


@method(
    "random",
    title="Random",
    family="baseline",
    yields="scores",
    paper="No method: the floor that every faithfulness metric needs",
    year=0,
    link="",
    needs=(),
    any_focus=True,
    measures="Nothing. Scores are drawn at random; a method that is not better says nothing.",
    formula=r"s_j \sim U(0, 1)",
    ignores="Everything.",
    cost=lambda size: 0.0,
    options={"seed": (None, "Seed of the random numbers.")},
)
def random(run: Run, *, seed: int = 0) -> Iterator[Part]:
    """s_j uniform in [0, 1), [n], from `seed`: the same for every text of the same length."""
    scores = np.random.default_rng(seed).random(len(run.encoding.tokens))
    yield run.final(torch.from_numpy(scores))
