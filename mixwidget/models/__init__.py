"""All that depends on model families: finding, running, recording and taking them apart."""

from ..blocks.algebra import STAGES, Block, Stage, StageName, mixing_ratio, vector_norms
from ..blocks.parts import FeedForward, Norm
from ..blocks.record import LayerRecord
from ..blocks.spec import BlockSpec
from .encode import Encoding, encode
from .families import families, register_family, spec_for
from .memory import check_memory
from .opening import open_source
from .shadow import shadow
from .source import Source
from .targets import check_focus, need_target, objective, probability, resolve_target
from .trace import Trace, record

__all__ = [
    "STAGES",
    "Block",
    "BlockSpec",
    "Encoding",
    "FeedForward",
    "LayerRecord",
    "Norm",
    "Source",
    "Stage",
    "StageName",
    "Trace",
    "check_focus",
    "check_memory",
    "encode",
    "families",
    "mixing_ratio",
    "need_target",
    "objective",
    "open_source",
    "probability",
    "record",
    "register_family",
    "resolve_target",
    "shadow",
    "spec_for",
    "vector_norms",
]
