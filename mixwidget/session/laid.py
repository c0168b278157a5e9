"""How the tokens of several models lie beside each other: by place, or by the words they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import InputError
from ..explanation import alike, shared_words

if TYPE_CHECKING:
    from ..tokens import Token


@dataclass(frozen=True)
class Laid:
    """How models read one text.

    Attributes:
        readings: the tokens of each model that has read it, by its place.
        units: the unit of each token by model; empty where all read the same tokens.
        refused: why a model cannot be laid beside the one in front.
    """

    readings: dict[int, Sequence[Token]] = field(default_factory=dict)
    units: dict[int, list[int]] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    def seen_by(self, place: int, front: int, focus: int) -> int | None:
        """A token of the model in front as another one reads the text."""
        if place not in self.readings or front not in self.readings:
            return None
        if not self.units:
            return focus
        own, its = self.units.get(front, []), self.units.get(place, [])
        return its.index(own[focus]) if focus < len(own) and own[focus] in its else None


def lay(readings: dict[int, Sequence[Token]], front: int, texts: Sequence[str]) -> Laid:
    """Lay models beside the one in front."""
    first = readings.get(front)
    if first is None or all(alike(first, one) for one in readings.values()):
        return Laid(readings)
    fitting, refused = {front: first}, dict[int, str]()
    for place, one in readings.items():
        try:
            if not alike(first, one):
                shared_words([first, one], texts)
            fitting[place] = one
        except InputError as error:
            refused[place] = str(error)
    if all(alike(first, one) for one in fitting.values()):
        return Laid(readings, {}, refused)
    units = shared_words([*fitting.values()], texts)
    return Laid(readings, dict(zip(fitting, units, strict=True)), refused)
