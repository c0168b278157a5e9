"""From what the user gives (a model, a name, a folder, a pipeline) to model and tokenizer."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import ModelInputError, TokenizerNotFoundError, UnsupportedModelError
from .anatomy import anatomy_of, decodes
from .source import Source, Task


def open_source(model: Any, tokenizer: Any = None) -> Source:
    """Find model, tokenizer and task. Raises a typed error that says what to pass instead."""
    return with_tokenizer(open_model(model, tokenizer))


def with_tokenizer(source: Source) -> Source:
    """The same with a tokenizer: where none was given, the one the model was made with."""
    if source.tokenizer is not None:
        return source
    return replace(source, tokenizer=_find_tokenizer(source.model))


def open_model(model: Any, tokenizer: Any = None) -> Source:
    """Find model and task; the tokenizer, which may take longer, is looked for afterwards."""
    if isinstance(model, Source):
        return model
    name = ""
    if model is None:
        raise ModelInputError(
            "model is None: pass a transformers model, the name or folder of one, or a pipeline."
        )
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        model = _load(name)
    elif not isinstance(model, nn.Module) and hasattr(model, "model"):  # a pipeline
        tokenizer = tokenizer or getattr(model, "tokenizer", None)
        model = model.model
    model = getattr(model, "_orig_mod", model)  # torch.compile wraps; the inside is the model
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        model = model.module  # whole on each device, and one text needs one of them
    if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
        model = _adapted(model)
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise ModelInputError(
            f"{type(model).__name__} is not a transformers model. Pass a PreTrainedModel, the "
            "name or folder of one, or a pipeline."
        )
    task = _task(model)
    anatomy = anatomy_of(model)  # what cannot be taken apart is refused before anything else
    name = name or getattr(model, "name_or_path", "") or type(model).__name__
    source = Source(model, tokenizer, name, task)
    vars(source)["anatomy"] = anatomy
    return source


def _adapted(model: Any) -> Any:
    """The model inside of peft's, whose adapters are parts of its modules."""
    config = getattr(model, "active_peft_config", None)
    if config is not None and config.is_prompt_learning:
        kind = str(getattr(config.peft_type, "value", config.peft_type)).replace("_", " ").lower()
        raise UnsupportedModelError(
            f"The model is adapted by {kind} (peft): vectors without words are put before or into "
            "the text, and there is no row for them in a map. Adapters that change weights (LoRA, "
            "IA3) are explained as they are; to explain the model without its adapter pass "
            "model.get_base_model()."
        )
    return model.get_base_model()


def _load(name: str) -> Any:
    import transformers

    if Path(name).is_absolute() and not Path(name).exists():
        raise ModelInputError(f"There is no folder {name!r}. Check the path of the model.")

    try:
        config = transformers.AutoConfig.from_pretrained(name)
        wanted = (getattr(config, "architectures", None) or [None])[0]
        cls = getattr(transformers, wanted or "", None) or transformers.AutoModel
        model = cls.from_pretrained(name, config=config, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        kind = "folder" if Path(name).exists() else "model"
        raise ModelInputError(
            f"Could not load the {kind} {name!r}: {_first_line(error)} "
            "Check the name, or pass a loaded model and its tokenizer."
        ) from error
    return model.eval()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _find_tokenizer(model: Any) -> Any:
    import transformers

    name = getattr(model, "name_or_path", "") or getattr(model.config, "_name_or_path", "")
    if not name:
        raise TokenizerNotFoundError(
            "The model does not say where it came from, so its tokenizer cannot be found. "
            "Pass it: tokenizer=..."
        )
    try:
        return transformers.AutoTokenizer.from_pretrained(name)
    except Exception as error:  # transformers raises many kinds here, all meaning the same
        raise TokenizerNotFoundError(
            f"No tokenizer was found at {name!r} ({_first_line(error)}). Pass it: tokenizer=..."
        ) from error


# What a class is, by how its name ends; those that no ending tells, by transformers' own tables.
_TASKS: list[tuple[str, Task]] = [
    ("ForSequenceClassification", "classification"),
    ("ForMaskedLM", "masked_lm"),
    ("ForPreTraining", "masked_lm"),
    ("LMHeadModel", "causal_lm"),
    ("ForCausalLM", "causal_lm"),
    ("ForQuestionAnswering", "question_answering"),
    ("ForConditionalGeneration", "seq2seq_lm"),
    ("MTModel", "seq2seq_lm"),
]
_TABLES: list[tuple[str, Task]] = [
    ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "seq2seq_lm"),
    ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "causal_lm"),
    ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "masked_lm"),
    ("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", "classification"),
]


def _task(model: nn.Module) -> Task:
    task = _named_task(model)
    if task in ("seq2seq_lm", "causal_lm", "masked_lm"):
        if decodes(model):
            return "seq2seq_lm"
        if task == "seq2seq_lm":  # it reads pictures or sound, or has lost its encoder
            return "causal_lm"
        if getattr(model.config, "causal", None) is False:
            return "masked_lm"  # XLM has one class for both
    return task


def _named_task(model: nn.Module) -> Task:
    from transformers.models.auto import modeling_auto

    for cls in type(model).__mro__:  # a user's subclass is still what it derives from
        for ending, task in _TASKS:
            if cls.__name__.endswith(ending):
                return task
        for table, task in _TABLES:
            if cls.__name__ in getattr(modeling_auto, table).values():
                return task
    name = type(model).__name__
    if "For" in name:
        raise UnsupportedModelError(
            f"{name} has a head that cannot be explained yet. Supported: sequence "
            "classification, masked and causal language modelling, question answering, and "
            "base models. For maps alone pass model.base_model."
        )
    return "base"
