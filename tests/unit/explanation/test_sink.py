"""Tokens that take most whatever the text are named and set aside, with their share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mixwidget import Explanation
from mixwidget.cli.terminal import picture
from mixwidget.tokens import Target, Token


def tokens(*pieces: str) -> list[Token]:
    return [
        Token(piece, id=i, position=i, special=piece.startswith("<"), word=i, segment=0,
              start=None, end=None, text=piece.strip("<>"))
        for i, piece in enumerate(pieces)
    ]  # fmt: skip


def made(pieces: list[Token], *scores: float) -> Explanation:
    values = np.array(scores, dtype=np.float32)
    target = Target("token", 0, "x", len(pieces) - 1)
    return Explanation("random", pieces, len(pieces) - 1, target, None, None, values)


BEGUN = tokens("<s>", "Anna", "lives", "in")
PLAIN = tokens("The", "red", "box", "is")


@pytest.mark.parametrize(
    ("pieces", "scores", "found"),
    [
        (BEGUN, (0.8, 0.1, 0.05, 0.05), [0]),
        (BEGUN, (0.3, 0.1, 0.1, 0.5), []),  # most is where it is read
        (BEGUN, (0.3, 0.5, 0.1, 0.1), []),  # a word has more
        (PLAIN, (0.8, 0.1, 0.05, 0.05), [0]),
        (PLAIN, (0.8, 0.1, -0.05, 0.05), []),  # with a sign the first word may speak
        (BEGUN, (-0.8, 0.1, -0.05, 0.05), [0]),
        (BEGUN, (0.0, 0.0, 0.0, 0.0), []),
        (tokens("<s>", "<t>", "a", "b"), (0.3, 0.4, 0.2, 0.1), [1, 0]),
        (tokens("<s>", "<t>", "a", "b"), (0.95, 0.03, 0.01, 0.01), [0]),
    ],
)
def test_sinks(pieces: list[Token], scores: tuple[float, ...], found: list[int]) -> None:
    sink = made(pieces, *scores).sink
    assert sink.positions == found
    assert list(sink) == [pieces[i] for i in found]
    assert all(i in sink and pieces[i] in sink for i in found)
    assert sink.share == pytest.approx(sum(abs(scores[i]) for i in found))


def test_what_is_set_aside_is_said_and_does_not_pale_the_rest() -> None:
    e = made(BEGUN, 0.8, 0.1, 0.05, 0.05)
    alone = made(BEGUN, 0.0, 0.1, 0.05, 0.05)
    assert pickle.loads(pickle.dumps(e)).sink == e.sink
    shown, beside = e._repr_html_(), alone._repr_html_()
    assert "80%" in shown
    assert "dashed" in shown
    assert "dashed" not in beside

    def colours(text: str) -> list[str]:
        return [part.split(";")[0] for part in text.split("<span style")[1:]]

    assert colours(shown)[1:] == colours(beside)[1:]
    assert "set aside, whatever the text: s 80%" in picture(e)
    assert "set aside" not in picture(alone)
    said = " ".join(t.get_text() for t in e.plot().texts)
    assert "beside the scale, whatever the text" in said
    assert "80%" in said
