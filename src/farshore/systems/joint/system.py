"""PooledSystem: a model fitted to all rows at once, behind the interface of all learners."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

from ...base.forms import NAMES, FormError, check_form
from ...base.randomness import derive
from ...data.domain import Domain
from ...errors import FarshoreError, StateError
from ...system import Setup, Usage
from ...training.checkpoints import Checkpoints
from ..fitted import Examples, TableSystem
from .entry import Pooled


class PooledSystem(TableSystem):
    """Fits one model to the training rows of all domains; keeps no rows."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, f"{setup.entry.name} learns")
        self.entry = cast(type[Pooled], setup.entry)
        self.settings = self.entry.Settings.build(setup.settings)
        none = setup.task.blank(1)[0].numpy()
        self.model = self.entry.constant(none, setup.shape[0], setup.classes)

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Refuse a state that does not match this setup."""
        try:
            check_form(state, {"domains": NAMES, "model": None}, "system")
            cast(type[Pooled], setup.entry).restore(state["model"], setup.shape[0], setup.classes)
        except FormError as error:
            raise StateError(f"the saved model cannot be used: {error}") from None

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Fit to this domain alone."""
        self.learn_jointly([domain], steps=steps)

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Fit to the training rows of all domains; `steps` has no meaning.

        The domains are taken by name, so that their order has no influence.
        """
        if self._domains:
            raise FarshoreError("domains are learned jointly in one call, before any other")
        began, setup = time.perf_counter(), self.setup
        by_name = sorted(domains, key=lambda domain: domain.name)
        parts = [domain.split("train").to(torch.device("cpu")) for domain in by_name]
        taken = [part.take(torch.arange(len(part))) for part in parts]
        inputs = torch.cat([rows.float() for rows, _ in taken]).double().numpy()
        labels = torch.cat([of_rows for _, of_rows in taken]).numpy()
        weights = None
        if setup.weighted:
            own = [part.weights_at(torch.arange(len(part))) for part in parts]
            pairs = zip(parts, own, strict=True)
            given = [torch.ones(len(part)) if each is None else each for part, each in pairs]
            weights = torch.cat(given).double().numpy()
        counted = labels if weights is None else labels[weights > 0]
        if (counted == counted[:1]).all():
            only = next(iter(counted), labels[0])
            self.model = self.entry.constant(only, setup.shape[0], setup.classes)
        else:
            seed = derive(setup.seed, setup.entry.name) % 2**32
            self.model = self.entry.fit(Examples(inputs, labels, weights, setup.task, seed))
        self._domains = [domain.name for domain in domains]
        self.rows_per_step = len(labels)
        self.seconds["steps"] = time.perf_counter() - began
        return steps * len(domains)

    def forget(self, domain: str) -> None:
        """Nothing is kept for a domain; the model stays as it is."""
        self._domains.remove(domain)

    def usage(self) -> Usage:
        """What the model takes."""
        return Usage(self.settings.model_dump(), method_bytes=self.model.bytes, precision="float64")

    def state_dict(self) -> dict[str, Any]:
        """The model."""
        return {"domains": self.domains, "model": self.model.parts()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        self._domains = list(state["domains"])
        self.model = self.entry.restore(state["model"], self.setup.shape[0], self.setup.classes)
