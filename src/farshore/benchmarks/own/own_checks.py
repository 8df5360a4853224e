"""Errors and warnings about users' own data, one clear line each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping

import numpy as np
import pandas as pd

from ...errors import FarshoreError


def check_classes(facts: pd.DataFrame, target: str, *, as_errors: bool = False) -> list[str]:
    """Refuse classes that only the target has, unless their rows count `as_errors`; return notes.

    They cannot be learned, and how many there are must not reach training.
    """
    inside = facts["domain"] == target
    unknown = facts["label"][inside & ~facts["label"].isin(set(facts["label"][~inside]))]
    if not len(unknown):
        return []
    names, count = ", ".join(map(repr, sorted(set(unknown)))), len(unknown)
    if as_errors:
        return [f"note: {count} rows of the target have class {names}, which no source has: errors"]
    raise FarshoreError(
        f"class {names} exists only in the target {target!r} ({count} rows), so it cannot be "
        "learned: remove those rows, choose another --target, or count them as errors (--classes "
        "from-file)"
    )


def check_domain(
    facts: pd.DataFrame, members: np.ndarray, name: str, *, is_target: bool
) -> list[str]:
    """Refuse a domain with fewer than 2 rows or a source with one class; warn for a target."""
    if len(members) < 2:
        raise FarshoreError(
            f"domain {name!r} has {len(members)} row: a domain needs at least 2; merge it "
            "with another one or remove it"
        )
    classes = facts["label"].iloc[members].unique()
    if len(classes) > 1:
        return []
    if is_target:
        return [
            f"warning: the target {name!r} has one class only ({classes[0]!r}): its accuracy "
            "means little"
        ]
    raise FarshoreError(
        f"domain {name!r} has one class only ({classes[0]!r}): merge it with another domain or "
        f"remove its {len(members)} rows"
    )


def check_each(
    facts: pd.DataFrame, targets: Mapping[str, Collection[str]], *, as_errors: bool
) -> None:
    """Refuse what a run with one of these targets would refuse; each leaves some domains out.

    With `as_errors` a target may have classes that its sources do not have.
    """
    domain = facts["domain"]
    for target, left_out in targets.items():
        used = facts[~domain.isin(list(left_out))]
        check_classes(used, target, as_errors=as_errors)
    sources = {
        str(name)
        for target, left_out in targets.items()
        for name in domain.unique()
        if name != target and name not in left_out
    }
    for name in domain.unique():
        members = np.flatnonzero((domain == name).to_numpy())
        check_domain(facts, members, str(name), is_target=name not in sources)


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
    outcome = (
        "they were left out of the sources"
        if leave_out
        else "they stay in the sources, so the target score may be too high"
    )
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
                members[name] = np.array(
                    [row for row in members[name] if row not in removed], dtype=int
                )
    return notes
