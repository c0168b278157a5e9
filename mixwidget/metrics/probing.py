"""Probing: what a layer knows, and how its vectors lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..blocks import StageName
from ..errors import InputError, UnsupportedMethodError
from ..models import Case, as_it_was, check_focus, encode, open_source
from .comparison import pearson
from .evidence import Values

if TYPE_CHECKING:
    import pandas as pd

# Shares of the data, in percent, at which the online code trains its next probe.
BLOCKS = (0.8, 1.6, 3.2, 6.25, 12.5, 25.0, 50.0, 100.0)


def compression(
    features: NDArray[Any],
    labels: Sequence[Any],
    *,
    blocks: Sequence[float] = BLOCKS,
    seed: int = 0,
    penalty: float = 1.0,
) -> float:
    """How well a layer's vectors tell the labels: N log2 K / codelength in bits.

    The online code: labels are sent block by block, each with the probe trained on all
    before it; the first block costs log2 K bits a label. 1 means the probe learnt nothing.
    The probe is logistic regression on standardised features: it has one optimum, so the
    number depends on the data and the order alone. Examples are shuffled by `seed`.

    Args:
        features: [N, d].
        labels: N classes.
        blocks: ends of the blocks in percent of N, rising to 100.
        penalty: strength of the probe's L2 penalty (sklearn's 1 / C).
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.asarray(features, dtype=np.float64)
    classes, y = np.unique(np.asarray(labels), return_inverse=True)
    count, kinds = len(y), len(classes)
    if x.ndim != 2 or len(x) != count:
        raise InputError(f"features must be [{count}, d] for {count} labels, not {x.shape}.")
    if kinds < 2:
        raise InputError("Probing needs examples of at least two classes.")
    order = np.random.default_rng(seed).permutation(count)
    x, y = x[order], y[order]
    ends = sorted({max(1, round(count * share / 100)) for share in blocks} | {count})
    bits = ends[0] * np.log2(kinds)
    for begin, end in pairwise(ends):
        chance = np.full((end - begin, kinds), 1.0 / kinds)
        seen = np.unique(y[:begin])
        if len(seen) > 1:
            probe = make_pipeline(
                StandardScaler(), LogisticRegression(C=1.0 / penalty, max_iter=2000)
            ).fit(x[:begin], y[:begin])
            # A class not seen yet must still have a code word.
            chance[:, seen] = probe.predict_proba(x[begin:end])
            chance = 0.999 * chance + 0.001 / kinds
            chance /= chance.sum(1, keepdims=True)
        bits -= float(np.log2(chance[np.arange(end - begin), y[begin:end]]).sum())
    return float(count * np.log2(kinds) / bits)


def layer_features(case: Case, focus: Any = None) -> NDArray[np.float32]:
    """What each layer holds at the focus token, [layers + 1, d]; first the embeddings."""
    row = check_focus(focus, case.source, case.encoding)
    layers = case.trace().layers
    rows = [layers[0].input[row], *(record.output[row] for record in layers)]  # type: ignore[index]
    return torch.stack([r.detach().float().cpu() for r in rows]).numpy()


def mean_cosine(vectors: NDArray[Any], *, pairs: int = 1000, seed: int = 0) -> float:
    """Mean cosine of random pairs of different vectors, [N, d]: anisotropy if far from 0."""
    x = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(x, axis=1)
    x = x[lengths > 0] / lengths[lengths > 0, None]  # a vector of zeros has no direction
    count = len(x)
    if count < 2:
        raise InputError("There must be at least two vectors to compare.")
    generator = np.random.default_rng(seed)
    first = generator.integers(0, count, pairs)
    second = (first + generator.integers(1, count, pairs)) % count
    return float(np.mean(np.einsum("pd,pd->p", x[first], x[second])))


@as_it_was
def compression_by_layer(
    model: Any,
    texts: Sequence[str],
    labels: Sequence[Any],
    *,
    tokenizer: Any = None,
    focus: Any = None,
    seed: int = 0,
) -> Values:
    """`compression` of what each layer holds at the focus token, [layers + 1]; first the
    embeddings. `model` is all that `explain` takes."""
    if len(texts) != len(labels):
        raise InputError(f"There are {len(labels)} labels for {len(texts)} texts.")
    source = open_source(model, tokenizer)
    cases = (Case(source, encode(source, text)) for text in texts)
    features = np.stack([layer_features(case, focus) for case in cases])
    return np.array(
        [compression(features[:, k], labels, seed=seed) for k in range(features.shape[1])]
    )


@as_it_was
def anisotropy(
    model: Any,
    texts: Sequence[str] | None = None,
    *,
    tokenizer: Any = None,
    stage: StageName = "res_ln",
    pairs: int = 1000,
    seed: int = 0,
) -> dict[str, Values]:
    """Mean cosine of random pairs, per layer, over the tokens of some texts.

    Returns "outputs": of the outputs y_i of the attention block (at the stage; what the
    transformed vectors of a token and the biases add up to), and "transformed": of the
    transformed vectors u_ij = scale_i sum_h A^h_ij g^h_j (with the residual where i = j).

    For the transformed vectors a random sample of (i, j) in each text is built: all n^2 of
    them are never held.

    Args:
        model: all that `explain` takes; or, without texts, a list of cases.
        texts: some hundred are enough.
        stage: "z", "res", "res_ln" or "enc" of the block.
        pairs: how many pairs of vectors are compared in each layer.

    >>> from mixwidget import demo, metrics
    >>> found = metrics.anisotropy(demo.load()[0], ["not bad", "a thin plot"])
    >>> len(found["outputs"])
    4
    """
    if texts is None:
        cases = list(model) if isinstance(model, list | tuple) else []
    else:
        source = open_source(model, tokenizer)
        given = [texts] if isinstance(texts, str) else list(texts)
        cases = [Case(source, encode(source, text)) for text in given]
    if not cases or not all(isinstance(case, Case) for case in cases):
        raise InputError("Give at least one text.")
    generator = np.random.default_rng(seed)
    count = 0
    sample = max(2, -(-2 * pairs // len(cases)))
    outputs: dict[int, list[Values]] = {}
    transformed: dict[int, list[Values]] = {}
    for case in cases:
        trace = case.trace()
        n, count = trace.tokens, len(trace)
        rows, columns = (torch.from_numpy(generator.integers(0, n, sample)) for _ in range(2))
        for layer in trace.attending:
            block = trace.block(layer)
            made = block.stage(stage)
            vectors = _transformed(block, made, rows, columns)
            for held, some in ((outputs, made.total), (transformed, vectors)):
                held.setdefault(layer, []).append(some.detach().double().cpu().numpy())

    def summary(held: dict[int, list[Values]]) -> Values:
        found = np.full(count, np.nan)
        for layer, some in held.items():
            found[layer] = mean_cosine(np.concatenate(some), pairs=pairs, seed=seed)
        return found

    return {"outputs": summary(outputs), "transformed": summary(transformed)}


@as_it_was
def outlier_weights(model: Any, *, tokenizer: Any = None, sigmas: float = 3.0) -> pd.DataFrame:
    """How the outlying weights of the two norms of each layer go together (GlobEnc, Figure 5).

    A feature is an outlier if its weight in one of the norms lies `sigmas` standard deviations or
    more from that norm's mean. One row a layer: `outliers` (how many), `pearson` of the two
    norms' weights on them, `pearson_all` on all features. Norms that follow the residual sums
    only; a layer without two of them is left out.
    """
    import pandas as pd

    source = open_source(model, tokenizer)
    trace = Case(source, encode(source, "a")).trace()
    rows = []
    for layer in trace.attending:
        block = trace.block(layer)
        norms = [getattr(block, name, None) for name in ("norm1", "norm2")]
        weights = [norm.gamma.double().cpu().numpy() for norm in norms if norm is not None]
        if len(weights) < 2 or getattr(block.spec, "wiring", None) != "post":
            continue
        far = [abs(w - w.mean()) >= sigmas * w.std() for w in weights]
        chosen = far[0] | far[1]
        row: dict[str, float] = {"layer": layer, "outliers": int(chosen.sum())}
        row["pearson"] = pearson(weights[0][chosen], weights[1][chosen])
        rows.append({**row, "pearson_all": pearson(*weights)})
    if not rows:
        raise UnsupportedMethodError("This model has no layers with two norms after its sums.")
    return pd.DataFrame(rows)


def _transformed(block: Any, stage: Any, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """u_ij for pairs (i, j), [pairs, d]."""
    with torch.no_grad():
        weighted = block.values[:, columns] * block.weights[:, rows, columns].unsqueeze(-1)
        if stage.carry is None:
            vectors = torch.einsum("hpk,hkd->pd", weighted, stage.project) * stage.scale[rows]
        else:  # each row does something of its own: one pair at a time, in its row
            made = []
            for pair, row in enumerate(rows.tolist()):
                brought = torch.zeros_like(block.values).transpose(0, 1)
                brought[row] = weighted[:, pair]
                made.append(block.carried(stage, brought)[row])
            vectors = torch.stack(made)
        if stage.residual is not None:
            own = (rows == columns).to(vectors).unsqueeze(-1)
            vectors = vectors + own * stage.residual[rows]
        return vectors
