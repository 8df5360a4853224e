"""Compute the prior Φ_e of a finished domain from its rows, by the current model."""

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from ..data.domain import Rows
from ..invariance.invariance import Invariance, Statistic
from ..invariance.running import RunningMean
from ..networks.network import EVALUATION_ROWS, Network

# Batches whose statistics are computed at once: as many as have fewer entries than this, if a
# statistic has as many as the classifier.
LARGEST_STATISTICS = 1 << 22


def compute_prior(
    invariance: Invariance,
    network: Network,
    rows: Rows,
    order: Tensor,
    *,
    level: Literal["batch", "domain"],
    batch_size: int,
) -> Statistic:
    """Φ of a domain by the current model in evaluation mode, over its rows in this random order.

    level `batch`: the mean of the statistic over batches of `batch_size` rows; rows that do not
    fill the last batch are ignored, unless it is the only one. level `domain`: the statistic of all
    rows at once. The two are the same if the statistic is a mean over rows.
    """
    if level == "domain":
        exact = invariance.domain_prior(_outputs(network, rows, order, EVALUATION_ROWS))
        if exact is not None:
            return exact
        batch_size = 1
    size = min(batch_size, len(rows))
    mean = RunningMean()
    entries = network.classes * network.feature_dim
    at_once = max(1, min(EVALUATION_ROWS // size, LARGEST_STATISTICS // entries))
    for features, logits, labels in _outputs(
        network, rows, order[: len(order) // size * size], size * at_once
    ):
        parts = len(labels) // size
        tensors = (features, logits, labels)
        batches = [tensor.reshape(parts, size, *tensor.shape[1:]) for tensor in tensors]
        mean.add(invariance.statistic(*batches), len(labels))
    return mean.result()


def domain_features(network: Network, rows: Rows) -> Tensor:
    """Features of all rows by the current model in evaluation mode."""
    order = torch.arange(len(rows), device=rows.index.device)
    outputs = _outputs(network, rows, order, EVALUATION_ROWS)
    return torch.cat([features for features, _, _ in outputs])


@torch.no_grad()
def _outputs(
    network: Network, rows: Rows, order: Tensor, size: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Features, logits and labels of the rows, `size` at a time."""
    network.eval()
    device = next(network.parameters()).device
    for part in order.split(size):
        inputs, labels = rows.take(part)
        features = network.extract(inputs.to(device))
        yield features, network.classifier(features), labels.to(device)


def class_sums(vectors: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Sum of the vectors [classes, D] and number of rows [classes] per class."""
    members = (labels[:, None] == torch.arange(classes, device=labels.device)).to(vectors.dtype)
    return members.T @ vectors, members.sum(dim=0)
