"""The attributions on blocks of other builds, against twins written by hand in float64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain
from tests.lib import tiny
from tests.reference import attributions as naive
from tests.reference import decoders

TEXT = "the film is not bad but never boring"
LIMIT, BY_LAYER = 2e-5, 5e-5
WINDOW = {"sliding_window": 3, "query_pre_attn_scalar": 8, "head_dim": 8, "num_hidden_layers": 2}
CHANGES: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "gpt_neox": {"rotary_pct": 0.25},
    "qwen3": {},
    "gemma2": {**WINDOW, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    "gemma3_text": {**WINDOW, "layer_types": ["sliding_attention", "full_attention"]},
}
STARTS: dict[Any, dict[int, float]] = {6: {6: 1.0}, (6, 9): {6: 1.0, 9: -1.0}}


def tokenizer() -> Any:
    found = tiny.tokenizer()
    found.model_input_names = ["input_ids", "attention_mask"]
    return found


def ids() -> list[int]:
    return list(tokenizer()(TEXT)["input_ids"])


@cache
def model(family: str) -> Any:
    sizes = {**tiny.COMMON, **tiny.CONFIGS.get(family, tiny.GROUPED), **CHANGES[family]}
    config = transformers.AutoConfig.for_model(family, **sizes)
    torch.manual_seed(3)
    made = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return made.double().eval()


@cache
def hand(family: str) -> decoders.Decoder:
    return decoders.Decoder(model(family))


def close(ours: Any, true: Any, limit: float = LIMIT) -> None:
    expected = np.asarray(true)
    assert np.abs(np.asarray(ours) - expected).max() <= limit * np.abs(expected).max()


def run(family: str, method: str, **params: Any) -> Any:
    return explain(model(family), TEXT, method, tokenizer=tokenizer(), **params)


@pytest.mark.parametrize("family", CHANGES)
def test_the_twin_is_the_model(family: str) -> None:
    with torch.no_grad():
        logits = model(family)(torch.tensor([ids()])).logits[0, -1]
    close(logits, hand(family).logits(ids(), "true").detach(), 1e-6)


@pytest.mark.parametrize("target", STARTS)
@pytest.mark.parametrize("family", CHANGES)
def test_signed_attributions(family: str, target: Any) -> None:
    twin, start = hand(family), STARTS[target]
    for rule in ("attn_lrp", "cp_lrp"):
        true = naive.relevance(twin, ids(), start, rule)
        found = run(family, rule, target=target)
        close(found.layer_scores, true, BY_LAYER)
        close(found.scores, true[0])
    true, fed = decoders.direct(twin, ids(), start)
    found = run(family, "logit", target=target)
    close(found.head_scores, true, BY_LAYER)
    close(found.scores, true.sum((0, 1)))
    close(found.info["feed_forward"], fed)
    maps = torch.stack([decoders.alti(seen) for seen in twin.seen])
    traced = run(family, "alti_logit", target=target)
    rows = naive.alti_logit(true.sum(1), maps)
    close(traced.layer_scores, rows, BY_LAYER)
    close(traced.scores, rows.sum(0))


@pytest.mark.parametrize("family", CHANGES)
def test_routes(family: str) -> None:
    twin = hand(family)
    twin.logits(ids(), "true")
    true = [decoders.routes(seen) for seen in twin.seen]
    found = run(family, "ifr")
    close(found.maps, torch.stack([map for map, _ in true]), BY_LAYER)
    close(found.info["feed_forward"], torch.stack([fed for _, fed in true]))
    rollout = torch.eye(len(ids())).double()
    for map, _ in true:
        rollout = map @ rollout
    close(found.scores, rollout[-1])


@pytest.mark.parametrize("kind", ["absdot", "norm", "equal", "none"])
@pytest.mark.parametrize("family", CHANGES)
def test_parts(family: str, kind: str) -> None:
    maps, parts = decoders.carried(hand(family), ids(), kind)
    for target, start in STARTS.items():
        found = run(family, "decompx", target=target, bias=kind)
        close(found.maps, maps, BY_LAYER)
        close(found.scores, sum(sign * parts[:, c] for c, sign in start.items()))
