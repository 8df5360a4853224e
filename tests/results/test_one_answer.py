"""Every view of the same runs gives the same ranking, differences and recommended method.

They are read from what users see, and compared with a second implementation in plain Python.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_store import (
    CSV,
    Compared,
    Line,
    Outcome,
    View,
    fill,
    read_audit,
    read_markdown,
    read_page,
    read_terminal,
    write_csv,
)
from slow_ranking import Answer, Row, answer
from typer.testing import CliRunner

import farshore
import farshore.comparing  # it takes its own open_runs before that is replaced
from farshore.auditing.findings import find_all
from farshore.cli.app import app
from farshore.data.tables.read_table import read_table
from farshore.deployment.unlike import SiteRows
from farshore.runs.plan.plan import Planned

METHODS = ("er", "finetune", "cl-coral", "ridge", "joint", "majority")
ORDERS = ("listed", "reversed", "random1", "random2", "random3", "random4")
MOST_RUNS = 40
# Printed numbers have one decimal.
ROUNDED = 0.0501


@st.composite
def comparisons(draw: st.DrawFn) -> Compared:
    """A comparison of a few methods, with one to five targets and one to six orders."""
    methods = draw(st.lists(st.sampled_from(METHODS), min_size=1, max_size=5, unique=True))
    targets = draw(st.sampled_from([1, 1, 2, 3, 4, 5]))
    most = max(1, MOST_RUNS // (targets * len(methods)))
    orders = draw(st.integers(1, min(6, most)))
    seeds = draw(st.integers(1, min(4 if orders == 1 else 2, max(1, most // orders))))
    metric = draw(st.sampled_from(["accuracy", "macro_f1"]))
    return Compared(tuple(methods), tuple("abcde"[:targets]), ORDERS[:orders], seeds, metric)


def outcomes(compared: Compared, chance: Random) -> Callable[[Planned], Outcome]:
    """What becomes of each run. Methods differ by more or less than their runs do."""
    level = {name: chance.choice([0.3, 0.5, 0.52, 0.7]) for name in compared.methods}
    constant = {name for name in compared.methods if chance.random() < 0.15}
    noise = chance.choice([0.0, 0.01, 0.1, 0.3])
    # Of how many runs one has no score.
    lacking = chance.choice([0, 0, 4, 15])

    def outcome(planned: Planned) -> Outcome:
        method = planned.run.method
        lost = lacking > 0 and chance.random() < 1 / lacking
        status = chance.choice(["diverged", "failed", "missing"]) if lost else "done"
        balanced = 0.5 if method in constant or chance.random() < 0.1 else 0.9
        return Outcome(status, level[method] + noise * (chance.random() - 0.5), balanced)

    return outcome


@contextmanager
def nothing_is_trained() -> Iterator[None]:
    """Commands find no open run; pages have no figures; the table is read once."""
    once = cache(lambda *_: read_table(Path(CSV), ("d", "y")))
    with (
        patch("farshore.benchmarks.own.table.read_table", lambda *_: once().copy()),
        patch("farshore.runs.engines.carry_out.open_runs", lambda *_, **__: ([], [])),
        patch("farshore.comparing.open_runs", lambda *_, **__: ([], [])),
        patch("farshore.cli.ranking.write_page", lambda *_: "no page"),
        patch("farshore.report.figures.shape.draw_all", lambda *_: []),
    ):
        yield


def printed(line: str, columns: int) -> str:
    terminal = {"COLUMNS": str(columns), "LINES": "40", "FORCE_COLOR": "1", "TERM": "dumb"}
    ended = CliRunner().invoke(app, line.split(), env=terminal, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def from_python(made: farshore.Comparison) -> View:
    """What `farshore.compare` returns."""

    def percent(value: float | None) -> float | None:
        return None if value is None or value != value else 100 * value

    lines, reference = {}, ""
    for row in made.table.to_dict("records"):
        if percent(row["score"]) is None:
            continue
        reference = reference or row["reference"]
        lines[row["method"]] = Line(
            rank=None if row["rank"] is None or row["rank"] != row["rank"] else int(row["rank"]),
            mean=100 * row["score"],
            error=percent(row["error"]),
            difference=percent(row["difference"]),
            low=percent(row["low"]),
            high=percent(row["high"]),
            guessing=row["guessing"],
        )
    recommendation = made.verdict.recommendation
    return View(lines, reference, recommendation.row if recommendation is not None else "")


def from_audit(made: farshore.Comparison) -> View:
    """What an audit says of the same runs; it is refused if runs are missing."""
    names = list(dict.fromkeys(made.frame["target"]))
    draws = np.random.default_rng(0)
    inputs = {name: draws.normal(size=(6, 2)) for name in names}
    labels = {name: np.arange(6) % 2 for name in names}
    sites = SiteRows(inputs, labels, dict.fromkeys(names, 6), ["x", "z"])
    return read_audit(find_all(made.frame, sites).plain())


def agree(view: View, slow: Answer, *, marks: bool = True) -> None:
    """A view shows what the second implementation computes.

    marks: whether the view marks rows that are no better than guessing.
    """
    shown = {name: row for name, row in slow.rows.items() if row.mean is not None}
    assert set(view.lines) == set(shown)
    compared = any(row.difference is not None for row in shown.values())
    assert view.reference == slow.reference or not compared
    assert view.recommended == slow.recommended
    for name, row in shown.items():
        line = view.lines[name]
        assert line.rank in (0, row.rank), name
        assert line.guessing == (row.guessing and marks), name
        for ours, theirs in pairs(line, row):
            assert (ours is None) == (theirs is None), name
            assert ours is None or ours == pytest.approx(100 * theirs, abs=ROUNDED), name
        if line.won and row.difference is not None:
            assert line.won == f"{row.difference.won} of {row.difference.units}"


def pairs(line: Line, row: Row) -> Iterator[tuple[float | None, float | None]]:
    yield line.mean, row.mean.mean if row.mean is not None else None
    yield line.error, row.mean.error if row.mean is not None else None
    for name, ours in (("mean", line.difference), ("low", line.low), ("high", line.high)):
        yield ours, getattr(row.difference, name) if row.difference is not None else None


@settings(max_examples=10)
@given(comparisons(), st.integers(0, 2**32))
def test_every_view_gives_the_same_answer(compared: Compared, seed: int) -> None:
    with tempfile.TemporaryDirectory() as work, chdir(work), nothing_is_trained():
        write_csv(Path(work))
        made = fill(Path("runs"), compared, outcomes(compared, Random(seed)))
        slow = answer(made)
        if not any(run.score is not None for run in made):
            return
        agree(read_terminal(printed(f"{compared.command} --runs runs", 200)), slow)
        agree(read_terminal(printed("results runs", 200)), slow)
        made_again = farshore.compare(**compared.arguments, runs="runs")
        agree(from_python(made_again), slow)
        for out in ("r.md", "r.html"):
            printed(f"report runs -o {out}", 200)
        agree(read_markdown(Path("r.md").read_text()), slow, marks=False)
        agree(read_page(Path("r.html").read_text()), slow)
        ranked = any(row.rank == 1 for row in slow.rows.values())
        if len(compared.targets) > 1 and ranked and made_again.frame["result"].notna().all():
            agree(from_audit(made_again), slow)
