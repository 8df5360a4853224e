"""The division of users' own rows into domains, named in the data or constructed."""

from collections.abc import MutableMapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ...data.domain import Domain
from ...data.splits import divide_rows, split_seed
from ...data.tables.cells import as_texts, is_number, parse_numbers
from ...errors import FarshoreError, unknown
from ...tasks.labels import Labels
from ..options import FittedTo
from .boundaries import By, construct, join_small
from .own_rows import OwnRows, TableRows

# The target if domains are constructed: the last fifth of the stream.
LAST = "last"
LAST_SHARE = 0.2


def make_sources(
    rows: OwnRows,
    labels: Labels,
    members: dict[str, np.ndarray],
    sources: Sequence[str],
    preprocess: FittedTo | None,
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
            name, len(own), seed=split_seed(seed, name), times=times, groups=groups, sides=sides
        )
    training = {name: members[name][splits[name][0].numpy()] for name in sources}
    labels.learn(training[sources[0]], np.concatenate(list(training.values())))
    if preprocess == "all-sources" and isinstance(rows, TableRows):
        rows.learn(np.concatenate(list(training.values())))
        rows.notes.append("preprocessing was learned on all sources at once: not continual")
    domains = []
    weights = _row_weights(facts, members, sources)
    for name in sources:
        rows.learn(training[name])
        made = rows.inputs(members[name]), labels.encode(members[name])
        domains.append(Domain(name, *made, *splits[name], weights[name]))
    return domains


def find_shared(
    facts: pd.DataFrame,
    keys: np.ndarray,
    members: MutableMapping[str, np.ndarray],
    target: str,
    *,
    leave_out: bool,
) -> list[str]:
    """Report source rows that have inputs or a group in common with the target.

    With `leave_out` they are removed from `members`. That is not the default, because training
    would then depend on the target, which is sealed.
    """
    sources = np.concatenate([rows for name, rows in members.items() if name != target])
    inside = members[target]
    same = np.isin(keys[sources], keys[inside])
    notes = []
    stay = "they stay in the sources, so the target score may be too high"
    outcome = "they were left out of the sources" if leave_out else stay
    if same.any():
        in_target = int(np.isin(keys[inside], keys[sources]).sum())
        notes.append(
            f"warning: {int(same.sum())} source rows have the same inputs as rows of the target "
            f"({in_target} there): {outcome}"
        )
    if "group" in facts:
        groups = facts["group"].to_numpy()
        both = np.isin(groups[sources], groups[inside])
        if both.any():
            count = len(set(groups[sources[both]]))
            notes.append(
                f"warning: {int(both.sum())} source rows belong to {count} groups that are also "
                f"in the target: {outcome}"
            )
            same |= both
    if leave_out and same.any():
        removed = set(sources[same].tolist())
        for name in members:
            if name != target:
                kept = [row for row in members[name] if row not in removed]
                members[name] = np.array(kept, dtype=int)
    return notes


def _row_weights(
    facts: pd.DataFrame, members: dict[str, np.ndarray], sources: Sequence[str]
) -> dict[str, Tensor | None]:
    """Return the weights of each source's rows; None if those of all sources are the same."""
    if "weight" not in facts:
        return dict.fromkeys(sources)
    every = facts["weight"].to_numpy(dtype=np.float32)
    if len(np.unique(np.concatenate([every[members[name]] for name in sources]))) == 1:
        return dict.fromkeys(sources)
    for name in sources:
        if not every[members[name]].any():
            raise FarshoreError(
                f"--weight: all rows of domain {name!r} have the weight 0: remove the domain, or "
                "give its rows weights"
            )
    return {name: torch.from_numpy(every[members[name]]) for name in sources}


def in_order(facts: pd.DataFrame) -> list[str]:
    """Return domain names by their first time, or by first appearance."""
    if "time" in facts:
        first = facts.groupby("domain", sort=False)["time"].min()
        return [str(name) for name in first.sort_values(kind="stable").index]
    return [str(name) for name in facts["domain"].unique()]


def construct_domains(
    rows: OwnRows, target: str | None, by: By, count: int | None, seed: int
) -> str:
    """Replace the domains of all rows except the target's by constructed ones.

    The target's rows are not used for this. Returns the name of the target.
    """
    if "time" in rows.facts:
        rows.rearrange(np.argsort(rows.facts["time"].to_numpy(), kind="stable"))
    facts = rows.facts
    in_target, name = _select_target(rows, target)
    stream = np.flatnonzero(~in_target)
    times = facts["time"].to_numpy()[stream] if "time" in facts else None
    if len(stream) < 2:
        why = f"--target {target} leaves {len(stream)} rows to learn from: choose another target"
        raise FarshoreError(why)
    rows.plan(stream, np.arange(len(facts)))
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
    if not equals:
        raise FarshoreError(
            f"--target {target!r} is not allowed with --domain auto: write `last` for the last "
            "fifth of the rows, or COLUMN=VALUE"
        )
    inputs = rows.table if isinstance(rows, TableRows) else pd.DataFrame()
    named = facts[["domain"]] if "domain" in facts else pd.DataFrame()
    if column not in (known := [*named.columns, *inputs.columns]):
        raise unknown("column in --target", column, known)
    # Each row by itself: whether a row of the sources is in the target depends on no other row.
    texts = as_texts(named[column] if column in named else inputs[column])
    in_target = texts == value
    if is_number(value):
        in_target |= parse_numbers(texts) == float(value)
    if not in_target.any():
        why = f"--target {target}: no row has {value!r} in column {column!r}: check the value"
        raise FarshoreError(why)
    if isinstance(rows, TableRows) and column in inputs:
        # It is constant in the target, so as an input it would identify the target.
        rows.table = inputs.drop(columns=column)
        rows.notes.append(f"column {column!r} selects the target rows: it is not an input")
    return in_target, target
