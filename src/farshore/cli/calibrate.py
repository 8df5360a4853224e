"""`farshore calibrate`: fit the probabilities of a model to a few rows of a new site."""

from pathlib import Path

from .data_options import MODEL, MODEL_LABEL, MODEL_NETWORK, TextOptions
from .flags import answers, argument, command, flag


@command
def calibrate(
    model: Path = argument(MODEL),
    data: Path = argument("a few labelled rows of the new site (30 are enough)"),
    *,
    label: str | None = flag(MODEL_LABEL),
    written: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Calibrate MODEL to a few labelled rows of a new site.

    Fits a temperature and, if it helps, another threshold. Every row is scored by a calibration
    that was fitted without it: log loss, the model's metric, balanced accuracy and recall of each
    class, before and after. A change that lowers the model's metric is refused. Of numbers, it fits
    an intercept, a slope and the scale of the errors; ten rows are enough. No weight changes.
    `farshore undo` reverts it.

    Example: farshore calibrate model/ thirty_rows.csv
    """
    from ..deployment.changes import calibrate as calibrate_model
    from ..deployment.words import calibration_lines
    from .tables import printable

    done, opened = calibrate_model(model, data, label=label, form=written.form(), network=network)
    answers.update(vars(done))
    for line in calibration_lines(done, opened.learner):
        print(printable(line))
