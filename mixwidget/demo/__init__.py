"""The embedded demo model: a small BERT sentiment classifier, loaded without a network.

torch and transformers are imported by :func:`load`, not by this module.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

__all__ = ["FOLDER", "SENTENCE", "load"]

FOLDER = Path(__file__).parent / "model"
"""Where the files are; also what ``model.name_or_path`` says, so that whatever looks for the
tokenizer by that name finds it on disk and not on the network."""

SENTENCE = "the plot is thin , but the acting is never boring ."
"""A sentence worth looking at: a contrast and a negation, and the model gets it right."""


def load() -> tuple[BertForSequenceClassification, PreTrainedTokenizerFast]:
    """Return the demo model (float32, on the CPU, in eval mode) and its tokenizer.

    Every call returns a new model, so that changing one changes no other.

    >>> from mixwidget import demo
    >>> model, tokenizer = demo.load()
    >>> tokenizer.tokenize(demo.SENTENCE)[:3]
    ['the', 'plot', 'is']
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    config = BertConfig.from_pretrained(FOLDER, local_files_only=True)
    config.dtype = torch.float32
    config._name_or_path = str(FOLDER)
    # Not from_pretrained: it draws a progress bar into the notebook. The random weights that
    # are made here and overwritten must not advance the user's random numbers.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        model = BertForSequenceClassification(config).float()
    model.load_state_dict(load_file(FOLDER / "model.safetensors"))  # copies fp16 into float32
    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    return model.eval(), cast("PreTrainedTokenizerFast", tokenizer)
