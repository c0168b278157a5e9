"""Chats and answers on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mixwidget import explain
from mixwidget.cli import main
from tests.lib import tiny

TEMPLATE = "{% for m in messages %}{{ m['role'] }} , {{ m['content'] }} [SEP]\n{% endfor %}"
CHAT = [{"role": "user", "content": "the film is not bad . we saw it ."}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    made = tmp_path_factory.mktemp("chat")
    tokenizer = tiny.tokenizer(pairs=False)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(made)
    tiny.model("llama", "CausalLM").save_pretrained(made)
    (made / "chat.json").write_text(json.dumps({"messages": CHAT}))
    (made / "none.json").write_text(json.dumps(["a"]))
    return made


def test_a_chat_with_an_answer_by_sentences(folder: Path, capsys: Any) -> None:
    given = ["--chat", str(folder / "chat.json"), "--model", str(folder), "-q"]
    given += ["--method", "blank_out", "--answer", "it is good", "--units", "sentences"]
    assert main(given) == 0
    out = capsys.readouterr().out
    assert "answers it is good" in out
    e = explain(str(folder), CHAT, "blank_out", answer="it is good", units="sentences")
    for name, score in zip(e.by("sentences").names, e.by("sentences").scores, strict=True):
        line = next(line for line in out.splitlines() if line.startswith(f"  {name}"))
        assert float(line[len(name) + 2 :].split()[0]) == pytest.approx(score, rel=0.05, abs=1e-3)


def test_its_own_answer_into_a_file(folder: Path, capsys: Any) -> None:
    out = folder / "out.json"
    given = ["--chat", str(folder / "chat.json"), "--model", str(folder), "-q", "-o", str(out)]
    assert main([*given, "--method", "alti", "--generate", "--max-new-tokens", "3"]) == 0
    assert json.loads(out.read_text())["explanations"][0]["answer"] is not None


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--chat", "none.json"], 1, "holds no chat"),
        (["--chat", "missing.json"], 1, "cannot be read"),
        (["--chat", "chat.json", "a text"], 2, "leave TEXT"),
        (["--chat", "chat.json", "--answer", "a", "--generate"], 2, "exclude each other"),
    ],
)
def test_wrong_use(folder: Path, given: list[str], code: int, said: str, capsys: Any) -> None:
    given = [str(folder / one) if one.endswith(".json") else one for one in given]
    assert main([*given, "--model", str(folder)]) == code
    assert said in capsys.readouterr().err
