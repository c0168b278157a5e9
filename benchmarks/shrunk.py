"""Every model type of the installed transformers, built tiny with random weights.

Sizes are found by name in a type's own default config, so that a new type needs no line here
unless it is peculiar (`PECULIAR`).
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import torch

WORDS = [
    *["the", "a", "film", "is", "not", "bad", "good", "never", "boring", "deep"],
    *["and", "plot", "thin", "but", "acting", "it", "was", "we", "saw", "in"],
    *["of", "on", "he", "she", "they", "went", "home", "school", "river", "old"],
    *["new", "red", "blue", "house", "dog", "cat", "tree", "bird", "fish"],
]
SPECIALS = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
VOCAB = {word: i for i, word in enumerate([*SPECIALS, *WORDS, "."])}
VOCAB_SIZE = 64

HEADS: dict[str, tuple[str, str]] = {
    # task: the table of transformers' auto module, the auto class
    "causal": ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "AutoModelForCausalLM"),
    "masked": ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "AutoModelForMaskedLM"),
    "classifier": (
        "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
        "AutoModelForSequenceClassification",
    ),
    "encoder-decoder": ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "AutoModelForSeq2SeqLM"),
}

_LAYERS = 3
_SIZES: dict[int, str] = {
    32: "hidden_size d_model n_embd dim emb_dim embed_dim word_embed_proj_dim embedding_size "
    "input_embedding_size output_embedding_size hidden_size_per_layer_input lru_width "
    "attention_hidden_size attn_hidden_size d_embed moe_latent_size true_hidden_size "
    "intra_bottleneck_size global_hidden_size projection_dim output_hidden_size",
    48: "intermediate_size ffn_dim d_ff d_inner_ffn inner_dim encoder_ffn_dim decoder_ffn_dim "
    "dim_ff hidden_dim ffn_hidden_size block_ff_dim intermediate_size_mlp "
    "dense_intermediate_size mlp_dim ffn_intermediate_size",
    32 + 100: "moe_intermediate_size expert_ffn_hidden_size shared_expert_intermediate_size "
    "shared_intermediate_size moe_shared_expert_intermediate_size expert_dim "
    "prefix_dense_intermediate_size",
    _LAYERS + 200: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_decoder_layers num_encoder_layers depth num_hidden_layers_per_stack num_blocks",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads "
    "decoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads "
    "num_experts num_local_experts n_routed_experts moe_num_experts num_swa_attention_heads "
    "swa_num_attention_heads zero_expert_num num_index_heads index_n_heads n_experts "
    "num_sliding_attention_heads",
    2 + 300: "num_key_value_heads num_kv_heads moe_k moe_topk num_experts_per_tok moe_top_k "
    "num_experts_per_token top_k_experts swa_num_key_value_heads num_global_key_value_heads "
    "linear_num_key_heads n_group num_groups num_sliding_key_value_heads",
    1: "topk_group n_shared_experts num_shared_experts first_k_dense_replace num_dense_layers "
    "moe_num_shared_experts",
    4 + 400: "linear_num_value_heads",
    8: "head_dim d_kv qk_nope_head_dim qk_rope_head_dim v_head_dim rotary_dim global_head_dim "
    "linear_key_head_dim linear_value_head_dim swa_head_dim swa_v_head_dim index_head_dim "
    "attention_head_dim qk_head_dim kv_channels query_pre_attn_scalar",
    16: "q_lora_rank kv_lora_rank mamba_d_state state_size ssm_state_size o_lora_rank "
    "altup_lora_rank laurel_rank",
    5: "sliding_window sliding_window_size",
    64: "max_position_embeddings n_positions max_seq_len n_ctx max_seq_length "
    "max_source_positions max_target_positions seq_length context_length",
    VOCAB_SIZE + 500: "vocab_size vocab_size_per_layer_input tgt_vocab_size src_vocab_size "
    "decoder_vocab_size",
}
SIZES = {name: size % 100 if size != 64 + 500 else VOCAB_SIZE for size, names in _SIZES.items()
         for name in names.split()}  # fmt: skip
_IDS = {
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 2,
    "mask_token_id": 4,
    "sep_token_id": 3,
    "cls_token_id": 2,
    "unk_token_id": 1,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}

# What sizes by name cannot say.
_MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_chunk_size": 8}
PECULIAR: dict[str, dict[str, Any]] = {
    "bamba": {**_MAMBA2, "attn_layer_indices": [1], "mamba_d_state": 16},
    "bigbird_pegasus": {"block_size": 4, "num_random_blocks": 1},
    "big_bird": {"block_size": 4, "num_random_blocks": 1},
    "falcon_h1": {**_MAMBA2, "mamba_d_ssm": 64},
    "fsmt": {"langs": ["en", "de"], "src_vocab_size": VOCAB_SIZE, "tgt_vocab_size": VOCAB_SIZE},
    "gemma3n_text": {"num_kv_shared_layers": 2, "num_hidden_layers": 4, "intermediate_size": 48,
                     "layer_types": ["sliding_attention", "full_attention"] * 2,
                     "activation_sparsity_pattern": [0.0] * 4},
    "gpt_neo": {"attention_types": [[["global", "local", "global"], 1]], "window_size": 4},
    "granitemoehybrid": {**_MAMBA2, "layer_types": ["mamba", "attention", "mamba"]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4},
    "led": {"attention_window": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "longcat_flash": {"qk_head_dim": 16, "num_layers": 2},
    "longformer": {"attention_window": 4},
    "longt5": {"local_radius": 4, "global_block_size": 4},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 16},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8},
    "nemotron_h": {"layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
                   "mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 1, "chunk_size": 8},
    "qwen4_exp_text": {"hc_lowrank": 8, "ple_embed_dim": 32, "index_topk": 4},
    "perceiver": {"num_latents": 16, "d_latents": 32, "d_model": 32, "num_self_attention_heads": 4,
                  "num_cross_attention_heads": 4, "num_self_attends_per_block": 2},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 8], "attn_layers":
                 ["local", "local", "local"], "is_decoder": True},
    "roc_bert": {"shape_vocab_size": 16, "pronunciation_vocab_size": 16,
                 "shape_embed_dim": 16, "pronunciation_embed_dim": 16, "concat_input": True},
    "xlm": {"causal": True},
    "xlstm": {"num_blocks": 3, "chunk_size": 8},
    "xmod": {"default_language": "en_XX", "languages": ["en_XX"]},
    "zamba": {"attention_hidden_size": 64, "attention_head_dim": 16, "num_key_value_heads": 4,
              "mamba_dt_rank": 4, "num_hidden_layers": 4,
              "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"]},
    "zamba2": {"attention_hidden_size": 64, "attention_head_dim": 16, "num_key_value_heads": 4,
               "n_mamba_heads": 8, "mamba_headdim": 8, "chunk_size": 8, "adapter_rank": 4,
               "num_hidden_layers": 4, "kv_channels": 16, "num_query_groups": 4,
               "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"]},
    "zaya": {"num_experts_per_tok": 1, "router_hidden_size": 16, "num_key_value_heads": 2},
}  # fmt: skip


def tokenizer() -> Any:
    """Words of a small vocabulary, <s> before and </s> behind."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    inner = Tokenizer(models.WordLevel(VOCAB, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("<s>", VOCAB["<s>"]), ("</s>", VOCAB["</s>"])]
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=ends
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
        model_max_length=64,
        model_input_names=["input_ids", "attention_mask"],
    )


def types(task: str) -> list[str]:
    """The model types that transformers has a head for."""
    from transformers.models.auto import modeling_auto

    return list(getattr(modeling_auto, HEADS[task][0]))


def build(model_type: str, task: str, seed: int = 0, **options: Any) -> Any:
    """A tiny model of a type with the head of a task, in evaluation."""
    import transformers

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        config = config_of(model_type, task)
        torch.manual_seed(seed)
        model = getattr(transformers, HEADS[task][1]).from_config(config, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter) * 0.1)
                parameter.nan_to_num_(0.0, 1.0, -1.0).clamp_(-2, 2)
    return model.float().eval()


def runs(model: Any, task: str, text: str) -> None:
    """Raises where the model itself does not run on a text: its shape cannot be made tiny so."""
    inputs = dict(tokenizer()(text, return_tensors="pt"))
    if task == "encoder-decoder" and model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.tensor([[2, 6, 7]])
    elif model.config.is_encoder_decoder:  # a config need not say what the decoder begins with
        inputs["decoder_input_ids"] = inputs["input_ids"]
    with torch.no_grad():
        model(**inputs)


def config_of(model_type: str, task: str) -> Any:
    import transformers

    default = transformers.CONFIG_MAPPING[model_type]
    if model_type == "encoder-decoder":
        parts = [small(transformers.BertConfig, "bert", task).to_dict() for _ in range(2)]
        parts[1].update(is_decoder=True, add_cross_attention=True)
        made = default(encoder=parts[0], decoder=parts[1])
        made.decoder_start_token_id, made.pad_token_id = 2, 0
        return made
    return small(default, model_type, task)


def small(cls: Any, model_type: str, task: str) -> Any:
    """A config of a class with everything small that its defaults have large."""
    given = changes(cls, model_type, task)
    made = cls(**given)
    if task == "classifier":
        made.num_labels = 3
    if task == "causal" and hasattr(made, "is_decoder") and not made.is_encoder_decoder:
        made.is_decoder = True
    return made


def changes(cls: Any, model_type: str, task: str) -> dict[str, Any]:
    default = cls()
    known = default.to_dict()
    given: dict[str, Any] = {}
    for name, value in known.items():
        if name in _IDS:
            given[name] = _IDS[name]
        elif name in SIZES and _shrinks(value):
            given[name] = SIZES[name]
    _layer_kinds(default, known, given)
    for name, value in known.items():  # configs within
        if not isinstance(value, dict):
            continue
        inner = getattr(default, name, None)
        if hasattr(inner, "to_dict") and hasattr(inner, "model_type"):
            given[name] = changes(type(inner), inner.model_type, task)
    if "kv_lora_rank" in known:  # latent attention: keys are shared, heads are not
        given |= {"num_key_value_heads": 4, "qk_head_dim": 16}
    given.update(PECULIAR.get(model_type, {}))
    return {k: v for k, v in given.items() if v is not ...}


def _shrinks(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _layer_kinds(default: Any, known: dict[str, Any], given: dict[str, Any]) -> None:
    """All kinds of layers that a type mixes, in few of them."""
    for name in ("layer_types", "layers_block_type", "mlp_layer_types", "attention_types"):
        kinds = getattr(default, name, None)
        if not (isinstance(kinds, list) and kinds and isinstance(kinds[0], str)):
            continue
        unlike = list(dict.fromkeys(kinds))
        count = max(_LAYERS, len(unlike))
        if layers := _count_name(known):
            given[layers] = max(count, given.get(layers) or 0)
    for name in ("layer_types", "layers_block_type", "mlp_layer_types"):
        kinds = getattr(default, name, None)
        if isinstance(kinds, list) and kinds and isinstance(kinds[0], str) and name in known:
            unlike = list(dict.fromkeys(kinds))
            layers = _count_name(known)
            count = given[layers] if layers else len(unlike)
            given[name] = [unlike[i % len(unlike)] for i in range(count)]


def _count_name(known: dict[str, Any]) -> str | None:
    return next((n for n in ("num_hidden_layers", "n_layer", "num_layers") if n in known), None)
