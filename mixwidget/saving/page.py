"""A page of its own: the widget's bundle and all that is computed for one text.

The page needs nothing but itself: no kernel, no network. Its data is one JSON text,
`{"traits", "focused", "faithfulness", "beside", "arrays", "data"}`: the widget's traits; the
methods whose runs hold for one focus token only; what was measured, in the parts of
metrics/report.py, and the same of other models, by their place; the arrays as messages
(protocol.py) with their length in bytes; and those bytes, one after the other, as base64 of gzip.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import protocol
from ..errors import MixwidgetError
from ..explanation import plain_text
from ..protocol import PUSH_TOKENS, Message, Want, shrink
from ..session import Result, describe, logger, text_array
from .traits import traits_of

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..metrics import ReportPart as Part
    from ..models import Case
    from ..session import Shown

_STATIC = Path(__file__).parents[1] / "static"
_BYTES = 2_000_000  # packed: attention by head is coarser where all would take more,
_HEADS_BYTES = 250_000  # but it may take so much anyway
# Maps of long texts that take more, unpacked, are left out but for rows and overviews.
_MAPS_BYTES = 20_000_000
_ROWS = 16  # of the strongest tokens, besides the one that is read
_LEFT_OUT = (
    "Saved page. Of so long a text it holds the rows of the strongest tokens and overviews; whole "
    "maps need the notebook."
)
_READY = {
    "state": "ready",
    "message": "Saved page.",
    "hint": "Anything new needs the notebook.",
}
_STEPS = ("curve", "random")
_ABSENT = "It was not computed when this page was saved; that needs the notebook."


def measured(
    case: Case, explanations: Mapping[str, Explanation], progress: bool = True
) -> list[Part]:
    """The faithfulness of what a page shows, by method; a bar if it takes more than a moment.

    What cannot be measured is said on the page and does not keep it from being written.
    """
    from tqdm.auto import tqdm

    from ..metrics import SEEDS, faithfulness

    parts: list[Part] = []
    with tqdm(
        total=len(explanations) + SEEDS, desc="Faithfulness", delay=2, disable=not progress
    ) as bar:
        try:
            for part in faithfulness(case, list(explanations), explanations=explanations):
                # Of the band of random orders each part replaces the one before.
                parts = [p for p in parts if not p["part"] == part["part"] == "random"] + [part]
                bar.update(sum(p.get("seeds", 1) for p in parts if p["part"] in _STEPS) - bar.n)
        except Exception as error:
            logger.warning("Faithfulness could not be measured.", exc_info=error)
            message, _ = describe.in_words(error)
            return [{"part": "curve", "method": id, "error": message} for id in explanations]
    return parts


def page_of(case: Case, explanations: list[Explanation], progress: bool = True) -> bytes:
    """A page of explanations that were made without a view."""
    from ..methods import get_method

    results = []
    for one in explanations:
        result = Result(one.method, get_method(one.method), len(one.tokens), len(case.trace()))
        result.finish(one)
        results.append(result)
    parts = measured(case, {one.method: one for one in explanations}, progress)
    return make_page(case, results, traits_of(case, explanations), parts)


def page_of_view(shown: Shown, traits: Mapping[str, Any] | None, measure: bool) -> bytes:
    """A page of what a view shows, with these traits.

    Args:
        measure: measure the faithfulness of all of it; otherwise the page holds what the view
            was told last.
    """
    if traits is None:
        raise MixwidgetError("There is nothing to save yet: wait until it is computed.")

    def parts(one: Shown) -> list[Part]:
        return measured(one.case, one.aimed) if measure else one.faithfulness

    others = {place: (one.results, parts(one)) for place, one in shown.beside.items()}
    return make_page(shown.case, shown.results, traits, parts(shown), others)


def make_page(
    case: Case,
    results: list[Result],
    traits: Mapping[str, Any],
    faithfulness: list[Part],
    beside: Mapping[int, tuple[list[Result], list[Part]]] | None = None,
) -> bytes:
    """The page, as the bytes of its file. `beside` are results of other models."""
    if not results:
        raise MixwidgetError("There is nothing to save yet: wait until it is computed.")
    others = beside or {}
    held = [*results, *(result for found, _ in others.values() for result in found)]
    lean = sum(map(_maps_bytes, held)) > _MAPS_BYTES
    messages = [message for result in held for message in _arrays(result, lean)]
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)  # gzip
    packed = b"".join(packer.compress(data or b"") for _, data in messages)
    packed += packer.flush(zlib.Z_SYNC_FLUSH)
    heads = _of_text(case, max(_BYTES - len(packed), _HEADS_BYTES))
    packed += b"".join(packer.compress(data or b"") for _, data in heads) + packer.flush()
    content = {
        "traits": _saved(traits, results, lean) | _models(traits, others),
        "focused": [result.method.id for result in results if _one_focus(result)],
        "faithfulness": faithfulness,
        "beside": {place: parts for place, (_, parts) in others.items()},
        "arrays": [[content, len(data or b"")] for content, data in (*messages, *heads)],
        "data": base64.b64encode(packed).decode("ascii"),
    }
    return _document(plain_text(traits["text"]), json_text(content)).encode("utf-8")


def _saved(traits: Mapping[str, Any], results: list[Result], lean: bool) -> dict[str, Any]:
    """The traits of the page: what is not in it is said not to be there."""
    ids = {result.method.id for result in results}
    catalogue = [
        entry
        if entry["id"] in ids
        else {**entry, "available": False, "reason": entry["reason"] or _ABSENT}
        for entry in traits["catalogue"]
    ]
    compared = [id for id in traits["compared"] if id in ids]
    return {
        **traits,
        "catalogue": catalogue,
        "compared": compared,
        "runs": _runs(results),
        "status": {**_READY, "message": _LEFT_OUT} if lean else _READY,
    }


def _runs(results: list[Result]) -> dict[str, Any]:
    return {
        result.method.id: {
            "run": result.run,
            "state": "ready",
            "progress": 1.0,
            "seconds_left": None,
            "message": "",
            "done_layers": result.done_layers,
            **result.told,
        }
        for result in results
    }


def _models(
    traits: Mapping[str, Any], beside: Mapping[int, tuple[list[Result], list[Part]]]
) -> dict[str, Any]:
    """What is said of several models, with those runs of theirs that the page holds."""
    held = {place: _runs(results) for place, (results, _) in beside.items()}
    models = [
        {**entry, "runs": held.get(place, {})}
        for place, entry in enumerate(traits.get("models", ()))
    ]
    return {"models": models}


def _one_focus(result: Result) -> bool:
    """Whether a run holds for one focus token only. That is also where the prediction is read
    off in a language model, so another token has another target."""
    whole = result.explanation
    elsewhere = whole is not None and whole.target.position is not None
    return not result.follows_focus or (result.method.class_specific and elsewhere)


def _maps_bytes(result: Result) -> int:
    """Of layers and rollouts in half precision; short texts' are never left out."""
    long = result.method.yields == "maps" and result.tokens > PUSH_TOKENS
    return 4 * len(result.done_layers) * result.tokens**2 if long else 0


def _rows_of(result: Result) -> Iterator[Want]:
    """Rows of the token that is read and of the strongest."""
    whole = result.explanation
    if whole is None:
        return
    strongest = np.argsort(-np.abs(whole.scores), kind="stable")[:_ROWS]
    for focus in dict.fromkeys([whole.focus, *map(int, strongest)]):
        for of in ("layer", "rollout", *(("sum",) if focus == whole.focus else ())):
            yield Want(result.run, "rows", of=of, focus=focus)


def _arrays(result: Result, lean: bool = False) -> Iterator[Message]:
    """Everything that the browser may ask of a finished run; with `lean` not the whole maps of a
    long text."""
    lean = lean and _maps_bytes(result) > 0
    wants = [Want(result.run, "scores"), Want(result.run, "head_sums")]
    for layer in result.done_layers:
        if result.method.yields == "layer_scores":
            wants += [Want(result.run, what, layer) for what in ("layer_scores", "head_scores")]
        if result.method.yields != "maps":
            continue
        for what in ("layer", "rollout"):
            wants += [] if lean else [Want(result.run, what, layer)]
            if result.tokens > PUSH_TOKENS:
                wants.append(Want(result.run, "overview", layer, of=what))
    wants += _rows_of(result) if lean else []
    for want in wants:
        values = result.array(want)
        if values is not None:
            yield _rounded(protocol.array(want, values))


def _rounded(message: Message) -> Message:
    """Half floats with eight bits after the first: what is cut is below 0.2% of a value, and
    the rest packs far better."""
    content, data = message
    if content["dtype"] != "f2" or data is None:
        return message
    halves = np.frombuffer(data, dtype="<u2")
    finite = (halves & 0x7C00) != 0x7C00
    cut = np.where(finite & ((halves & 0x7FFF) < 0x7BFC), (halves + 2) & 0xFFFC, halves)
    return content, cut.astype("<u2").tobytes()


def _of_text(case: Case, limit: int) -> list[Message]:
    """Mixing ratios; what each head looks at, in about so many bytes, if heads see all tokens."""
    case.trace()
    want = Want("", "head_stats")
    stats = text_array(case, want)
    ratios = text_array(case, Want("", "mixing"))
    mixing = [] if ratios is None else [protocol.array(Want("", "mixing"), ratios)]
    if stats is None:
        return mixing
    wants = [Want("", "heads", layer) for layer in range(len(stats))]
    heads = [values for w in wants if (values := text_array(case, w)) is not None]
    bytes_ = [_in_bytes(values) for values in heads]
    size = len(zlib.compress(b"".join(data.tobytes() for data, _ in bytes_), 1))
    if size > limit:
        most = max(16, int(heads[0].shape[-1] * (limit / size) ** 0.5))
        bytes_ = [_in_bytes(shrink(values, most)) for values in heads]
    messages = [*mixing, protocol.array(want, stats)]
    for one, (values, scale) in zip(wants, bytes_, strict=True):
        content = protocol.array(one, values[:0].astype("f4"))[0]
        content |= {"dtype": "u1", "shape": list(values.shape), "scale": scale}
        messages.append((content, values.tobytes()))
    return messages


def _in_bytes(values: NDArray[Any]) -> tuple[NDArray[Any], float]:
    _, packed, scale = protocol.pack(values, "u1")
    return packed, scale


def json_text(value: Any) -> str:
    """JSON that stays one text wherever in a page it stands: nothing in it can end a script."""
    text = json.dumps(_finite(describe.plain(value)), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list) else value


_BODY_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; background: #f6f7f8; }
main { box-sizing: border-box; max-width: 1240px; margin: 0 auto; padding: 12px; }
@media (prefers-color-scheme: dark) { body { background: #0d0f11; } }
"""


def _document(text: str, data: str) -> str:
    script = (_STATIC / "widget.js").read_text("utf-8")
    style = (_STATIC / "widget.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    # Only this script runs, and nothing is fetched.
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    title = html.escape(text if len(text) <= 60 else f"{text[:57]}...")
    return f"""<!doctype html>
<html lang="en" data-mixwidget-page>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>mixwidget: {title}</title>
<style>{_BODY_STYLE}{style}</style>
</head>
<body>
<main><noscript>This page draws its picture by a script of its own.</noscript></main>
<script type="application/json" id="mixwidget-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""
