"""`farshore report`: tables, significance and figures on one page, published numbers beside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[
        Path,
        typer.Argument(
            help="folder of runs (from `run --out`, `compare` or `sweep`), folder of one run, or "
            "its result.json"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="a .html, .md, .csv or .tex file [default: report.html]; for a figure: .html, "
            ".csv or .json",
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(help="only this figure, by its name on the page"),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(help="only this experiment, by its name in RUNS/experiments"),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(
            help="a .csv file with published numbers to show beside yours (docs/report.md says "
            "which columns it has)"
        ),
    ] = None,
) -> None:
    """Write the tables and figures of RUNS as one page.

    The page opens without a network connection. Other formats contain the same tables.

    Example: farshore report runs -o report.html
    """
    from ..report.write import write_figure, write_report
    from .tables import make_console

    console = make_console()
    problems: list[str] = []
    if figure is not None:
        path = (
            out
            if out is not None
            else Path(f"{figure}.{'svg' if figure == 'critical-difference' else 'html'}")
        )
        write_figure(runs, figure, path, experiment=experiment)
    else:
        path = out if out is not None else Path("report.html")
        problems = write_report(runs, path, experiment=experiment, published=published)
    for text in problems:
        console.print(f"note: {text}", soft_wrap=True)
    size = path.stat().st_size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
    console.print(f"{path} is written ({shown})", soft_wrap=True)
