"""What `audit` and `arrive` say about the next site, and how often it is true.

    python bench/next_site.py expected CASES [--natural FOLDER]  intervals of a site's accuracy
    python bench/next_site.py rows CASES                         sets of answers per row
    python bench/next_site.py errors CASES                       intervals of a site's mean error
    python bench/next_site.py values CASES                       intervals of numbers per row
    python bench/next_site.py unlabelled CASES                   the accuracy guessed without labels
    python bench/next_site.py labels CASES                       few labels against random rows
    python bench/next_site.py permuted                           advice on labels that say nothing

CASES is the folder that bench/sites.py writes. A case has k sites that a model measured before it
learned them, and a new site. As in `arrive`, those that were measured by a model of a single site
are left out if there are 3 without them. `expected` also leaves sites of benchmarks out of sums, as
audits do: k sites in turn, then a new one; with `--natural`, of reviews too. `slda` learns, and
`ridge` with 400 features, which alone learns reviews. The table that a case comes from is not in
the atlas.

The unit is the new site: cases with the same one are averaged. Intervals and coverage over tables
count every table once (95%, Student's). Of one table, Student's one-sided test over its sites says
whether its coverage is below 80%. For numbers, the sites of all tables are pooled, and a two-sided
binomial test over sites says whether the mean coverage differs from 90%. The interval score is the
width plus 20 times the miss; of numbers, in % of the mean error at the sites that were measured.

Compared with: Student's interval over sites; all rows as if they were of one site ("rows": what
split conformal prediction does); of numbers, MAPIE itself (`values` needs `pip install mapie`); ATC
(Garg et al., 2022); DoC (Guillory et al., 2021); COTT (Lu et al., 2023); CBPE (isotonic calibration
on held-out rows, as in nannyml).
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import record
import sites as cases_module
import torch
from permuted_labels import make_table
from scipy import optimize, stats
from sites import Case, Seen
from sklearn.isotonic import IsotonicRegression

from farshore.auditing.from_sums import SiteSums
from farshore.base.randomness import derive
from farshore.benchmarks import make_benchmark
from farshore.data.seal import FrozenModel
from farshore.deployment import arrive
from farshore.deployment.held_out import Outputs
from farshore.deployment.label_rows import read_labels, write_rows
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns, read_site
from farshore.results import expectation
from farshore.results.sequence import GROUPS, Picks, bounds
from farshore.tasks.calibration import confidences, fit_temperature, probabilities

# The tables of the atlas that have the same rows as a table under test.
SAME = {
    "heart": ("heart-hospitals",),
    "zones": ("covertype", "covertype-zones"),
    "covertype": ("covertype", "covertype-zones"),
}
AUDITED = {"heart": "heart-hospitals", "covertype": "covertype", "zones": "covertype-zones"}
LEVEL = expectation.LEVEL
AUDITS = (("slda", {}), ("ridge", {"random_features": 400}))
# Of k sites, for each new one.
SUBSETS = 2


def read(folder: Path, *, numbers: bool = False) -> Iterator[Case]:
    """All cases of a folder, which this machine wrote, of classes or of numbers."""
    import __main__

    __main__.Case, __main__.Seen = cases_module.Case, cases_module.Seen
    for path in sorted(folder.glob("*.pickle")):
        if ("numbers" in path.stem) != numbers:
            continue
        with path.open("rb") as file:
            yield from pickle.load(file)


def spreads(table: str, task: str = "classification", of: str = "spread") -> list[float]:
    """The atlas without a table."""
    import csv

    path = Path(expectation.__file__).parent / "atlas.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return [
        float(row[of])
        for row in rows
        if row["task"] == task and row["table"] not in (table, *SAME.get(table, ()))
    ]


def accuracy(seen: Seen) -> float:
    return float((seen.logits.argmax(axis=1) == seen.labels).mean())


def looks(case: Case) -> tuple[np.ndarray, float]:
    """What the confidences suggest of the arrivals and of the new site, as `arrive` sees it."""
    held = [(np.asarray(z, float), y) for z, y in case.held_out]
    outputs = {
        str(n): Outputs(confidences(z), z.argmax(axis=1) == y, z, y)
        for n, (z, y) in enumerate(held)
    }
    z, y = (np.concatenate(parts) for parts in zip(*held, strict=True))
    # Methods that keep no rows have no temperature of their own.
    t = fit_temperature(z, y, trust=1.0) if case.method == "er" else 1.0
    seen = [arrive.see(np.asarray(each.logits, float), outputs, t) for each in sites_of(case)]
    return np.array([each.looks for each in seen]), t


def sites_of(case: Case) -> list[Seen]:
    return [*case.arrivals, case.here]


def arrivals(case: Case) -> list[Seen]:
    """Those that a statement rests on."""
    return arrive.measured(case.arrivals)  # type: ignore[type-var, return-value]


@dataclass(frozen=True)
class Stated:
    """An interval, and the truth."""

    sites: int
    new: str
    covered: float
    score: float

    @classmethod
    def of(cls, sites: int, new: str, truth: float, ends: tuple[float, float], unit: float = 1.0):
        miss = max(ends[0] - truth, truth - ends[1], 0.0)
        return cls(sites, new, float(miss == 0), (ends[1] - ends[0] + 20 * miss) / unit)


Intervals = dict[str, tuple[float, float]]
Ways = dict[str, list[Stated]]


def intervals(case: Case) -> Intervals:
    """Of the new site's accuracy, by way."""
    used = arrivals(case)
    found = np.array([accuracy(each) for each in used])
    rows = np.array([float(len(each.labels)) for each in (*used, case.here)])
    seen = looks(case)[0][-len(rows) :]
    own = expectation.expect_here(found, rows, seen, spreads=spreads(case.data))
    assert own is not None
    return {"ours": (own.low, own.high), **usual(found, rows)}


def usual(scores: np.ndarray, rows: np.ndarray) -> Intervals:
    """Student's interval over sites, and that of rows that are all of one site."""
    n, mean = len(scores), float(scores.mean())
    half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * scores.std(ddof=1) * np.sqrt(1 + 1 / n)
    pooled = float(scores @ rows[:-1] / rows[:-1].sum())
    chance = stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(
        max(pooled * (1 - pooled), 1e-4) * (1 / rows[:-1].sum() + 1 / rows[-1])
    )
    ends = {"Student": (mean - half, mean + half), "rows": (pooled - chance, pooled + chance)}
    return {name: (max(0.0, low), min(1.0, high)) for name, (low, high) in ends.items()}


def benchmarks(natural: Path | None, folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Table, benchmark and options of those that are audited."""
    for table, name in AUDITED.items():
        yield table, name, {}
    if natural is not None:
        path = folder / "reviews.csv"
        frame = cases_module.sites_of(cases_module.reviews(natural))
        pd.concat(frame.values()).to_csv(path, index=False)
        yield (
            "reviews",
            "table",
            {
                **{"path": str(path), "domain": "site", "label": "label", "text": "text"},
                "metric": "accuracy",
            },
        )


def audited(
    table: str, benchmark: str, options: dict[str, Any], method: str, settings: dict[str, Any]
) -> Iterator[tuple[int, str, float, Intervals]]:
    """k, the new site, its accuracy and the intervals, by leaving sites out of sums."""
    made = make_benchmark(benchmark, options)
    if made.missing() is not None:
        return
    names = list(made.domain_names())
    summed = SiteSums(made.scenario(target=names[-1], seed=0), method, settings)
    summed.add(made.scenario(target=names[1], seed=0).sources[-1])
    other = made.scenario(target=names[0], seed=0)
    without_first = SiteSums(other, method, settings)
    without_first.system.model.install(*without_first.head(names[1:]))
    without_first.see(other.target.open(FrozenModel(without_first.system.predictor())))
    draws = np.random.default_rng(derive(0, "next site", table))
    for k in (3, 4, 6):
        for new in names:
            rest = [name for name in names if name != new]
            drawn = [draws.permutation(len(rest))[:k] for _ in range(SUBSETS)]
            for places in sorted({tuple(sorted(each)) for each in drawn if len(each) == k}):
                # The first site scales the columns, so another one does for what it never saw.
                used = without_first if new == names[0] else summed
                learned = [rest[place] for place in places]
                scores = {
                    site: [used.score(used.head(set(learned) - {site}), site)] for site in learned
                }
                rows = {site: len(used.labels[site]) for site in (*learned, new)}
                own = expectation.expect(scores, rows, spreads=spreads(table))
                assert own is not None
                values = np.array([score for (score,) in scores.values()])
                truth = used.score(used.head(learned), new)
                found = usual(values, np.array(list(rows.values()), float))
                yield k, new, truth, {"ours": (own.low, own.high), **found}


def expected(args: argparse.Namespace) -> Iterator[list[object]]:
    """Coverage, width and interval score by table and way."""
    hits: dict[str, Ways] = defaultdict(lambda: defaultdict(list))

    def add(name: str, k: int, new: str, truth: float, found: Intervals) -> None:
        for way, ends in found.items():
            hits[name][way].append(Stated.of(k, new, truth, ends, 0.01))

    for case in read(args.cases):
        if len(case.arrivals) >= expectation.FEWEST_SITES:
            truth, name = accuracy(case.here), f"{case.data}, arrive"
            add(name, len(arrivals(case)), case.here.name, truth, intervals(case))
    with tempfile.TemporaryDirectory() as folder:
        for table, benchmark, options in benchmarks(args.natural, Path(folder)):
            for method, settings in AUDITS[1:] if table == "reviews" else AUDITS:
                for each in audited(table, benchmark, options, method, settings):
                    add(f"{table}, audit", *each)
    made = {name: hits.pop(name) for name in list(hits) if name.startswith("made")}
    for name, ways in hits.items():
        yield from rows_of(name, [ways])
    if made:
        yield from rows_of(f"{len(made)} made tables, arrive", list(made.values()))
    tables = [*hits.values(), *made.values()]
    yield from rows_of(f"all {len(tables)}", tables, pooled=True)
    for low, high in ((3, 3), (4, 5), (6, 8), (9, 99)):
        some = among(tables, low, high)
        if some:
            name = f"k {low} to {high}" if low < high else f"k {low}"
            yield from rows_of(name if high < 99 else "k from 9", some, pooled=True)


def among(tables: Sequence[Ways], low: int, high: int) -> list[Ways]:
    """What rests on so many sites, of the tables that have it."""
    found = [
        {way: [x for x in each if low <= x.sites <= high] for way, each in ways.items()}
        for ways in tables
    ]
    return [ways for ways in found if ways["ours"]]


def by_site(stated: Sequence[Stated]) -> dict[str, float]:
    """The share that is covered at each new site."""
    found: dict[str, list[float]] = defaultdict(list)
    for each in stated:
        found[each.new].append(each.covered)
    return {new: float(np.mean(of_site)) for new, of_site in found.items()}


def rows_of(name: str, tables: Sequence[Ways], *, pooled: bool = False) -> Iterator[list[object]]:
    """A row for these tables; every table counts the same."""
    sites = [by_site(ways["ours"]) for ways in tables]
    cells: list[object] = [name, sum(len(ways["ours"]) for ways in tables), sum(map(len, sites))]
    for way in tables[0]:
        shares = [list(by_site(ways[way]).values()) for ways in tables]
        covered = [float(np.mean(of_table)) for of_table in shares]
        score = np.mean([np.mean([x.score for x in ways[way]]) for ways in tables])
        text = f"{100 * np.mean(covered):.0f}"
        if pooled and len(tables) > 2:
            text += interval_text(covered)
        elif way == "ours" and len(tables) == 1 and below(shares[0]):
            text += " (below 80)"
        cells += [text, f"{score:.1f}"]
    yield cells


def below(shares: Sequence[float], level: float = 0.8) -> bool:
    """Whether the mean over sites is below the level beyond chance."""
    if np.std(shares) == 0 or len(shares) < 3:
        return bool(len(shares) >= 3 and np.mean(shares) < level)
    return bool(stats.ttest_1samp(shares, level, alternative="less").pvalue < 0.05)


def deviations(seen: Seen) -> np.ndarray:
    """The absolute errors of numbers, in deviations of the first site."""
    return np.abs(seen.logits - seen.labels)[:, 0]


def stated_errors(case: Case) -> dict[str, Stated]:
    """Intervals of the mean error at the new site, by way."""
    used = arrivals(case)
    found = np.array([float(deviations(each).mean()) for each in used])
    rows = {str(place): len(each.labels) for place, each in enumerate(used)}
    own = expectation.expect(
        {str(place): [error] for place, error in enumerate(found)},
        rows,
        scale=expectation.POSITIVE,
        spreads=spreads(case.data, "regression"),
    )
    assert own is not None
    n, mean = len(found), float(found.mean())
    half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * found.std(ddof=1) * np.sqrt(1 + 1 / n)
    truth, of = float(deviations(case.here).mean()), (n, case.here.name)
    ends = {"ours": (own.low, own.high), "Student": (max(0.0, mean - half), mean + half)}
    return {way: Stated.of(*of, truth, each, mean / 100) for way, each in ends.items()}


def stated_values(case: Case) -> dict[str, Stated]:
    """Intervals of the new site's rows, by way."""
    used = arrivals(case)
    scores = [deviations(each) for each in used]
    own = expectation.row_sets(
        [expectation.quantiles(each) for each in scores],
        [len(each) for each in scores],
        spreads=spreads(case.data, "regression", "rows"),
    )
    assert own is not None
    truth, mean = deviations(case.here), float(np.mean([each.mean() for each in scores]))
    found = {}
    for way, most in {"ours": own.most, "MAPIE": of_mapie(used)}.items():
        score = 2 * most + 20 * np.maximum(truth - most, 0).mean()
        covered = float((truth <= most).mean())
        found[way] = Stated(len(used), case.here.name, covered, 100 * float(score) / mean)
    return found


def of_mapie(used: Sequence[Seen]) -> float:
    """Half the width of the intervals of split conformal prediction over all rows."""
    from mapie.regression import SplitConformalRegressor
    from sklearn.base import BaseEstimator, RegressorMixin

    class Known(RegressorMixin, BaseEstimator):
        """Says what was said before."""

        fitted_ = True

        def fit(self, x: np.ndarray, y: np.ndarray) -> Known:
            return self

        def predict(self, x: np.ndarray) -> np.ndarray:
            return x[:, 0]

    model = SplitConformalRegressor(Known(), confidence_level=LEVEL, prefit=True)
    said, true = (
        np.concatenate(each) for each in zip(*((x.logits, x.labels) for x in used), strict=True)
    )
    model.conformalize(said, true[:, 0])
    _, ends = model.predict_interval(np.zeros((1, 1)))
    return float(ends[0, 1, 0])


def errors(args: argparse.Namespace) -> Iterator[list[object]]:
    """Coverage and interval score of the mean error, by table and number of sites."""
    yield from of_numbers(args.cases, stated_errors)


def values(args: argparse.Namespace) -> Iterator[list[object]]:
    """The same of the intervals of rows."""
    yield from of_numbers(args.cases, stated_values)


def of_numbers(folder: Path, stated: Any) -> Iterator[list[object]]:
    """By table; by number of sites; and of both tables, with the binomial test over sites."""
    hits: dict[str, Ways] = defaultdict(lambda: defaultdict(list))
    for case in read(folder, numbers=True):
        for way, each in stated(case).items():
            hits[case.data.removesuffix(" numbers")][way].append(each)
    tables = list(hits.values())
    for name, ways in hits.items():
        yield from rows_of(name, [ways])
    for low, high in ((3, 3), (4, 5), (6, 8), (9, 18), (19, 99)):
        some = among(tables, low, high)
        if some:
            name = f"k {low} to {high}" if high < 99 else f"k from {low}"
            yield from rows_of("k 3" if high == 3 else name, some)
    (row,) = rows_of("both", tables)
    for place, way in enumerate(tables[0]):
        shares = [share for ways in tables for share in by_site(ways[way]).values()]
        hit = round(sum(shares))
        p = stats.binomtest(hit, len(shares), LEVEL).pvalue
        row[3 + 2 * place] = f"{100 * np.mean(shares):.0f} ({hit} of {len(shares)}, p {p:.2f})"
    yield row


def interval_text(values: Sequence[float], digits: int = 0) -> str:
    mean, n = np.mean(values), len(values)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    return f" ({100 * (mean - half):.{digits}f} to {100 * min(1, mean + half):.{digits}f})"


def rows(args: argparse.Namespace) -> Iterator[list[object]]:
    """Coverage and size of the sets by table; of rows pooled over sites beside."""
    hits: dict[str, Ways] = defaultdict(lambda: defaultdict(list))
    for case in read(args.cases):
        if len(case.arrivals) < expectation.FEWEST_SITES:
            continue
        own = 1 - probabilities(case.here.logits)
        truth = own[np.arange(len(own)), case.here.labels]
        scores, used = [], arrivals(case)
        for each in used:
            missed = 1 - probabilities(each.logits)
            scores.append(missed[np.arange(len(missed)), each.labels])
        ours = expectation.row_sets(
            [expectation.quantiles(each) for each in scores],
            [len(each) for each in scores],
            spreads=spreads(case.data, of="rows"),
        )
        assert ours is not None
        pooled = np.concatenate(scores)
        share = min(1.0, LEVEL * (len(pooled) + 1) / len(pooled))
        split = float(np.quantile(pooled, share, method="higher"))
        for way, most in {"ours": ours.most, "pooled": split}.items():
            covered, size = float((truth <= most).mean()), float((own <= most).sum(axis=1).mean())
            hits[case.data][way].append(Stated(len(used), case.here.name, covered, size))
    made = {name: hits.pop(name) for name in list(hits) if name.startswith("made")}
    for name, ways in hits.items():
        yield two_digits(rows_of(name, [ways]), [ways])
    tables = [*hits.values(), *made.values()]
    if made:
        yield two_digits(rows_of(f"{len(made)} made tables", [*made.values()]), [*made.values()])
    yield two_digits(rows_of(f"all {len(tables)}", tables, pooled=True), tables)


def two_digits(rows: Iterator[list[object]], tables: Sequence[Ways]) -> list[object]:
    """The row of these tables, with sizes of sets, and coverage over all tables, in more digits."""
    (row,) = rows
    for place, way in enumerate(tables[0]):
        size = np.mean([np.mean([x.score for x in ways[way]]) for ways in tables])
        row[4 + 2 * place] = f"{size:.2f}"
        if str(row[0]).startswith("all"):
            covered = [float(np.mean(list(by_site(ways[way]).values()))) for ways in tables]
            row[3 + 2 * place] = f"{100 * np.mean(covered):.1f}" + interval_text(covered, 1)
    return row


def unlabelled(args: argparse.Namespace) -> Iterator[list[object]]:
    """The mean absolute error of the accuracy without labels, by table and way."""
    errors: dict[str, list[dict[str, float]]] = defaultdict(list)
    for case in read(args.cases):
        truth = accuracy(case.here)
        z, y = (np.concatenate(parts) for parts in zip(*case.held_out, strict=True))
        z = np.asarray(z, float)
        new = np.asarray(case.here.logits, float)
        seen, t = looks(case)
        known = np.mean([accuracy(each) for each in arrivals(case)])
        guesses = {
            "ours": (known + seen[-1]) / 2,
            "mean of sites": known,
            "ATC": atc(z / t, y, new / t),
            "DoC": (z.argmax(1) == y).mean() - confidences(z).mean() + confidences(new).mean(),
            "COTT": cott(z, y, new),
            "CBPE": cbpe(z, y, new),
        }
        errors[case.data].append({way: abs(float(g) - truth) for way, g in guesses.items()})
    ways = list(next(iter(errors.values()))[0])
    means = {
        name: [float(np.mean([each[way] for each in found])) for way in ways]
        for name, found in errors.items()
    }
    made = [name for name in means if name.startswith("made")]
    for name, found in means.items():
        if name not in made:
            yield [name, len(errors[name]), *(f"{100 * each:.1f}" for each in found)]
    if made:
        mean = np.mean([means[name] for name in made], axis=0)
        count = sum(len(errors[name]) for name in made)
        yield [f"{len(made)} made tables", count, *(f"{100 * each:.1f}" for each in mean)]
    groups = [found for name, found in means.items() if name not in made]
    groups += [list(np.mean([means[name] for name in made], axis=0))] if made else []
    mean = np.mean(groups, axis=0)
    yield ["mean of these", sum(map(len, errors.values())), *(f"{100 * x:.1f}" for x in mean)]


def atc(z: np.ndarray, y: np.ndarray, new: np.ndarray) -> float:
    """The share of confidences above a threshold, which is the accuracy on held-out rows."""
    own = np.sort(confidences(z))[::-1]
    hits = int((z.argmax(axis=1) == y).sum())
    return float((confidences(new) >= (own[hits - 1] if hits else np.inf)).mean())


def cott(z: np.ndarray, y: np.ndarray, new: np.ndarray) -> float:
    """ATC with the cost of transporting outputs to classes as often as on held-out rows."""
    draws = np.random.default_rng(0)

    def costs(outputs: np.ndarray) -> np.ndarray:
        p = probabilities(outputs[:600])
        to = draws.choice(y, len(p))
        cost = np.abs(p[:, None, :] - np.eye(p.shape[1])[None]).max(axis=2)[:, to]
        left, right = optimize.linear_sum_assignment(cost)
        return np.asarray(cost[left, right])

    chosen = draws.permutation(len(y))[:600]
    right = float((z[chosen].argmax(axis=1) == y[chosen]).mean())
    return float((costs(new) <= np.quantile(costs(z[chosen]), right)).mean())


def cbpe(z: np.ndarray, y: np.ndarray, new: np.ndarray) -> float:
    """The mean probability of the answer, each class calibrated by an isotonic regression."""
    p, q = probabilities(z), probabilities(new)
    fitted = np.column_stack(
        [
            IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1)
            .fit(p[:, k], y == k)
            .predict(q[:, k])
            for k in range(p.shape[1])
        ]
    )
    fitted /= np.maximum(fitted.sum(axis=1, keepdims=True), 1e-9)
    return float(fitted[np.arange(len(q)), q.argmax(axis=1)].mean())


def labels(args: argparse.Namespace) -> Iterator[list[object]]:
    """How many labels show an accuracy 10 points below the true one, and false statements."""
    chosen = [case for case in read(args.cases) if 0.65 <= accuracy(case.here) <= 0.97]
    draws = np.random.default_rng(derive(0, "replays"))
    picked = draws.permutation(len(chosen))[: args.sites]
    needed: dict[str, list[float]] = defaultdict(list)
    false = dict.fromkeys(("at least", "at most"), 0)
    replays = 0
    for place in picked:
        case = chosen[place]
        right = case.here.logits.argmax(axis=1) == case.here.labels
        truth, (_, t) = right.mean(), looks(case)
        confidence = confidences(case.here.logits / t)
        bar = max(0.05, float(confidence.mean()) - 0.1)
        picks = Picks.of(confidence, bar)
        plain = Picks.of(confidence, bar, groups=1)
        goal = np.floor(100 * (truth - 0.1)) / 100
        for _ in range(args.replays // len(picked)):
            for way, design in (("ours", picks), ("random rows", plain)):
                order = design.draw(draws, 400)
                found = bounds(design, order, right[order])
                hit = np.flatnonzero(found.low >= goal)
                count = len(set(order[: hit[0] + 1].tolist())) if len(hit) else np.inf
                needed[way].append(count)
                if way == "ours":
                    false["at least"] += bool(found.low[-1] > truth)
                    false["at most"] += bool(found.high[-1] < truth)
            replays += 1
    for way, counts in needed.items():
        wrong = [f"{false[what]} of {replays}" for what in false] if way == "ours" else ["-", "-"]
        yield [way, len(picked), replays, f"{np.median(counts):.0f}", *wrong]


def permuted(args: argparse.Namespace) -> Iterator[list[object]]:
    """What is advised about small tables whose labels say nothing, without and with labels."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for number in range(args.tables):
        for kind in ("permuted", "their own") if number % 5 == 0 else ("permuted",):
            frame = make_table(number, permuted=kind == "permuted")
            with tempfile.TemporaryDirectory() as made:
                for way, action in advised(frame, Path(made)):
                    counts[f"{kind}, {way}"][action] += 1
    for name in sorted(counts):
        of = counts[name]
        yield [name, sum(of.values()), *(of[str(action)] for action in arrive.Action)]


def advised(frame: pd.DataFrame, folder: Path) -> Iterator[tuple[str, str]]:
    """The advice about a table's last site, without labels and with all of 40 that are asked.

    The model learns in memory, without the gate of `learn`, which refuses some shuffled labels.
    """
    *known, last = list(dict.fromkeys(frame["site"]))
    columns, path = Columns(label="label", drop=("site",)), folder / "site.csv"
    model: Model | None = None
    for name in known:
        frame[frame["site"] == name].to_csv(path, index=False)
        scale = model.learner.preprocessing if model is not None else None
        site, arrival = read_site(path, columns, scale, labelled=True), {}
        if model is None:
            new = NewModel(method="slda", classes=sorted(set(frame["label"])), metric="accuracy")
            model = Model(folder, new.make(site, device="cpu", observer=None), None)
        else:
            arrival = model.knowledge.arrival(model.inputs(site), site.labels or [])
        model.learn(site, name, columns, steps=1, validation=0.2)
        model.sites[name] |= {"arrival": arrival, "scores": {}, "before": {}, "after": {}}
    assert model is not None
    rows = frame[frame["site"] == last].reset_index(drop=True)
    rows.to_csv(path, index=False)
    site = model.read(path, labelled=False)
    yield "no labels", str(model.judge(site).advice.action)
    write_rows(model, site, 40, folder / "to-label.csv", overwrite=False)
    asked = pd.read_csv(folder / "to-label.csv", dtype={"label": object})
    asked["label"] = rows["label"][asked["row to label"]].to_numpy()
    asked.to_csv(folder / "labelled.csv", index=False)
    found = read_labels(model, site, folder / "labelled.csv")
    yield "40 labels", str(model.judge(site, labelled=found).advice.action)


COLUMNS = {
    "expected": (
        *("table", "cases", "sites", "covered, %", "interval score", "Student: covered, %"),
        *("interval score, Student", "rows: covered, %", "interval score, rows"),
    ),
    "rows": (
        *("table", "cases", "sites", "covered, %", "answers per set", "pooled rows: covered, %"),
        "answers per set, pooled",
    ),
    "errors": (
        *("table", "cases", "sites", "covered, %", "interval score", "Student: covered, %"),
        "interval score, Student",
    ),
    "values": (
        *("table", "cases", "sites", "covered, %", "interval score", "MAPIE: covered, %"),
        "interval score, MAPIE",
    ),
    "unlabelled": ("table", "cases", "ours", "mean of sites", "ATC", "DoC", "COTT", "CBPE"),
    "labels": ("rows", "sites", "replays", "labels, median", "false at least", "false at most"),
    "permuted": ("labels", "tables", *map(str, arrive.Action)),
}
MEASURED = {
    "expected": "Intervals of 90% for the accuracy at the next site; interval score in points",
    "rows": "Sets of 90% for the rows of the next site, from the sites measured before",
    "errors": "Intervals of 90% for the mean error at the next site; score in % of that before",
    "values": "Intervals of 90% for the rows of the next site; score in % of the mean error before",
    "unlabelled": "Mean absolute error, in points, of the accuracy at a site without labels",
    "labels": f"Labels that show an accuracy 10 points below the true one; {GROUPS} groups of rows",
    "permuted": "Advice about the last site of small tables, 3 to 5 sites of 30 to 60 rows before",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=COLUMNS)
    parser.add_argument("cases", type=Path, nargs="?")
    parser.add_argument("--natural", type=Path)
    parser.add_argument("--replays", type=int, default=1000)
    parser.add_argument("--sites", type=int, default=50)
    parser.add_argument("--tables", type=int, default=100)
    record.add_save(parser)
    args = parser.parse_args()
    if args.what != "permuted" and args.cases is None:
        parser.error("name the folder of cases")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows_found = globals()[args.what](args)
    packages = ["scikit-learn", *(["mapie"] if args.what == "values" else [])]
    record.show(args, MEASURED[args.what], COLUMNS[args.what], rows_found, packages)


if __name__ == "__main__":
    main()
