"""A second implementation recomputes every claim and verdict of docs/reproduction.md.

It reads the committed tables itself and shares no code with `reproduction` or `farshore.results`.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import yaml
from scipy.stats import rankdata

from farshore.results import summary
from reproduction.sections.claims import verdicts_section
from reproduction.sections.paper_tables import PAPER_TABLES, tables_section

REPRODUCTION = Path(__file__).parents[2] / "reproduction"
DATA = ("rotated-mnist", "covertype")
# Student's t for 95%, by the number of units.
STUDENT = {3: 4.302652729911275, 4: 3.182446305284263}
OURS = ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd", "cl-andmask"]
PENALISED = OURS[:4]
RIVALS = ["agem", "er-ace", "si"]
NAIVE = [f"naive-{name}" for name in OURS]
OPTIMISATION, REGULARISATION = ["agem", "upgd"], ["ewc", "si", "snr"]
REPLAY = ["fdr", "er-ace", "lode", "star", "cope", "efc", "sarl"]
ADAPTATION = ["tent", "shot++", "cotta"]
TARGET, SOURCES = "target_score_unseen", "source_train_score"
# Mean, ends of the interval, number of units.
Found = tuple[float, float, float, int]
Judged = tuple[str, bool, bool]


@cache
def table(name: str) -> pd.DataFrame:
    frame = pd.read_csv(REPRODUCTION / "tables" / f"{name}.csv", dtype={"order": str})
    return frame.assign(last=frame["order"].str.rsplit(",", n=1).str[-1])


@cache
def printed(experiment: str) -> pd.DataFrame:
    frame = pd.read_csv(REPRODUCTION / "paper" / "published.csv", keep_default_na=False)
    frame = frame[(frame["experiment"] == experiment) & (frame["variant"] == "")]
    names = ["average", "rank mean", "rank geometric mean", "rank median"]
    frame = frame[~frame["column"].isin(names)]
    return frame.assign(mean=frame["mean"].astype(float))


def lead(experiment: str, others: list[str], ours: list[str] | None = None) -> float:
    leads = []
    for _, part in printed(experiment).groupby("column"):
        by_method = part.set_index("method")["mean"]
        groups = [by_method[by_method.index.isin(names)].mean() for names in (ours or OURS, others)]
        leads.append(groups[0] - groups[1])
    return statistics.fmean(leads)


def wide(frame: pd.DataFrame, column: str = TARGET) -> pd.DataFrame:
    """One row per last source, order and seed, one column per method that ran after three."""
    frame = frame[frame[column].notna()]
    lasts = frame.groupby("method")["last"].nunique()
    frame = frame[frame["method"].map(lasts) >= 3]
    return 100 * frame.pivot(index=["last", "order", "run_seed"], columns="method", values=column)


def group(scores: pd.DataFrame, names: list[str]) -> pd.Series:
    return scores[[name for name in names if name in scores]].dropna().mean(axis=1)


def interval(values: pd.Series) -> Found:
    """Seeds count in their order, orders in their last source, and each last source counts once."""
    by_last = values.groupby(level=["last", "order"]).mean().groupby(level="last").mean()
    units = [float(value) for value in by_last]
    half = STUDENT[len(units)] * statistics.stdev(units) / math.sqrt(len(units))
    mean = statistics.fmean(units)
    return mean, mean - half, mean + half, len(units)


def words(found: Found) -> str:
    mean, low, high, units = found
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}], {units} last sources"


def compare(
    scores: pd.DataFrame, first: list[str], second: list[str], expected: float, weakest: bool
) -> Judged:
    found = interval((group(scores, first) - group(scores, second)).dropna())
    strongly = found[0] >= expected / 2
    if weakest:
        names = second if len(second) > 1 else first
        means = {
            name: interval(scores[name].dropna())[0] for name in names if name in scores.columns
        }
        left_out = min(means, key=lambda name: means[name])
        ours, theirs = ([name for name in names if name != left_out] for names in (first, second))
        rest = (group(scores, ours) - group(scores, theirs)).dropna()
        strongly = strongly and interval(rest)[1] > 0
    return words(found), found[1] > 0, strongly


@cache
def default(data: str, column: str = TARGET) -> pd.DataFrame:
    frame = table("all_orders")
    return wide(frame[frame["benchmark"] == data], column)


def groups(first: list[str], second: list[str], expected: float, column: str = TARGET) -> Callable:
    return lambda data: compare(default(data, column), first, second, expected, weakest=True)


def changed(data: str, **values: object) -> pd.DataFrame:
    frame = table("orders_ablated")
    frame = frame[frame["benchmark"] == data]
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return wide(frame)


def without(settings: dict[str, object], names: list[str]) -> Callable:
    def judge(data: str) -> Judged:
        part = changed(data, settings=json.dumps(settings))
        found = interval((group(default(data), names) - group(part, names)).dropna())
        return words(found), found[1] > 0, found[0] >= 0

    return judge


def under(change: dict[str, dict[str, object]], experiment: str, second: list[str]) -> Callable:
    return lambda data: compare(
        changed(data, **change[data]), OURS, second, lead(experiment, second), weakest=False
    )


def ranking(data: str) -> Judged:
    paper = printed("main")
    theirs = paper[paper["column"] == data].set_index("method")["mean"]
    scores = default(data)
    names = [name for name in scores if name in theirs.index and name != "urm"]
    ours = rankdata([interval(scores[name].dropna())[0] for name in names])
    rho = statistics.correlation(list(ours), list(rankdata(theirs[names])))
    t = rho * math.sqrt((len(names) - 2) / (1 - rho**2))
    bound = {17: 2.131450, 18: 2.119905}[len(names)]  # Student's t for 95%, two less
    return f"ρ = {rho:+.2f}", t > bound, rho >= 0.5


def places(data: str) -> Judged:
    paper = printed("main")
    theirs = set(paper.loc[paper["column"] == data, "method"]) - {"urm"}
    scores = default(data)
    means = {name: interval(scores[name].dropna())[0] for name in scores if name in theirs}
    count = len(set(sorted(means, key=means.__getitem__)[-3:]) & set(OURS))
    return f"{count} of 3, {len(means)} methods", count == 3, True


def transfer(data: str) -> Judged:
    found = interval(group(default(data, "backward_transfer"), OURS))
    return words(found), found[2] >= 0, True


def paper_time() -> float:
    logs = []
    for _, part in printed("runtime").groupby("column"):
        minutes = part.set_index("method")["mean"]
        names = [*OPTIMISATION, *REGULARISATION, *REPLAY]
        ours, theirs = (minutes[minutes.index.isin(each)].median() for each in (OURS, names))
        logs.append(math.log(ours / theirs))
    return math.exp(statistics.fmean(logs))


def times(data: str) -> Judged:
    seconds = default(data, "seconds_of_training")
    names = [*OPTIMISATION, *REGULARISATION, *REPLAY]
    parts = [seconds[[name for name in each if name in seconds]].dropna() for each in (OURS, names)]
    logs = [part.median(axis=1).map(math.log) for part in parts]
    mean, low, high, units = interval((logs[0] - logs[1]).dropna())
    text = f"{math.exp(mean):.2f} times [{math.exp(low):.2f}, {math.exp(high):.2f}]"
    return f"{text}, {units} last sources", math.exp(mean) <= paper_time(), True


def robust(data: str) -> Judged:
    frame = table("orders_sensitivity")
    frame = frame[(frame["benchmark"] == data) & frame["method"].isin(PENALISED)]
    parsed = [next(iter(json.loads(each).items())) for each in frame["settings"]]
    frame = frame.assign(weight=[key for key, _ in parsed], value=[value for _, value in parsed])
    usual = {("penalty_weight", name): 1.0 for name in ("cl-coral", "cl-mmd")}
    usual |= {("alignment_weight", name): 1.0 for name in PENALISED}
    changes = []
    for (name, weight), part in frame.groupby(["method", "weight"]):
        by_value = {value: wide(rows) for value, rows in part.groupby("value")}
        at_default = by_value.pop(usual.get((weight, name)), None)
        reference = default(data) if at_default is None else at_default
        gaps = [(scores[name] - reference[name]).dropna() for scores in by_value.values()]
        changes += [interval(gap)[0] for gap in gaps]
    small = sum(abs(change) < 2 for change in changes)
    text = f"{small} of {len(changes)} values, the worst {min(changes):+.1f}"
    return text, 2 * small >= len(changes), min(changes) > -10


MEMORY = {share: {data: {"memory_rows": share} for data in DATA} for share in (500, 250)}
HALF = {data: {"steps_a_domain": steps} for data, steps in zip(DATA, (500, 250), strict=True)}
OTHER = {data: {"target": target} for data, target in zip(DATA, ("0", "rawah"), strict=True)}
STRONG = ["fdr", "er-ace"]
CLAIMS: dict[str, Callable[[str], Judged]] = {
    "tailored methods beat optimisation baselines": groups(OURS, OPTIMISATION, 6),
    "tailored methods beat regularisation baselines": groups(OURS, REGULARISATION, 10),
    "tailored methods beat replay baselines": groups(OURS, REPLAY, 2),
    "methods rank as in the paper's main table": ranking,
    "tailored methods beat adaptation to the target": groups(OURS, ADAPTATION, 10),
    "tailored methods take the first three places": places,
    "AGEM, ER-ACE and SI beat the naive forms": groups(RIVALS, NAIVE, lead("naive", NAIVE, RIVALS)),
    "naive forms beat fine-tuning slightly": groups(NAIVE, ["finetune"], 3),
    "tailored methods beat their naive forms": groups(OURS, NAIVE, 10),
    **{
        f"on the sources, tailored methods beat {name}": groups(
            OURS, names, lead("source", names), SOURCES
        )
        for name, names in (
            ("fine-tuning", ["finetune"]),
            ("optimisation baselines", OPTIMISATION),
            ("regularisation baselines", REGULARISATION),
            ("replay baselines", REPLAY),
        )
    },
    "alignment helps": without({"alignment_weight": 0.0}, OURS),
    "static priors are better than dynamic ones": without({"priors": "dynamic"}, PENALISED),
    **{
        f"with {change}, tailored methods beat {names}": under(values, experiment, second)
        for change, values, experiment, names, second in (
            ("50% of the memory", MEMORY[500], "memory_50", "FDR and ER-ACE", STRONG),
            ("25% of the memory", MEMORY[250], "memory_25", "FDR and ER-ACE", STRONG),
            ("half the steps", HALF, "half_steps", "FDR and ER-ACE", STRONG),
            ("another target", OTHER, "other_target", "FDR and ER-ACE", STRONG),
            ("half the steps", HALF, "half_steps", "fine-tuning", ["finetune"]),
            ("another target", OTHER, "other_target", "fine-tuning", ["finetune"]),
        )
    },
    "backward transfer of tailored methods is not negative": transfer,
    "tailored methods are robust to λ and β": robust,
    "tailored methods train no longer than in the paper, relative to the baselines": times,
}


def verdict(judged: list[Judged]) -> str:
    if all(holds and strongly for _, holds, strongly in judged):
        return "**reproduced**"
    return "**partly**" if any(holds for _, holds, _ in judged) else "**not reproduced**"


def shown() -> dict[str, list[str]]:
    """The rows of claims with a verdict, as the page has them now, by the words of the claim."""
    lines = [line.strip("| ").split(" | ") for line in verdicts_section().splitlines()]
    return {
        cells[0][1:].partition("](")[0]: cells[2:] for cells in lines if cells[0].startswith("[")
    }


@cache
def right_answers() -> dict[str, list[Judged]]:
    return {claim: [judge(data) for data in DATA] for claim, judge in CLAIMS.items()}


def wrong(page: dict[str, list[str]]) -> list[str]:
    """The claims whose row on the page is not what this file computes."""
    found = []
    for claim, judged in right_answers().items():
        *cells, said = page[claim]
        right = [cell.startswith(text) for cell, (text, _, _) in zip(cells, judged, strict=True)]
        if not all(right) or said != verdict(judged):
            found.append(f"{claim}: {page[claim]} and not {judged}, {verdict(judged)}")
    return found


def test_every_verdict_follows_from_the_tables() -> None:
    page = shown()
    assert set(page) == set(CLAIMS)
    assert not wrong(page)


def test_an_error_in_the_arithmetic_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    true = summary.by_unit

    def orders_as_units(scores: summary.Scores, unit: summary.Unit) -> dict[str, float]:
        return true(scores, summary.Unit.ORDER if unit is summary.Unit.LAST_SOURCE else unit)

    monkeypatch.setattr(summary, "by_unit", orders_as_units)
    assert len(wrong(shown())) > len(CLAIMS) / 2


def test_every_table_of_the_paper_has_a_row_with_its_verdicts() -> None:
    printed_there = pd.read_csv(REPRODUCTION / "paper" / "paper_tables.csv")["table"]
    assert {each.data for each in PAPER_TABLES} - {""} == set(printed_there)
    lines = [line.strip("| ").split(" | ") for line in tables_section().splitlines()[2:]]
    resting: set[str] = set()
    for each, (title, said, units, needs) in zip(PAPER_TABLES, lines, strict=True):
        claims = [text for text in CLAIMS if text.startswith(each.claims or ("\n",))]
        resting |= set(claims)
        right = Counter(verdict(right_answers()[text]).strip("*") for text in claims)
        assert each.title in title
        assert needs.startswith("not run: needs ")
        if not claims:
            assert (said, units) == ("**not run**", "-")
            continue
        shown_there = dict(reversed(part.split(" ", 1)) for part in said.split(", "))
        assert shown_there == {words: str(count) for words, count in right.items()}
        assert all(f"{data}: " in units for data in DATA)
    assert resting == set(CLAIMS)


def test_the_hours_of_a_table_as_printed() -> None:
    runs = table("paper_protocol")
    runs = runs[(runs["benchmark"] == "covertype-natural") & (runs["device"] == "cpu")]
    seconds = runs.groupby("method")["seconds_of_training"].mean()
    baselines = ["finetune", *OPTIMISATION, *REGULARISATION, *REPLAY]
    methods = {
        "main": [*baselines, *OURS],
        "naive": [*NAIVE, "finetune", *RIVALS],
        "no_alignment": OURS,
    }
    for each in PAPER_TABLES:
        if each.searched:
            file = REPRODUCTION / "experiments" / f"{each.searched}.yaml"
            search = yaml.safe_load(file.read_text())["search"]
            count = search["trials"] * search["seeds"]
            hours = count * sum(seconds[name] for name in methods[each.searched]) / 3600
            said = f"{count * len(methods[each.searched]):,} runs, {hours:.1f} core-hours"
            assert said in tables_section(), each.title
