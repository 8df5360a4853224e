"""A site arrives: what is expected, what is advised, which rows to label, and what labels say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clinics import accuracy, clinic, contents, written

from farshore.base.forms import FormError
from farshore.deployment.arrive import (
    EXIT_CODES,
    SCORES,
    Action,
    Arrival,
    Labelled,
    Nothing,
    advise,
    better_than_guessing,
    expected_accuracy,
    row_scores,
    see,
    sets_of_rows,
)
from farshore.deployment.held_out import Outputs
from farshore.deployment.label_rows import ROW, drawn, write_rows
from farshore.deployment.model import Model
from farshore.deployment.record import check_record
from farshore.results.expectation import Basis, Expectation
from farshore.results.sequence import Picks

DESIGN = Picks.of(np.linspace(0.6, 1, 100), 0.7)
COMMANDS = dict.fromkeys(Action, "")


def arrivals(*accuracies: float, guess: float = 0.5) -> list[Arrival]:
    scores = tuple(np.linspace(0.1, 0.9, len(SCORES)))
    return [
        Arrival(200, each, each, each, known, guess, scores)
        for known, each in enumerate(accuracies, start=2)
    ]


HERE = Arrival(200, 0.8, 0.8)


def advised(**given: object):  # type: ignore[no-untyped-def]
    usual = {
        "alarm": (),
        "expected": Expectation(0.8, 0.7, 0.9, 4, Basis.MODEL),
        "labelled": None,
        "arrivals": arrivals(0.8, 0.8, 0.8),
        "asked": None,
        "learned": [],
        "design": DESIGN,
        "commands": COMMANDS,
    }
    return advise(**(usual | given))


def test_a_bar_that_no_site_has_told_is_not_named() -> None:
    """With nothing asked, it is unknown; otherwise it is what is asked."""
    unknown = {"arrivals": [], "expected": Nothing("no site yet")}
    advice = advised(**unknown)
    assert advice.action is Action.LABEL
    assert advice.options[1].gain == "how accurate the model is here"
    asked = advised(**unknown, asked=0.8)
    assert asked.bar == 0.8
    assert asked.options[1].gain.startswith("whether the accuracy is at least 80.0%")


def test_what_is_seen_is_the_confidence_plus_what_it_was_short_of() -> None:
    """Held out: confidence 0.9 and 3 of 5 right, so 0.3 too confident."""
    outputs = {"a": Outputs(np.full(5, 0.9), np.array([1, 1, 1, 0, 0], dtype=bool))}
    logits = np.log(np.array([[0.8, 0.2], [0.3, 0.7]]))
    found = see(logits, outputs, 1.0)
    assert found.confidence == pytest.approx(0.75)
    assert found.looks == pytest.approx(0.45)
    assert see(logits, {}, 1.0).looks == pytest.approx(0.75)


def test_scores_of_rows_are_those_of_the_true_class() -> None:
    logits = np.log(np.array([[0.8, 0.2], [0.3, 0.7]]))
    found = row_scores(logits, np.array([0, 0]))
    assert found[0] == pytest.approx(0.7)  # quantiles are no smaller than they are
    assert found[-1] == pytest.approx(0.7)
    assert row_scores(logits, np.array([-1, 0]))[-1] == 1


def test_nothing_is_expected_after_an_alarm_or_with_too_few_or_wild_sites() -> None:
    assert isinstance(expected_accuracy(HERE, arrivals(0.8, 0.82, 0.78)), Expectation)
    alarm = expected_accuracy(HERE, arrivals(0.8, 0.82, 0.78), ["it is strange"])
    assert "out of range: it is strange" in alarm.reason
    few = expected_accuracy(HERE, arrivals(0.8, 0.8))
    assert "at least 3 sites" in few.reason
    wild = [Arrival(200, 0.9, 0.9, each, 3) for each in (0.2, 0.9, 0.1, 0.95)]
    assert "points wide" in expected_accuracy(HERE, wild).reason
    assert isinstance(sets_of_rows(arrivals(0.8, 0.8, 0.8), ["it is strange"]), Nothing)
    assert isinstance(sets_of_rows(arrivals(0.8, 0.8, 0.8), calibrated=True), Nothing)
    assert sets_of_rows(arrivals(0.8, 0.8, 0.8)).sites == 3


def test_the_advice_without_labels() -> None:
    assert advised().action is Action.DEPLOY
    assert advised(asked=0.75).action is Action.LABEL
    assert advised(asked=0.95).action is Action.NOT
    assert advised(asked=0.95, learned=[0.2, 0.2]).action is Action.LEARN
    assert advised(alarm=["it is strange"]).action is Action.NOT
    assert advised(expected=Nothing("too few")).action is Action.LABEL
    # No better than the most frequent class at the sites that were measured: never deployed.
    assert advised(arrivals=arrivals(0.8, 0.8, 0.8, guess=0.85)).action is Action.LABEL
    assert advised(arrivals=arrivals(0.71, 0.7, 0.7, guess=0.7)).action is Action.LABEL
    assert advised(arrivals=[]).action is Action.NOT
    assert not better_than_guessing([])
    assert {each.action for each in advised().options} == set(Action) == set(EXIT_CODES)


def test_the_advice_by_labels() -> None:
    def of(low: float, high: float, *, guess: float = 0.5, gain: float | None = None) -> Labelled:
        return Labelled(50, low, high, (low + high) / 2, guess, gain)

    alarm = ["it is strange"]  # labels say more
    assert advised(labelled=of(0.82, 0.95), asked=0.8, alarm=alarm).action is Action.DEPLOY
    assert advised(labelled=of(0.7, 0.9), asked=0.8).action is Action.LABEL
    assert advised(labelled=of(0.5, 0.7), asked=0.8).action is Action.NOT
    assert advised(labelled=of(0.5, 0.7, gain=0.25), asked=0.8).action is Action.CALIBRATE
    assert advised(labelled=of(0.5, 0.7), asked=0.8, learned=[0.25]).action is Action.LEARN
    # The bar is never below guessing.
    assert advised(labelled=of(0.82, 0.95, guess=0.9), asked=0.8).action is Action.LABEL


def test_the_command_says_what_it_advises(four: Path, tmp_path: Path, typed) -> None:
    before = contents(four / "model")
    data = written(tmp_path, clinic(20))
    code, out = typed("arrive", four / "model", data)
    assert code == EXIT_CODES[Action.DEPLOY]
    assert "(model-based, 3 measured sites)" in out
    assert "\nadvice: deploy: the whole interval is above" in out
    assert f"\n  farshore predict {four / 'model'} {data} -o predictions.csv\n" in out
    code, text = typed("arrive", four / "model", data, "--json", "--at-least", 0.98)
    found = json.loads(text)
    assert code == found["exit_code"] == EXIT_CODES[Action.LABEL]
    assert found["advice"] == "label more rows"
    assert found["expected_accuracy"]["basis"] == "model-based"
    assert {each["action"] for each in found["options"]} == {str(each) for each in Action}
    model = Model.open(four / "model")
    low, high = (found["expected_accuracy"][end] for end in ("low", "high"))
    assert low <= accuracy(model, data) <= high
    assert typed("arrive", four / "model", data, "--at-least", 80)[0] == 2
    assert contents(four / "model") == before


def test_labels_of_the_site_are_not_looked_at(four: Path, tmp_path: Path, typed) -> None:
    rows = clinic(20)
    noise = rows.assign(ill=np.random.default_rng(0).permutation(rows["ill"]))
    said = []
    for name, frame in (("own", rows), ("noise", noise), ("none", rows.drop(columns="ill"))):
        data = written(tmp_path, frame, f"{name}.csv")
        words = ["--label-budget", 20, "-o", tmp_path / "rows.csv", "--overwrite", "--json"]
        code, text = typed("arrive", four / "model", data, *words)
        commands = json.loads(text)
        commands.pop("options")
        said.append((code, commands, (tmp_path / "rows.csv").read_bytes()))
    assert said[0] == said[1] == said[2]


@pytest.fixture(scope="module")
def asked(four: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a site's data and the rows to label."""
    folder = tmp_path_factory.mktemp("asked")
    model = Model.open(four / "model")
    site = model.read(written(folder, clinic(20).drop(columns="ill")), labelled=False)
    assert write_rows(model, site, 40, folder / "rows.csv", overwrite=False) == 40
    return folder


def labelled(folder: Path, count: int = 40, *, wrong: bool = False) -> Path:
    frame = pd.read_csv(folder / "rows.csv", dtype={"ill": object})
    truth = clinic(20)["ill"]
    other = {"yes": "no", "no": "yes"}
    given = [other[truth[row]] if wrong else truth[row] for row in frame[ROW]]
    frame["ill"] = [*given[:count], *[None] * (len(frame) - count)]
    return written(folder, frame, f"labelled{count}{wrong}.csv")


def test_rows_to_label_are_written_once_and_in_the_order_of_the_draws(
    four: Path, asked: Path, typed
) -> None:
    frame = pd.read_csv(asked / "rows.csv")
    assert list(frame.columns) == [ROW, "age", "pressure", "marker", "weight", "ill"]
    model = Model.open(four / "model")
    _, rows = drawn(model, model.read(asked / "new.csv", labelled=False))
    assert frame[ROW].tolist() == list(dict.fromkeys(rows.tolist()))[:40]
    assert frame["age"].tolist() == clinic(20)["age"][frame[ROW]].tolist()
    words = ["arrive", four / "model", asked / "new.csv", "--label-budget", 3]
    code, out = typed(*words, "-o", asked / "rows.csv")
    assert code == 2
    assert "exists: it may have labels in it" in out
    assert typed(*words[:-1], 0, "-o", asked / "other.csv")[0] == 2
    assert not (asked / "other.csv").exists()


def test_labels_show_an_accuracy_whenever_one_stops(four: Path, asked: Path, typed) -> None:
    lows = []
    for count in (5, 20, 40):
        words = ["--labels", labelled(asked, count), "--json"]
        code, text = typed("arrive", four / "model", asked / "new.csv", *words)
        found = json.loads(text)
        assert found["labels"]["rows"] == count
        lows.append(found["labels"]["low"])
    assert lows == sorted(lows)
    assert lows[-1] > 0.75
    assert code == EXIT_CODES[Action.DEPLOY]
    words = ["--labels", labelled(asked, wrong=True), "--at-least", 0.8]
    code, out = typed("arrive", four / "model", asked / "new.csv", *words)
    assert code in (EXIT_CODES[Action.NOT], EXIT_CODES[Action.CALIBRATE])
    assert "the labels show an accuracy below the needed 80.0%" in out


@pytest.mark.parametrize("damage", ["column", "class", "row", "twice", "first"])
def test_files_that_are_not_the_rows_with_labels_are_refused(
    four: Path, asked: Path, typed, damage: str
) -> None:
    frame = pd.read_csv(labelled(asked))
    said = {
        "column": (frame.drop(columns=ROW), "has no column"),
        "class": (frame.assign(ill="perhaps"), "perhaps"),
        "row": (frame.assign(**{ROW: frame[ROW] + 100000}), "which is not in the data"),
        "twice": (pd.concat([frame, frame[:1]]), "names a row twice"),
        "first": (frame[1:], "does not label the first row"),
    }[damage]
    data = written(asked, said[0], "damaged.csv")
    code, out = typed("arrive", four / "model", asked / "new.csv", "--labels", data)
    assert code == 2, out
    assert said[1] in out


def test_every_arrival_is_recorded_before_the_site_is_learned(four: Path) -> None:
    model = Model.open(four / "model")
    assert [facts["arrival"].get("known") for facts in model.sites.values()] == [None, 1, 2, 3]
    for arrival in model.knowledge.arrivals:
        assert arrival.rows == 150
        assert arrival.accuracy > 0.7
        assert len(arrival.row_scores) == len(SCORES)
        assert arrival.guess < 0.6
    facts = {"arrival": {"rows": 5.0, "known": 1.0, "accuracy": 0.5, "confidence": 0.8, "atc": 0.7}}
    old = Arrival.recorded(facts | {"classes": {"a": 3, "b": 2}})  # of an older version
    assert (old.looks, old.row_scores, old.guess) == (0.8, (), 0.6)
    assert math.isnan(HERE.accuracy)


@pytest.mark.parametrize("damage", ["falling", "some", "beyond", "unknown"])
def test_a_record_with_impossible_numbers_of_an_arrival_is_refused(four: Path, damage: str) -> None:
    model = Model.open(four / "model")
    facts = model.sites["clinic 2"]["arrival"]
    changes = {
        "falling": {SCORES[0]: 0.99, SCORES[1]: 0.0},
        "beyond": {SCORES[-1]: 1.5},
        "unknown": {"row score 0.123": 0.5},
        "some": {},
    }
    facts |= changes[damage]
    if damage == "some":
        del facts[SCORES[3]]
    names = ("columns", "sides", "moments", "held_out", "reliability", "calibration", "forgotten")
    record = {name: getattr(model, name) for name in (*names, "sites")}
    record["columns"] = model.columns.model_dump(mode="json")
    with pytest.raises(FormError, match="arrival"):
        check_record(record, model.learner)
