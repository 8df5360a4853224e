"""The finished runs, as tables/*.csv keep them: one row per run."""

from __future__ import annotations

from functools import cache

import pandas as pd

from reproduction import TABLES
from reproduction.doses import DOSE_COLUMNS

SCORE = "target_score_unseen"
# On covertype: the score if the classes of the target were as frequent as in its area.
AS_IT_IS = "target_score_as_it_is"
COLUMNS = (
    "run",
    "part",
    "benchmark",
    "method",
    "order",
    "target",
    "settings",
    "memory_rows",
    "steps_a_domain",
    "seed_number",
    "run_seed",
    "trial",
    "status",
    SCORE,
    "target_accuracy",
    "target_balanced_accuracy",
    "target_macro_f1",
    "target_auroc",
    "target_log_loss",
    "target_calibration_error",
    "source_validation_score",
    "source_train_score",
    "backward_transfer",
    "gain_by_learning",
    AS_IT_IS,
    *DOSE_COLUMNS,
    "seconds_of_training",
    "seconds_in_all",
    "commit",
    "torch_version",
    "device",
)


@cache
def table(name: str) -> pd.DataFrame:
    """The tidy table of an experiment; empty if nothing of it was run."""
    path = TABLES / f"{name}.csv"
    if not path.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(path, dtype={"order": str, "target": str, "settings": str})


def rows_of(name: str, benchmark: str, settings: str | None = None) -> pd.DataFrame:
    """The runs of an experiment on one benchmark, with these settings if any are given."""
    frame = table(name)
    chosen = frame["benchmark"] == benchmark
    return frame[chosen if settings is None else chosen & (frame["settings"] == settings)]
