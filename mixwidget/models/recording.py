"""One recorded pass of one text through a shadow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ..blocks import BlockSpec
from .anatomy import Anatomy
from .openlayers import OpenRecorder
from .recorder import Recorder, SpecRecorder
from .seq2seq import joined
from .taperecorder import TapeRecorder
from .thread import as_it_was
from .trace import Trace, plain_output


@as_it_was
def record(
    model: nn.Module,
    inputs: Mapping[str, Tensor],
    anatomy: Anatomy | BlockSpec,
    *,
    keep_graph: bool = False,
    check: Callable[[], None] | None = None,
) -> Trace:
    """Run `model` once on one text and record every layer.

    Args:
        model: a shadow. It gets hooks for the length of the pass.
        inputs: keyword arguments of the model with a batch of one.
        anatomy: how the model is taken apart; or a spec that says it.
        keep_graph: keep the autograd graph, for methods that differentiate the pass. Some of
            what the model looks up must then require gradients.
        check: called before each layer; may raise to stop the pass.
    """
    if isinstance(anatomy, BlockSpec):
        anatomy = Anatomy(anatomy, (), anatomy.causal, anatomy.decoder is not None)
    sizes = [int(inputs["input_ids" if "input_ids" in inputs else "inputs_embeds"].shape[1])]
    if anatomy.decodes:
        sizes.append(int(inputs["decoder_input_ids"].shape[1]))
    spec, recorder = anatomy.spec, _recorder(model, anatomy, sizes, keep_graph, check)
    if isinstance(recorder, OpenRecorder):
        recorder.inputs = inputs
    with (
        recorder.hooks(),
        recorder.watched(anatomy.proved_for(max(sizes))),
        torch.set_grad_enabled(keep_graph or recorder.taped),
    ):
        output = model(**inputs, **plain_output(model))
    layers = recorder.finished()
    if isinstance(recorder, SpecRecorder) and spec is not None and spec.decoder is not None:
        layers = joined(layers, *sizes)
    return Trace(inputs, layers, output)


def _recorder(
    model: nn.Module,
    anatomy: Anatomy,
    sizes: list[int],
    keep_graph: bool,
    check: Callable[[], None] | None,
) -> Recorder:
    """The recorder that fits what is known of a model. `sizes`: tokens of its one or two texts."""
    # Of an encoder-decoder's graph only the layers themselves are wanted: no part has to be named.
    if anatomy.spec is not None and not (keep_graph and anatomy.decodes):
        return SpecRecorder(model, anatomy.spec, sizes, keep_graph, check)
    kind = OpenRecorder if anatomy.open else TapeRecorder
    return kind(model, anatomy, sizes, keep_graph, check)
