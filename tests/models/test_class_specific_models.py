"""Class-specific methods on every kind of target and family, leaving nothing behind."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import explain
from mixwidget.engine import parts, prepare, start
from mixwidget.errors import CancelledError, InputError
from mixwidget.methods.registry import all_methods
from mixwidget.models import encode, open_source, resolve_target
from mixwidget.models.predict import edit, predict
from tests.lib import tiny

TEXT = "the film is not bad but never boring"
MASKED = "the film is not [MASK] but never boring"
OURS = [
    m.id
    for m in all_methods()
    if m.family in ("gradients", "class activation", "relevance", "perturbation")
    and "answer" not in m.needs
]
RELEVANCE = {"lrp", "partial_lrp", "transatt", "mask_lrp"}
BARE = ("gpt2", "llama", "gpt_neox", "roberta", "distilbert", "opt")


def tokenizer_for(family: str) -> Any:
    found = tiny.tokenizer()
    if family in BARE:
        found.model_input_names = ["input_ids", "attention_mask"]
    return found


HEADS = [
    ("bert", "SequenceClassification", TEXT, 1),
    ("bert", "MaskedLM", MASKED, "good"),
    ("bert", "MaskedLM", MASKED, ("good", "bad")),
    ("bert", "QuestionAnswering", TEXT, (3, 6)),
    ("roberta", "SequenceClassification", TEXT, 1),
    ("distilbert", "SequenceClassification", TEXT, 1),
    ("electra", "SequenceClassification", TEXT, 1),
    ("gpt2", "SequenceClassification", TEXT, 1),
    ("gpt2", "CausalLM", TEXT, "good"),
    ("gpt2", "CausalLM", TEXT, ("was", "is")),
    ("llama", "CausalLM", TEXT, "good"),
    ("gpt_neox", "CausalLM", TEXT, "good"),
]


@pytest.mark.parametrize(("family", "head", "text", "target"), HEADS)
def test_every_target_and_family(family: str, head: str, text: str, target: Any) -> None:
    source = open_source(tiny.model(family, head), tokenizer_for(family))
    for method in OURS:
        if method in RELEVANCE and family in ("llama", "gpt_neox"):
            continue
        options: dict[str, Any] = {"steps": 20} if method == "integrated_gradients" else {}
        if head == "QuestionAnswering":
            options["focus"] = target[0]
        found = explain(source, text, method, target=target, **options)
        assert np.isfinite(found.scores).all(), method
        if method != "grad_cam":  # its relu may leave nothing of a row, and rightly so
            assert np.abs(found.scores).max() > 0, method


@pytest.mark.parametrize("method", ["gradient", "cat", "transatt", "lrp", "blank_out"])
def test_next_token_at_any_position(method: str) -> None:
    """What a causal model says after token 3 does not depend on later tokens."""
    source = open_source(tiny.model("gpt2", "CausalLM").double(), tokenizer_for("gpt2"))
    found = explain(source, TEXT, method, target="good", focus=3)
    assert found.target.position == 3
    assert np.abs(found.scores[:4]).max() > 0
    np.testing.assert_allclose(found.scores[4:], 0, atol=1e-12)
    # The same as reading the last token of the text cut there.
    tokens = encode(source, TEXT).tokens
    cut = TEXT[: tokens[3].end]
    source.tokenizer.backend_tokenizer.post_processor = None
    whole = explain(source, TEXT, method, target="good", focus=2)
    short = explain(source, cut, method, target="good")
    np.testing.assert_allclose(whole.scores[:3], short.scores, atol=1e-6)


def test_span_is_start_and_end_summed() -> None:
    model = tiny.model("bert", "QuestionAnswering").double()
    found = explain(model, TEXT, "cat", tokenizer=tiny.tokenizer(), target=(2, 4))
    inputs = tiny.tokenizer()(TEXT, return_tensors="pt")
    output = model(**inputs, output_hidden_states=True)
    value = output.start_logits[0, 2] + output.end_logits[0, 4]
    assert found.target.logit == pytest.approx(value.item(), abs=1e-6)
    slopes = torch.autograd.grad(value, output.hidden_states[1:])
    true = sum((h * g).sum(-1)[0] for h, g in zip(output.hidden_states[1:], slopes, strict=True))
    np.testing.assert_allclose(found.scores, true.detach(), atol=1e-6)


def test_contrast_is_the_difference_of_logits() -> None:
    model = tiny.model("bert", "MaskedLM").double()
    given = {"tokenizer": tiny.tokenizer()}
    both = explain(model, MASKED, "cat", target=("good", "bad"), **given)
    one = explain(model, MASKED, "cat", target="good", **given)
    other = explain(model, MASKED, "cat", target="bad", **given)
    np.testing.assert_allclose(both.scores, one.scores - other.scores, atol=1e-6)
    assert both.target.logit == pytest.approx(one.target.logit - other.target.logit, abs=1e-6)
    assert both.target.position == one.target.position == 5


def test_labels_and_wrong_targets() -> None:
    model = tiny.model("bert", id2label={0: "bad", 1: "fine", 2: "good"})
    given = {"tokenizer": tiny.tokenizer()}
    by_name = explain(model, TEXT, "cat", target="GOOD", **given)
    by_index = explain(model, TEXT, "cat", target=2, **given)
    np.testing.assert_array_equal(by_name.scores, by_index.scores)
    predicted = explain(model, TEXT, "cat", **given)
    assert predicted.target.index == int(predicted.target)
    for wrong in ("great", 3, -1, 1.5, (0, 1, 2)):
        with pytest.raises(InputError):
            explain(model, TEXT, "cat", target=wrong, **given)


@pytest.mark.parametrize("method", OURS)
def test_frozen_parameters_and_training_mode(method: str) -> None:
    """Gradients need no trainable parameter, never land on one, and dropout stays off."""
    model = tiny.model("bert").double()
    given = {"tokenizer": tiny.tokenizer(), "target": 0}
    true = explain(model, TEXT, method, **given).scores
    assert all(p.grad is None for p in model.parameters())
    model.train()
    np.testing.assert_array_equal(explain(model, TEXT, method, **given).scores, true)
    assert all(module.training for module in model.modules())
    model.requires_grad_(False)
    np.testing.assert_array_equal(explain(model, TEXT, method, **given).scores, true)
    assert not any(p.requires_grad for p in model.parameters())
    with torch.no_grad():
        np.testing.assert_array_equal(explain(model, TEXT, method, **given).scores, true)


def _state(model: torch.nn.Module) -> Any:
    hooks = [
        (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks), sorted(vars(m)))
        for m in model.modules()
    ]
    config = model.config  # type: ignore[union-attr]
    return hooks, config._attn_implementation, [p.sum().item() for p in model.parameters()]


@pytest.mark.parametrize("method", OURS)
def test_nothing_stays_on_the_model(method: str) -> None:
    model = tiny.model("bert")
    before = _state(model)
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    list(parts(start(case, method)))
    assert _state(model) == before
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    run = start(case, method)
    run.cancelled = cancelled
    with contextlib.suppress(CancelledError):  # a short method may be done before it is asked
        list(parts(run))
    assert _state(model) == before


@pytest.mark.parametrize("method", OURS)
def test_nothing_stays_after_an_error(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model("bert")
    case = prepare(model, TEXT, tokenizer=tiny.tokenizer())
    run = start(case, method)
    before = _state(model)

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(torch.nn.Tanh, "forward", broken)  # the pooler: after all layers
    with pytest.raises(RuntimeError, match="on purpose"):
        list(parts(run))
    monkeypatch.undo()
    assert _state(model) == before
    assert all(p.grad is None for p in model.parameters())


def test_deeplift_refuses_shared_activations() -> None:
    from mixwidget.errors import UnsupportedMethodError

    model = tiny.model("bert", hidden_act="relu")
    shared = model.bert.encoder.layer[0].intermediate.intermediate_act_fn
    for layer in model.bert.encoder.layer:
        layer.intermediate.intermediate_act_fn = shared
    before = _state(model)
    with pytest.raises(UnsupportedMethodError, match="several times"):
        explain(model, TEXT, "deeplift", tokenizer=tiny.tokenizer())
    assert _state(model) == before


def test_causal_classifier_without_padding_token() -> None:
    """It takes one text at a time; passes are split, and DeepLIFT says why it cannot."""
    from mixwidget.errors import UnsupportedMethodError

    model = tiny.model("gpt2", pad_token_id=None)
    model.config.pad_token_id = None
    source = open_source(model, tokenizer_for("gpt2"))
    for method in ("integrated_gradients", "blank_out", "lrp"):
        assert np.isfinite(explain(source, TEXT, method).scores).all()
    with pytest.raises(UnsupportedMethodError, match="pad_token_id"):
        explain(source, TEXT, "deeplift")


def test_without_a_mask_token() -> None:
    tokenizer = tokenizer_for("gpt2")
    tokenizer.mask_token = None
    model = tiny.model("gpt2", "CausalLM")
    found = explain(model, TEXT, "integrated_gradients", tokenizer=tokenizer)
    assert found.info["baseline"] == "[UNK]"
    found = explain(model, TEXT, "blank_out", tokenizer=tokenizer)
    assert found.info["replaced_by"] == "[UNK]"
    tokenizer.unk_token = None
    tokenizer.pad_token = None
    found = explain(model, TEXT, "integrated_gradients", tokenizer=tokenizer)
    assert found.info["baseline"] == "zero vector"
    left_out = explain(model, TEXT, "blank_out", tokenizer=tokenizer)
    assert left_out.info["replaced_by"] == "nothing (left out of attention)"
    assert np.abs(left_out.scores).max() > 0
    with pytest.raises(InputError, match="by='unk'"):
        explain(model, TEXT, "blank_out", tokenizer=tokenizer, by="unk")


@pytest.mark.parametrize("family", ["bert", "gpt2", "roberta"])
def test_batches_of_edits_equal_one_by_one(family: str) -> None:
    source = open_source(tiny.model(family).double(), tokenizer_for(family))
    encoding = encode(source, TEXT)
    with torch.no_grad():
        output = source.model(**encoding.inputs)
    target = resolve_target(1, source, encoding, output, 0)
    rng = np.random.default_rng(0)
    edits = []
    for by in ("mask", "unk", "delete"):
        for size in (0, 1, 3, 5):
            gone = rng.choice(encoding.ordinary(), size, replace=False).tolist()
            edits.append(edit(source, encoding, target, gone, by))  # type: ignore[arg-type]
    together = predict(source, encoding, edits)
    for one, value in zip(edits, together, strict=True):
        alone = predict(source, encoding, [one])
        assert float(alone) == pytest.approx(float(value), abs=1e-9)
        with torch.no_grad():
            logits = source.model(input_ids=torch.tensor([one.ids])).logits[0]
        assert float(value) == pytest.approx(float(logits.softmax(-1)[1]), abs=1e-9)


def test_deleting_what_the_target_is_read_from() -> None:
    source = open_source(tiny.model("bert", "MaskedLM").double(), tiny.tokenizer())
    found = explain(source, MASKED, "blank_out", by="delete", target="good")
    mask = found.target.position
    assert mask is not None
    assert found.scores[mask] == pytest.approx(found.target.probability, abs=1e-6)
    # A token before the mask is deleted: the mask is read one place earlier.
    ids = [token.id for token in found.tokens]
    kept = [token for i, token in enumerate(ids) if i != 1]
    with torch.no_grad():
        logits = source.model(input_ids=torch.tensor([kept])).logits[0, mask - 1]
    after = float(logits.softmax(-1)[tiny.VOCAB["good"]])
    assert found.scores[1] == pytest.approx(found.target.probability - after, abs=1e-6)


def test_span_probability_in_padded_batches() -> None:
    source = open_source(tiny.model("bert", "QuestionAnswering").double(), tiny.tokenizer())
    found = explain(source, TEXT, "blank_out", by="delete", target=(2, 4))
    ids = [token.id for token in found.tokens]
    with torch.no_grad():
        output = source.model(input_ids=torch.tensor([ids[:1] + ids[2:]]))
    after = output.start_logits.softmax(-1)[0, 1] * output.end_logits.softmax(-1)[0, 3]
    assert found.scores[1] == pytest.approx(found.target.probability - float(after), abs=1e-6)
    assert found.scores[2] == pytest.approx(found.target.probability, abs=1e-6)
