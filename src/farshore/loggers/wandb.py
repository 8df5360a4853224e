"""Weights & Biases: one run of the project `farshore` per run."""

import os
from collections.abc import Mapping
from typing import Any

from ..errors import needs
from .logger import Logger

PROJECT = "farshore"


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
