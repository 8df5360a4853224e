"""Writes a report to a file; the file's suffix decides the form."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from ..base.files import write_output
from ..data.tables.spreadsheet import as_csv_text
from ..errors import FarshoreError
from ..results.collect import collect
from ..results.published import read_published
from .build import Report, build_report, report_of
from .csv_form import as_csv
from .latex_form import as_latex
from .markdown_form import as_markdown

TEXT_FORMS: dict[str, Callable[[Report], str]] = {
    ".md": as_markdown,
    ".csv": as_csv,
    ".tex": as_latex,
}
FORMS = (".html", *TEXT_FORMS)
FIGURE_FORMS = (".html", ".csv", ".json")
DIAGRAM, DIAGRAM_FORMS = "critical-difference", (".svg", ".csv")


def write_report(
    runs: Path, out: Path, *, experiment: str | None = None, published: Path | None = None
) -> list[str]:
    """Write the report of a folder of runs, or of one recorded experiment; return its problems.

    published: a CSV file with published numbers to show beside ours.
    """
    if out.suffix not in FORMS:
        raise FarshoreError(f"--out {str(out)!r} is not allowed: end it in {', '.join(FORMS)}")
    numbers = read_published(published) if published is not None else None
    if out.suffix == ".html":
        from .page import needed

        needed()
    collected = collect(runs, experiment)
    report = report_of(collected, numbers)
    if out.suffix == ".html":
        from .figures import draw_all
        from .page import page

        drawings = draw_all(collected.shown(), collected.folder)
        text = page(report, drawings, source=_typed(runs, experiment))
    else:
        text = TEXT_FORMS[out.suffix](report)
    write_output(out, text.encode())
    return list(report.problems)


def write_figure(runs: Path, name: str, out: Path, *, experiment: str | None = None) -> None:
    """Write one figure as a page, as CSV or as plotly's JSON; the rank diagram as SVG or CSV."""
    forms = DIAGRAM_FORMS if name == DIAGRAM else FIGURE_FORMS
    if out.suffix not in forms:
        raise FarshoreError(
            f"--out {str(out)!r} is not allowed for this figure: end it in {', '.join(forms)}"
        )
    from .page import needed

    needed()
    if name == DIAGRAM:
        write_output(out, _diagram(build_report(runs, experiment=experiment), out).encode())
        return
    from .figures import SCORES, check_figure, draw_one, no_data
    from .page import figure_data, main_figure, page

    check_figure(name)
    collected = collect(runs, experiment)
    drawing = (
        main_figure(report_of(collected))
        if name == SCORES
        else draw_one(name, collected.shown(), collected.folder)
    )
    if drawing is None:
        raise no_data(name, "a run with a score on the target")
    if out.suffix == ".csv":
        text = as_csv_text(drawing.frame)
    elif out.suffix == ".json":
        text = figure_data([drawing])
    else:
        text = page(Report(drawing.title), [drawing], source=_typed(runs, experiment))
    write_output(out, text.encode())


def _typed(runs: Path, experiment: str | None) -> str:
    """The arguments of `farshore report` for the same runs."""
    return shlex.join([str(runs), *(["--experiment", experiment] if experiment else [])])


def _diagram(report: Report, out: Path) -> str:
    """The critical-difference diagram of the folder's largest table."""
    from .figures.critical_difference import diagram

    main = report.main
    frame, drawn = diagram(main.verdict.significance if main and main.verdict else None)
    return drawn if out.suffix == ".svg" else as_csv_text(frame)
