"""What is refused and what is warned of in a user's own data, one clear line each."""

from __future__ import annotations

from collections.abc import MutableMapping

import numpy as np
import pandas as pd

from ..data.convert import find_classes
from ..errors import FarshoreError


def check_classes(facts: pd.DataFrame, target: str, *, known_elsewhere: bool = False) -> list[str]:
    """All classes of the sources, in order. A class that only the target has is refused, since
    nothing could learn it; with `known_elsewhere` it is one more class that no source has.
    """
    inside = facts["domain"] == target
    known = set(facts["label"] if known_elsewhere else facts["label"][~inside])
    only = sorted(set(facts["label"][inside]) - known)
    if only:
        count = int(facts["label"][inside].isin(only).sum())
        raise FarshoreError(
            f"class {', '.join(map(repr, only))} exists only in the target {target!r} ({count} "
            "rows): no source can teach it; "
            "remove those rows or choose another --target"
        )
    texts = [str(label) for label in known]
    whole = all(text.lstrip("-").isdigit() for text in texts)
    return sorted(texts, key=int) if whole else [str(label) for label in find_classes(texts)]


def check_domain(
    facts: pd.DataFrame, members: np.ndarray, name: str, *, is_target: bool
) -> list[str]:
    """A source needs two rows and two classes. A target of one class is measured, with a
    warning.
    """
    if len(members) < 2:
        raise FarshoreError(
            f"domain {name!r} has {len(members)} row: a domain needs at least 2; join it with "
            "another one or remove it"
        )
    found = facts["label"].iloc[members].unique()
    if len(found) > 1:
        return []
    if is_target:
        return [
            f"warning: the target {name!r} has one class only ({found[0]!r}): its accuracy says "
            "little"
        ]
    raise FarshoreError(
        f"domain {name!r} has one class only ({found[0]!r}): join it with another domain or "
        f"remove its {len(members)} rows"
    )


def find_shared(
    facts: pd.DataFrame,
    keys: np.ndarray,
    members: MutableMapping[str, np.ndarray],
    target: str,
    *,
    leave_out: bool,
) -> list[str]:
    """Count source rows whose inputs, or whose group, stand in the target too. Left out of the
    sources only if asked for: otherwise training would depend on the target, which is sealed."""
    sources = np.concatenate([rows for name, rows in members.items() if name != target])
    inside = members[target]
    same = np.isin(keys[sources], keys[inside])
    notes = []
    done = (
        "they were left out of the sources"
        if leave_out
        else "they stay in the sources, and the target's score may flatter"
    )
    if same.any():
        held = int(np.isin(keys[inside], keys[sources]).sum())
        notes.append(
            f"warning: {int(same.sum())} source rows have the same inputs as rows of the target "
            f"({held} there): {done}"
        )
    if "group" in facts:
        groups = facts["group"].to_numpy()
        both = np.isin(groups[sources], groups[inside])
        if both.any():
            count = len(set(groups[sources[both]]))
            notes.append(
                f"warning: {int(both.sum())} source rows belong to {count} groups that stand in "
                f"the target too: {done}"
            )
            same |= both
    if leave_out and same.any():
        gone = set(sources[same].tolist())
        for name in members:
            if name != target:
                members[name] = np.array(
                    [row for row in members[name] if row not in gone], dtype=int
                )
    return notes
