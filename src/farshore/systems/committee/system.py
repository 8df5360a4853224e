"""CommitteeSystem: several systems behind the interface of one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ...base.forms import NAMES, FormError, Like, MapOf, check_form, check_keys
from ...base.randomness import derive
from ...data.domain import Domain, Rows
from ...data.separation import as_numbers, deviations, separation
from ...errors import FarshoreError
from ...memory.memory import Fields
from ...methods import fit_numbers
from ...system import SYSTEMS, Setup, System, Usage
from ...training.checkpoints import Checkpoints
from ...training.profiles import PROFILES
from .entry import Auto, AutoSettings, BestSettings
from .members import Member, member_setups, read_members
from .mixing import (
    TEMPERATURES,
    AverageOfMembers,
    average,
    choose,
    class_losses,
    mean_number,
    number_losses,
    possible_weights,
    row_weights,
)

STATE = dict.fromkeys(("domains", "members", "unseen"))
# States of committees without distances do not have them.
DISTANCES = "distances"
# The loss of a domain is measured on so many rows, and its distance on so many of each side.
MOST_ROWS, MOST_COMPARED, TREES = 1000, 300, 40
# Members are dropped after so many measured domains; so many of the newest are remembered.
DROP_AFTER, MOST_MEASURED = 3, 64
# The least weight of a domain that is like those before it, in deviations.
LEAST_DISTANCE = 0.1


class CommitteeSystem(System):
    """The first member is trained by steps and keeps rows: if it is interrupted, no other member
    is ahead of it.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.entry = cast(type[Auto], setup.entry)
        self.settings = _settings(setup)
        self.named = _members(setup)
        if setup.weighted:
            _check_members(self.named, "weighs_rows", "weights of rows")
        self.members: dict[str, System] = {
            name: SYSTEMS.get(of_member.entry.system)(of_member)
            for name, of_member in member_setups(setup, self.named).items()
        }
        # On each domain before learning it: the losses by temperature and weights, and how far it
        # was from the domains before.
        self.unseen: dict[str, Tensor] = {}
        self.distances: dict[str, float] = {}

    # ---- weights ---------------------------------------------------------------------------------

    def mixture(self) -> tuple[list[float], Tensor]:
        """The temperature and the weight of every member that learns."""
        present = [number for number, each in enumerate(self.named) if each.text in self.members]
        if not self.unseen:
            count = len(present)
            return [1.0] * count, torch.full((count,), 1 / count, dtype=torch.float64)
        # A measurement counts by the number of domains learned before it, as far as they are known:
        # some may have been forgotten.
        places = {name: place for place, name in enumerate(self.domains)}
        counts = [max(1, places[name]) * self.distances.get(name, 1.0) for name in self.unseen]
        absent = [number for number in range(len(self.named)) if number not in present]
        measured = list(self.unseen.values())
        temperature, weights = choose(measured, counts, self.settings.evenness, absent)
        heated = [temperature if self._heated(self.named[each]) else 1.0 for each in present]
        return heated, weights[present]

    def _heated(self, member: Member) -> bool:
        """Whether the temperature applies: to the first member, and to all but closed forms."""
        return member is self.named[0] or (self.entry.weighs_domains and not member.closed)

    def _measure(self, domain: Domain) -> None:
        """Score the members on a domain that they have not learned, and how far it is."""
        rows = domain.split("train")
        metric = "log_loss"
        if self.entry.weighs_domains:
            metric = self.setup.metric
            self.distances[domain.name] = self._distance(domain.name, rows)
            count = min(len(rows), MOST_ROWS)
            chosen = torch.linspace(0, len(rows) - 1, count).round().long()
            rows = replace(rows, index=rows.index[chosen.to(rows.index.device)])
        labels = rows.labels[rows.index].to(self.setup.device)
        weights = rows.weights_at(torch.arange(len(rows))) if self.entry.weighs_domains else None
        logits = {name: member.logits(rows) for name, member in self.members.items()}
        of_named = [logits.get(each.text) for each in self.named]
        heated = [self._heated(each) for each in self.named]
        measure = self.setup.task.either(class_losses, number_losses)
        shares = row_weights(labels, metric, weights)
        self.unseen[domain.name] = measure(of_named, labels, heated, shares)
        if self.entry.weighs_domains:
            known = [name for name in self.domains if name in self.unseen]
            for name in known[: 1 - MOST_MEASURED]:
                del self.unseen[name], self.distances[name]

    def _distance(self, name: str, rows: Rows) -> float:
        """How far these rows are from those in the memory, in deviations; 1 if it has none."""
        kept = [fields["inputs"] for fields in self.trained.kept_rows().values()]
        if not kept:
            return 1.0
        draws = np.random.default_rng(derive(self.setup.seed, "committee", name))
        past = torch.cat(kept)
        count = min(len(past), len(rows), MOST_COMPARED)
        before = past[torch.from_numpy(draws.permutation(len(past))[:count]).to(past.device)]
        new = rows.take(torch.from_numpy(draws.permutation(len(rows))[:count]))[0]
        sides = [as_numbers(side.cpu().numpy()) for side in (new, before)]
        area = separation(sides[0], sides[1], int(draws.integers(2**32)), TREES)
        return max(LEAST_DISTANCE, deviations(area))

    def _drop(self) -> None:
        """Let go of members without weight; the first one keeps the rows and stays."""
        if not self.settings.drop or len(self.unseen) < DROP_AFTER:
            return
        pairs = list(zip(self.members, self.mixture()[1].tolist(), strict=True))
        for name, weight in pairs[1:]:
            if weight == 0:
                del self.members[name]

    # ---- domains ---------------------------------------------------------------------------------

    @property
    def trained(self) -> System:
        """The first member, which is trained by steps."""
        return next(iter(self.members.values()))

    @property
    def domains(self) -> list[str]:
        """The domains learned so far, in order."""
        return self.trained.domains

    @property
    def seconds(self) -> dict[str, float]:  # type: ignore[override]
        """The seconds of all members together."""
        members = self.members.values()
        return {of: sum(each.seconds[of] for each in members) for of in self.trained.seconds}

    @property
    def rows_per_step(self) -> int:  # type: ignore[override]
        """Those of the first member."""
        return self.trained.rows_per_step

    @property
    def doses(self) -> Mapping[str, float | None]:  # type: ignore[override]
        """Those of the trained member."""
        return self.trained.doses

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """The notes of all members, each once."""
        notes = (note for member in self.members.values() for note in member.notes)
        return list(dict.fromkeys(notes))

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Score the members on the still unseen domain; then every member learns it."""
        if self.domains:
            self._drop()
            self._measure(domain)
        for member in self.members.values():
            resumable = checkpoints if member is self.trained else None
            member.learn(domain, steps=steps, checkpoints=resumable)
            if member is not self.trained:
                member.share(self.trained.kept_rows())

    def grown(self, setup: Setup) -> "CommitteeSystem":
        """Every member with the additional classes."""
        _check_members(self.named, "grows", "additional classes")
        committee = CommitteeSystem(setup)
        setups = member_setups(setup, self.named)
        members = self.members.items()
        committee.members = {name: member.grown(setups[name]) for name, member in members}
        committee.unseen, committee.distances = dict(self.unseen), dict(self.distances)
        return committee

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Every member learns all domains at once."""
        totals = [member.learn_jointly(domains, steps=steps) for member in self.members.values()]
        return totals[0]

    def logits(self, rows: Rows) -> Tensor:
        """The logarithm of the members' weighted mean probability."""
        logits = [member.logits(rows) for member in self.members.values()]
        temperatures, weights = self.mixture()
        mix = self.setup.task.either(average, mean_number)
        return mix(logits, temperatures, weights.float().to(self.setup.device))

    def features(self, inputs: Tensor) -> Tensor:
        """The features of the first member."""
        return self.trained.features(inputs)

    def predictor(self) -> nn.Module:
        """All members and their average."""
        predictors = [member.predictor() for member in self.members.values()]
        temperatures, weights = self.mixture()
        averaged = AverageOfMembers(predictors, temperatures, weights.tolist(), self.setup.task)
        return averaged.to(self.setup.device).eval()

    def forget(self, domain: str) -> None:
        """Every member forgets the domain; those that are not closed forms keep what they know."""
        for member in self.members.values():
            member.forget(domain)
        self.unseen.pop(domain, None)
        self.distances.pop(domain, None)

    @property
    def mixes_domains(self) -> bool:
        """Whether the first member's memory does; closed forms keep sums per domain."""
        return self.trained.mixes_domains

    def empty_memory(self) -> None:
        """Delete the rows of members whose memory mixes domains."""
        for member in self.members.values():
            member.empty_memory()

    def kept_rows(self) -> dict[str, Fields]:
        """The rows of the first member, which the others keep as well."""
        return self.trained.kept_rows()

    def usage(self) -> Usage:
        """What all members store."""
        usages = [member.usage() for member in self.members.values()]
        return replace(
            usages[0],
            settings=self.settings.model_dump(),
            memory_bytes=sum(usage.memory_bytes for usage in usages),
            method_bytes=sum(usage.method_bytes for usage in usages),
        )

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state of every member, and what decides temperature and weights."""
        members = {name: member.state_dict() for name, member in self.members.items()}
        state = {"domains": self.domains, "unseen": dict(self.unseen), "members": members}
        return state | ({DISTANCES: dict(self.distances)} if self.entry.weighs_domains else {})

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Check the state of every member before anything is allocated for it."""
        named = _members(setup)
        _check_keys(setup, state)
        check_form(state["domains"], NAMES, "domains")
        shape = len(TEMPERATURES), len(possible_weights(len(named)))
        check_form(state["unseen"], MapOf(Like(shape, torch.float64, finite=True)), "unseen")
        if DISTANCES in state:
            check_form(state[DISTANCES], MapOf(0.0), DISTANCES)
            if not all(0 < each < 100 for each in state[DISTANCES].values()):
                raise FormError(f"{DISTANCES} has numbers that no distance has")
        setups = member_setups(setup, named)
        first = named[0].text
        left = state["members"]
        if not isinstance(left, Mapping) or first not in left or not set(left) <= set(setups):
            raise FormError(f"members are not {first} and some of {', '.join(setups)}")
        for name, of_member in left.items():
            SYSTEMS.get(setups[name].entry.system).check_state(setups[name], of_member)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore every member."""
        _check_keys(self.setup, state)
        self.unseen = dict(state["unseen"])
        self.distances = {name: float(each) for name, each in state.get(DISTANCES, {}).items()}
        known = state["members"]
        self.members = {name: each for name, each in self.members.items() if name in known}
        for name, member in self.members.items():
            member.load_state_dict(state["members"][name])
            if member.domains != list(state["domains"]):
                raise FormError(f"the member {name} has learned different domains")


def _settings(setup: Setup) -> AutoSettings | BestSettings:
    entry = setup.entry
    settings = entry.Settings.build(setup.settings, PROFILES.get(setup.profile), entry.name)
    assert isinstance(settings, AutoSettings | BestSettings)
    return settings


def _members(setup: Setup) -> list[Member]:
    """The members that the settings name, or those that suit the inputs."""
    table = len(setup.shape) == 1 and setup.run.train == "all"
    settings = _settings(setup)
    named = read_members(settings.chosen(table=table))
    if settings.members is None:  # those that fit the labels
        return [each for each in named if setup.task.fits(each.entry.needs_classes)]
    for each in named:
        setup.task.check_method(each.entry.name, each.entry.needs_classes, fit_numbers)
    return named


def _check_members(members: Sequence[Member], ability: str, what: str) -> None:
    """Refuse what a member does not support."""
    for member in members:
        if not getattr(member.entry, ability):
            why = f"member {member.text!r} does not support {what}: choose another member"
            raise FarshoreError(why)


def _check_keys(setup: Setup, state: Mapping[str, Any]) -> None:
    further = {DISTANCES: None} if cast(type[Auto], setup.entry).weighs_domains else {}
    check_keys(state, STATE | further, "the state")
