"""CommitteeSystem: several systems behind the interface of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...base.forms import NAMES, FormError, Like, MapOf, check_form, check_keys
from ...data.domain import Domain, Rows
from ...errors import FarshoreError
from ...memory.memory import Fields
from ...methods import METHODS
from ...observer import Observer
from ...system import SYSTEMS, Setup, System, Usage
from ...training.profiles import PROFILES
from .entry import BestSettings

if TYPE_CHECKING:
    from ...training.checkpoints import Checkpoints

STATE = dict.fromkeys(("domains", "members", "unseen"))
# The trained member's temperature is chosen from these.
TEMPERATURES = tuple(2 ** (exponent / 2) for exponent in range(-2, 9))
# The members' weights are multiples of 1/12: equal weights are among them for up to four members.
PARTS = 12
TINY = 1e-30
# Settings that are passed on to the member that is trained by steps.
PASSED_ON = ("learning_rate", "weight_decay", "batch_size")


class AverageOfMembers(nn.Module):
    """The logarithm of the weighted mean probability; the first member has a temperature."""

    temperature: Tensor
    weights: Tensor

    def __init__(
        self, members: Sequence[nn.Module], temperature: float, weights: Sequence[float]
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.register_buffer("temperature", torch.tensor(temperature))
        self.register_buffer("weights", torch.tensor(weights))

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [n, classes], normalised."""
        logits = [member(inputs) for member in self.members]
        return average(logits, self.temperature, self.weights)


def average(logits: Sequence[Tensor], temperature: float | Tensor, weights: Tensor) -> Tensor:
    """log (w_1 softmax(h_1 / T) + Σ_k w_k softmax(h_k)), computed without underflow."""
    first, *others = (each.float() for each in logits)
    stacked = torch.stack([each.log_softmax(dim=1) for each in (first / temperature, *others)])
    return torch.logsumexp(stacked + weights.clamp_min(TINY).log()[:, None, None], dim=0)


@cache
def possible_weights(members: int) -> Tensor:
    """All weights [w, members] that are multiples of 1/12 and sum to 1, in double precision."""
    shares = [
        (*front, PARTS - sum(front))
        for front in product(range(PARTS + 1), repeat=members - 1)
        if sum(front) <= PARTS
    ]
    return torch.tensor(shares, dtype=torch.float64) / PARTS


def losses(logits: Sequence[Tensor], labels: Tensor) -> Tensor:
    """The mean log loss [t, w] of the average at every temperature and weight."""
    own = torch.arange(len(labels), device=labels.device)
    first, *others = (each.double() for each in logits)
    closed = [each.softmax(dim=1)[own, labels] for each in others]
    weights = possible_weights(len(logits)).to(labels.device)
    by_temperature = []
    for temperature in TEMPERATURES:
        trained = (first / temperature).softmax(dim=1)[own, labels]
        mixed = weights @ torch.stack([trained, *closed])
        by_temperature.append(-mixed.clamp_min(TINY).log().mean(dim=1))
    return torch.stack(by_temperature).cpu()


def entropy(weights: Tensor) -> Tensor:
    """H(w) = -Σ_k w_k log w_k for weights [w, members]; at most log of the number of members."""
    return -(weights * weights.clamp_min(TINY).log()).sum(dim=1)


class CommitteeSystem(System):
    """The trained member comes first: if it is interrupted, no other member is ahead of it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.settings = _settings(setup)
        if setup.weighted:
            _check_members(self.settings.members, "weighs_rows", "weights of rows")
        setups = _setups(setup)
        self.members: dict[str, System] = {
            name: SYSTEMS.get(of_member.entry.system)(of_member)
            for name, of_member in setups.items()
        }
        # The losses on each domain before learning it, by temperature and weights.
        self.unseen: dict[str, Tensor] = {}

    def mixture(self) -> tuple[float, Tensor]:
        """The temperature and the weights with the lowest penalised loss on unlearned domains."""
        members = len(self.members)
        if not self.unseen:
            return 1.0, torch.full((members,), 1 / members, dtype=torch.float64)
        weights = possible_weights(members)
        # A measurement counts by the number of domains learned before it, as far as they are known:
        # some may have been forgotten.
        counts = torch.tensor([max(1, self.domains.index(name)) for name in self.unseen])
        shares = (counts / counts.sum()).double()[:, None, None]
        loss = (shares * torch.stack(list(self.unseen.values()))).sum(dim=0)
        penalised = loss - self.settings.evenness * entropy(weights)
        temperature, chosen = divmod(int(penalised.argmin()), len(weights))
        return TEMPERATURES[temperature], weights[chosen]

    @property
    def trained(self) -> System:
        """The member that is trained by steps."""
        return next(iter(self.members.values()))

    @property
    def domains(self) -> list[str]:
        """The domains learned so far, in order."""
        return self.trained.domains

    @property
    def seconds(self) -> dict[str, float]:  # type: ignore[override]
        """The seconds of all members together."""
        return {
            part: sum(member.seconds[part] for member in self.members.values())
            for part in self.trained.seconds
        }

    @property
    def rows_per_step(self) -> int:  # type: ignore[override]
        """Those of the trained member; closed forms have no steps."""
        return self.trained.rows_per_step

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """The notes of all members, each once."""
        return list(
            dict.fromkeys(note for member in self.members.values() for note in member.notes)
        )

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Score the members on the still unseen domain; then every member learns it."""
        if self.domains:
            rows = domain.split("train")
            labels = rows.labels[rows.index].to(self.setup.device)
            logits = [member.logits(rows) for member in self.members.values()]
            self.unseen[domain.name] = losses(logits, labels)
        for member in self.members.values():
            resumable = checkpoints if member is self.trained else None
            member.learn(domain, steps=steps, checkpoints=resumable)

    def grown(self, setup: Setup) -> CommitteeSystem:
        """Every member with the additional classes."""
        _check_members(self.settings.members, "grows", "additional classes")
        committee = CommitteeSystem(setup)
        setups = _setups(setup)
        committee.members = {
            name: member.grown(setups[name]) for name, member in self.members.items()
        }
        committee.unseen = dict(self.unseen)
        return committee

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Every member learns all domains at once."""
        totals = [member.learn_jointly(domains, steps=steps) for member in self.members.values()]
        return totals[0]

    def logits(self, rows: Rows) -> Tensor:
        """The logarithm of the members' weighted mean probability."""
        logits = [member.logits(rows) for member in self.members.values()]
        temperature, weights = self.mixture()
        return average(logits, temperature, weights.float().to(self.setup.device))

    def features(self, inputs: Tensor) -> Tensor:
        """The features of the trained member."""
        return self.trained.features(inputs)

    def predictor(self) -> nn.Module:
        """All members and their average."""
        predictors = [member.predictor() for member in self.members.values()]
        temperature, weights = self.mixture()
        averaged = AverageOfMembers(predictors, temperature, weights.tolist())
        return averaged.to(self.setup.device).eval()

    def forget(self, domain: str) -> None:
        """Every member forgets the domain; the trained one keeps its weights."""
        for member in self.members.values():
            member.forget(domain)
        self.unseen.pop(domain, None)

    @property
    def mixes_domains(self) -> bool:
        """Whether the trained member's memory does; closed forms keep sums per domain."""
        return self.trained.mixes_domains

    def empty_memory(self) -> None:
        """Delete the rows of a trained member whose memory mixes domains."""
        self.trained.empty_memory()

    def kept_rows(self) -> dict[str, Fields]:
        """The rows of the trained member."""
        return self.trained.kept_rows()

    def usage(self) -> Usage:
        """What all members store."""
        usages = [member.usage() for member in self.members.values()]
        return replace(
            usages[0],
            settings=self.settings.model_dump(),
            method_bytes=sum(usage.method_bytes for usage in usages),
        )

    def state_dict(self) -> dict[str, Any]:
        """The state of every member, and the losses that decide temperature and weights."""
        return {
            "domains": self.domains,
            "unseen": dict(self.unseen),
            "members": {name: member.state_dict() for name, member in self.members.items()},
        }

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Check the state of every member before anything is allocated for it."""
        check_keys(state, STATE, "the state")
        check_form(state["domains"], NAMES, "domains")
        setups = _setups(setup)
        shape = len(TEMPERATURES), len(possible_weights(len(setups)))
        check_form(state["unseen"], MapOf(Like(shape, torch.float64, finite=True)), "unseen")
        check_keys(state["members"], setups, "members")
        for name, of_member in setups.items():
            SYSTEMS.get(of_member.entry.system).check_state(of_member, state["members"][name])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore every member."""
        check_keys(state, STATE, "the state")
        self.unseen = dict(state["unseen"])
        for name, member in self.members.items():
            member.load_state_dict(state["members"][name])
            if member.domains != list(state["domains"]):
                raise FormError(f"the member {name} has learned different domains")


def _settings(setup: Setup) -> BestSettings:
    entry = setup.entry
    settings = entry.Settings.build(setup.settings, PROFILES.get(setup.profile), entry.name)
    assert isinstance(settings, BestSettings)
    return settings


def _check_members(members: str, ability: str, what: str) -> None:
    """Refuse what a member does not support."""
    for name in members.split("+"):
        if not getattr(METHODS.get(name), ability):
            raise FarshoreError(f"member {name!r} does not support {what}: choose another member")


def _setups(setup: Setup) -> dict[str, Setup]:
    """What each member is built from; only the trained one reports its steps."""
    names = _settings(setup).members.split("+")
    given = {name: setup.settings[name] for name in PASSED_ON if name in setup.settings}
    setups = {names[0]: replace(setup, entry=METHODS.get(names[0]), settings=given)}
    # Closed forms have no steps to average over.
    plain = replace(
        setup,
        settings={},
        run=setup.run.model_copy(update={"average": "none"}),
        observer=Observer(),
    )
    for name in names[1:]:
        setups[name] = replace(plain, entry=METHODS.get(name))
    return setups
