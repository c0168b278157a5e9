"""Methods that change the text and look at the prediction, and the random floor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..explanation import Part
from ..models import WAYS, edit, predict, stand_in_name
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
    any_focus=True,
    measures="How much the target's probability falls when one token is taken away. Negative: "
    "it rises.",
    formula=r"s_j = p_c(x) - p_c(x_{\setminus j})",
    ignores="Tokens that matter only together, and those that another one can replace. Finds "
    "what was copied and what told where to look. The "
    "edited text may be unlike anything the model has seen.",
    cost=lambda size: 1.0 + size.tokens,
    options={
        "by": (WAYS, "Replace the token by the mask, unknown or padding token, or delete it.")
    },
)
def blank_out(run: Run, *, by: str = "mask") -> Iterator[Part]:
    """s_j = p_c(x) - p_c(x with token j replaced or deleted), [n], for every token.

    Special tokens are blanked too. Li et al. 2016. A tokenizer without a mask token replaces by
    the unknown token, then by padding, but never by one that begins or ends texts (GPT-2): then
    the token is left out of attention. `info["replaced_by"]` says which. Where
    the target can no longer be read (the mask of a masked LM is deleted) p_c counts as 0.
    """
    source, encoding = run.source, run.encoding
    tokens = range(len(encoding.tokens))
    edits = [edit(source, encoding, run.target, (), "delete")]
    edits += [edit(source, encoding, run.target, (j,), by) for j in tokens]  # type: ignore[arg-type]
    values = predict(source, encoding, edits, check=run.check, report=run.report)
    yield run.final(values[0] - values[1:], replaced_by=stand_in_name(source, by))


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
