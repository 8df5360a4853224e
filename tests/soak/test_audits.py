"""Audits of made data with a known answer, and of real tables."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_sites import Made, make_sites, without_new

import farshore
from farshore.auditing.findings import Findings
from farshore.cli.app import main

pytestmark = pytest.mark.soak

KINDS = (Made(sites=7), Made(sites=6), Made(sites=9, rows=150), Made(sites=8, tail=True))
DATA_SETS = 40
QUICK = {"steps": 2, "orders": ["listed"], "design": "full"}


def test_the_interval_covers_the_truth_at_a_new_site(
    tmp_path: Path,
) -> None:
    """The truth: what the chosen method, trained on all sites, scores at one more site."""
    hits, widths = [], []
    for seed in range(DATA_SETS):
        table = make_sites(KINDS[seed % len(KINDS)], seed)
        runs = tmp_path / str(seed)
        done = farshore.audit(
            without_new(table), domain="site", label="ill", methods=["slda"], runs=runs, **QUICK
        )
        assert isinstance(done.findings, Findings)
        expected = done.findings.expectation
        assert expected is not None
        after = farshore.compare(
            table,
            domain="site",
            label="ill",
            methods=[done.findings.choice.method],
            target=str(table["site"].iloc[-1]),
            seeds=1,
            steps=2,
            runs=runs,
        )
        truth = after.results[0].target_score
        assert truth is not None
        hits.append(expected.low <= truth <= expected.high)
        widths.append(expected.width)
    print(f"covered {sum(hits)} of {DATA_SETS}, median width {np.median(widths):.3f}")
    assert sum(hits) >= 32
    assert np.median(widths) <= 0.15


@pytest.mark.parametrize("strange", ["s1", "s4"])
def test_a_strange_site_is_named(tmp_path: Path, strange: str) -> None:
    """Its labels are turned round: its inputs are like the others', its scores are not."""
    table = make_sites(Made(sites=7), seed=5)
    there = table["site"] == strange
    table.loc[there, "ill"] = table.loc[there, "ill"].map({"yes": "no", "no": "yes"})
    done = farshore.audit(
        table, domain="site", label="ill", methods=["slda"], runs=tmp_path, **QUICK
    )
    assert isinstance(done.findings, Findings)
    assert done.findings.outlier == strange
    assert f"At {strange} the score is" in done.answers["Which site is unlike the others?"]


def test_no_order_of_rows_columns_or_names_flips_a_choice_that_is_called_certain(
    tmp_path: Path,
) -> None:
    """Other rows are held out and other numbers drawn: five draws are five seeds."""
    heart = pd.read_csv(str(files("farshore.benchmarks") / "files" / "heart.csv"), na_values="?")
    chosen, sure = [], []
    for seed in range(5):
        draw = np.random.default_rng(seed)
        table = heart.iloc[draw.permutation(len(heart))]
        table = table[[table.columns[place] for place in draw.permutation(table.shape[1])]]
        names = draw.permutation(["absent", "present"])
        table = table.assign(num=np.where(table["num"] > 0, names[0], names[1]))
        done = farshore.audit(
            table.reset_index(drop=True),
            domain="hospital",
            label="num",
            methods=["er", "ridge", "slda", "ncm"],
            orders=["listed"],
            runs=tmp_path / str(seed),
            design="full",
        )
        assert isinstance(done.findings, Findings)
        chosen.append(done.findings.choice.method)
        said = done.answers["Which method should I use, and how certain is that choice?"]
        sure.append("uncertain" not in said)
    print(list(zip(chosen, sure, strict=True)))
    assert len({name for name, certain in zip(chosen, sure, strict=True) if certain}) <= 1


def test_data_without_shift_are_called_so(tmp_path: Path) -> None:
    for seed in range(3):
        table = make_sites(Made(sites=7, shift=0, tilt=0), seed)
        done = farshore.audit(
            table, domain="site", label="ill", methods=["slda"], runs=tmp_path / str(seed), **QUICK
        )
        assert isinstance(done.findings, Findings)
        assert done.findings.outlier is None
        assert done.answers["Which site is unlike the others?"].startswith("None")


def test_the_audit_of_the_heart_table_is_quick_and_answers_everything(tmp_path: Path) -> None:
    """Its own work takes less than its runs do."""
    heart = files("farshore.benchmarks") / "files" / "heart.csv"
    began = time.perf_counter()
    done = farshore.audit(
        str(heart), domain="hospital", label="num", runs=tmp_path / "runs", design="full"
    )
    spent = time.perf_counter() - began
    from farshore.runs.store.store import Store

    results = [result for _, result, _ in Store(tmp_path / "runs").results()]
    # Ten candidates in two orders, and three references that the order cannot change.
    assert len(results) == 4 * (2 * 10 + 3)
    assert spent <= 2 * sum(result.seconds["total"] for result in results)
    assert len(done.answers) == 11
    assert done.findings.choice.method in {result.run.method for result in results}
    assert not done.findings.choice.method.startswith("joint-")


def test_the_command_writes_a_page_and_the_numbers(tmp_path: Path, monkeypatch, capsys) -> None:
    make_sites(Made(sites=4, rows=60), seed=1).to_csv(tmp_path / "sites.csv", index=False)
    words = ["audit", "sites.csv", "--domain", "site", "--label", "ill", "--methods", "ncm"]
    words += ["--steps", "2", "--orders", "listed", "--workers", "1"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["farshore", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    printed = " ".join(capsys.readouterr().out.split())
    numbers = json.loads((tmp_path / "runs" / "audit-sites.csv.json").read_text())
    assert numbers["status"] == "done"
    assert f"{100 * numbers['expectation']['low']:.1f}%" in printed
    page = (tmp_path / "runs" / "audit-sites.csv.html").read_text()
    assert "Would more sites or rows help?" in page
