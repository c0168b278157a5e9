"""The formula on a method's card, TeX, as MathML: browsers draw it by themselves, without a script
or a font. For the widget and for the documentation."""

from __future__ import annotations

import functools
import re
from xml.etree import ElementTree

_BARS = re.compile(r"\\[bB]igg?[lr]?\\\|")
_WIDE = re.compile(r",?\s*\\q?quad\s*")


def mathml(tex: str, display: str = "block") -> str:
    """A formula as a `<math>` element; what is no TeX raises."""
    from latex2mathml.converter import convert

    # The converter knows \left\| and \right\| but no \Big\|, which stands in pairs.
    for number in range(len(_BARS.findall(tex))):
        tex = _BARS.sub(r"\\right\\|" if number % 2 else r"\\left\\|", tex, count=1)
    made = convert(tex, display=display)
    # It passes on what stands in \text{} as it is: what is not MathML alone is refused.
    for element in ElementTree.fromstring(made).iter():
        if not element.tag.startswith("{http://www.w3.org/1998/Math/MathML}m"):
            raise ValueError(f"{tex!r} holds markup")
    return made


@functools.lru_cache(maxsize=256)
def formula_lines(tex: str) -> tuple[str, ...]:
    """The parts of a formula, which wide spaces set apart, each as MathML. () where it cannot be
    read, as may happen to one of a user's own: its TeX is then shown as it is."""
    try:
        return tuple(mathml(part) for part in _WIDE.split(tex) if part.strip())
    except Exception:  # the converter raises what it meets: IndexError, KeyError, its own
        return ()
