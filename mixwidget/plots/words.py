"""Sentences that say what a figure shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UnknownMethodError, UnsupportedMethodError
from ..methods import get_method

if TYPE_CHECKING:
    from ..explanation import Explanation, Sink
    from ..methods import Method

_NAMED = 3  # tokens beside the scale


def entry(explanation: Explanation) -> Method | None:
    """The method's entry in the registry; None for one that is not registered here."""

    try:
        return get_method(explanation.method)
    except UnknownMethodError:
        return None


def name(explanation: Explanation) -> str:
    """The method's title, with those of its options that are not the default."""
    method = entry(explanation)
    if method is None:
        return explanation.method
    known = {param.name: param.default for param in method.params}
    told = [
        f"{key}={_brief(value)}"
        for key, value in explanation.params.items()
        if key in known and not _same(value, known[key])
    ]
    return f"{method.title} ({', '.join(told)})" if told else method.title


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _brief(value: object) -> str:
    return str(value) if isinstance(value, str | int | float | bool) else "…"


def signed(explanation: Explanation) -> bool:
    """Whether values may lie on both sides of zero."""
    method = entry(explanation)
    return method.signed if method is not None else bool((explanation.scores < 0).any())


def class_specific(explanation: Explanation) -> bool:
    method = entry(explanation)
    return method is not None and method.class_specific


def quoted(text: str) -> str:
    """A token as it stands in a sentence: [CLS] and its like are seen to be no words."""
    return text if getattr(text, "special", False) else f"“{getattr(text, 'text', text).strip()}”"


def need_maps(explanation: Explanation, kind: str) -> None:
    if explanation.maps is None:
        other = "layers" if explanation.layer_scores is not None else "text"
        raise UnsupportedMethodError(
            f"{explanation.method} scores tokens and has no maps, so there is no {kind} to draw; "
            f'use kind="{other}".'
        )


def up_to(layer: int) -> str:
    return "layer 0" if layer == 0 else f"layers 0 to {layer}"


def map_meaning(explanation: Explanation, how: str, layer: int, what: str) -> str:
    """What a map, or a row of it, says: `what` is the token it is about."""
    weighed = f", as far as it matters for {target(explanation)}" * class_specific(explanation)
    if how == "layer":
        below = "the input" if layer == 0 else f"what layer {layer - 1} put out"
        return f"what went into {what} in layer {layer} alone, from {below}{weighed}"
    if how == "rollout":
        return f"what went into {what} at layer {layer}, from the input{weighed}"
    return f"what went into {what} in {up_to(layer)}, added up{weighed}"


def target(explanation: Explanation) -> str:
    label = explanation.target.label
    return quoted(label) if label else "the prediction"


def score_meaning(explanation: Explanation) -> str:
    """What the final scores say."""
    focus = quoted(explanation.tokens[explanation.focus])
    if explanation.maps is not None and explanation.own_scores is None:
        how = "layer" if explanation.scores_from == "last" else "rollout"
        return map_meaning(explanation, how, len(explanation.maps) - 1, focus)
    if explanation.maps is not None:  # attention flow brings its own
        return map_meaning(explanation, "rollout", len(explanation.maps) - 1, focus)
    verb = "speaks for or against" if signed(explanation) else "counts for"
    return f"how much each token {verb} {_object(explanation)}"


def towards(explanation: Explanation) -> str:
    """Whom a signed score speaks for."""
    return f"for or against {target(explanation)}"


def aside(sink: Sink) -> str:
    """What is said of tokens that are set beside the scale; nothing where there are none."""
    pairs = zip(sink, sink.shares, strict=True)
    listed = ", ".join(f"{quoted(token)} {share:.0%}" for token, share in list(pairs)[:_NAMED])
    more = f" and {len(sink) - _NAMED} more" if len(sink) > _NAMED else ""
    return f"beside the scale, whatever the text: {listed}{more}" if listed else ""


def _object(explanation: Explanation) -> str:
    if class_specific(explanation):
        share = explanation.target.probability
        sure = "" if share is None else f" (the model gives it {share:.2f})"
        return f"{target(explanation)}{sure}"
    return quoted(explanation.tokens[explanation.focus])


def legend(explanation: Explanation, share: bool = False) -> str:
    """What the numbers of the colour bar are."""
    if signed(explanation):
        return "against  ←  score  →  for"
    return "share" if share else "score"
