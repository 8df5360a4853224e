"""The paper's claims, each with our measurement and a verdict, for docs/reproduction.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reproduction.arithmetic import (
    Difference,
    Scores,
    above_zero,
    enough,
    mean,
    paired_difference,
    pooled,
    scores,
)
from reproduction.compared import BASELINES, BENCHMARKS, PENALISED, REPLAY, TAILORED, group
from reproduction.finished_runs import AS_IT_IS, SCORE, rows_of
from reproduction.formatting import interval, markdown, several, signed
from reproduction.paper.scores import paper_numbers
from reproduction.sections.sensitivity import ALMOST_EQUAL, GREAT_HARM, changes_by_weight


@dataclass(frozen=True)
class Finding:
    """What we found on one data set: whether the claim holds, and as strongly as in the paper."""

    text: str
    holds: bool
    strongly: bool = True


class Measure(Protocol):
    """Measures a claim on scores, by one column of a data set's table."""

    def __call__(self, benchmark: str, column: str = SCORE) -> Finding | None:
        """What we found; None if it was not run."""
        ...


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, its number there, and how to measure it on a data set.

    beside: measures a claim on scores by those on covertype's natural target, for comparison.
    """

    text: str
    paper: str
    measure: Callable[[str], Finding | None]
    beside: Callable[[str], Finding | None] | None = None


def larger(
    difference: Difference | None,
    expected: float,
    robust: Difference | None = None,
    words: str = "",
) -> Finding | None:
    """The claim that a difference is above zero, and about as large as in the paper.

    robust: the difference that must be above zero, too, and `words` for what it leaves out.
    """
    if difference is None:
        return None
    text = f"{interval(difference)}, {difference.won} of {extent(difference)}"
    strongly = difference.mean >= expected / 2
    if robust is not None:
        text += f"; {words}: {interval(robust)}"
        strongly = strongly and above_zero(robust)
    return Finding(text, holds=above_zero(difference), strongly=strongly)


def extent(difference: Difference) -> str:
    """Over how many orders a difference was measured, and with how many seeds in each."""
    seeds = difference.runs // difference.units
    return f"{difference.units} orders, {several(seeds, 'seed')} each"


def between(first: Sequence[str], second: Sequence[str], expected: float) -> Measure:
    """The paired difference of two groups of methods over all orders.

    Also without the weakest method of the second group (of the first, if the second has only one),
    which may decide the mean.
    """

    def measure(benchmark: str, column: str = SCORE) -> Finding | None:
        by_method = scores(rows_of("all_orders", benchmark), column)
        weakest = weakest_of(by_method, second if len(second) > 1 else first)

        def compared(left_out: str = "") -> Difference | None:
            ours, theirs = (
                pooled(by_method, [name for name in methods if name != left_out])
                for methods in (first, second)
            )
            return paired_difference(ours, theirs)

        return larger(compared(), expected, compared(weakest), f"without `{weakest}`")

    return measure


def weakest_of(by_method: dict[str, Scores], methods: Iterable[str]) -> str:
    """The method with the lowest mean over orders; empty if none ran in enough of them."""
    ran = enough(by_method)
    return min(
        (name for name in methods if name in ran), key=lambda name: mean(ran[name]), default=""
    )


def without(settings: str, methods: Sequence[str]) -> Measure:
    """The default minus the ablation with these settings, in the same orders."""

    def measure(benchmark: str, column: str = SCORE) -> Finding | None:
        usual = scores(rows_of("all_orders", benchmark), column)
        ablated = scores(rows_of("orders_ablated", benchmark, settings), column)
        ours, theirs = pooled(usual, methods), pooled(ablated, methods)
        return larger(paired_difference(ours, theirs), 0) if ours and theirs else None

    return measure


def transfer(benchmark: str) -> Finding | None:
    """Backward transfer of the tailored methods: its interval does not lie below zero."""
    ours = pooled(scores(rows_of("all_orders", benchmark), "backward_transfer"), TAILORED)
    zero = {order: dict.fromkeys(seeds, 0.0) for order, seeds in ours.items()}
    difference = paired_difference(ours, zero)
    if difference is None:
        return None
    return Finding(
        f"{interval(difference)}, {difference.won} of {extent(difference)}",
        holds=difference.high is not None and difference.high >= 0,
    )


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

    A geometric mean over orders, with its interval. The claim holds if it is no more than in the
    paper.
    """
    seconds = scores(rows_of("all_orders", benchmark), "seconds_of_training")
    ours, theirs = pooled(seconds, TAILORED, log_median), pooled(seconds, BASELINES, log_median)
    ratio = paired_difference(ours, theirs)
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    low, high = math.exp(ratio.low), math.exp(ratio.high)
    return Finding(
        f"{math.exp(ratio.mean):.2f} times [{low:.2f}, {high:.2f}], {extent(ratio)}",
        holds=math.exp(ratio.mean) <= papers_run_time(),
    )


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
    widest = max(changes, key=lambda change: change.units)
    return Finding(
        f"{small} of {len(changes)} values, the worst {signed(worst)}; {extent(widest)}",
        holds=2 * small >= len(changes),
        strongly=worst > -GREAT_HARM,
    )


def on_scores(text: str, paper: str, measure: Measure) -> Claim:
    """A claim on scores, which is also measured on covertype's natural target."""
    return Claim(text, paper, measure, lambda benchmark: measure(benchmark, AS_IT_IS))


CLAIMS = (
    on_scores(
        "tailored methods beat optimisation baselines",
        "6",
        between(TAILORED, group("optimization"), 6),
    ),
    on_scores(
        "tailored methods beat regularisation baselines",
        "10",
        between(TAILORED, group("regularization"), 10),
    ),
    on_scores("tailored methods beat replay baselines", "2", between(TAILORED, REPLAY, 2)),
    on_scores(
        "tailored methods beat adaptation to the target",
        "up to 10",
        between(TAILORED, group("adaptation"), 10),
    ),
    on_scores(
        "naive forms beat fine-tuning slightly", "about 3", between(group("naive"), ["finetune"], 3)
    ),
    on_scores(
        "tailored methods beat their naive forms", "about 10", between(TAILORED, group("naive"), 10)
    ),
    on_scores("alignment helps", "> 0", without('{"alignment_weight": 0.0}', TAILORED)),
    on_scores(
        "static priors are better than dynamic ones",
        "> 0",
        without('{"priors": "dynamic"}', PENALISED),
    ),
    Claim("backward transfer of tailored methods is not negative", ">= 0", transfer),
    Claim("tailored methods are robust to λ and β", "often less than 2", robust),
    Claim(
        "tailored methods train no longer than in the paper, relative to the baselines",
        f"{papers_run_time():.2f} times",
        run_time,
    ),
)


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


def claims_section() -> str:
    """How many claims have which verdict, and one row per claim."""
    rows = []
    verdicts = Counter[str]()
    for claim in CLAIMS:
        findings = [claim.measure(benchmark) for benchmark in BENCHMARKS]
        judged = verdict([found for found in findings if found is not None])
        verdicts[judged.strip("*")] += 1
        beside = claim.beside("covertype") if claim.beside is not None else None
        rows.append(
            [
                claim.text,
                claim.paper,
                *(found.text if found is not None else "not run" for found in findings),
                judged,
                beside.text if beside is not None else "-",
            ]
        )
    counts = ", ".join(f"{count} {name}" for name, count in verdicts.most_common())
    ours = [f"ours, {name}" for name in BENCHMARKS]
    header = ["claim", "paper", *ours, "verdict", "covertype, natural target"]
    return f"Of {len(rows)} claims: {counts}.\n\n" + markdown(header, rows)
