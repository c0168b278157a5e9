"""The wire format. js/test/fixtures/wire.json is read by both sides.

python -m tests.unit.test_protocol    write that file again
"""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixwidget import protocol
from mixwidget.errors import InputError
from mixwidget.protocol import Message, Want, unpack

FIXTURE = Path(__file__).parents[2] / "js" / "test" / "fixtures" / "wire.json"


def samples() -> list[tuple[str, Message]]:
    """A message of every kind of array, with values that are easy to get wrong."""
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(5), 5)
    signed = random.normal(size=(4, 4)) * 1e-4
    signed[0, 0] = 0.0
    long = random.random((200, 200)) ** 8
    named = [
        ("layer in half floats", Want("alti-1", "layer", 0), shares, 0),
        ("rollout with a large scale", Want("globenc-2", "rollout", 11), shares * 1e19, 1),
        ("signed and small", Want("gae-3", "layer", 2), signed, 2),
        ("subnormal halves", Want("gae-3", "sum", 2), np.array([[1.0, 1e-7], [3e-8, 0.0]]), 3),
        ("all zero", Want("gae-3", "layer", 1), np.zeros((2, 2)), 4),
        ("rows in floats", Want("alti-1", "rows", of="rollout", focus=3), shares[:3], 5),
        ("scores", Want("cat-4", "scores", focus=0), np.array([-1.5, 0.25, 3e-20]), 6),
        ("layer scores", Want("cat-4", "layer_scores", 3), np.array([0.1, -0.2]), 7),
        (
            "overview in bytes",
            Want("alti-1", "overview", 0, of="layer"),
            protocol.shrink(long, 8),
            8,
        ),
        ("heads", Want("", "heads", 0), random.dirichlet(np.ones(3), (2, 3)), -1),
        ("head stats", Want("", "head_stats"), random.random((2, 2, 6)), -1),
        ("one token", Want("alti-1", "layer", 0), np.ones((1, 1)), 9),
        ("of another model", Want("1:alti-1", "scores"), np.array([0.75, 0.25]), 0),
    ]
    return [(name, protocol.array(want, values, seq=seq)) for name, want, values, seq in named]


def fixture() -> dict[str, Any]:
    messages = []
    for name, (content, data) in samples():
        assert data is not None
        values = [float(value) for value in unpack(content, data).ravel()]
        buffer = base64.b64encode(data).decode()
        messages.append({"name": name, "content": content, "buffer": buffer, "values": values})
    others = [
        protocol.done("a-1", (Want("alti-1", "rows", of="sum", focus=2),)),
        protocol.failed("a-2", "The text is empty.", "Give it a word."),
        protocol.cancelled("a-3"),
        protocol.file("a-4", "x.json", "application/json", b"{}"),
        protocol.faithfulness("a-5", {"part": "curve", "method": "x", "error": "no such method"}),
    ]
    return {"version": protocol.VERSION, "messages": messages, "others": [c for c, _ in others]}


def test_the_fixture_is_what_python_writes() -> None:
    assert json.loads(FIXTURE.read_text()) == fixture()


@pytest.mark.parametrize("entry", fixture()["messages"], ids=lambda e: e["name"])
def test_the_fixture_reads_back(entry: dict[str, Any]) -> None:
    values = unpack(entry["content"], base64.b64decode(entry["buffer"]))
    assert list(values.shape) == entry["content"]["shape"]
    np.testing.assert_allclose(values.ravel(), np.float32(entry["values"]), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 1e-7), ("f2", 1e-3), ("u1", 1 / 255)])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e19])
def test_numbers_survive_the_wire(dtype: Any, tolerance: float, size: float) -> None:
    values = np.random.default_rng(1).random((7, 7)) * size
    dtype, packed, scale = protocol.pack(values, dtype)
    content = {"dtype": dtype, "shape": [7, 7], "scale": scale}
    read = unpack(content, packed.tobytes())
    np.testing.assert_allclose(read, values, atol=tolerance * size)


def test_bytes_are_a_copy() -> None:
    values = np.ones((3, 3), dtype=np.float32)
    content, data = protocol.array(Want("r", "rows"), values)
    values[:] = 7
    assert data is not None
    assert (unpack(content, data) == 1).all()


def test_not_a_number_stays_one() -> None:
    content, data = protocol.array(Want("r", "layer", 0), np.array([[np.nan, 2.0], [1.0, 0.0]]))
    assert data is not None
    np.testing.assert_array_equal(unpack(content, data), [[np.nan, 2.0], [1.0, 0.0]])


@pytest.mark.parametrize("shape", [(12, 512, 512), (16, 1024, 1024), (3000, 3000)])
def test_no_message_is_too_large(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).random(shape, dtype=np.float32)
    content, data = protocol.array(Want("", "heads", 0), values)
    assert data is not None
    assert len(data) <= protocol.MAX_BYTES
    assert content["shape"][:-2] == list(shape[:-2])


def test_shrinking_keeps_the_largest() -> None:
    values = np.zeros((200, 200))
    values[150, 3], values[10, 199] = 5.0, -7.0
    small = protocol.shrink(values)
    assert small.shape == (96, 96)
    assert (small.max(), small.min()) == (5.0, -7.0)
    assert protocol.shrink(values[:50, :50]).shape == (50, 50)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "need",
        {},
        {"kind": "dance", "id": "1"},
        {"kind": "need", "id": "1"},
        {"kind": "need", "id": "1", "wants": [{"what": "everything", "run": ""}]},
        {"kind": "need", "id": "1", "wants": [{"what": "layer", "run": "r"}]},
        {"kind": "need", "id": "1", "wants": [{"what": "layer", "run": "r", "layer": "2"}]},
        {"kind": "need", "id": "1", "wants": [{"what": "rows", "run": "r", "of": "product"}]},
        {"kind": "cancel", "id": "1", "v": 2},
        {"kind": "measure", "id": "1"},
        {"kind": "measure", "id": "1", "runs": ["alti"]},
        {"kind": "measure", "id": "1", "runs": {"alti": "alti-1"}, "focus": "first"},
    ],
)
def test_what_is_no_request_is_refused(content: Any) -> None:
    with pytest.raises(InputError):
        protocol.parse(content)


def test_requests_are_read() -> None:
    want = {"run": "r", "what": "rows", "of": "sum", "focus": 2}
    request = protocol.parse({"kind": "need", "id": "x", "v": 1, "wants": [want]})
    assert request.wants == (Want("r", "rows", None, "sum", 2),)
    assert protocol.parse({"kind": "cancel", "id": "x", "v": 1}).run is None
    assert protocol.parse({"kind": "cancel", "id": "x", "request": "y"}).request == "y"
    assert protocol.parse({"kind": "rerun", "id": "x", "method": "alti"}).method == "alti"
    asked = {"kind": "measure", "id": "x", "runs": {"b": "b-1", "a": "a-1"}, "target": [0, 1]}
    request = protocol.parse({**asked, "focus": 3})
    assert list(request.runs.items()) == [("b", "b-1"), ("a", "a-1")]
    assert (request.target, request.focus, request.by) == ([0, 1], 3, "delete")


def test_the_pace_is_kept_by_all_threads() -> None:
    pace = protocol.Pace(most=20)
    begin = time.monotonic()
    threads = [threading.Thread(target=lambda: [pace.wait() for _ in range(15)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.9 < time.monotonic() - begin < 5


def test_all_of_a_measurement_is_asked_for_in_so_many_words() -> None:
    asked = {"kind": "measure", "id": "m", "runs": {"alti": "alti-1"}, "focus": 0}
    assert protocol.parse(asked).whole is False
    assert protocol.parse({**asked, "whole": True}).whole is True
    assert protocol.parse({**asked, "whole": "yes"}).whole is False


if __name__ == "__main__":
    FIXTURE.parent.mkdir(parents=True, exist_ok=True)
    FIXTURE.write_text(json.dumps(fixture(), indent=1) + "\n")
