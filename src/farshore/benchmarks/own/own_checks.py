"""Errors and warnings about users' own data, one clear line each."""

from collections.abc import MutableMapping

import numpy as np
import pandas as pd


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
