"""EWC in its online form: a quadratic penalty on moving weights that mattered for past domains."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ..base.forms import Maybe
from ..data.batch import Batch
from ..data.domain import Rows
from ..networks.network import EVALUATION_ROWS, Network
from ..settings import Choice, MethodSettings, setting
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task
from .finetune import Finetune
from .gradient import flat, trainable
from .method import Terms

FisherKind = Literal["weighted", "empirical"]
# Per-row gradients are computed for as many rows at once as fit into this many numbers.
LARGEST_BLOCK = 2**25


class EWCSettings(MethodSettings):
    """λ 10, {0.1, 1, 5, 10, 30, 90, 100}; γ 0.9, {0.8, 0.9, 1}: the paper's table."""

    penalty_weight: float = setting(
        10.0,
        Choice((0.1, 1.0, 5.0, 10.0, 30.0, 90.0, 100.0)),
        ge=0,
        help="λ, weight of the penalty",
    )
    decay: float = setting(
        0.9,
        Choice((0.8, 0.9, 1.0)),
        ge=0,
        le=1,
        help="γ, decay of older Fisher information per domain",
    )
    fisher: FisherKind = setting(
        "weighted",
        help="squared gradients weighted by p(y|x) (Mammoth), or unweighted (empirical Fisher)",
    )


class EWC(Finetune):
    """Penalise changing a weight, the more the likelihood of past domains depends on it.

    Equation: L_ERM(D_s) + λ Σ_i F_i (θ_i - θ*_i)², θ* the weights when the last domain ended; at
    the end of domain s F <- γ F + 1/n Σ_n p(y_n|x_n) (∂ log p(y_n|x_n) / ∂θ)², squared row by row
    before the mean.
    Paper: Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017;
    with one decaying F as in Schwarz et al., "Progress & Compress", ICML 2018.

    λ and γ: the paper's table. Its range of λ fits the scaling of Mammoth's `ewc_on`, which is used
    here: no factor 1/2 (λ = 1 is the textbook's λ = 2), true labels, and the factor p;
    `fisher=empirical` omits p. The Fisher pass runs in evaluation mode, so that BatchNorm neither
    sees single rows nor changes (Mammoth uses training mode). F is a sum over domains, so no domain
    can be removed from it afterwards.
    """

    name = "ewc"
    group = "regularization"
    reference = "Kirkpatrick et al., PNAS 2017, arXiv:1612.00796; Schwarz et al., ICML 2018"
    weighs_rows = False
    grows = False
    Settings: ClassVar[type[MethodSettings]] = EWCSettings
    settings: EWCSettings
    remembers = ("fisher",)  # between two domains θ* is the current weights
    reduces_to = ("finetune", {"penalty_weight": 0})

    def setup(self) -> None:
        """Start without Fisher information."""
        self.parameters = trainable(self.network)
        self.fisher: Tensor | None = None

    def before_domain(self, domain: str) -> None:
        """Record θ*: training continues where the last domain ended."""
        self.anchor = flat(parameter.detach() for parameter in self.parameters)

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ for the penalty."""
        return {"penalty": self.settings.penalty_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm`, and from the second domain on `penalty`. A penalty of weight 0 is not computed."""
        terms = super().terms(batch)
        if self.fisher is not None and self.settings.penalty_weight:
            terms["penalty"] = spring(self.fisher, flat(self.parameters), self.anchor)
        return terms

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Add the finished domain's Fisher information."""
        if not self.settings.penalty_weight:
            return
        order = torch.randperm(len(rows), generator=self.generator, device=self.generator.device)
        new = fisher_information(self.network, rows, order, self.settings.fisher, self.task)
        self.fisher = new if self.fisher is None else self.settings.decay * self.fisher + new

    def state_form(self) -> Any:
        """F has an entry per trainable weight."""
        return {"fisher": Maybe(flat(self.parameters).detach())}


def spring(strength: Tensor, weights: Tensor, anchor: Tensor) -> Tensor:
    """Σ_i strength_i (weights_i - anchor_i)²."""
    return (strength * (weights - anchor).square()).sum()


def fisher_information(
    network: Network, rows: Rows, order: Tensor, kind: FisherKind, task: Task = CLASSIFICATION
) -> Tensor:
    """The mean of the ordered rows' Fisher information, as one vector over the parameters.

    A task says what it is: Σ w (∇a)² over its `fisher_parts`, for classes [p_n] (∇ log p_n)².

    Only trainable parameters count; the network is in evaluation mode. If all of them belong to
    linear layers, no gradient of a single row is computed.
    """
    network.eval()
    parameters = {name: value for name, value in network.named_parameters() if value.requires_grad}
    layers = [each for each in network.modules() if type(each) is nn.Linear and trainable(each)]
    owned = {id(value) for layer in layers for value in layer.parameters()}
    linear = all(id(value) in owned for value in parameters.values())
    count = sum(value.numel() for value in parameters.values())
    total = {name: torch.zeros_like(value) for name, value in parameters.items()}
    device = next(iter(total.values())).device
    for part in order.split(EVALUATION_ROWS if linear else max(1, LARGEST_BLOCK // count)):
        inputs, labels = (values.to(device) for values in rows.take(part))
        given = (network, task, inputs, labels, kind == "weighted")
        sums = _by_layer(layers, *given) if linear else None
        if sums is None:
            sums = _row_by_row(parameters, *given)
        for name, value in parameters.items():
            total[name] += sums[value] / len(order)
    return flat(total.values())


def _by_layer(
    layers: Sequence[nn.Linear],
    network: Network,
    task: Task,
    inputs: Tensor,
    labels: Tensor,
    weighted: bool,
) -> dict[Tensor, Tensor] | None:
    """Σ_n w_n (g_no a_ni)² = (w·g²)ᵀ a² of linear layers: a their inputs, g the outputs' gradients.

    Returns None if a layer is used more than once, or on something other than one vector per row.
    """
    seen: list[tuple[nn.Linear, Tensor, Tensor]] = []

    def record(layer: nn.Linear, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        seen.append((layer, given[0].detach(), output))
        return output.clone()  # a ReLU may work in place

    hooks = [layer.register_forward_hook(record) for layer in layers]
    try:
        with torch.enable_grad():
            parts = task.fisher_parts(network(inputs), labels, weighted=weighted)
    finally:
        for hook in hooks:
            hook.remove()
    shapes = {(output.ndim, len(output)) for _, _, output in seen}
    if len(seen) != len(layers) or shapes != {(2, len(labels))}:
        return None
    sums: dict[Tensor, Tensor] = {}
    for number, (value, weight) in enumerate(parts):
        outputs = [output for *_, output in seen]
        gradients = torch.autograd.grad(value.sum(), outputs, retain_graph=number + 1 < len(parts))
        for (layer, given, _), gradient in zip(seen, gradients, strict=True):
            squared = weight[:, None] * gradient.square()
            _add(sums, layer.weight, squared.T @ given.square())
            if layer.bias is not None:
                _add(sums, layer.bias, squared.sum(0))
    return sums


def _row_by_row(
    parameters: Mapping[str, Tensor],
    network: Network,
    task: Task,
    inputs: Tensor,
    labels: Tensor,
    weighted: bool,
) -> dict[Tensor, Tensor]:
    """Σ_n w_n (∇a_n)² from the gradient of every row."""

    def part(
        values: dict[str, Tensor], row: Tensor, label: Tensor, number: int
    ) -> tuple[Tensor, Tensor]:
        outputs = functional_call(network, values, (row[None],))
        value, weight = task.fisher_parts(outputs, label[None], weighted=weighted)[number]
        return value[0], weight[0]

    values = {name: value.detach() for name, value in parameters.items()}
    with torch.no_grad():
        count = len(task.fisher_parts(network(inputs[:1]), labels[:1], weighted=weighted))
    sums: dict[Tensor, Tensor] = {}
    for number in range(count):
        by_row = vmap(grad(part, has_aux=True), (None, 0, 0, None))
        gradients, weight = by_row(values, inputs, labels, number)
        for name, gradient in gradients.items():
            _add(sums, parameters[name], torch.tensordot(weight, gradient.square(), dims=1))
    return sums


def _add(sums: dict[Tensor, Tensor], parameter: Tensor, value: Tensor) -> None:
    sums[parameter] = sums[parameter] + value if parameter in sums else value
