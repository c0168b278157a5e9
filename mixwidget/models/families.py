"""The table of model families. Adding one is one entry here, or `register_family`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..blocks import BlockSpec
from ..errors import InputError, UnsupportedModelError

# A spec, or a function of the model's config where a family has more than one shape.
Spec = BlockSpec | Callable[[Any], BlockSpec]

_BERT = BlockSpec(
    layers="encoder.layer",
    wiring="post",
    out="attention.output.dense",
    norm1="attention.output.LayerNorm",
    norm2="output.LayerNorm",
    up="intermediate.dense",
    down="output.dense",
    act="intermediate.intermediate_act_fn",
)

_LLAMA = BlockSpec(
    layers="layers",
    wiring="pre",
    out="self_attn.o_proj",
    norm1="input_layernorm",
    norm2="post_attention_layernorm",
    up="mlp.up_proj",
    gate="mlp.gate_proj",
    down="mlp.down_proj",
    act="mlp.act_fn",
    causal=True,
)

_GPT_NEOX = BlockSpec(
    layers="layers",
    wiring="parallel",
    out="attention.dense",
    norm1="input_layernorm",
    norm2="post_attention_layernorm",
    up="mlp.dense_h_to_4h",
    down="mlp.dense_4h_to_h",
    act="mlp.act",
    causal=True,
)

_OPT = BlockSpec(
    layers="decoder.layers",
    wiring="pre",
    out="self_attn.out_proj",
    norm1="self_attn_layer_norm",
    norm2="final_layer_norm",
    up="fc1",
    down="fc2",
    act="activation_fn",
    causal=True,
)


def _stablelm(config: Any) -> BlockSpec:
    if config.use_parallel_residual:  # one norm for both branches
        return _LLAMA.but(wiring="parallel", norm2="input_layernorm")
    return _LLAMA


_BLOOM = BlockSpec(
    layers="h",
    wiring="pre",
    out="self_attention.dense",
    norm1="input_layernorm",
    norm2="post_attention_layernorm",
    up="mlp.dense_h_to_4h",
    down="mlp.dense_4h_to_h",
    act="mlp.gelu_impl",
    causal=True,
)


def _bloom(config: Any) -> BlockSpec:
    if config.apply_residual_connection_post_layernorm:
        raise UnsupportedModelError(
            "This BLOOM model takes its residuals after the norms, a wiring that is not known here."
        )
    return _BLOOM


def _falcon(config: Any) -> BlockSpec:
    spec = _BLOOM.but(act="mlp.act")
    if not (config.parallel_attn or config.new_decoder_architecture):
        return spec
    if config.new_decoder_architecture and config.num_ln_in_parallel_attn != 1:
        return spec.but(wiring="parallel", norm1="ln_attn", norm2="ln_mlp")
    return spec.but(wiring="parallel", norm2="input_layernorm")


_BART = _OPT.but(layers="encoder.layers", wiring="post", causal=False)
_BART_SELF = _BART.but(
    layers="decoder.layers", norm2=None, up=None, down=None, act=torch.nn.Identity(), causal=True
)
_BART_CROSS = _BART.but(
    layers="decoder.layers", out="encoder_attn.out_proj", norm1="encoder_attn_layer_norm"
)
_SEQ2SEQ_BART = _BART.but(decoder=_BART_SELF.but(cross=_BART_CROSS))


def _t5(config: Any) -> BlockSpec:
    gated = config.is_gated_act

    def feed_forward(number: int) -> dict[str, str | None]:
        place = f"layer.{number}.DenseReluDense"
        return {
            "norm2": f"layer.{number}.layer_norm",
            "up": f"{place}.wi_1" if gated else f"{place}.wi",
            "gate": f"{place}.wi_0" if gated else None,
            "down": f"{place}.wo",
            "act": f"{place}.act",
        }

    attention = BlockSpec(
        layers="decoder.block",
        wiring="pre",
        out="layer.0.SelfAttention.o",
        norm1="layer.0.layer_norm",
        norm2=None,
        up=None,
        down=None,
        act=torch.nn.Identity(),
    )
    cross = attention.but(
        out="layer.1.EncDecAttention.o", norm1="layer.1.layer_norm", **feed_forward(2)
    )
    decoder = attention.but(causal=True, cross=cross)
    return attention.but(layers="encoder.block", decoder=decoder, **feed_forward(1))


_FAMILIES: dict[str, Spec] = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "electra": _BERT,
    "albert": BlockSpec(
        layers="encoder.albert_layer_groups.*.albert_layers",
        wiring="post",
        out="attention.dense",
        norm1="attention.LayerNorm",
        norm2="full_layer_layer_norm",
        up="ffn",
        down="ffn_output",
        act="activation",
    ),
    "mpnet": _BERT.but(out="attention.attn.o", norm1="attention.LayerNorm"),
    "deberta-v2": _BERT,
    "distilbert": BlockSpec(
        layers="transformer.layer",
        wiring="post",
        out="attention.out_lin",
        norm1="sa_layer_norm",
        norm2="output_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        act="ffn.activation",
    ),
    "gpt2": BlockSpec(
        layers="h",
        wiring="pre",
        out="attn.c_proj",
        norm1="ln_1",
        norm2="ln_2",
        up="mlp.c_fc",
        down="mlp.c_proj",
        act="mlp.act",
        causal=True,
    ),
    "gpt_neo": BlockSpec(
        layers="h",
        wiring="pre",
        out="attn.attention.out_proj",
        norm1="ln_1",
        norm2="ln_2",
        up="mlp.c_fc",
        down="mlp.c_proj",
        act="mlp.act",
        causal=True,
    ),
    "bloom": _bloom,
    "falcon": _falcon,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma": _LLAMA.but(norm_offset=1.0),
    "gemma2": _LLAMA.but(
        wiring="sandwich",
        norm2="pre_feedforward_layernorm",
        after1="post_attention_layernorm",
        after2="post_feedforward_layernorm",
        norm_offset=1.0,
    ),
    "stablelm": _stablelm,
    "phi3": _LLAMA.but(up=None, gate=None, gate_up="mlp.gate_up_proj", act="mlp.activation_fn"),
    "phi": BlockSpec(
        layers="layers",
        wiring="parallel",
        out="self_attn.dense",
        norm1="input_layernorm",
        norm2="input_layernorm",
        up="mlp.fc1",
        down="mlp.fc2",
        act="mlp.activation_fn",
        causal=True,
    ),
    "gpt_neox": lambda config: (
        _GPT_NEOX if config.use_parallel_residual else _GPT_NEOX.but(wiring="pre")
    ),
    "opt": lambda config: _OPT if config.do_layer_norm_before else _OPT.but(wiring="post"),
    "bart": _SEQ2SEQ_BART,
    "marian": _SEQ2SEQ_BART,
    "t5": _t5,
    "modernbert": BlockSpec(
        layers="layers",
        wiring="pre",
        out="attn.Wo",
        norm1="attn_norm",
        norm2="mlp_norm",
        up=None,
        gate_up="mlp.Wi",
        down="mlp.Wo",
        act="mlp.act",
    ),
}


def families() -> list[str]:
    """The model types that are known, as `config.model_type` spells them."""
    return sorted(_FAMILIES)


def register_family(model_type: str, spec: Spec, *, replace: bool = False) -> None:
    """Teach a new family: its `config.model_type` and where its block keeps its parts.

    Whether the spec is right shows in the adds-up error of any explanation
    (`explain(...).info["adds_up"]`): below 1e-4 in float32, the decomposition is the model.

    >>> from mixwidget import BlockSpec, register_family
    >>> spec = BlockSpec("blocks", "pre", "attn.out", "ln1", "ln2", "ffn.up", "ffn.down", "ffn.act")
    >>> register_family("my_model", spec, replace=True)
    """
    if not isinstance(model_type, str) or not model_type:
        raise InputError("model_type must be the text in model.config.model_type.")
    if not (isinstance(spec, BlockSpec) or callable(spec)):
        raise InputError("spec must be a BlockSpec, or a function from a config to one.")
    if model_type in _FAMILIES and not replace:
        raise InputError(f"{model_type!r} is already known; pass replace=True to replace it.")
    _FAMILIES[model_type] = spec


def registered(config: Any) -> Spec | None:
    """What the table of families has for a model, by its config."""
    return _FAMILIES.get(getattr(config, "model_type", None) or "")


def spec_for(config: Any) -> BlockSpec:
    """The block spec of a model, by its config."""
    spec = registered(config)
    if spec is None:
        model_type = getattr(config, "model_type", None)
        raise UnsupportedModelError(
            f"Models of type {model_type!r} are not among the families known here: "
            f"{', '.join(families())}. To add one, see mixwidget.register_family."
        )
    return spec if isinstance(spec, BlockSpec) else spec(config)
