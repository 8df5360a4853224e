"""What `audit` and `arrive` say about the next site, and how often it is true.

    python bench/next_site.py expected CASES [--save NAME]    intervals of a site's accuracy
    python bench/next_site.py rows CASES [--save NAME]        sets of answers per row
    python bench/next_site.py unlabelled CASES [--save NAME]  the accuracy guessed without labels
    python bench/next_site.py labels CASES [--save NAME]      few labels against random rows
    python bench/next_site.py permuted [--save NAME]          advice about labels that say nothing

CASES is the folder that bench/sites.py writes. A case has k sites that a model measured before it
learned them, and a new site. `expected` also leaves sites of benchmarks out of sums, as audits do:
k sites in turn, then a new one. The table that a case comes from is not in the atlas. Intervals and
coverage over tables count every table once (95%, Student's); of one table, the exact one-sided test
says whether its coverage is below 80%. The interval score is width + 20 times the miss.

Compared with: Student's interval over sites; all rows as if they were of one site ("rows": what
split conformal prediction does, as MAPIE does); ATC (Garg et al., 2022); DoC (Guillory et al.,
2021); COTT (Lu et al., 2023); CBPE (isotonic calibration on held-out rows, as in nannyml).
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

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
SUBSETS = 12


def read(folder: Path) -> Iterator[Case]:
    """All cases of a folder, which this machine wrote."""
    import __main__

    __main__.Case, __main__.Seen = cases_module.Case, cases_module.Seen
    for path in sorted(folder.glob("*.pickle")):
        with path.open("rb") as file:
            yield from pickle.load(file)


def spreads(table: str) -> list[float]:
    """The atlas without a table."""
    import csv

    path = Path(expectation.__file__).parent / "atlas.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return [
        float(row["spread"]) for row in rows if row["table"] not in (table, *SAME.get(table, ()))
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


Intervals = dict[str, tuple[float, float]]


def intervals(case: Case) -> Intervals:
    """Of the new site's accuracy, by way."""
    found = np.array([accuracy(each) for each in case.arrivals])
    rows = np.array([float(len(each.labels)) for each in sites_of(case)])
    seen, _ = looks(case)
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


def audited(table: str, method: str) -> Iterator[tuple[int, float, Intervals]]:
    """k, the new site's accuracy and the intervals, by leaving sites out of sums."""
    benchmark = make_benchmark(AUDITED[table], {})
    if benchmark.missing() is not None:
        return
    names = list(benchmark.domain_names())
    summed = SiteSums(benchmark.scenario(target=names[-1], seed=0), method, {})
    summed.add(benchmark.scenario(target=names[1], seed=0).sources[-1])
    draws = np.random.default_rng(derive(0, "next site", table))
    for k in (3, 4, 6):
        for _ in range(SUBSETS if k + 1 <= len(names) else 0):
            chosen = [names[place] for place in draws.permutation(len(names))[: k + 1]]
            if chosen[-1] == names[0]:  # the first one scales the columns
                continue
            *learned, new = chosen
            scores = {
                site: [summed.score(summed.head(set(learned) - {site}), site)] for site in learned
            }
            rows = {site: len(summed.labels[site]) for site in chosen}
            own = expectation.expect(scores, rows, spreads=spreads(table))
            assert own is not None
            values = np.array([score for (score,) in scores.values()])
            counts = np.array([float(rows[site]) for site in chosen])
            truth = summed.score(summed.head(learned), new)
            yield k, truth, {"ours": (own.low, own.high), **usual(values, counts)}


def expected(args: argparse.Namespace) -> Iterator[list[object]]:
    """Coverage, width and interval score by table and way."""
    hits: dict[str, dict[str, list[tuple[int, bool, float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )

    def add(name: str, k: int, truth: float, found: Intervals) -> None:
        for way, (low, high) in found.items():
            miss = max(low - truth, truth - high, 0.0)
            hits[name][way].append((k, miss == 0, high - low, high - low + 20 * miss))

    for case in read(args.cases):
        if len(case.arrivals) >= expectation.FEWEST_SITES:
            add(f"{case.data}, arrive", len(case.arrivals), accuracy(case.here), intervals(case))
    for table in AUDITED:
        for method in ("slda", "ridge"):
            for k, truth, found in audited(table, method):
                add(f"{table}, audit", k, truth, found)
    made = {name: hits.pop(name) for name in list(hits) if name.startswith("made")}
    for name, ways in hits.items():
        yield from rows_of(name, [ways])
    if made:
        yield from rows_of(f"{len(made)} made tables, arrive", list(made.values()))
    tables = [*hits.values(), *made.values()]
    yield from rows_of(f"all {len(tables)}", tables, pooled=True)
    for low, high in ((3, 3), (4, 5), (6, 8), (9, 99)):
        some = [
            {way: [x for x in each if low <= x[0] <= high] for way, each in ways.items()}
            for ways in tables
        ]
        some = [ways for ways in some if ways["ours"]]
        if some:
            yield from rows_of(f"k {low} to {high}" if high < 99 else "k from 9", some, pooled=True)


def rows_of(
    name: str,
    tables: Sequence[dict[str, list[tuple[int, bool, float, float]]]],
    *,
    pooled: bool = False,
) -> Iterator[list[object]]:
    """A row for these tables; every table counts the same."""
    count = sum(len(ways["ours"]) for ways in tables)
    cells: list[object] = [name, count]
    for way in ("ours", "Student", "rows"):
        covered = [float(np.mean([x[1] for x in ways[way]])) for ways in tables]
        score = np.mean([np.mean([x[3] for x in ways[way]]) for ways in tables])
        text = f"{100 * np.mean(covered):.0f}"
        if pooled and len(tables) > 2:
            text += interval_text(covered)
        elif way == "ours":
            inside = round(sum(sum(x[1] for x in ways[way]) for ways in tables))
            p = stats.binomtest(inside, count, 0.8, alternative="less").pvalue
            text += " (below 80)" if p < 0.05 else ""
        cells += [text, f"{100 * score:.1f}"]
    yield cells


def interval_text(values: Sequence[float]) -> str:
    mean, n = np.mean(values), len(values)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    return f" ({100 * (mean - half):.0f} to {100 * min(1, mean + half):.0f})"


def rows(args: argparse.Namespace) -> Iterator[list[object]]:
    """Coverage and size of the sets by table; of rows pooled over sites beside."""
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for case in read(args.cases):
        if len(case.arrivals) < expectation.FEWEST_SITES:
            continue
        own = 1 - probabilities(case.here.logits)
        truth = own[np.arange(len(own)), case.here.labels]
        scores = []
        for each in case.arrivals:
            missed = 1 - probabilities(each.logits)
            scores.append(missed[np.arange(len(missed)), each.labels])
        ours = expectation.row_sets(
            [expectation.quantiles(each) for each in scores],
            [len(each) for each in scores],
            spreads=spreads(case.data),
        )
        assert ours is not None
        pooled = np.concatenate(scores)
        share = min(1.0, LEVEL * (len(pooled) + 1) / len(pooled))
        split = float(np.quantile(pooled, share, method="higher"))
        found[case.data].append(
            tuple(
                float(value)
                for most in (ours.most, split)
                for value in ((truth <= most).mean(), (own <= most).sum(axis=1).mean())
            )
        )
    means = {name: np.mean(each, axis=0) for name, each in found.items()}
    made = [name for name in means if name.startswith("made")]
    for name in means:
        if name not in made:
            yield [name, len(found[name]), *cells_of([means[name]])]
    if made:
        count = sum(len(found[name]) for name in made)
        yield [f"{len(made)} made tables", count, *cells_of([means[name] for name in made])]
    count = sum(map(len, found.values()))
    yield [f"all {len(means)}", count, *cells_of(list(means.values()), pooled=True)]


def cells_of(tables: Sequence[np.ndarray], *, pooled: bool = False) -> list[str]:
    mean = np.mean(tables, axis=0)
    ends = [interval_text([float(each[n]) for each in tables]) if pooled else "" for n in (0, 2)]
    return [
        f"{100 * mean[0]:.0f}{ends[0]}",
        f"{mean[1]:.2f}",
        f"{100 * mean[2]:.0f}{ends[1]}",
        f"{mean[3]:.2f}",
    ]


def unlabelled(args: argparse.Namespace) -> Iterator[list[object]]:
    """The mean absolute error of the accuracy without labels, by table and way."""
    errors: dict[str, list[dict[str, float]]] = defaultdict(list)
    for case in read(args.cases):
        truth = accuracy(case.here)
        z, y = (np.concatenate(parts) for parts in zip(*case.held_out, strict=True))
        z = np.asarray(z, float)
        new = np.asarray(case.here.logits, float)
        seen, t = looks(case)
        known = np.mean([accuracy(each) for each in case.arrivals])
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
        *("table", "cases", "covered, %", "interval score", "Student: covered, %"),
        *("interval score, Student", "rows: covered, %", "interval score, rows"),
    ),
    "rows": (
        *("table", "cases", "covered, %", "answers per set", "pooled rows: covered, %"),
        "answers per set, pooled",
    ),
    "unlabelled": ("table", "cases", "ours", "mean of sites", "ATC", "DoC", "COTT", "CBPE"),
    "labels": ("rows", "sites", "replays", "labels, median", "false at least", "false at most"),
    "permuted": ("labels", "tables", *map(str, arrive.Action)),
}
MEASURED = {
    "expected": "Intervals of 90% for the accuracy at the next site; interval score in points",
    "rows": "Sets of 90% for the rows of the next site, from the sites measured before",
    "unlabelled": "Mean absolute error, in points, of the accuracy at a site without labels",
    "labels": f"Labels that show an accuracy 10 points below the true one; {GROUPS} groups of rows",
    "permuted": "Advice about the last site of small tables, 3 to 5 sites of 30 to 60 rows before",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=COLUMNS)
    parser.add_argument("cases", type=Path, nargs="?")
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
    record.show(args, MEASURED[args.what], COLUMNS[args.what], rows_found, ["scikit-learn"])


if __name__ == "__main__":
    main()
