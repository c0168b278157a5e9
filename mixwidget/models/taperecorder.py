"""The recorder of models whose parts have no names: the tape follows each layer from its input to
its output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from ..blocks import Attention, LayerRecord, Placed, Taped, all_at
from ..errors import UnsupportedModelError
from .again import (
    Again,
    MixerAgain,
    always_hooked,
    arguments_of,
    first_tensor,
    hidden_of,
    in_digits,
    with_hidden,
)
from .anatomy import Anatomy
from .recorder import Check, Recorder
from .tape import Tape
from .trace import base_of


class TapeRecorder(Recorder):
    """For models whose parts have no names. With a graph nothing is cut: the layers' inputs and
    outputs and the attention weights are nodes of the one graph."""

    def __init__(
        self,
        model: nn.Module,
        anatomy: Anatomy,
        sizes: list[int],
        keep_graph: bool,
        check: Check | None,
    ) -> None:
        super().__init__(model, sizes, keep_graph, check)
        self.anatomy, self.taped = anatomy, not keep_graph
        self.depth, self.turned = 0, False
        self.calls: list[Attention] = []  # of the layer that runs
        self.given: tuple[Tensor, Tensor] | None = None  # (leaf, the layer's own input)
        self.arguments: dict[str, Any] = {}
        if self.taped:
            self.watching = self.tape = Tape(self.attention, self.lengths)
        self.watching.on_strange = self.strange
        decoder = model.get_decoder() if anatomy.decodes else None  # type: ignore[operator]
        self.decoder = set() if decoder is None else {id(m) for m in decoder.modules()}

    def strange(self, sizes: tuple[int, int]) -> None:
        """An attention of other things than the text's tokens, outside of all layers that are
        followed: a part of the model would be missing (Funnel's pooled layers)."""
        if not self.depth and min(sizes) > 1:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} attends with {sizes[0]} rows to {sizes[1]} columns "
                f"in layers beside those of the text's {self.sizes[0]} tokens (pooled or grouped "
                "tokens), which cannot be put down to them."
            )

    def attention(self, found: Attention) -> None:
        if self.depth:
            self.calls.append(found)
        else:
            self.outside += 1

    def hooked(self) -> Iterator[Any]:
        for layer in self.layers():
            always_hooked(layer)
            yield layer.register_forward_pre_hook(self._enter, with_kwargs=True)
            yield layer.register_forward_hook(self._leave)

    def read(self, args: Any, kwargs: dict[str, Any], module: nn.Module) -> Tensor:
        """The vectors that a layer is given."""
        hidden = hidden_of(args, kwargs)
        if hidden is None:
            raise UnsupportedModelError(
                f"{type(module).__name__}, a layer of {type(self.model).__name__}, is not given "
                "the tokens' vectors as its first argument."
            )
        return hidden

    def layers(self) -> list[nn.Module]:
        spec = self.anatomy.spec
        if spec is None:
            return [self.model.get_submodule(path) for path in self.anatomy.layers]
        stacks = [stack.layers for stack in (spec, spec.decoder) if stack]
        return [layer for path in stacks for layer in all_at(base_of(self.model), path)]

    def _enter(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        self.depth += 1
        if self.depth > 1:  # a layer within a layer
            return None
        if self.check is not None:
            self.check()
        hidden = self.read(args, kwargs, module)
        self.calls, self.arguments = [], arguments_of(args, kwargs)
        # SqueezeBERT has the tokens behind the features.
        axes = hidden.shape[1:] if hidden.dim() == 3 else ()
        self.turned = len(axes) == 2 and axes[0] not in self.sizes and axes[1] in self.sizes
        if not self.taped:
            self.given = (hidden, hidden)
            return None
        leaf, given = self.tape.begin(hidden, turned=self.turned)
        self.given = (leaf, hidden)
        return with_hidden(args, kwargs, given)

    def _leave(self, module: nn.Module, args: Any, result: Any) -> Any:
        self.depth -= 1
        if self.depth:
            return None
        self.close(module, first_tensor(result))
        return cut(result) if self.taped else None

    def close(self, module: nn.Module, out: Tensor | None) -> None:
        """A layer has run: its blocks are put on record."""
        assert self.given is not None
        leaf, hidden = self.given
        nodes = self.tape.end() if self.taped else []
        if out is not None and self.turned and self.taped:
            out = out.transpose(1, 2)
            for block in nodes:
                block.turn()
        if out is None or out.shape != leaf.shape:
            raise UnsupportedModelError(
                f"{type(module).__name__}, a layer of {type(self.model).__name__}, puts out "
                "vectors of another shape than it reads."
            )
        if not self.calls:
            record = LayerRecord(module, None, self._vectors(leaf), self.arguments)
            record.again = MixerAgain(record, hidden)
            self._add(record, out, None, None)
        if len(nodes) > 1 and nodes[0].joined is not None and nodes[0].joined is nodes[1].joined:
            raise UnsupportedModelError(
                f"{type(module).__name__}, a layer of {type(self.model).__name__}, joins the "
                "results of two attentions before it adds them to the residual stream, which is "
                "not understood."
            )
        streams = [leaf, *(n.stream for n in nodes[1:])]
        for which, found in enumerate(self.calls):
            last = which == len(self.calls) - 1
            record = LayerRecord(module, None, self._vectors(leaf), self.arguments)
            record.attention, record.turned = found, self.turned
            taped = None
            if self.taped:
                block = nodes[which]
                end = out if last else block.passed
                stream = streams[which]
                if end is None or stream is None:
                    end = stream = leaf  # the block says why it cannot be taken apart
                again = self.again(record, hidden, which, last)
                taped = Taped(block, stream, end, self.anatomy.known, len(self.records), again)
                record.input = self._vectors(stream)
            self._add(record, out if taped is None or last else taped.end, found, taped)
        self.given = None

    def again(
        self, record: LayerRecord, hidden: Tensor, which: int, last: bool
    ) -> Callable[[int | None], Tensor]:
        """What runs the layer again with a token's values away."""
        return Again(record, hidden, self.lengths, which, last)

    def _vectors(self, tensor: Tensor) -> Tensor:
        """[tokens, d]; with a graph the node itself."""
        return tensor if self.keep_graph else in_digits(tensor).reshape(-1, tensor.shape[-1])

    def _add(
        self, record: LayerRecord, out: Tensor, found: Attention | None, taped: Taped | None
    ) -> None:
        record.output, record.taped = self._vectors(out), taped
        rows = out.numel() // out.shape[1 if record.turned and self.keep_graph else -1]
        encodes = len(self.sizes) == 2 and id(record.module) not in self.decoder
        if found is None and rows > self.sizes[0] and encodes:
            # An encoder that attends in windows has filled the last of them up (LED).
            rows = self.sizes[0]
            if not self.keep_graph:
                record.input, record.output = record.input[:rows], record.output[:rows]
        if found is not None:
            record.weights = found.weights if self.keep_graph else self.keep(found.weights)
            record.values = self.kept(found.values)
            rows = max(rows, int(found.weights.shape[-2]))
        if rows not in self.sizes:
            raise UnsupportedModelError(
                f"{type(record.module).__name__}, a layer of {type(self.model).__name__}, moves "
                f"{rows} vectors for {self.sizes[0]} tokens (several streams of a token, or "
                "tokens that the model adds), which cannot be put down to the tokens."
            )
        if len(self.sizes) == 2:
            self._place(record, found)
        self.records.append(record)

    def _place(self, record: LayerRecord, found: Attention | None) -> None:
        """Where a block of an encoder-decoder lies on the axis of both texts."""
        source, prefix = self.sizes
        both = source + prefix
        texts = slice(0, source), slice(source, both)
        decodes = id(record.module) in self.decoder
        rows = columns = texts[decodes]
        kind = "decoder {}, over the prefix" if decodes else "encoder {}"
        if decodes and found is not None:
            count = found.weights.shape[-1]
            second = bool(self.records) and self.records[-1].module is record.module
            if count == both:  # one attention over both, the prefix before the source
                columns = [*range(source, both), *range(source)]  # type: ignore[assignment]
                kind = "decoder {}"
            elif second:
                columns = texts[0]
                kind = "decoder {}, over the source"
        before = {id(r.module) for r in self.records} - {id(record.module)}
        number = sum((module in self.decoder) == decodes for module in before)
        record.place, record.rows = Placed(both, rows, columns), rows
        record.name = kind.format(number) + ("" if found is not None else ", without attention")

    def finished(self) -> list[LayerRecord]:
        records = super().finished()
        if not any(record.weights is not None for record in records):
            raise UnsupportedModelError(
                f"No layer of {type(self.model).__name__} computed an attention of the text's "
                "tokens to each other that could be recorded."
            )
        if self.decoder and all(id(record.module) in self.decoder for record in records):
            raise UnsupportedModelError(
                f"The encoder of {type(self.model).__name__} mixes tokens in layers that could not "
                "be followed, so nothing can be told of its text."
            )
        unlike = any(record.weights is None for record in records)
        if unlike and len(self.sizes) == 1:
            for number, record in enumerate(records):
                attends = record.weights is not None
                record.name = f"layer {number}" + ("" if attends else ", without attention")
        return records


def cut(result: Any) -> Any:
    """A layer's results without their graph: the next layer begins anew."""
    if isinstance(result, Tensor):
        return result.detach()
    if type(result) in (list, tuple):
        return type(result)(cut(r) for r in result)
    if isinstance(result, dict):  # an output with names
        return type(result)(**{k: cut(v) for k, v in result.items()})
    return result
