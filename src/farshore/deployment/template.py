"""A template: what several places agree on before they learn, so that their models can be joined.

It is a model's folder without a site: method, settings, classes, columns with their types and
scales, and the random projection. One place makes it from a table of its own. No row is in it. Of
the rows it tells the median and the standard deviation of each column of numbers, the categories
that at least a few rows have, the classes, and how many rows there were.
"""

from pathlib import Path
from typing import Any, Unpack

import pandas as pd
import torch
from torch import Tensor

from ..base import manifest
from ..base.lock import exclusive
from ..data.domain import Domain
from ..data.tables.cells import as_texts
from ..data.tables.columns import sort_classes
from ..data.tables.convert import encode_labels
from ..data.tables.frames import learn_columns
from ..data.tables.table import TablePreprocessing, listed
from ..errors import FarshoreError
from ..learner.joining import check_adds_up, difference
from ..learner.loading import Opening
from ..observer import Observer
from ..tasks.classification import Classification
from ..tasks.labels import need_classes
from .log import TEMPLATE, LogEntry
from .model import Model
from .new_model import NewModel
from .site import Columns, Site, read_site

# A category of fewer rows would tell that somebody has it; it counts as any unknown one.
FEWEST_OF_CATEGORY = 5
NAME = "template"


def make_template(
    folder: str | Path,
    data: str | Path,
    *,
    columns: Columns,
    new: NewModel,
    size: int | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
    **reading: Any,
) -> tuple[Model, list[str]]:
    """Write a template into a new folder; return it, and notes on the columns."""
    folder = Path(folder)
    if not manifest.is_free(folder):
        raise FarshoreError(f"{folder} exists: a template is written into a new folder")
    images = new.image_form(size) if Path(data).is_dir() else None
    site = read_site(data, columns, None, labelled=True, new_form=images, size=size, **reading)
    need_classes(site.task, str(columns.label), "a template")
    learner = new.make(site, device=device, observer=observer)
    labels = site.labels or []
    classes = list(learner.classes or sort_classes(labels))
    codes = encode_labels(labels, classes, domain=NAME)
    preprocessing, inputs, notes = _settled(site)
    first = torch.zeros(1, dtype=torch.long)
    # One row, for its shape: nothing is learned from it.
    domain = learner.backbone.prepared(Domain(NAME, inputs[:1], codes[:1], first, first[:0]))
    learner.begin(domain, Classification(tuple(classes)), weighted=site.weights is not None)
    learner.preprocessing = preprocessing
    check_adds_up(learner, "models of this template")
    with exclusive(folder):
        model = Model(folder, learner, None)
        model.columns = columns
        model.log.append(LogEntry(action=TEMPLATE, rows=len(site)))
        model.save(keep_previous=False)
    return model, [*site.notes, *notes]


def _settled(site: Site) -> tuple[Any, Tensor, list[str]]:
    """How rows become inputs, the inputs, and notes."""
    if isinstance(site.inputs, Tensor):
        return site.preprocessing, site.inputs, []
    plan = learn_columns(site.inputs, torch.arange(len(site)), site.preprocessing)
    empty = [column for column, scale in plan.numbers.items() if scale is None]
    if empty:
        raise FarshoreError(
            f"the column {empty[0]!r} has no value in these rows, so that every place would scale "
            f"it differently: leave it out (--drop {empty[0]}), or use rows that have values"
        )
    notes = []
    for column, known in plan.categories.items():
        counts = pd.Series(as_texts(site.inputs[column]), dtype=object).value_counts()
        kept = [value for value in known or [] if counts.get(value, 0) >= FEWEST_OF_CATEGORY]
        if len(kept) < len(known or []):
            notes.append(
                f"note: column {column!r}: categories with fewer than {FEWEST_OF_CATEGORY} rows "
                "are not in the template, and count as `other` everywhere"
            )
        plan.categories[column] = kept
    return plan, plan.transform(site.inputs), notes


def what_it_tells(template: Model) -> list[str]:
    """Everything in a template that comes from rows."""
    learner, rows = template.learner, template.log[-1].rows
    lines = [f"the number of rows, {rows}", f"the classes {listed(learner.classes or [])}"]
    columns = learner.preprocessing
    if isinstance(columns, TablePreprocessing):
        lines.append(f"the names and types of the columns {listed(columns.columns)}")
        if columns.numbers:
            lines.append(f"the median and standard deviation of {listed(columns.numbers)}")
        lines += [
            f"the categories of {column} that at least {FEWEST_OF_CATEGORY} rows have: "
            f"{listed(known or [])}"
            for column, known in columns.categories.items()
        ]
        if columns.texts is not None:
            names = listed(columns.texts.columns)
            lines.append(f"no text of the columns {names}; {columns.texts.features.stored}")
    return lines


def from_template(folder: Path, new: NewModel, *, device: str, observer: Observer | None) -> Model:
    """A new model that begins with a template, saved so that its settings are known."""
    assert new.template is not None
    model = _opened(new.template, network=new.network, device=device, observer=observer)
    model.folder = folder
    new.check(model.learner, new.template)
    model.save(keep_previous=False)
    return model


def check_template(model: Model, template: Path, *, network: str | None) -> None:
    """Refuse a template with which an existing model did not begin."""
    found = difference(_opened(template, network=network).learner, model.learner)
    if found is not None:
        raise FarshoreError(
            f"{model.folder} did not begin with {template}: {found}; leave out --template, or "
            "create another model"
        )


def _opened(template: Path, **opening: Unpack[Opening]) -> Model:
    model = Model.open(template, **opening)
    if not model.started or model.order:
        has = f"it has learned {listed(model.order)}" if model.order else "it has no columns yet"
        raise FarshoreError(
            f"{template} is not a template: {has}; make one with `farshore learn TEMPLATE DATA "
            "--template-only`"
        )
    return model
