"""The rows of users' own data and their division into domains."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ..data.boundaries import By, construct, join_small
from ..data.domain import Array, Domain
from ..data.image_folder import ImagePreprocessing
from ..data.read_table import as_texts, plan_columns
from ..data.splits import divide_rows
from ..data.table import TablePreprocessing
from ..errors import FarshoreError, unknown
from ..randomness import derive
from .options import Preprocess

# The target if domains are constructed: the last fifth of the stream.
LAST = "last"
LAST_SHARE = 0.2


@dataclass
class OwnRows:
    """All rows of the user's data in stream order, and how they become inputs."""

    # Columns `domain` and `label` (strings), and `time` (number) and `group` (string) if available.
    facts: pd.DataFrame
    table: pd.DataFrame | None
    images: np.ndarray | None
    preprocessing: TablePreprocessing | ImagePreprocessing | None
    notes: list[str]

    def plan(self, sources: np.ndarray, target: np.ndarray) -> None:
        """Decide from the sources which columns are numbers; refuse a target that does not fit."""
        if self.table is not None:
            plan = plan_columns(self.table.iloc[sources], list(self.table.columns))
            plan.check(self.table.iloc[target])
            self.preprocessing = plan

    def inputs(self, rows: np.ndarray) -> Array:
        """Return the inputs of these rows by the current preprocessing."""
        if isinstance(self.preprocessing, TablePreprocessing):
            assert self.table is not None
            return self.preprocessing.transform(self.table.iloc[rows])
        assert self.images is not None
        contiguous = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
        # Contiguous rows are a view instead of a copy.
        images = self.images[rows[0] : rows[-1] + 1] if contiguous else self.images[rows]
        return images if isinstance(images, np.memmap) else torch.from_numpy(images)

    def learn(self, rows: np.ndarray) -> None:
        """Fit the columns that are not fitted yet to these rows."""
        if isinstance(self.preprocessing, TablePreprocessing):
            assert self.table is not None
            self.preprocessing.learn(self.table.iloc[rows])

    def described(self, rows: np.ndarray) -> Tensor | np.ndarray:
        """Return inputs for finding boundaries.

        A table is scaled on all these rows, because there is no first domain yet.
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
        """Return a hash of each row that is equal for rows with equal inputs."""
        if self.table is not None:
            return pd.util.hash_pandas_object(self.table, index=False).to_numpy()
        assert self.images is not None
        digests = (
            hashlib.blake2b(np.ascontiguousarray(image).tobytes(), digest_size=8).digest()
            for image in self.images
        )
        return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)


def make_sources(
    rows: OwnRows,
    members: dict[str, np.ndarray],
    sources: Sequence[str],
    classes: list[str],
    preprocess: Preprocess | None,
    seed: int,
) -> list[Domain]:
    """Split each source; learn the preprocessing domain by domain, or on all sources at once."""
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
                encode(facts, members[name], classes),
                *splits[name],
            )
        )
    return domains


def encode(facts: pd.DataFrame, members: np.ndarray, classes: list[str]) -> Tensor:
    """Return the labels of these rows as class numbers."""
    numbers = {label: number for number, label in enumerate(classes)}
    return torch.tensor(
        [numbers[label] for label in facts["label"].iloc[members]], dtype=torch.long
    )


def in_order(facts: pd.DataFrame) -> list[str]:
    """Return domain names by their first time, or by first appearance."""
    if "time" in facts:
        return [
            str(name)
            for name in facts.groupby("domain", sort=False)["time"]
            .min()
            .sort_values(kind="stable")
            .index
        ]
    return [str(name) for name in facts["domain"].unique()]


def construct_domains(
    rows: OwnRows, target: str | None, by: By, count: int | None, seed: int
) -> str:
    """Replace the domains of all rows except the target's by constructed ones.

    The target's rows are not used for this. Returns the name of the target.
    """
    facts = rows.facts
    if "time" in facts:
        by_time = np.argsort(facts["time"].to_numpy(), kind="stable")
        rows.facts = facts = facts.iloc[by_time]
        rows.table = rows.table.iloc[by_time] if rows.table is not None else None
    in_target, name = _select_target(rows, target)
    stream = np.flatnonzero(~in_target)
    times = facts["time"].to_numpy()[stream] if "time" in facts else None
    if len(stream) < 2:
        raise FarshoreError(
            f"--target {target} leaves {len(stream)} rows to learn from: choose another target"
        )
    rows.plan(stream, np.flatnonzero(in_target))
    constructed = join_small(
        construct(rows.described(stream), by, count=count, times=times, seed=seed),
        facts["label"].to_numpy()[stream],
    )
    domain = np.full(len(facts), name, dtype=object)
    domain[stream] = np.array(constructed.names, dtype=object)[constructed.domain]
    rows.facts = facts.assign(domain=domain)
    rows.notes.append(constructed.note)
    return name


def _select_target(rows: OwnRows, target: str | None) -> tuple[np.ndarray, str]:
    """Return a mask of the target rows, for `last` (a fifth of the stream) or COLUMN=VALUE."""
    facts = rows.facts
    if target is None or target == LAST:
        return np.arange(len(facts)) >= round((1 - LAST_SHARE) * len(facts)), LAST
    column, equals, value = target.partition("=")
    columns = {"domain": facts["domain"]} if "domain" in facts else {}
    columns |= (
        {name: rows.table[name] for name in rows.table.columns} if rows.table is not None else {}
    )
    if not equals:
        raise FarshoreError(
            f"--target {target!r} is not allowed with --domain auto: write `last` for the last "
            "fifth of the rows, or COLUMN=VALUE"
        )
    if column not in columns:
        raise unknown("column in --target", column, columns)
    in_target = as_texts(columns[column].fillna("")) == value
    if not in_target.any():
        raise FarshoreError(
            f"--target {target}: no row has {value!r} in column {column!r}: check the value"
        )
    if rows.table is not None and column in rows.table:
        # It is constant in the target, so as an input it would identify the target.
        rows.table = rows.table.drop(columns=column)
        rows.notes.append(f"column {column!r} selects the target rows: it is not an input")
    return in_target, target
