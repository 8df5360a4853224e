"""Loggers with their real libraries, offline: what is written can be read back."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from pictured import result

from farshore.loggers import Logger, make_logger

pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore")]

# The size of a block of LevelDB's log, and the kinds of records that end one.
BLOCK, WHOLE, LAST = 32768, 1, 4
HOSTILE = "süd & <b>, 50%"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


def log_a_run(logger: Logger) -> None:
    for step in range(21):
        logger.step("a", step, {"erm": torch.tensor(1.0 / (1 + step))})
    logger.domain("a", {f"{HOSTILE} validation accuracy": 0.75})
    logger.finish(result("er", target=0.625, name=HOSTILE))


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log_a_run(make_logger("tensorboard", tmp_path, "one"))
    events = EventAccumulator(str(tmp_path / "one"))
    events.Reload()
    losses = events.Scalars("loss/erm")
    assert [each.step for each in losses] == [0, 10, 20]
    assert losses[1].value == pytest.approx(1 / 11)
    assert events.Scalars("target/accuracy")[0].value == pytest.approx(0.625)
    assert len([tag for tag in events.Tags()["scalars"] if tag.startswith("score/")]) == 1


def records(path: Path) -> Iterator[bytes]:
    """The records of a .wandb file: a log as LevelDB writes it, behind a header of seven bytes."""
    data, at, parts = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # a block never ends with a part of a header
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (WHOLE, LAST):
            yield parts
            parts = b""


def test_wandb(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    from wandb.proto.wandb_internal_pb2 import Record

    log_a_run(make_logger("wandb", tmp_path, "one"))
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    history: dict[str, list[float]] = {}
    for data in records(path):
        record = Record()
        record.ParseFromString(data)
        for item in record.history.item:
            name = "/".join(item.nested_key) or item.key
            history.setdefault(name, []).append(json.loads(item.value_json))
    assert history["loss/erm"] == pytest.approx([1.0, 1 / 11, 1 / 21])
    assert history["target/accuracy"] == [0.625]


def test_mlflow(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    from mlflow.tracking import MlflowClient

    from farshore.loggers import MLflow

    MLflow.prepare(tmp_path)
    log_a_run(make_logger("mlflow", tmp_path, "one"))
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("farshore")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["target/accuracy"] == 0.625
    assert run.data.params["method"] == "er"
    history = client.get_metric_history(run.info.run_id, "loss/erm")
    assert [each.step for each in history] == [0, 10, 20]
