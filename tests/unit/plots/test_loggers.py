"""Figures travel: the loggers of others take what `plot` returns as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from mixwidget import Explanation, demo, explain


@pytest.fixture(scope="module")
def e() -> Explanation:
    model, tokenizer = demo.load()
    found = explain(model, "not bad at all", "attention_rollout", tokenizer=tokenizer)
    assert isinstance(found, Explanation)
    return found


@pytest.mark.parametrize("kind", ["text", "map", "graph"])
def test_tensorboard(e: Explanation, kind: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_figure("why", e.plot(kind), global_step=3)
    read: Any = EventAccumulator(str(tmp_path)).Reload()
    (image,) = read.Images("why")
    assert image.step == 3
    assert image.width > 200
    assert image.height > 50


def test_mlflow(e: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more
    mlflow: Any = pytest.importorskip("mlflow", reason="mlflow is not installed")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_figure(e.plot(), "why.png")
        mlflow.log_text(e.to_json(), "why.json")
    found = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="why.png")
    height, width = matplotlib.image.imread(found).shape[:2]
    assert width > 200
    assert height > 50
    kept = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/why.json")
    assert Explanation.from_json(kept) == e
