"""Whether more rows per site would help, measured with a quick classifier.

Training every candidate again on fewer rows would double the cost of an audit. A linear
discriminant with shrinkage stands for them: at every left-out site, its score when trained on all
rows of the other sites, minus the mean score when trained on half of them, over several halves.
The difference is what the last doubling of rows brought: the best guess of what the next brings.
"""

from __future__ import annotations

import numpy as np

from ..base.randomness import derive
from ..deployment.unlike import SiteRows
from ..results.summary import Difference, Place, Unit, difference
from ..tasks.metrics import METRICS

HALVES = 4
ACCURACY = METRICS["accuracy"]


def gain_of_rows(sites: SiteRows, judged: list[str], seed: int = 0) -> Difference | None:
    """The gain in accuracy from twice as many rows per site, paired over the left-out sites."""
    whole: dict[Place, float] = {}
    halved: dict[Place, float] = {}
    for site in judged:
        others = [name for name in sites.inputs if name != site]
        for number in range(HALVES):
            draws = np.random.default_rng(derive(seed, "audit", "halves", site, number))
            halves = {
                name: np.sort(draws.permutation(len(sites.labels[name]))[::2]) for name in others
            }
            full = {name: np.arange(len(sites.labels[name])) for name in others}
            first, second = (_score(sites, site, rows) for rows in (full, halves))
            if first is not None and second is not None:
                place = "", site, "", "", number
                whole[place], halved[place] = first, second
    return difference(whole, halved, Unit.TARGET, ACCURACY)


def _score(sites: SiteRows, site: str, rows: dict[str, np.ndarray]) -> float | None:
    """Accuracy at a site of a discriminant trained on these rows of the others."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    inputs = np.concatenate([sites.inputs[name][chosen] for name, chosen in rows.items()])
    labels = np.concatenate([sites.labels[name][chosen] for name, chosen in rows.items()])
    if len(np.unique(labels)) < 2:
        return None
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(inputs, labels)
    return float((model.predict(sites.inputs[site]) == sites.labels[site]).mean())
