"""Whether to believe a map on one text: how many measures are clear of chance, and what flips.

One text says little, and one measure of four less: the words claim no more than the numbers do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .evidence import Evidence
from .table import FAITHFULNESS, get_metric

Part = dict[str, Any]

# Fewer tokens have so few orders that random ones are often as good by luck.
_FEW = 5
# A prediction that moves less than this whatever is removed tells orders apart by noise.
_FLAT = 0.05
# A measure is clear of chance if it beats this share of the random orders.
_CLEAR = 0.95
# Closer values are the same: sums in another order.
_SAME = 1e-9
# Up to so many tokens are named that together turn the answer over.
_NAMED = 3
_NUMBERS = ("none", "one", "two", "three", "four")


def beaten(values: Mapping[str, float | None], floor: Part | None) -> dict[str, list[int]]:
    """By measure, how many random orders a method beats, and of how many.

    Of those that come out the same it beats every other one: where one word decides, luck finds
    it first as surely as the best method does.
    """
    found = {}
    for id in FAITHFULNESS:
        value = values.get(id)
        random = [] if floor is None else floor["metrics"][id]["values"]
        if value is None or not random:
            continue
        sign = 1 if get_metric(id).better == "higher" else -1
        apart = [sign * (value - one) for one in random]
        worse = sum(gap > _SAME for gap in apart)
        same = sum(abs(gap) <= _SAME for gap in apart)
        found[id] = [worse + same // 2, len(random)]
    return found


def settled(id: str, curves: Sequence[Part], random: Sequence[float], seeds: int) -> bool:
    """Whether random orders still to come cannot change which methods are clear of chance by a
    measure."""
    values = {other: list(random) if other == id else [] for other in FAITHFULNESS}
    floor: Part = {"metrics": {other: {"values": some} for other, some in values.items()}}
    for part in curves:
        if part["metrics"][id] is None:
            continue
        if not random:
            return False
        worse, count = beaten({id: part["metrics"][id]}, floor)[id]
        if worse < _CLEAR * seeds <= worse + seeds - count:
            return False
    return True


def judge(shared: Evidence, title: str, curve: Part, floor: Part | None, moves: float) -> Part:
    """One method on one text.

    Args:
        curve: its part of the report.
        floor: the part of the random orders; with "early" no more were asked than settle it.
        moves: the furthest that the probability went, whatever was removed.

    Returns:
        level ("confirmed", "partly", "chance", "unclear"), headline, text, beats.
    """
    beats = beaten(curve["metrics"], floor)
    tokens, target = len(shared.removable), _named(shared)
    said = {"beats": beats}
    if tokens < _FEW:
        words = f"With only {tokens} token{'s' * (tokens != 1)} to remove, no order can stand out."
        return {"level": "unclear", "headline": "This text cannot tell.", "text": words, **said}
    if not beats:
        words = f"No random order was measured beside {title}."
        return {"level": "unclear", "headline": "Not compared.", "text": words, **said}
    if moves < _FLAT:
        words = (
            f"The probability of {target} hardly moves (by {moves:.2f} at most) whatever is "
            "removed."
        )
        return {"level": "unclear", "headline": "This text cannot tell.", "text": words, **said}
    clear = sum(worse >= _CLEAR * count for worse, count in beats.values())
    early = floor is not None and bool(floor.get("early"))
    parts = [_effect(shared, curve), _measures(beats, clear, early), _empty(shared, curve)]
    if clear == 0:
        level, headline = "chance", "No better than chance here."
    elif 2 * clear > len(beats):
        level, headline = "confirmed", "Confirmed."
    else:
        level, headline = "partly", "Partly confirmed."
    return {"level": level, "headline": headline, "text": " ".join(filter(None, parts)), **said}


def _effect(shared: Evidence, curve: Part) -> str:
    """What removing the first tokens does to the answer."""
    order, values = curve["order"], curve["probabilities"]
    counts, target = curve["counts"], _named(shared)
    names = [f"“{shared.case.encoding.tokens[i].text.strip()}”" for i in order]
    two = shared.case.source.task == "classification" and len(shared.case.source.labels) == 2
    half = len(order) / 2
    flip = next(
        (
            n
            for n, p in zip(counts, values, strict=True)
            if n <= half and (p < 0.5) != (values[0] < 0.5)
        ),
        None,
    )
    if two and flip is not None:
        if flip <= _NAMED:
            return f"Without {_listed(names[:flip])} the answer flips."
        return f"The answer flips when {flip} of {len(order)} tokens are gone."
    place = next((k for k, n in enumerate(counts) if n > 0), None)
    if place is None:
        return ""
    gone = counts[place]
    what = _listed(names[:gone]) if gone <= _NAMED else f"the first {gone} tokens"
    how = "falls" if values[place] < values[0] else "rises"
    each = " a token" if shared.logs else ""
    far = f"from {percent(values[0])} to {percent(values[place])}{each}"
    return f"Without {what}, {target} {how} {far}."


def _named(shared: Evidence) -> str:
    """What is predicted; an answer may be long, and is read above."""
    return "the answer" if shared.logs else shared.target.label


def _measures(beats: Mapping[str, Sequence[int]], clear: int, early: bool) -> str:
    count, of = len(beats), _number(len(beats))
    if clear == 0:
        worse, all_ = beats.get("comprehensiveness") or next(iter(beats.values()))
        hurt = all_ - worse
        verb = "hurts" if hurt == 1 else "hurt"
        of = f"the first {all_}" if early else str(all_)
        return f"{hurt} of {of} random removals {verb} the answer as much."
    if clear == count:
        return f"All {of} measures are clear of chance."
    isnt = f"{_number(count - clear)} {'is' if count - clear == 1 else 'are'} not"
    are = "measure" if clear == 1 else "measures"
    verb = "is" if clear == 1 else "are"
    return f"{_number(clear).capitalize()} {are} of {of} {verb} clear of chance, {isnt}."


def _empty(shared: Evidence, curve: Part) -> str:
    """What is left when no word is: a text that already counts as the answer explains little."""
    if shared.case.source.task != "classification" or curve["counts"][-1] != len(shared.removable):
        return ""
    left = curve["probabilities"][-1]
    return f"An empty text counts as {percent(left)} {shared.target.label}."


def percent(share: float) -> str:
    value = 100 * share
    if value >= 0.95 or value == 0:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.05 else "less than 0.1 %"


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
