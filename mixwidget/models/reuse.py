"""Edited texts of a causal model that begin alike: keys and values of what stands before the first
change are made once, and what follows is run on them. Exact: nothing before a token sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .encode import Encoding
from .gradients import read
from .source import Source
from .trace import plain_output, takes

if TYPE_CHECKING:
    from .predict import Edit

# Tokens in front below which a pass of their own is not worth it, and the share of a text.
_WORTH, _SHARE = 64, 0.25
_TOGETHER = 16  # texts on one prefix: their keys and values are copied
# How far log probabilities by both ways may lie apart, relative to 1 or their size.
_SAME = 1e-4

_INPUTS = {"input_ids", "attention_mask"}


@dataclass(frozen=True)
class Work:
    """How edits are predicted for.

    Attributes:
        limit: tokens of a pass, 0 where the model takes one text at a time.
        pad: what stands in the place of missing tokens.
        of: "probability" or "logit".
        plain: the values of edits, run from their first token on.
    """

    limit: int
    pad: int
    of: str
    plain: Callable[[list[Edit]], Tensor]
    check: Callable[[], None] | None
    report: Callable[[float], None] | None


def on_prefixes(
    source: Source, encoding: Encoding, edits: list[Edit], work: Work
) -> dict[int, Tensor]:
    """Values of the edits that begin like the text, from one pass over that beginning. By the
    first of a model's texts it is seen whether both ways give the same."""
    begins = beginnings(source, encoding, edits) if len(edits) > 2 and work.limit else None
    if begins is None or sum(map(bool, begins)) < 2:
        return {}
    known, found = source.anatomy, dict[int, Tensor]()
    pairs = held(source, encoding, max(begins))
    if pairs is None:
        known.reuses = False
        return {}
    for run in runs(begins, edits, work.limit):
        if work.check is not None:
            work.check()
        begin, some = min(begins[i] for i in run), [edits[i] for i in run]
        rows = after(source, some, begin, pairs, work.pad)
        for i, row in zip(run, rows, strict=True):
            found[i] = read(row, moved(edits[i], begin), work.of)[0].double().cpu()
        if known.reuses is None:
            known.reuses = agree(found[run[0]][None], work.plain(some[:1]))
        if not known.reuses:
            return {}
        if work.report is not None:
            work.report(len(found) / len(edits))
    return {i: value for i, value in found.items() if bool(value.isfinite())}


def beginnings(source: Source, encoding: Encoding, edits: Sequence[Edit]) -> list[int] | None:
    """How many tokens each edit has in common with the text before anything differs, or is read;
    None where the model cannot go on from them."""
    known = source.anatomy
    if source.task != "causal_lm" or not known.causal or known.reuses is False:
        return None
    if not takes(source.model, "past_key_values") or set(encoding.inputs) - _INPUTS:
        return None
    whole = [token.id for token in encoding.tokens]
    return [_common(whole, one) for one in edits]


def _common(whole: list[int], one: Edit) -> int:
    if one.target is None or one.target.position is None:
        return 0
    position = one.target.position
    read = min(position) if isinstance(position, tuple) else position
    most = min(read, len(whole), len(one.ids), *one.unseen)
    same = next((i for i in range(most) if whole[i] != one.ids[i]), most)
    return same if same >= max(_WORTH, _SHARE * len(one.ids)) else 0


def held(source: Source, encoding: Encoding, tokens: int) -> list[tuple[Tensor, Tensor]] | None:
    """Keys and values of the first tokens, by layer; None where the model keeps other things."""
    ids = encoding.inputs["input_ids"][:, :tokens]
    given = {**plain_output(source.model), "use_cache": True}
    if takes(source.model, "logits_to_keep"):
        given["logits_to_keep"] = 1
    with torch.no_grad():
        output = source.model(input_ids=ids, attention_mask=torch.ones_like(ids), **given)
    layers = getattr(getattr(output, "past_key_values", None), "layers", None)
    if not layers or any(type(layer).__name__ != "DynamicLayer" for layer in layers):
        return None  # windows and states of recurrences cannot be cut
    pairs = [(layer.keys, layer.values) for layer in layers]
    return pairs if all(keys.shape[-2] == tokens for keys, _ in pairs) else None


def after(
    source: Source,
    edits: Sequence[Edit],
    begin: int,
    pairs: list[tuple[Tensor, Tensor]],
    pad: int,
) -> list[Any]:
    """What the model puts out for the edits, from token `begin` on, as `outputs` gives it."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer, (keys, values) in enumerate(pairs):
        cut = [one[:, :, :begin].expand(len(edits), -1, -1, -1) for one in (keys, values)]
        cache.update(cut[0], cut[1], layer)
    most = max(len(one.ids) for one in edits)
    ids, seen = [], []
    for one in edits:
        more = most - len(one.ids)
        ids.append([*one.ids[begin:], *[pad] * more])
        seen.append([*(int(i not in one.unseen) for i in range(len(one.ids))), *[0] * more])
    with torch.no_grad():
        output = source.model(
            input_ids=torch.tensor(ids, device=source.device),
            attention_mask=torch.tensor(seen, device=source.device),
            past_key_values=cache,
            **{**plain_output(source.model), "use_cache": True},
        )
    return [SimpleNamespace(logits=output.logits[row : row + 1]) for row in range(len(edits))]


def moved(one: Edit, begin: int) -> Any:
    """The edit's target among the rows from `begin` on."""
    target = one.target
    assert target is not None
    position = target.position
    assert position is not None
    if isinstance(position, int):
        return replace(target, position=position - begin)
    return replace(target, position=tuple(row - begin for row in position))


def runs(begins: Sequence[int], edits: Sequence[Edit], limit: int) -> list[list[int]]:
    """Edits that go on from one prefix together: those that begin alike, of like length."""
    order = sorted((i for i, same in enumerate(begins) if same), key=lambda i: -begins[i])
    made: list[list[int]] = []
    for i in order:
        last = made[-1] if made else []
        most = max([len(edits[k].ids) for k in last] + [len(edits[i].ids)])
        size = (most - begins[i]) * (len(last) + 1)
        near = last and begins[last[0]] - begins[i] < _WORTH
        if last and near and len(last) < _TOGETHER and size <= limit:
            last.append(i)
        else:
            made.append([i])
    return made


def agree(one: Tensor, other: Tensor) -> bool:
    """Whether both ways give the same."""
    return bool(((one - other).abs() <= _SAME * other.abs().clamp(min=1.0)).all())
