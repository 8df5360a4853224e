"""`farshore arrive`: what to expect at a new site, and what to do."""

import math
import sys
from pathlib import Path

from ..errors import FarshoreError
from .data_options import MODEL, MODEL_NETWORK, UNLABELLED, TextOptions
from .flags import answers, argument, command, flag


@command
def arrive(
    model: Path = argument(MODEL),
    data: Path = argument(UNLABELLED),
    *,
    at_least: float | None = flag(
        "the accuracy that is needed here, 0 to 1 [default: the last --min-score of `learn`, and "
        "never less than guessing]"
    ),
    at_most: float | None = flag(
        "of a number: the mean error that is good enough, in the label's unit [default: the last "
        "--min-score, and never more than that of the sources' mean]"
    ),
    label_budget: int | None = flag("write this many rows to label"),
    out: Path = flag(
        "with --label-budget: the CSV file to write", Path("to-label.csv"), short="-o"
    ),
    overwrite: bool = flag("with --label-budget: write the file even if it exists", False),
    labels: Path | None = flag("the file of --label-budget, with labels; some may be empty"),
    written: TextOptions,
    network: str | None = flag(MODEL_NETWORK),
) -> None:
    """Say whether to trust MODEL at a new site, and what to do there.

    Without labels: whether DATA is unlike every known site, the accuracy to expect, or of a number
    the mean absolute error, and an advice: deploy, label more rows, calibrate, learn the site, or
    do not use the model, each with what it gains and the command to type. With --labels: an
    accuracy that the labels show, valid whenever you stop labelling, in the order of the file.
    Labels in DATA itself are not looked at.

    Exit codes: 0 deploy, 10 label more rows, 11 calibrate, 12 learn the site, 13 do not use the
    model; 2 an error.

    Example: farshore arrive model/ new_site.csv --at-least 0.8
    """
    from ..deployment.arrive import EXIT_CODES
    from ..deployment.label_rows import read_labels, write_rows
    from ..deployment.model import Model
    from ..deployment.words import arrival_lines, option_lines
    from ..tasks.classification import CLASSIFICATION
    from .tables import printable

    if at_least is not None and not 0 < at_least < 1:
        raise FarshoreError(f"--at-least {at_least} is not allowed: give a share, such as 0.8")
    if at_most is not None and not 0 < at_most < math.inf:
        raise FarshoreError(f"--at-most {at_most} is not allowed: give an error above 0")
    opened = Model.open(model, network=network)
    asks = {"--label-budget": label_budget, "--labels": labels}
    task = opened.learner.task or CLASSIFICATION
    task.check_asked({"--at-least": at_least, **asks}, {"--at-most": at_most})
    chunks, sample = opened.read_chunks(data, labelled=False, form=written.form())
    for chunk in chunks:
        sample.add(chunk)
    site = sample.site
    found = read_labels(opened, site, labels, written.form()) if labels is not None else None
    needed = at_least if at_most is None else at_most
    arrived = opened.judge(site, data, needed=needed, labelled=found)
    count = None
    if label_budget is not None:
        count = write_rows(opened, site, label_budget, out, overwrite=overwrite)
    answers.update(verdict=arrived.verdict, notes=site.notes, **arrived.plain())
    lines = [*site.notes, *arrival_lines(arrived), *option_lines(arrived.advice)]
    if count is not None:
        answers["out"] = out
        lines.append(f"wrote {count} rows to label to {out}; then --labels {out}")
    for line in lines:
        print(printable(line))
    sys.exit(EXIT_CODES[arrived.advice.action])
