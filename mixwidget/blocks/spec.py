"""How the parts of a transformer block are wired, said in data.

A family is one `BlockSpec`: the places of its modules, by attribute path, and one of four
wirings. `x` is the layer's input, `a` what its attention puts out, `p` their sum:

    post       p = x + a(x);            y = norm1(p);   o = norm2(y + ffn(y))
    pre        p = x + a(norm1(x));                     o = p + ffn(norm2(p))
    parallel   p = x + a(norm1(x));                     o = p + ffn(norm2(x))
    sandwich   p = x + after1(a(norm1(x)));             o = p + after2(ffn(norm2(p)))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor, nn

from ..errors import UnsupportedModelError

Wiring = Literal["post", "pre", "parallel", "sandwich"]


@dataclass(frozen=True)
class BlockSpec:
    """Where a family keeps the parts of its blocks. Paths are relative to one layer.

    Attributes:
        layers: path from the model without its head to the list of layers; `*` stands for
            every item of a list on the way (ALBERT keeps groups of layers).
        wiring: see the module's first lines.
        out: the projection that takes the heads' joined output.
        norm1, norm2: the norms, as named above. In a parallel block norm2 is the one the
            feed-forward reads, which may be the same module as norm1.
        after1, after2: the norms on the branches of a sandwich block.
        up, down: first and second projection of the feed-forward.
        gate: the gating projection of a gated feed-forward: down(act(gate(y)) * up(y)).
        act: the activation.
        gate_up: one projection that gives gate and up, in this order, joined.
        norm_offset: added to the norms' weights (Gemma keeps gamma - 1).
        causal: whether a token sees only what comes before it.
        decoder: the block that its decoder's layers begin with, in an encoder-decoder.
        cross: the block that follows in the same layer and looks at the encoder. The block
            before it has no feed-forward (`down` is None).
    """

    layers: str
    wiring: Wiring
    out: str
    norm1: str | None
    norm2: str | None
    up: str | None
    down: str | None
    act: str | Callable[[Tensor], Tensor]
    gate: str | None = None
    gate_up: str | None = None
    after1: str | None = None
    after2: str | None = None
    norm_offset: float = 0.0
    causal: bool = False
    decoder: BlockSpec | None = None
    cross: BlockSpec | None = None

    def but(self, **changes: Any) -> BlockSpec:
        """The same with some places changed: most families differ from another in little."""
        return replace(self, **changes)

    def blocks(self) -> list[BlockSpec]:
        """The blocks of one layer, in the order they run."""
        return [self] if self.cross is None else [self, self.cross]


def at(module: nn.Module, path: str) -> Any:
    """The attribute at a dotted path; an error that names the step that is missing."""
    here: Any = module
    for step in path.split("."):
        try:
            here = here[int(step)] if step.isdigit() else getattr(here, step)
        except (AttributeError, IndexError, TypeError) as error:
            raise UnsupportedModelError(
                f"{type(module).__name__} has no {path!r} (stopped at {step!r}): its block spec "
                "does not fit this model. See mixwidget.register_family."
            ) from error
    return here


def all_at(module: nn.Module, path: str) -> list[nn.Module]:
    """Every layer at a path, each once: a family may run one module many times."""
    head, star, tail = path.partition(".*.")
    layers = [at(item, tail) for item in at(module, head)] if star else [at(module, path)]
    return list(dict.fromkeys(layer for group in layers for layer in group))
