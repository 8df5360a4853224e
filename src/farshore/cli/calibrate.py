"""`farshore calibrate`: fit the probabilities of a model to a few rows of a new site."""

from __future__ import annotations

from pathlib import Path

from .data_options import MODEL, MODEL_LABEL, MODEL_NETWORK, TextOptions
from .flags import argument, command, flag


@command
def calibrate(
    model: Path = argument(MODEL),
    data: Path = argument("a few rows of the new site (30 are enough), as for `predict`"),
    *,
    label: str | None = flag(MODEL_LABEL),
    unlabelled: bool = flag("the rows have no labels: estimate the shares of the classes", False),
    text: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Calibrate MODEL to a few rows of a new site.

    With labels: a temperature and, if it helps, another threshold. With --unlabelled: the class
    priors of the site, by EM. No weight changes. `farshore undo` reverts it.

    Example: farshore calibrate model/ thirty_rows.csv
    """
    from ..deployment.changes import calibrate as calibrate_model
    from ..deployment.words import calibration_lines
    from .tables import printable

    done, opened = calibrate_model(
        model, data, labelled=not unlabelled, label=label, form=text.form(), network=network
    )
    classes = [str(each) for each in opened.learner.classes or []]
    for line in calibration_lines(done, classes):
        print(printable(line))
