"""A block taken apart from the tape: the linear maps of its graph as the pieces of u_ij.

The pieces are those of `algebra.Stage`. The map from the heads' results to a node of the graph is
one matrix M for all tokens, times a scale that is a token's own (what norms divide by); both come
out of the graph. M is the model's, not the text's: once found it is only proved anew, by one
product with a random vector, and it is usually the output projection itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import UnsupportedModelError
from .algebra import Block, Stage, StageName
from .nodes import Nodes
from .pushed import Pushed, gradient, in_digits, pushed_by
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
        self.weights = place.weights(in_digits(found.weights.detach()[0]))
        self.values = place.values(in_digits(found.values.detach()))
        self.output = place.vectors(output)
        self.input = place.vectors(_rows(stream))
        self.gate = None if nodes.gate is None else in_digits(nodes.gate)
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

    def fed(self) -> tuple[Tensor, Tensor] | None:
        return None if self.post else (self.stage("res").total, self.output)

    def _carry(self, name: StageName, solved: Solved) -> Callable[[Tensor], Tensor] | None:
        if not solved.free and self.gate is None:
            return None
        if solved.free:
            pushed = Pushed(self._node(self._named(name)), self.nodes, self.heads)

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
            if self.number in self.known.beside and name in ("res", "res_ln"):
                # Mixed by other means than attention, as the layer's user is told.
                solved.total = solved.total - _unexplained(solved)
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
        slopes = gradient(node, nodes.leaf, probe.expand_as(node))
        if slopes is None:
            raise UnsupportedModelError(
                "What its attention puts out reaches the layer's output only through steps that "
                "are not linear, so it cannot be shared out among the tokens."
            )
        answers = in_digits(nodes.layout(slopes))
        matrix, scale, off = self._matrix(node, name, answers, in_digits(probe))
        free = off > _EXACT.get(node.dtype, _HALF)
        if free:
            brought = in_digits(nodes.layout(nodes.leaf.detach()))
            heads = Pushed(node, nodes, self.heads)(brought[None])[0]
            off = 0.0
        else:
            heads = scale * (in_digits(nodes.layout(nodes.leaf.detach())) @ matrix)
        residual = None
        if name != "z":
            residual = pushed_by(node, self.stream)
        key = (self.number, name)
        if key not in self.known.apart:
            self._tokens_apart(node)
            self.known.apart.add(key)
        total = in_digits(node.detach()).reshape(rows, width)
        return Solved(matrix, scale, residual, heads, total, off, free)

    def _matrix(
        self, node: Tensor, name: str, answers: Tensor, probe: Tensor
    ) -> tuple[Tensor, Tensor, float]:
        """M, the tokens' scales, and how far the graph is from them: the graph's answer to a
        random vector must be that of M."""
        key = (self.number, name)
        limit = _EXACT.get(node.dtype, _HALF)
        candidates = [self.known.matrices.get(key), *(in_digits(m).T for m in self.nodes.matrices)]
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
            slopes = gradient(node, self.nodes.leaf, seeds.reshape(node.shape))
            assert slopes is not None
            got = in_digits(self.nodes.layout(slopes))[chosen] / scale[chosen, None]
            matrix[:, columns] = got.T
        return matrix

    def _tokens_apart(self, node: Tensor) -> None:
        """The proof that a token's row takes nothing from another's: neither from its heads nor
        from its stream."""
        rows = node.numel() // node.shape[-1]
        seeds = torch.zeros_like(node).reshape(rows, -1)
        seeds[rows // 2] = 1
        found = [
            gradient(node, self.nodes.leaf, seeds.reshape(node.shape)),
            gradient(node, self.stream, seeds.reshape(node.shape)),
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
        rest = _unexplained(solved)
        size = solved.total.double().norm().clamp(min=1e-30)
        nodes = self.nodes
        product = nodes.attention.by_head(nodes.attention.result).detach()
        made = nodes.attention.weights.detach()[0] @ nodes.attention.values.detach()
        fits = (in_digits(made) - in_digits(product)).norm() / in_digits(product).norm().clamp(
            min=1e-30
        )
        return max(float(rest.double().norm() / size), solved.off, float(fits))


def _unexplained(solved: Solved) -> Tensor:
    """What is left of a node's constants when those are taken away that are the same for all
    tokens, or the same times the norm's scale. [rows, d]"""
    rest = solved.rest.double()
    design = torch.cat([torch.ones_like(solved.scale), solved.scale], 1).double()
    rest = rest - design @ (torch.linalg.pinv(design) @ rest)
    return rest.to(solved.total)


def _rows(tensor: Tensor) -> Tensor:
    return in_digits(tensor).reshape(-1, tensor.shape[-1])


def _probe(width: int, like: Tensor) -> Tensor:
    """A random vector, the same ever after. [d]"""
    generator = torch.Generator().manual_seed(width)
    return torch.randn(width, generator=generator).to(like)


def _parallel(answers: Tensor, one: Tensor) -> tuple[Tensor, float]:
    """(scale [rows, 1], how far answers [rows, K] are from multiples of one vector [K])."""
    scale = (answers @ one) / one.square().sum().clamp(min=1e-30)
    off = (answers - scale[:, None] * one).norm() / answers.norm().clamp(min=1e-30)
    return scale[:, None], float(off)
