"""What repeats the paper's results and writes the generated pages of docs/; README.md says how."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
DOCS = ROOT / "docs"
EXPERIMENTS = HERE / "experiments"
TABLES = HERE / "tables"
ANCHORS = HERE / "anchors"
