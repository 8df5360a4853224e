"""Experiment files: errors name the key, plans need no data, and all run at tiny scale."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file
from sweeping import EXPERIMENTS, FILES, Here, experiment, planned, summary

from farshore.benchmarks import BENCHMARKS
from farshore.errors import FarshoreError
from farshore.results.experiment_table import derived_table
from farshore.runs.engines.carry_out import carry_out, open_runs
from farshore.runs.plan.experiment import Experiment, check, make_book, read_experiment, start_from
from farshore.runs.plan.narrow import narrow, tiny
from farshore.runs.plan.plan import Missing, WaitingMethod, make_plan, select_all
from farshore.runs.plan.select import select_methods
from farshore.runs.store.store import Store

NAMES = [path.stem for path in FILES]
READ = ("main", "naive")
READERS = (
    "backward_transfer",
    "source",
    "runtime",
    "naive_vs_tailored",
    "sensitivity",
    "feature_space",
    "orders",
)


def test_there_is_a_file_for_each_table_and_figure() -> None:
    assert (
        sorted(
            [
                "main",
                "adaptation",
                "naive",
                "backward_transfer",
                "source",
                "runtime",
                "naive_vs_tailored",
                "step_time",
                "no_alignment",
                "dynamic_priors",
                "memory_50",
                "memory_25",
                "other_target",
                "half_steps",
                "sensitivity",
                "feature_space",
                "feature_space_covertype",
                "orders",
                "all_orders",
                "readings",
                "paper_protocol",
                "protocol_ablated",
                "image_benchmarks",
                "fitted_order",
                "orders_ablated",
                "orders_sensitivity",
                "control",
                "auto",
                "dose",
                "referee",
                "searched_order",
                "small",
            ]
        )
        == NAMES
    )
    for path in FILES:
        assert read_experiment(path).name == path.stem


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_planned_where_no_data_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    path = EXPERIMENTS / f"{name}.yaml"
    plan = make_plan(read_experiment(path), Store(tmp_path / "runs"), make_book(path))
    if name == "small":
        # Two trials of every method but one, which has nothing to search.
        methods = select_methods(["all"])
        assert (len(plan.unique()), plan.absent) == ((2 * len(methods) - 1) * 2 * 2, {})
    elif name == "control":  # its embedded data sets
        assert len(plan.unique()) == 11 * 4 * 6 * 3 + 11 * 24 * 3
        assert set(plan.absent) == {"covertype", "rotated-mnist", "wm811k"}
    elif name == "dose":  # er, er-kd and 106 cells, or 53; four units, three seeds
        assert len(plan.unique()) == (2 * 108 + 55) * 4 * 3
        assert set(plan.absent) == {"covertype", "covertype-zones"}
    elif name == "readings":  # er, and cope and fdr twice, on embedded digits
        assert len(plan.unique()) == 5 * 4
        assert set(plan.absent) == {"covertype", "rotated-mnist"}
    elif name == "auto":  # heart-hospitals and two sets of digits are embedded
        assert len(plan.unique()) == 14 * 4 * 2 * 3 - 36 + 2 * 10 * 4 * 3
        assert set(plan.absent) == {
            *("covertype", "covertype-natural", "covertype-zones", "diabetes130", "elec2"),
        }
    else:
        assert not plan.runs
        assert set(plan.absent) <= set(BENCHMARKS.names())
    if name == "main":
        assert sum(absent.runs for absent in plan.absent.values()) == (18 * 6 + 5) * 60


def carry_out_tiny(name: str, runs: Path, least: bool) -> Experiment:
    """An experiment at tiny scale; `least`: few parts and methods, to keep the suite quick."""

    def change(found: Experiment) -> Experiment:
        small = tiny(found)
        if not least:
            return small
        parts = [
            part.model_copy(update={"methods": few(part.systems)}) for part in small.parts[:12]
        ]
        return small.model_copy(update={"parts": parts})

    path = EXPERIMENTS / f"{name}.yaml"
    found, store, book = change(read_experiment(path)), Store(runs), make_book(path, change)
    if found.reads:
        assert len(derived_table(found, store, book))
        return found
    plan = make_plan(found, store, book)
    assert plan.runs
    assert not plan.absent
    assert not plan.waiting
    todo, _ = open_runs(plan, store)
    assert not carry_out(plan, store, Here(), todo=todo).failures
    assert not open_runs(plan, store)[0]
    frame = summary(plan, store)
    assert "note" not in frame
    for planned_run in plan.runs:
        folder = store.folder(planned_run.name)
        assert not folder.stages.exists()
        if planned_run.features:
            assert any(key.startswith("target") for key in load_file(folder.features))
    return found


def few(methods: list[str]) -> list[str]:
    wanted = [
        name for name in ("finetune", "cl-coral", "naive-cl-coral", "tent") if name in methods
    ]
    return wanted[:2] or methods[:1]


# Those with many conditions.
SLOW = ("readings", "orders_ablated", "control", "auto", "dose")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.soak if name in SLOW else ())
        for name in NAMES
        if name not in (*READ, *READERS)
    ],
)
def test_every_file_runs_through_at_tiny_scale(name: str, tmp_path: Path) -> None:
    carry_out_tiny(name, tmp_path, least=True)


def test_experiments_that_read_others_run_through_after_them(tmp_path: Path) -> None:
    with pytest.raises(
        FarshoreError,
        match=r"reads main and naive, which have no finished runs .* sweep them first",
    ):
        carry_out_tiny("source", tmp_path, least=True)
    for name in (*READ, *READERS):
        carry_out_tiny(name, tmp_path, least=True)


@pytest.mark.soak
def test_every_file_runs_through_at_tiny_scale_with_all_its_methods(tmp_path: Path) -> None:
    for name in (*READ, *(name for name in NAMES if name not in READ)):
        carry_out_tiny(name, tmp_path, least=False)


def test_settings_are_varied_around_the_best_selected_run(tmp_path: Path) -> None:
    base = experiment(name="base", part={"methods": ["cl-coral"]})
    store = Store(tmp_path)
    carry_out(plan := planned(base, tmp_path), store, Here(), todo=open_runs(plan, store)[0])
    chosen = select_all(base, store, lambda name: base)["heart-hospitals", "cl-coral", ""]
    part = {
        "benchmarks": ["heart-hospitals"],
        "methods": ["cl-coral", "er"],
        "settings_from": "base",
        "best_seed": True,
        "steps": 2,
    }
    varied = Experiment(
        name="v",
        about="",
        parts=[{**part, "vary": ["penalty_weight"], "values": 3, "methods": ["cl-coral"]}],
    )
    best = chosen.trials[chosen.best_seed("source-validation")].result.run
    runs = [each.run for each in make_plan(varied, store, lambda name: base).runs]
    assert [run.settings["penalty_weight"] for run in runs] == pytest.approx([0.1, 1, 10])
    for run in runs:
        assert run.seed == best.seed
        assert {key: value for key, value in run.settings.items() if key != "penalty_weight"} == {
            key: value for key, value in best.settings.items() if key != "penalty_weight"
        }
    # A method that the other experiment does not include runs with its defaults, for every seed.
    plain = make_plan(Experiment(name="p", about="", parts=[part]), store, lambda name: base)
    assert [each.run.settings for each in plain.runs if each.run.method == "er"] == [{}] * 3


def test_settings_are_varied_around_the_defaults_in_every_order(tmp_path: Path) -> None:
    part = {
        "benchmarks": ["heart-hospitals"],
        "methods": ["cl-coral"],
        "orders": ["listed", "reversed"],
        "search": {"trials": 1, "seeds": 2},
        "vary": ["penalty_weight", "alignment_weight"],
        "values": 3,
    }
    varied = Experiment(name="v", about="", parts=[part])
    plan = make_plan(varied, Store(tmp_path), lambda name: varied)
    settings = [planned.run.settings for planned in plan.runs if planned.seed == 0]
    expected = [
        {name: pytest.approx(value)}
        for name in ("penalty_weight", "alignment_weight")
        for value in (0.1, 1, 10)
        for _ in range(2)
    ]
    assert settings == expected
    assert len(plan.runs) == 2 * len(expected)
    assert {planned.condition.order for planned in plan.runs} == {"listed", "reversed"}


def test_options_reach_the_benchmarks_that_know_them_alone(tmp_path: Path) -> None:
    part = {
        "benchmarks": ["cifar10-c", "wm811k", "heart-hospitals"],
        "methods": ["er"],
        "options": {"severity": 3},
    }
    for by in ("random", "optuna"):
        found = start_from(
            experiment(search={"trials": 1, "seeds": 1, "by": by}, part=part), "mine.pth"
        )
        plan = make_plan(found, Store(tmp_path), make_book(tmp_path), available_only=False)
        assert [each.run.options for each in plan.runs] == [
            {"severity": 3, "weights": "mine.pth"},
            {"weights": "mine.pth"},
            {},
        ]
        assert tiny(found).parts[0].options == {}


def test_unfinished_searches_are_waited_for(tmp_path: Path) -> None:
    base = experiment(name="base")
    later = Experiment(
        name="l",
        about="",
        parts=[
            {
                "benchmarks": ["heart-hospitals"],
                "methods": ["er"],
                "settings_from": "base",
                "orders": ["reversed"],
            }
        ],
    )
    plan = make_plan(later, Store(tmp_path), lambda name: base)
    assert plan.waiting == [WaitingMethod("er", "heart-hospitals", "base", Missing(4, 4))]
    assert (
        plan.waiting[0].sentence == "er on heart-hospitals waits for base: 4 of 4 runs are missing"
    )


def test_a_part_of_an_experiment_has_the_same_runs(tmp_path: Path) -> None:
    whole = experiment(part={"benchmarks": ["heart-hospitals", "rotated-digits"]})
    part = narrow(whole, ["heart-hospitals"], ["er"])
    names = set(planned(part, tmp_path).unique())
    assert len(names) == 4
    assert names < set(planned(whole, tmp_path).unique())
    with pytest.raises(FarshoreError, match="no run with these"):
        narrow(whole, ["covertype"], None)


GOOD = {"name": "x", "about": "y", "parts": [{"benchmarks": ["rotated-digits"], "methods": ["er"]}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"searc": {}}, r"searc: unknown key 'searc': did you mean 'search'"),
        (
            {"beside": [{"experiment": "a", "methods": ["er"], "varian": "x"}]},
            r"beside.0.varian: unknown key 'varian': did you mean 'variant'",
        ),
        ({"search": {"trial": 2}}, r"search.trial: unknown key 'trial': did you mean 'trials'"),
        ({"search": {"trials": 0}}, r"search.trials = 0 is not allowed"),
        (
            {"parts": [{"benchmarks": ["rotated-digits"], "methods": ["err"]}]},
            r"parts.0.methods: unknown method or group 'err'",
        ),
        (
            {"parts": [{"benchmarks": ["cifar10c"], "methods": ["er"]}]},
            r"parts.0.benchmarks: unknown .* mean 'cifar10-c'",
        ),
        ({"parts": [{"benchmarks": ["rotated-digits"]}]}, r"parts.0.methods is missing"),
        (
            {"parts": [{**GOOD["parts"][0], "step": 3}]},
            r"parts.0.step: unknown key 'step': did you mean 'steps'",
        ),
        (
            {"parts": [{**GOOD["parts"][0], "best_seed": True}]},
            r"parts.0.settings_from: best_seed takes",
        ),
        (
            {"parts": [{**GOOD["parts"][0], "vary": ["x"], "search": {"trials": 2}}]},
            r"parts.0.search: vary without settings_from starts from the defaults",
        ),
        ({"parts": []}, r"parts: give either parts"),
        ({"parts": [], "reads": ["main"]}, r"table: an experiment that reads others must name"),
        ({"table": "speed"}, r"table = 'speed' is not allowed"),
        ({"selection": "target"}, r"selection = 'target' is not allowed"),
        ({"about": None}, r"about = None is not allowed"),
        (
            {"parts": [{**GOOD["parts"][0], "options": {"severty": 3}}]},
            r"parts.0.options: unknown option 'severty'",
        ),
        (
            {
                "parts": [
                    {"benchmarks": ["cifar10-c"], "methods": ["er"], "options": {"severity": 9}}
                ]
            },
            r"parts.0.options: cifar10-c: severity = 9 is not allowed",
        ),
        (
            {"parts": [{**GOOD["parts"][0], "network": "mpl"}]},
            r"parts.0.network: unknown network 'mpl': did you mean 'mlp'",
        ),
        (
            {"parts": [{"benchmarks": [{"table": {"label": "x"}}], "methods": ["er"]}]},
            r"parts.0.benchmarks: option 'path' of table is not given",
        ),
        (
            {"parts": [{"benchmarks": ["rotated-digits", "rotated-digits"], "methods": ["er"]}]},
            r"parts.0.benchmarks: 'rotated-digits' is listed twice",
        ),
        (
            {"parts": [{"benchmarks": [3], "methods": ["er"]}]},
            r"parts.0.benchmarks.0 = 3 is not allowed",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_file_and_key(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **change}))
    with pytest.raises(FarshoreError, match=rf"mine.yaml: {message}"):
        read_experiment(path)


def test_a_file_that_is_no_experiment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    with pytest.raises(FarshoreError, match="cannot be read"):
        read_experiment(path)
    path.write_text("a: [")
    with pytest.raises(FarshoreError, match="is not YAML"):
        read_experiment(path)
    path.write_text("- a")
    with pytest.raises(FarshoreError, match="not an experiment"):
        read_experiment(path)


def test_orders_by_name(tmp_path: Path) -> None:
    """The listed order gives the same runs, however it is named.

    At tiny scale domains have other names, and an order by names becomes the reversed one.
    """
    named = "cleveland/hungarian/switzerland"
    listed, by_name, other = (
        planned(experiment(part={"orders": [word]}), tmp_path)
        for word in ("listed", named, "hungarian/cleveland/switzerland")
    )
    assert [run.name for run in by_name.runs] == [run.name for run in listed.runs]
    assert {run.run.order for run in other.runs} == {("hungarian", "cleveland", "switzerland")}
    assert tiny(experiment(part={"orders": [named, "reversed", "listed"]})).parts[0].orders == [
        "reversed",
        "listed",
    ]
    with pytest.raises(FarshoreError, match="unknown domain in order 'paris'"):
        planned(experiment(part={"orders": ["paris/hungarian/switzerland"]}), tmp_path)


def test_every_order_and_orders_drawn_with_the_settings(tmp_path: Path) -> None:
    every = planned(experiment(part={"orders": ["all"], "methods": ["er"]}), tmp_path)
    assert len({entry.run.order for entry in every.runs}) == 6
    part = {"orders": ["drawn"], "methods": ["er", "cl-coral"]}
    search = {"trials": 12, "seeds": 2}
    drawn = planned(experiment(part=part, search=search), tmp_path)
    orders = {(entry.run.method, entry.seed, entry.trial): entry.run.order for entry in drawn.runs}
    assert len(orders) == 48
    assert len(set(orders.values())) > 3
    for (method, seed, trial), order in orders.items():
        assert order == orders["er", seed, trial], method  # paired over methods
    assert {entry.condition.order for entry in drawn.runs} == {"drawn"}
    with pytest.raises(FarshoreError, match="cannot be combined with other orders"):
        check(experiment(part={"orders": ["drawn", "listed"]}))


def own_table(folder: Path) -> Path:
    """A table of three sites with a class that follows one column."""
    path = folder / "mine.csv"
    rows = [
        f"{site},{(number + shift) % 7},{'ill' if number % 2 else 'well'}"
        for shift, site in enumerate(("north", "south", "east"))
        for number in range(20)
    ]
    path.write_text("site,level,state\n" + "\n".join(rows) + "\n")
    return path


def own_entry(folder: Path) -> dict[str, object]:
    """Own data as listed in an experiment."""
    return {"table": {"path": str(own_table(folder)), "domain": "site", "label": "state"}}


def test_own_data_in_an_experiment(tmp_path: Path) -> None:
    """Own data are read, written back, planned, carried out and shown by file name."""
    path = tmp_path / "mine.yaml"
    part = {"benchmarks": [own_entry(tmp_path)], "methods": ["er"], "target": "east"}
    asked = experiment(
        search={"trials": 1, "seeds": 1}, selection="leave-one-source-out", part=part
    )
    path.write_text(yaml.safe_dump(asked.model_dump(mode="json", exclude_defaults=True)))
    found = read_experiment(path)
    assert found == asked
    plan = planned(found, tmp_path / "runs")
    assert {each.condition.benchmark for each in plan.runs} == {"mine.csv"}
    assert [(each.run.target, each.run.left_out, each.run.held_out) for each in plan.runs] == [
        ("east", (), False),
        ("north", ("east",), True),
        ("south", ("east",), True),
    ]
    store = Store(tmp_path / "runs")
    assert not carry_out(plan, store, Here(), todo=open_runs(plan, store)[0]).failures
    frame = summary(plan, store)
    assert frame["benchmark"].tolist() == ["mine.csv"]
    assert frame["target_score_unseen"].notna().all()
    assert [result.title for _, result, _ in store.results()] == ["mine.csv"] * 3


def test_orders_and_narrowing_know_own_data(tmp_path: Path) -> None:
    entry = own_entry(tmp_path)
    part = {"benchmarks": [entry, "rotated-digits"], "methods": ["er"], "target": None}
    found = experiment(search={"trials": 1, "seeds": 1}, part=part)
    only = narrow(found, ["mine.csv"], None)
    assert only.parts[0].benchmarks == [entry]
    ordered = only.model_copy(
        update={
            "parts": [
                only.parts[0].model_copy(
                    update={"target": "east", "orders": ["listed", "reversed"]}
                )
            ]
        }
    )
    runs = planned(ordered, tmp_path / "runs").runs
    assert [each.run.order for each in runs] == [None, ("south", "north")]
    (tmp_path / "mine.csv").unlink()
    gone = planned(ordered, tmp_path / "runs")
    assert not gone.runs
    assert "there is no file or folder" in gone.absent["mine.csv"].why
    assert tiny(found).parts[0].benchmarks == ["heart-hospitals"]
    assert tiny(found).parts[1].benchmarks == ["rotated-digits"]


def test_a_network_of_a_part(tmp_path: Path) -> None:
    part = {"network": "mlp", "network_settings": {"width": "8"}, "methods": ["er"]}
    runs = planned(experiment(part=part), tmp_path).runs
    assert {(each.run.network, each.run.network_settings["width"]) for each in runs} == {("mlp", 8)}


def test_seeds_may_be_given_as_they_are(tmp_path: Path) -> None:
    given = planned(experiment(search={"trials": 2, "seeds": [7, 3]}), tmp_path)
    assert {(each.seed, each.run.seed) for each in given.runs} == {(7, 7), (3, 3)}
    derived_seeds = planned(experiment(search={"trials": 2, "seeds": 2}), tmp_path)
    assert {each.seed for each in derived_seeds.runs} == {0, 1}
    assert all(each.run.seed >= 1_000_000 for each in derived_seeds.runs)
    assert tiny(experiment(search={"seeds": [7, 3]})).search.seeds == [7]


@pytest.mark.parametrize("seeds", [0, [], [1, 1], [-1], ["a"], True, 2.5])
def test_seeds_that_are_neither_a_number_nor_different_seeds_are_refused(
    seeds: object, tmp_path: Path
) -> None:
    part = {"benchmarks": ["heart-hospitals"], "methods": ["er"]}
    file = tmp_path / "mine.yaml"
    file.write_text(
        yaml.safe_dump({"name": "x", "about": "y", "search": {"seeds": seeds}, "parts": [part]})
    )
    with pytest.raises(FarshoreError, match=r"search.seeds = .* or a list of different run seeds"):
        read_experiment(file)


def test_settings_that_a_method_does_not_have_are_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    for settings, message in (
        ({"penalty_weight": 1.0}, "er: unknown setting"),
        ({"batch_size": 0}, "batch_size = 0 is not allowed"),
    ):
        with pytest.raises(FarshoreError, match=message):
            planned(experiment(part={"methods": ["er"], "settings": settings}), tmp_path)
