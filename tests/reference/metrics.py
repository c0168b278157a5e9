"""Naive twins of the metrics: one edited text at a time, straight from the definitions."""

from __future__ import annotations

import math
from typing import Any

import torch


def probability(model: Any, ids: list[int], target: int) -> float:
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    return float(logits.double().softmax(-1)[target])


def removed(ids: list[int], gone: list[int], stand_in: int | None) -> list[int]:
    if stand_in is None:
        return [token for i, token in enumerate(ids) if i not in gone]
    return [stand_in if i in gone else token for i, token in enumerate(ids)]


def ranked(scores: list[float], ordinary: list[int]) -> list[int]:
    return sorted(ordinary, key=lambda i: (-scores[i], i))


def _count(percent: int, m: int) -> int:
    return math.ceil(round(percent * m / 100, 9))


def comprehensiveness(
    model: Any, ids: list[int], target: int, scores: list[float], ordinary: list[int]
) -> float:
    order, whole, drops = ranked(scores, ordinary), probability(model, ids, target), []
    for percent in (1, 5, 10, 20, 50):
        gone = order[: _count(percent, len(order))]
        drops.append(whole - probability(model, removed(ids, gone, None), target))
    return sum(drops) / len(drops)


def sufficiency(
    model: Any, ids: list[int], target: int, scores: list[float], ordinary: list[int]
) -> float:
    order, whole, drops = ranked(scores, ordinary), probability(model, ids, target), []
    for percent in (1, 5, 10, 20, 50):
        gone = order[_count(percent, len(order)) :]
        drops.append(whole - probability(model, removed(ids, gone, None), target))
    return sum(drops) / len(drops)


def aopc(
    model: Any, ids: list[int], target: int, scores: list[float], ordinary: list[int]
) -> float:
    order, whole, drops = ranked(scores, ordinary), probability(model, ids, target), []
    for percent in range(10, 101, 10):
        gone = order[: _count(percent, len(order))]
        drops.append(whole - probability(model, removed(ids, gone, None), target))
    return sum(drops) / len(drops)


def log_odds(
    model: Any, ids: list[int], target: int, scores: list[float], ordinary: list[int], pad: int
) -> float:
    order, whole, ratios = ranked(scores, ordinary), probability(model, ids, target), []
    for percent in range(10, 101, 10):
        gone = order[: _count(percent, len(order))]
        ratios.append(math.log(probability(model, removed(ids, gone, pad), target) / whole))
    return sum(ratios) / len(ratios)
