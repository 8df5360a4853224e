"""The data of one site: a table, or a folder of images `class/file`. All of it is one domain."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from ..base.randomness import derive
from ..data.images import image_folder
from ..data.preprocessing import Preprocessing
from ..data.tables import columns as table_columns
from ..data.tables.read_table import TextForm
from ..data.tables.read_table import read_chunks as read_table_chunks
from ..data.tables.table import TablePreprocessing, check_columns, listed
from ..data.text.columns import divide_names
from ..errors import FarshoreError, no_such_file, unknown
from ..tasks.labels import LabelOptions, read_site_labels
from ..tasks.task import TaskName

SIZE = 32
# Of more columns that differ from those of the first site, only the number is told.
MOST_DIFFERENCES = 10


class Columns(BaseModel):
    """The columns of a table that are not inputs, and how the label is read.

    A model stores those of its first site.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str | None = None
    time: str | None = None
    time_format: str | None = None
    group: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    task: TaskName | None = None
    log_label: bool = False
    unit: str | None = None

    def label_options(self, given: Collection[object] = ()) -> LabelOptions:
        """How the label is read, or several of them, in a table that has the `given` columns."""
        names = table_columns.label_names(self.label, given) if self.label is not None else []
        kind = self.task or "auto"
        return LabelOptions(names, kind, log=self.log_label, unit=self.unit or "")

    def or_else(self, known: "Columns") -> "Columns":
        """These columns, with those of `known` where nothing is given."""
        return Columns(**{name: value or getattr(known, name) for name, value in self})


@dataclass
class Site:
    """The rows of a site. `inputs` is a data frame, or uint8 images [n, channels, size, size]."""

    inputs: pd.DataFrame | Tensor
    names: list[str]
    # Of several labels, a list per row.
    labels: list[Any] | None = None
    label_names: Sequence[str] = ()
    times: np.ndarray | None = None
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    preprocessing: Preprocessing | None = None
    notes: list[str] = field(default_factory=list)
    task: TaskName = "classification"

    def __len__(self) -> int:
        return len(self.names)


class Sample:
    """Random rows of a site that is read in chunks, at most `most`; all if there are no more.

    Every set of this many rows is equally probable.
    """

    def __init__(self, most: int, seed: int) -> None:
        self.most = most
        self.rows = 0  # seen so far
        self._draws = np.random.default_rng(derive(seed, "sample of a site"))
        self._keys = np.zeros(0)
        self._site: Site | None = None

    def add(self, chunk: Site) -> None:
        """Draw from the next chunk; images come in one."""
        keys = self._draws.random(len(chunk))
        self.rows += len(chunk)
        if self._site is None:
            self._site, self._keys = chunk, keys
            return
        assert isinstance(self._site.inputs, pd.DataFrame)
        assert isinstance(chunk.inputs, pd.DataFrame)
        self._keys = np.concatenate([self._keys, keys])
        chosen = np.arange(len(self._keys))
        if len(chosen) > self.most:
            chosen = np.sort(np.argpartition(self._keys, self.most)[: self.most])
        self._keys = self._keys[chosen]
        inputs = pd.concat([self._site.inputs, chunk.inputs]).iloc[chosen]
        names = inputs.index.astype(str).tolist()
        self._site = Site(inputs, names, preprocessing=chunk.preprocessing, notes=self._site.notes)

    @property
    def site(self) -> Site:
        """The rows as a site, with notes on them."""
        assert self._site is not None
        site = with_differences(self._site)
        if len(site) < self.rows:
            site.notes.append(
                "note: the site as a whole (verdict, expectation, notes on columns) is measured on "
                f"{len(site):,} of its {self.rows:,} rows, drawn at random"
            )
        return site


def read_site(
    path: str | Path, columns: Columns, known: Preprocessing | None, **options: Any
) -> Site:
    """Read all of a site's data, with the options of `read_chunks`."""
    site = next(read_chunks(path, columns, known, **options))
    return with_differences(site) if known is not None else site


def with_differences(site: Site) -> Site:
    """The site with notes on how its columns differ from those of the model's first site."""
    if not isinstance(site.inputs, pd.DataFrame):
        return site
    assert isinstance(site.preprocessing, TablePreprocessing)
    differences = site.preprocessing.differences(site.inputs)
    hidden = len(differences) - MOST_DIFFERENCES
    more = [f"and {hidden} more columns differ"] if hidden > 0 else []
    told = [f"note: {each}" for each in (*differences[:MOST_DIFFERENCES], *more)]
    return replace(site, notes=[*site.notes, *told])


def read_chunks(
    path: str | Path,
    columns: Columns,
    known: Preprocessing | None,
    *,
    labelled: bool,
    new_form: image_folder.ImagePreprocessing | None = None,
    size: int | None = None,
    skip_broken: bool = False,
    form: TextForm | None = None,
    rows: float = math.inf,
) -> Iterator[Site]:
    """Read a site's data in the form that the model expects (`known`; None for a new model).

    new_form: the form of the images of a new model, without its channels (0).
    rows: how many rows of a table are read at a time; images are read all at once.

    `form` says how a text file is written. A model does not remember it: it belongs to the file.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise no_such_file(path)
    if path.is_dir():
        if isinstance(known, TablePreprocessing):
            raise FarshoreError(
                f"{path} is a folder, but this model was created with a table: give a CSV or "
                "Parquet file"
            )
        if form is not None and form.flags:
            raise FarshoreError(f"{form.flags[0]} is only for text files: {path} is a folder")
        if known is not None and size not in (None, getattr(known, "size", size)):
            assert isinstance(known, image_folder.ImagePreprocessing)
            raise FarshoreError(
                f"--size {size}: this model was created with images of {known.size} x "
                f"{known.size} pixels; leave the option out"
            )
        chosen = known if isinstance(known, image_folder.ImagePreprocessing) else new_form
        yield _read_folder(path, columns, chosen, labelled=labelled, skip_broken=skip_broken)
        return
    if isinstance(known, image_folder.ImagePreprocessing):
        raise FarshoreError(
            f"{path} is a file, but this model was created with images: give a folder class/file"
        )
    roles = {*filter(None, (columns.label, columns.time, columns.group))}
    roles.update(columns.label_options().names)
    roles |= {*columns.categories, *columns.text, *columns.drop}
    if isinstance(known, TablePreprocessing):
        roles |= {*known.categories, *(known.texts.columns if known.texts else ())}
    for frame in read_table_chunks(path, roles, form, rows):
        yield _as_site(frame, path, columns, known, labelled=labelled)


def _as_site(
    frame: pd.DataFrame,
    path: Path,
    columns: Columns,
    known: Preprocessing | None,
    *,
    labelled: bool,
) -> Site:
    site = Site(frame, [str(row) for row in frame.index])
    if labelled:
        if columns.label is None:
            raise FarshoreError(
                f"--label is not given: name the column of {path.name} with the class, one of "
                f"{listed(frame.columns)}"
            )
        options = columns.label_options(frame.columns)
        labels = np.stack(
            [table_columns.need_texts(frame, n, "--label", missing=True) for n in options.names],
            axis=1,
        )
        if known is not None and columns.task is None:
            options = replace(options, task="classification")
        # A later chunk may be short, and have few rows per class.
        site.task, kept, notes = read_site_labels(
            labels, options, frame.index, first=frame.index[0] == 0
        )
        frame = frame[kept]
        site.names, site.notes = [str(row) for row in frame.index], [*site.notes, *notes]
        site.labels = (labels if len(options.names) > 1 else labels[:, 0])[kept].tolist()
        site.label_names = options.names
        if columns.time:
            site.times = table_columns.need_times(frame, columns.time, columns.time_format)
        if columns.group:
            site.groups = table_columns.need_texts(frame, columns.group, "--group")
        if columns.weight and columns.weight in frame.columns:
            site.weights = table_columns.need_weights(frame, columns.weight)
        elif columns.weight and known is None:
            raise unknown("column in --weight", columns.weight, frame.columns)
    not_inputs = {columns.time, columns.group, columns.weight, *columns.drop}
    not_inputs.update(columns.label_options(frame.columns).names)
    if isinstance(known, TablePreprocessing):
        used = known.columns
        given = [column for column in frame.columns if column not in not_inputs]
        check_columns(used, [*given, *set(used).intersection(frame.columns)], path.name)
        extra = [column for column in given if column not in used]
        if extra:
            site.notes.append(
                f"note: columns that this model does not know are ignored: {listed(extra)}"
            )
        site.inputs, site.preprocessing = frame[used], known
        known.check(site.inputs)
        return site
    for flag in ("drop", "categories", "text"):
        for column in divide_names(getattr(columns, flag))[0]:
            if column not in frame.columns:
                raise unknown(f"column in --{flag}", column, frame.columns)
    inputs = [column for column in frame.columns if column not in not_inputs]
    site.inputs = frame[inputs]
    plan = table_columns.plan_columns(
        site.inputs, inputs, columns.categories, columns.time_format, columns.text
    )
    site.preprocessing = plan
    site.notes += table_columns.column_notes(site.inputs, plan)
    return site


def _read_folder(
    path: Path,
    columns: Columns,
    form: image_folder.ImagePreprocessing | None,
    *,
    labelled: bool,
    skip_broken: bool,
) -> Site:
    table_options = [f"--{name}" for name, value in columns if value]
    if table_options:
        raise FarshoreError(
            f"{table_options[0]} is only allowed for tables: in a folder of images, the layout "
            "class/file gives the classes; leave the option out"
        )
    notes: list[str] = []
    labels = None
    if labelled:
        listed, notes = image_folder.list_images(path)
        if "domain" in listed:
            raise FarshoreError(
                f"{path} has the layout domain/class/file: give the folder of one domain, such as "
                f"{path}/{listed['domain'].iloc[0]}"
            )
        files, labels = listed["file"].tolist(), listed["class"].tolist()
    else:
        files = [
            str(file)
            for file in image_folder.list_files(path)
            if file.suffix.lower() in image_folder.SUFFIXES
        ]
        if not files:
            raise FarshoreError(f"{path} contains no image files: check the path")
    if skip_broken:
        broken = image_folder.find_broken(files, files)
        notes += image_folder.broken_notes(broken, len(files))
        kept = [row for row, file in enumerate(files) if file not in broken]
        if not kept:
            raise FarshoreError(f"{path}: none of {len(files)} images can be read")
        files = [files[row] for row in kept]
        labels = [labels[row] for row in kept] if labels is not None else None
    form = form or image_folder.ImagePreprocessing(SIZE, 0)
    images, preprocessing, coloured = image_folder.read_images(
        files, form.size, form.channels or None, interpolation=form.interpolation
    )
    if form.channels == 1 and coloured.any():
        notes.append(
            f"note: {int(coloured.sum())} of {len(files)} images are in colour and become "
            "grey, because those of the first site were grey"
        )
    names = [str(Path(file).relative_to(path)) for file in files]
    return Site(
        torch.from_numpy(np.array(images)), names, labels, preprocessing=preprocessing, notes=notes
    )
