"""Writes a report to a file; the file's suffix decides the form."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..base.files import write_output
from ..data.tables.spreadsheet import as_csv_text
from ..errors import FarshoreError
from ..results.collect import collect
from ..results.select import main_runs
from ..results.verdict import judge
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
        from .page import page

        collected = collect(runs, experiment)
        drawings = draw_all(collected.frame, collected.folder)
        text = page(report, drawings, source=_typed(runs, experiment), overlay=overlay)
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
    if name == DIAGRAM:
        write_output(out, _diagram(runs, out, experiment).encode())
        return
    if out.suffix not in FIGURE_FORMS:
        raise FarshoreError(
            f"--out {str(out)!r} is not allowed for a figure: end it in {', '.join(FIGURE_FORMS)}"
        )
    from .page import needed

    needed()
    from .figures import check_figure, draw_one
    from .page import figure_data, page

    check_figure(name)
    collected = collect(runs, experiment)
    drawing = draw_one(name, collected.frame, collected.folder)
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


def _diagram(runs: Path, out: Path, experiment: str | None) -> str:
    """The critical-difference diagram of the folder's main experiment."""
    if out.suffix not in DIAGRAM_FORMS:
        raise FarshoreError(
            f"--out {str(out)!r} is not allowed for this figure: end it in "
            f"{', '.join(DIAGRAM_FORMS)}"
        )
    from .page import needed

    needed()
    from .figures.critical_difference import diagram

    frame, drawn = diagram(judge(main_runs(collect(runs, experiment).frame)).significance)
    return drawn if out.suffix == ".svg" else as_csv_text(frame)
