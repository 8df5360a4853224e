"""The forms that are plain text, by the ending of the file."""

from __future__ import annotations

from typing import Protocol

from .csv_form import as_csv
from .latex_form import as_latex
from .markdown_form import as_markdown
from .table import Report


class Form(Protocol):
    """Turns a report into a text, with or without the paper's numbers."""

    def __call__(self, report: Report, *, paper: bool = True) -> str:
        """The text."""


FORMS: dict[str, Form] = {".md": as_markdown, ".csv": as_csv, ".tex": as_latex}
