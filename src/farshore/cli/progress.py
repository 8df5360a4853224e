"""Progress of one run: a live bar in a terminal, one plain line per domain in a log."""

from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from ..observer import Observer
from .tables import printable

# With more sources than this, a line has their mean instead of all scores.
MOST_SCORES = 8
READ_EVERY = 25


class ProgressObserver(Observer):
    """Context manager that shows steps and losses during a run; the bar is live in a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("", total=1, loss="", visible=False)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def note(self, text: str) -> None:
        """Print a permanent line."""
        self.console.print(text, soft_wrap=True)

    def start(self, domain: str, steps: int) -> None:
        """Restart the bar for a new domain."""
        self.bar.reset(
            self.task, total=steps, description=printable(f"learning {domain}"), visible=True
        )

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """Advance the bar. Losses are read only now and then, and only in a terminal."""
        if self.console.is_terminal and step % READ_EVERY == 0:
            loss = "  ".join(f"{name} {float(term):.3g}" for name, term in terms.items())
            self.bar.update(self.task, loss=loss)
        self.bar.advance(self.task)

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """Print a permanent line: the validation score of every source, or what sums them up."""
        from ..tasks.metrics import METRICS

        of_validation = {
            name: value for name, value in scores.items() if " validation " in f" {name} "
        }
        scored = {name.split(" validation")[0]: value for name, value in of_validation.items()}
        metric = METRICS.get(" ".join(of_validation).rpartition(" ")[2], METRICS["accuracy"])

        def text(value: float) -> str:
            return metric.text(value).replace("\u2212", "-")

        shown = [f"{name} {text(value)}" for name, value in scored.items()]
        if len(scored) > MOST_SCORES:
            chosen = min if metric.higher_is_better else max
            worst = chosen(scored, key=lambda name: scored[name])
            shown = [f"{domain} {text(scored[domain])}"] if domain in scored else []
            shown.append(f"mean of all {len(scored)} {text(sum(scored.values()) / len(scored))}")
            shown.append(f"worst {worst} {text(scored[worst])}")
        self.console.print(f"learned {domain}: validation {'  '.join(shown)}")
