"""Rank results: one standing per method, the best mean score on the unseen target first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..entry import Kind
from ..runs import catalog
from ..runs.averages import mean, standard_error
from ..runs.result import Result
from .over_units import over_units


@dataclass(frozen=True)
class Standing:
    """Means and standard errors of one method over its runs.

    With several targets, every target counts once: `target` is the mean over targets, and
    `target_error` its standard error over targets, however many seeds and orders there are.

    runs: how many of the `planned` runs have a score.
    """

    method: str
    group: str
    kind: Kind
    rank: int | None
    runs: int
    planned: int
    target: float | None
    target_error: float | None
    targets: int
    source: float | None
    validation: float | None
    backward_transfer: float | None
    seconds: float
    rows_per_step: int

    @property
    def whole(self) -> bool:
        """Whether every planned run has a score."""
        return self.runs == self.planned


def rank(
    results: Sequence[Result], planned: Mapping[str, int] = MappingProxyType({})
) -> list[Standing]:
    """One standing per method, the best mean target score first.

    Methods without any score come last and have no rank. Offline methods and adaptations follow the
    continual methods without a rank, because they saw more data.

    planned: the planned number of runs per method, if there are fewer results.
    """
    by_method: dict[str, list[Result]] = {}
    for result in results:
        by_method.setdefault(result.run.method, []).append(result)
    standings = [
        _standing(method, of_method, max(len(of_method), planned.get(method, 0)))
        for method, of_method in by_method.items()
    ]
    standings.sort(
        key=lambda standing: (
            catalog.KINDS.index(standing.kind),
            -standing.target if standing.target is not None else float("inf"),
        )
    )
    return [
        replace(standing, rank=number)
        if standing.kind == "continual" and standing.target is not None
        else standing
        for number, standing in enumerate(standings, start=1)
    ]


def rank_by_order(results: Sequence[Result]) -> dict[str, list[Standing]]:
    """Separate standings for each order of the sources, with methods sorted as by `rank`."""
    by_order: dict[str, list[Result]] = {}
    for result in results:
        by_order.setdefault(" ".join(result.sources), []).append(result)
    overall = [standing.method for standing in rank(results)]
    return {
        order: sorted(rank(of_order), key=lambda standing: overall.index(standing.method))
        for order, of_order in by_order.items()
    }


def scores_by_order(
    results: Sequence[Result],
) -> dict[str, dict[tuple[str, ...], dict[int, float]]]:
    """Target scores by method, order of the sources and run seed."""
    scores: dict[str, dict[tuple[str, ...], dict[int, float]]] = {}
    for result in results:
        if result.target_score is not None:
            of_method = scores.setdefault(result.run.method, {})
            of_method.setdefault(tuple(result.sources), {})[result.run.seed] = result.target_score
    return scores


def scores_by_target(
    results: Sequence[Result],
) -> dict[str, dict[tuple[str, ...], dict[tuple[tuple[str, ...], int], float]]]:
    """Target scores by method, target, and order and run seed: what is paired shares all three."""
    scores: dict[str, dict[tuple[str, ...], dict[tuple[tuple[str, ...], int], float]]] = {}
    for result in results:
        if result.target is not None and result.target_score is not None:
            of_method = scores.setdefault(result.run.method, {})
            of_target = of_method.setdefault((result.target.name,), {})
            of_target[tuple(result.sources), result.run.seed] = result.target_score
    return scores


def choose_reference(methods: Sequence[str]) -> str | None:
    """The method that others are compared with: plain replay if it takes part, else the first."""
    return "er" if "er" in methods else next(iter(methods), None)


def _standing(method: str, results: Sequence[Result], planned: int) -> Standing:
    done = [result for result in results if result.status == "done"]
    by_target = scores_by_target(done).get(method, {})
    over_targets = over_units(by_target) if len(by_target) > 1 else None
    scores = [value for result in done if (value := result.target_score) is not None]
    return Standing(
        method=method,
        group=catalog.find(method).group,
        kind=results[0].kind,
        rank=None,
        runs=len(done),
        planned=planned,
        target=over_targets.mean if over_targets is not None else mean(scores),
        target_error=over_targets.error if over_targets is not None else standard_error(scores),
        targets=len(by_target),
        source=mean([result.source_score(2) for result in done]),
        validation=mean([result.source_score(1) for result in done]),
        backward_transfer=mean([result.backward_transfer() for result in done]),
        seconds=float(np.mean([result.seconds["total"] for result in results])),
        rows_per_step=max(
            (result.rows_per_step[-1] for result in results if result.rows_per_step), default=0
        ),
    )
