"""The paper's claims, each with our measurement and a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from reproduction.arithmetic import (
    Difference,
    Scores,
    above_zero,
    enough,
    mean,
    names,
    paired_difference,
    pooled,
    scores,
    unit_of,
)
from reproduction.compared import BASELINES, BENCHMARKS, PENALISED, REPLAY, TAILORED, group
from reproduction.finished_runs import AS_IT_IS, SCORE, rows_of
from reproduction.formatting import interval, listed, markdown, several, signed
from reproduction.paper.scores import paper_numbers, papers_scores
from reproduction.sections.missing import provenance
from reproduction.sections.orders import ablated
from reproduction.sections.sensitivity import ALMOST_EQUAL, GREAT_HARM, changes_by_weight

# The paper's comparators with less memory, half the steps or another target that ran here.
STRONG = ["fdr", "er-ace"]
# Those that it compares with naive forms.
NAIVES_RIVALS = ["agem", "er-ace", "si"]
SOURCES = "source_train_score"
# By words: the paper's table, and the name of the change in `ablated`.
CHANGES = {
    "with 50% of the memory": ("memory_50", "memory of 50%"),
    "with 25% of the memory": ("memory_25", "memory of 25%"),
    "with half the steps": ("half_steps", "half the steps"),
    "with another target": ("other_target", "target"),
}


@dataclass(frozen=True)
class Finding:
    """What we found on one data set: whether the claim holds, and as strongly as in the paper.

    n: how many units of which kind; runs: the orders and seeds in them; remark: for the details.
    """

    text: str
    n: str
    holds: bool
    strongly: bool = True
    runs: str = ""
    remark: str = ""


# The experiment behind the numbers of a page.
RUNS_BEHIND = {
    **dict.fromkeys(("orders", "transfer", "run-time"), "all_orders"),
    "ablations": "orders_ablated",
    "sensitivity": "orders_sensitivity",
}
Measure = Callable[[str], Finding | None]
# The scores of a data set by method, in percent.
Measured = Callable[[str], Mapping[str, Scores]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, its number there, and how to measure it on a data set.

    page: where the numbers behind it are. beside: on covertype's natural target, for comparison.
    """

    text: str
    paper: str
    measure: Measure
    page: str = "orders"
    beside: Measure | None = None


def usual(column: str = SCORE) -> Measured:
    """Every order of the sources, with default settings."""
    return lambda benchmark: scores(rows_of("all_orders", benchmark), column)


def changed(name: str) -> Measured:
    """The same with one thing changed, as `ablated` calls it."""

    def measured(benchmark: str) -> Mapping[str, Scores]:
        found = [frame for key, frame in ablated(benchmark).items() if key.startswith(name)]
        return scores(found[0]) if found else {}

    return measured


def extent(runs: Iterable[tuple[object, ...]]) -> tuple[str, str]:
    """Over how many units something was measured, and with how many orders and seeds."""
    places = list(runs)
    unit = unit_of(places)
    orders = {(place[1], place[3]) for place in places}
    seeds = len(places) / len(orders)
    kinds = f"{several(len(orders), 'order')}, {several(round(seeds), 'seed')} each"
    return several(len(names(places, unit)), str(unit)), kinds


def larger(
    first: Scores,
    second: Scores,
    expected: float,
    robust: Difference | None = None,
    remark: str = "",
) -> Finding | None:
    """The claim that the first is higher, and about as much as in the paper.

    robust: another difference that must be above zero for "as strongly", if there is one.
    """
    found = paired_difference(first, second)
    if found is None:
        return None
    n, runs = extent(place for place in first if place in second)
    strongly = found.mean >= expected / 2 and (robust is None or above_zero(robust))
    return Finding(interval(found), n, above_zero(found), strongly, runs, remark)


def between(
    first: Sequence[str],
    second: Sequence[str],
    expected: float,
    measured: Measured,
    weakest: bool = True,
) -> Measure:
    """The paired difference of two groups of methods.

    Also without the weakest method of the second group (of the first, if the second has only one),
    which may decide the mean.
    """

    def measure(benchmark: str) -> Finding | None:
        by_method = measured(benchmark)
        ours, theirs = pooled(by_method, first), pooled(by_method, second)
        if not weakest:
            return larger(ours, theirs, expected)
        left_out = weakest_of(by_method, second if len(second) > 1 else first)
        robust = paired_difference(
            *(
                pooled(by_method, [name for name in methods if name != left_out])
                for methods in (first, second)
            )
        )
        return larger(ours, theirs, expected, robust, f"without `{left_out}`: {interval(robust)}")

    return measure


def weakest_of(by_method: Mapping[str, Scores], methods: Iterable[str]) -> str:
    """The method with the lowest mean; empty if none ran in enough units."""
    ran = enough(by_method)
    return min(
        (name for name in methods if name in ran), key=lambda name: mean(ran[name]), default=""
    )


def without(settings: str, methods: Sequence[str], column: str = SCORE) -> Measure:
    """The default minus the ablation with these settings, in the same orders."""

    def measure(benchmark: str) -> Finding | None:
        part = scores(rows_of("orders_ablated", benchmark, settings), column)
        return larger(pooled(usual(column)(benchmark), methods), pooled(part, methods), 0)

    return measure


def transfer(benchmark: str) -> Finding | None:
    """Backward transfer of the tailored methods: its interval does not lie below zero."""
    ours = pooled(scores(rows_of("all_orders", benchmark), "backward_transfer"), TAILORED)
    found = paired_difference(ours, dict.fromkeys(ours, 0.0))
    if found is None:
        return None
    n, runs = extent(ours)
    return Finding(interval(found), n, found.high is not None and found.high >= 0, runs=runs)


def ranked_by_the_paper(benchmark: str) -> dict[str, float]:
    """Our mean of every method of the paper's main table that ran in enough units."""
    names = papers_scores(benchmark, "main").keys() - set(group("upper-bound"))
    ran = enough(usual()(benchmark)).items()
    return {name: mean(runs) for name, runs in ran if name in names}


def first_places(benchmark: str) -> Finding | None:
    """How many of the three best means, among the methods that the paper ranks, are tailored."""
    ours = ranked_by_the_paper(benchmark)
    if len(ours) < 4:
        return None
    best = sorted(ours, key=lambda name: -ours[name])[:3]
    count = sum(name in TAILORED for name in best)
    remark = f"first: {listed([f'`{name}`' for name in best])}"
    return Finding(f"{count} of 3", several(len(ours), "method"), count == 3, remark=remark)


def like_the_paper(benchmark: str) -> Finding | None:
    """Spearman's correlation of our means with the paper's, over the methods that it ranks."""
    paper, ours = papers_scores(benchmark, "main"), ranked_by_the_paper(benchmark)
    if len(ours) < 4:
        return None
    found = stats.spearmanr(list(ours.values()), [paper[name][0] for name in ours])
    rho, p = float(found.statistic), float(found.pvalue)
    text = f"ρ = {rho:+.2f}, p {'<' if p < 0.001 else '='} {max(p, 0.001):.3f}"
    return Finding(text, several(len(ours), "method"), rho > 0 and p < 0.05, rho >= 0.5)


def log_median(values: list[float]) -> float:
    """The logarithm of the median."""
    return math.log(float(np.median(values)))


def papers_run_time() -> float:
    """The paper's median tailored method over its median baseline, over its data sets."""
    minutes: dict[str, dict[str, float]] = {}
    for (name, variant, data), (minute, _) in paper_numbers("runtime").items():
        if not variant:
            minutes.setdefault(data, {})[name] = minute
    ratios = [
        log_median([times[name] for name in TAILORED if name in times])
        - log_median([times[name] for name in BASELINES if name in times])
        for times in minutes.values()
    ]
    return math.exp(float(np.mean(ratios)))


def run_time(benchmark: str) -> Finding | None:
    """How many times as long the median tailored method trains as the median baseline.

    A geometric mean, with its interval. The claim holds if it is no more than in the paper.
    """
    seconds = scores(rows_of("all_orders", benchmark), "seconds_of_training")
    ours, theirs = pooled(seconds, TAILORED, log_median), pooled(seconds, BASELINES, log_median)
    ratio = paired_difference(ours, theirs)
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    low, high = math.exp(ratio.low), math.exp(ratio.high)
    n, runs = extent(place for place in ours if place in theirs)
    text = f"{math.exp(ratio.mean):.2f} times [{low:.2f}, {high:.2f}]"
    return Finding(text, n, holds=math.exp(ratio.mean) <= papers_run_time(), runs=runs)


def robust(benchmark: str) -> Finding | None:
    """The share of the values of λ and β that change the score by less than 2 points.

    As strong as in the paper only if no value of the search's range does great harm.
    """
    changes = [
        change
        for by_value in changes_by_weight(benchmark, PENALISED).values()
        for change in by_value.values()
    ]
    if not changes:
        return None
    small = sum(abs(change.mean) < ALMOST_EQUAL for change in changes)
    worst = min(change.mean for change in changes)
    widest = max(changes, key=lambda change: change.runs)
    return Finding(
        f"{small} of {len(changes)} values, the worst {signed(worst)}",
        several(widest.units, widest.unit),
        holds=2 * small >= len(changes),
        strongly=worst > -GREAT_HARM,
        runs=several(widest.runs, "run"),
    )


def papers_lead(
    experiment: str, second: Sequence[str], first: Sequence[str] = tuple(TAILORED)
) -> float:
    """The lead of the first methods (their mean) in a table of the paper, over its data sets."""
    table = paper_numbers(experiment)
    leads = []
    for data in dict.fromkeys(data for _, _, data in table):
        ours, theirs = (
            [table[name, "", data][0] for name in methods if (name, "", data) in table]
            for methods in (first, second)
        )
        leads.append(fmean(ours) - fmean(theirs))
    return fmean(leads)


def on_scores(text: str, paper: str, expected: float, *groups: Sequence[str]) -> Claim:
    """A claim on groups of methods, which is also measured on covertype's natural target."""
    first, second = groups
    return Claim(
        text,
        paper,
        between(first, second, expected, usual()),
        beside=between(first, second, expected, usual(AS_IT_IS)),
    )


def in_domain(words: str, methods: Sequence[str]) -> Claim:
    """A claim on the sources' training rows, as the paper reports them."""
    lead = papers_lead("source", methods)
    text = f"on the sources, tailored methods beat {words}"
    return Claim(text, f"{lead:.1f}", between(TAILORED, methods, lead, usual(SOURCES)))


def under_change(text: str, experiment: str, name: str, second: Sequence[str], words: str) -> Claim:
    """A claim on some of the paper's comparators under a change; the others have not run here."""
    lead = papers_lead(experiment, second)
    measure = between(TAILORED, second, lead, changed(name), weakest=False)
    return Claim(f"{text}, tailored methods beat {words}", f"{lead:.1f}", measure, "ablations")


def ablation(text: str, settings: str, methods: Sequence[str]) -> Claim:
    """A claim that a part of the tailored methods helps."""
    beside = without(settings, methods, AS_IT_IS)
    return Claim(text, "> 0", without(settings, methods), "ablations", beside)


CLAIMS = (
    on_scores(
        "tailored methods beat optimisation baselines", "6", 6, TAILORED, group("optimization")
    ),
    on_scores(
        "tailored methods beat regularisation baselines",
        "10",
        10,
        TAILORED,
        group("regularization"),
    ),
    on_scores("tailored methods beat replay baselines", "2", 2, TAILORED, REPLAY),
    Claim("methods rank as in the paper's main table", "ρ = 1", like_the_paper),
    Claim("tailored methods take the first three places", "3 of 3", first_places),
    on_scores(
        "tailored methods beat adaptation to the target",
        "up to 10",
        10,
        TAILORED,
        group("adaptation"),
    ),
    on_scores("naive forms beat fine-tuning slightly", "about 3", 3, group("naive"), ["finetune"]),
    on_scores("tailored methods beat their naive forms", "about 10", 10, TAILORED, group("naive")),
    Claim(
        "AGEM, ER-ACE and SI beat the naive forms",
        f"{papers_lead('naive', group('naive'), NAIVES_RIVALS):.1f}",
        between(
            NAIVES_RIVALS,
            group("naive"),
            papers_lead("naive", group("naive"), NAIVES_RIVALS),
            usual(),
        ),
    ),
    in_domain("fine-tuning", ["finetune"]),
    in_domain("optimisation baselines", group("optimization")),
    in_domain("regularisation baselines", group("regularization")),
    in_domain("replay baselines", REPLAY),
    ablation("alignment helps", '{"alignment_weight": 0.0}', TAILORED),
    ablation("static priors are better than dynamic ones", '{"priors": "dynamic"}', PENALISED),
    *(
        under_change(text, experiment, name, STRONG, "FDR and ER-ACE")
        for text, (experiment, name) in CHANGES.items()
    ),
    *(
        under_change(text, experiment, name, ["finetune"], "fine-tuning")
        for text, (experiment, name) in list(CHANGES.items())[2:]
    ),
    Claim(
        "backward transfer of tailored methods is not negative", ">= 0", transfer, page="transfer"
    ),
    Claim(
        "tailored methods are robust to λ and β", "often less than 2", robust, page="sensitivity"
    ),
    Claim(
        "tailored methods train no longer than in the paper, relative to the baselines",
        f"{papers_run_time():.2f} times",
        run_time,
        page="run-time",
    ),
)
# What the paper reports and no committed run can judge, and what it needs.
NOT_RUN = {
    "the four image data sets, and first places over all six": "a GPU, ImageNet weights, "
    "TinyImageNet-C and Camelyon17; [stand-in weights](reproduction/images.md) allow no verdict, "
    "[a frozen backbone](reproduction/frozen.md) has verdicts of its own",
    "the search of the paper in one fixed order": "20 trials for 3 seeds of every method on both "
    "data sets ([how long on covertype](#the-tables)); with drawn orders it [has run on "
    "covertype](reproduction/search.md)",
    "with less memory, against STAR": "its runs in the experiment `orders_ablated`",
    "with half the steps or another target, against AGEM, UPGD, EWC, SI and STAR": "their runs in "
    "the experiment `orders_ablated`",
    "adaptation to the target and the joint upper bound under the search": "20 trials for 3 seeds "
    "of `tent`, `shot++`, `cotta` and `urm` on both data sets (`adaptation`, `paper_protocol`); "
    "`urm` [has run on covertype](reproduction/search.md)",
    "robust to λ and β on WM811K": "experiment `sensitivity` on wm811k (a GPU)",
    "time of a step as sources are added": "experiment `step_time` on the extended data sets (a "
    "GPU)",
    "feature spaces overlap (UMAP)": "experiment `feature_space` on RotatedMNIST and Camelyon17, "
    "after the search of `main`; [covertype at default settings](reproduction/features.md) has run",
}


def verdict(findings: Sequence[Finding]) -> str:
    """Reproduced, partly or not, by the rule that the page states."""
    if not findings:
        return "not run"
    both = len(findings) == len(BENCHMARKS)
    if both and all(found.holds and found.strongly for found in findings):
        return "**reproduced**"
    if any(found.holds for found in findings):
        return "**partly**"
    return "**not reproduced**" if both else "**open**"


def judged(claim: Claim) -> tuple[list[Finding | None], str]:
    """Our findings by data set, and the verdict on them."""
    findings = [claim.measure(benchmark) for benchmark in BENCHMARKS]
    return findings, verdict([found for found in findings if found is not None])


def verdicts_section() -> str:
    """One row per claim of the paper: its number, ours with unit and n, and the verdict."""
    rows, verdicts = [], Counter[str]()
    for claim in CLAIMS:
        findings, words = judged(claim)
        verdicts[words.strip("*")] += 1
        cells = [f"{each.text}, {each.n}" if each is not None else "not run" for each in findings]
        rows.append([f"[{claim.text}](reproduction/{claim.page}.md)", claim.paper, *cells, words])
    for text, needs in NOT_RUN.items():
        rows.append([text, "", "", "", f"not run: needs {needs}"])
    counts = ", ".join(f"{count} {name}" for name, count in verdicts.most_common())
    header = ["claim", "paper", *BENCHMARKS, "verdict"]
    return f"Of {len(CLAIMS)} claims: {counts}.\n\n" + markdown(header, rows)


def claims_section() -> str:
    """What stands behind each verdict: the runs, the weakest method left out, another target."""
    rows = []
    made = {
        (name, benchmark): f"`{name}`: {'; '.join(provenance(rows_of(name, benchmark)))} s"
        for name in set(RUNS_BEHIND.values())
        for benchmark in BENCHMARKS
    }
    for claim in CLAIMS:
        beside = claim.beside("covertype") if claim.beside is not None else None
        natural = f"{beside.text}; {beside.remark}".rstrip("; ") if beside is not None else "-"
        for benchmark, found in zip(BENCHMARKS, judged(claim)[0], strict=True):
            if found is not None:
                runs = ", ".join(filter(None, [found.n, found.runs]))
                last = natural if benchmark == "covertype" else "-"
                cells = [claim.text, benchmark, found.text, runs, found.remark or "-", last]
                rows.append([*cells, made[RUNS_BEHIND[claim.page], benchmark]])
    header = ["claim", "data set", "ours", "over", "also", "with the natural target"]
    return markdown([*header, "experiment: code; PyTorch, device; seconds of a run"], rows)
