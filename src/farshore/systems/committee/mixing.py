"""How the predictions of a committee's members are mixed: temperatures, weights, and their loss.

Of classes it is the log loss of the mean probability, of numbers the Gaussian log loss of the mean.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, pairwise

import torch
from torch import Tensor, nn

from ...tasks.classification import CLASSIFICATION
from ...tasks.task import Task

# The temperature of members that are not calibrated is chosen from these.
TEMPERATURES = tuple(2 ** (exponent / 2) for exponent in range(-2, 9))
# The members' weights are multiples of 1/12: equal weights are among them for up to four members.
PARTS = 12
TINY = 1e-30
# Of numbers, the deviation of a residual is a temperature times this, in deviations of the label.
RESIDUAL = 1 / 8
# Metrics under which every class counts the same, however many rows it has.
BALANCED_METRICS = ("balanced_accuracy", "macro_f1")


class AverageOfMembers(nn.Module):
    """The logarithm of the weighted mean probability, or the weighted mean number."""

    temperatures: Tensor
    weights: Tensor

    def __init__(
        self,
        members: Sequence[nn.Module],
        temperatures: Sequence[float],
        weights: Sequence[float],
        task: Task = CLASSIFICATION,
    ) -> None:
        super().__init__()
        self.average = task.either(average, mean_number)
        self.members = nn.ModuleList(members)
        self.register_buffer("temperatures", torch.tensor(temperatures))
        self.register_buffer("weights", torch.tensor(weights))

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [n, classes], normalised."""
        logits = [member(inputs) for member in self.members]
        return self.average(logits, list(self.temperatures), self.weights)


def average(
    logits: Sequence[Tensor], temperatures: Sequence[float | Tensor], weights: Tensor
) -> Tensor:
    """log Σ_k w_k softmax(h_k / T_k), computed without underflow."""
    pairs = zip(logits, temperatures, strict=True)
    stacked = torch.stack([(each.float() / heat).log_softmax(dim=1) for each, heat in pairs])
    return torch.logsumexp(stacked + weights.clamp_min(TINY).log()[:, None, None], dim=0)


def mean_number(
    outputs: Sequence[Tensor], temperatures: Sequence[float | Tensor], weights: Tensor
) -> Tensor:
    """Σ_k w_k z_k: the mean of the members' numbers, whatever the temperature is."""
    return torch.einsum("k,knc->nc", weights, torch.stack([each.float() for each in outputs]))


def number_losses(
    outputs: Sequence[Tensor | None], labels: Tensor, heated: Sequence[bool], shares: Tensor
) -> Tensor:
    """The Gaussian log loss [t, w] of the mean number at every deviation and weight.

    With m = Σ_k w_k z_k it is Σ_rows share · (log σ + (y - m)² / 2 σ²), up to a constant, mean over
    the labels, for σ = T / 8. A member that was dropped says 0; its weight is not chosen.
    """
    known = [torch.zeros_like(labels) if each is None else each for each in outputs]
    errors = torch.stack([(each - labels).double() for each in known])
    weights = possible_weights(len(known)).to(shares.device)
    # Σ_k w_k = 1, so the error of the mean is the mean of the errors.
    products = torch.einsum("n,knc,lnc->kl", shares, errors, errors) / labels.shape[1]
    squares = torch.einsum("wk,kl,wl->w", weights, products, weights)
    sigma = RESIDUAL * torch.tensor(TEMPERATURES, dtype=torch.float64, device=shares.device)
    return (sigma.log()[:, None] + squares / (2 * sigma.square()[:, None])).cpu()


def class_losses(
    logits: Sequence[Tensor | None], labels: Tensor, heated: Sequence[bool], shares: Tensor
) -> Tensor:
    """The log loss [t, w] at every temperature and weight; T applies to members that are `heated`.

    A member that was dropped says nothing, and its weight is 0.
    """
    nothing = torch.full((len(labels),), -torch.inf, dtype=torch.float64, device=labels.device)
    likelihoods = [
        [
            nothing if each is None else log_likelihood(each, labels, heat if hot else 1.0)
            for each, hot in zip(logits, heated, strict=True)
        ]
        for heat in TEMPERATURES
    ]
    return losses(likelihoods, shares)


def log_likelihood(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """log softmax(h / T) of each row's label, [n], in double precision."""
    own = torch.arange(len(labels), device=labels.device)
    return (logits.double() / temperature).log_softmax(dim=1)[own, labels]


def row_weights(labels: Tensor, metric: str, weights: Tensor | None = None) -> Tensor:
    """The share of each row in the loss, [n]: equal, or equal per class if the metric is.

    weights: how much a row counts beside.
    """
    shares = torch.ones(len(labels), dtype=torch.float64, device=labels.device)
    if weights is not None:
        shares = weights.double().to(labels.device)
    if metric in BALANCED_METRICS:
        of_class = torch.zeros(int(labels.max()) + 1, dtype=torch.float64, device=labels.device)
        shares = shares / of_class.index_add(0, labels, shares)[labels].clamp_min(TINY)
    return shares / shares.sum().clamp_min(TINY)


@cache
def possible_weights(members: int) -> Tensor:
    """All weights [w, members] that are multiples of 1/12 and sum to 1, in double precision."""
    walls = combinations(range(PARTS + members - 1), members - 1)
    ends = [(-1, *each, PARTS + members - 1) for each in walls]
    shares = [[right - left - 1 for left, right in pairwise(each)] for each in ends]
    return torch.tensor(shares, dtype=torch.float64) / PARTS


def losses(likelihoods: Sequence[Sequence[Tensor]], shares: Tensor) -> Tensor:
    """The mean log loss [t, w] of the average at every temperature and weight.

    likelihoods: by temperature and member, the log-likelihood of each row, [n].
    shares: of the rows in the mean, [n].
    """
    weights = possible_weights(len(likelihoods[0])).to(shares.device)
    by_temperature = [
        -((weights @ torch.stack(list(of_members)).exp()).clamp_min_(TINY).log_() @ shares)
        for of_members in likelihoods
    ]
    return torch.stack(by_temperature).cpu()


def entropy(weights: Tensor) -> Tensor:
    """H(w) = -Σ_k w_k log w_k for weights [w, members]; at most log of the number of members."""
    return -(weights * weights.clamp_min(TINY).log()).sum(dim=1)


def choose(
    measured: Sequence[Tensor], counts: Sequence[float], evenness: float, absent: Sequence[int] = ()
) -> tuple[float, Tensor]:
    """The temperature and the weights [members] with the least penalised mean loss.

    measured: the losses [t, w] on each domain; counts: how much each domain counts.
    absent: the numbers of members that have been dropped, whose weight is 0.
    """
    members = next(k for k in range(1, 9) if len(possible_weights(k)) == measured[0].shape[1])
    weights = possible_weights(members)
    shares = torch.tensor(counts, dtype=torch.float64)
    loss = torch.einsum("e,etw->tw", shares / shares.sum(), torch.stack(list(measured)))
    penalised = loss - evenness * entropy(weights)
    penalised[:, (weights[:, list(absent)] > 0).any(dim=1)] = torch.inf
    temperature, chosen = divmod(int(penalised.argmin()), len(weights))
    return TEMPERATURES[temperature], weights[chosen]
