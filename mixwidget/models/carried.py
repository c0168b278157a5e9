"""Rules by which every token's part of a vector is carried through a pass.

Linear maps are applied to the parts, norms divide them by the whole's scale, activations multiply
them by the whole's slope, attention weights and gates are constants, and a bias is shared among
the parts of the vector that it is added to. Parts are only made where something asks for them:
queries and keys never do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..errors import UnsupportedMethodError
from .functions import (
    ACTIVATIONS,
    BIASED,
    CHOICES,
    DIVISIONS,
    JOINS,
    LINEAR,
    MADE_ANEW,
    NORMS,
    PRODUCTS,
    RAISED,
    SCALES,
    SUMS,
    WRITTEN_INTO,
    named,
)
from .pieces import DEEPEST, WRITES, Made, Parts, Step, Way, carried_by, flat, floats, mapped
from .thread import Mode

Bias = Literal["absdot", "norm", "equal", "none"]


class PartRules(Mode):
    """Carries parts along while a pass runs under this mode, without gradients."""

    def __init__(self, bias: Bias) -> None:
        super().__init__()
        self.bias = bias
        self.inside = False  # of a layer; a head's constants are shared at once
        self.depth = 0  # of what is at work

    def give(self, made: Any, parts: Made, gate: bool = False) -> Any:
        """A tensor with a way to make its parts, which is gone through once."""
        made.parts, made.gate = Way(parts, self.depth), gate
        return made

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        given = [v for v in flat((*args, *kwargs.values())) if carried_by(v) is not None]
        if not given:
            return func(*args, **kwargs)
        self.depth = 1 + max(v.parts.depth for v in given)
        made = self._met(func, args, kwargs, given)
        if self.depth > DEEPEST:
            for result in flat([made]):
                if (way := carried_by(result)) is not None:
                    way.gone()
        return made

    def _met(self, func: Any, args: Any, kwargs: Any, given: list[Any]) -> Any:
        name, in_place, swapped = named(func)
        if name == "set":
            raise self._unknown(name)
        if name in ("setitem", "copy") and args[0]._base is not None:  # into a part of something
            made, target = func(*args, **kwargs), args[0]
            for held in (target, target._base):  # keys, most often, whose parts nobody asks for
                self.give(held, lambda: self._refuse(name))
            return made
        if name in WRITES:
            target = args[0]
            if carried_by(target) is None:
                args = (target.clone(), *args[1:])
            made = self._linear(WRITES[name], name, args, kwargs, given)
            return self.give(target.copy_(made), made.parts)
        if in_place:
            plain = getattr(torch.Tensor, name)
            target = args[0]
            if carried_by(target) is None:  # a constant that is read later, and written over now
                args = (target.clone(), *args[1:])
            made = self._applied(plain, name, args, kwargs, given)
            parts, gate = carried_by(made), getattr(made, "gate", False)
            written = target.copy_(made)
            return written if parts is None else self.give(written, parts, gate)
        if swapped:
            args = tuple(
                a if isinstance(a, Tensor) else given[0].new_tensor(a) for a in (args[1], args[0])
            )
            func = getattr(torch, name.removeprefix("true"))
        return self._applied(func, name, args, kwargs, given)

    def _applied(self, func: Any, name: str, args: Any, kwargs: Any, given: list[Any]) -> Any:
        if name in SCALES or name in MADE_ANEW or name in ("softmax", "_softmax", "log_softmax"):
            return func(*args, **kwargs)
        if name in ACTIVATIONS:
            return self.activated(lambda x: func(x, *args[1:], **kwargs), args[0], name)
        if name in NORMS:
            return self._norm(func, name, args, kwargs)
        if name in PRODUCTS and len(given) > 1:
            return self._product(func, args, kwargs, given)
        if name in DIVISIONS and carried_by(args[1]) is not None:
            bare = _bare(args[1])
            return (
                self._applied(func, name, (args[0], bare), kwargs, [args[0]])
                if carried_by(args[0])
                else func(*args, **kwargs)
            )
        if name.endswith("_as"):  # of the second they take type or shape
            if carried_by(args[0]) is None:
                return func(*args, **kwargs)
            given = [args[0]]
        if name in CHOICES:
            return self._chosen(func, name, args, kwargs)
        if name in PRODUCTS or name in LINEAR or name in SUMS or name in BIASED:
            return self._linear(func, name, args, kwargs, given)
        made = func(*args, **kwargs)
        for result in flat([made]):
            if isinstance(result, Tensor) and result.is_floating_point():
                self.give(result, lambda: self._refuse(name))
        return made

    def _linear(self, func: Any, name: str, args: Any, kwargs: Any, given: list[Any]) -> Any:
        made = func(*args, **kwargs)
        if any(made is v for v in given):  # a conversion to what it is already
            return made
        order = list({id(v): v for v in given}.values())
        sources = [v.parts for v in order]  # as they are now: some models write over them

        def on(values: tuple[Tensor, ...]) -> Any:
            place = {id(v): new for v, new in zip(order, values, strict=True)}

            def change(v: Any) -> Any:
                return place.get(id(v), v)

            return func(*mapped(args, change), **mapped(kwargs, change))

        constant: Tensor | None = None
        numbers = any(isinstance(a, float | int) and not isinstance(a, bool) and a for a in args)
        others = [v for v in flat((*args, *kwargs.values())) if floats(v) and carried_by(v) is None]
        adds = name in BIASED or (name in SUMS and (others or (numbers and name not in JOINS)))
        adds = adds or (name in WRITTEN_INTO and bool(others))
        if adds:
            constant = on(tuple(torch.zeros_like(v) for v in order))

        attends = name in PRODUCTS and _attends(args)
        sums = name in SUMS and len(order) > 1
        step = Step(on, order, constant is not None, attends, sums, self.inside)

        def parts_of(pick: Callable[[Any], Tensor]) -> Parts:
            return self._stepped(step, [source() for source in sources], pick)

        if isinstance(made, Tensor):
            return self.give(made, lambda: parts_of(lambda r: r))
        for i, result in enumerate(made if isinstance(made, list | tuple) else ()):
            if floats(result):
                self.give(result, partial(parts_of, itemgetter(i)))
        return made

    def _stepped(self, step: Step, held: list[Parts], pick: Callable[[Any], Tensor]) -> Parts:
        """The parts that a linear step makes of parts."""
        if step.sums:
            held = [one if one.written else self.settled(one) for one in held]
        written = step.attends or any(one.written for one in held)
        if step.sums and not all(one.written or one.fed for one in held):
            written = False  # joins the residual stream
        fed = all(one.fed for one in held)
        waits = any(part.constant is not None for part in held)
        # What attention wrote waits with its constant for the residual stream, of whose sum a
        # feed-forward beside it (in parallel blocks) is no part.
        apart = [step.sums and waits and part.fed and not part.written for part in held]
        pairs = list(zip(apart, held, strict=True))
        values = step.moved(pick, held, [None if a else p.values for a, p in pairs])
        aside = step.moved(pick, held, [p.values if a else p.aside for a, p in pairs])
        assert values is not None  # what waits has some
        if not step.constant and not waits:
            return Parts(values, None, written, fed, aside)
        found = Parts(values, pick(step.constants(held)), written, fed, aside)
        settles = not step.inside or (step.sums and not written)
        return self.settled(found) if settles else found

    def _chosen(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The largest, or the numbers in order: parts go where the whole goes."""
        made = func(*args, **kwargs)
        places = getattr(made, "indices", None)
        if places is None:
            return self.give(made, lambda: self._refuse(name)) if floats(made) else made
        read, where = args[0], 2 if name == "topk" else 1
        dim = kwargs.get("dim", args[where] if len(args) > where else -1)
        shorter = places.dim() < read.dim()
        places = places.unsqueeze(dim) if shorter else places

        def take(x: Tensor) -> Tensor:
            taken = x.gather(dim, places)
            return taken.squeeze(dim) if shorter else taken

        self.give(made.values, self._linear(take, "gather", (read,), {}, [read]).parts)
        return made

    def settled(self, parts: Parts) -> Parts:
        """With its constant shared."""
        values = parts.values
        if parts.constant is not None:
            values = self._shared(values, parts.constant)
        whole = values if parts.aside is None else values + parts.aside
        return Parts(whole, fed=parts.fed)

    def _shared(self, parts: Tensor, constant: Tensor) -> Tensor:
        """Parts [tokens, ...] with a constant that was added to their sum shared among them."""
        constant = torch.where(
            constant.isinf(), 0.0, constant
        )  # a mask's, of which nothing is left
        if self.bias == "none" or not bool(constant.any()):
            return parts
        if self.bias == "absdot":
            weights = (parts * constant).sum(-1, keepdim=True).abs()
        elif self.bias == "norm":
            weights = parts.norm(dim=-1, keepdim=True)
        else:
            weights = torch.ones_like(parts[..., :1])
        total = weights.sum(0, keepdim=True)
        even = torch.full_like(weights, 1 / len(parts))
        return parts + torch.where(total > 0, weights / total, even) * constant

    def activated(self, function: Callable[[Tensor], Tensor], x: Tensor, name: str) -> Tensor:
        y = function(x)
        if carried_by(x) is None:
            return y

        source = x.parts  # type: ignore[attr-defined]

        def parts() -> Parts:
            origin = float(function(x.new_zeros((1,) * x.dim()))) if name in RAISED else 0.0
            slope = torch.where((x == 0) | x.isinf(), 0.0, (y - origin) / x)
            moved = self.settled(source()).values * slope
            if not origin:
                return Parts(moved, fed=True)
            constant = torch.where(x.isinf(), y, origin)
            return Parts(self._shared(moved, constant), fed=True)

        return self.give(y, parts, gate=True)

    def _norm(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        made = func(*args, **kwargs)
        if name not in ("layer_norm", "rms_norm"):
            return self.give(made, lambda: self._refuse(name))
        names = ["input", "normalized_shape", "weight", *["bias"] * (name == "layer_norm"), "eps"]
        at = {**dict(zip(names, args, strict=False)), **kwargs}
        x, weight, bias = at["input"], at.get("weight"), at.get("bias")

        source = x.parts

        def parts() -> Parts:
            read = source() if source().written else self.settled(source())
            eps = at.get("eps")
            if name == "layer_norm":
                power = x.var(-1, correction=0, keepdim=True) + (1e-5 if eps is None else eps)
            else:
                floor = torch.finfo(x.dtype).eps if eps is None else eps
                power = x.square().mean(-1, keepdim=True) + floor
            scale = power.rsqrt() if weight is None else power.rsqrt() * weight

            def linear(vectors: Tensor) -> Tensor:
                if name == "layer_norm":
                    vectors = vectors - vectors.mean(-1, keepdim=True)
                return vectors * scale

            moved = linear(read.values)
            still = None if read.constant is None else linear(read.constant)
            if bias is not None:
                still = bias.expand_as(made) if still is None else still + bias
            aside = None if read.aside is None else linear(read.aside)
            found = Parts(moved, still, read.written, aside=aside)
            return found if read.written else self.settled(found)

        return self.give(made, parts)

    def _product(self, func: Any, args: Any, kwargs: Any, given: list[Any]) -> Any:
        made = func(*args, **kwargs)
        gates = [v for v in given if getattr(v, "gate", False)]
        free = [v for v in given if v is not gates[0]] if len(gates) == 1 else given
        share = 1 / len(free)

        sources = {id(one): one.parts for one in free}

        def parts() -> Parts:
            total: Any = 0
            for one in free:  # the others as they are

                def on(part: Tensor, one: Any = one) -> Tensor:
                    swapped = mapped(args, lambda v: part if v is one else _bare(v))
                    result: Tensor = func(*swapped, **kwargs)
                    return result

                held = self.settled(sources[id(one)]()).values
                total = total + share * torch.vmap(on)(held)
            return Parts(total, fed=True)

        return self.give(made, parts)

    def _refuse(self, name: str) -> Parts:
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnsupportedMethodError:
        return UnsupportedMethodError(
            f"This model uses {name!r} on the way from its input to the prediction, through which "
            "parts of a vector cannot be carried. attn_lrp answers the same question."
        )


def _attends(args: Any) -> bool:
    """Whether a product is one of attention weights, constants here, with values."""
    weights = next((a for a in args if isinstance(a, Tensor) and carried_by(a) is None), None)
    return weights is not None and not isinstance(
        weights if weights._base is None else weights._base, nn.Parameter
    ) and weights.dim() > 2 and any(carried_by(a) for a in args)  # fmt: skip


def _bare(value: Any) -> Any:
    """The same tensor without its parts."""
    return value.detach() if isinstance(value, Tensor) else value
