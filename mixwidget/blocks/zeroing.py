"""What changes in a layer's output when one token's values are set to zero.

Zeroing v_j takes z_ij = sum_h A^h_ij W_O^h v^h_j away from what attention brings to token i;
the attention weights stay. So nothing is run again: the difference is carried through the
rest of the layer as a difference, which also keeps it exact where it is far smaller than
what it is a difference of. The first projection of the feed-forward sees, per source token,
combinations of H vectors that are made once; the activation and the second projection are
computed for every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from .algebra import Block
from .digits import wide
from .parts import Norm

Distance = Literal["cosine", "euclidean", "spearman"]

# Pairs worked on at once: enough for full speed at 32 tokens too, few enough for the cache.
_ROWS = 512

# Source tokens whose heads' vectors are made at once.
_SOURCES = 64


class Shift(NamedTuple):
    """norm(base + change) - norm(base), and the two factors it is made of per row:
    shift = linear(change) * inverse + linear(base) * slack."""

    vectors: Tensor  # [..., d]
    inverse: Tensor  # [..., 1] one over the new scale
    slack: Tensor  # [..., 1] the new inverse scale minus the old


class Sources(NamedTuple):
    """What heads bring from some source tokens: to the attention output, and to the first
    projections of the feed-forward."""

    which: slice
    vectors: Tensor  # [J, H, d]
    made: list[Tensor]  # of [J, H, inner]


class _Norm:
    """A norm at its recorded input, ready to say how its output changes."""

    def __init__(self, norm: Norm, base: Tensor) -> None:
        self.norm, self.scale = norm, norm.scale(base)
        self.base = base - base.mean(-1, keepdim=True) if norm.centred else base
        self.linear = norm.linear(base)

    def __call__(self, change: Tensor, rows: slice) -> Shift:
        base, scale = self.base[rows], self.scale[rows]
        if self.norm.centred:
            change = change - change.mean(-1, keepdim=True)
        power = torch.add(change, base, alpha=2).mul_(change).mean(-1, keepdim=True)
        after = (scale.square() + power).clamp_(min=self.norm.eps).sqrt_()
        inverse = 1 / after
        slack = -power / (scale * after * (scale + after))
        vectors = change.mul_(inverse) if self.norm.centred else change * inverse
        if self.norm.gamma is not None:
            vectors.mul_(self.norm.gamma)
        return Shift(vectors.addcmul_(self.linear[rows], slack), inverse, slack)


class Zeroing:
    """One block, prepared for zeroing the values of any of its tokens."""

    def __init__(self, block: Block) -> None:
        self.block, self.wiring = block, block.spec.wiring
        self.attention = block.weights.permute(2, 1, 0).contiguous()  # [source, target, H]
        self.project = block.out_project
        self.after1 = None if block.after1 is None else _Norm(block.after1, block.attention_out)
        if self.wiring == "parallel":
            return
        reader = block.norm1 if self.wiring == "post" else block.norm2
        self.reader = None if reader is None else _Norm(reader, block.attended)
        leaver = block.norm2 if self.wiring == "post" else block.after2
        reads = block.before_norm2 if self.wiring == "post" else block.record.ffn_out
        assert reads is not None
        self.leaver = None if leaver is None else _Norm(leaver, reads.detach())
        self._prepare_feed_forward()

    def _prepare_feed_forward(self) -> None:
        block, forward = self.block, self.block.feed_forward
        assert block.record.ffn_in is not None
        reads = block.record.ffn_in.detach()
        self.before = [nn.functional.linear(reads, w, b) for w, b in forward.first]
        self.hidden = forward.activate(self.before)
        # What the first projection makes of the reader's linear part: of its input, and of
        # a head's vectors (`folds`, when there are enough tokens for that to be worth it).
        through = [
            w if self.reader is None else _before(w, self.reader.norm) for w, _ in forward.first
        ]
        self.through = through
        self.bases = (
            [] if self.reader is None else list(map(self._base, self.before, forward.first))
        )
        self.branches: list[Tensor] = []
        project = self.project
        if self.after1 is not None:
            self.branches = [nn.functional.linear(self.after1.linear, w) for w in through]
            project = self.after1.norm.linear(project)
        heads, _, width = project.shape
        self.folds: list[Tensor] | None = None
        if block.tokens * (heads - 1) > width:
            self.folds = [project @ w.T for w in through]  # [H, d_head, inner]

    def _base(self, before: Tensor, first: tuple[Tensor, Tensor | None]) -> Tensor:
        """The first projection of the reader's linear part, back from what it made. [n, inner]"""
        assert self.reader is not None
        weight, bias = first
        constant = None if self.reader.norm.beta is None else weight @ self.reader.norm.beta
        for term in (bias, constant):
            before = before if term is None else before - term
        return before * self.reader.scale

    def sources(self, which: slice) -> Sources:
        """What heads bring from some source tokens."""
        values = self.block.values[:, which]
        vectors = torch.matmul(values, self.project).transpose(0, 1)
        if self.wiring == "parallel":
            return Sources(which, vectors, [])
        if self.folds is not None:
            made = [torch.matmul(values, fold).transpose(0, 1) for fold in self.folds]
        else:
            branch = vectors if self.after1 is None else self.after1.norm.linear(vectors)
            made = [nn.functional.linear(branch, weight) for weight in self.through]
        return Sources(which, vectors, made)

    def change(self, sources: Sources, which: slice, rows: slice) -> Tensor:
        """Change of the layer's output in `rows` for each zeroed source, [J, R, d].

        `which` counts within `sources`.
        """
        start = sources.which.start
        attention = self.attention[start + which.start : start + which.stop, rows]
        stream = torch.bmm(attention, sources.vectors[which]).neg_()
        factor = attention
        extra: Tensor | None = None
        if self.after1 is not None:
            stream, inverse, extra = self.after1(stream, rows)
            factor = attention * inverse
        if self.wiring == "parallel":
            return stream
        if self.reader is None:
            read, slack = stream, None
        else:
            read, inverse, slack = self.reader(stream, rows)
            factor = factor * inverse
            extra = None if extra is None else extra * inverse
        made = [vectors[which] for vectors in sources.made]
        out = self._feed_forward(made, rows, factor, slack, extra)
        if self.wiring == "post":
            out += read
            return out if self.leaver is None else self.leaver(out, rows).vectors
        if self.leaver is not None:
            out = self.leaver(out, rows).vectors
        return out.add_(stream)

    def _feed_forward(
        self,
        made: list[Tensor],
        rows: slice,
        factor: Tensor,
        slack: Tensor | None,
        extra: Tensor | None,
    ) -> Tensor:
        """Change of the feed-forward's output. The change of what it reads is
        -factor @ (heads' vectors) + slack * (its base) + extra * (the branch's base)."""
        forward = self.block.feed_forward
        after = []
        for number, vectors in enumerate(made):
            before = self.before[number][rows]
            if slack is None:
                here = before.expand(len(factor), -1, -1).clone()
            else:
                here = torch.addcmul(before, self.bases[number][rows], slack)
            if extra is not None:
                here.addcmul_(self.branches[number][rows], extra)
            after.append(here.baddbmm_(factor, vectors, alpha=-1))
        hidden = forward.activate(after).sub_(self.hidden[rows])
        return nn.functional.linear(hidden, forward.down)


def _before(weight: Tensor, norm: Norm) -> Tensor:
    """A projection together with the linear part of the norm it reads. [out, d]"""
    weight = weight if norm.gamma is None else weight * norm.gamma
    return weight - weight.mean(-1, keepdim=True) if norm.centred else weight


def zeroing_distances(
    block: Block, distance: Distance, tick: Callable[[float], None] = lambda share: None
) -> Tensor:
    """How far o_i moves when token j's values are zeroed, [n, n] (row i, column j)."""
    if block.again is not None:
        return _by_running_again(block, distance, tick)
    tokens, zeroing, measure = block.tokens, Zeroing(block), _MEASURES[distance](block.output)
    moved = block.output.new_zeros(tokens, tokens)  # [source, target]
    for first in range(0, tokens, _SOURCES):
        last = min(first + _SOURCES, tokens)
        sources = zeroing.sources(slice(first, last))
        start = first
        while start < last:
            rows = slice(start if block.causal else 0, tokens)
            stop = min(last, start + max(1, _ROWS // (tokens - rows.start)))
            change = zeroing.change(sources, slice(start - first, stop - first), rows)
            moved[start:stop, rows] = measure(change, rows)
            tick(stop / tokens)
            start = stop
    return (moved.T * (block.weights != 0).any(0)).contiguous()


def _by_running_again(block: Block, distance: Distance, tick: Callable[[float], None]) -> Tensor:
    """The same for a block whose feed-forward is not looked into: the layer runs once for each
    source token, with its values away."""
    assert block.again is not None
    seen = (block.weights != 0).any(0)
    rows, columns = block.lying()
    moved = moved_by(block.again, block.output, distance, (rows, columns), seen, tick)
    return moved * seen


def moved_by(
    again: Callable[[int | None], Tensor],
    output: Tensor,
    distance: Distance,
    lying: tuple[slice, list[int]],
    seen: Tensor | None = None,
    tick: Callable[[float], None] = lambda share: None,
) -> Tensor:
    """How far each row of a layer's output [n, d] moves when `again` takes a source away. [n, n]

    Args:
        lying: the rows that the layer moves, and the columns that it takes from.
        seen: [n, n] which sources can matter at all; None: every one.
    """
    measure = _MEASURES[distance](output)
    moved = output.new_zeros(len(output), len(output))  # [source, target]
    rows, columns = lying
    before = again(None)
    for number, column in enumerate(columns):
        if seen is None or bool(seen[:, column].any()):
            change = torch.zeros_like(output)
            moved_rows = again(number) - before
            change[rows] = moved_rows[: len(change[rows])]  # what was filled up is no token
            moved[column] = measure(change[None], slice(None))[0]
        tick((number + 1) / len(columns))
    return moved.T.contiguous()


Measure = Callable[[Tensor, slice], Tensor]


def _cosine(output: Tensor) -> Measure:
    """1 - cos(o + change, o), from the part of the change that is at right angles to o."""
    size = output.norm(dim=-1, keepdim=True)
    unit = output / size.clamp(min=torch.finfo(output.dtype).tiny)

    def measure(change: Tensor, rows: slice) -> Tensor:
        along = (change * unit[rows]).sum(-1, keepdim=True)
        across = torch.addcmul(change, unit[rows], along, value=-1).norm(dim=-1)
        angle = torch.atan2(across, (size[rows] + along).squeeze(-1))
        return 2 * torch.sin(angle / 2).square()

    return measure


def _euclidean(output: Tensor) -> Measure:
    """||change||."""
    return lambda change, rows: change.norm(dim=-1)


def _spearman(output: Tensor) -> Measure:
    """1 - rank correlation over features of o + change and o; ties keep their order. The sum is
    taken wide: a change that float32 loses in it may still swap two features."""
    width, base = output.shape[-1], wide(output)
    ranks, pairs = _ranks(base), max(1, width * (width**2 - 1))

    def measure(change: Tensor, rows: slice) -> Tensor:
        gap = wide(_ranks(base[rows] + wide(change)) - ranks[rows])
        return (6 * gap.square().sum(-1) / pairs).to(output.dtype)

    return measure


def _ranks(vectors: Tensor) -> Tensor:
    return vectors.argsort(dim=-1, stable=True).argsort(-1)


_MEASURES: dict[Distance, Callable[[Tensor], Measure]] = {
    "cosine": _cosine,
    "euclidean": _euclidean,
    "spearman": _spearman,
}
