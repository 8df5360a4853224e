"""Arriving at a new site: the verdict, the gate, estimates, calibration, the log and the card."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from clinics import COLUMNS, clinic, failing, make_model

from farshore.cli.app import main
from farshore.deployment.changes import calibrate, forget, learn, take_back
from farshore.deployment.estimate import (
    WAYS,
    Arrival,
    Estimate,
    NoEstimate,
    Signals,
    estimate,
)
from farshore.deployment.familiarity import past_rows
from farshore.deployment.gate import agreement, looks_shuffled
from farshore.deployment.log import as_json, as_markdown
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.verdict import influences
from farshore.deployment.words import warning
from farshore.errors import FarshoreError, StateError
from farshore.loading import load
from farshore.state import load_parts, save_state
from farshore.testing import differences


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of four clinics; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("four")
    make_model(folder, 4)
    return folder


@pytest.fixture(scope="module")
def opened(four: Path) -> Model:
    """The same model, opened once: what it computes about its sites is reused."""
    return Model.open(four / "model")


@pytest.fixture
def work(four: Path, tmp_path: Path) -> Path:
    shutil.copytree(four, tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture(scope="module")
def by_sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a method that keeps sums instead of rows."""
    folder = tmp_path_factory.mktemp("sums")
    make_model(folder, 3, "ncm")
    return folder


def typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["farshore", *map(str, words)])
    capsys.readouterr()
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def written(folder: Path, frame: pd.DataFrame, name: str = "new.csv") -> Path:
    frame.to_csv(folder / name, index=False)
    return folder / name


def contents(model: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in model.rglob("*") if path.is_file()}


def accuracy(model: Model, data: Path) -> float:
    logits, labels = model.outputs(model.read(data, labelled=True))
    return float((logits.argmax(dim=1) == labels).float().mean())


# ---- the verdict ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", failing(9))
def test_a_site_where_the_model_fails_is_an_alarm(opened: Model, tmp_path: Path, case: str) -> None:
    model = opened
    data = written(tmp_path, failing(9)[case])
    assert accuracy(model, data) < 0.8
    verdict, estimated = model.judge(model.read(data, labelled=False))
    assert verdict.alarm
    assert verdict.different
    assert isinstance(estimated, NoEstimate)
    assert verdict.reasons[0] in estimated.reason


def test_known_sites_and_harmless_ones_are_silent(opened: Model, tmp_path: Path) -> None:
    model = opened
    frames = [clinic(0, sample=1), clinic(3, sample=1), clinic(20), clinic(21)]
    for frame in frames:
        data = written(tmp_path, frame)
        verdict, _ = model.judge(model.read(data, labelled=False))
        assert not verdict.alarm, verdict.reasons
        assert accuracy(model, data) > 0.9
    few = written(tmp_path, clinic(20)[:5])
    verdict, _ = model.judge(model.read(few, labelled=False))
    assert not verdict.alarm
    assert "fewer than 20 rows" in verdict.notes[0]


def test_predict_ends_with_the_verdict(
    four: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path, failing(9)["missing"])
    words = ["predict", four / "model", data, "-o", tmp_path / "p.csv"]
    code, out = typed(monkeypatch, capsys, *words)
    assert code == 0
    last = out.strip().splitlines()[-1]
    assert last.startswith("verdict: ALARM")
    assert "100% of the values are missing, but at known sites at most 0%" in last
    assert "two-sample test: the site differs from the known ones (p < 0.0001, area 1.00" in out
    assert "mean confidence" in out


def test_a_method_without_rows_judges_by_its_summaries(by_sums: Path, tmp_path: Path) -> None:
    model = Model.open(by_sums / "model")
    assert model.held_out == {}
    assert set(model.reliability) == {"clinic 0", "clinic 1", "clinic 2"}
    rows = clinic(0)[["age", "pressure", "marker", "weight"]].to_numpy(dtype=np.float32)
    stored = b"".join(contents(by_sums / "model").values())
    inputs = model.inputs(model.read(by_sums / "clinic0.csv", labelled=True))
    assert not any(row.tobytes() in stored for row in [*rows, *inputs.numpy()])
    bad = written(tmp_path, failing(9)["drifted"])
    verdict, _ = model.judge(model.read(bad, labelled=False))
    assert verdict.alarm
    assert verdict.area is None
    assert verdict.p_value < 0.01
    good = written(tmp_path, clinic(1, sample=1))
    verdict, _ = model.judge(model.read(good, labelled=False))
    assert not verdict.alarm, verdict.reasons


# ---- the gate ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "max_drop", "words"),
    [
        (150, None, "'wrong' was not kept"),
        (150, 1, "'wrong' was not kept: its labels seem to have nothing to do with its inputs"),
        (60, 1, "'wrong' was not kept: its labels seem to have nothing to do with its inputs"),
    ],
)
def test_shuffled_labels_are_refused_and_the_folder_is_what_it_was(
    work: Path, rows: int, max_drop: float | None, words: str
) -> None:
    site = clinic(5, rows)
    site["ill"] = np.random.default_rng(0).permutation(site["ill"])
    before = contents(work / "model")
    with pytest.raises(FarshoreError, match=words):
        learn(
            work / "model",
            written(work, site),
            name="wrong",
            columns=COLUMNS,
            new=NewModel(),
            steps=20,
            max_drop=max_drop,
        )
    assert contents(work / "model") == before


def test_a_site_that_spoils_the_others_is_refused_by_default(work: Path) -> None:
    site = clinic(5)
    site["ill"] = site["ill"].map({"yes": "no", "no": "yes"})
    before = contents(work / "model")
    with pytest.raises(FarshoreError, match=r"held-out rows of .* fell .* --max-drop 0\.1"):
        learn(
            work / "model",
            written(work, site),
            name="swapped",
            columns=COLUMNS,
            new=NewModel(),
            steps=150,
        )
    assert contents(work / "model") == before


def test_min_score_decides_instead(work: Path, tmp_path: Path) -> None:
    site = clinic(5)
    site["ill"] = np.random.default_rng(0).permutation(site["ill"])
    data = written(work, site)
    options = {"columns": COLUMNS, "new": NewModel(), "steps": 5, "name": "own bar"}
    with pytest.raises(FarshoreError, match=r"below --min-score 0\.9"):
        learn(work / "model", data, min_score=0.9, **options)
    learn(work / "model", data, min_score=0, max_drop=1, **options)
    assert Model.open(work / "model").promised == 0
    with pytest.raises(FarshoreError, match="not allowed with --validation 0"):
        learn(work / "model", data, min_score=0.5, validation=0, **options)
    with pytest.raises(FarshoreError, match="--min-score 2 is not allowed"):
        learn(work / "model", data, min_score=2, **options)
    with pytest.raises(FarshoreError, match=r"below --min-score 0\.99"):
        learn(tmp_path / "none", data, min_score=0.99, **options)
    assert [path.name for path in (tmp_path / "none").iterdir()] == [".lock"]


def test_few_or_rare_rows_are_never_called_shuffled() -> None:
    draws = np.random.default_rng(0)
    labels = np.arange(300) % 2
    related = np.stack([1.0 - labels, labels], axis=1) + draws.normal(0, 0.7, (300, 2))
    assert not looks_shuffled(agreement(related, labels), 0.95)
    shuffled = agreement(related, draws.permutation(labels))
    assert looks_shuffled(shuffled, 0.95)
    assert shuffled.p_value > 0.05
    assert agreement(related[:12], labels[:12]) is None
    rare = (np.arange(300) < 8).astype(int)
    assert agreement(related, rare) is None


# ---- the estimate --------------------------------------------------------------------------------


def arrivals(confidences: list[float], accuracies: list[float]) -> list[Arrival]:
    return [
        Arrival(Signals(200, confidence, confidence - 0.1, 1 - accuracy), accuracy, known)
        for known, (confidence, accuracy) in enumerate(
            zip(confidences, accuracies, strict=True), start=2
        )
    ]


def test_an_estimate_by_hand() -> None:
    """The confidence is always 0.1 too high, and ATC is right: both predict without error.

    Their error is then the least possible one, 1.2 times the variance of an accuracy by chance.
    """
    accuracies = np.array([0.8, 0.7, 0.85, 0.6])
    sites = [
        Arrival(Signals(200, each + 0.1, each, 0.5), each, known)
        for known, each in enumerate(accuracies, start=2)
    ]
    least = 1.2 * float(np.mean(accuracies * (1 - accuracies) / 200))
    of_mean = float(np.mean((4 / 3 * (accuracies - accuracies.mean())) ** 2))
    done = estimate(Signals(200, 0.85, 0.75, 0.5), sites)
    assert isinstance(done, Estimate)
    assert done.values["mean of left-out sites"] == pytest.approx(0.7375)
    assert done.values["average confidence"] == done.values["ATC"] == pytest.approx(0.75)
    inverse = np.array([of_mean**-2, least**-2, least**-2, of_mean**-2])
    weights = inverse / inverse.sum()
    assert list(done.weights.values()) == pytest.approx(weights)
    value = float(weights @ [0.7375, 0.75, 0.75, 0.7375])
    assert done.accuracy == pytest.approx(value)
    error = float(weights @ [of_mean, least, least, of_mean])
    assert done.high - value == pytest.approx(2.3534 * np.sqrt(error), rel=1e-4)  # t(3) at 95%
    assert set(done.values) == set(WAYS)
    # Far beyond all sites that it could be fitted to, the distance says nothing.
    assert "distance" not in estimate(Signals(200, 0.85, 0.75, 5.0), sites).values
    fewer = estimate(Signals(50, 0.85, 0.75, 0.5), sites)
    assert fewer.width > done.width


def test_a_regression_on_the_distance_never_rises() -> None:
    falling = [Arrival(Signals(200, 0.9, 0.9, d), 0.9 - 0.1 * d, 3) for d in (0.0, 1.0, 2.0, 3.0)]
    rising = [Arrival(Signals(200, 0.9, 0.9, d), 0.5 + 0.1 * d, 3) for d in (0.0, 1.0, 2.0, 3.0)]
    assert WAYS["distance"](falling, Signals(200, 0.9, 0.9, 4.0)) == pytest.approx(0.5)
    assert WAYS["distance"](rising, Signals(200, 0.9, 0.9, 4.0)) == pytest.approx(0.65)


def test_no_estimate_where_left_out_sites_say_that_it_cannot_be_known() -> None:
    here = Signals(100, 0.85, 0.8, 0.2)
    few = estimate(here, arrivals([0.9] * 3, [0.8] * 3))
    assert isinstance(few, NoEstimate)
    assert "at least 4 sites" in few.reason
    wild = estimate(
        here,
        [Arrival(Signals(200, 0.9, 0.8, 0.2), each, 3) for each in (0.2, 0.9, 0.1, 0.95)],
    )
    assert isinstance(wild, NoEstimate)
    assert "cannot be predicted" in wild.reason
    outside = estimate(here, arrivals([0.9] * 4, [0.8, 0.82, 0.78, 0.8]), ["it is strange"])
    assert isinstance(outside, NoEstimate)
    assert "out of range: it is strange" in outside.reason


def test_a_warning_needs_the_whole_interval_below_the_promise() -> None:
    here = Signals(100, 0.85, 0.8, 0.2)
    done = estimate(here, arrivals([0.9] * 4, [0.7, 0.72, 0.68, 0.7]))
    assert isinstance(done, Estimate)
    assert warning(done, done.high - 0.01) is None
    assert "below the 95.0% at which the model was accepted" in warning(done, 0.95)
    assert warning(done, None) is None
    assert warning(NoEstimate("nobody knows", here), 0.95) is None


def test_the_first_estimate_of_a_site_is_recorded_before_it_is_learned(four: Path) -> None:
    model = Model.open(four / "model")
    assert [facts["arrival"].get("known") for facts in model.sites.values()] == [None, 1, 2, 3]
    for arrival in model.knowledge.arrivals:
        assert arrival.signals.rows == 150
        assert arrival.accuracy > 0.7
        assert 0.5 <= arrival.signals.confidence <= 1


def test_estimating_is_a_refusal_with_too_few_sites_and_writes_nothing(
    four: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(four / "model")
    data = written(tmp_path, clinic(20))
    code, out = typed(monkeypatch, capsys, "estimate", four / "model", data)
    assert code == 2
    assert "at least 4 sites that were measured before they were learned, and this model" in out
    assert contents(four / "model") == before


# ---- calibration ---------------------------------------------------------------------------------


def test_a_calibration_is_undone_exported_and_dropped_by_learn(work: Path) -> None:
    from farshore.export import Exported, TableInputs, encode

    model = work / "model"
    # The classes are swapped at the new site for a third of the rows: the model is too certain.
    site = clinic(30, 90)
    swapped = np.arange(90) % 3 == 0
    site.loc[swapped, "ill"] = site.loc[swapped, "ill"].map({"yes": "no", "no": "yes"})
    data = written(work, site)
    before = Model.open(model)
    rows = before.read(data, labelled=True)
    first, weights = before.predict(rows), before.learner.state_dict()
    done, _ = calibrate(model, data)
    assert done.calibration.temperature > 1.5
    assert done.after < done.before
    after = Model.open(model)
    calibrated = after.predict(rows)
    assert calibrated["p(yes)"].max() < first["p(yes)"].max()
    assert differences(weights, after.learner.state_dict()) == []
    table = TableInputs(after.learner.preprocessing)
    exported = Exported(after.learner.system.predictor(), table, after.applied)
    inputs = encode(after.learner.preprocessing, rows.inputs)
    probability = exported(*inputs.values())[:, 1].detach().numpy()
    assert np.abs(probability - calibrated["p(yes)"]).max() < 1e-5
    whole = contents(model)
    calibrate(model, data)
    assert contents(model) == whole  # the same rows again change nothing, also not what undo does
    assert take_back(model).predict(rows).equals(first)
    calibrate(model, data)
    later = clinic(6)
    learn(model, written(work, later, "6.csv"), name="6", columns=COLUMNS, new=NewModel(), steps=5)
    assert Model.open(model).calibration is None


def test_class_priors_without_labels(work: Path) -> None:
    site = clinic(1, 400, sample=3)
    ill = site[site["ill"] == "yes"]
    data = written(work, pd.concat([ill, site[site["ill"] == "no"][:20]]).drop(columns="ill"))
    done, model = calibrate(work / "model", data, labelled=False)
    assert done.kind == "class priors"
    actual = len(ill) / (len(ill) + 20)
    assert done.priors[1] == pytest.approx(actual, abs=0.04)
    assert model.applied.threshold < 0.4
    before = contents(work / "model")
    usual = written(work, clinic(1, sample=4).drop(columns="ill"))
    done, _ = calibrate(work / "model", usual, labelled=False)
    assert not done.changes
    assert contents(work / "model") == before


def test_judging_and_calibrating_never_change_what_is_trained(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "model", tmp_path / "plain")
    site = clinic(30, 60)
    site.loc[::3, "ill"] = site.loc[::3, "ill"].map({"yes": "no", "no": "yes"})
    data = written(work, site)
    model = Model.open(work / "model")
    model.judge(model.read(data, labelled=False))
    done, _ = calibrate(work / "model", data)
    assert done.changes
    after = written(work, clinic(6), "6.csv")
    for folder in (work / "model", tmp_path / "plain"):
        learn(folder, after, name="6", columns=COLUMNS, new=NewModel(), steps=3, max_drop=1)
    states = [load(folder).state_dict() for folder in (work / "model", tmp_path / "plain")]
    assert differences(*states) == []


def test_too_few_rows_are_not_calibrated_with(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(work, clinic(30)[:8])
    code, out = typed(monkeypatch, capsys, "calibrate", work / "model", data)
    assert code == 2
    assert "8 labelled rows are too few" in out


# ---- the log, the card, forgetting ---------------------------------------------------------------


def test_the_log_tells_what_was_done_and_survives_undo(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    model = work / "model"
    data = written(work, clinic(6))
    learn(model, data, name="six", columns=COLUMNS, new=NewModel(), steps=5, max_drop=1)
    take_back(model)
    log = Model.open(model).log
    assert [(entry.action, entry.site) for entry in log] == [
        *(("learned", f"clinic {number}") for number in range(4)),
        ("learned", "six"),
        ("undone", None),
    ]
    assert (log[-1].by, log[-1].note) == ("anna", "learned six")
    assert set(log[4].before) == set(log[4].after) == {f"clinic {number}" for number in range(4)}
    assert log[4].settings["steps"] == "5"
    assert log[4].rows == 150
    plain = json.loads(as_json(log))
    assert plain[4]["versions"]["farshore"]
    lines = as_markdown(log).splitlines()
    assert len([line for line in lines if line.startswith("|")]) == 8
    code, out = typed(monkeypatch, capsys, "show", model, "--log", "-o", work / "log.json")
    assert code == 0, out
    assert json.loads((work / "log.json").read_text()) == plain
    code, out = typed(monkeypatch, capsys, "show", model, "--log")
    assert "undone (learned six)" in out
    assert typed(monkeypatch, capsys, "show", model, "-o", work / "x.md")[0] == 2
    assert typed(monkeypatch, capsys, "show", model, "--log", "-o", work / "x.txt")[0] == 2


def test_forget_says_what_remains_and_nothing_else_does(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = work / "model"
    opened = Model.open(model)
    rows = [row.numpy().tobytes() for row in opened.held_out["clinic 1"]["inputs"]]
    assert len(rows) == 30
    calibrate(model, written(work, clinic(6, 60)), labelled=True)
    code, out = typed(monkeypatch, capsys, "forget", model, "clinic 1")
    assert code == 0, out
    assert "- the weights, which were trained on its rows and do not change" in out
    stored = b"".join(contents(model).values())
    assert not any(row in stored for row in rows)
    assert b"clinic 1" not in stored
    log = Model.open(model).log
    assert log[1].site.startswith("forgotten site ")
    assert log[1].rows is None
    assert all("clinic 1" not in {**entry.before, **entry.after} for entry in log)
    assert log[-1].action == "forgot"


def test_a_closed_form_forgets_without_weights(
    by_sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    shutil.copytree(by_sums / "model", tmp_path / "model")
    code, out = typed(monkeypatch, capsys, "forget", tmp_path / "model", "clinic 0")
    assert code == 0
    assert "The weights were recomputed without it." in out
    assert "which were trained on its rows" not in out
    assert set(Model.open(tmp_path / "model").reliability) == {"clinic 1", "clinic 2"}


@pytest.mark.parametrize("method", ["der++", "cope"])
def test_a_memory_that_mixes_sites_is_emptied(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    model = make_model(tmp_path, 2, method, steps=2)
    mixed = past_rows(load(model))
    rows = [row.numpy().tobytes() for inputs, _ in mixed.values() for row in inputs]
    assert len(rows) > 20
    code, out = typed(monkeypatch, capsys, "forget", model, "clinic 0")
    assert code == 0, out
    assert "does not tell sites apart: it was emptied" in out
    stored = b"".join(contents(model).values())
    held_out = Model.open(model).held_out["clinic 1"]["inputs"].numpy()
    assert not any(row in stored for row in set(rows) - {row.tobytes() for row in held_out})
    data = written(tmp_path, clinic(2))
    learn(model, data, name="next", columns=COLUMNS, new=NewModel(), steps=2, max_drop=1)
    assert past_rows(load(model))


def test_the_card_is_one_that_the_hub_reads(
    four: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "README.md"
    words = ["card", four / "model", "-o", out, "--license", "apache-2.0"]
    assert typed(monkeypatch, capsys, *words)[0] == 0
    _, head, body = out.read_text().split("---\n", 2)
    front = yaml.safe_load(head)
    assert front["license"] == "apache-2.0"
    assert front["pipeline_tag"] == "tabular-classification"
    results = front["model-index"][0]["results"]
    assert [each["dataset"]["name"] for each in results] == [
        f"clinic {number} (held-out rows)" for number in range(4)
    ]
    for each in results:
        assert set(each) == {"task", "dataset", "metrics"}
        assert 0.5 < each["metrics"][0]["value"] <= 1
    assert "| clinic 0 |" in body
    assert "## Change log" in body
    assert "120 held-out rows" in body


def test_show_states_the_held_out_rows(
    four: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = typed(monkeypatch, capsys, "show", four / "model")[1]
    assert "120 held-out rows, at most 200 per site" in out
    assert "held out" in out


# ---- hostile values ------------------------------------------------------------------------------


def held(tensors: dict, name: str, value: torch.Tensor) -> None:
    tensors["held_out"]["clinic 0"][name] = value


HOSTILE = {
    "temperature": lambda parts: parts["sites"].update(
        calibration={
            "temperature": float("nan"),
            "offsets": [0.0, 0.0],
            "rows": 1,
            "labelled": True,
            "when": "",
        }
    ),
    "tiny temperature": lambda parts: parts["sites"].update(
        calibration={
            "temperature": 1e-300,
            "offsets": [0.0, 0.0],
            "rows": 1,
            "labelled": True,
            "when": "",
        }
    ),
    "offsets": lambda parts: parts["sites"].update(
        calibration={
            "temperature": 1.0,
            "offsets": [0.0] * 9,
            "rows": 1,
            "labelled": True,
            "when": "",
        }
    ),
    "rows of another width": lambda parts: held(parts["sites"], "inputs", torch.zeros(30, 3)),
    "rows that are not finite": lambda parts: held(
        parts["sites"], "inputs", parts["sites"]["held_out"]["clinic 0"]["inputs"] * torch.nan
    ),
    "a label that is no class": lambda parts: held(parts["sites"], "labels", torch.full((30,), 7)),
    "no rows": lambda parts: parts["sites"]["held_out"].update(
        {"clinic 0": {"inputs": torch.zeros(0, 8), "labels": torch.zeros(0, dtype=torch.long)}}
    ),
    "an arrival": lambda parts: parts["sites"]["sites"]["clinic 1"]["arrival"].update(atc=7.0),
    "a negative count": lambda parts: parts["sites"]["sites"]["clinic 1"]["arrival"].update(
        rows=-1.0
    ),
    "a profile": lambda parts: parts["sites"]["sites"]["clinic 1"]["profile"].pop("missing"),
    "counts of classes": lambda parts: parts["sites"]["sites"]["clinic 1"].update(
        classes={"yes": "many"}
    ),
    "reliability": lambda parts: parts["sites"].update(
        reliability={"clinic 0": {"rows": torch.zeros(50).long(), "correct": torch.ones(50).long()}}
    ),
    "the log": lambda parts: parts["log"].update(entries=[{"action": "learned"}]),
    "a text in the log": lambda parts: parts["log"]["entries"][0].update(before={"a": "b"}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_values_are_refused(work: Path, what: str) -> None:
    model = work / "model"
    parts = load_parts(model, kind="learner")
    HOSTILE[what](parts)
    learner = parts.pop("learner")
    save_state(model, learner, kind="learner", records=parts)
    with pytest.raises(StateError, match="its record of sites cannot be read"):
        Model.open(model)
    load(model)  # the learner itself is whole


def test_forgetting_in_python_removes_held_out_rows_from_the_previous_version(work: Path) -> None:
    forgotten = forget(work / "model", "clinic 0")
    assert "clinic 0" not in {**forgotten.held_out, **forgotten.sites}
    with pytest.raises(FarshoreError, match="keeps no previous version"):
        take_back(work / "model")


@pytest.mark.parametrize("constant", [0.5, float("nan")])
def test_all_inputs_count_for_a_model_that_looks_at_none(constant: float) -> None:
    inputs = np.random.default_rng(0).normal(size=(30, 4))

    def same(rows: np.ndarray) -> np.ndarray:
        return np.full((len(rows), 2), constant)

    def first_column(rows: np.ndarray) -> np.ndarray:
        return rows[:, :1]

    assert influences(same, inputs, 0).all()
    assert influences(first_column, inputs, 0).tolist() == [True, False, False, False]
