"""The rows of a user's own data, and the domains that they are divided into."""

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

# The target where domains have no names: the last fifth of the stream.
LAST = "last"
LAST_SHARE = 0.2


@dataclass
class OwnRows:
    """Every row of the user's data: what it is, and how it becomes an input. Rows stand in the
    order of the stream.
    """

    # Columns domain and label as texts, and time (number) and group (text) if there are any.
    facts: pd.DataFrame
    table: pd.DataFrame | None
    images: np.ndarray | None
    preprocessing: TablePreprocessing | ImagePreprocessing | None
    notes: list[str]

    def plan(self, sources: np.ndarray, target: np.ndarray) -> None:
        """Decide from the sources which columns are numbers; a text in the target where a number
        should be is refused now.
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
        # a view where it can be one
        chosen = self.images[rows[0] : rows[-1] + 1] if together else self.images[rows]
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


def make_sources(
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
                encode(facts, members[name], classes),
                *splits[name],
            )
        )
    return domains


def encode(facts: pd.DataFrame, members: np.ndarray, classes: list[str]) -> Tensor:
    """Labels of these rows as class numbers."""
    number = {label: place for place, label in enumerate(classes)}
    return torch.tensor([number[label] for label in facts["label"].iloc[members]], dtype=torch.long)


def in_order(facts: pd.DataFrame) -> list[str]:
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


def construct_domains(
    rows: OwnRows, target: str | None, by: By, count: int | None, seed: int
) -> str:
    """Hide the domains of all rows but the target's, and find others. The target's rows take no
    part in it.
    """
    facts = rows.facts
    if "time" in facts:
        in_time = np.argsort(facts["time"].to_numpy(), kind="stable")
        rows.facts = facts = facts.iloc[in_time]
        rows.table = rows.table.iloc[in_time] if rows.table is not None else None
    held, name = _held_out(rows, target)
    stream = np.flatnonzero(~held)
    times = facts["time"].to_numpy()[stream] if "time" in facts else None
    if len(stream) < 2:
        raise FarshoreError(
            f"--target {target} leaves {len(stream)} rows to learn from: choose another target"
        )
    rows.plan(stream, np.flatnonzero(held))
    constructed = join_small(
        construct(rows.described(stream), by, count=count, times=times, seed=seed),
        facts["label"].to_numpy()[stream],
    )
    domain = np.full(len(facts), name, dtype=object)
    domain[stream] = np.array(constructed.names, dtype=object)[constructed.domain]
    rows.facts = facts.assign(domain=domain)
    rows.notes.append(constructed.note)
    return name


def _held_out(rows: OwnRows, target: str | None) -> tuple[np.ndarray, str]:
    """Which rows are the target where domains have no names: `last` (a fifth of the stream), or
    COLUMN=VALUE.
    """
    facts = rows.facts
    if target is None or target == LAST:
        return np.arange(len(facts)) >= round((1 - LAST_SHARE) * len(facts)), LAST
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
    if rows.table is not None and column in rows.table:
        # it is constant in the target: as an input it would give the target away
        rows.table = rows.table.drop(columns=column)
        rows.notes.append(f"column {column!r} says which rows are the target: it is no input")
    return held, target
