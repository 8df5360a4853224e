"""Writes a report to a file; the file's suffix decides the form."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..base.files import write_output
from ..data.tables.spreadsheet import as_csv_text
from ..errors import FarshoreError
from . import printed
from .build import build_report
from .overlay import NO_OVERLAY, Overlay
from .paper import PAPER
from .table import Report

FORMS = (".html", *printed.FORMS)
FIGURE_FORMS = (".html", ".csv", ".json")
DIAGRAM, DIAGRAM_FORMS = "critical-difference", (".svg", ".csv")


def write_report(
    runs: Path, out: Path, *, paper: bool = True, experiment: str | None = None
) -> list[str]:
    """Write the report of a folder of runs, or of one recorded experiment; return its problems."""
    if out.suffix not in FORMS:
        raise FarshoreError(f"--out {str(out)!r} is not allowed: end it in {', '.join(FORMS)}")
    if out.suffix == ".html":
        from .page import needed

        needed()
    overlay = choose_overlay(paper=paper)
    report = build_report(runs, overlay, experiment=experiment)
    if out.suffix == ".html":
        from .figures import draw_all
        from .figures.reading import read_runs
        from .page import page

        shown = read_runs(runs, experiment=experiment)
        source = _typed(runs, experiment)
        text = page(report, draw_all(shown, overlay), source=source, overlay=overlay)
    else:
        text = printed.FORMS[out.suffix](report)
    write_output(out, text.encode())
    return list(report.problems)


def choose_overlay(*, paper: bool) -> Overlay:
    """The paper's overlay, or none."""
    return PAPER if paper else NO_OVERLAY


def write_figure(
    runs: Path, name: str, out: Path, *, paper: bool = True, experiment: str | None = None
) -> None:
    """Write one figure as a page, as CSV or as plotly's JSON; the rank diagram as SVG or CSV."""
    overlay = choose_overlay(paper=paper)
    if name == DIAGRAM:
        write_output(out, _diagram(runs, out, overlay, experiment).encode())
        return
    if out.suffix not in FIGURE_FORMS:
        raise FarshoreError(
            f"--out {str(out)!r} is not allowed for a figure: end it in {', '.join(FIGURE_FORMS)}"
        )
    from .page import needed

    needed()
    from .figures import SCORES, check_figure, draw_one, draw_scores
    from .figures.reading import read_runs
    from .page import figure_data, page

    check_figure(name)
    # Raises the report's error for an empty folder.
    report = build_report(runs, overlay, experiment=experiment)
    drawing = (
        draw_scores(report, overlay)
        if name == SCORES
        else draw_one(name, read_runs(runs, experiment=experiment), overlay)
    )
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


def _diagram(runs: Path, out: Path, overlay: Overlay, experiment: str | None) -> str:
    """The critical-difference diagram of the folder's largest table."""
    if out.suffix not in DIAGRAM_FORMS:
        raise FarshoreError(
            f"--out {str(out)!r} is not allowed for this figure: end it in "
            f"{', '.join(DIAGRAM_FORMS)}"
        )
    from .page import needed

    needed()
    from .figures.critical_difference import diagram

    frame, drawn = diagram(build_report(runs, overlay, experiment=experiment))
    return drawn if out.suffix == ".svg" else as_csv_text(frame)
