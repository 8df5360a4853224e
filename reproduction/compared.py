"""What the pages compare: data sets, and groups of methods."""

from __future__ import annotations

from farshore.runs import catalog
from reproduction.paper.scores import paper_numbers

BENCHMARKS = ("rotated-mnist", "covertype")


def group(*names: str) -> list[str]:
    """The methods of these groups."""
    groups = catalog.grouped()
    return [kind.name for name in names for kind in groups[name]]


TAILORED = group("tailored")
# Those with a penalty: cl-andmask masks gradients instead.
PENALISED = [name for name in TAILORED if name != "cl-andmask"]
# Every method with a number in the paper; er, er-kd, der++, evos and groupdro have none.
PAPERS = {method for method, _, _ in paper_numbers("compare")}
REPLAY = [name for name in group("replay", "latent-replay") if name in PAPERS]
BASELINES = [*group("optimization", "regularization"), *REPLAY]
# Every method, in the order in which tables list them.
METHODS = catalog.names()
