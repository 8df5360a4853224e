"""How much of the domain the features of three methods tell, on covertype."""

from __future__ import annotations

import json
from typing import Any

from reproduction.feature_space import POINTS
from reproduction.formatting import markdown


def feature_spaces() -> dict[str, dict[str, Any]]:
    """What feature_space.py found, by method; empty if it has not run."""
    found: dict[str, dict[str, Any]] = json.loads(POINTS.read_text()) if POINTS.is_file() else {}
    return found


def features_section() -> str:
    """A linear classifier's accuracy at telling domains apart, by method."""
    rows = []
    for name, found in feature_spaces().items():
        chance = 100 / len(found["points"])
        rows.append(
            [
                f"`{name}`",
                f"{100 * found['domain_accuracy']:.1f} ({chance:.0f})",
                f"{100 * found['target_accuracy']:.1f} (50)",
                f"{found['score']:.1f}",
                f"{found['commit'][:7] or 'not recorded'}; {found['device']}; "
                f"{found['seconds']:.1f}",
            ]
        )
    least = min(100 * found["target_accuracy"] for found in feature_spaces().values())
    said = f"After each method the classifier tells the target with {least:.1f}% or more."
    header = ["method", "tells the domain (chance)", "tells the target (chance)", "target score"]
    return f"{said}\n\n" + markdown([*header, "code; device; seconds of training"], rows)
