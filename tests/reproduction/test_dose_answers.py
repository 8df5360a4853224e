"""A second implementation recomputes the answers of docs/reproduction/doses.md and their words.

It shares no code with `reproduction` or `farshore.results`. It is compared on the committed table,
which may be unfinished, and on whole tables that are made up, whose effects are known.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from farshore.results import summary
from reproduction.sections import doses

COMMITTED = Path(__file__).parents[2] / "reproduction" / "tables" / "dose.csv"
STUDENT = {3: 4.302652729911275, 4: 3.182446305284263, 5: 2.7764451051977987}
STUDENT |= {6: 2.5705818366147395, 7: 2.4469118487916806}
NOTIONS = ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd", "cl-andmask"]
DOSES = ["none", "default", "0.1", "0.5", "1", "sum"]
TEMPERATURES = {"none": 1e6, "0.1": 0.3, "0.5": 0.1, "1": 0.03}
PAPERS, CONTROLS, BOTH, NEITHER = (1, 0.0), (0, 0.5), (1, 0.5), (0, 0.0)
WORDS = {PAPERS: "alignment", CONTROLS: "distillation", BOTH: "both", NEITHER: "neither"}
# Column of the unit, units, seeds, corners and doses.
DATA = {
    "coloured-digits": ("last", 4, 3, list(WORDS), DOSES),
    "heart-hospitals": ("target", 4, 3, list(WORDS), DOSES),
    "rotated-digits": ("last", 4, 3, [PAPERS, CONTROLS], DOSES),
    "covertype": ("last", 3, 3, [PAPERS, CONTROLS], ["none", "default", "0.5", "sum"]),
    "covertype-zones": ("target", 7, 1, [PAPERS], ["default", "0.5"]),
}
TARGET, VALIDATION, UNSEEN = "target_score_unseen", "source_validation_score", "unseen_source_score"
PROBES = ["domain_probe", "domain_probe_within_class"]


def in_corner(data: str, notion: str, corner: tuple[int, float]) -> list[str]:
    """The doses that the design has in a corner."""
    unprinted = notion in ("cl-vrex", "cl-mmd") and corner[0] == 0
    return [dose for dose in DATA[data][4] if not (unprinted and dose == "sum")]


def settings_of(notion: str, corner: tuple[int, float], dose: str) -> dict[str, object]:
    """The settings of a cell, as dose.yaml writes them."""
    found: dict[str, object] = {}
    if notion == "cl-andmask":
        if dose in TEMPERATURES:
            found["mask_temperature"] = TEMPERATURES[dose]
        elif dose == "sum":
            found["mask"] = "hard"
    elif dose == "none":
        found["penalty_weight"] = 0.0
    elif dose == "sum":
        found["alignment_reduction"] = "sum"
    elif dose != "default":
        found["penalty_ratio"] = float(dose)
    if corner[0] == 0:
        found["alignment_weight"] = 0.0
    return found | ({"distillation_weight": 0.5} if corner[1] else {})


def planned(data: str) -> Iterator[tuple[str, str, tuple[int, float], str]]:
    """Method, settings, corner and dose of every cell; `er` and `er-kd` first."""
    yield "er", "{}", NEITHER, "none"
    yield "er-kd", "{}", CONTROLS, "none"
    for notion, corner in product(NOTIONS, DATA[data][3]):
        for dose in in_corner(data, notion, corner):
            if corner[0] or dose != "none":
                yield notion, json.dumps(settings_of(notion, corner, dose)), corner, dose


def made(effect: Callable[[str, str, str], float], probe: float = 0.0) -> pd.DataFrame:
    """A whole table: the target's score gains by data set, notion and dose, in points.

    probe: how much the domain probe falls where the score rises.
    """
    draw, rows = np.random.default_rng(0), []
    for data, (unit, units, seeds, _, _) in DATA.items():
        for number, seed in product(range(units), range(seeds)):
            place = {"benchmark": data, "run_seed": seed, "target": "t", "order": f"x,{number}"}
            if unit == "target":
                place |= {"target": str(number), "order": "a,b"}
            base = 0.5 + 0.02 * number + 0.01 * seed
            for method, settings, _, dose in planned(data):
                gain = effect(data, method, dose) / 100
                score = base + gain + draw.normal(0, 0.002)
                rows.append(
                    place
                    | {
                        "method": method,
                        "settings": settings,
                        TARGET: score,
                        VALIDATION: 0.8 + gain + draw.normal(0, 0.0005),
                        UNSEEN: 0.6 + draw.normal(0, 0.01),
                        "follows_colour": 0.3 + draw.normal(0, 0.01),
                        "penalty_dose": draw.random(),
                        "seconds_of_training": draw.random(),
                        "masked_share": draw.random(),
                        "domain_probe": 0.5 - probe * score + draw.normal(0, 0.002),
                        "domain_probe_within_class": draw.random(),
                    }
                )
    return pd.DataFrame(rows)


# The rows of a cell by unit and seed.
Cell = dict[tuple[str, int], dict[str, float]]
ByUnit = dict[str, float]


class Answers:
    """The second implementation, on a table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.cells: dict[tuple[str, str, str], Cell] = {}
        for row in frame.to_dict("records"):
            last = str(row["order"]).split(",")[-1]
            unit = last if DATA[row["benchmark"]][0] == "last" else str(row["target"])
            if not math.isnan(row[TARGET]):
                key = row["benchmark"], row["method"], row["settings"]
                self.cells.setdefault(key, {})[unit, row["run_seed"]] = row
        self.corner = cache(self._corner)

    def cell(self, data: str, notion: str, corner: tuple[int, float], dose: str) -> Cell:
        """The runs of a cell."""
        if dose == "none" and corner[0] == 0:
            return self.cells.get((data, "er-kd" if corner[1] else "er", "{}"), {})
        wanted = settings_of(notion, corner, dose)
        known = [
            cell
            for (where, method, settings), cell in self.cells.items()
            if (where, method) == (data, notion) and same(json.loads(settings), wanted, dose)
        ]
        assert len(known) <= 1
        return known[0] if known else {}

    def _corner(self, data: str, notion: str, corner: tuple[int, float]) -> dict[str, Cell]:
        """Its cells by dose, at the units at which all of them are whole."""
        parts = {d: self.cell(data, notion, corner, d) for d in in_corner(data, notion, corner)}
        seeds = [Counter(unit for unit, _ in part) for part in parts.values()]
        units = {unit for unit in seeds[0] if all(of[unit] == DATA[data][2] for of in seeds)}
        kept = {d: {k: v for k, v in part.items() if k[0] in units} for d, part in parts.items()}
        return kept if units else {}

    def best(self, parts: dict[str, Cell], rule: str) -> tuple[Cell, dict[str, str]]:
        """The runs under the rule, and the chosen dose of each unit."""
        picks = {}
        for unit in sorted({unit for unit, _ in next(iter(parts.values()))}):
            means = {
                dose: statistics.fmean(row[rule] for key, row in part.items() if key[0] == unit)
                for dose, part in parts.items()
            }
            picks[unit] = next(d for d in DOSES if means.get(d) == max(means.values()))
        return {
            key: row
            for dose, part in parts.items()
            for key, row in part.items()
            if picks[key[0]] == dose
        }, picks

    def gain(self, data: str, notion: str, rule: str) -> ByUnit | None:
        """Question 1 by unit."""
        gaps = []
        for corner in DATA[data][3]:
            parts = self.corner(data, notion, corner)
            if "none" not in parts:
                return None
            gaps.append(minus(self.best(parts, rule)[0], parts["none"]))
        return {
            unit: statistics.fmean(gap[unit] for gap in gaps)
            for unit in gaps[0]
            if all(unit in gap for gap in gaps)
        }

    def lead(self, data: str, notion: str, rule: str) -> ByUnit | None:
        """Question 2 by unit."""
        parts = self.corner(data, notion, PAPERS)
        control = self.cell(data, "", CONTROLS, "none")
        return minus(self.best(parts, rule)[0], control) if parts else None

    def correlation(self, data: str, notion: str, column: str) -> ByUnit | None:
        """Question 3 by unit."""
        runs: dict[str, list[dict[str, float]]] = {}
        for corner in DATA[data][3]:
            for part in self.corner(data, notion, corner).values():
                for (unit, _), row in part.items():
                    runs.setdefault(unit, []).append(row)
        found = {}
        for unit, rows in runs.items():
            first, second = ([row[name] for row in rows] for name in (column, TARGET))
            if len(rows) >= 10 and len(set(first)) > 1 and len(set(second)) > 1:
                ranks = [list(rankdata(each)) for each in (first, second)]
                found[unit] = statistics.correlation(*ranks)
        return found or None

    def shortcut(self) -> str:
        """The range of shares of decisions that follow the colour, as the first screen has it."""
        data, shares = "coloured-digits", {}
        for notion, dose in product(NOTIONS, DOSES[1:]):
            runs = self.cell(data, notion, PAPERS, dose).values()
            if len(runs) == 12:
                shares[notion, dose] = 100 * statistics.fmean(row["follows_colour"] for row in runs)
        ends = [pick(shares, key=shares.__getitem__) for pick in (min, max) if shares]
        return " and ".join(f"{shares[end]:.1f}% (`{end[0]}`, dose {end[1]})" for end in ends)

    def responses(self) -> list[list[str]]:
        """The mean over units of every cell that has all of its runs."""
        rows = []
        for data, notion in product(DATA, NOTIONS):
            for corner in DATA[data][3]:
                means = {}
                for dose in in_corner(data, notion, corner):
                    cell = self.cell(data, notion, corner, dose)
                    if len(cell) == DATA[data][1] * DATA[data][2]:
                        means[dose] = 100 * statistics.fmean(row[TARGET] for row in cell.values())
                if set(means) - {"none"}:
                    shown = [f"{means[dose]:.1f}" if dose in means else "-" for dose in DOSES]
                    rows.append([data, notion, WORDS[corner], *shown])
        return rows

    def tally(self, found: list[ByUnit | None]) -> tuple[int, int, int]:
        """With an interval, above zero, below zero."""
        ends = [interval(each) for each in found if each is not None and len(each) >= 3]
        above, below = (sum(low > 0 for _, low, _ in ends), sum(high < 0 for _, _, high in ends))
        return len(ends), above, below

    def verdict(self) -> str:
        """The answer in a few words."""
        counts = [
            {
                notion: self.tally([measure(data, notion, VALIDATION) for data in DATA])
                for notion in NOTIONS
            }
            for measure in (self.gain, self.lead)
        ]
        good = [{n for n, (_, up, down) in of.items() if up >= 2 and down == 0} for of in counts]
        if good[0]:
            return "also beyond" if good[0] & good[1] else "but not certainly beyond"
        sums = [[sum(column) for column in zip(*of.values(), strict=True)] for of in counts]
        more = any(up > down for _, up, down in sums)
        return "worse on none." if more else "not more frequent than certain losses."


def minus(first: Cell, second: Cell) -> ByUnit:
    """The mean over seeds of the paired differences in points, by unit."""
    gaps: dict[str, list[float]] = {}
    for key, row in first.items():
        if key in second:
            gaps.setdefault(key[0], []).append(100 * (row[TARGET] - second[key][TARGET]))
    return {unit: statistics.fmean(values) for unit, values in gaps.items()}


def same(settings: dict[str, object], wanted: dict[str, object], dose: str) -> bool:
    """Whether a run belongs to a cell: `sum` adds reductions, balanced doses drop annealing."""
    if dose == "sum":
        printed = any(name in settings for name in ("mask", "statistic_reduction"))
        printed |= any(name.endswith("_reduction") for name in settings)
        kept = ("alignment_weight", "distillation_weight")
        return printed and all(settings.get(name) == wanted.get(name) for name in kept)
    return {name: value for name, value in settings.items() if name != "anneal_steps"} == wanted


def interval(by_unit: ByUnit) -> tuple[float, float, float]:
    values = list(by_unit.values())
    mean = statistics.fmean(values)
    half = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def words(by_unit: ByUnit | None, data: str) -> str:
    """A difference as the page prints it."""
    if not by_unit:
        return "-"
    kind = "last source" if DATA[data][0] == "last" else "target"
    n = f"{len(by_unit)} {kind}{'' if len(by_unit) == 1 else 's'}"
    if len(by_unit) < 3:
        return f"{statistics.fmean(by_unit.values()):+.1f}, {n}"
    mean, low, high = interval(by_unit)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}], {n}"


def lines(section: str) -> list[list[str]]:
    """The rows of a table, without its header."""
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return [[cell.strip("`") for cell in row] for row in rows[2:]]


def wrong(frame: pd.DataFrame) -> list[str]:
    """What the page says about a table that this file does not."""
    answers, found = Answers(frame), []
    expected, corners, spearman = [], [], []
    for data, notion in product(DATA, NOTIONS):
        cells = [
            words(measure(data, notion, rule), data)
            for measure in (answers.gain, answers.lead)
            for rule in (VALIDATION, UNSEEN)
        ]
        if set(cells) != {"-"}:
            expected.append([data, notion, *cells])
        for corner in DATA[data][3]:
            if parts := answers.corner(data, notion, corner):
                best, picks = answers.best(parts, VALIDATION)
                gap = words(minus(best, parts["none"]) if "none" in parts else None, data)
                counts = Counter(picks.values())
                kinds = [d if len(counts) == 1 else f"{d} ({counts[d]})" for d in DOSES]
                kinds = [word for word in kinds if word.partition(" ")[0] in counts]
                corners.append([data, notion, WORDS[corner], ", ".join(kinds), gap])
        rhos = [answers.correlation(data, notion, column) for column in PROBES]
        if rhos[0] is not None:
            shown = [f"{statistics.fmean(each.values()):+.2f}" for each in rhos if each is not None]
            spearman.append([data, notion, *shown])
    if lines(doses.response_section()) != answers.responses():
        found.append("responses")
    if lines(doses.questions_section()) != expected:
        found.append("questions")
    if [row[:5] for row in lines(doses.corners_section())] != corners:
        found.append("corners")
    shown = [
        [*row[:2], *(cell.split(" ")[0] for cell in row[3:])]
        for row in lines(doses.correlations_section())
    ]
    if shown != spearman:
        found.append("correlations")
    if answers.shortcut() not in doses.answer_section():
        found.append("colour")
    measured = any(not row[0].startswith("Not") for row in expected)
    if measured and "[" in str(expected) and answers.verdict() not in doses.answer_section():
        found.append("verdict")
    return found


def shown(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame) -> None:
    """Let the page read this table."""
    monkeypatch.setattr(doses, "table", lambda _: frame)
    forget()


def forget() -> None:
    """Everything that the page has computed from another table."""
    for each in (doses.cells, doses.doses_of, doses.gain, doses.ahead, doses.correlation):
        each.cache_clear()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.mark.skipif(not COMMITTED.is_file(), reason="no run of the study is collected")
def test_every_answer_follows_from_the_committed_table() -> None:
    frame = pd.read_csv(COMMITTED, dtype={"order": str, "target": str})
    assert not wrong(frame)
    finished, planned_runs = doses.progress()
    assert (finished, planned_runs) == (len(frame), 3651)


def dear(data: str, method: str, dose: str) -> float:
    """More of a penalty is worse."""
    return 0.0 if method.startswith("er") else -0.5 - DOSES.index(dose)


def dull(data: str, method: str, dose: str) -> float:
    """No dose makes a difference."""
    return 0.0


def good(data: str, method: str, dose: str) -> float:
    """More of cl-coral is better, up to a ratio of 0.5."""
    return 5.0 * (method == "cl-coral" and dose == "0.5")


@pytest.mark.parametrize(
    ("effect", "probe", "said"),
    [
        (good, 0.5, ["Yes, for `cl-coral`, also beyond `er-kd`.", "This supports it"]),
        (dull, -0.5, ["Not shown", "This does not support it"]),
        (dear, 0.0, ["Not shown: certain gains are not more frequent than certain losses."]),
    ],
)
def test_the_words_follow_the_numbers_whichever_way_they_come_out(
    effect: Callable[[str, str, str], float],
    probe: float,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = made(effect, probe)
    shown(monkeypatch, frame)
    assert not wrong(frame)
    answer = doses.answer_section()
    assert all(each in answer for each in said), answer
    assert "so far" not in answer
    assert doses.progress_section().startswith("All 3,651 runs have finished.")
    by_default = {tuple(row[:2]): row[-1] for row in lines(doses.defaults_section())}
    assert by_default[("cl-coral", "0.5")] == ("yes" if effect is good else "no")
    assert set(by_default.values()) <= {"yes", "no"}


def test_without_all_runs_the_page_says_so_and_counts_whole_units_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = made(good)
    later = (frame["benchmark"] == "coloured-digits") & (frame["order"] == "x,3")
    some = frame[~(later & (frame["method"] == "cl-coral") & (frame["run_seed"] == 2))]
    some = some[some["benchmark"].isin(["coloured-digits", "heart-hospitals"])]
    fewer = some[(some["benchmark"] != "heart-hospitals") | some["target"].isin(["0", "1"])]
    for part in (some, fewer):
        shown(monkeypatch, part)
        assert not wrong(part)
    rows = {tuple(row[:2]): row[2] for row in lines(doses.questions_section())}
    assert rows[("coloured-digits", "cl-coral")].endswith("], 3 last sources")
    assert rows[("coloured-digits", "cl-mmd")].endswith("], 4 last sources")
    assert "[" not in rows[("heart-hospitals", "cl-mmd")]
    assert f"{len(fewer):,} of 3,651 runs so far" in doses.answer_section()
    shown(monkeypatch, some.iloc[:0])
    assert "no comparison has three units yet" in doses.answer_section()


def test_an_error_in_the_arithmetic_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made(good, 0.5)
    shown(monkeypatch, frame)
    true = summary.by_unit

    def without_one(scores: summary.Scores, unit: summary.Unit) -> dict[str, float]:
        return dict(list(true(scores, unit).items())[1:])

    monkeypatch.setattr(summary, "by_unit", without_one)
    forget()
    assert set(wrong(frame)) >= {"questions", "corners", "correlations", "responses"}


def test_ties_go_to_the_smaller_dose_and_the_target_does_not_choose() -> None:
    places = [("", "t", last, f"x {last}", 0) for last in "abc"]
    level = dict.fromkeys(places, 50.0)
    tied = {
        dose: {doses.VALIDATION: level, doses.SCORE: dict.fromkeys(places, score)}
        for dose, score in (("none", 1.0), ("0.1", 99.0), ("1", 50.0))
    }
    assert set(doses.chosen_doses(tied, "covertype", doses.VALIDATION).values()) == {"none"}
    assert set(doses.chosen(tied, "covertype", doses.VALIDATION).values()) == {1.0}
