"""CommitteeSystem: several systems behind the interface of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..data.domain import Domain, Rows
from ..errors import FarshoreError
from ..forms import NAMES, FormError, Like, MapOf, check_form, check_keys
from ..memory.memory import Fields
from ..methods import METHODS
from ..observer import Observer
from ..profiles import PROFILES
from ..system import SYSTEMS, Setup, System, Usage
from .entry import BestSettings

if TYPE_CHECKING:
    from ..checkpoints import Checkpoints

STATE = dict.fromkeys(("domains", "members", "unseen"))
# The trained member's temperature is chosen from these.
TEMPERATURES = tuple(2 ** (exponent / 2) for exponent in range(-2, 9))
# Settings that are passed on to the member that is trained by steps.
PASSED_ON = ("learning_rate", "weight_decay", "batch_size")


class AverageOfMembers(nn.Module):
    """The logarithm of the mean probability; the first member has a temperature."""

    temperature: Tensor

    def __init__(self, members: Sequence[nn.Module], temperature: float) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.register_buffer("temperature", torch.tensor(temperature))

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [n, classes], normalised."""
        return average([member(inputs) for member in self.members], self.temperature)


def average(logits: Sequence[Tensor], temperature: float | Tensor) -> Tensor:
    """log 1/K (softmax(h_1 / T) + Σ_k softmax(h_k)), computed without underflow."""
    first, *others = (each.float() for each in logits)
    stacked = torch.stack([each.log_softmax(dim=1) for each in (first / temperature, *others)])
    return torch.logsumexp(stacked, dim=0) - math.log(len(logits))


def losses_by_temperature(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean log loss of these logits at each of the temperatures."""
    return torch.stack(
        [
            torch.nn.functional.cross_entropy(logits.double() / temperature, labels)
            for temperature in TEMPERATURES
        ]
    ).cpu()


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
        # The trained member's losses on each domain before learning it, by temperature.
        self.unseen: dict[str, Tensor] = {}

    @property
    def temperature(self) -> float:
        """The temperature with the lowest loss on domains before they were learned; at first 1."""
        if not self.unseen:
            return 1.0
        return TEMPERATURES[int(torch.stack(list(self.unseen.values())).mean(dim=0).argmin())]

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
        """Score the trained member on the still unseen domain; then every member learns it."""
        if self.domains:
            rows = domain.split("train")
            labels = rows.labels[rows.index].to(self.setup.device)
            self.unseen[domain.name] = losses_by_temperature(self.trained.logits(rows), labels)
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
        """The logarithm of the members' mean probability."""
        logits = [member.logits(rows) for member in self.members.values()]
        return average(logits, self.temperature)

    def features(self, inputs: Tensor) -> Tensor:
        """The features of the trained member."""
        return self.trained.features(inputs)

    def predictor(self) -> nn.Module:
        """All members and their average."""
        predictors = [member.predictor() for member in self.members.values()]
        return AverageOfMembers(predictors, self.temperature).to(self.setup.device).eval()

    def forget(self, domain: str) -> None:
        """Every member forgets the domain; the trained one keeps its weights."""
        for member in self.members.values():
            member.forget(domain)
        self.unseen.pop(domain, None)

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
        """The state of every member, and the losses that decide the temperature."""
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
        losses = Like((len(TEMPERATURES),), torch.float64, finite=True)
        check_form(state["unseen"], MapOf(losses), "unseen")
        setups = _setups(setup)
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
    for name in names[1:]:
        setups[name] = replace(setup, entry=METHODS.get(name), settings={}, observer=Observer())
    return setups
