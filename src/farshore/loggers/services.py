"""TensorBoard, Weights & Biases and MLflow: what is written with the package of each."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import needs
from .logger import Logger

# The project of W&B, and the experiment of MLflow; each has one run per run.
PROJECT = "farshore"
# MLflow refuses other characters in names; names of domains contain anything.
REFUSED = re.compile(r"[^\w\-./ :]", flags=re.ASCII)
LONGEST_VALUE = 500


class TensorBoard(Logger):
    """Writes to FOLDER/RUN; `tensorboard --logdir FOLDER` shows all runs in it."""

    name = "tensorboard"

    def open(self) -> None:
        """Open the events."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise needs("tensorboard", "the TensorBoard logger needs tensorboard") from None
        self._writer = SummaryWriter(str(self.folder / self.run))

    def write(self, values: Mapping[str, float]) -> None:
        """Write the numbers as scalars."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, self.count)

    def describe(self, facts: Mapping[str, str]) -> None:
        """Write the facts as a text."""
        self._writer.add_text("run", "\n".join(f"- {key}: {value}" for key, value in facts.items()))

    def close(self) -> None:
        """Flush and close the events."""
        self._writer.close()


class Wandb(Logger):
    """Logs to the project `farshore`, or to $WANDB_PROJECT; its local files are in FOLDER.

    Without credentials ($WANDB_API_KEY) the run is written offline; `wandb sync` uploads it later.
    $WANDB_MODE decides otherwise.
    """

    name = "wandb"

    def open(self) -> None:
        """Start the run."""
        try:
            import wandb
        except ImportError:
            raise needs("wandb", "the W&B logger needs wandb") from None
        self.folder.mkdir(parents=True, exist_ok=True)
        usual = "online" if os.environ.get("WANDB_API_KEY") else "offline"
        mode: Any = os.environ.get("WANDB_MODE", usual)
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=self.run,
            dir=str(self.folder),
            mode=mode,
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def write(self, values: Mapping[str, float]) -> None:
        """Log the numbers at the current step."""
        self._run.log(dict(values), step=self.count)

    def describe(self, facts: Mapping[str, str]) -> None:
        """Write the facts as the run's config."""
        self._run.config.update(dict(facts), allow_val_change=True)

    def close(self) -> None:
        """Finish the run."""
        self._run.finish()


class MLflow(Logger):
    """Logs to the server in $MLFLOW_TRACKING_URI, or to the database FOLDER/mlflow.db.

    `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db` shows the database.
    """

    name = "mlflow"

    def open(self) -> None:
        """Start the run."""
        self._client = _client(self.folder)
        experiment = _experiment(self._client, self.folder)
        self._id = self._client.create_run(experiment, run_name=self.run).info.run_id

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Make the database and the experiment, so that processes do not make them at once."""
        _experiment(_client(folder), folder)

    def write(self, values: Mapping[str, float]) -> None:
        """Log the numbers at the current step."""
        from mlflow.entities import Metric

        now = round(1000 * time.time())
        metrics = [
            Metric(REFUSED.sub("_", name), value, now, self.count) for name, value in values.items()
        ]
        self._client.log_batch(self._id, metrics=metrics)

    def describe(self, facts: Mapping[str, str]) -> None:
        """Write the facts as parameters."""
        from mlflow.entities import Param

        params = [
            Param(REFUSED.sub("_", key), value[:LONGEST_VALUE]) for key, value in facts.items()
        ]
        self._client.log_batch(self._id, params=params)

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self._id)


def _client(folder: Path) -> Any:
    try:
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise needs("mlflow", "the MLflow logger needs mlflow") from None
    folder.mkdir(parents=True, exist_ok=True)
    usual = f"sqlite:///{(folder / 'mlflow.db').resolve()}"
    return MlflowClient(tracking_uri=os.environ.get("MLFLOW_TRACKING_URI", usual))


def _experiment(client: Any, folder: Path) -> str:
    existing = client.get_experiment_by_name(PROJECT)
    if existing is not None:
        return str(existing.experiment_id)
    artifacts = (folder / "mlflow-artifacts").resolve().as_uri()
    return str(client.create_experiment(PROJECT, artifact_location=artifacts))
