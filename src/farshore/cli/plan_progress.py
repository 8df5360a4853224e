"""Progress over all runs of a plan: a live bar in a terminal, one plain line per run in a log."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from ..engines.carry_out import Progress
from ..engines.work import Outcome
from ..plan.plan import Planned


class PlanProgress:
    """Context manager that shows how many runs are done, running and failed, and the time left.

    It never shows target scores, because a search may be in progress.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=None)

    def __enter__(self) -> PlanProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def report(self, planned: Planned | None, outcome: Outcome | None, progress: Progress) -> None:
        """Update the display: a run has ended, or some time has passed."""
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
        target = f", target {planned.condition.target}" if planned.condition.target else ""
        run_label = (
            f"{planned.run.method} on {planned.condition.benchmark}{target}, seed {planned.seed}, "
            f"trial {planned.trial}"
        )
        if outcome.status == "failed":
            self.bar.console.print(f"failed: {progress.failures[-1]}", soft_wrap=True)
        elif not self.console.is_terminal:
            text = (
                f"[{progress.done}/{progress.total}] {run_label}: {outcome.status} in "
                f"{outcome.seconds:.1f} s; {state}"
            )
            self.console.print(text, soft_wrap=True)


def duration(seconds: float) -> str:
    """A duration with its unit."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
