"""The text forms of a report, by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable

from .csv_form import as_csv
from .latex_form import as_latex
from .markdown_form import as_markdown
from .table import Report

FORMS: dict[str, Callable[[Report], str]] = {".md": as_markdown, ".csv": as_csv, ".tex": as_latex}
