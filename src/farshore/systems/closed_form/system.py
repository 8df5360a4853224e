"""ClosedFormSystem: learns a domain in one pass over its rows, and computes the head from sums.

The state is the sums of each domain. Learning adds those of one more domain, forgetting deletes
those of one; in both cases the head is then computed afresh.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from ...base.allocation import check_fits, explain_shortage
from ...base.forms import NAMES, FormError, Like, ListOf, check_form, check_keys, like_all
from ...base.randomness import generator, seeded
from ...data.domain import Domain, Rows
from ...data.seal import training
from ...errors import FarshoreError
from ...memory.memory import Fields
from ...methods.finetune import Finetune
from ...methods.method import balanced_weights
from ...networks.build import check_sizes, is_pretrained, make_network, plain_network_settings
from ...networks.network import ImageInputs, Network
from ...observer import Observer
from ...settings import MethodSettings
from ...system import Setup, System, Usage, widened
from ...training.checkpoints import Checkpoints
from ...training.execution.execution import cpu_threads, usual_threads
from ...training.profiles import PROFILES
from ...training.trainer import Trainer
from .entry import ClosedForm, ClosedFormSettings
from .head import Head
from .predictor import FlatInputs, NetworkFeatures, NoFeatures, Predictor, squares
from .sums import Adder, DomainSums, SumsOfDomain

BATCH_ROWS = 2048
BATCH_VALUES = 2048 * 4096  # fewer rows at once if a row or its features are large
STATE = dict.fromkeys(("domains", "tuned", "network", "projection", "sums", "head"))


class ClosedFormSystem(System):
    """Frozen features, sums per domain, and a linear head in closed form."""

    def __init__(self, setup: Setup) -> None:
        setup.refuse_average()
        kind = cast(type[ClosedForm], setup.entry)
        self.setup, self.device, self.observer = setup, setup.device, setup.observer
        settings = kind.Settings.build(setup.settings, PROFILES.get(setup.profile), kind.name)
        self.entry = kind(settings)
        self.sums = DomainSums()
        self.order: list[str] = []
        self.tuned = False
        self.seconds = {"steps": 0.0, "closing": 0.0}
        self.rows_per_step = 0
        self.notes: list[str] = []
        self.uses_network = _uses_network(settings, setup)
        base, features = self._make_base()
        self.base = base.to(self.device).eval().requires_grad_(False)
        self.model = self._make_predictor(features)

    def _make_base(self) -> tuple[nn.Module, int]:
        """What gives the features, and their number. Without need, no network is built."""
        setup, network = self.setup, self.setup.network
        if not self.uses_network:
            if isinstance(network, Network):
                prepare = deepcopy(network.inputs)
            else:
                plain_network_settings(network, setup.network_settings)  # refuse what is unknown
                prepare = ImageInputs() if len(setup.shape) == 3 else nn.Identity()
            side, features = squares(setup.shape)
            return FlatInputs(prepare, side), features
        with seeded(generator(setup.seed, "init")):  # the initial weights of every other method
            made = make_network(
                network,
                setup.shape,
                setup.classes,
                setup.network_settings,
                restored=setup.restored,
            )
        return NetworkFeatures(made), made.feature_dim

    def _make_predictor(self, features: int) -> Predictor:
        """The predictor, with a random projection that the seed determines."""
        setup, width = self.setup, self.entry.projection
        if self.entry.level == "counts":
            return Predictor(NoFeatures(), None, 1, setup.classes).to(self.device).eval()
        columns = width or features
        squares = columns**2 if self.entry.level == "products" else 0
        # The matrix of products, its shrunk copy and its factor, beside the projection.
        check_fits(
            8 * 4 * squares + 4 * features * width,
            f"closed-form learning with {columns:,} features",
            "set random_features to a lower number, for example 400"
            if width
            else "use features=network, or the method ncm",
        )
        projection = None
        if width and setup.restored:
            projection = torch.zeros(features, width)
        elif width:
            draws = generator(setup.seed, "projection")
            projection = _scaled(torch.randn(features, width, generator=draws).half())
        return Predictor(self.base, projection, columns, setup.classes).to(self.device).eval()

    @property
    def domains(self) -> list[str]:
        """The domains learned so far, in order."""
        return list(self.order)

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Sum the domain's rows in one pass, then fit; `steps` are for `first_domain_tuning`."""
        began = time.perf_counter()
        with training(f"domain {domain.name!r}"):
            tunes = getattr(self.entry.settings, "first_domain_tuning", False) and not self.tuned
            if tunes:
                self._tune(domain, steps, checkpoints)
            # The observer has already seen the steps of the tuning.
            observer = Observer() if tunes else self.observer
            rows = domain.split("train").to(self.device)
            sums = self._summed(domain.name, rows, observer)
            ended = time.perf_counter()
            self.sums[domain.name] = sums
            self.order.append(domain.name)
            self._fit()
        self.seconds = {"steps": ended - began, "closing": time.perf_counter() - ended}

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Learn all domains: the result is the same as one after the other."""
        for domain in domains:
            self.learn(domain, steps=steps)
        return steps * len(domains)

    def _tune(self, domain: Domain, steps: int, checkpoints: Checkpoints | None) -> None:
        """Train the network on this domain by plain gradient steps, then freeze it."""
        settings = self.entry.settings
        own = ("learning_rate", "weight_decay", "batch_size")
        setup = replace(
            self.setup, entry=Finetune, settings={name: getattr(settings, name) for name in own}
        )
        trainer = Trainer(setup)
        trainer.learn(domain, steps=steps, checkpoints=checkpoints)
        self.notes += trainer.notes
        self.base.load_state_dict(NetworkFeatures(trainer.method.network).state_dict())
        self.tuned = True

    def _summed(self, name: str, rows: Rows, observer: Observer) -> SumsOfDomain:
        """The sums of these rows, batch by batch, so that the memory stays bounded."""
        setup, entry, model = self.setup, self.entry, self.model
        weight = None
        if setup.run.class_weight == "balanced":
            weight = balanced_weights(rows.labels[rows.index], setup.classes)
        values = max(1, math.prod(setup.shape), *model.weight.shape)
        size = max(64, min(BATCH_ROWS, BATCH_VALUES // values))
        self.rows_per_step = min(size, len(rows))
        adder = Adder(
            len(model.weight), setup.classes, entry.level, entry.product_type, self.device
        )
        observer.start(name, -(-len(rows) // size))
        shortage = explain_shortage(
            f"sums of {len(model.weight):,} features", "lower random_features"
        )
        with shortage, self._computing():
            parts = torch.arange(len(rows)).tensor_split(max(1, -(-len(rows) // size)))
            for number, positions in enumerate(parts):
                inputs, labels = rows.take(positions)
                features = model.extract(inputs.to(self.device))
                adder.add(features, labels, weight, rows.weights_at(positions))
                observer.step(name, number, {})
        sums = adder.packed()
        if not all(bool(torch.isfinite(each).all()) for each in sums.values()):
            raise FarshoreError(
                f"domain {name!r} has features whose squares are too large to add up: scale its "
                "inputs first"
            )
        return sums

    def grown(self, setup: Setup) -> ClosedFormSystem:
        """A system with more classes, none of which was seen so far; the head stays as it is."""
        larger, state = ClosedFormSystem(setup), self.state_dict()
        if state["network"] is not None:
            fresh = larger.base.state_dict()
            state["network"] = {
                name: widened(old, fresh[name]) for name, old in state["network"].items()
            }
        model, width = larger.model, len(larger.model.weight)
        fresh_head = {"weight": model.weight, "bias": model.bias, "seen": model.seen}
        state["head"] = {
            name: widened(old, torch.zeros_like(fresh_head[name]))
            for name, old in state["head"].items()
        }
        for sums in state["sums"]:
            old = sums["by_class"]
            sums["by_class"] = widened(old, old.new_zeros(width, setup.classes))
            sums["counts"] = widened(sums["counts"], sums["counts"].new_zeros(setup.classes))
        larger.load_state_dict(state)
        return larger

    def _fit(self) -> None:
        """Compute the head from the sums of all domains, whatever their order."""
        with self._computing():
            if not self.sums:
                zeros = Head(torch.zeros_like(self.model.weight), torch.zeros_like(self.model.bias))
                self.model.install(zeros, torch.zeros_like(self.model.seen))
                return
            head = self.entry.fit(self.sums)
            self.model.install(head, self.sums.added()["counts"] > 0)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Inside, tensors take no gradient, and the run's threads are used."""
        with cpu_threads(self.setup.run.threads or usual_threads(self.model)), torch.no_grad():
            yield

    # ---- prediction ------------------------------------------------------------------------------

    def logits(self, rows: Rows) -> Tensor:
        """Logits in large batches."""
        values = max(1, math.prod(self.setup.shape), *self.model.weight.shape)
        size = max(64, min(BATCH_ROWS, BATCH_VALUES // values))
        with self._computing():
            parts = [self.model(inputs.to(self.device)) for inputs, _ in rows.batches(size)]
            return torch.cat(parts)

    def features(self, inputs: Tensor) -> Tensor:
        """The frozen features, ahead of the random projection."""
        with self._computing():
            parts = inputs.split(BATCH_ROWS)
            return torch.cat([self.base(part.to(self.device)) for part in parts])

    def predictor(self) -> nn.Module:
        """From inputs to logits."""
        return self.model

    # ---- the past and state ----------------------------------------------------------------------

    def forget(self, domain: str) -> None:
        """Delete the sums of this domain and compute the head without them.

        The result is that of never having seen the domain, unless the features were trained on it.
        """
        del self.sums[domain]
        self.order.remove(domain)
        self._fit()

    @property
    def forgets_exactly(self) -> bool:
        """Unless the features were trained on the first domain."""
        return not self.tuned

    def kept_rows(self) -> dict[str, Fields]:
        """No rows are kept."""
        return {}

    def usage(self) -> Usage:
        """Effective settings; the bytes of all sums, the projection and the head."""
        model = self.model
        stored = [tensor for sums in self.sums.values() for tensor in sums.values()]
        stored += [model.weight, model.bias, model.seen]
        halves = model.projection.numel() if model.projects else 0  # two bytes each
        return Usage(
            settings=self.entry.settings.model_dump(),
            method_bytes=sum(tensor.nbytes for tensor in stored) + 2 * halves,
        )

    def state_dict(self) -> dict[str, Any]:
        """The sums by domain, and what prediction needs; the network only if it gives features."""
        model = self.model
        return {
            "domains": self.domains,
            "tuned": self.tuned,
            "network": dict(self.base.state_dict()) if self.uses_network else None,
            "projection": _unscaled(model.projection) if model.projects else None,
            "sums": [dict(self.sums[name]) for name in self.order],
            "head": {"weight": model.weight, "bias": model.bias, "seen": model.seen},
        }

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Check the sizes of network and projection before anything is allocated for them."""
        check_keys(state, STATE, "the state")
        kind = cast(type[ClosedForm], setup.entry)
        settings = kind.Settings.build(setup.settings, PROFILES.get(setup.profile), kind.name)
        prefix = "network."
        if _uses_network(settings, setup):
            stored = state["network"]
            if not isinstance(stored, Mapping):
                raise FormError("network is not a dictionary")
            if isinstance(setup.network, str):
                own = {name.removeprefix(prefix): value for name, value in stored.items()}
                check_sizes(setup.network, setup.shape, setup.classes, setup.network_settings, own)
        width = kind(settings).projection
        if width:
            features = None if _uses_network(settings, setup) else squares(setup.shape)[1]
            check_form(state["projection"], Like((features, width), torch.float16), "projection")
        form = Like((None, setup.classes), torch.float32, finite=True)
        check_form(state["head"]["weight"], form, "head.weight")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state, after a check of every part of it."""
        self._check(state)
        model = self.model
        if state["network"] is not None:
            self.base.load_state_dict(state["network"])
        if model.projects:
            model.projection.copy_(_scaled(state["projection"]))
        self.tuned = state["tuned"]
        self.order = list(state["domains"])
        self.sums = DomainSums(
            {
                name: {key: tensor.to(self.device) for key, tensor in sums.items()}
                for name, sums in zip(self.order, state["sums"], strict=True)
            }
        )
        head = state["head"]
        model.install(Head(head["weight"], head["bias"]), head["seen"])

    def _check(self, state: Mapping[str, Any]) -> None:
        """Raise a FormError unless every part of a state fits this system."""
        check_keys(state, STATE, "the state")
        check_form(state["domains"], NAMES, "domains")
        check_form(state["tuned"], True, "tuned")
        model = self.model
        if self.uses_network:
            check_form(state["network"], like_all(self.base.state_dict()), "network")
        elif state["network"] is not None:
            raise FormError("there is a network, but the inputs are the features")
        if model.projects:
            shape = tuple(model.projection.shape)
            check_form(state["projection"], Like(shape, torch.float16, finite=True), "projection")
        elif state["projection"] is not None:
            raise FormError("there is a projection, but the method has none")
        width, classes = model.weight.shape
        sums: dict[str, Any] = {
            "by_class": Like((width, classes), torch.float64, finite=True),
            "counts": Like((classes,), torch.float64, finite=True),
        }
        if self.entry.level == "means":
            sums["squares"] = Like((), torch.float64, finite=True)
        if self.entry.level == "products":
            sums["products"] = Like(((width + 1) // 2, width + 1), torch.float64, finite=True)
        check_form(state["sums"], ListOf(sums), "sums")
        if len(state["sums"]) != len(state["domains"]):
            raise FormError("there are not as many sums as domains")
        head = {
            "weight": Like((width, classes), torch.float32, finite=True),
            "bias": Like((classes,), torch.float32, finite=True),
            "seen": model.seen,
        }
        check_form(state["head"], head, "head")


def _scaled(drawn: Tensor) -> Tensor:
    """The projection from its draws, which are kept in half precision: it can be large."""
    return drawn.float() / math.sqrt(len(drawn))


def _unscaled(projection: Tensor) -> Tensor:
    """The draws of a projection, exactly as they were."""
    return (projection * math.sqrt(len(projection))).half()


def _uses_network(settings: MethodSettings, setup: Setup) -> bool:
    """Whether the features are the network's, as the settings say or by the rule of `auto`."""
    if not isinstance(settings, ClosedFormSettings):
        return False
    if settings.first_domain_tuning or settings.features == "network":
        return True
    if settings.features == "inputs" or len(setup.shape) == 1:
        return False
    return not isinstance(setup.network, str) or is_pretrained(
        setup.network, setup.network_settings
    )
