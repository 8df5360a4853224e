"""`farshore join` and templates: several folders become one, and every difference is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from clinics import COLUMNS, INPUTS, clinic, contents, written

from farshore.base.manifest import MANIFEST
from farshore.base.state import load_parts
from farshore.deployment.changes import calibrate, forget, learn, take_back
from farshore.deployment.join import join
from farshore.deployment.model import Model, checksum
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns
from farshore.deployment.template import make_template, what_it_tells
from farshore.errors import FarshoreError
from farshore.learner.loading import load
from farshore.testing import differences

METHODS = {"ridge": {"random_features": 30}, "slda": {}, "ncm": {}}
PLACES = {"a": (0, 1), "b": (2, 3), "c": (4,)}


def site(folder: Path, number: int) -> Path:
    rows = clinic(number, 200).assign(smoker=["yes", "no", "no", "yes"] * 50)
    return written(folder, rows, f"clinic{number}.csv")


def template(folder: Path, method: str = "ridge", name: str = "template", **new: Any) -> Path:
    settings = {**METHODS.get(method, {}), **new.pop("settings", {})}
    of_new = NewModel(method=method, settings=settings, **new)
    make_template(folder / name, site(folder, 0), columns=COLUMNS, new=of_new)
    return folder / name


def place(folder: Path, agreed: Path, name: str, numbers: tuple[int, ...], **more: Any) -> Path:
    for number in numbers:
        learn(
            folder / name,
            site(folder, number),
            name=f"clinic {number}",
            columns=more.get("columns", Columns()),
            new=NewModel(template=agreed),
            validation=more.get("validation", 0.2),
        )
    return folder / name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each method a folder with a template, the models of three places, and of all at one."""
    folder = tmp_path_factory.mktemp("places")
    for method in METHODS:
        inside = folder / method
        inside.mkdir()
        agreed = template(inside, method)
        for name, numbers in PLACES.items():
            place(inside, agreed, name, numbers)
        place(inside, agreed, "all", tuple(range(5)))
    return folder


@pytest.fixture
def work(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "ridge", tmp_path / "work")
    return tmp_path / "work"


def learned_state(model: Path) -> dict[str, Any]:
    """What the model is, without the order in which its sites came."""
    state = load(model).state_dict()
    system = state["system"]
    system["sums"] = dict(sorted(zip(system.pop("domains"), system["sums"], strict=True)))
    system["origins"] = dict(sorted(system["origins"].items()))
    state["domains"] = sorted(state["domains"], key=lambda domain: domain["name"])
    return state


@pytest.mark.parametrize("method", METHODS)
def test_joined_is_learned_in_one_place_in_any_order(
    made: Path, method: str, tmp_path: Path
) -> None:
    folder = made / method
    expected, rows = learned_state(folder / "all"), clinic(9)[INPUTS].assign(smoker="no")
    pooled = load(folder / "all").predict_proba(rows)
    for number, names in enumerate(permutations(PLACES)):
        done = join([folder / name for name in names], tmp_path / str(number))
        assert differences(expected, learned_state(tmp_path / str(number))) == []
        assert abs(done.model.learner.predict_proba(rows) - pooled).max() <= 1e-9
        assert done.model.order == [f"clinic {n}" for name in names for n in PLACES[name]]


def test_what_later_commands_need_is_there(work: Path, typed: Callable[..., Any]) -> None:
    out = work / "joined"
    code, printed = typed("join", work / "a", work / "b", work / "c", "-o", out)
    assert code == 0, printed
    assert "joined into" in printed
    assert "5 sites, method ridge" in printed
    model = Model.open(out)
    places = [Model.open(work / name) for name in PLACES]
    for kept in ("sites", "moments", "reliability"):
        merged = {site: facts for each in places for site, facts in getattr(each, kept).items()}
        assert differences(merged, getattr(model, kept)) == []
    actions = [(entry.action, entry.site) for entry in model.log]
    assert actions[0] == ("made a template", None)
    assert sorted(actions[1:-1]) == [("learned", f"clinic {number}") for number in range(5)]
    assert model.log[-1].action == "joined"
    assert model.log[-1].rows == 1000
    assert "3 folders with 2, 2, 1 sites" in model.log[-1].note
    new = written(work, clinic(9).assign(smoker="no").drop(columns="ill"))
    for words in (
        ["predict", out, new, "-o", work / "p.csv"],
        ["show", out],
        ["show", out, "--log"],
        ["card", out],
        ["learn", out, site(work, 5), "--name", "clinic 5"],
        ["undo", out],
    ):
        code, printed = typed(*words)
        assert code == 0, (words, printed)
    assert load(out).domains == model.learner.domains
    with pytest.raises(FarshoreError, match="keeps no previous version"):
        take_back(out)


def test_an_estimate_uses_the_sites_that_every_place_measured_before_it_learned_them(
    work: Path, typed: Callable[..., Any]
) -> None:
    agreed = work / "template"
    for name, numbers in (("d", (5, 6, 7)), ("e", (8, 9, 10))):
        place(work, agreed, name, numbers)
    join([work / "d", work / "e"], work / "joined")
    model = Model.open(work / "joined")
    assert [arrival.known for arrival in model.knowledge.arrivals] == [1, 2, 1, 2]
    _, printed = typed("arrive", work / "joined", site(work, 11))
    assert "(model-based, 4 measured sites)" in printed


def test_forget_is_the_exact_inverse_and_nothing_is_left(work: Path, tmp_path: Path) -> None:
    out = tmp_path / "joined"
    join([work / name for name in PLACES], out)
    theirs = load_parts(work / "c", kind="learner")
    sums = theirs["learner"]["system"]["sums"][0]
    secret = [tensor.numpy().tobytes() for tensor in (sums["products"], sums["by_class"])]
    secret += [
        tensor.numpy().tobytes() for tensor in theirs["sites"]["moments"]["clinic 4"].values()
    ]
    secret += [b"clinic 4", theirs["sites"]["sites"]["clinic 4"]["command"].encode()]
    before = b"".join(contents(out).values())
    assert all(each in before for each in secret)
    forget(out, "clinic 4")
    join([work / "a", work / "b"], tmp_path / "never")
    assert differences(learned_state(tmp_path / "never"), learned_state(out)) == []
    after = b"".join(contents(out).values())
    assert not any(each in after for each in secret)
    assert checksum("clinic 4").encode() in after


# ---- refusals ------------------------------------------------------------------------------------


def other_template(**new: Any) -> Callable[[Path], Path]:
    def change(work: Path) -> Path:
        return place(work, template(work, name="other", **new), "d", (5,))

    return change


def other_first_site(work: Path) -> Path:
    new = NewModel(method="ridge", settings=METHODS["ridge"])
    learn(work / "d", site(work, 5), name="clinic 5", columns=COLUMNS, new=new)
    return work / "d"


def other_columns(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], Path]:
    def changed(work: Path) -> Path:
        data = written(work, change(pd.read_csv(site(work, 5))), "other.csv")
        new = NewModel(method="ridge", settings=METHODS["ridge"])
        make_template(work / "other", data, columns=COLUMNS, new=new)
        learn(
            work / "d",
            data,
            name="clinic 5",
            columns=COLUMNS,
            new=NewModel(template=work / "other"),
        )
        return work / "d"

    return changed


def from_place(change: Callable[[Path], object]) -> Callable[[Path], Path]:
    def changed(work: Path) -> Path:
        made = place(work, work / "template", "d", (5,))
        change(made)
        return made

    return changed


def renamed_probe(model: Path) -> None:
    opened = Model.open(model)
    opened.learner.system.origins["clinic 5"]["probe"][0, 0] += 1
    opened.save()


def grouped(side: str) -> Callable[[Path], Path]:
    def change(work: Path) -> Path:
        for name in ("a", "d"):
            if name == "d":
                place(work, work / "template", "d", (5,))
            opened = Model.open(work / name)
            opened.sides = {checksum("patient"): side == "same" or name == "a"}
            opened.save()
        return work / "d"

    return change


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "first site": (other_first_site, "the column 'age' is scaled by another first site: centre"),
    "method": (other_template(method="slda"), "the method is slda there, ridge here"),
    "width": (
        other_template(settings={"random_features": 31}),
        "the setting random_features is 31 there, 30 here",
    ),
    "setting": (
        other_template(settings={"class_weight": "balanced"}),
        "the setting class_weight is balanced there, none here",
    ),
    "seed": (other_template(seed=1), "the seed is 1 there, 0 here"),
    "classes": (
        other_template(classes=["no", "yes", "maybe"]),
        "the classes are no, yes, maybe there, no, yes here",
    ),
    "metric": (other_template(metric="macro_f1"), "the metric is macro_f1 there, accuracy here"),
    "a column less": (
        other_columns(lambda rows: rows.drop(columns="weight")),
        "the column 'weight' is only here",
    ),
    "a column more": (
        other_columns(lambda rows: rows.assign(height=rows["age"])),
        "the column 'height' is only there",
    ),
    "type": (
        other_columns(lambda rows: rows.assign(weight="kg")),
        "the column 'weight' has numbers here, and something else there",
    ),
    "library": (from_place(renamed_probe), "the features of 'clinic 5' were computed in another"),
    "groups": (grouped("other"), "1 groups (--group) have rows in"),
    "the same data": (
        lambda work: Path(
            learn(
                work / "d",
                site(work, 0),
                name="the first clinic",
                columns=Columns(),
                new=NewModel(template=work / "template"),
            ).name
            and work / "d"
        ),
        "were learned from the same data, which would count twice",
    ),
    "the same site": (
        lambda work: shutil.copytree(work / "a", work / "d"),
        "'clinic 0' is in",
    ),
    "no site": (lambda work: work / "template", "has not learned a site yet"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_every_difference_is_refused_by_name(what: str, work: Path, typed: Any) -> None:
    change, words = REFUSED[what]
    other = change(work)
    before = {name: contents(work / name) for name in ("a", other.name)}
    code, printed = typed("join", work / "a", other, "-o", work / "joined")
    assert code == 2, printed
    assert words in printed
    assert printed.count("\n") == 1
    assert not (work / "joined").exists()
    assert {name: contents(work / name) for name in ("a", other.name)} == before


def test_groups_on_the_same_side_are_joined(work: Path) -> None:
    join([work / "a", grouped("same")(work)], work / "joined")
    assert Model.open(work / "joined").sides == {checksum("patient"): True}


def test_a_forgotten_site_does_not_come_back_by_joining(work: Path, typed: Any) -> None:
    place(work, work / "template", "d", (0, 5))
    forget(work / "a", "clinic 0")
    code, printed = typed("join", work / "a", work / "d", "-o", work / "joined")
    assert code == 2
    assert "'clinic 0' was forgotten in" in printed
    forget(work / "d", "clinic 0")
    assert typed("join", work / "a", work / "d", "-o", work / "joined")[0] == 0
    assert Model.open(work / "joined").forgotten == [checksum("clinic 0")]


def test_a_calibration_is_dropped_with_a_note(work: Path, typed: Any) -> None:
    rows = clinic(9).assign(smoker="no")
    rows.loc[::3, "ill"] = rows.loc[::3, "ill"].map({"yes": "no", "no": "yes"})
    calibrate(work / "a", written(work, rows))
    assert Model.open(work / "a").calibration is not None
    code, printed = typed("join", work / "a", work / "b", "-o", work / "joined")
    assert code == 0
    assert "the calibration is dropped" in printed
    assert Model.open(work / "joined").calibration is None


def test_small_sites_are_joined_only_if_that_is_said(work: Path, typed: Any) -> None:
    agreed = template(work, name="wide", settings={"random_features": 200})
    place(work, agreed, "d", (5,))
    place(work, agreed, "e", (6,))
    words = ["join", work / "d", work / "e", "-o", work / "joined"]
    code, printed = typed(*words)
    assert code == 2
    assert "its sums are over 160 training rows, fewer than their 200 features" in printed
    assert not (work / "joined").exists()
    code, printed = typed(*words, "--allow-small")
    assert code == 0, printed
    assert "nearly are these rows" in printed


def test_folders_that_cannot_be_meant_are_refused(work: Path, typed: Any) -> None:
    (work / "other").mkdir()
    (work / "other" / "letter.txt").write_text("mine")
    for words, reason in (
        (["join", work / "a", "-o", work / "x"], "name at least two folders"),
        (["join", work / "a", work / "b" / ".." / "a", "-o", work / "x"], "is named twice"),
        (["join", work / "a", work / "b", "-o", work / "a"], "is one of the folders to join"),
        (["join", work / "a", work / "b", "-o", work / "c"], "exists and is another model"),
        (["join", work / "a", work / "b", "-o", work / "other"], "exists and is not a model"),
        (["join", work / "a", work / "other", "-o", work / "x"], "contains no saved learner"),
    ):
        code, printed = typed(*words)
        assert code == 2, printed
        assert reason in printed
    assert not (work / "x").exists()
    assert (work / "other" / "letter.txt").read_text() == "mine"


def test_the_same_command_again_changes_nothing(work: Path, typed: Any) -> None:
    words = ["join", work / "a", work / "b", "-o", work / "joined"]
    assert typed(*words)[0] == 0
    before = contents(work / "joined")
    assert typed(*words)[0] == 0
    assert {**contents(work / "joined"), ".lock": b""} == {**before, ".lock": b""}


def test_a_damaged_folder_is_refused_before_anything_is_written(work: Path, typed: Any) -> None:
    for damaged in (work / "b").glob("tensors-learner-*"):
        damaged.write_bytes(damaged.read_bytes()[:-8] + b"damaged!")
    code, printed = typed("join", work / "a", work / "b", "-o", work / "joined")
    assert code == 2
    assert "is damaged: its checksum" in printed
    assert not (work / "joined").exists()


# ---- templates -----------------------------------------------------------------------------------


def test_a_template_has_no_row_and_says_what_it_has(tmp_path: Path, typed: Any) -> None:
    rows = clinic(0, 200).assign(smoker="no")
    rows.loc[:2, "smoker"] = "a rare word"
    rows.loc[5:60, "smoker"] = "yes"
    data = written(tmp_path, rows)
    words = ["learn", tmp_path / "t", data, "--label", "ill", "--method", "ncm", "--template-only"]
    code, printed = typed(*words)
    assert code == 0, printed
    assert "- the number of rows, 200" in printed
    assert "- the median and standard deviation of age, pressure, marker, weight" in printed
    assert "at least 5 rows have: no, yes" in printed
    assert "column 'smoker': categories with fewer than 5 rows are not in the template" in printed
    stored = b"".join(contents(tmp_path / "t").values())
    assert b"a rare word" not in stored
    opened = Model.open(tmp_path / "t")
    assert (opened.order, opened.sites, opened.moments, opened.reliability) == ([], {}, {}, {})
    system = opened.learner.system.state_dict()
    assert system["sums"] == []
    assert not system["head"]["weight"].any()
    # Every number of the folder is a scale, the head of zeros, or a size.
    scales = opened.learner.preprocessing.numbers
    for column, (centre, scale) in scales.items():
        assert centre == pytest.approx(rows[column].median())
        assert scale == pytest.approx(rows[column].std(ddof=0))
    inputs = opened.learner.preprocessing.transform(rows.drop(columns="ill"))
    assert not any(row.numpy().tobytes() in stored for row in inputs)
    for words in (["predict", tmp_path / "t", data], ["export", tmp_path / "t", "x.pt2"]):
        code, printed = typed(*words)
        assert code == 2
        assert "has not learned a" in printed
    assert typed("show", tmp_path / "t")[0] == 0
    assert "the classes no, yes" in what_it_tells(opened)


def test_all_places_have_the_scales_of_the_template(made: Path) -> None:
    of_template = load(made / "ridge" / "template").preprocessing.state_dict()
    for name in PLACES:
        assert load(made / "ridge" / name).preprocessing.state_dict() == of_template


def test_options_against_a_template_are_refused(work: Path, typed: Any) -> None:
    data = site(work, 7)
    learned = ["learn", work / "d", data, "--name", "clinic 7"]
    for words, reason in (
        ([*learned, "--template", work / "template", "--method", "slda"], "was created with ridge"),
        ([*learned, "--template", work / "a"], "is not a template: it has learned clinic 0"),
        (
            [*learned, "--template", work / "nothing"],
            "nothing does not exist",
        ),
        ([*learned, "--label", "ill", "--template-only"], "--name is not allowed with"),
        (["learn", work / "a", data, "--label", "ill", "--template-only"], "exists: a template is"),
        (["learn", work / "d", data, "--label", "ill", "--name", " "], "--name is empty"),
        (
            ["learn", work / "d", data, "--label", "ill", "--method", "er", "--template-only"],
            "choose ridge, slda or ncm when you make the template",
        ),
    ):
        code, printed = typed(*words)
        assert code == 2, printed
        assert reason in printed
        assert not (work / "d" / MANIFEST).exists()
    other = template(work, name="other", seed=3)
    code, printed = typed("learn", work / "a", data, "--name", "clinic 7", "--template", other)
    assert code == 2
    assert "did not begin with" in printed


def test_a_column_without_a_value_is_no_part_of_a_template(tmp_path: Path) -> None:
    data = written(tmp_path, clinic(0).assign(blood=float("nan")))
    new = NewModel(method="ncm")
    with pytest.raises(FarshoreError, match=r"'blood' has no value .* \(--drop blood\)"):
        make_template(tmp_path / "t", data, columns=COLUMNS, new=new)
    assert not (tmp_path / "t").exists()


def test_a_first_site_that_is_refused_leaves_no_folder(work: Path) -> None:
    rows = clinic(5, 200).assign(smoker="no")
    data = written(work, rows.assign(ill=["yes", "no"] * 100))
    with pytest.raises(FarshoreError, match="was not kept"):
        learn(
            work / "d",
            data,
            name="clinic 5",
            columns=Columns(),
            new=NewModel(template=work / "template"),
            min_score=1.0,
        )
    assert not (work / "d" / MANIFEST).exists()


def test_a_template_is_plain_values_and_known_tensors(made: Path) -> None:
    parts = load_parts(made / "ridge" / "template", kind="learner")
    projection = parts["learner"]["system"]["projection"]
    drawn = load(made / "ridge" / "a").system.state_dict()["projection"]
    assert torch.equal(projection, drawn)
    assert json.dumps(parts["sites"])  # no tensor at all
