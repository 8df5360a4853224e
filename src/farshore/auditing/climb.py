"""Carry out the designs of an audit one after the other, as long as the next one fits the time.

How long a run takes follows from those of its method that have ended. A method of which none has
ended counts as nothing: it is tried, and a design that turns out too long is given up. The answers
are those of the highest design all of whose runs have ended.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..runs.engines.carry_out import open_runs
from ..runs.plan.experiment import Experiment
from ..runs.plan.plan import Plan, Planned
from ..runs.result import Result
from ..runs.store.store import Store

# The share of the minutes for the runs; the rest is for the answers.
SHARE = 0.8


@dataclass(kw_only=True)
class Climb(Plan):
    """A plan that grows by the next design whenever all runs of the one before have ended.

    store, make: where the results are, and how a design is planned.
    designs: those that are still ahead, the lowest first.
    deadline: when the runs should have ended, by the monotonic clock.
    steps: the usual steps of a domain.
    slots: how many runs are carried out at a time; None for the plan's own number.
    done: called with the name and the plan of a design whose runs have all ended, if others follow.
    finished: the highest one of which all runs have ended.
    begun: the one that is carried out; it stays if it is `given_up` or if a run failed.
    """

    store: Store
    make: Callable[[Experiment], Plan]
    designs: dict[str, Experiment]
    deadline: float
    steps: int
    slots: int | None
    done: Callable[[str, Plan], None]
    finished: tuple[str, Plan] | None = None
    begun: tuple[str, Plan] | None = None
    given_up: bool = False
    _open: dict[str, Planned] = field(default_factory=dict)
    # By method, the run that took longest.
    _longest: dict[str, Result] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with the lowest design; of one with fewer steps, with one site."""
        if self._short():
            lowest = self.make(next(iter(self.designs.values())))
            site = lowest.runs[-1].condition.target
            self.experiment = lowest.experiment
            self.runs = [each for each in lowest.runs if each.condition.target == site]
            self._open = self._todo(self)
        if not self._open:
            self._climb()

    def _short(self) -> bool:
        """Whether the lowest design has fewer steps than the next, which may make it needless."""
        first, *others = (experiment.parts[0].steps for experiment in self.designs.values())
        return bool(others) and first != others[0]

    def highest(self) -> tuple[str, Plan]:
        """The design to answer from; one in which runs failed, unless the time was over."""
        found = self.finished if self.given_up else self.begun or self.finished
        if found is not None:
            return found
        name, lowest = next(iter(self.designs.items()))  # a run of its first site failed
        return name, self.make(lowest)

    def follow(self, ended: str, store: Store) -> list[Planned]:
        """The runs of the next design, if this was the last open run of the one before."""
        self._open.pop(ended, None)
        self._note(store.read(ended))
        return self._climb() if not self._open else []

    def over(self, slots: int) -> bool:
        """Whether the time is too short for what is open; never before there are answers."""
        self.slots = slots
        self.given_up = self.finished is not None and not self._fits(self._open.values())
        return self.given_up

    def _climb(self) -> list[Planned]:
        """Finish the design whose runs have ended, and those that need no more; begin the next."""
        if self.begun is None and self.finished is None and self._short():
            lowest, second = list(self.designs)[:2]
            if self._fits(self._todo(self.make(self.designs[second])).values()):
                del self.designs[lowest]
        while self.begun is not None or self.designs:
            if self.begun is not None:
                self.finished, self.begun = self.begun, None
                if self.designs:
                    self.done(*self.finished)
                continue
            name = next(iter(self.designs))
            plan = self.make(self.designs.pop(name))
            todo = self._todo(plan)
            if self.finished is not None and not self._fits(todo.values()):
                break
            self.experiment, self.begun, self._open = plan.experiment, (name, plan), todo
            self.runs += plan.runs
            if todo:
                return plan.runs
        self.designs = {}
        return []

    def _todo(self, plan: Plan) -> dict[str, Planned]:
        """The open runs of a plan; of the others, one of each method is read for its time."""
        todo, _ = open_runs(plan, self.store)
        for name, planned in plan.unique().items():
            if name not in todo and planned.run.method not in self._longest:
                self._note(self.store.read(name))
        return todo

    def _note(self, result: Result) -> None:
        known = self._longest.get(result.run.method)
        if known is None or known.seconds["total"] <= result.seconds["total"]:
            self._longest[result.run.method] = result

    def _fits(self, runs: Iterable[Planned]) -> bool:
        """Whether these runs end before the deadline, by the times of finished ones."""
        seconds = sum(self._seconds(planned) for planned in runs)
        return time.monotonic() + seconds / (self.slots or self.runs_at_once()) <= self.deadline

    def _seconds(self, planned: Planned) -> float:
        """How long a run takes; with other steps than the one that is known, more or less of it."""
        known = self._longest.get(planned.run.method)
        if known is None:
            return 0.0
        ratio = (planned.run.steps or self.steps) / known.steps
        return known.seconds["total"] + (ratio - 1) * known.seconds["training"]
