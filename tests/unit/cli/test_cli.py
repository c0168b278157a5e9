"""The command line: what it prints and writes, and what it exits with."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixwidget
from mixwidget import Explanation, demo, explain
from mixwidget.cli import main
from mixwidget.cli.arguments import PARSERS, options_for, target_of
from mixwidget.cli.terminal import bars, picture, shaded, strongest
from mixwidget.errors import InputError
from mixwidget.explanation.serial import read
from mixwidget.methods.registry import all_methods
from tests.lib import tiny

TEXT = "not bad at all"


@pytest.fixture(scope="module", autouse=True)
def one_model() -> Iterator[None]:
    """Load the demo model once."""
    loaded = demo.load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "load", lambda: loaded)
        yield


def wrong(code: int, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of a command that must fail: for 1, one line and nothing on stdout."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    if code == 1:
        assert err.startswith("mixwidget: ")
        assert err.count("\n") == 1
    return err


def test_help_is_light_and_complete() -> None:
    code = (
        "import sys\n"
        "from mixwidget.cli import main\n"
        "for command in ([], ['explain'], ['methods'], ['benchmark']):\n"
        "    assert main([*command, '--help']) == 0\n"
        "assert main(['--version']) == 0\n"
        "heavy = {'torch', 'transformers', 'numpy', 'pandas', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"mixwidget {mixwidget.__version__}" in done.stdout
    for word in ("--model", "--method", "--text-pair", "--target", "--focus", "--option", "-o"):
        assert word in done.stdout
    assert "--workers" in done.stdout


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "mixwidget", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"mixwidget {mixwidget.__version__}\n"


def test_where_no_method_is_named_the_recommended_one_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tiny.model("gpt2", "CausalLM")
    model.save_pretrained(tmp_path / "m")
    tiny.tokenizer().save_pretrained(tmp_path / "m")
    assert main([TEXT, "--model", str(tmp_path / "m")]) == 0
    said = capsys.readouterr()
    assert "attn_lrp: " in said.err
    assert main([TEXT]) == 0
    assert "alti: " in capsys.readouterr().err
    data, out = tmp_path / "texts.csv", tmp_path / "out.csv"
    data.write_text(f"text\n{TEXT}\n")
    given = ["--model", str(tmp_path / "m"), "--data", str(data), "--out", str(out), "-q"]
    assert main(["explain", *given]) == 0
    assert "attn_lrp" in out.read_text()


def test_a_picture_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([TEXT, "--method", "alti", "--method", "attcat"]) == 0
    out, err = capsys.readouterr()
    assert "demo model: " in out
    assert "alti: what went into [CLS]" in out
    assert "attcat: what drove " in out
    assert "\033" not in out
    for word in TEXT.split():
        assert out.count(f"  {word} ") == 2
    assert [line.split(":")[0] for line in err.splitlines()] == ["alti", "attcat"]


def test_the_default_is_the_demo_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-q"]) == 0
    out, err = capsys.readouterr()
    assert "boring" in out
    assert err == ""


def test_stdin_and_a_text_named_like_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("not bad\n"))
    assert main(["-", "-q"]) == 0
    assert "  not " in capsys.readouterr().out
    assert main(["explain", "methods", "-q"]) == 0
    assert "what went into" in capsys.readouterr().out


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["out.json", "out.csv", "out.svg"]
    outputs = [part for name in names for part in ("-o", str(tmp_path / name))]
    methods = ["--method", "alti", "--method", "gradient"]
    assert main([TEXT, *methods, "--option", "p=2", *outputs]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("wrote ") == 3
    found = {one.method: one for one in read(tmp_path / "out.json", Explanation)}
    assert list(found) == ["alti", "gradient"]
    model, tokenizer = demo.load()
    same = explain(model, TEXT, "alti", tokenizer=tokenizer, p=2)
    np.testing.assert_array_equal(found["alti"].maps, same.maps)
    table = pd.read_csv(tmp_path / "out.csv")
    assert set(table["method"]) == {"alti", "gradient"}
    last = table[(table["method"] == "alti") & (table["kind"] == "score")]["value"]
    np.testing.assert_allclose(last, same.scores, rtol=1e-6)
    assert b"<svg" in (tmp_path / "out.svg").read_bytes()
    assert main([TEXT, "-o", str(tmp_path / "one.png")]) == 0
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_target_focus_and_pair(tmp_path: Path) -> None:
    path = str(tmp_path / "x.json")
    rest = ["--method", "gradient", "-o", path, "-q"]
    assert main([TEXT, "--text-pair", "a fine film", "--target", "negative", *rest]) == 0
    one = Explanation.from_json(path)
    assert one.target == "negative"
    assert {token.segment for token in one.tokens} == {0, 1}
    for focus, place in (("bad", 2), ("2", 2), ("-1", 5)):
        assert main([TEXT, "--focus", focus, "-o", path, "-q"]) == 0
        assert Explanation.from_json(path).focus == place
    assert main([TEXT, "--target", "(0, 1)", *rest]) == 0
    assert Explanation.from_json(path).target.kind == "contrast"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([TEXT, "--method", "altie"], "Did you mean 'alti'"),
        ([TEXT, "--target", "7"], "target is 7"),
        ([TEXT, "--focus", "cheese"], "No token is 'cheese'"),
        ([TEXT, "--focus", "99"], "focus is 99"),
        ([TEXT, "--option", "q=1"], "No chosen method has the option 'q'"),
        ([TEXT, "--option", "gradient.of=logit"], "No chosen method"),
        ([TEXT, "--option", "p=7"], "p=7 is not possible"),
        ([TEXT, "--model", "no/such/model"], "Could not load the model"),
        ([TEXT, "-o", "out.docx"], "json, png"),
        ([TEXT, "-o", "no_such_folder/out.json"], "no folder"),
        (["   "], "empty"),
        (["word " * 2000], "tokens"),
        (["benchmark", "--data", "no_such.tsv"], "no dataset file"),
        (["benchmark", "--data", "x.tsv", "-o", "x.docx"], "ending"),
        (["benchmark", "--data", "x.tsv", "--metric", "beauty"], "no metric"),
    ],
)
def test_refusals(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert words in wrong(1, capsys, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-flag"],
        [TEXT, "more"],
        [TEXT, "--option", "p"],
        ["--model", "some/model"],
        ["benchmark"],
        ["benchmark", "--data", "x.tsv", "--workers", "0"],
        ["benchmark", "--data", "x.tsv", "--target", "other"],
        ["methods", "alti"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "usage:" in wrong(2, capsys, *arguments)


def test_an_unforeseen_error_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(demo, "load", fail)
    assert wrong(1, capsys, TEXT) == "mixwidget: RuntimeError: two lines\n"
    monkeypatch.setenv("MIXWIDGET_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main([TEXT])


def test_interrupt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "load", stop)
    assert main([TEXT]) == 130
    assert capsys.readouterr().err == "mixwidget: interrupted\n"


def test_methods(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [entry.id for entry in all_methods()]
    assert main(["methods", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert {row["id"] for row in known} == {entry.id for entry in all_methods()}
    assert all(row["formula"] and row["paper"] for row in known)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "texts.tsv"
    path.write_text("comment\tlabel\nnot bad\t1\na dull film\t0\nnever boring\t1\n")
    return path


def test_benchmark(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["benchmark", "--data", str(data), "--column", "text=comment", "-q"]
    given += ["--method", "alti", "--method", "random", "--metric", "aopc", "--limit", "2"]
    assert main(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["method", "metric", "mean", "stderr", "n"]
    assert [line.split()[0] for line in lines[1:]] == ["alti", "random"]
    for ending in ("csv", "tsv", "json"):
        path = data.with_name(f"table.{ending}")
        assert main([*given, "--per-example", "-o", str(path)]) == 0
        if ending == "json":
            table = pd.read_json(path)
        else:
            table = pd.read_csv(path, sep="\t" if ending == "tsv" else ",")
        assert len(table) == 2 + 4
        assert list(table["n"][:2]) == [2, 2]


def test_benchmark_tells_of_failures(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text("text\nnot bad\n" + "word " * 2000 + "\n")
    given = ["benchmark", "--data", str(data), "--method", "random", "--metric", "aopc", "-q"]
    assert main(given) == 0
    assert "1 values could not be computed" in capsys.readouterr().err
    assert main([*given, "--truncate"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_benchmark_with_workers(data: Path, tmp_path: Path) -> None:
    given = ["benchmark", "--data", str(data), "--column", "text=comment", "-q"]
    given += ["--method", "alti", "--metric", "aopc"]
    tables = []
    for workers in ("1", "2"):
        path = tmp_path / f"{workers}.csv"
        assert main([*given, "--workers", workers, "-o", str(path)]) == 0
        tables.append(pd.read_csv(path))
    pd.testing.assert_frame_equal(tables[0], tables[1], rtol=1e-5)


def test_colours_and_bars() -> None:
    model, tokenizer = demo.load()
    one = explain(model, "not bad at all , " * 8, "attcat", tokenizer=tokenizer)
    text = shaded(one, width=40)
    plain = re.sub(r"\033\[[0-9;]*m", "", text).splitlines()
    assert max(map(len, plain)) <= 40
    assert " ".join(plain).split() == [token.text for token in one.tokens]
    lines = bars(one, 60, "#", ">").splitlines()
    assert len(lines) == len(one.tokens)
    assert max(map(len, lines)) <= 60
    assert all(line.isascii() for line in lines)
    assert "█" not in picture(one, ascii=True)
    assert "\033" in picture(one, colour=True)
    assert len(strongest(one, 40)) <= 40


def test_what_is_cut_is_marked() -> None:
    model, tokenizer = demo.load()
    one = explain(model, "not bad at all", "alti", tokenizer=tokenizer)
    lines = bars(one, 60).splitlines()
    assert [line.endswith("▶") for line in lines] == [token == "[CLS]" for token in one.tokens]
    assert "█▶" not in lines[1]
    assert strongest(one).startswith("[CLS] 0.")


def test_errors_speak_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["word " * 2000, "-q"]) == 1
    assert "use --truncate" in capsys.readouterr().err
    (tmp_path / "x.tsv").write_text("comment\nnot bad\n")
    assert main(["benchmark", "--data", str(tmp_path / "x.tsv"), "-q"]) == 1
    assert "--column text=NAME" in capsys.readouterr().err
    assert main(["a", "-o", "x.docx"]) == 1
    assert "json, png, svg, pdf, csv." in capsys.readouterr().err


def test_a_word_that_is_nearly_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["method"]) == 0
    said = capsys.readouterr()
    assert "mixwidget methods" in said.err
    assert "predicts" in said.out
    assert main(["method", "--target", "negative", "-q"]) == 0
    assert "asked about negative" in capsys.readouterr().out


def test_benchmark_prints_single_examples(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["benchmark", "--data", str(data), "--column", "text=comment", "-q"]
    given += ["--method", "random", "--metric", "aopc", "--limit", "2"]
    assert main(given) == 0
    short = capsys.readouterr().out
    assert main([*given, "--per-example"]) == 0
    whole = capsys.readouterr().out
    assert whole.startswith(short)
    assert len(whole.splitlines()) == len(short.splitlines()) + 4


def test_values_are_read_as_meant() -> None:
    assert target_of("3") == 3
    assert target_of("positive") == "positive"
    assert target_of("'3'") == "3"
    assert target_of("[0, 1]") == (0, 1)
    assert target_of("True") == "True"
    known = ["alti", "hta"]
    given = [("p", "2"), ("ln2", "true"), ("hta.samples", "4")]
    assert options_for(given, known) == {"alti": {"p": 2, "ln2": True}, "hta": {"samples": 4}}
    with pytest.raises(InputError, match="hta: samples"):
        options_for([("alti.samples", "4")], known)
    assert set(PARSERS) == {"explain", "methods", "benchmark"}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_of_texts(tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is optional")
    data, out = tmp_path / "in.csv", tmp_path / f"out.{ending}"
    data.write_text('review,wanted\n"not bad, at all",negative\n,\na thin plot,\n')
    command = ["explain", "--data", str(data), "--out", str(out), "--method", "attcat"]
    assert main([*command, "--column", "text=review", "--column", "target=wanted"]) == 0
    told = capsys.readouterr().err
    assert "3/3" in told
    assert "1 text could not be explained" in told
    if ending == "jsonl":
        first, second, third = map(json.loads, out.read_text().splitlines())
        assert first["target"] == "negative"
        assert len(first["tokens"]) == len(first["scores"]) == 7
        assert second["error"].startswith("InputError: text is empty")
        assert third["text"] == "a thin plot"
        return
    frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert frame["text_id"].tolist() == [0] * 7 + [1] + [2] * 5
    assert frame["target"][0] == "negative"
    assert frame["error"].notna().tolist() == [False] * 7 + [True] + [False] * 5
    e = explain(demo.load()[0], "a thin plot", "attcat")
    np.testing.assert_allclose(frame["score"][8:], e.scores, atol=1e-5)


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        (["--out", "x.txt"], 1, "the ending must be .csv, .jsonl, .parquet"),
        ([], 2, "--data needs --out"),
        (["--out", "x.csv", "a text"], 2, "--data brings the texts"),
        (["--out", "x.csv"], 1, "No text is found in the columns body, wanted"),
    ],
)
def test_a_file_of_texts_said_wrongly(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    code: int,
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("body,wanted\na,b\n")
    assert main(["explain", "--data", "in.csv", *more]) == code
    assert why in capsys.readouterr().err
