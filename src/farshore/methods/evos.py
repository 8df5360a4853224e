"""EvoS: standardise features by statistics that evolve, and predict those of the next domain."""

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..base.forms import FormError, Like
from ..data.batch import Batch
from ..data.domain import Rows
from ..networks.network import Network
from ..settings import MethodSettings, setting
from .evolution import EPS, MOST_PAST, Evolution, Standardised
from .finetune import Finetune
from .method import MakeOptimizer, Terms, as_state


class EvoSSettings(MethodSettings):
    """All values: the authors' configuration for rotated MNIST; the paper's table has none.

    `warm_steps` is twice the steps of a domain there; here twice the usual 1,000.
    """

    adversarial_weight: float = setting(
        1.0, ge=0, help="λ, the weight of the adversary that makes domains alike"
    )
    scales: int = setting(
        3, ge=1, le=8, help="K, the longest window of past statistics that attention reads at once"
    )
    heads: int = setting(32, ge=1, le=256, help="heads of attention per statistic in a window")
    head_dim: int = setting(8, ge=1, le=256, help="dimension of a head")
    critic_width: int = setting(256, ge=1, le=4096, help="hidden units of the adversary")
    truncation: float = setting(
        2.0, gt=0, help="past features are drawn within this many standard deviations"
    )
    noise: Literal["row", "feature"] = setting(
        "row", help="past features: one random number for a row (the code) or one per feature"
    )
    warm_steps: int = setting(
        2000, ge=1, help="N, the adversary's gradient grows in a domain as 2/(1 + exp(-i/N)) - 1"
    )
    horizon: int = setting(
        1, ge=1, le=100, help="how many domains after the last one the target lies"
    )


class EvoS(Finetune):
    """No rows of past domains: their features' means and deviations are kept, and attention over
    them predicts those of the next domain, by which its features are standardised.

    Equation: domain t has a statistic s_t = (μ_t, log σ_t) of the features f(x), and h(x) =
    g((f(x) - μ_t) / (σ_t + ε)). s_0 and s_1 are trained from 0. Later, s_t = G(s_0, ..., s_{t-1}) =
    mean over k ≤ K of the last of the k parts of o_k, where o_k = mean over the windows of k
    successive past statistics, laid end to end, of multi-head self-attention A_k among the windows;
    k > 1 counts if k < t. L = CE + ‖mean z‖₂ + ‖var z - 1‖₂ + Σ_{k>1} mean_{j<k} ‖s_{t-k+j} -
    (o_k)_j‖₂ + λ · adversary, where z = (f(x) - μ_t) / (σ_t + ε) with f constant: the statistic
    follows the features, and in CE it is constant. Adversary: a critic D tells rows drawn from
    N(μ_i, σ_i²) of every past domain i (label 1) from current features (label 0), ½ (BCE + BCE);
    the features get its gradient times -(2/(1 + exp(-i/N)) - 1) in step i of the domain.
    Prediction: s of the next domain, G(s_0, ..., s_T); `horizon` steps ahead, each generated s is
    appended first. After one domain it is s_0. The target's rows have no say.
    Paper: Xie, Li, Yuan, Liu, Dai, "Evolving Standardization for Continual Domain Generalization
    over Temporal Drift", NeurIPS 2023; read beside the authors' code, where they differ the code.

    Readings: k > 1 needs k + 1 past domains, as in the code. A drawn row is μ_i + w σ_i with one
    truncated normal w for all features, as in the code, which D tells apart almost at once; `noise=
    feature` draws from the normal distribution that the paper names. Variances are unbiased.
    Within a domain, its own statistic predicts; afterwards that of the next one, for rows of
    earlier domains too, because a model does not know from which domain a row comes.
    Statistics are generated from generated ones. With more than 64 past domains, G reads the newest
    64 statistics, and D in each step those of 64 drawn domains. The authors' features are
    normalised; on those of an MLP the statistics can grow without limit from domain to domain, and
    the run ends as diverged.
    """

    name = "evos"
    group = "latent-replay"
    reference = "Xie et al., NeurIPS 2023"
    grows = False
    Settings: ClassVar[type[MethodSettings]] = EvoSSettings
    settings: EvoSSettings
    remembers = ("statistics", "evolution")

    def prepare(self, network: Network) -> Network:
        """Put the standardisation before the classifier; then create what generates it."""
        network.classifier = Standardised(network.classifier, network.feature_dim)
        s = self.settings
        sizes = (s.scales, s.heads, s.head_dim, s.critic_width)
        self.evolution = Evolution(network.feature_dim, *sizes)
        return network

    def optimizers(self, network: Network, make: MakeOptimizer) -> list[Optimizer]:
        """One optimiser for the network and what generates the statistics."""
        self.evolution.to(next(network.parameters()).device)
        return [make(chain(network.parameters(), self.evolution.parameters()))]

    def setup(self) -> None:
        """No domain has a statistic yet."""
        width = 2 * self.network.feature_dim
        self.statistics = torch.zeros(0, width, device=self.device)  # in the order of learning
        self.reversal = torch.zeros((), device=self.device)

    @property
    def head(self) -> Standardised:
        """The classifier with the standardisation before it."""
        assert isinstance(self.network.classifier, Standardised)
        return self.network.classifier

    def before_step(self, step: int, domain_step: int) -> None:
        """The reversed gradient of the adversary grows within a domain."""
        self.reversal.fill_(2 / (1 + math.exp(-domain_step / self.settings.warm_steps)) - 1)

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ."""
        return {"adversary": self.settings.adversarial_weight}

    def terms(self, batch: Batch) -> Terms:
        """`erm`, `standardisation`, and with past domains `consistency` and `adversary`."""
        statistic, consistency = self.evolution(self.statistics)
        self.head.place(statistic)
        features, logits = self.forward(batch)
        terms = {
            "erm": self.risk(logits, batch.labels, batch.weights),
            "standardisation": distance_from_standard(features.detach(), statistic),
        }
        if consistency is not None:
            terms["consistency"] = consistency
        if len(self.statistics) and self.settings.adversarial_weight:
            terms["adversary"] = self._adversary(features)
        return terms

    def _adversary(self, features: Tensor) -> Tensor:
        """½ (BCE(D(past), 1) + BCE(D(current), 0)); the gradient of the features is reversed."""
        constant = features.detach()
        turned = constant - self.reversal * (features - constant)
        past = self._drawn(len(features))
        answers = self.evolution.critic(torch.cat([past, turned]))[:, 0]
        wrong = nn.functional.softplus(-answers[: len(past)]).mean()
        return (wrong + nn.functional.softplus(answers[len(past) :]).mean()) / 2

    def _drawn(self, rows: int) -> Tensor:
        """Features of each past domain, or of 64 ones, drawn from its statistic, [t · rows, d]."""
        statistics, device = self.statistics, self.device
        if len(statistics) > MOST_PAST:
            keys = torch.rand(len(statistics), generator=self.generator, device=device)
            statistics = statistics[keys.topk(MOST_PAST, sorted=False).indices]
        mean, log_std = statistics[:, None].chunk(2, dim=2)
        across = 1 if self.settings.noise == "row" else mean.shape[2]
        uniform = torch.rand((len(mean), rows, across), generator=self.generator, device=device)
        noise = truncated_normal(uniform, self.settings.truncation)
        return (mean + noise * log_std.exp()).flatten(0, 1)

    @torch.no_grad()
    def after_domain(self, domain: str, rows: Rows) -> None:
        """Keep the domain's statistic; predict that of the target."""
        own, _ = self.evolution(self.statistics)
        self.statistics = torch.cat([self.statistics, own.detach()[None]])
        future = self.statistics
        for _ in range(self.settings.horizon):
            ahead = self.evolution(future)[0] if len(future) > 1 else future[-1]
            future = torch.cat([future, ahead[None]])
        self.head.place(future[-1])

    def forget(self, domain: str) -> None:
        """Remove the domain's statistic."""
        place = self.domains.index(domain)
        self.statistics = torch.cat([self.statistics[:place], self.statistics[place + 1 :]])

    def state_form(self) -> Any:
        """A statistic per domain."""
        kept = Like((None, 2 * self.network.feature_dim), self.statistics.dtype, finite=True)
        return {"statistics": kept, "evolution": as_state(self.evolution)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the statistics and what generates them."""
        if len(state["statistics"]) != len(self.domains):
            raise FormError("method.statistics does not have a row per domain")
        super().load_state_dict(state)


def distance_from_standard(features: Tensor, statistic: Tensor) -> Tensor:
    """‖mean z‖₂ + ‖var z - 1‖₂ of z = (f - μ) / (σ + ε), over the rows."""
    mean, log_std = statistic.chunk(2)
    z = (features - mean) / (log_std.exp() + EPS)
    variance = z.var(dim=0, correction=min(1, len(z) - 1))
    return z.mean(dim=0).norm() + (variance - 1).norm()


def truncated_normal(uniform: Tensor, limit: float) -> Tensor:
    """Standard normal numbers within ±limit, from uniform ones in [0, 1)."""
    inside = math.erf(limit / math.sqrt(2))
    return ((2 * uniform - 1) * inside).erfinv() * math.sqrt(2)
