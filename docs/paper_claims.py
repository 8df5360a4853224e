"""What the paper's own tables say about its claims, for docs/reproduction.md."""

from __future__ import annotations

from collections.abc import Sequence

from claims import BENCHMARKS, REPLAY, TAILORED, between, group, pooled, verdict
from covertype_rows import ROWS
from paper_scores import paper_numbers, papers_scores, printed
from protocol_tables import ABLATIONS, Ablation
from tidy_tables import rows_of, scores

from farshore.evaluation.over_units import paired_difference

# The groups of baselines that the paper compares with, each with the lead that it states.
GROUPS = {
    "optimisation": (group("optimization"), 6.0),
    "regularisation": (group("regularization"), 10.0),
    "replay": (REPLAY, 2.0),
}


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return sum(values) / len(values)


def average_scores() -> dict[str, float]:
    """The paper's scores by method: means over the data sets of its main table."""
    by_method: dict[str, list[float]] = {}
    for (name, _, _), (score, _) in paper_numbers("main").items():
        by_method.setdefault(name, []).append(score)
    return {name: mean(values) for name, values in by_method.items()}


def verdicts(leads: Sequence[float]) -> list[str]:
    """The verdicts on the three groups if the paper's leads are these."""
    judged = []
    for (methods, _), lead in zip(GROUPS.values(), leads, strict=True):
        found = [between(TAILORED, methods, lead)(benchmark) for benchmark in BENCHMARKS]
        judged.append(verdict([each for each in found if each is not None]))
    return judged


def leads_section() -> str:
    """How far the tailored methods are ahead in the paper's main table, by two measures."""
    scored = average_scores()
    leads = {
        pick: [
            pick([scored[name] for name in TAILORED]) - pick([scored[name] for name in methods])
            for methods, _ in GROUPS.values()
        ]
        for pick in (mean, max)
    }
    means, best = (listed([f"{lead:.1f}" for lead in found]) for found in leads.values())
    same = verdicts(leads[mean]) == verdicts([stated for _, stated in GROUPS.values()])
    paper = papers_scores("covertype", "main")
    theirs = mean([paper[name][0] for name in TAILORED]) - mean([paper[name][0] for name in REPLAY])
    by_method = scores(rows_of("all_orders", "covertype"))
    ours = paired_difference(pooled(by_method, TAILORED), pooled(by_method, REPLAY))
    assert ours is not None
    return (
        "In its main table, the mean of the tailored methods is ahead of the mean of the "
        f"{listed(list(GROUPS))} baselines by {means} points, and the best tailored method is "
        f"ahead of the best baseline of each group by {best} points. The verdicts "
        f"{'would be the same' if same else 'would differ'} with {means} points. On covertype "
        f"alone, the paper's lead over the replay baselines is {theirs:.1f} points; ours is "
        f"{ours.mean:.1f}.\n"
    )


def listed(words: Sequence[str]) -> str:
    """The words as they stand in a sentence."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


def papers_gain(ablation: Ablation, benchmark: str) -> float:
    """What the ablated part adds to the mean of the tailored methods in the paper's tables."""
    unchanged = papers_scores(benchmark, ablation.table, variant=ablation.variant)
    changed = papers_scores(benchmark, ablation.table)
    return mean([unchanged[name][0] - changed[name][0] for name in unchanged if name in changed])


def gains_section() -> str:
    """What alignment and static priors add to the tailored methods in the paper's tables."""
    first, second = BENCHMARKS
    (alignment, on_second), (priors, priors_on_second) = (
        [f"{papers_gain(each, name):.1f}" for name in BENCHMARKS] for each in ABLATIONS
    )
    return (
        f"In the paper's tables, alignment adds {alignment} points to the mean of these methods on "
        f"{first} and {on_second} on {second}. Static priors add {priors} and {priors_on_second} "
        "points.\n"
    )


def share_section() -> str:
    """The share of lodgepole pine in covertype's target as it is."""
    rows = ROWS["cache-la-poudre"]
    pine, total = rows["lodgepole-pine"], sum(rows.values())
    return (
        f"Of all rows of Cache la Poudre, {pine / total:.1%} are lodgepole pine ({pine:,} of "
        f"{total:,}), and in half of the orders these are almost the only rows that our fine-tuned "
        "model gets right.\n"
    )


def cope_section() -> str:
    """The paper's score of cope on covertype's sources."""
    score = printed(papers_scores("covertype", "source")["cope"])
    return (
        f"One more number does not fit at all: the paper reports {score} for `cope` on the "
        "sources, far below chance, so these runs probably failed.\n"
    )
