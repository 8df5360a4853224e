"""`farshore calibrate`: fit the probabilities of a model to a few rows of a new site."""

from __future__ import annotations

from pathlib import Path

from .data_options import MODEL, MODEL_LABEL, MODEL_NETWORK, TextOptions
from .flags import argument, command, flag


@command
def calibrate(
    model: Path = argument(MODEL),
    data: Path = argument("a few labelled rows of the new site (30 are enough)"),
    *,
    label: str | None = flag(MODEL_LABEL),
    text: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Calibrate MODEL to a few labelled rows of a new site.

    Fits a temperature and, if it helps, another threshold. Every row is scored by a calibration
    that was fitted without it: log loss, the model's metric, balanced accuracy and recall of each
    class, before and after. A change that lowers the model's metric is refused. No weight changes.
    `farshore undo` reverts it.

    Example: farshore calibrate model/ thirty_rows.csv
    """
    from ..deployment.changes import calibrate as calibrate_model
    from ..deployment.words import calibration_lines
    from .tables import printable

    done, opened = calibrate_model(model, data, label=label, form=text.form(), network=network)
    classes = [str(each) for each in opened.learner.classes or []]
    for line in calibration_lines(done, opened.learner.metric, classes):
        print(printable(line))
