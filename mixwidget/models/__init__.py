"""The user's model, its shadow, and passes through it."""

from .again import cut_open
from .answers import (
    answer_targets,
    answer_text,
    encode_question,
    likelihoods,
    whole_target,
    with_answer,
)
from .backward import Attribution, attribute, graph_is_large
from .carried import Bias
from .case import Case, Size, forward_seconds
from .chat import is_chat, messages_of
from .decompose import Decomposition, decompose
from .direct import Direct, direct
from .encode import Encoding, encode
from .families import families, register_family, spec_for
from .gradients import (
    Prediction,
    embedded,
    gradients,
    read,
    recorded_with_graph,
    source_batches,
    token_embeddings,
)
from .greedy import greedy
from .memory import check_memory
from .opening import open_model, open_source, with_tokenizer
from .predict import WAYS, By, edit, neutral_token, predict, stand_in_name
from .recording import record
from .removal import edits_without, prompt_units, prompt_without
from .reply import Choice, choices
from .rules import sd
from .seq2seq import attention_on_axis
from .shadow import shadow
from .slopes import Activation
from .source import Source
from .sparing import is_long, positive_attention
from .spelling import SeveralTokensError
from .stack import layer_gradients
from .targets import (
    answering_row,
    check_focus,
    likely_spans,
    need_target,
    objective,
    probability,
    resolve_target,
    spelling_of,
)
from .thread import as_it_was
from .together import (
    Together,
    batch_tokens,
    batches,
    runs_together,
    shared_slopes,
    shared_weights,
)
from .trace import Trace, plain_output
from .walk import HeadFilter, LayerRelevance, Walk

__all__ = [
    "WAYS",
    "Activation",
    "Attribution",
    "Bias",
    "By",
    "Case",
    "Choice",
    "Decomposition",
    "Direct",
    "Encoding",
    "HeadFilter",
    "LayerRelevance",
    "Prediction",
    "SeveralTokensError",
    "Size",
    "Source",
    "Together",
    "Trace",
    "Walk",
    "answer_targets",
    "answer_text",
    "answering_row",
    "as_it_was",
    "attention_on_axis",
    "attribute",
    "batch_tokens",
    "batches",
    "check_focus",
    "check_memory",
    "choices",
    "cut_open",
    "decompose",
    "direct",
    "edit",
    "edits_without",
    "embedded",
    "encode",
    "encode_question",
    "families",
    "forward_seconds",
    "gradients",
    "graph_is_large",
    "greedy",
    "is_chat",
    "is_long",
    "layer_gradients",
    "likelihoods",
    "likely_spans",
    "messages_of",
    "need_target",
    "neutral_token",
    "objective",
    "open_model",
    "open_source",
    "plain_output",
    "positive_attention",
    "predict",
    "probability",
    "prompt_units",
    "prompt_without",
    "read",
    "record",
    "recorded_with_graph",
    "register_family",
    "resolve_target",
    "runs_together",
    "sd",
    "shadow",
    "shared_slopes",
    "shared_weights",
    "source_batches",
    "spec_for",
    "spelling_of",
    "stand_in_name",
    "token_embeddings",
    "whole_target",
    "with_answer",
    "with_tokenizer",
]
