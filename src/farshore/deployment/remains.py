"""What a model's folder stores of its sites, and what remains after `forget`, in words."""

from ..data.tables.table import TablePreprocessing
from .familiarity import past_rows
from .log import TEMPLATE
from .model import Model


def what_is_stored(model: Model) -> list[str]:
    """Everything that comes from the rows of sites."""
    learner = model.learner
    if model.started and model.empty:
        return _of_the_first(model)
    past = past_rows(learner)
    lines = ["weights that were trained on the rows of all sites"]
    if learner.shape is not None and learner.system.forgets_exactly:
        lines = ["sums per site, from which the weights are computed; no rows"]
    elif past:
        lines.append(f"{sum(len(y) for _, y in past.values())} training rows in the memory")
    if model.held_out:
        count = sum(len(rows["labels"]) for rows in model.held_out.values())
        lines.append(f"{count} held-out rows, at most 200 per site")
    if model.reliability:
        lines.append(
            "for each site, a table of confidences: counts of rows, and of right predictions"
        )
    if model.moments:
        lines.append("for each site, the mean and the covariance of its features")
    lines.append(
        "for each site, its name, the date, the number of rows in total and per class, the shares "
        "of missing values, and scores"
    )
    if model.sides:
        lines.append(f"checksums of {len(model.sides)} groups")
    return [*lines, *_of_the_first(model)]


def what_remains(model: Model) -> list[str]:
    """What the folder still contains of a site that was forgotten."""
    lines = ["the weights, which were trained on its rows and do not change"]
    if model.learner.system.forgets_exactly:
        lines = []
    if model.sides:
        lines.append("the checksums of the groups of all sites")
    lines += [
        "log entries that a site was learned and forgotten: when, by whom and with which version",
        "a checksum of its name",
    ]
    if model.calibration is not None:
        lines.append("the calibration, which was fitted to outputs of these weights")
    return [*lines, *_of_the_first(model)]


def _of_the_first(model: Model) -> list[str]:
    table, task = model.learner.preprocessing, model.learner.task
    of_labels = task.stored if task is not None else []
    if not isinstance(table, TablePreprocessing):
        return of_labels
    agreed = any(entry.action == TEMPLATE for entry in model.log)
    first = "template" if agreed else "first site"
    scales = f"the scales and categories of the columns, which are those of the {first}"
    lines = [*of_labels, scales]
    if table.texts is not None:
        names = ", ".join(table.texts.columns)
        lines.append(f"no text of the columns {names}; {table.texts.features.stored}")
    return lines
