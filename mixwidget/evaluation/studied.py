"""What a dataset said about methods: by layer, along removal curves, and by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..plots import plot_band, plot_grid, plot_layers
from .summary import mean_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# What each of these takes the one before it and adds.
LADDER = (
    ("raw_attention", "attn_norm", "norms of what is mixed"),
    ("raw_attention", "attention_residual", "the residual, on weights"),
    ("attn_norm", "attn_norm_res", "the residual"),
    ("attn_norm_res", "attn_norm_res_ln", "the first norm"),
    ("attn_norm_res_ln", "globenc", "the second norm"),
    ("attn_norm_res_ln", "alti", "distances in the place of norms"),
)
# Of whom a row is: model, method, metric, how; and its value for each text and layer.
Key = tuple[str, str, str, str]
GRID = np.linspace(0, 1, 21)
MEAN = ("mean", "stderr", "n")
_KEY = ["model", "method", "metric", "how"]


@dataclass(frozen=True)
class Study:
    """What was found, as frames; those that were not asked for are empty.

    Attributes:
        values: {(model, method, metric, how): {text: one value for each layer}}; `how` is
            "layer" (alone) or "rollout" (up to it). All of `layers` comes from it.
        failures: texts that failed: model, method, example, text, error.
        better: {metric: "higher" or "lower"}.
    """

    values: dict[Key, dict[int, Any]]
    drawn: dict[tuple[str, str], list[Any]]
    spoken: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]]
    failures: pd.DataFrame
    texts: list[str]
    better: dict[str, str] = field(default_factory=dict)

    @property
    def layers(self) -> pd.DataFrame:
        """A row for each model, method, metric, how and layer: mean, stderr, n."""
        rows = []
        for key, found in self.values.items():
            table = np.stack(list(found.values()))
            for layer, column in enumerate(table.T):
                rows.append({**self._named(key), "layer": layer, **_mean(column)})
        return frame_of(rows, ["model", "method", "metric", "how", "better", "layer", *MEAN])

    @property
    def best(self) -> pd.DataFrame:
        """Which layer: the best one of each model, method, metric and how, and the last."""
        rows = []
        for (key, group), last in self._by_row(self.layers):
            up = group["better"].iloc[0] != "lower"
            means = group["mean"] if up else -group["mean"]
            if means.isna().all():
                continue
            top = group.loc[means.idxmax()]
            rows.append(
                {
                    **dict(zip(_KEY, key, strict=True)),
                    "layer": int(top["layer"]),
                    "mean": top["mean"],
                    "stderr": top["stderr"],
                    "last": last,
                }
            )
        return frame_of(rows, [*_KEY, "layer", "mean", "stderr", "last"])

    @property
    def rollout(self) -> pd.DataFrame:
        """Does rolling out help: at each layer the rollout's value minus that of the layer alone,
        text by text; mean, stderr, n."""
        rows = []
        for key, found in self.values.items():
            if key[3] != "rollout":
                continue
            alone = self.values.get((*key[:3], "layer"), {})
            for layer, column in enumerate(_paired(found, alone).T):
                rows.append({**self._named(key), "layer": layer, **_mean(column)})
        return frame_of(rows, ["model", "method", "metric", "better", "layer", *MEAN])

    @property
    def added(self) -> pd.DataFrame:
        """What each part adds: the value with it minus the value without, text by text, at each
        layer, for those of the methods of which one is the other and one thing more."""
        rows = []
        for (model, method, metric, how), found in self.values.items():
            for before, after, what in LADDER:
                without = self.values.get((model, before, metric, how))
                if method != after or without is None:
                    continue
                key = (model, method, metric, how)
                for layer, column in enumerate(_paired(found, without).T):
                    head = {**self._named(key), "added": what, "to": before}
                    rows.append({**head, "layer": layer, **_mean(column)})
        columns = ["model", "method", "to", "added", "metric", "how", "better", "layer", *MEAN]
        return frame_of(rows, columns)

    @property
    def curves(self) -> pd.DataFrame:
        """Mean removal curves: probability at each share of tokens removed, over the texts; `low`
        and `high` hold eight in ten of them, `sd` is their standard deviation."""
        rows = []
        for (model, method), found in self.drawn.items():
            some = [np.interp(GRID, one["shares"], one["probabilities"]) for one in found]
            table = np.stack(some)
            low, high = np.quantile(table, (0.1, 0.9), axis=0)
            sd = table.std(0, ddof=1) if len(table) > 1 else np.full(len(GRID), np.nan)
            for k, share in enumerate(GRID):
                head = {"model": model, "method": method, "share": share}
                ends = {"low": low[k], "high": high[k], "sd": sd[k], "n": len(table)}
                rows.append({**head, "mean": table[:, k].mean(), **ends})
        columns = ["model", "method", "share", "mean", "low", "high", "sd", "n"]
        return frame_of(rows, columns)

    @property
    def words(self) -> pd.DataFrame:
        """Which words count most for what is predicted, the largest sums first: how often they
        stand in the texts, in how many, their mean and summed score, and the text in which
        they score most."""
        rows = []
        for (model, method), found in self.spoken.items():
            seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
            for number, one in found:
                for word, score in one["words"]:
                    seen.setdefault((one["for"], word), []).append((number, score))
            for (target, word), places in seen.items():
                scores = [score for _, score in places]
                head = {"model": model, "method": method, "target": target, "word": word}
                counts = {"count": len(places), "texts": len({number for number, _ in places})}
                best = max(places, key=lambda one: one[1])[0]
                sums = {"mean": float(np.mean(scores)), "total": float(np.sum(scores))}
                rows.append({**head, **counts, **sums, "example": self.texts[best]})
        columns = ["model", "method", "target", "word", "count", "texts", "mean", "total"]
        frame = frame_of(rows, [*columns, "example"])
        order = ["model", "method", "target", "total", "word"]
        ways = [True, True, True, False, True]
        return frame.sort_values(order, ascending=ways, kind="stable").reset_index(drop=True)

    def plot(
        self,
        kind: str = "layers",
        *,
        metric: str | None = None,
        how: str = "layer",
        title: str | None = None,
    ) -> Figure:
        """Draw it: "layers" (a line for each method), "grid" (methods by layers, as shades) or
        "curves" (with bands: eight in ten texts; of several models the spread of their means).

        Args:
            metric: which one, if there are several; "hta" is the correlation with `hta`.
            how: "layer" or "rollout".
        """
        if kind == "curves":
            return plot_band(self._bands(), title=title)
        if kind not in ("layers", "grid"):
            raise InputError(f'kind is {kind!r}; it can be "layers", "grid" or "curves".')
        known = list(dict.fromkeys(key[2] for key in self.values if key[3] == how))
        if metric is None and len(known) == 1:
            metric = known[0]
        if metric not in known:
            raise InputError(f"metric is {metric!r}; there is {', '.join(known) or 'none'}.")
        rows = self.layers
        rows = rows[(rows["metric"] == metric) & (rows["how"] == how)]
        several = rows["model"].nunique() > 1
        means: dict[str, list[float]] = {}
        errors: dict[str, list[float]] = {}
        for (model, method), group in rows.groupby(["model", "method"], sort=False):
            name = f"{model}: {method}" if several else str(method)
            means[name], errors[name] = group["mean"].tolist(), group["stderr"].tolist()
        label = f"{metric}, {'rolled out' if how == 'rollout' else 'each layer alone'}"
        if kind == "grid":
            return plot_grid(means, label=label, title=title)
        return plot_layers(means, label=label, title=title, errors=errors)

    def _bands(self) -> dict[str, Any]:
        """(shares, middle, low, high) of each method."""
        rows, found = self.curves, {}
        for method, group in rows.groupby("method", sort=False):
            means = group.pivot(index="model", columns="share", values="mean").to_numpy()
            if len(means) == 1:
                found[str(method)] = (GRID, means[0], group["low"].to_numpy(), group["high"])
                continue
            middle, spread = means.mean(0), means.std(0, ddof=1)
            found[str(method)] = (GRID, middle, middle - spread, middle + spread)
        return found

    def _named(self, key: Key) -> dict[str, Any]:
        named = dict(zip(_KEY, key, strict=True))
        return {**named, "better": self.better.get(key[2])}

    def _by_row(self, layers: pd.DataFrame) -> list[Any]:
        groups = layers.groupby(_KEY, sort=False)
        return [((key, group), group["mean"].iloc[-1]) for key, group in groups]


def _paired(one: dict[int, Any], other: dict[int, Any]) -> Any:
    """Differences of the texts that both have, [texts, layers]."""
    both = [number for number in one if number in other]
    return np.stack([one[number] - other[number] for number in both]) if both else np.zeros((0, 0))


def _mean(column: Any) -> dict[str, Any]:
    known = [float(value) for value in column if value == value]
    mean, stderr = mean_of(known)
    return {"mean": mean, "stderr": stderr, "n": len(known)}


def frame_of(rows: list[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))
