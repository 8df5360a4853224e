"""CL-ANDMask and Naive-CL-ANDMask: steps along the directions on which the domains agree."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..base.forms import NAMES, ListOf
from ..data.batch import Batch
from ..data.domain import Rows
from ..invariance.risk import distillation
from ..invariance.sign_agreement import SignAgreement, remove_conflict
from ..settings import MethodSettings, Uniform, setting
from .gradient import (
    domain_gradients,
    flat,
    mean_gradient,
    own_gradient,
    trainable,
    write_gradients,
)
from .method import Method, Replay, Terms
from .tailored import Forward

# Adaptation of τ: it decreases if the density of the hard mask is below the first value and
# increases if it is above the second, by a fixed amount per step, down to a minimum. The paper
# gives no numbers.
DENSITIES = (0.1, 0.9)
AGREEMENT_STEP = 0.01
LEAST_AGREEMENT = 0.05
# Stored gradients that are added up at once, whenever one is added.
STACKED = 16


class NaiveCLANDMaskSettings(MethodSettings):
    """τ 1, U(0.5, 1): the paper's table."""

    agreement: float = setting(
        1.0, Uniform(0.5, 1.0), ge=0, le=1, help="τ, the share of domains that must agree in sign"
    )
    mask: Literal["hard", "soft"] = setting(
        "hard", help="keep or drop an entry, or weight it by sigmoid((agreement - τ) / T)"
    )
    mask_temperature: float = setting(0.1, gt=0, help="T of the soft mask")


class CLANDMaskSettings(NaiveCLANDMaskSettings):
    """τ 1, U(0.5, 1); α 0.1, U(0.1, 0.5): the paper's table."""

    mask: Literal["hard", "soft"] = setting(
        "soft", help="soft as in the appendix, or hard as in table 1"
    )
    mask_temperature: float = setting(1.0, gt=0, help="T of the soft mask")
    alignment_weight: float = setting(
        0.1, Uniform(0.1, 0.5), ge=0, help="α, the weight of the distillation gradient"
    )
    distillation_weight: float = setting(
        0.0,
        ge=0,
        help="weight of a further distillation of the stored logits, as in er-kd: its gradient is "
        "neither masked nor projected; not in the paper",
    )
    alignment_reduction: Literal["mean", "sum"] = setting(
        "mean", help="reduction of the distillation over replayed domains"
    )
    distillation_reduction: Literal["mean", "sum_classes"] = setting(
        "mean", help="squared logit distance: mean or sum over classes"
    )
    projection: Literal["global", "per-tensor", "elementwise", "none"] = setting(
        "global", help="how the conflict with the masked gradient is removed from distillation"
    )
    adaptive_agreement: bool = setting(
        True, help="adapt τ if the hard mask keeps too few or too many entries"
    )
    forward: Forward = setting(
        "joint", help="BatchNorm sees the whole batch, or one domain at a time"
    )


class NaiveCLANDMask(Method):
    """ANDMask with stored gradients: the current and the stored mean gradients vote per entry.

    Equation: m = 1[|1/s (sign(g_s) + Σ_{e<s} sign(ḡ_e))| >= τ]; step along m ∘ 1/s (g_s + Σ ḡ_e) /
    (mean(m) + ε), the mean over each parameter tensor (the paper's appendix, Naive-ANDMask). ḡ_e is
    the mean gradient over batches of D_e when e ended. The stale gradients are part of the step
    itself, as printed; the paper reports near-chance accuracy for it.
    Paper: Parascandolo et al., ICLR 2021.
    """

    name = "naive-cl-andmask"
    needs_classes = False
    group = "naive"
    results_version = 2
    reference = "the paper, after Parascandolo et al., ICLR 2021"
    Settings: ClassVar[type[MethodSettings]] = NaiveCLANDMaskSettings
    settings: NaiveCLANDMaskSettings

    def setup(self) -> None:
        """Set up the vote on gradient signs."""
        self.vote = SignAgreement(self.settings.mask, self.settings.mask_temperature)
        self.parameters: list[nn.Parameter] = trainable(self.network)
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self.stored: dict[str, Tensor] = {}
        self._summed: tuple[int, Tensor, Tensor] | None = None
        self.threshold = torch.tensor(float(self.settings.agreement), device=self.device)

    def terms(self, batch: Batch) -> Terms:
        """L_ERM on the current rows."""
        _, logits = self.forward(batch)
        return {"erm": self.risk(logits, batch.labels)}

    def gradients(self, batch: Batch) -> Terms:
        """The current gradient, masked by its agreement with stored ones; with none, plain ERM."""
        terms = super().gradients(batch)
        if self.stored:
            own = flat(own_gradient(parameter) for parameter in self.parameters)
            signs, total = self._sums
            votes, summed, of = own.sign() + signs, own + total, 1 + len(self.stored)
            masked, _ = self.vote.decide(votes, summed, of, self.sizes, self.threshold)
            write_gradients(self.parameters, masked)
        return terms

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Store the mean gradient over the domain's batches.

        BatchNorm uses batch statistics and does not update its running ones.
        """
        order = torch.randperm(len(rows), generator=self.generator, device=self.threshold.device)
        if domain in self.stored:
            self._summed = None
        size = self.settings.batch_size
        gradient = mean_gradient(self.network, self.parameters, self.task, rows, order, size)
        self.stored[domain] = flat(gradient)

    @property
    def _sums(self) -> tuple[Tensor, Tensor]:
        """Σ sign(ḡ_e) and Σ ḡ_e. After the first few, each gradient is added once."""
        gradients = list(self.stored.values())
        if self._summed is None or self._summed[0] < len(gradients):
            if self._summed is None or len(gradients) <= STACKED:
                stack = torch.stack(gradients[:STACKED])
                self._summed = (len(stack), stack.sign().sum(dim=0), stack.sum(dim=0))
            done, signs, total = self._summed
            for gradient in gradients[done:]:
                signs += gradient.sign()
                total += gradient
            self._summed = (len(gradients), signs, total)
        return self._summed[1], self._summed[2]

    def forget(self, domain: str) -> None:
        """Remove the domain's stored gradient; the others are added up again."""
        self.stored.pop(domain, None)
        self._summed = None

    def state_dict(self) -> dict[str, Any]:
        """The stored gradients and the threshold."""
        names, gradients = list(self.stored), list(self.stored.values())
        return {"names": names, "gradients": gradients, "threshold": self.threshold}

    def state_form(self) -> Any:
        """A gradient has an entry per trainable weight."""
        gradient = flat(self.parameters).detach()
        return {"names": NAMES, "gradients": ListOf(gradient), "threshold": self.threshold}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        self.stored = {
            name: gradient.to(self.device)
            for name, gradient in zip(state["names"], state["gradients"], strict=True)
        }
        self._summed = None
        self.threshold = state["threshold"].to(self.device)


class CLANDMask(NaiveCLANDMask):
    """ANDMask over replayed domains, with distillation projected to remove conflicts.

    Equation: g_e = ∇ L_ERM(B_e) for the current and each replayed domain; m = sigmoid((|1/s Σ
    sign(g_e)| - τ) / T); g̃ = m ∘ ḡ / (mean(m) + ε) per parameter tensor; q = ∇ 1/|E| Σ_e E ||h(x)
    - z||² on replayed rows; if <q, g̃> < 0 then q -= <q, g̃>/||g̃||² g̃; step along g̃ + α q. τ
    moves by 0.01 per step while the hard mask's density is outside [0.1, 0.9].
    `distillation_weight` adds that weight times ∇ 1/|E| Σ_e E_(x,z)~B_e mean_c (h(x)_c - z_c)².
    Paper: Parascandolo et al., ICLR 2021; the paper, table 1 and appendix, row CL-ANDMask.

    Readings: the soft mask of the appendix, not the hard one of table 1; T is 1 (the paper gives no
    value), and the sources' validation rows prefer it to 0.1, with which the mask is almost hard;
    domains have equal weights; the projection is over all parameters, flattened; the distillation
    gradient is not masked. With one domain it is plain ERM.
    """

    name = "cl-andmask"
    group = "tailored"
    results_version = 3
    Settings = CLANDMaskSettings
    settings: CLANDMaskSettings
    replay = Replay(memory="partitions", stores=("logits",), worth_rows=16)

    def gradients(self, batch: Batch) -> Terms:
        """g̃ + α q over the current and the replayed domains."""
        if not batch.replayed:
            return Method.gradients(self, batch)
        stack, extra, values = self._domain_gradients(batch)
        masked, density = self.vote.combine(stack, self.sizes, self.threshold)
        terms = {"erm": values[0].mean(), "density": density}
        if extra is not None:
            for name, part in self._distilled(extra, masked, batch).items():
                masked = masked + part
                terms[name] = values[1].sum() * self._scales(batch)[name]
        write_gradients(self.parameters, masked)
        if self.settings.adaptive_agreement:
            self._adapt(density)
        return terms

    def doses(self, batch: Batch) -> Terms:
        """What the mask takes away, the cosine of g̃ and ḡ, and the parts of distillation.

        The latter are lengths relative to that of g̃.
        """
        if not batch.replayed:
            return {}
        stack, extra, _ = self._domain_gradients(batch)
        signs, mean = stack.sign().sum(dim=0), stack.mean(dim=0)
        found = {"masked": self.vote.masked_share(signs, len(stack), self.threshold)}
        masked, _ = self.vote.combine(stack, self.sizes, self.threshold)
        found["cosine"] = nn.functional.cosine_similarity(masked, mean, dim=0)
        if extra is not None:
            parts = self._distilled(extra, masked, batch)
            found |= {name: part.norm() / masked.norm() for name, part in parts.items()}
        return found

    def _domain_gradients(self, batch: Batch) -> tuple[Tensor, Tensor | None, list[Tensor]]:
        """g_e of every domain, Σ_e ∇ E ||h(x) - z||² if it has a weight, and the losses."""
        settings = self.settings
        distilled = settings.alignment_weight > 0 or settings.distillation_weight > 0
        joint = settings.forward == "joint" and bool(self.network.batchnorms())
        stored = batch.stored["logits"]

        def losses(index: int, logits: Tensor, labels: Tensor) -> list[Tensor]:
            domain_losses = [self.risk(logits, labels)]
            if distilled and index > 0:
                of_domain, reduction = stored[index - 1][None], settings.distillation_reduction
                domain_losses.append(distillation(logits[None], of_domain, reduction)[0])
            return domain_losses

        return domain_gradients(self.network, self.parameters, batch, losses, joint=joint)

    def _distilled(self, extra: Tensor, masked: Tensor, batch: Batch) -> Terms:
        """The gradients that distillation adds to g̃, from Σ_e ∇ E ||h(x) - z||²."""
        settings, scales, parts = self.settings, self._scales(batch), {}
        if settings.alignment_weight > 0:
            parts["alignment"] = settings.alignment_weight * remove_conflict(
                scales["alignment"] * extra, masked, settings.projection, self.sizes
            )
        if settings.distillation_weight > 0:
            parts["distillation"] = settings.distillation_weight * scales["distillation"] * extra
        return parts

    def _scales(self, batch: Batch) -> dict[str, float]:
        """What the sum over domains is multiplied by; `distillation` is a mean over classes."""
        mean = 1 / batch.replayed
        summed = self.settings.distillation_reduction == "sum_classes"
        return {
            "alignment": mean if self.settings.alignment_reduction == "mean" else 1.0,
            "distillation": mean / (self.network.classes if summed else 1),
        }

    def _adapt(self, density: Tensor) -> None:
        """Decrease τ if the mask passes too few entries, increase it if it passes too many."""
        low, high = DENSITIES
        step = torch.where(density < low, -AGREEMENT_STEP, 0.0)
        step = torch.where(density > high, AGREEMENT_STEP, step)
        self.threshold.add_(step).clamp_(LEAST_AGREEMENT, 1.0)

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Do nothing: the memory contains all that is needed."""
