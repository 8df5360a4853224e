"""What the pages compare: data sets, and groups of methods."""

from __future__ import annotations

from farshore.report.paper.methods import paper_methods
from farshore.runs import catalog

BENCHMARKS = ("rotated-mnist", "covertype")


def group(*names: str) -> list[str]:
    """The methods of these groups."""
    groups = catalog.grouped()
    return [kind.name for name in names for kind in groups[name]]


TAILORED = group("tailored")
# Those with a penalty: cl-andmask masks gradients instead.
PENALISED = [name for name in TAILORED if name != "cl-andmask"]
# The paper's replay baselines; er, er-kd and der++ are not among them.
REPLAY = [name for name in group("replay", "latent-replay") if name in paper_methods()]
BASELINES = [*group("optimization", "regularization"), *REPLAY]
# Every method, in the order in which tables list them.
METHODS = catalog.names()
