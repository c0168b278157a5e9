"""From what the user gives (a model, a name, a folder, a pipeline) to model and tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from ..blocks import BlockSpec, once
from .anatomy import Anatomy, anatomy_of
from .shadow import shadow

Task = Literal[
    "classification", "masked_lm", "causal_lm", "seq2seq_lm", "question_answering", "base"
]


@dataclass(frozen=True)
class Source:
    """A model that can be explained, with its tokenizer and what it was trained to do."""

    model: Any
    tokenizer: Any
    name: str
    task: Task

    @once
    def anatomy(self) -> Anatomy:
        """How the model is taken apart. Of the user's own model: found once."""
        return anatomy_of(self.model)

    @property
    def spec(self) -> BlockSpec | None:
        """Where its blocks keep their parts, if that is known."""
        return self.anatomy.spec

    @property
    def decodes(self) -> bool:
        """Whether it is an encoder and a decoder, which reads a text of its own."""
        return self.anatomy.decodes

    def shadowed(self) -> Source:
        """The same with a shadow of the model: what passes are made through."""
        made = replace(self, model=shadow(self.model, as_it_is=self.anatomy.own_attention))
        vars(made)["anatomy"] = self.anatomy
        return made

    @property
    def device(self) -> torch.device:
        """Where inputs go: the device of the embeddings (the rest may be elsewhere)."""
        weight = getattr(table_of(self.model), "weight", None)
        return next(self.model.parameters()).device if weight is None else weight.device

    @property
    def labels(self) -> list[str]:
        """Class names of a classifier, in order of their index; empty for other tasks."""
        if self.task != "classification":
            return []
        config = self.model.config
        names = getattr(config, "id2label", None) or {}
        return [str(names.get(i, f"LABEL_{i}")) for i in range(config.num_labels)]

    @property
    def limit(self) -> int | None:
        """The most tokens the model can take, None if nothing says."""
        limits = []
        config = self.model.config
        positions = getattr(config, "max_position_embeddings", None) or getattr(
            config, "n_positions", None
        )
        if isinstance(positions, int) and positions > 0:
            # RoBERTa-like models begin to count positions after the padding index.
            embeddings = getattr(self.model, "base_model", self.model)
            table = getattr(getattr(embeddings, "embeddings", None), "position_embeddings", None)
            offset = getattr(table, "padding_idx", None)
            limits.append(positions if offset is None else positions - offset - 1)
        longest = getattr(self.tokenizer, "model_max_length", None)
        if isinstance(longest, int) and 0 < longest < 10**9:
            limits.append(longest)
        return min(limits) if limits else None


def table_of(model: Any) -> Any:
    """What looks a model's tokens up, or one half's of it; None where nothing says (CANINE)."""
    try:
        return model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return getattr(model, "embed_tokens", None)  # FSMT's halves
