"""The user's own data as a scenario: a table or a folder of images, divided into domains by a
column or without one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ..data.boundaries import By, construct, join_small
from ..data.domain import Array, Domain
from ..data.image_folder import ImagePreprocessing, list_images, read_images
from ..data.own import OwnData, Preprocess
from ..data.public_files import checksum
from ..data.read_table import as_classes, as_texts, as_times, need_column, plan_columns, read_table
from ..data.scenario import Scenario, arrange
from ..data.seal import SealedTarget
from ..data.splits import divide_rows
from ..data.table import TablePreprocessing
from ..errors import FarshoreError, unknown
from ..randomness import derive
from .own_checks import check_classes, check_domain, find_shared

STEPS = 500
MEMORY = 1000
LAST_SHARE = 0.2


@dataclass
class OwnRows:
    """Every row of the user's data: what it is, and how it becomes an input. Rows stand in the
    order of the stream.
    """

    facts: (
        pd.DataFrame
    )  # columns domain and label as texts, and time (number) and group (text) if there are any
    table: pd.DataFrame | None
    images: np.ndarray | None
    preprocessing: TablePreprocessing | ImagePreprocessing | None
    notes: list[str]

    def plan(self, sources: np.ndarray, target: np.ndarray) -> None:
        """Decide from the sources which columns are numbers; a text in the target where a number
        should be is said now.
        """
        if self.table is not None:
            plan = plan_columns(self.table.iloc[sources], list(self.table.columns))
            plan.check(self.table.iloc[target])
            self.preprocessing = plan

    def inputs(self, rows: np.ndarray) -> Array:
        """Inputs of these rows, by the preprocessing as it now is."""
        if isinstance(self.preprocessing, TablePreprocessing):
            assert self.table is not None
            return self.preprocessing.transform(self.table.iloc[rows])
        assert self.images is not None
        together = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
        chosen = (
            self.images[rows[0] : rows[-1] + 1] if together else self.images[rows]
        )  # a view where it can be one
        return chosen if isinstance(chosen, np.memmap) else torch.from_numpy(chosen)

    def learn(self, rows: np.ndarray) -> None:
        """Let the preprocessing fix what is open from these rows."""
        if isinstance(self.preprocessing, TablePreprocessing):
            assert self.table is not None
            self.preprocessing.learn(self.table.iloc[rows])

    def described(self, rows: np.ndarray) -> Tensor | np.ndarray:
        """Inputs for finding boundaries only: a table is scaled on all these rows, since there
        is no first domain yet.
        """
        if not isinstance(self.preprocessing, TablePreprocessing):
            return self.inputs(rows)
        assert self.table is not None
        stream = self.table.iloc[rows]
        return (
            TablePreprocessing.from_state(self.preprocessing.state_dict())
            .learn(stream)
            .transform(stream)
        )

    def keys(self) -> np.ndarray:
        """A number for each row that is the same for rows with the same inputs."""
        if self.table is not None:
            return pd.util.hash_pandas_object(self.table, index=False).to_numpy()
        assert self.images is not None
        digests = (
            hashlib.blake2b(np.ascontiguousarray(image).tobytes(), digest_size=8).digest()
            for image in self.images
        )
        return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)


def own_scenario(
    data: OwnData,
    *,
    target: str | None = None,
    order: Sequence[str] | None = None,
    seed: int = 0,
    preprocess: Preprocess | None = None,
    domain_by: By | None = None,
    count: int | None = None,
) -> Scenario:
    """Sources in the order of training and the sealed target. All that is wrong with the data is
    said here.
    """
    path = Path(data.path).expanduser()
    rows = _read_folder(path, data) if path.is_dir() else _read_file(path, data)
    if domain_by is None and data.domain == "auto":
        domain_by = "drift"
    if domain_by is not None:
        if order is not None:
            raise FarshoreError(
                "--order cannot be used with --domain auto: the domains are found in the order "
                "of the stream"
            )
        target = _construct_domains(rows, target, domain_by, count, seed)
    facts = rows.facts
    names = _in_order(facts)
    if target is None:
        listed = ", ".join(
            f"{name} ({int((facts['domain'] == name).sum())} rows)" for name in names
        )
        raise FarshoreError(
            f"--target is not given: say which domain stays unseen, one of {listed}"
        )
    sources = arrange(names, target, order)
    classes = check_classes(facts, target)
    members = {
        name: np.flatnonzero((facts["domain"] == name).to_numpy()) for name in [*sources, target]
    }
    rows.notes += find_shared(
        facts, rows.keys(), members, target, leave_out=data.shared_rows == "leave-out"
    )
    for name in [*sources, target]:
        rows.notes += check_domain(facts, members[name], name, is_target=name == target)
    rows.plan(np.concatenate([members[name] for name in sources]), members[target])
    domains = _make_sources(rows, members, sources, classes, preprocess, seed)
    table = rows.table is not None

    def make_target() -> Domain:
        index = torch.arange(len(members[target]))
        return Domain(
            target,
            rows.inputs(members[target]),
            _encode(facts, members[target], classes),
            index[:0],
            index,
        )

    return Scenario(
        name=path.name,
        sources=tuple(domains),
        target=SealedTarget(target, make_target),
        classes=tuple(classes),
        metric="accuracy",
        network="mlp" if table else "cnn",
        network_settings={},
        steps=STEPS,
        memory=MEMORY,
        small=table,
        short=table,
        seed=seed,
        notes=tuple(rows.notes),
        preprocessing=rows.preprocessing,
    )


def _make_sources(
    rows: OwnRows,
    members: dict[str, np.ndarray],
    sources: Sequence[str],
    classes: list[str],
    preprocess: Preprocess | None,
    seed: int,
) -> list[Domain]:
    """Divide each source; learn the preprocessing on its training rows as it comes, or on those
    of all at once.
    """
    facts = rows.facts
    sides: dict[str, bool] = {}
    splits: dict[str, tuple[Tensor, Tensor]] = {}
    for name in sources:
        own = facts.iloc[members[name]]
        times, groups = (
            own[column].to_numpy() if column in own else None for column in ("time", "group")
        )
        splits[name] = divide_rows(
            name,
            len(own),
            seed=derive(seed, "own data", name),
            times=times,
            groups=groups,
            sides=sides,
        )
    training = {name: members[name][splits[name][0].numpy()] for name in sources}
    if preprocess == "all-sources" and rows.table is not None:
        rows.learn(np.concatenate(list(training.values())))
        rows.notes.append("preprocessing was learned on all sources at once: not continual")
    domains = []
    for name in sources:
        rows.learn(training[name])
        domains.append(
            Domain(
                name,
                rows.inputs(members[name]),
                _encode(facts, members[name], classes),
                *splits[name],
            )
        )
    return domains


def _encode(facts: pd.DataFrame, members: np.ndarray, classes: list[str]) -> Tensor:
    number = {label: place for place, label in enumerate(classes)}
    return torch.tensor([number[label] for label in facts["label"].iloc[members]], dtype=torch.long)


def _in_order(facts: pd.DataFrame) -> list[str]:
    """Domain names by their first time, or as they first appear."""
    if "time" in facts:
        return [
            str(name)
            for name in facts.groupby("domain", sort=False)["time"]
            .min()
            .sort_values(kind="stable")
            .index
        ]
    return [str(name) for name in facts["domain"].unique()]


def _construct_domains(
    rows: OwnRows, target: str | None, by: By, count: int | None, seed: int
) -> str:
    """Hide the domains of all rows but the target's, and find others. The target's rows take no
    part in it.
    """
    facts = rows.facts
    if "time" in facts:
        place = np.argsort(facts["time"].to_numpy(), kind="stable")
        rows.facts = facts = facts.iloc[place]
        rows.table = rows.table.iloc[place] if rows.table is not None else None
    held, name = _held_out(rows, target)
    stream = np.flatnonzero(~held)
    times = facts["time"].to_numpy()[stream] if "time" in facts else None
    if len(stream) < 2:
        raise FarshoreError(
            f"--target {target} leaves {len(stream)} rows to learn from: choose another target"
        )
    rows.plan(stream, np.flatnonzero(held))
    found = join_small(
        construct(rows.described(stream), by, count=count, times=times, seed=seed),
        facts["label"].to_numpy()[stream],
    )
    domain = np.full(len(facts), name, dtype=object)
    domain[stream] = np.array(found.names, dtype=object)[found.domain]
    rows.facts = facts.assign(domain=domain)
    rows.notes.append(found.note)
    return name


def _held_out(rows: OwnRows, target: str | None) -> tuple[np.ndarray, str]:
    """Which rows are the target where domains have no names: `last` (a fifth of the stream), or
    COLUMN=VALUE.
    """
    facts = rows.facts
    if target is None or target == "last":
        return np.arange(len(facts)) >= round((1 - LAST_SHARE) * len(facts)), "last"
    column, equals, value = target.partition("=")
    known = {"domain": facts["domain"]} if "domain" in facts else {}
    known |= (
        {name: rows.table[name] for name in rows.table.columns} if rows.table is not None else {}
    )
    if not equals:
        raise FarshoreError(
            f"--target {target!r} with --domain auto: write `last` for the last fifth of the "
            "rows, or COLUMN=VALUE"
        )
    if column not in known:
        raise unknown("column in --target", column, known)
    held = as_texts(known[column].fillna("")) == value
    if not held.any():
        raise FarshoreError(
            f"--target {target}: no row has {value!r} in column {column!r}: check the value"
        )
    if (
        rows.table is not None and column in rows.table
    ):  # it is constant in the target: as an input it would give the target away
        rows.table = rows.table.drop(columns=column)
        rows.notes.append(f"column {column!r} says which rows are the target: it is no input")
    return held, target


def _read_file(path: Path, data: OwnData) -> OwnRows:
    frame = read_table(path)
    if data.label is None:
        raise FarshoreError(
            f"--label is not given: say which column of {path.name} holds the class, one of "
            f"{', '.join(frame.columns)}"
        )
    if data.domain is None:
        raise FarshoreError(
            f"--domain is not given: say which column of {path.name} names the domain, one of "
            f"{', '.join(frame.columns)}, or auto"
        )
    facts = pd.DataFrame(
        {"label": as_classes(need_column(frame, data.label, "--label"), data.label)}
    )
    if data.domain != "auto":
        facts["domain"] = as_texts(need_column(frame, data.domain, "--domain"))
    if data.time is not None:
        facts["time"] = as_times(need_column(frame, data.time, "--time"), data.time)
    if data.group is not None:
        facts["group"] = as_texts(need_column(frame, data.group, "--group"))
    for column in data.drop:
        if column not in frame.columns:
            raise unknown("column in --drop", column, frame.columns)
    said = {data.label, data.domain, data.time, data.group, *data.drop}
    table = frame[[column for column in frame.columns if column not in said]]
    notes = [
        f"{path.name}: {len(frame)} rows, {len(table.columns)} input columns, sha256 "
        f"{checksum(path)[:16]}"
    ]
    return OwnRows(facts, table, None, None, notes)


def _read_folder(path: Path, data: OwnData) -> OwnRows:
    wrong = [f"--{name}" for name in ("label", "time", "group", "drop") if getattr(data, name)]
    if wrong:
        raise FarshoreError(
            f"{wrong[0]} is for tables: a folder of images says it by its layout domain/class/file"
        )
    if data.domain not in (None, "auto"):
        raise FarshoreError(
            f"--domain {data.domain} is for tables: a folder names its domains itself "
            "(domain/class/file), or use --domain auto"
        )
    files, notes = list_images(path)
    if "domain" not in files and data.domain != "auto":
        raise FarshoreError(
            f"{path} holds class/file without domains: put a folder a domain around them, or add "
            "--domain auto"
        )
    images, preprocessing = read_images(files["file"].tolist(), data.size)
    digest = (
        hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
        if not isinstance(images, np.memmap)
        else "not computed"
    )
    facts = files.rename(columns={"class": "label"}).drop(columns="file")
    form = (
        f"{preprocessing.size}x{preprocessing.size} "
        f"{'grey' if preprocessing.channels == 1 else 'RGB'}"
    )
    return OwnRows(
        facts,
        None,
        images,
        preprocessing,
        [f"{path.name}: {len(files)} images as {form}, sha256 {digest[:16]}", *notes],
    )
