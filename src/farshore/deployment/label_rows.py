"""Which rows of a new site to label, and what their labels say about the accuracy there.

The rows are drawn as `farshore.results.sequence` needs them, by the model's confidence. The draws
follow from the model and the data alone, so the same rows are asked for again, in the same order. A
draw of a row whose label is missing ends the sequence: what comes after would be a choice.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ..base.files import output
from ..base.randomness import derive
from ..data.tables.convert import encode_labels
from ..data.tables.read_table import TextForm, read_chunks
from ..data.tables.spreadsheet import as_csv_rows
from ..errors import FarshoreError
from ..results.sequence import Picks, bounds
from .arrive import Labelled
from .calibrate import FEWEST_ROWS, fit_labelled
from .model import Model
from .site import Site

# The column with the place of a row in the site's data.
ROW = "row to label"
MOST_DRAWS = 4096


def drawn(model: Model, site: Site) -> tuple[Picks, np.ndarray]:
    """How rows are drawn, and the rows in the order of the draws, some more than once."""
    design = model.label_design(site)
    draws = np.random.default_rng(derive(model.learner.seed, "rows to label"))
    return design, design.draw(draws, MOST_DRAWS)


def write_rows(model: Model, site: Site, budget: int, out: Path, *, overwrite: bool) -> int:
    """Write the rows to label, the next ones last; the label's column is empty. How many."""
    if budget < 1:
        raise FarshoreError(f"--label-budget {budget} is not allowed: give 1 or more")
    if out.exists() and not overwrite:
        raise FarshoreError(
            f"{out} exists: it may have labels in it; name another file (-o), or add --overwrite"
        )
    label = model.columns.label or "label"
    _, rows = drawn(model, site)
    chosen = list(dict.fromkeys(rows.tolist()))[:budget]
    table = pd.DataFrame({ROW: [site.names[row] for row in chosen]})
    if isinstance(site.inputs, pd.DataFrame):
        inputs = site.inputs.iloc[chosen].reset_index(drop=True)
        table = pd.concat([table, inputs.drop(columns=[ROW], errors="ignore")], axis=1)
    table[label] = ""
    with output(out) as file:
        file.write(as_csv_rows(table, header=True).encode())
    return len(chosen)


def read_labels(model: Model, site: Site, path: Path, form: TextForm | None = None) -> Labelled:
    """What the labels in a file say; rows with an empty label do not count."""
    if not path.is_file():
        raise FarshoreError(f"there is no file {str(path)!r}: check the path of --labels")
    label = model.columns.label or "label"
    frame = pd.concat(list(read_chunks(path, {ROW, label}, form)))
    for column in (ROW, label):
        if column not in frame.columns:
            raise FarshoreError(
                f"{path} has no column {column!r}: give the file that `farshore arrive ... "
                f"--label-budget N` wrote, with labels in the column {label!r}"
            )
    given = frame[frame[label].notna() & (frame[label].astype(str).str.strip() != "")]
    labels = dict(zip(given[ROW].astype(str), given[label].astype(str), strict=True))
    if len(labels) < len(given):
        raise FarshoreError(f"{path} names a row twice: label every row once")
    numbers = {name: row for row, name in enumerate(site.names)}
    if unknown := [row for row in labels if row not in numbers]:
        raise FarshoreError(f"{path} has the row {unknown[0]!r}, which is not in the data")
    design, rows = drawn(model, site)
    known = np.array([site.names[row] in labels for row in rows])
    used = rows if known.all() else rows[: int(known.argmin())]
    if not len(used):
        raise FarshoreError(
            f"{path} does not label the first row that this model asks for, {site.names[rows[0]]}: "
            "if the model or the data have changed, write the rows again (--label-budget)"
        )
    return _said(model, site, design, used, labels)


def _said(
    model: Model, site: Site, design: Picks, rows: np.ndarray, labels: dict[str, str]
) -> Labelled:
    """The bounds from the rows that were drawn, and the gain of a calibration."""
    distinct = list(dict.fromkeys(rows.tolist()))
    classes = [str(each) for each in model.learner.classes or []]
    given = encode_labels([labels[site.names[row]] for row in distinct], classes, domain="--labels")
    true = dict(zip(distinct, given.tolist(), strict=True))
    logits = model.logits(site)
    right = np.array([int(logits[row].argmax()) == true[row] for row in rows])
    found = bounds(design, rows, right)
    weights = (design.shares / design.chances)[design.group[rows]]
    counts = np.bincount([true[row] for row in rows], weights, minlength=len(classes))
    gain = None
    if len(distinct) >= FEWEST_ROWS:
        own = model.learner.logits(model.inputs(site)).double().cpu().numpy()[distinct]
        labelled, usual = np.array([true[row] for row in distinct]), model.knowledge.temperature
        metric = model.learner.metric
        done = fit_labelled(own, labelled, metric=metric, usual=usual, current=model.applied)
        gain = done.after.score("accuracy") - done.before.score("accuracy")
    return Labelled(
        len(distinct),
        float(found.low[-1]),
        float(found.high[-1]),
        float(right @ weights / weights.sum()),
        float(counts.max() / counts.sum()),
        gain,
    )
