"""URM: uniform features by an adversary, learned on all sources at once. The upper bound."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ..batch import Batch
from ..memory import Memory
from ..networks.network import Network
from ..settings import Choice, MethodSettings, Power, Uniform, setting
from .method import MakeOptimizer, Method, Terms

CRITIC_WIDTH = 100
CRITIC_SLOPE = 0.01
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid}


class URMSettings(MethodSettings):
    """Defaults and distributions are DomainBed's; the paper's table has none. `joint_steps` is
    the reading taken for the paper.
    """

    adversarial_weight: float = setting(
        0.1, Uniform(0, 0.2), ge=0, help="λ, the weight of the adversary in both losses"
    )
    critic_layers: int = setting(
        1, Choice((1, 2, 3)), ge=0, help="hidden layers of the critic after its first"
    )
    feature_activation: Literal["tanh", "relu", "sigmoid"] = setting(
        "tanh",
        Choice(("tanh", "relu")),
        help="activation put behind the features; it stays in the model",
    )
    critic_rate: float = setting(
        1e-3,
        Power(10, -5.5, -3.5),
        gt=0,
        help="learning rate of the critic's Adam",
    )
    joint_steps: Literal["per-domain", "total"] = setting(
        "per-domain",
        help="per-domain: the run's steps for each source, k·T in all; total: T steps in all",
    )


class URM(Method):
    """Make the features uniform on a box, so that none of them is rare in a new domain. All sources
    are at hand in every step.

    Equation: F = act(f(x)) of one minibatch of each source. The network minimises CE(g(F), y) + λ ·
    BCE(D(F), 1), then the critic D minimises BCE(D(U), 1) + λ · BCE(D(F), 0) on the same F,
    detached; U is uniform on [-1, 1) for tanh, on [0, 1) otherwise.
    Paper: Krishnamachari, Ng, Foo, "Uniformly Distributed Feature Representations for Fair and
    Robust Learning", TMLR 2024; the official repository points at DomainBed, whose class is
    followed: labels of the critic are not smoothed, its optimiser is Adam.

    Offline: the upper bound of a comparison. It never ranks, and target data stay sealed. Readings:
    k sources get k·T steps, as many as a continual method makes (`joint_steps=total` makes T). With
    relu, features may leave the box that U fills.
    """

    name = "urm"
    group = "upper-bound"
    kind = "offline"
    reference = "Krishnamachari, Ng, Foo, TMLR 2024"
    Settings: ClassVar[type[MethodSettings]] = URMSettings
    settings: URMSettings

    def joint_steps(self, steps: int, domains: int) -> int:
        """As many steps as a continual method makes, or the run's steps in all."""
        return steps if self.settings.joint_steps == "total" else steps * domains

    def prepare(self, network: Network) -> Network:
        """The activation becomes part of the features; the critic is made after the network,
        whose initial weights it leaves alone.
        """
        network.features = nn.Sequential(
            network.features, ACTIVATIONS[self.settings.feature_activation]()
        )
        self.critic = make_critic(network.feature_dim, self.settings.critic_layers)
        return network

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Also bring the critic to the network's device."""
        self.critic.to(next(network.parameters()).device)
        super().attach(network, memory, generator, make)

    def optimizers(self, network: Network, make: MakeOptimizer) -> list[Optimizer]:
        """The run's optimiser for the network, an Adam of its own for the critic."""
        settings = self.settings
        cuda = next(network.parameters()).device.type == "cuda"
        critic = Adam(
            self.critic.parameters(),
            lr=settings.critic_rate,
            weight_decay=settings.weight_decay,
            fused=True,
            capturable=cuda,
        )
        return [make(network.parameters()), critic]

    def update(self, batch: Batch) -> Terms:
        """A step of the network against the critic, then one of the critic on the features from
        before that step.
        """
        learner, critic = self.opts
        learner.zero_grad(set_to_none=True)
        features, logits = self.forward(batch)
        terms = {
            "erm": self.risk(logits, batch.labels),
            "adversary": verdict(self.critic(features), real=True),
        }
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
        return verdict(self.critic(self.noise(features)), real=True) + weight * verdict(
            self.critic(features), real=False
        )

    def noise(self, features: Tensor) -> Tensor:
        """U: uniform on the box that the activation fills."""
        drawn = torch.rand(
            features.shape, generator=self.generator, device=features.device, dtype=features.dtype
        )
        return 2 * drawn - 1 if self.settings.feature_activation == "tanh" else drawn

    def state_dict(self) -> dict[str, Any]:
        """The critic; prediction does not use it."""
        return {"critic": dict(self.critic.state_dict())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.critic.load_state_dict(state["critic"])


def make_critic(features: int, layers: int) -> nn.Sequential:
    """D: `layers` + 2 linear layers, LeakyReLU between them, one logit (1: uniform noise, 0:
    features).
    """
    widths = [features] + [CRITIC_WIDTH] * (layers + 1)
    parts: list[nn.Module] = []
    for before, after in pairwise(widths):
        parts += [nn.Linear(before, after), nn.LeakyReLU(CRITIC_SLOPE)]
    return nn.Sequential(*parts, nn.Linear(CRITIC_WIDTH, 1))


def verdict(logits: Tensor, *, real: bool) -> Tensor:
    """Cross-entropy of the critic's logits against `these rows are noise` or `these are
    features`.
    """
    return nn.functional.binary_cross_entropy_with_logits(
        logits, torch.full_like(logits, float(real))
    )
