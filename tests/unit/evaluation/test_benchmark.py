"""`benchmark`: datasets, tables, executors, crashes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import mixwidget
from mixwidget import benchmark, demo, metrics
from mixwidget.engine import prepare
from mixwidget.errors import InputError
from mixwidget.evaluation import WorkerLostError
from mixwidget.evaluation.examples import Example, read_examples
from tests.lib import pools, tiny

TEXTS = [
    *["the film is not bad .", "a good plot", "boring", "we saw it and it was deep , not thin"],
    *["the acting is good", "never boring", "bad , bad film", "a deep film", "it was a film"],
]
METHODS = ["raw_attention", "alti", "random"]


@pytest.fixture(scope="module")
def model():
    return demo.load()[0]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(model, dataset=TEXTS, **options) -> pd.DataFrame:
    options = {"methods": METHODS, "metrics": ["aopc", "sufficiency"], "chunk_size": 3, **options}
    return benchmark(model, dataset, progress=False, **options)


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["method", "metric", "mean", "stderr", "n"]]


@pytest.fixture(scope="module")
def here(model):
    return run(model)


def test_one_row_for_each_method_and_metric(model, here):
    assert list(zip(here.method, here.metric, strict=True)) == [
        (method, metric) for method in METHODS for metric in ("aopc", "sufficiency")
    ]
    assert (here.n == len(TEXTS)).all()
    assert (here.errors == 0).all()
    assert list(here.better) == ["higher", "lower"] * 3
    values = []
    for text in TEXTS:
        case = prepare(model, text)
        values.append(metrics.aopc(metrics.explain_case(case, "alti"), case))
    row = here[(here.method == "alti") & (here.metric == "aopc")].iloc[0]
    assert row["mean"] == pytest.approx(np.mean(values), abs=1e-6)
    assert row["stderr"] == pytest.approx(np.std(values, ddof=1) / 3, abs=1e-6)


def test_rows_for_each_example_on_request(model, here):
    frame = run(model, per_example=True)
    pd.testing.assert_frame_equal(numbers(frame[: len(here)]), numbers(here))
    single = frame[frame.example.notna()]
    assert len(single) == len(TEXTS) * len(here)
    mine = single[(single.method == "alti") & (single.metric == "aopc")]
    assert list(mine.example) == list(range(len(TEXTS)))
    assert list(mine.text) == TEXTS
    assert mine.value.mean() == pytest.approx(frame[frame.method == "alti"]["mean"].iloc[0])


def test_a_failing_example_is_a_row_with_its_error(model):
    long = "bad " * 1000
    frame = run(model, ["a good film", "", long, "boring"], methods=["alti"], metrics=["aopc"])
    assert list(frame.n) == [2, 0, 0]
    assert frame.errors.iloc[0] == 2
    assert list(frame.example[1:]) == [1, 2]
    assert "InputError: text is empty" in frame.error.iloc[1]
    assert "TextTooLongError" in frame.error.iloc[2]
    cut = run(model, [long], methods=["alti"], metrics=["aopc"], truncate=True)
    assert list(cut.n) == [1]


def test_a_metric_that_does_not_apply_says_why_once(model):
    frame = run(model, TEXTS[:2], methods=["alti", "gradient"], metrics=["kendall"])
    assert list(frame.n) == [0, 2]
    assert list(frame.errors) == [0, 0]
    assert "whatever the class" in frame.error.iloc[0]
    assert frame.error.isna().iloc[1]


def test_options_and_labels_of_methods_and_metrics(model):
    frame = run(
        model,
        TEXTS[:2],
        methods={"l1": "alti", "l2": ("alti", {"p": 2})},
        metrics=["aopc", ("aopc", {"as_released": True, "by": "pad"})],
    )
    assert list(frame.method) == ["l1", "l1", "l2", "l2"]
    assert list(frame.metric[:2]) == ["aopc", "aopc(as_released=True, by=pad)"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["altti"]}, "Did you mean 'alti'"),
        ({"metrics": ["aopcc"]}, "Did you mean 'aopc'"),
        ({"methods": [("alti", {"no": 1})]}, "has no option 'no'"),
        ({"metrics": [("aopc", {"no": 1})]}, "has no option 'no'"),
        ({"methods": ["alti", "alti"]}, "twice"),
        ({"methods": []}, "at least one"),
        ({"methods": [3]}, "not a method"),
        ({"dataset": []}, "empty"),
        ({"dataset": 3}, "dataset is int"),
        ({"dataset": {"train": []}}, "one split"),
        ({"dataset": "no/such/file.tsv"}, "no dataset file"),
        ({"dataset": [{"words": "a"}]}, "no text among its columns words"),
        ({"target": "best"}, "target is"),
        ({"chunk_size": 0}, "at least 1"),
    ],
)
def test_wrong_input_is_refused_before_any_work(model, options, message):
    with pytest.raises(InputError, match=message):
        run(model, **options)


def test_every_form_of_a_dataset(tmp_path):
    tsv = tmp_path / "a.tsv"
    tsv.write_text('sentence\tlabel\nan "odd film\t1\nnull\t0\n', encoding="utf-8")
    table = tmp_path / "a.csv"
    table.write_text('text,text_pair\n"a, b",c\n', encoding="utf-8")
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps({"premise": "a", "hypothesis": "b", "label": 2}) + "\n\n")
    assert read_examples(["a", "b"]) == [Example("a"), Example("b")]
    assert read_examples([("a", 1)]) == [Example("a", label=1)]
    assert read_examples([("a", "b")]) == [Example("a", "b")]
    assert read_examples([("a", "Positive")], labels=lambda: ["positive"]) == [
        Example("a", label="Positive")
    ]
    assert read_examples([("a", "b", 0)]) == [Example("a", "b", 0)]
    assert read_examples(tsv) == [Example('an "odd film', label=1), Example("null", label=0)]
    assert read_examples(str(table)) == [Example("a, b", "c")]
    assert read_examples(lines) == [Example("a", "b", 2)]
    odd = "one\u2028two\x85three"  # separators of lines that are none in a .jsonl
    lines.write_text(json.dumps({"text": odd}, ensure_ascii=False) + "\n", encoding="utf-8")
    assert read_examples(lines) == [Example(odd)]
    frame = pd.DataFrame({"review": ["a"], "label": [1]})
    assert read_examples(frame) == [Example("a", label=1)]
    assert read_examples([{"comment": "a"}], {"text": "comment"}) == [Example("a")]
    with pytest.raises(InputError, match="no column 'body'"):
        read_examples([{"comment": "a"}], {"text": "body"})
    (tmp_path / "a.txt").write_text("a film")
    with pytest.raises(InputError, match="ending"):
        read_examples(tmp_path / "a.txt")
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        read_examples(tmp_path / "broken.jsonl")


def test_a_pair_that_is_a_number_is_no_text():
    """BLiMP numbers its pairs of sentences in a column of that name."""
    row = {"masked": "he [MASK] .", "pair": "0"}
    assert read_examples([row])[0].text_pair is None
    assert read_examples([{"text": "a", "pair": "b"}])[0].text_pair == "b"
    assert read_examples([{"text": "a", "text_pair": "42"}])[0].text_pair == "42"
    assert read_examples([row], {"text_pair": "pair"})[0].text_pair == "0"  # told to


def test_a_correlation_that_is_not_defined_is_no_error(model):
    frame = benchmark(model, ["boring", TEXTS[0]], ["alti"], ["blank_out_rho"], progress=False)
    assert len(frame) == 1
    assert (frame["n"][0], frame["errors"][0], frame["error"][0]) == (1, 0, None)
    alone = benchmark(model, ["boring"], ["alti"], ["blank_out_rho"], progress=False)
    assert alone["n"][0] == 0
    assert "undefined" in alone["error"][0]
    single = benchmark(
        model, ["boring"], ["alti"], ["blank_out_rho"], per_example=True, progress=False
    )
    assert "undefined" in single["error"][1]


def test_a_datasets_dataset(tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    made = datasets.Dataset.from_dict({"sentence": ["a", "b"], "label": [0, 1]})
    assert read_examples(made) == [Example("a", label=0), Example("b", label=1)]
    with pytest.raises(InputError, match="one split"):
        read_examples(datasets.DatasetDict({"train": made}))


def test_cues_of_agreement_data():
    row = {
        "masked": "The films near it [MASK] bad .",
        "target": "is",
        "foil": "was",
        "cue_indices": [1],
    }
    (example,) = read_examples([row])
    assert example.target == ("is", "was")
    assert [example.text[a:b] for a, b in example.cues] == ["films"]
    named = read_examples([{"text": "a good film", "cues": ["good", (0, 1)]}])[0]
    assert [named.text[a:b] for a, b in named.cues] == ["good", "a"]
    frame = run(
        tiny.model("bert", "MaskedLM"),
        [{**row, "masked": "the films is [MASK] bad"}],
        tokenizer=tiny.tokenizer(),
        methods=["raw_attention"],
        metrics=["cue_dot", "cue_ap", "probes_needed", ("cue_dot", {"layer": 0}), "blank_out_rho"],
    )
    assert list(frame.n) == [1] * 5
    e = mixwidget.explain(
        tiny.model("bert", "MaskedLM"),
        "the films is [MASK] bad",
        "raw_attention",
        tokenizer=tiny.tokenizer(),
    )
    assert frame["mean"].iloc[0] == pytest.approx(metrics.cue_dot(e, [2, 3]), abs=1e-6)


def test_answers_to_questions():
    context = "the film is bad and the plot is thin"
    squad = {
        "question": "is the plot good",
        "context": context,
        "answers": {"text": ["thin"], "answer_start": [context.index("thin")]},
    }
    (example,) = read_examples([squad])
    assert context[slice(*example.answer)] == "thin"
    assert read_examples([{"question": "a", "context": context, "answer": "thin"}])[0].answer == (
        example.answer
    )
    assert read_examples([{**squad, "answers": {"text": [], "answer_start": []}}])[0].answer is None
    model, tokenizer = tiny.model("bert", "QuestionAnswering"), tiny.tokenizer()
    metric = ("precision_at_k", {"k": 3})
    frame = run(model, [squad], tokenizer=tokenizer, methods=["raw_attention"], metrics=[metric])
    e = mixwidget.explain(
        model, squad["question"], "raw_attention", tokenizer=tokenizer, text_pair=context
    )
    place = [t.position for t in e.tokens if t == "thin"]
    assert frame["mean"][0] == metrics.precision_at_k(e, place, k=3)
    asked = {"tokenizer": tokenizer, "methods": ["raw_attention"], "metrics": [metric]}
    of_answer = run(model, [squad], target="label", **asked)  # the right one, whatever it predicts
    gold = mixwidget.explain(
        model,
        squad["question"],
        "raw_attention",
        tokenizer=tokenizer,
        text_pair=context,
        target=(place[0], place[0]),
    )
    assert gold.focus == place[0]
    assert of_answer["mean"][0] == metrics.precision_at_k(gold, place, k=3)
    with pytest.raises(InputError, match="not in the text"):
        read_examples([{"text": "a", "answer": "b"}])


def test_labels_can_be_the_target(model):
    # Of two classes one gains what the other loses, and raw attention ranks alike for both.
    texts = [(text, 0) for text in TEXTS[:3]] + [(text, "positive") for text in TEXTS[:3]]
    rows = run(model, texts, methods=["raw_attention"], target="label", per_example=True)
    mine = rows[(rows.metric == "aopc") & rows.example.notna()].value.to_numpy()
    np.testing.assert_allclose(mine[:3], -mine[3:], atol=1e-5)


def test_neither_order_nor_chunks_nor_executor_matter(model, here):
    for options in (
        {"dataset": TEXTS[::-1]},
        {"chunk_size": 1},
        {"executor": pools.Backwards()},
    ):
        pd.testing.assert_frame_equal(numbers(run(model, **options)), numbers(here))
    with ThreadPoolExecutor(2) as executor:
        pd.testing.assert_frame_equal(numbers(run(model, executor=executor)), numbers(here))


def test_seeds_matter_to_random_alone(model, here):
    other = run(model, seed=1)
    same = other.method != "random"
    pd.testing.assert_frame_equal(numbers(other[same]), numbers(here[same]))
    assert not np.allclose(other[~same]["mean"], here[~same]["mean"])


def test_the_cache_is_of_the_model_and_the_question(model, here, tmp_path):
    first = run(model, TEXTS[:6], cache=tmp_path)
    again = pools.Noting(ThreadPoolExecutor(1), _folder(tmp_path, "notes"))
    pd.testing.assert_frame_equal(
        numbers(run(model, cache=tmp_path, executor=again)), numbers(here)
    )
    assert again.finished() == sorted(TEXTS[6:])
    assert len(first) == len(here)
    (changed := demo.load()[0]).classifier.bias.data += 1
    fresh = pools.Noting(ThreadPoolExecutor(1), _folder(tmp_path, "fresh"))
    run(changed, cache=tmp_path, executor=fresh)
    assert fresh.finished() == sorted(TEXTS)


def test_a_file_cut_off_by_a_crash_is_computed_again(model, here, tmp_path):
    run(model, cache=tmp_path)
    files = sorted(tmp_path.glob("*/*.json"))
    files[0].write_text(files[0].read_text()[:50])
    pd.testing.assert_frame_equal(numbers(run(model, cache=tmp_path)), numbers(here))


def _folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


@pytest.mark.slow
def test_process_pool_by_bytes_and_by_name(model, here):
    with pools.spawned(2) as executor:
        sent = run(model, executor=executor)
        named = run(demo.FOLDER, executor=executor, per_example=True)
    pd.testing.assert_frame_equal(numbers(sent), numbers(here), rtol=1e-5)
    pd.testing.assert_frame_equal(numbers(named[: len(here)]), numbers(here), rtol=1e-5)


@pytest.mark.slow
def test_what_was_finished_survives_a_killed_worker(model, here, tmp_path):
    cache = tmp_path / "cache"
    with pools.spawned(1) as pool:
        dying = pools.Noting(pool, _folder(tmp_path, "before"), killer=TEXTS[4])
        with pytest.raises(WorkerLostError, match="goes on where this one stopped"):
            run(model, executor=dying, cache=cache)
    assert dying.finished() == sorted(TEXTS[:3])
    with pools.spawned(1) as pool:
        second = pools.Noting(pool, _folder(tmp_path, "after"))
        frame = run(model, executor=second, cache=cache)
    assert second.finished() == sorted(TEXTS[3:])  # the finished chunk is not computed again
    pd.testing.assert_frame_equal(numbers(frame), numbers(here), rtol=1e-5)


@pytest.mark.slow
def test_workers_that_do_not_see_our_files_are_sent_the_model(model, here, monkeypatch):
    from mixwidget.evaluation import campaign

    real = campaign.reference

    def hidden(*arguments):
        ref, data = real(*arguments)
        Path(ref.path).unlink()
        return ref, data

    monkeypatch.setattr(campaign, "reference", hidden)
    with pools.spawned(1) as executor:
        pd.testing.assert_frame_equal(
            numbers(run(model, executor=executor)), numbers(here), rtol=1e-5
        )


@pytest.mark.slow
def test_a_dask_cluster(model, here):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        frame = run(model, executor=client.get_executor())
    pd.testing.assert_frame_equal(numbers(frame), numbers(here), rtol=1e-5)
