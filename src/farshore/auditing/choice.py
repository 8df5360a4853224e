"""Which method to use, chosen without the site where it is scored.

The recommended method is chosen unless another one is certainly better: the 95% interval of their
paired difference over sites excludes zero. Few sites rank methods badly, and a weaker rule changes
the method by chance more often than for a reason (`bench/audit_choice.py`). To measure how good
this rule is, it is also applied without each site: it sees only the runs in which that site was
left out, where the model of every stage is scored on the sources that it has not learned yet. The
chosen method is then scored at the site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..base.randomness import derive
from ..results.over_units import Scores, paired_difference
from ..runs.result import Result

RESAMPLES = 1000
# Method -> (site,) -> run -> score.
ByMethod = Mapping[str, Scores]


@dataclass(frozen=True)
class Choice:
    """The method to use.

    ties: methods that are not certainly worse.
    certainty: the share of resampled sets of sites for which the same method is chosen.
    without: for each site, the method that is chosen without it.
    """

    method: str
    ties: tuple[str, ...]
    certainty: float
    without: dict[str, str]


def choose(scores: ByMethod, preferred: str) -> str:
    """The preferred method, or the best of those that are clearly better."""
    means = {method: _mean(of_method) for method, of_method in scores.items() if of_method}
    if preferred not in means:
        return max(means, key=lambda method: means[method])
    better = {
        method: means[method]
        for method in means
        if method != preferred and _clearly(scores[method], scores[preferred])
    }
    return max(better, key=lambda method: better[method]) if better else preferred


def make_choice(scores: ByMethod, early: Mapping[str, ByMethod], preferred: str) -> Choice:
    """Choose by the scores at left-out sites.

    early: for each site, the scores of early stages at other sites, from runs without the site.
    """
    chosen = choose(scores, preferred)
    ties = [
        method
        for method in scores
        if method != chosen and not _clearly(scores[chosen], scores[method])
    ]
    ties.sort(key=lambda method: -_mean(scores[method]))
    sites = sorted({site for of_method in scores.values() for site in of_method})
    draws = np.random.default_rng(derive(0, "audit", "choice"))
    hits = 0
    for _ in range(RESAMPLES):
        drawn = [sites[number] for number in draws.integers(0, len(sites), len(sites))]
        hits += choose(_resampled(scores, drawn), preferred) == chosen
    return Choice(
        chosen,
        tuple(ties),
        hits / RESAMPLES,
        {site: choose(of_site, preferred) for site, of_site in early.items() if of_site},
    )


def early_scores(
    results: Sequence[Result],
) -> dict[str, dict[str, dict[tuple[str, ...], dict[object, float]]]]:
    """For each left-out site and method: scores of unfinished models at sources not yet learned.

    All of them come from runs that never saw the site.
    """
    early: dict[str, dict[str, dict[tuple[str, ...], dict[object, float]]]] = {}
    for result in results:
        if result.target is None:
            continue
        of_method = early.setdefault(result.target.name, {}).setdefault(result.run.method, {})
        for stage, row in enumerate(result.matrices["train"][:-1]):
            for place in range(stage + 1, len(result.sources)):
                of_source = of_method.setdefault((result.sources[place],), {})
                of_source[tuple(result.sources), result.run.seed, stage] = row[place]
    return early


def _mean(scores: Scores) -> float:
    return float(np.mean([np.mean(list(of_site.values())) for of_site in scores.values()]))


def _clearly(first: Scores, second: Scores) -> bool:
    """Whether the first is better, and the interval of the paired difference excludes zero."""
    difference = paired_difference(first, second)
    return difference is not None and difference.certain and difference.mean > 0


def _resampled(
    scores: ByMethod, sites: Sequence[tuple[str, ...]]
) -> dict[str, dict[tuple[str, ...], Mapping[object, float]]]:
    """The scores at these sites; a site that is drawn twice counts twice."""
    return {
        method: {
            (*site, str(number)): of_method[site]
            for number, site in enumerate(sites)
            if site in of_method
        }
        for method, of_method in scores.items()
    }
