"""What objects show at a prompt, in a notebook, and as a figure."""

from __future__ import annotations

import html
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_sites import Made, make_sites

import farshore
from farshore.base.notebook import html_table, in_notebook, short_list
from farshore.comparing import Comparison


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return farshore.compare(
        "heart-hospitals",
        methods=["ridge", "majority"],
        target="each",
        seeds=1,
        runs=tmp_path_factory.mktemp("runs"),
    )


def test_only_public_names_are_listed() -> None:
    names = dir(farshore)
    assert {"Learner", "compare", "audit", "__version__"} <= set(names)
    assert not {"annotations", "TYPE_CHECKING", "lazy_exports"} & set(names)
    assert all(getattr(farshore, name) is not None for name in names)


def test_a_table_escapes_names_of_users() -> None:
    shown = html_table("<b>", ["<i>"], [["<script>"]])
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown
    assert "&lt;i&gt;" in shown


def test_long_lists_are_cut() -> None:
    assert short_list(["a", "b"]) == "a, b"
    assert short_list(range(100)) == "0, 1, 2, 3, 4, 95 more"


def test_a_comparison_shows_its_verdict_and_its_ranking(comparison: Comparison) -> None:
    assert repr(comparison).endswith(comparison.verdict.sentence)
    assert len(repr(comparison)) < 400
    shown = comparison._repr_html_()
    for each in comparison.verdict.ranking.standings:
        assert each.estimate is not None
        assert f">{each.row}<" in shown
        assert f">{100 * each.estimate.mean:.1f}<" in shown


def test_a_result_shows_method_data_and_score(comparison: Comparison) -> None:
    result = comparison.results[0]
    assert result.target_score is not None
    assert f"{100 * result.target_score:.1f}%" in repr(result)
    assert result.run.method in repr(result)
    assert all(f">{name}<" in result._repr_html_() for name in result.sources)
    assert repr(result.run).startswith(f"Run({result.run.method!r} on 'heart-hospitals'")
    assert f">{result.run.method}<" in result.run._repr_html_()


def test_a_run_that_diverged_says_so(comparison: Comparison) -> None:
    result = comparison.results[0].model_copy(update={"status": "diverged", "target": None})
    assert repr(result).endswith("seed 0: diverged)")
    with pytest.raises(farshore.FarshoreError, match="no score to plot: it is diverged"):
        result.plot()


def test_figures_have_the_numbers(comparison: Comparison) -> None:
    drawn = comparison.plot()
    ridge = comparison.verdict.ranking.find("ridge")
    assert ridge is not None
    assert ridge.estimate is not None
    marks = [value for trace in drawn.data if len(trace.x) == 1 for value in trace.x]
    assert pytest.approx(100 * ridge.estimate.mean) in marks
    result = comparison.results[0]
    *of_sources, of_target = result.plot().data
    assert result.target_score is not None
    assert list(of_target.y) == pytest.approx([100 * result.target_score])
    for trace, split in zip(of_sources, ("train", "validation"), strict=True):
        final = [value for value in result.matrices[split][-1] if value is not None]
        assert list(trace.y) == pytest.approx([100 * value for value in final])


def test_an_audit_shows_its_decision_and_what_to_expect(tmp_path: Path) -> None:
    table = make_sites(Made(sites=4, rows=40), seed=1).replace({"site": {"s3": "<site>"}})
    given: dict[str, Any] = {"methods": "slda", "orders": "listed", "runs": tmp_path}
    done = farshore.audit(table, domain="site", label="ill", **given)
    assert repr(done) == f"Audit of {done.title}: {done.decision} {done.verdict}"
    shown = done._repr_html_()
    assert "<site>" not in shown
    assert all(html.escape(answer) in shown for answer in done.answers.values())
    scores = [100 * score for score in done.findings.scores.values()]
    assert sorted(done.plot().data[0].x) == pytest.approx(sorted(scores))
    few = farshore.audit(table[:50], domain="site", label="ill", **given)
    assert "Too few sites to say" in repr(few)
    with pytest.raises(farshore.FarshoreError, match="nothing to draw"):
        few.plot()


def test_a_learner_shows_what_it_learned_and_scores_arrays() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = np.where(x[:, 0] > 0, "yes", "no")
    learner = farshore.Learner(method="ridge")
    assert repr(learner).endswith("learned nothing yet")
    with pytest.raises(farshore.FarshoreError, match="has not learned a domain yet"):
        learner.score(x, y)
    learner.learn(x, y, domain="<site>")
    assert repr(learner).endswith("learned <site>")
    assert "&lt;site&gt;" in learner._repr_html_()
    assert learner.score(x, y) == pytest.approx((learner.predict(x) == y).mean())
    assert learner.score(x[:0:-1], y[:0:-1]) == pytest.approx(
        (learner.predict(x[1:]) == y[1:]).mean()
    )
    with pytest.raises(farshore.FarshoreError, match="unknown label 'maybe'"):
        learner.score(x, ["maybe"] * len(x))


class ZMQInteractiveShell:
    """The name of the shell of a notebook's kernel."""


def test_a_notebook_is_recognised_and_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not in_notebook()
    fake = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", fake)  # type: ignore[arg-type]
    assert in_notebook()
    shown: list[str] = []
    handle = types.SimpleNamespace(update=shown.append)
    screen = types.SimpleNamespace(HTML=str, display=lambda text, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)  # type: ignore[arg-type]
    monkeypatch.setattr("farshore.comparing.in_notebook", lambda: True)
    options = {"methods": ["majority"], "target": "each:va", "seeds": 1, "runs": tmp_path}
    farshore.compare("heart-hospitals", **options)  # type: ignore[arg-type]
    assert 'value="1" max="1"' in shown[-2]
    assert shown[-1] == "1 runs"
    shown.clear()
    farshore.compare("heart-hospitals", progress=False, **options)  # type: ignore[arg-type]
    assert shown == []
    assert capsys.readouterr().out == ""
