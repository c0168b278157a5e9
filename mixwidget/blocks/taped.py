"""A block taken apart from the tape: the linear maps of its graph as the pieces of u_ij.

The pieces are those of `algebra.Stage`. The map from the heads' results to a node of the graph is
one matrix M for all tokens, times a scale that is a token's own (what norms divide by); both come
out of the graph. M is the model's, not the text's: once found it is only proved anew, by one
product with a random vector, and it is usually the output projection itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import UnsupportedModelError
from .algebra import Block, Stage, StageName
from .nodes import Nodes
from .record import Known, Placed

_EXACT = {torch.float64: 1e-4, torch.float32: 1e-4}
_HALF = 3e-2


@dataclass
class Solved:
    """A node of the graph as a map of the heads' results and of the stream. [rows, d]"""

    matrix: Tensor  # [H * d_head, d]
    scale: Tensor  # [rows, 1]
    residual: Tensor | None
    heads: Tensor  # what comes from the heads
    total: Tensor
    off: float  # how far the graph is from the matrix, relative
    free: bool = False  # no one matrix serves all tokens: what they do is asked of the graph

    @property
    def rest(self) -> Tensor:
        """What belongs to no token."""
        rest = self.total - self.heads
        return rest if self.residual is None else rest - self.residual


class TapedBlock(Block):
    """One attention of a layer whose parts have no names. Same use as `Block`."""

    def __init__(
        self,
        nodes: Nodes,
        stream: Tensor,
        end: Tensor,
        output: Tensor,
        place: Placed,
        known: Known,
        number: int,
        again: Callable[[int | None], Tensor],
    ) -> None:
        """
        Args:
            stream: the node that the residual comes from, the layer's input or made of it.
            end: the node that the block's output is; `output` are its numbers, [rows, d].
            again: runs the layer with one source token's values away; the block's output.
        """
        self.nodes, self.stream, self.end, self.place = nodes, stream, end, place
        self.known, self.number, self.again = known, number, again
        found = nodes.attention
        self.weights = place.weights(_wide(found.weights.detach()[0]))
        self.values = place.values(_wide(found.values.detach()))
        self.output = place.vectors(output)
        self.input = place.vectors(_rows(stream))
        self.gate = None if nodes.gate is None else _wide(nodes.gate)
        self._solved: dict[str, Solved] = {}

    def lying(self) -> tuple[slice, list[int]]:
        columns = self.place.columns
        if isinstance(columns, slice):
            columns = list(range(self.tokens))[columns]
        return self.place.rows, columns

    @property
    def inner(self) -> int:
        return 4 * int(self.output.shape[-1])  # what most models have; nobody looks inside

    @property
    def post(self) -> bool:
        """A norm stands behind the sum of stream and branch."""
        return self.nodes.passed is not None and self.nodes.passed is not self.nodes.joined

    def stage(self, name: StageName) -> Stage:
        solved = self._solve(self._named(name))
        heads, width = self.heads, solved.matrix.shape[0] // self.heads
        residual = solved.residual
        whole = solved.heads if residual is None else solved.heads + residual
        place = self.place.vectors
        return Stage(
            solved.matrix.reshape(heads, width, -1),
            place(solved.scale),
            None if residual is None else place(residual),
            place(solved.rest),
            place(whole),
            place(solved.total),
            self._carry(name, solved),
        )

    def _carry(self, name: StageName, solved: Solved) -> Callable[[Tensor], Tensor] | None:
        if not solved.free and self.gate is None:
            return None
        if solved.free:
            pushed = _Pushed(self._node(self._named(name)), self.nodes, self.heads)

        def carry(brought: Tensor) -> Tensor:
            rows = brought[:, self.place.rows].flatten(2)
            rows = rows if self.gate is None else rows * self.gate
            made = pushed(rows) if solved.free else rows @ solved.matrix * solved.scale
            whole = brought.new_zeros(*brought.shape[:2], made.shape[-1])
            whole[:, self.place.rows] = made
            return whole

        return carry

    def _named(self, name: StageName) -> str:
        """The node that a stage is, under the name it is known by."""
        if name in ("res_ln", "enc") and not self.post:
            return "res"
        return name

    def _node(self, name: str) -> Tensor:
        nodes = self.nodes
        node = {
            "z": nodes.branch,
            "res": nodes.joined,
            "res_ln": nodes.passed,
            "enc": self.end,
        }[name]
        if node is None:
            raise UnsupportedModelError(
                "The result of its attention is never added to a residual stream, so what a token "
                "keeps of itself cannot be told from what it takes."
            )
        return node

    def _solve(self, name: str) -> Solved:
        if name not in self._solved:
            node = self._node(name)
            with torch.inference_mode(False), torch.enable_grad():
                solved = self._solved[name] = self._taken_apart(node, name)
            if name == "res":
                self._set_aside(solved)
        return self._solved[name]

    def _set_aside(self, solved: Solved) -> None:
        """A feed-forward beside the attention is no part of their sum."""
        stream = 0 if solved.residual is None else solved.residual
        branch_made = self.nodes.branch
        if branch_made is not None:
            beside = solved.total - stream - _rows(branch_made)
            if float(beside.norm()) <= 1e-6 * float(solved.total.norm()):
                return
        branch = self._solve("z")
        whole = solved.heads + stream
        beside = solved.total - whole - branch.rest
        if float(beside.norm()) > 1e-5 * float(solved.total.norm()):
            scaled = branch.rest * (solved.scale / branch.scale)
            solved.total = whole + scaled

    def _taken_apart(self, node: Tensor, name: str) -> Solved:
        nodes = self.nodes
        width = node.shape[-1]
        rows = node.numel() // width
        probe = _probe(width, node)
        slopes = _gradient(node, nodes.leaf, probe.expand_as(node))
        if slopes is None:
            raise UnsupportedModelError(
                "What its attention puts out reaches the layer's output only through steps that "
                "are not linear, so it cannot be shared out among the tokens."
            )
        answers = _wide(nodes.layout(slopes))
        matrix, scale, off = self._matrix(node, name, answers, _wide(probe))
        free = off > _EXACT.get(node.dtype, _HALF)
        if free:
            brought = _wide(nodes.layout(nodes.leaf.detach()))
            heads = _Pushed(node, nodes, self.heads)(brought[None])[0]
            off = 0.0
        else:
            heads = scale * (_wide(nodes.layout(nodes.leaf.detach())) @ matrix)
        residual = None
        if name != "z":
            residual = _pushed(node, self.stream)
        key = (self.number, name)
        if key not in self.known.apart:
            self._tokens_apart(node)
            self.known.apart.add(key)
        total = _wide(node.detach()).reshape(rows, width)
        return Solved(matrix, scale, residual, heads, total, off, free)

    def _matrix(
        self, node: Tensor, name: str, answers: Tensor, probe: Tensor
    ) -> tuple[Tensor, Tensor, float]:
        """M, the tokens' scales, and how far the graph is from them: the graph's answer to a
        random vector must be that of M."""
        key = (self.number, name)
        limit = _EXACT.get(node.dtype, _HALF)
        candidates = [self.known.matrices.get(key), *(_wide(m).T for m in self.nodes.matrices)]
        for matrix in candidates:
            if matrix is None or matrix.shape != (answers.shape[1], len(probe)):
                continue
            scale, off = _parallel(answers, matrix @ probe)
            if off <= limit:
                return matrix, scale, off
        matrix = self._built(node, answers)
        scale, off = _parallel(answers, matrix @ probe)
        if off <= limit:
            self.known.keep(key, matrix)
        return matrix, scale, off

    def _built(self, node: Tensor, answers: Tensor) -> Tensor:
        """M from the graph: as many of its columns at once as there are tokens."""
        width = node.shape[-1]
        rows = len(answers)
        reference = answers[answers.norm(dim=1).argmax()]
        scale = (answers @ reference) / reference.square().sum().clamp(min=1e-30)
        use = (scale.abs() > 1e-3 * scale.abs().max()).nonzero()[:, 0]
        matrix = answers.new_zeros(answers.shape[1], width)
        for start in range(0, width, len(use)):
            columns = torch.arange(start, min(start + len(use), width), device=node.device)
            chosen = use[: len(columns)]
            seeds = node.new_zeros(rows, width)
            seeds[chosen, columns] = 1
            slopes = _gradient(node, self.nodes.leaf, seeds.reshape(node.shape))
            assert slopes is not None
            got = _wide(self.nodes.layout(slopes))[chosen] / scale[chosen, None]
            matrix[:, columns] = got.T
        return matrix

    def _tokens_apart(self, node: Tensor) -> None:
        """The proof that a token's row takes nothing from another's: neither from its heads nor
        from its stream."""
        rows = node.numel() // node.shape[-1]
        seeds = torch.zeros_like(node).reshape(rows, -1)
        seeds[rows // 2] = 1
        found = [
            _gradient(node, self.nodes.leaf, seeds.reshape(node.shape)),
            _gradient(node, self.stream, seeds.reshape(node.shape)),
        ]
        layouts = [self.nodes.layout, lambda t: t.reshape(rows, -1)]
        for slopes, layout in zip(found, layouts, strict=True):
            if slopes is None:
                continue
            sizes = layout(slopes).abs().sum(1)
            sizes[rows // 2] = 0
            if bool((sizes > 0).any()):
                raise UnsupportedModelError(
                    "Its layers move numbers from token to token outside of attention (a "
                    "convolution or a shift of the tokens), which is not understood."
                )

    def adds_up(self) -> float:
        """The proof: what the parts leave over must be a constant of the layer, the same for all
        tokens but for the norms' scale; and the graph must answer as the matrix does."""
        solved = self._solve(self._named("res_ln"))
        rest = solved.rest.double()
        ones = torch.ones_like(solved.scale)
        design = torch.cat([ones, solved.scale], 1).double()
        if len(rest) > 3:
            rest = rest - design @ (torch.linalg.pinv(design) @ rest)
        else:
            rest = rest - rest.mean(0)
        size = solved.total.double().norm().clamp(min=1e-30)
        nodes = self.nodes
        product = nodes.attention.by_head(nodes.attention.result).detach()
        made = nodes.attention.weights.detach()[0] @ nodes.attention.values.detach()
        fits = (_wide(made) - _wide(product)).norm() / _wide(product).norm().clamp(min=1e-30)
        return max(float(rest.norm() / size), solved.off, float(fits))


class _Pushed:
    """What a linear node of the graph makes of the heads' results: its Jacobian from right, by
    differentiating its gradient. For layers in which every token has a map of its own."""

    def __init__(self, node: Tensor, nodes: Nodes, heads: int) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            self.seeds = torch.zeros_like(node).requires_grad_()
            self.slopes = _gradient(node, nodes.leaf, self.seeds, create_graph=True)
            like = nodes.leaf.detach()
            places = torch.arange(like.numel(), device=like.device).reshape(like.shape)
            # Where each number of the heads' joined results stands in the leaf.
            self.places = nodes.layout(places.to(torch.float64)).long().flatten()
        self.leaf, self.width = like, node.shape[-1]

    def __call__(self, brought: Tensor) -> Tensor:
        """[chunk, rows, H * d_head] -> [chunk, rows, d]"""
        made = []
        with torch.inference_mode(False), torch.enable_grad():
            for one in brought:
                given = torch.empty_like(self.leaf).flatten()
                given[self.places] = one.flatten().to(given)
                assert self.slopes is not None  # `_taken_apart` has asked
                (found,) = torch.autograd.grad(
                    self.slopes, self.seeds, given.reshape(self.leaf.shape), retain_graph=True
                )
                made.append(_wide(found).reshape(-1, self.width))
        return torch.stack(made)


def _wide(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def _rows(tensor: Tensor) -> Tensor:
    return _wide(tensor).reshape(-1, tensor.shape[-1])


def _probe(width: int, like: Tensor) -> Tensor:
    """A random vector, the same ever after. [d]"""
    generator = torch.Generator().manual_seed(width)
    return torch.randn(width, generator=generator).to(like)


def _gradient(node: Tensor, leaf: Tensor, seeds: Tensor, **options: Any) -> Tensor | None:
    if not node.requires_grad:
        return None
    if node is leaf:
        return seeds
    found: Tensor | None = torch.autograd.grad(
        node, leaf, seeds, retain_graph=True, allow_unused=True, **options
    )[0]
    return found


def _parallel(answers: Tensor, one: Tensor) -> tuple[Tensor, float]:
    """(scale [rows, 1], how far answers [rows, K] are from multiples of one vector [K])."""
    scale = (answers @ one) / one.square().sum().clamp(min=1e-30)
    off = (answers - scale[:, None] * one).norm() / answers.norm().clamp(min=1e-30)
    return scale[:, None], float(off)


def _pushed(node: Tensor, stream: Tensor) -> Tensor:
    """What a linear node makes of the stream alone: R x, by differentiating its gradient."""
    seeds = torch.zeros_like(node).requires_grad_()
    slopes = _gradient(node, stream, seeds, create_graph=True)
    width = node.shape[-1]
    if slopes is None or not slopes.requires_grad:
        return _wide(torch.zeros_like(node)).reshape(-1, width)
    made = torch.autograd.grad(slopes, seeds, stream.detach(), allow_unused=True)[0]
    return _wide(torch.zeros_like(node) if made is None else made).reshape(-1, width)
