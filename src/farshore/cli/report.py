"""`farshore report`: tables, significance and figures on one page, published numbers beside."""

from pathlib import Path

from .flags import answers, argument, command, flag


@command
def report(
    runs: Path = argument(
        "folder of runs (from `run --out`, `compare` or `sweep`), folder of one run, or "
        "its result.json"
    ),
    out: Path | None = flag(
        "a .html, .md, .csv or .tex file [default: report.html]; for a figure: .html, "
        ".csv or .json",
        short="-o",
    ),
    figure: str | None = flag("only this figure, by its name on the page"),
    experiment: str | None = flag("only this experiment, by its name in RUNS/experiments"),
    published: Path | None = flag(
        "a .csv file with published numbers to show beside yours (docs/report.md says which "
        "columns it has)"
    ),
) -> None:
    """Write the tables and figures of RUNS as one page.

    The page opens without a network connection. Other formats contain the same tables.

    Example: farshore report runs -o report.html
    """
    from ..report.build import write_figure, write_report
    from .tables import make_console

    console = make_console()
    problems: list[str] = []
    form = "svg" if figure == "critical-difference" else "html"
    path = out if out is not None else Path(f"{figure or 'report'}.{form}")
    if figure is not None:
        write_figure(runs, figure, path, experiment=experiment)
    else:
        problems = write_report(runs, path, experiment=experiment, published=published)
    for text in problems:
        console.print(f"note: {text}", soft_wrap=True)
    size = path.stat().st_size
    answers.update(path=path, bytes=size, notes=problems)
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
    console.print(f"{path} is written ({shown})", soft_wrap=True)
