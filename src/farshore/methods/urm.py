"""URM: uniformly distributed features by an adversary, learned on all sources at once."""

from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ..data.batch import Batch
from ..networks.network import Network
from ..settings import Choice, MethodSettings, Power, Uniform, setting
from .method import MakeOptimizer, Method, Terms
from .optimization import plain

CRITIC_WIDTH = 100
CRITIC_SLOPE = 0.01
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid}


class URMSettings(MethodSettings):
    """Defaults and distributions are DomainBed's; the paper's table has none. `joint_steps` is our
    reading of the paper.
    """

    adversarial_weight: float = setting(
        0.1, Uniform(0, 0.2), ge=0, help="λ, the weight of the adversary in both losses"
    )
    critic_layers: int = setting(
        1, Choice((1, 2, 3)), ge=0, le=100, help="hidden layers of the critic after its first"
    )
    feature_activation: Literal["tanh", "relu", "sigmoid"] = setting(
        "tanh", Choice(("tanh", "relu")), help="activation after the features, part of the model"
    )
    critic_rate: float = setting(
        1e-3, Power(10, -5.5, -3.5), gt=0, help="learning rate of the critic's Adam"
    )
    joint_steps: Literal["per-domain", "total"] = setting(
        "per-domain",
        help="per-domain: the run's T steps for each of k sources, k·T in total; total: T steps",
    )


class URM(Method):
    """Make the features uniform on a box, so none of them is rare in a new domain.

    All sources are available in every step.

    Equation: F = act(f(x)) of one minibatch of each source. The network minimises CE(g(F), y) + λ ·
    BCE(D(F), 1), then the critic D minimises BCE(D(U), 1) + λ · BCE(D(F), 0) on the same F,
    detached; U is uniform on [-1, 1) for tanh, on [0, 1) otherwise.
    Paper: Krishnamachari, Ng, Foo, "Uniformly Distributed Feature Representations for Fair and
    Robust Learning", TMLR 2024. The official repository refers to DomainBed, and this follows its
    class: labels of the critic are not smoothed, its optimiser is Adam.

    Offline: the upper bound of a comparison. It is not ranked, and it does not see target data.
    Readings: k sources get k·T steps, as many as a continual method takes (`joint_steps=total`
    takes T). With relu, features may leave the box on which U is uniform.
    """

    name = "urm"
    group = "upper-bound"
    kind = "offline"
    needs_classes = False
    remembers = ("critic",)  # prediction does not use it
    reference = "Krishnamachari, Ng, Foo, TMLR 2024"
    Settings: ClassVar[type[MethodSettings]] = URMSettings
    settings: URMSettings

    def joint_steps(self, steps: int, domains: int) -> int:
        """As many steps as a continual method takes, or only the run's steps in total."""
        return steps if self.settings.joint_steps == "total" else steps * domains

    def prepare(self, network: Network) -> Network:
        """Append the activation, then create the critic, so that initial weights are unaffected."""
        activation = ACTIVATIONS[self.settings.feature_activation]()
        network.features = nn.Sequential(network.features, activation)
        self.critic = make_critic(network.feature_dim, self.settings.critic_layers)
        return network

    def optimizers(self, network: Network, make: MakeOptimizer) -> list[Optimizer]:
        """The run's optimiser for the network, and a separate Adam for the critic."""
        settings = self.settings
        device = next(network.parameters()).device
        self.critic.to(device)
        rates = {"lr": settings.critic_rate, "weight_decay": settings.weight_decay}
        on_gpu = device.type == "cuda"
        critic = plain(Adam)(self.critic.parameters(), **rates, fused=True, capturable=on_gpu)
        return [make(network.parameters()), critic]

    def update(self, batch: Batch) -> Terms:
        """Step the network against the critic, then the critic on the features before that step."""
        learner, critic = self.opts
        learner.zero_grad(set_to_none=True)
        features, logits = self.forward(batch)
        adversary = verdict(self.critic(features), real=True)
        terms = {"erm": self.risk(logits, batch.labels), "adversary": adversary}
        (terms["erm"] + self.settings.adversarial_weight * terms["adversary"]).backward()
        learner.step()
        critic.zero_grad(set_to_none=True)  # the network's step left gradients in the critic
        terms["critic"] = self.critic_loss(features.detach())
        terms["critic"].backward()
        critic.step()
        return {name: term.detach() for name, term in terms.items()}

    def critic_loss(self, features: Tensor) -> Tensor:
        """BCE(D(U), 1) + λ · BCE(D(F), 0)."""
        weight: float = self.settings.adversarial_weight
        false = verdict(self.critic(features), real=False)
        return verdict(self.critic(self.noise(features)), real=True) + weight * false

    def noise(self, features: Tensor) -> Tensor:
        """U: uniform on the range of the activation."""
        drawn = torch.rand(
            features.shape, generator=self.generator, device=features.device, dtype=features.dtype
        )
        return 2 * drawn - 1 if self.settings.feature_activation == "tanh" else drawn


def make_critic(features: int, layers: int) -> nn.Sequential:
    """D: `layers` + 2 linear layers with LeakyReLU, one logit (1: uniform noise, 0: features)."""
    widths = [features] + [CRITIC_WIDTH] * (layers + 1)
    parts: list[nn.Module] = []
    for before, after in pairwise(widths):
        parts += [nn.Linear(before, after), nn.LeakyReLU(CRITIC_SLOPE)]
    return nn.Sequential(*parts, nn.Linear(CRITIC_WIDTH, 1))


def verdict(logits: Tensor, *, real: bool) -> Tensor:
    """Cross-entropy of the critic's logits against noise (`real`) or features (not `real`)."""
    labels = torch.full_like(logits, float(real))
    return nn.functional.binary_cross_entropy_with_logits(logits, labels)
