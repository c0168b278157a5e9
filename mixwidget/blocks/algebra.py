"""One recorded layer as a sum over source tokens: the general form for every wiring.

What token i takes from token j, at some stage of the block, is

    u_ij = scale_i * sum_h A^h_ij g^h_j  +  [i = j] residual_i

where g^h_j is head h's value of token j through the output projection and the linear part
of the norms up to that stage. `Stage` holds these pieces; nothing of size [n, n, d] is ever
built. The stages, with the names METHODS give their norms:

    z        the attention branch alone
    res      with the residual:  sum_j u_ij + constant_i = p_i
    res_ln   after norm1 of a post-norm block (elsewhere no norm follows: same as res)
    enc      also through the linear part of norm2 of a post-norm block (elsewhere as res)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from .once import once
from .parts import FeedForward, Norm, linear_weights
from .spec import BlockSpec, at

if TYPE_CHECKING:
    from .record import LayerRecord

StageName = Literal["z", "res", "res_ln", "enc"]
STAGES: tuple[StageName, ...] = ("z", "res", "res_ln", "enc")

# Source tokens whose [heads, d] vectors are held at once: 64 MB of float32.
_CHUNK_ELEMENTS = 16 * 2**20

# Tokens at which the proof is made.
_PROOF_ROWS = 64

# Attention weights worked on at once: they stay in a core's cache.
_CACHE_ELEMENTS = 2**18

# Projections through norms, for as long as the shadow lives whose layers they belong to; larger
# ones are made anew: they would take more room than they are worth.
_FOLDED_ELEMENTS = 4 * 2**20
_FOLDED: WeakKeyDictionary[nn.Module, dict[tuple[str, StageName], Tensor]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Stage:
    """The pieces of u_ij at one stage. `whole` is sum_j u_ij and `total` what the stage makes
    with the biases, both from the model's own numbers (for `enc` `total` is the layer's
    output, of which the feed-forward is another part)."""

    project: Tensor  # [H, d_head, d] heads' values to g
    scale: Tensor  # [n, 1]
    residual: Tensor | None  # [n, d]
    constant: Tensor  # [n, d] biases: they belong to no source token
    whole: Tensor  # [n, d]
    total: Tensor  # [n, d]
    # From what heads bring to each token, [chunk, n, H, d_head], to vectors [chunk, n, d], where
    # each token does something of its own to it (a gate): then `project` does not say all.
    carry: Callable[[Tensor], Tensor] | None = None


class Block:
    """One layer's record together with its weights, ready to be taken apart."""

    # Runs the layer with one source token's values away; None where algebra says what it gives.
    again: Callable[[int | None], Tensor] | None = None

    def __init__(self, record: LayerRecord, spec: BlockSpec) -> None:
        assert record.weights is not None
        assert record.values is not None
        assert record.attention_out is not None
        assert record.output is not None
        self.record, self.spec = record, spec
        self.input: Tensor = record.input.detach()
        self.weights: Tensor = record.weights.detach()
        self.values: Tensor = record.values.detach()
        self.attention_out: Tensor = record.attention_out.detach()
        self.output: Tensor = record.output.detach()
        if self.weights.dim() == 4:  # kept with a graph, so with its batch of one
            self.input, self.weights, self.output = self.input[0], self.weights[0], self.output[0]

    @property
    def tokens(self) -> int:
        return int(self.input.shape[0])

    @property
    def heads(self) -> int:
        return int(self.weights.shape[0])

    def lying(self) -> tuple[slice, list[int]]:
        """The rows that the block moves, and the columns that it takes from."""
        return slice(None), list(range(self.tokens))

    @property
    def inner(self) -> int:
        """Features inside the feed-forward."""
        return int(self.feed_forward.down.shape[1])

    @once
    def causal(self) -> bool:
        """No token takes anything from a later one (read off the weights, whatever the mask)."""
        heads = self.weights  # one at a time: a copy of all may be large
        return self.tokens > 1 and not any(bool(head.triu(1).any()) for head in heads)

    def _norm(self, path: str | None) -> Norm | None:
        return None if path is None else Norm(at(self.record.module, path), self.spec.norm_offset)

    @once
    def norm1(self) -> Norm | None:
        return self._norm(self.spec.norm1)

    @once
    def norm2(self) -> Norm | None:
        return self._norm(self.spec.norm2)

    @once
    def after1(self) -> Norm | None:
        return self._norm(self.spec.after1)

    @once
    def after2(self) -> Norm | None:
        return self._norm(self.spec.after2)

    @once
    def feed_forward(self) -> FeedForward:
        return FeedForward(self.record.module, self.spec)

    @once
    def _out(self) -> tuple[Tensor, Tensor]:
        """Output projection by head [H, d_head, d], and its bias [d]."""
        weight, bias = linear_weights(at(self.record.module, self.spec.out))
        by_head = weight.T.reshape(self.heads, -1, weight.shape[0])
        return by_head, weight.new_zeros(weight.shape[0]) if bias is None else bias

    @property
    def out_project(self) -> Tensor:
        """The output projection by head, [H, d_head, d]."""
        return self._out[0]

    def branch(self, attention_out: Tensor) -> Tensor:
        """What is added to the residual stream, given what attention put out."""
        return attention_out if self.after1 is None else self.after1(attention_out)

    @once
    def attended(self) -> Tensor:
        """p: the residual stream after attention, before any norm. [n, d]"""
        return self.input + self.branch(self.attention_out)

    @once
    def block_output(self) -> Tensor:
        """y of a post-norm block, p of the others: what attention and residual make. [n, d]"""
        if self.spec.wiring == "post" and self.norm1 is not None:
            return self.norm1(self.attended)
        return self.attended

    @once
    def before_norm2(self) -> Tensor:
        """q of a post-norm block: y + ffn(y), what its second norm reads. [n, d]"""
        assert self.record.ffn_out is not None
        return self.block_output + self.record.ffn_out.detach()

    def fed(self) -> tuple[Tensor, Tensor] | None:
        """(before the feed-forward's result is added, after it), before any norm behind that;
        None where the second is not known. [n, d] each"""
        if self.spec.wiring == "post":
            return self.block_output, self.before_norm2
        return self.attended, self.output

    def stage(self, name: StageName) -> Stage:
        """The pieces of u_ij at a stage; see the module's first lines."""
        project, bias = self._out
        ones = torch.ones_like(self.input[:, :1])
        stage = Stage(
            project,
            ones,
            None,
            bias.expand_as(self.input),
            self.attention_out - bias,
            self.attention_out,
        )
        stage = _through(stage, self.after1, self.attention_out, self.branch(self.attention_out))
        if name == "z":
            return stage
        stage = replace(
            stage, residual=self.input, whole=stage.whole + self.input, total=self.attended
        )
        if name == "res" or self.spec.wiring != "post":
            return stage
        folded = self._folded("res_ln", self.norm1, stage.project)
        stage = _through(stage, self.norm1, self.attended, self.block_output, folded)
        if name == "res_ln":
            return stage
        folded = self._folded("enc", self.norm2, stage.project)
        return _through(stage, self.norm2, self.before_norm2, self.output, folded)

    def _folded(self, name: StageName, norm: Norm | None, project: Tensor) -> Tensor:
        """The projection through a norm's linear part, made once for all texts of a shadow."""
        if norm is None or project.numel() > _FOLDED_ELEMENTS:
            return project if norm is None else norm.linear(project)
        held = _FOLDED.setdefault(self.record.module, {})
        key = (self.spec.out, name)
        if key not in held:
            held[key] = norm.linear(project)
        return held[key]

    def source_vectors(self, stage: Stage) -> Iterator[tuple[slice, Tensor]]:
        """g^h_j for chunks of source tokens: yields (which tokens, [chunk, H, d])."""
        heads, _, width = stage.project.shape
        step = max(1, _CHUNK_ELEMENTS // (heads * width))
        for start in range(0, self.tokens, step):
            part = slice(start, min(start + step, self.tokens))
            yield part, torch.matmul(self.values[:, part], stage.project).transpose(0, 1)

    def carried_vectors(self, stage: Stage) -> Iterator[tuple[slice, Tensor]]:
        """The sums over heads of what chunks of source tokens bring to each token, where it does
        something of its own to them: yields (which tokens, [chunk, n, d])."""
        heads, _, width = self.values.shape
        step = max(1, _CHUNK_ELEMENTS // (self.tokens * heads * width))
        for start in range(0, self.tokens, step):
            part = slice(start, min(start + step, self.tokens))
            brought = torch.einsum("hij,hjd->jihd", self.weights[:, :, part], self.values[:, part])
            yield part, self.carried(stage, brought)

    def carried(self, stage: Stage, brought: Tensor) -> Tensor:
        """What heads bring to each token, [..., n, H, d_head], as vectors without the residual."""
        if stage.carry is None:
            return brought.flatten(-2) @ stage.project.flatten(0, 1) * stage.scale
        made = stage.carry(brought.reshape(-1, *brought.shape[-3:]))
        return made.reshape(*brought.shape[:-2], made.shape[-1])

    def own_vectors(self, stage: Stage) -> Tensor:
        """u_ii for every i. [n, d]"""
        own = self.weights.diagonal(dim1=-2, dim2=-1)  # [H, n]
        vectors = self.carried(stage, (self.values * own.unsqueeze(-1)).transpose(0, 1))
        return vectors if stage.residual is None else vectors + stage.residual

    def sum_vectors(self, stage: Stage) -> Tensor:
        """sum_j u_ij for every i. [n, d]"""
        vectors = self.carried(stage, torch.matmul(self.weights, self.values).transpose(0, 1))
        return vectors if stage.residual is None else vectors + stage.residual

    def adds_up(self) -> float:
        """The proof: largest relative distance between the parts' sum and the model's numbers.

        Compared are what attention put out, what the feed-forward read, and the layer's
        output, so that a wrong projection, norm or wiring shows even where the residual is
        large. Below 1e-4 in float32 the decomposition is the model. Of a long text 64 tokens
        are looked at, evenly spread from the first to the last.
        """
        record = self.record
        assert record.ffn_in is not None
        assert record.ffn_out is not None
        rows = self._proof_rows()
        project, bias = self._out
        heads = torch.matmul(_of(self.weights, rows, 1), self.values).transpose(0, 1).flatten(1)
        attention_out = torch.addmm(bias, heads, project.flatten(0, 1))
        inputs = _of(self.input, rows)
        whole = inputs + self.branch(attention_out)  # y or p, from the parts alone
        if self.spec.wiring == "post" and self.norm1 is not None:
            whole = self.norm1(whole)
        ffn_out = _of(record.ffn_out.detach(), rows)
        if self.spec.wiring == "post":
            reads, output = whole, whole + ffn_out
            output = output if self.norm2 is None else self.norm2(output)
        else:
            source = inputs if self.spec.wiring == "parallel" else whole
            reads = source if self.norm2 is None else self.norm2(source)
            output = whole + (ffn_out if self.after2 is None else self.after2(ffn_out))
        true = (self.attention_out, record.ffn_in.detach(), self.output)
        return max(_distances([attention_out, reads, output], [_of(t, rows) for t in true]))

    def _proof_rows(self) -> Tensor | None:
        """The rows at which the proof is made; None for all."""
        rows = self.record.rows
        if rows == slice(None) and self.tokens <= _PROOF_ROWS:
            return None
        each = torch.arange(self.tokens, device=self.input.device)[rows]
        if len(each) <= _PROOF_ROWS:
            return each
        return each[torch.linspace(0, len(each) - 1, _PROOF_ROWS, device=each.device).long()]


def _through(
    stage: Stage, norm: Norm | None, reads: Tensor, total: Tensor, folded: Tensor | None = None
) -> Stage:
    """A stage carried through the linear part of a norm that read `reads`. `folded`: its
    projection carried through, where it is known."""
    if norm is None:
        return stage
    scale = 1 / norm.scale(reads)
    return Stage(
        norm.linear(stage.project) if folded is None else folded,
        stage.scale * scale,
        None if stage.residual is None else norm.linear(stage.residual) * scale,
        norm.linear(stage.constant) * scale + norm.bias(stage.constant),
        norm.linear(stage.whole) * scale,
        total,
    )


def _of(tensor: Tensor, rows: Tensor | None, axis: int = 0) -> Tensor:
    return tensor if rows is None else tensor.index_select(axis, rows)


def _distances(made: list[Tensor], true: list[Tensor]) -> list[float]:
    """How far what was made is from what is true, relative to the size of the true."""
    stacked = torch.stack(true)
    away = (torch.stack(made) - stacked).flatten(1).norm(dim=1).tolist()
    sizes = stacked.flatten(1).norm(dim=1).tolist()
    return [off / size if size > 0 else off for off, size in zip(away, sizes, strict=True)]


def vector_norms(block: Block, stage: Stage, own: Tensor | None = None) -> Tensor:
    """||u_ij|| for every pair, [n, n], from H x H Gram matrices of the source vectors.

    ||sum_h a_h g_h||^2 = a^T G a: n^2 H^2 operations instead of n^2 H d. The diagonal, where
    the residual is, comes from u_ii itself (`own`, if the caller has it already).
    """
    heads, tokens = block.heads, block.tokens
    own = block.own_vectors(stage) if own is None else own
    if stage.carry is not None:
        norms = torch.empty_like(block.weights[0])
        for part, vectors in block.carried_vectors(stage):
            norms[:, part] = vectors.norm(dim=-1).T
        norms.diagonal().copy_(own.norm(dim=-1))
        return norms
    gram = block.weights.new_empty(heads, heads, tokens)
    for part, vectors in block.source_vectors(stage):
        gram[:, :, part] = torch.bmm(vectors, vectors.transpose(-1, -2)).permute(1, 2, 0)
    squares = torch.zeros_like(block.weights[0])
    step = max(1, _CACHE_ELEMENTS // (heads * tokens))
    for start in range(0, tokens, step):  # a^T G a head by head, while its rows are in the cache
        attention, made = block.weights[:, start : start + step], squares[start : start + step]
        for h in range(heads):
            inner = attention[h] * gram[h, h]
            for k in range(h):
                inner.addcmul_(attention[k], gram[h, k], value=2)
            made.addcmul_(inner, attention[h])
    norms = squares.clamp_(min=0).sqrt_() * stage.scale.abs()
    norms.diagonal().copy_(own.norm(dim=-1))
    return norms


def head_norms(block: Block, stage: Stage, head: int) -> Tensor:
    """||A^h_ij g^h_j|| of one head, [n, n]: its attention times the size of its vectors."""
    if stage.carry is not None:
        norms = torch.empty_like(block.weights[0])
        for source in range(block.tokens):
            brought = torch.zeros_like(block.values).transpose(0, 1)
            brought[:, head] = block.weights[head, :, source, None] * block.values[head, source]
            norms[:, source] = block.carried(stage, brought).norm(dim=-1)
        return norms
    sizes = (block.values[head] @ stage.project[head]).norm(dim=-1)
    return block.weights[head] * sizes * stage.scale.abs()


def mixing_ratio(block: Block, stage: Stage, own: Tensor | None = None) -> Tensor:
    """r_i = ||sum_{j != i} u_ij|| / (that + ||u_ii||): how much of a token is not itself. [n]"""
    own = block.own_vectors(stage) if own is None else own
    context = (stage.whole - own).norm(dim=-1)
    total = context + own.norm(dim=-1)
    return torch.where(total > 0, context / total, torch.zeros_like(total))
