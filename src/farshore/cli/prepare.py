"""`farshore prepare`: download the public files of a benchmark and build its domains."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .data_options import SEVERITY
from .flags import answers, argument, command, flag

if TYPE_CHECKING:
    from rich.progress import Progress


@command
def prepare(
    benchmark: str = argument("name of a benchmark; `farshore benchmarks` lists them"),
    root: Path | None = flag(
        "data folder [default: $FARSHORE_DATA, or else the platform's cache folder]"
    ),
    scenario_seed: int = flag("seed of the data: which rows belong to which domain", 0),
    severity: int | None = flag(SEVERITY),
) -> None:
    """Download the data of BENCHMARK and build its domains.

    Downloads are checked against their checksums. The domains are built once, for all later runs.

    Example: farshore prepare rotated-mnist
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from ..benchmarks import BENCHMARKS
    from .tables import make_console

    kind = BENCHMARKS.get(benchmark)
    console = make_console()
    if kind.set_name is None:
        where = "your own data" if kind.own_data else "shipped with farshore"
        console.print(f"{benchmark} is {where}: nothing to prepare")
        return
    instance = kind({"severity": severity} if severity is not None else {})
    task = TextColumn("{task.description}", markup=False)
    columns = (task, BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = partial(DownloadBar, progress)
        prepared = instance.prepare(root, seed=scenario_seed, bar=bar)
        no_weights = instance.fetch_weights(root, bar=bar)
    assert prepared is not None
    told = {"folder": prepared.folder, "bytes": prepared.bytes, "rows": prepared.domains}
    answers.update(benchmark=benchmark, **told)
    rows = ", ".join(f"{name} {count:,}" for name, count in prepared.domains.items())
    size = f"{prepared.bytes / 1e6:.1f} MB"
    console.print(f"prepared {benchmark} in {prepared.folder} ({size})", soft_wrap=True)
    console.print(f"rows by domain: {rows}", soft_wrap=True)
    if no_weights is not None:
        console.print(f"without pretrained weights: {no_weights}", soft_wrap=True)
    if root is not None:
        console.print(f"to use it: farshore run {benchmark} er --root {root}", soft_wrap=True)


class DownloadBar:
    """A progress bar with the interface that pooch expects."""

    def __init__(self, progress: "Progress", name: str) -> None:
        self.progress = progress
        self.task = progress.add_task(name, total=None)
        self._total: float | None = None

    @property
    def total(self) -> float | None:
        """Size of the download in bytes, once the server has sent it."""
        return self._total

    @total.setter
    def total(self, value: float | None) -> None:
        self._total = value
        self.progress.update(self.task, total=value)

    def update(self, size: int) -> None:
        """Advance the bar by `size` bytes."""
        self.progress.update(self.task, advance=size)

    def reset(self) -> None:
        """Reset the bar; pooch calls this before it fills the bar again at the end."""
        self.progress.reset(self.task)

    def close(self) -> None:
        """Do nothing; pooch expects this method."""
