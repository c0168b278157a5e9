"""Shapley values of tokens and units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..errors import InputError, UnsupportedMethodError
from ..explanation import Part, units_of
from ..models import By, edit, predict, stand_in_name
from .registry import method

if TYPE_CHECKING:
    from .run import Run

# Up to so many players every set of them is tried.
_EXACT = 8

Group = tuple[int, ...]


class _Game:
    """v(S): the prediction with the players outside of S taken away; each set is asked once."""

    def __init__(self, run: Run, players: list[Group], of: str, by: By) -> None:
        self.run, self.players, self.of, self.by = run, players, of, by
        self.known: dict[frozenset[int], float] = {}

    def ask(self, sets: Sequence[frozenset[int]], share: float = 1.0) -> None:
        """Have the model predict for all of these that are not known yet."""
        run = self.run
        new = [one for one in dict.fromkeys(sets) if one not in self.known]
        every = range(len(self.players))
        gone = [[t for p in every if p not in one for t in self.players[p]] for one in new]
        edits = [edit(run.source, run.encoding, run.target, tokens, self.by) for tokens in gone]
        values = predict(
            run.source, run.encoding, edits, of=self.of, check=run.check,
            report=lambda done: run.report(done * share),
        )  # fmt: skip
        if bool(torch.isnan(values).any()):
            raise UnsupportedMethodError(
                "With all of its tokens deleted this text has no place left at which the model "
                "predicts the target. Use by='mask'."
            )
        self.known.update(zip(new, values.tolist(), strict=True))

    def exact(self) -> np.ndarray:
        """Every player's mean gain over all sets of the others."""
        count = len(self.players)
        every = range(count)
        self.ask([frozenset(s) for k in range(count + 1) for s in combinations(every, k)])
        values = np.zeros(count)
        for player in every:
            others = [p for p in every if p != player]
            for k in range(count):
                weight = 1 / (count * math.comb(count - 1, k))
                for chosen in combinations(others, k):
                    with_it, without = frozenset((*chosen, player)), frozenset(chosen)
                    values[player] += weight * (self.known[with_it] - self.known[without])
        return values

    def sampled(self, permutations: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean gains along random orders, each followed by its reverse; and standard errors."""
        rng = np.random.default_rng(seed)
        orders: list[np.ndarray] = []
        while len(orders) < permutations:
            order = rng.permutation(len(self.players))
            orders += [order, order[::-1]]
        orders = orders[:permutations]
        self.ask([frozenset(order[:k].tolist()) for order in orders for k in range(len(order) + 1)])
        gains = np.zeros((len(orders), len(self.players)))
        for row, order in enumerate(orders):
            for k, player in enumerate(order):
                before, after = frozenset(order[:k].tolist()), frozenset(order[: k + 1].tolist())
                gains[row, player] = self.known[after] - self.known[before]
        # An order and its reverse are no two draws: what varies is their mean.
        pairs = np.stack([gains[i : i + 2].mean(0) for i in range(0, len(gains), 2)])
        if len(pairs) == 1:
            return gains.mean(0), np.full(len(self.players), np.nan)
        return gains.mean(0), pairs.std(0, ddof=1) / math.sqrt(len(pairs))


def players_of(run: Run, units: Any, by: By) -> list[Group]:
    """Tokens that are taken away together: each ordinary one, or a unit's; what no unit covers is
    one player. An answer is not played for: it is what is predicted."""
    encoding = run.encoding
    end = len(encoding.tokens) if encoding.answer is None else encoding.answer.start
    ordinary = [i for i in encoding.ordinary() if i < end]
    if isinstance(units, str) and units == "tokens":
        found: list[Group] = [(i,) for i in ordinary]
    else:
        texts = encoding.text if isinstance(encoding.text, list) else [encoding.text]
        read = [str(one["content"]) if isinstance(one, dict) else one for one in texts]
        pair = [] if encoding.text_pair is None else [encoding.text_pair]
        given = units_of(encoding.tokens, [*read, *pair], units, encoding.answer)
        held = [tuple(i for i in unit.tokens if i in ordinary) for unit in given]
        covered = {i for group in held for i in group}
        found = [
            group for group in [*held, tuple(i for i in ordinary if i not in covered)] if group
        ]
    return [group for group in found if by != "delete" or _readable_without(run, group)]


def _readable_without(run: Run, group: Group) -> bool:
    """Whether the target has a place in the text without these tokens."""
    return edit(run.source, run.encoding, run.target, group, "delete").target is not None


@method(
    "shapley",
    title="Shapley values",
    family="perturbation",
    yields="scores",
    paper="Shapley: A Value for n-Person Games; for predictions by Lundberg and Lee",
    year=2017,
    link="https://papers.nips.cc/paper/7062-a-unified-approach-to-interpreting-model-predictions",
    needs=("passes", "target"),
    signed=True,
    any_focus=True,
    measures="What a token adds to the target's logit, averaged over all orders in which tokens "
    "can come in. It finds what was copied and what told where to look.",
    formula=r"s_j = \tfrac{1}{m!} \sum_{\pi} \bigl(v(\pi_{<j} \cup \{j\}) - v(\pi_{<j})\bigr), "
    r"\quad \textstyle\sum_j s_j = v(\text{all}) - v(\text{none})",
    ignores="How the model came to it: it is only asked. Texts with tokens taken away may be "
    "unlike anything it has seen. Beyond 8 players it is an estimate, with standard errors.",
    cost=lambda size: 1.0 + min(2.0**size.tokens, 16.0 * size.tokens),
    options={
        "of": (("logit", "probability"), "What is shared out: the target's logit or probability."),
        "by": (("mask", "delete"), "Replace what is taken away by the mask token, or delete it."),
        "units": (
            None,
            "What is taken away together: 'tokens', 'words', 'sentences', 'lines', 'messages', or "
            "spans of characters.",
        ),
        "permutations": (None, "Orders that are tried, beyond 8 players."),
        "seed": (None, "Seed of the orders."),
    },
)  # fmt: skip
def shapley(
    run: Run,
    *,
    of: str = "logit",
    by: By = "mask",
    units: Any = "tokens",
    permutations: int = 16,
    seed: int = 0,
) -> Iterator[Part]:
    """s_j = mean over orders of v(before j and j) - v(before j), [n]; players are ordinary tokens.

    v(S) is the target's logit (`of="probability"`) with the players outside of S replaced as in
    `blank_out`, or deleted. Exact up to 8 players; else by seeded permutations, each with its
    reverse, with standard errors in `info["stderr"]`. The sum is v(all) - v(none) for any number
    of them; both are in `info`. A unit's value is spread evenly over its tokens; `info["units"]`
    says which those are, `info["values"]` the units' own. Shapley 1953; Lundberg and Lee 2017.
    """
    if isinstance(permutations, bool) or not isinstance(permutations, int) or permutations < 1:
        raise InputError(f"permutations is {permutations!r}; it is how many orders to try, from 1.")
    players = players_of(run, units, by)
    if not players:
        raise UnsupportedMethodError("No token of this text can be taken away.")
    game = _Game(run, players, of, by)
    stderr = np.zeros(len(players))
    if len(players) <= _EXACT:
        values = game.exact()
    else:
        values, stderr = game.sampled(permutations, seed)
    scores = torch.zeros(len(run.encoding.tokens), dtype=torch.float64)
    for group, value in zip(players, values, strict=True):
        scores[list(group)] = value / len(group)
    yield run.final(
        scores,
        units=[list(group) for group in players],
        values=values.tolist(),
        stderr=[float(e) for e in stderr],
        none=game.known[frozenset()],
        all=game.known[frozenset(range(len(players)))],
        exact=len(players) <= _EXACT,
        replaced_by=stand_in_name(run.source, by),
    )
