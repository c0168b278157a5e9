"""The user's model, its shadow, and passes through it."""

from .again import cut_open
from .answers import answer_targets, answer_text, encode_question, likelihoods, whole_target
from .case import Case, Size, forward_seconds
from .chat import is_chat
from .encode import Encoding, encode
from .families import families, register_family, spec_for
from .gradients import Prediction, gradients, recorded_with_graph, source_batches, token_embeddings
from .greedy import greedy
from .memory import check_memory
from .opening import open_model, open_source, with_tokenizer
from .predict import WAYS, By, edit, neutral_token, predict
from .recording import record
from .relevance import HeadFilter, LayerRelevance, Walk
from .replay import check_rules
from .rules import sd
from .shadow import shadow
from .source import Source
from .spelling import SeveralTokensError
from .targets import (
    check_focus,
    need_target,
    objective,
    probability,
    resolve_target,
    spelling_of,
)
from .thread import as_it_was
from .together import Together, batch_tokens, batches, runs_together
from .trace import Trace

__all__ = [
    "WAYS",
    "By",
    "Case",
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
    "as_it_was",
    "batch_tokens",
    "batches",
    "check_focus",
    "check_memory",
    "check_rules",
    "cut_open",
    "edit",
    "encode",
    "encode_question",
    "families",
    "forward_seconds",
    "gradients",
    "greedy",
    "is_chat",
    "likelihoods",
    "need_target",
    "neutral_token",
    "objective",
    "open_model",
    "open_source",
    "predict",
    "probability",
    "record",
    "recorded_with_graph",
    "register_family",
    "resolve_target",
    "runs_together",
    "sd",
    "shadow",
    "source_batches",
    "spec_for",
    "spelling_of",
    "token_embeddings",
    "whole_target",
    "with_tokenizer",
]
