"""`farshore results`: all runs in a folder as one tidy table."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FarshoreError, needs
from .flags import answers, argument, command, flag

if TYPE_CHECKING:
    from rich.console import Console


@command
def results(
    runs: Path = argument("folder of runs, as given to --runs or --out"),
    out: Path | None = flag("a .csv or .parquet file [default: RUNS/tables/runs.csv]", short="-o"),
) -> None:
    """Show all runs by rank, and write one row per run.

    Example: farshore results runs -o runs.parquet
    """
    import io

    from ..base.files import write_inside
    from ..data.tables.spreadsheet import as_csv_text
    from ..results.tidy_table import tidy_table
    from ..runs.store.store import Store
    from .tables import make_console

    path = out if out is not None else runs / "tables" / "runs.csv"
    if path.suffix not in (".csv", ".parquet"):
        raise FarshoreError(f"--out {str(path)!r} is not allowed: end it in .csv or .parquet")
    damaged: list[str] = []
    frame = tidy_table(Store(runs), damaged)
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            what = "a .parquet file needs pyarrow"
            raise needs("parquet", what, otherwise="write a .csv file") from None
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        data = buffer.getvalue()
    else:
        data = as_csv_text(frame).encode()
    write_inside(runs, path, data)
    answers.update(table=path, runs=len(frame), left_out=damaged)
    console = make_console()
    for text in damaged:
        console.print(f"left out: {text}", soft_wrap=True)
    console.print(f"{len(frame)} runs in {path}", soft_wrap=True)
    _print_rankings(console, runs)


def _print_rankings(console: "Console", runs: Path) -> None:
    """Print the ranking and the verdict of every experiment whose methods can be ranked."""
    from ..results.collect import collect
    from .ranking import print_results

    collected = collect(runs)
    for name in collected.names:
        experiment, frame = collected.experiment(name), collected.runs_of(name)
        ranked = experiment is None or experiment.ranked
        if ranked and frame["score"].notna().any():
            print_results(console, frame, experiment, runs)
