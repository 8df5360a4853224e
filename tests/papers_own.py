"""The paper's tables as if they were ours: runs that have exactly its scores."""

from __future__ import annotations

from pathlib import Path

from reporting import filled
from sweeping import EXPERIMENTS

from farshore.report.build import Report, build_report
from farshore.results.published import read_published
from farshore.results.tables import Table
from farshore.runs.plan.experiment import read_experiment
from reproduction.paper.published import PUBLISHED
from reproduction.paper.scores import paper_numbers


def printed_report(experiment: str, runs: Path) -> Report:
    """The report of an experiment with one run per cell, which has the paper's score."""
    requested = read_experiment(EXPERIMENTS / f"{experiment}.yaml")
    once = requested.search.model_copy(update={"trials": 1, "seeds": 1})
    scores = paper_numbers(experiment)
    filled(
        runs,
        requested.model_copy(update={"search": once}),
        lambda planned: scores[planned.run.method, "", planned.run.benchmark][0] / 100,
    )
    return build_report(runs, experiment=experiment, published=read_published(PUBLISHED))


def printed_table(experiment: str, runs: Path) -> Table:
    """The one table of that report."""
    [table] = printed_report(experiment, runs).tables
    return table
