"""Progress over all runs of a sweep: a live bar in a terminal, one plain line a run in a log."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from ..engines.sweep import Progress
from ..engines.work import Outcome
from ..plan.plan import Planned
from .sweep import duration


class SweepProgress:
    """Done, running, failed, time left. Scores of the target are not shown while a search goes
    on. Use it as a context.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=None)

    def __enter__(self) -> SweepProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def report(self, planned: Planned | None, outcome: Outcome | None, progress: Progress) -> None:
        """A run has ended, or some time has passed."""
        left = (
            f", {duration(progress.seconds_left)} left" if progress.seconds_left is not None else ""
        )
        pruned = f", {progress.pruned} stopped early" if progress.pruned else ""
        state = (
            f"{progress.running} running, {len(progress.failures)} failed, "
            f"{progress.diverged} diverged{pruned}{left}"
        )
        self.bar.update(self.task, total=progress.total, completed=progress.done, description=state)
        if planned is None or outcome is None:
            return
        what = (
            f"{planned.run.method} on {planned.cell.benchmark}, seed {planned.seed}, trial "
            f"{planned.trial}"
        )
        if outcome.status == "failed":
            self.bar.console.print(
                f"failed: {outcome.message}", highlight=False, markup=False, soft_wrap=True
            )
        elif not self.console.is_terminal:
            text = (
                f"[{progress.done}/{progress.total}] {what}: {outcome.status} in "
                f"{outcome.seconds:.1f} s; {state}"
            )
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)
