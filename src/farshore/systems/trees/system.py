"""TreesSystem: boosted trees behind the interface of all learners."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...base.forms import NAMES, FormError, Like, check_form
from ...base.randomness import derive
from ...data.domain import Domain
from ...errors import StateError
from ...memory.memory import Fields, KeptForm
from ...memory.partitions import PartitionedMemory
from ...system import Setup, Usage
from ...training.checkpoints import Checkpoints
from ...training.profiles import PROFILES
from ..fitted import Examples, TableSystem
from .boosted import fit_lightgbm, fit_sklearn
from .ensemble import TreeEnsemble, constant, from_parts
from .entry import TreesSettings


@dataclass(frozen=True)
class _Kept:
    """The training rows of a domain, as the memory stores them."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def fields(self, positions: Tensor) -> Fields:
        """The rows at these positions."""
        fields = {"inputs": self.inputs[positions], "labels": self.labels[positions]}
        if self.weights is not None:
            fields["weights"] = self.weights[positions, None]
        return fields


class TreesSystem(TableSystem):
    """Keeps a memory like er's, and fits all trees again when a domain is learned."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, "trees learn")
        settings = setup.entry.Settings.build(setup.settings, PROFILES.get(setup.profile))
        assert isinstance(settings, TreesSettings)
        self.settings = settings
        balanced, most = setup.run.class_balanced_memory, setup.run.memory_bytes
        self.memory = PartitionedMemory(setup.capacity, max_bytes=most, class_balanced=balanced)
        self.memory.task = setup.task
        self.generator = torch.Generator().manual_seed(derive(setup.seed, "trees", "memory"))
        self.model: TreeEnsemble = constant(setup.task.blank(1)[0].numpy(), setup.classes)

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Refuse a state that does not match this setup."""
        draws = Like((None,), torch.uint8)
        form = {"domains": NAMES, "memory": None, "trees": None, "generator": draws}
        try:
            check_form(state, form, "system")
            from_parts(state["trees"], setup.shape[0], setup.classes)
            memory = PartitionedMemory(setup.capacity, max_bytes=setup.run.memory_bytes)
            outputs = {"weights": 1} if setup.weighted else {}
            memory.check_state(state["memory"], KeptForm(setup.shape, setup.task, outputs))
            torch.Generator().set_state(state["generator"])
        except (FormError, RuntimeError) as error:
            raise StateError(f"the saved trees cannot be used: {error}") from None

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Fit all trees to the domain's training rows and the memory; `steps` has no meaning."""
        began = time.perf_counter()
        rows = domain.split("train").to(torch.device("cpu"))
        inputs, labels = rows.take(torch.arange(len(rows)))
        weights = rows.weights_at(torch.arange(len(rows)))
        if weights is None and self.setup.weighted:
            weights = torch.ones(len(rows))
        current = _Kept(inputs.float(), labels, weights)
        self.memory.open_domain(domain.name, current)
        weighted = self.setup.weighted
        past = [
            _Kept(of["inputs"], of["labels"], of["weights"].flatten() if weighted else None)
            for of in self.memory.kept().values()
        ]
        self.model = self._fit([*past, current], number=len(self._domains))
        self.seconds["steps"] = time.perf_counter() - began
        began = time.perf_counter()
        self.memory.close_domain(domain.name, current, self.generator)
        self._domains.append(domain.name)
        self.rows_per_step = sum(map(len, past)) + len(current)
        self.seconds["closing"] = time.perf_counter() - began

    def _fit(self, parts: list[_Kept], *, number: int) -> TreeEnsemble:
        inputs = torch.cat([part.inputs for part in parts]).double().numpy()
        labels = torch.cat([part.labels for part in parts]).numpy()
        if (labels == labels[0]).all():
            return constant(labels[0], self.setup.classes)
        settings = self.settings
        weights = None
        if settings.domains == "equal":
            # On average 1, so that the weight decay means the same as without weights.
            scale = len(labels) / len(parts)
            weights = np.concatenate([np.full(len(part), scale / len(part)) for part in parts])
        if self.setup.weighted:
            own = [part.weights for part in parts if part.weights is not None]
            row_weights = torch.cat(own).double().numpy()
            weights = row_weights if weights is None else weights * row_weights
        fit = fit_lightgbm if settings.library == "lightgbm" else fit_sklearn
        seed = derive(self.setup.seed, "trees", number) % 2**32
        return fit(settings, Examples(inputs, labels, weights, self.setup.task, seed))

    def grown(self, setup: Setup) -> "TreesSystem":
        """A system with more classes; the trees stay until the next domain is learned."""
        larger = TreesSystem(setup)
        larger.load_state_dict(self.state_dict())
        return larger

    def forget(self, domain: str) -> None:
        """Delete the kept rows of a domain."""
        self.memory.forget(domain)
        self._domains.remove(domain)

    def kept_rows(self) -> dict[str, Fields]:
        """The rows in the memory."""
        return self.memory.kept()

    def share(self, kept: Mapping[str, Fields]) -> None:
        """Keep these rows of all domains instead."""
        fields = ("inputs", "labels", "weights") if self.setup.weighted else ("inputs", "labels")
        rows = [{name: each[name].cpu() for name in fields} for each in kept.values()]
        state = {"names": list(kept), "rows": rows, "coming": None}
        self.memory.load_state_dict(state, torch.device("cpu"))

    def usage(self) -> Usage:
        """What memory and trees take."""
        return Usage(
            settings=self.settings.model_dump(),
            memory_items=self.memory.items,
            memory_bytes=self.memory.bytes,
            method_bytes=self.model.bytes,
            precision="float64",
        )

    def state_dict(self) -> dict[str, Any]:
        """Memory, trees and the generator."""
        return {
            "domains": self.domains,
            "memory": self.memory.state_dict(),
            "trees": self.model.parts(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict`."""
        self._domains = list(state["domains"])
        self.memory.load_state_dict(state["memory"], torch.device("cpu"))
        self.model = from_parts(state["trees"], self.setup.shape[0], self.setup.classes)
        self.generator.set_state(state["generator"])
