"""Direct implementations, as one would write them down: what the fast ones are measured against.

Norms and ALTI build every vector ([heads, n, n, d] as in the released code); Value Zeroing
zeroes one token's values and runs the rest of the layer again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mixwidget.blocks.algebra import Block
from mixwidget.models.source import Source

# More than this in one tensor and the direct way is not tried.
LIMIT_BYTES = 4 * 2**30


def _vectors(block: Block) -> Tensor:
    """gamma1 c(z_ij + [i = j] x_i) / sd_i for every head and pair, then heads summed."""
    stage = block.stage("res_ln")
    per_head = torch.matmul(block.values, stage.project)  # [H, n, d]
    every = block.weights.unsqueeze(-1) * per_head.unsqueeze(1)  # [H, n, n, d]
    vectors = every.sum(0) * stage.scale.unsqueeze(1)
    assert stage.residual is not None
    places = torch.arange(block.tokens)
    vectors[places, places] += stage.residual
    return vectors


def norms(block: Block) -> Tensor:
    return _vectors(block).norm(dim=-1)


def alti(block: Block) -> Tensor:
    whole = block.stage("res_ln").total
    far = (whole.unsqueeze(1) - _vectors(block)).abs().sum(-1)
    near = (whole.abs().sum(-1, keepdim=True) - far).clamp(min=0)
    return near / near.sum(-1, keepdim=True)


def value_zeroing(block: Block) -> Tensor:
    moved = torch.empty(block.tokens, block.tokens)
    for source in range(block.tokens):
        values = block.values.clone()
        values[:, source] = 0
        output = rest(block, values)
        moved[:, source] = 1 - torch.cosine_similarity(output, block.output, dim=-1)
    return moved / moved.sum(-1, keepdim=True)


def rest(block: Block, values: Tensor) -> Tensor:
    """The layer from its values on, through the model's own modules."""
    heads = torch.matmul(block.weights, values).transpose(0, 1).flatten(1)
    layer: Any = block.record.module
    if block.spec.wiring == "post":
        attended = layer.attention.output(heads[None], block.input[None])
        return layer.output(layer.intermediate(attended), attended)[0]  # type: ignore[no-any-return]
    attended = block.input + layer.attn.c_proj(heads)
    return attended + layer.mlp(layer.ln_2(attended))  # type: ignore[no-any-return]


def too_large(tokens: int, heads: int, width: int) -> bool:
    return 4 * heads * tokens * tokens * width > LIMIT_BYTES


# Method id -> (its direct implementation for one layer, whether it builds every vector).
DIRECT: dict[str, tuple[Callable[[Block], Tensor], bool]] = {
    "attn_norm": (norms, True),
    "attn_norm_fixed": (norms, True),
    "attn_norm_res": (norms, True),
    "attn_norm_res_ln": (norms, True),
    "globenc": (norms, True),
    "alti": (alti, True),
    "value_zeroing": (value_zeroing, False),
}


def captum_alone(source: Source, inputs: dict[str, Tensor]) -> None:
    """Integrated gradients as one would call captum by hand: same steps, baseline and batches."""
    from captum.attr import IntegratedGradients

    model, ids = source.model, inputs["input_ids"]
    words = model.get_input_embeddings()
    embeddings = words(ids).detach()
    baseline = words(torch.full_like(ids, source.tokenizer.mask_token_id)).detach()
    held = {name: tensor for name, tensor in inputs.items() if name != "input_ids"}

    def probability(vectors: Tensor) -> Tensor:
        others = {name: tensor.expand(len(vectors), -1) for name, tensor in held.items()}
        logits = model(inputs_embeds=vectors, use_cache=False, **others).logits
        return logits.softmax(-1)[:, 0]  # type: ignore[no-any-return]

    IntegratedGradients(probability).attribute(
        embeddings,
        baselines=baseline,
        n_steps=100,
        method="gausslegendre",
        internal_batch_size=max(1, 1024 // ids.shape[1]),
        return_convergence_delta=True,
    )


# Method id -> the same by the library it stands on, for one text.
ALONE: dict[str, Callable[[Source, dict[str, Tensor]], None]] = {
    "integrated_gradients": captum_alone,
}
