"""MLflow: one run of the experiment `farshore` per run."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import needs
from .logger import Logger

EXPERIMENT = "farshore"
# MLflow refuses other characters in names; names of domains contain anything.
REFUSED = re.compile(r"[^\w\-./ :]", flags=re.ASCII)
LONGEST_VALUE = 500


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
    existing = client.get_experiment_by_name(EXPERIMENT)
    if existing is not None:
        return str(existing.experiment_id)
    artifacts = (folder / "mlflow-artifacts").resolve().as_uri()
    return str(client.create_experiment(EXPERIMENT, artifact_location=artifacts))
