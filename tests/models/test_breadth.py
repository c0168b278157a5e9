"""Model types as people run them, tiny, against references that know nothing of the engine."""

from __future__ import annotations

import pytest
import transformers
from packaging.version import Version

from benchmarks import shrunk
from benchmarks.breadth import Outcome, examined

# The most used first; what transformers of another version does not have is left out.
SAMPLE = [
    ("qwen3", "causal"),
    ("llama", "causal"),
    ("gemma3_text", "causal"),
    ("gpt_oss", "causal"),
    ("bert", "classifier"),
    ("qwen3_moe", "causal"),
    ("mixtral", "causal"),
    ("deepseek_v3", "causal"),
    ("roberta", "classifier"),
    ("mistral", "causal"),
    ("t5", "encoder-decoder"),
    ("gpt2", "causal"),
    ("qwen3_next", "causal"),
    ("xlm-roberta", "masked"),
    ("modernbert", "classifier"),
    ("bart", "classifier"),
    ("phi3", "causal"),
    ("deberta-v2", "classifier"),
    ("glm4_moe", "causal"),
    ("granitemoehybrid", "causal"),
    ("olmo2", "causal"),
    ("mbart", "encoder-decoder"),
    ("m2m_100", "encoder-decoder"),
    ("xlnet", "classifier"),
    ("xlm", "masked"),
]
ALL = [(name, task) for task in shrunk.HEADS for name in shrunk.types(task)]
NEWEST = Version(transformers.__version__) >= Version("5.23")


def check(name: str, task: str) -> Outcome:
    outcome = examined(name, task)
    if outcome.built:
        pytest.skip(f"cannot be built tiny: {outcome.built}")
    assert not outcome.crash, outcome.crash
    assert not outcome.differs, outcome.differs
    for method, reason in outcome.methods.items():
        assert not reason or len(reason) > 40, f"{method} is refused without a reason"
    return outcome


@pytest.mark.parametrize(("name", "task"), SAMPLE)
def test_what_most_people_run(name: str, task: str) -> None:
    if (name, task) not in ALL or not NEWEST:
        pytest.skip("a type, or a tiny shape of it, of a newer transformers")
    outcome = check(name, task)
    assert outcome.verdict == "works", outcome.methods
    assert "logits" in outcome.compared
    assert {"attention", "value_zeroing"} & set(outcome.compared)


@pytest.mark.long
@pytest.mark.parametrize(("name", "task"), [one for one in ALL if one not in SAMPLE])
def test_every_other_type(name: str, task: str) -> None:
    check(name, task)
