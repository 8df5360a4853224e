"""From a folder of runs, or a comparison, to a report."""

from __future__ import annotations

from pathlib import Path

from .table import Report


def build_report(folder: Path) -> Report:
    """All tables of a folder that `holdfast sweep` or `holdfast compare` wrote into."""
    return Report(title=folder.name)
