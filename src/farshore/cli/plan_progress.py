"""Progress over all runs of a plan: a live view in a terminal, one plain line per run in a log."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from ..runs.engines.carry_out import Progress
from ..runs.engines.work import WorkOutcome
from ..runs.plan.plan import Plan, Planned
from ..tasks.metrics import several
from .tables import printable

if TYPE_CHECKING:
    from ..runs.store.store import Store

# How many runs in progress the live view names.
MOST_RUNS = 4


class PlanBar(Bar):
    """A bar with lines below it."""

    lines: tuple[str, ...] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar, then the lines, each cut to the width of the terminal."""
        yield from super().get_renderables()
        for line in self.lines:
            yield Text(printable(line), no_wrap=True, overflow="ellipsis", style="dim")


class PlanProgress:
    """Context manager that shows how many runs are done, which are running, and the time left.

    It shows the best mean score so far only if every method has a single trial: in a search, scores
    on the target must not be seen before the selection.
    """

    def __init__(self, console: Console, plan: Plan, store: "Store") -> None:
        self.console = console
        self.store = store
        self.plan = plan
        self.searched = bool(plan.studies) or any(planned.trial for planned in plan.runs)
        self.orders = len({planned.run.order for planned in plan.runs}) > 1
        self.scores: dict[str, list[float]] = {}
        self.bar = PlanBar(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("starting", total=None)

    def __enter__(self) -> "PlanProgress":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def report(
        self, planned: Planned | None, outcome: WorkOutcome | None, progress: Progress
    ) -> None:
        """Update the display: runs have started, a run has ended, or some time has passed."""
        seconds = progress.seconds_left
        left = f", {duration(seconds)} left" if seconds is not None else ""
        pruned = f", {progress.pruned} stopped early" if progress.pruned else ""
        failed = f", {len(progress.failures)} failed" if progress.failures else ""
        diverged = f", {progress.diverged} diverged" if progress.diverged else ""
        state = f"{progress.running} running{failed}{diverged}{pruned}{left}"
        # Until a run has ended, the bar only moves to and fro: workers load PyTorch first.
        total = progress.total if progress.done else None
        self.bar.update(self.task, total=total, completed=progress.done, description=state)
        if self.console.is_terminal:
            self._note_score(planned, outcome)
            self.bar.lines = tuple(self._lines(progress))
        if planned is None or outcome is None:
            return
        if outcome.status == "failed":
            self.bar.console.print(f"failed: {progress.failures[-1]}", soft_wrap=True)
        elif not self.console.is_terminal:
            text = (
                f"[{progress.done}/{progress.total}] {self._label(planned)}: {outcome.status} in "
                f"{outcome.seconds:.1f} s; {state}"
            )
            self.console.print(text, soft_wrap=True)

    def _label(self, planned: Planned) -> str:
        run, condition = planned.run, planned.condition
        target = f", target {condition.target}" if condition.target else ""
        order = f", order {' '.join(run.order)}" if run.order else ", listed order"
        trial = f", trial {planned.trial}" if self.searched else ""
        shown = f"{target}{order if self.orders else ''}, seed {planned.seed}{trial}"
        return f"{run.method} on {condition.benchmark}{shown}"

    def _lines(self, progress: Progress) -> Iterable[str]:
        """What the live view shows below the bar."""
        shown = progress.current[:MOST_RUNS]
        for planned in shown:
            yield f"  now: {self._label(planned)}"
        if len(progress.current) > len(shown):
            yield f"  ... and {len(progress.current) - len(shown)} more"
        if self.scores:
            means = {name: sum(of) / len(of) for name, of in self.scores.items()}
            best = max(means, key=lambda name: means[name])
            yield (
                f"  best mean so far: {best} {100 * means[best]:.1f}% on the unseen target "
                f"({several(len(self.scores[best]), 'run')})"
            )

    def _note_score(self, planned: Planned | None, outcome: WorkOutcome | None) -> None:
        if planned is None or outcome is None or outcome.status != "done" or self.searched:
            return
        result = self.store.read(planned.name)
        if result.kind == "continual" and result.target_score is not None:
            self.scores.setdefault(planned.run.method, []).append(result.target_score)


def duration(seconds: float) -> str:
    """A duration with its unit."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
