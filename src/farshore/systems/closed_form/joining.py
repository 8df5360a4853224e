"""What must be the same for sums to be added up, and which sums would give rows away."""

from collections.abc import Mapping

import torch
from torch import Tensor

from .entry import ClosedForm
from .predictor import Predictor

# Features of these inputs are compared, which everybody has: rows of no site.
PROBES = 4
# Rounding differs between processors; another way to compute features differs by more.
TOLERANCE = 1e-4
# Sums of fewer rows of a class are nearly the rows themselves.
FEWEST_OF_CLASS = 5

# Of each domain: how many rows of each class were summed, and the features of the probes.
Origin = dict[str, Tensor]


def origin(model: Predictor, shape: tuple[int, ...], dtype: torch.dtype, tally: Tensor) -> Origin:
    """What is kept of how a domain was summed; `tally`: its rows by class."""
    return {"rows": tally, "probe": probe(model, shape, dtype)}


def probe(model: Predictor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Two weighted sums of the features of each probe, in float64: another library, other sums."""
    counting = torch.arange(PROBES * torch.Size(shape).numel()) * 37
    bytes_like = (counting % 256).reshape(PROBES, *shape)
    inputs = bytes_like.to(dtype) if dtype == torch.uint8 else bytes_like.to(dtype) / 255
    features = model.extract(inputs.to(model.weight.device)).double().cpu()
    places = torch.arange(features.shape[1], dtype=torch.float64)
    weights = torch.stack([torch.ones_like(places), (places + 1).sin()], dim=1)
    return features @ weights / len(places)


def origin_form(classes: int) -> dict[str, Tensor]:
    """What an origin looks like, for the check of a state."""
    rows = torch.zeros(classes, dtype=torch.int64)
    return {"rows": rows, "probe": torch.zeros(PROBES, 2, dtype=torch.float64)}


def other_features(first: Mapping[str, Origin], second: Mapping[str, Origin]) -> str | None:
    """How the features differ from which the domains of two systems were summed, if they do."""
    known = next(iter(first.values()), None)
    for name, other in {**first, **second}.items():
        if known is None:
            return None
        scale = float(known["probe"].abs().max())
        if not torch.allclose(known["probe"], other["probe"], TOLERANCE, TOLERANCE * scale):
            return (
                f"the features of {name!r} were computed in another way, for example by another "
                "version of a library: the same input gives other features"
            )
    return None


def too_few_rows(entry: ClosedForm, width: int, origins: Mapping[str, Origin]) -> dict[str, str]:
    """By domain, why its sums nearly are its rows."""
    reasons = {}
    for name, kept in origins.items():
        counts = kept["rows"]
        present = counts[counts > 0]
        if entry.level == "counts":
            continue
        if int(counts.sum()) < width:
            few = f"fewer than their {width} features"
            reasons[name] = f"its sums are over {int(counts.sum())} training rows, {few}"
        elif len(present) and int(present.min()) < FEWEST_OF_CLASS:
            few = f"a class has only {int(present.min())} training rows"
            reasons[name] = f"{few}, and its sum is kept"
    return reasons
