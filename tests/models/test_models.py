"""The recorded pass and the block algebra: the parts add up, for every family."""

from __future__ import annotations

import warnings

import pytest
import torch

from mixwidget import explain
from mixwidget.blocks import BlockSpec, vector_norms
from mixwidget.engine import prepare
from mixwidget.errors import UnsupportedModelError
from mixwidget.models import record, register_family, shadow, spec_for
from mixwidget.models.families import _FAMILIES, families
from mixwidget.models.tap import Watching
from tests.lib import tiny

TEXT = "the plot is thin but the acting is never boring ."
EAGER_ONLY = ("gemma2", "mpnet", "deberta-v2", "gpt_neo", "bloom")


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_parts_add_up(family):
    case = prepare(tiny.model(family, ""), TEXT, tokenizer=tiny.tokenizer())
    for layer in range(len(case.trace())):
        assert case.trace().adds_up(layer) < 1e-4


@pytest.mark.parametrize(
    ("family", "shape"),
    [
        ("gpt_neox", {"use_parallel_residual": False}),
        ("stablelm", {"use_parallel_residual": True}),
        ("opt", {"do_layer_norm_before": False}),
        ("bert", {"is_decoder": True}),
        ("falcon", {"parallel_attn": False, "alibi": True}),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    ],
)
def test_parts_add_up_in_the_other_shape_of_a_family(family, shape):
    case = prepare(tiny.model(family, "", **shape), TEXT, tokenizer=tiny.tokenizer())
    assert max(case.trace().adds_up(layer) for layer in range(3)) < 1e-4


@pytest.mark.parametrize(
    ("family", "implementation"),
    [
        (family, implementation)
        for family in tiny.CONFIGS
        for implementation in ("eager", "sdpa")
        # transformers has no sdpa for these
        if (family, implementation) not in {(name, "sdpa") for name in EAGER_ONLY}
    ],
)
def test_recording_changes_no_number(family, implementation):
    model = tiny.model(family, "")
    model.set_attn_implementation(implementation)
    implementation = model.config._attn_implementation  # some families do not let themselves be set
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    with torch.no_grad():
        alone = model(**case.encoding.inputs).last_hidden_state
    recorded = case.trace().output.last_hidden_state
    assert torch.allclose(alone, recorded, atol=1e-5)
    assert model.config._attn_implementation == implementation


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_record_holds_what_the_layer_did(family):
    model = tiny.model(family, "").double()
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    trace = case.trace()
    n, heads = len(case.encoding.tokens), 4
    for number, layer in enumerate(trace.layers):
        assert layer.input.shape == layer.output.shape == (n, 32)
        assert layer.weights.shape == (heads, n, n)
        assert layer.values.shape == (heads, n, 8)
        assert torch.allclose(layer.weights.sum(-1), torch.ones(heads, n).double())
        if number:
            assert torch.equal(layer.input, trace.layers[number - 1].output)
    causal = spec_for(model.config).causal
    assert trace.block(0).causal == causal
    assert bool(trace.weights(0).triu(1).any()) != causal


@pytest.mark.parametrize("family", tiny.CONFIGS)
def test_a_pass_with_its_graph_can_be_differentiated_by_weights_and_outputs(family):
    model = tiny.model(family, "")
    model.requires_grad_(False)
    inputs = prepare(model, TEXT, tokenizer=tiny.tokenizer()).encoding.inputs
    embeds = model.get_input_embeddings()(inputs["input_ids"]).detach().requires_grad_()
    rest = {name: value for name, value in inputs.items() if name != "input_ids"}
    given = {"inputs_embeds": embeds, **rest}
    trace = record(shadow(model), given, spec_for(model.config), keep_graph=True)
    nodes = [layer.weights for layer in trace.layers] + [layer.output for layer in trace.layers]
    goal = trace.output.last_hidden_state.square().sum()
    for node, gradient in zip(nodes, torch.autograd.grad(goal, nodes), strict=True):
        assert gradient.shape == node.shape
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("family", tiny.CONFIGS)
@pytest.mark.parametrize("stage", ["z", "res", "res_ln", "enc"])
def test_vector_norms_equal_materialised_vectors(family, stage):
    """||u_ij|| by Gram matrices against the vectors themselves, in float64."""
    case = prepare(tiny.model(family, "").double(), TEXT, tokenizer=tiny.tokenizer())
    block = case.trace().block(1)
    pieces = block.stage(stage)
    vectors = torch.einsum("hij,hjd,hdk->ijk", block.weights, block.values, pieces.project)
    vectors = vectors * pieces.scale[:, None]
    if pieces.residual is not None:
        n = len(vectors)
        vectors[range(n), range(n)] += pieces.residual
    assert torch.allclose(vector_norms(block, pieces), vectors.norm(dim=-1))
    assert torch.allclose(block.sum_vectors(pieces), vectors.sum(1))
    if stage != "enc":
        assert torch.allclose(vectors.sum(1) + pieces.constant, pieces.total)


def test_a_wrong_spec_does_not_add_up():
    """The check can fail: norms swapped, wrong wiring, wrong projection."""
    model = tiny.model("bert", "")
    inputs = dict(tiny.tokenizer()(TEXT, return_tensors="pt"))
    right = spec_for(model.config)
    wrongs = [
        right.but(norm1=right.norm2, norm2=right.norm1),
        right.but(out="attention.self.query"),
        right.but(wiring="pre"),
    ]
    for wrong in wrongs:
        assert record(shadow(model), inputs, wrong).adds_up(1) > 1e-2


def test_wrong_spec_warns_and_names_the_layer():
    model = tiny.model("bert", "")
    right = spec_for(model.config)
    register_family("bert", right.but(norm1=right.norm2, norm2=right.norm1), replace=True)
    try:
        case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
        case.adds_up(2)
        with pytest.warns(UserWarning, match="Layer 2"):
            case.warn()
    finally:
        _FAMILIES["bert"] = right


def test_a_spec_that_does_not_fit_says_where():
    model = tiny.model("bert", "")
    inputs = dict(tiny.tokenizer()(TEXT, return_tensors="pt"))
    with pytest.raises(UnsupportedModelError, match=r"attention\.outptu"):
        record(shadow(model), inputs, spec_for(model.config).but(out="attention.outptu.dense"))


def test_families_can_be_added_but_not_twice():
    with pytest.raises(ValueError, match="already known"):
        register_family("bert", spec_for(tiny.model("bert", "").config))
    spec = BlockSpec("layers", "pre", "out", "n1", "n2", "up", "down", "act")
    register_family("quite_new", spec)
    assert "quite_new" in families()
    del _FAMILIES["quite_new"]


def watched(compute):
    """The attention that is seen while something is computed, and the result."""
    seen = []
    with Watching(lambda found: seen.append(found), {6}):
        result = compute()
    (found,) = seen
    return found, result


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_tap_reads_every_kind_of_mask(kind):
    """Fused attention is computed in the open, whatever the mask it is given."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 4, 6, 8) for _ in range(3))
    allowed = torch.ones(6, 6, dtype=torch.bool).tril()
    mask = {
        "none": None,
        "bool": allowed[None, None],
        "float": torch.zeros(6, 6).masked_fill(~allowed, torch.finfo(torch.float32).min)[
            None, None
        ],
    }[kind]
    fused = torch.nn.functional.scaled_dot_product_attention
    expected = fused(query, key, value, is_causal=True)
    found, out = watched(lambda: fused(query, key, value, mask, is_causal=kind == "none"))
    assert torch.allclose(out, expected, atol=1e-6)
    assert not found.weights.triu(1).any()
    assert torch.equal(found.values, value[0])


def test_tap_gives_sinks_weight_and_no_value():
    """Attention sinks: one more slot in the softmax that brings nothing."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 4, 6, 8) for _ in range(3))
    sinks = torch.randn(4)
    scores = query @ key.transpose(-1, -2) * 8**-0.5

    def attend():
        column = sinks.reshape(1, -1, 1, 1).expand(1, 4, 6, 1)
        weights = torch.cat([scores, column], -1).softmax(-1)
        return torch.matmul(weights[..., :-1], value).transpose(1, 2)

    found, out = watched(attend)
    weights = found.weights
    total = scores.exp().sum(-1, keepdim=True) + sinks.exp()[None, :, None, None]
    assert torch.allclose(weights, scores.exp() / total, atol=1e-6)
    assert torch.allclose(out, (weights @ value).transpose(1, 2), atol=1e-6)
    assert (weights.sum(-1) < 1).all()


@pytest.mark.parametrize(
    "equation", ["bhij,bhjd->bhid", "bhij,bjhd->bihd", "ijbh,jbhd->ibhd", "bhij,bjd->bhid"]
)
def test_tap_reads_every_layout(equation):
    """Weights by head and values by head, however the product is written."""
    torch.manual_seed(0)
    sizes = {"b": 1, "h": 4, "i": 6, "j": 6, "d": 8}
    left, right, _ = equation.replace("->", ",").split(",")
    weights = torch.randn([sizes[c] for c in left]).softmax(left.index("j"))
    values = torch.randn([sizes[c] for c in right])
    found, result = watched(
        lambda: torch.einsum(equation, torch.log(weights).softmax(left.index("j")), values)
    )
    assert torch.allclose(result, torch.einsum(equation, weights, values), atol=1e-6)
    by_head = torch.einsum(f"{left}->hij", weights)
    assert torch.allclose(found.weights[0], by_head, atol=1e-6)
    assert torch.allclose(found.by_head(result), by_head @ found.values, atol=1e-6)
    gone = values.index_fill(right.index("j"), torch.tensor([2]), 0.0)
    expected = torch.einsum(equation, weights, gone)
    assert torch.allclose(found.without(2), expected, atol=1e-6)


def test_what_is_no_attention_is_left_alone():
    """A router's softmax over experts, multiplied with what they give."""
    seen = []
    with Watching(lambda found: seen.append(found), {6}):
        torch.matmul(torch.randn(1, 6, 4).softmax(-1), torch.randn(1, 4, 8))
    assert not seen


def test_a_family_taught_anew_is_read_anew(monkeypatch):
    model = tiny.model("bert")
    right = spec_for(model.config)
    monkeypatch.setitem(_FAMILIES, "bert", right)
    register_family("bert", right.but(wiring="pre"), replace=True)
    with pytest.warns(UserWarning, match="The spec is not used"):
        explain(model, TEXT, "alti", tokenizer=tiny.tokenizer())
    register_family("bert", right, replace=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain(model, TEXT, "alti", tokenizer=tiny.tokenizer())
