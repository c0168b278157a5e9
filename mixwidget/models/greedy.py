"""What a language model writes after a text when it always takes the likeliest token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .encode import Encoding
from .source import Source
from .trace import plain_output


def greedy(
    source: Source,
    encoding: Encoding,
    longest: int,
    check: Callable[[], None] = lambda: None,
    wrote: Callable[[int], None] = lambda token: None,
) -> list[int]:
    """Ids up to the end token, without it, at most `longest`.

    Args:
        source: of a case, whose model is a shadow.
        check: called before every token; may raise to stop.
        wrote: called with every token as it is written.
    """
    ends = end_tokens(source)
    room = source.limit - len(encoding.tokens) if source.limit is not None else longest
    step = _decoding(source, encoding) if encoding.first_row else _reading(source, encoding)
    made: list[int] = []
    while len(made) < min(longest, room):
        check()
        with torch.no_grad():
            token = int(step(made).argmax())
        if token in ends:
            break
        made.append(token)
        wrote(token)
    return made


def end_tokens(source: Source) -> set[int]:
    """Tokens after which a model stops."""
    found: set[int | None] = set()
    for owner in (getattr(source.model, "generation_config", None), source.model.config):
        ends = getattr(owner, "eos_token_id", None)
        found |= set(ends if isinstance(ends, list | tuple) else [ends])
    found.add(getattr(source.tokenizer, "eos_token_id", None))
    return {one for one in found if one is not None}


def _reading(source: Source, encoding: Encoding) -> Callable[[list[int]], torch.Tensor]:
    """A causal model: logits after the text and what has been written, keys and values reused
    where the model keeps them."""
    held: dict[str, Any] = {"past": None, "read": 0}
    ids = encoding.inputs["input_ids"]

    def step(made: list[int]) -> torch.Tensor:
        whole = torch.cat([ids, ids.new_tensor([made])], -1) if made else ids
        new = whole[:, held["read"] :] if held["past"] is not None else whole
        more = {} if held["past"] is None else {"past_key_values": held["past"]}
        output = source.model(
            input_ids=new,
            attention_mask=torch.ones_like(whole),
            **{**plain_output(source.model), "use_cache": True},
            **more,
        )
        held["past"], held["read"] = getattr(output, "past_key_values", None), whole.shape[-1]
        return output.logits[0, -1]

    return step


def _decoding(source: Source, encoding: Encoding) -> Callable[[list[int]], torch.Tensor]:
    """An encoder-decoder: the source is read once."""
    inputs = dict(encoding.inputs)
    begun = inputs.pop("decoder_input_ids")
    held: dict[str, Any] = {}

    def step(made: list[int]) -> torch.Tensor:
        prefix = torch.cat([begun, begun.new_tensor([made])], -1) if made else begun
        output = source.model(
            **inputs, decoder_input_ids=prefix, **plain_output(source.model), **held
        )
        if not held:
            read = output.encoder_last_hidden_state
            held["encoder_outputs"] = (read,)
            inputs.pop("input_ids")
        return output.logits[0, -1]

    return step
