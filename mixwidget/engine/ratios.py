"""How much of each token is other tokens, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ..blocks import STAGES, mixing_ratio
from ..models import as_it_was
from .verbs import prepare

if TYPE_CHECKING:
    import pandas as pd

    from ..models import Case


@as_it_was
def mixing_ratios(
    model: Any,
    text: str,
    *,
    tokenizer: Any = None,
    text_pair: str | None = None,
    truncate: bool = False,
) -> pd.DataFrame:
    """The mixing ratio r_i = ||sum_{j != i} u_ij|| / (that + ||u_ii||) of every token and layer.

    0: the token is only itself; 1: it is only others. One row per layer and token; columns are
    `layer`, `position`, `token`, and the ratio at each stage of the block: `z` (attention alone),
    `res` (with the residual), `res_ln` (after the first norm) and `enc` (through the second).
    Where no norm follows the residual sum the last three are equal. Arguments as in `explain`.

    >>> from mixwidget import demo, mixing_ratios
    >>> table = mixing_ratios(demo.load()[0], "not bad")
    >>> table.columns.tolist()
    ['layer', 'position', 'token', 'z', 'res', 'res_ln', 'enc']
    """
    import pandas as pd

    case = prepare(model, text, tokenizer=tokenizer, text_pair=text_pair, truncate=truncate)
    trace, rows = case.trace(), []
    with torch.no_grad():
        for layer in trace.attending:
            block = trace.block(layer)
            ratios = {name: mixing_ratio(block, block.stage(name)).tolist() for name in STAGES}
            rows += [
                {
                    "layer": layer,
                    "position": token.position,
                    "token": str(token),
                    **{name: values[token.position] for name, values in ratios.items()},
                }
                for token in case.encoding.tokens
            ]
    return pd.DataFrame(rows)


def ratios_by_layer(case: Case) -> torch.Tensor:
    """The ratio of every token through the whole block, [L, n]; NaN where none attends."""
    trace = case.trace()
    found = torch.full((len(trace), len(case.encoding.tokens)), torch.nan)
    with torch.no_grad():
        for layer in trace.attending:
            block = trace.block(layer)
            found[layer] = mixing_ratio(block, block.stage("enc")).float().cpu()
    return found
