"""One layer taken apart; knows tensors and a spec, no model and no text."""

from .algebra import STAGES, Block, Stage, StageName, head_norms, mixing_ratio, vector_norms
from .digits import wide
from .distances import part_distances, proximity
from .jacobian import Cut, LayerGraph, exact_squares, sampled_squares
from .nodes import Attention, Nodes
from .once import once
from .parts import FeedForward, Norm, linear_weights
from .record import Known, LayerRecord, Placed, Taped
from .routes import Shares, shares
from .spec import BlockSpec, all_at, at
from .taped import TapedBlock
from .zeroing import Distance, moved_by, zeroing_distances

__all__ = [
    "STAGES",
    "Attention",
    "Block",
    "BlockSpec",
    "Cut",
    "Distance",
    "FeedForward",
    "Known",
    "LayerGraph",
    "LayerRecord",
    "Nodes",
    "Norm",
    "Placed",
    "Shares",
    "Stage",
    "StageName",
    "Taped",
    "TapedBlock",
    "all_at",
    "at",
    "exact_squares",
    "head_norms",
    "linear_weights",
    "mixing_ratio",
    "moved_by",
    "once",
    "part_distances",
    "proximity",
    "sampled_squares",
    "shares",
    "vector_norms",
    "wide",
    "zeroing_distances",
]
