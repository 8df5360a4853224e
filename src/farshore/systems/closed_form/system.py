"""ClosedFormSystem: learns a domain in one pass over its rows, and computes the head from sums.

The state is the sums of each domain. Learning adds those of one more domain, forgetting deletes
those of one; in both cases the head is then computed afresh.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from ...base.allocation import check_fits, explain_shortage
from ...base.forms import NAMES, FormError, Like, ListOf, MapOf, check_form, check_keys, like_all
from ...base.randomness import generator, seeded
from ...base.trees import same, widened
from ...data.domain import Domain, Rows, row_form
from ...data.seal import training
from ...errors import FarshoreError
from ...methods.finetune import Finetune
from ...networks.build import build_network, check_sizes, is_pretrained, plain_network_settings
from ...networks.network import ImageInputs, Network
from ...observer import Observer
from ...settings import MethodSettings
from ...system import Setup, System, Usage
from ...training.checkpoints import Checkpoints
from ...training.execution.execution import cpu_threads, usual_threads
from ...training.profiles import PROFILES
from ...training.trainer import Trainer
from .entry import ClosedForm, ClosedFormSettings
from .head import Head
from .joining import Origin, origin, origin_form, other_features, too_few_rows
from .predictor import FlatInputs, NetworkFeatures, NoFeatures, Predictor, squares
from .sums import Adder, DomainSums, SumsOfDomain

BATCH_ROWS = 2048
BATCH_VALUES = 2048 * 4096  # fewer rows at once if a row or its features are large
WIDEST = 10_000  # the most random features of the settings
STATE = dict.fromkeys(("domains", "tuned", "network", "projection", "sums", "head"))
# How each domain was summed; older states do not say.
ORIGINS = "origins"


class ClosedFormSystem(System):
    """Frozen features, sums per domain, and a linear head in closed form."""

    def __init__(self, setup: Setup) -> None:
        setup.refuse_steps()
        kind = cast(type[ClosedForm], setup.entry)
        self.setup, self.device, self.observer = setup, setup.device, setup.observer
        settings = kind.Settings.build(setup.settings, PROFILES.get(setup.profile), kind.name)
        self.entry = kind(settings)
        self.entry.task = setup.task
        self.sums = DomainSums()
        self.order: list[str] = []
        self.origins: dict[str, Origin] = {}
        self.tuned = False
        self.seconds = {"steps": 0.0, "closing": 0.0}
        self.rows_per_step = 0
        self.notes: list[str] = []
        self.uses_network = _uses_network(settings, setup)
        base, self.inputs = self._make_base()
        self.base = base.to(self.device).eval().requires_grad_(False)
        self.model = self._make_predictor(self.inputs)

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
            sizes, settings = (setup.shape, setup.classes), setup.network_settings
            made = build_network(network, *sizes, settings, restored=setup.restored)
        return NetworkFeatures(made), made.feature_dim

    def _make_predictor(self, features: int, stored: int | None = None) -> Predictor:
        """The predictor, with a random projection that the seed determines.

        stored: the width of the projection in a saved state, which may be an older default.
        """
        setup = self.setup
        width = self.entry.projection(features) if stored is None else stored
        if self.entry.level == "counts":
            return Predictor(NoFeatures(), None, 1, setup.classes).to(self.device).eval()
        columns = width or features
        squares = columns**2 if self.entry.level == "products" else 0
        # The matrix of products, its shrunk copy and its factor, beside the projection.
        smaller = "set random_features to a lower number, for example 400"
        advice = smaller if width else "use features=network, or the method ncm"
        what = f"closed-form learning with {columns:,} features"
        check_fits(8 * 4 * squares + 4 * features * width, what, advice)
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

    @property
    def columns(self) -> int:
        """The number of columns of the targets that are summed."""
        return self.setup.task.targets(self.setup.task.blank(0)).shape[1]

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Sum the domain's rows in one pass, then fit; `steps` are for `first_domain_tuning`."""
        began, setup = time.perf_counter(), self.setup
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
            _, dtype = row_form(domain)
            tally = setup.task.tally(rows.labels[rows.index])
            self.origins[domain.name] = origin(self.model, setup.shape, dtype, tally)
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
        chosen = {name: getattr(settings, name) for name in own}
        setup = replace(self.setup, entry=Finetune, settings=chosen)
        trainer = Trainer(setup)
        trainer.learn(domain, steps=steps, checkpoints=checkpoints)
        self.notes += trainer.notes
        self.base.load_state_dict(NetworkFeatures(trainer.method.network).state_dict())
        self.tuned = True

    def summed(self, domain: Domain) -> SumsOfDomain:
        """The sums of a domain's training rows, which are not learned by this."""
        return self._summed(domain.name, domain.split("train").to(self.device), Observer())

    def _summed(self, name: str, rows: Rows, observer: Observer) -> SumsOfDomain:
        """The sums of these rows, batch by batch, so that the memory stays bounded."""
        setup, entry, model = self.setup, self.entry, self.model
        weight = None
        if setup.run.class_weight == "balanced":
            weight = setup.task.balanced(rows.labels[rows.index])
        values = max(1, math.prod(setup.shape), *model.weight.shape)
        size = max(64, min(BATCH_ROWS, BATCH_VALUES // values))
        self.rows_per_step = min(size, len(rows))
        adder = Adder(len(model.weight), self.columns, entry.level, entry.product_type, self.device)
        observer.start(name, -(-len(rows) // size))
        what = f"sums of {len(model.weight):,} features"
        shortage = explain_shortage(what, "lower random_features")
        with shortage, self._computing():
            parts = torch.arange(len(rows)).tensor_split(max(1, -(-len(rows) // size)))
            for number, positions in enumerate(parts):
                inputs, labels = rows.take(positions)
                features = model.extract(inputs.to(self.device))
                adder.add(features, setup.task.targets(labels), weight, rows.weights_at(positions))
                observer.step(name, number, {})
        sums = adder.packed()
        if not all(bool(torch.isfinite(each).all()) for each in sums.values()):
            raise FarshoreError(
                f"domain {name!r} has features whose squares are too large to add up: scale its "
                "inputs first"
            )
        return sums

    def grown(self, setup: Setup) -> "ClosedFormSystem":
        """A system with more classes, none of which was seen so far; the head stays as it is."""
        larger, state = ClosedFormSystem(setup), self.state_dict()
        larger._take_width(state)
        if state["network"] is not None:
            fresh = larger.base.state_dict()
            old = state["network"]
            state["network"] = {name: widened(of, fresh[name]) for name, of in old.items()}
        model, width = larger.model, len(larger.model.weight)
        fresh_head = {"weight": model.weight, "bias": model.bias, "seen": model.seen}
        empty = {name: torch.zeros_like(fresh) for name, fresh in fresh_head.items()}
        state["head"] = {name: widened(of, empty[name]) for name, of in state["head"].items()}
        for sums in state["sums"]:
            old = sums["by_class"]
            sums["by_class"] = widened(old, old.new_zeros(width, setup.classes))
            sums["counts"] = widened(sums["counts"], sums["counts"].new_zeros(setup.classes))
        for kept in state[ORIGINS].values():
            kept["rows"] = widened(kept["rows"], kept["rows"].new_zeros(setup.classes))
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
            self.model.install(head, self.setup.task.seen(self.sums.added()["counts"]))

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
            return torch.cat([self.base(part.to(self.device)) for part in inputs.split(BATCH_ROWS)])

    def predictor(self) -> nn.Module:
        """From inputs to logits."""
        return self.model

    # ---- the past and state ----------------------------------------------------------------------

    def forget(self, domain: str) -> None:
        """Delete the sums of this domain and compute the head without them.

        The result is that of never having seen the domain, unless the features were trained on it.
        """
        del self.sums[domain]
        self.origins.pop(domain, None)
        self.order.remove(domain)
        self._fit()

    @property
    def forgets_exactly(self) -> bool:
        """Unless the features were trained on the first domain."""
        return not self.tuned

    def why_not_joined(self, other: System) -> str | None:
        """What differs in the features, if anything does; sums of the same features add up."""
        assert isinstance(other, ClosedFormSystem)
        if getattr(self.entry.settings, "first_domain_tuning", False):
            return "first_domain_tuning makes features of the first domain's rows; leave it out"
        for name in {*self.order, *other.order} - {*self.origins, *other.origins}:
            return f"{name!r} was learned by an older version of farshore; learn it again"
        mine, theirs = self.state_dict(), other.state_dict()
        for part, what in (("projection", "the random projection"), ("network", "the network")):
            if not same(mine[part], theirs[part]):
                return f"{what} that gives the features has other numbers"
        return other_features(self.origins, other.origins)

    def too_few_rows(self) -> dict[str, str]:
        """By domain, why its sums nearly are its rows."""
        return too_few_rows(self.entry, len(self.model.weight), self.origins)

    def join(self, others: Sequence[System]) -> None:
        """Add the sums of the others' domains; the order of joining has no influence."""
        for other in others:
            assert isinstance(other, ClosedFormSystem)
            for name in other.order:
                sums = other.sums[name].items()
                self.sums[name] = {key: tensor.to(self.device) for key, tensor in sums}
                self.origins[name] = other.origins[name]
            self.order += other.order
        self._fit()

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
            ORIGINS: {name: dict(kept) for name, kept in self.origins.items()},
        }

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Check the sizes of network and projection before anything is allocated for them."""
        _check_keys(state)
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
        if state["projection"] is not None:
            features = None if _uses_network(settings, setup) else squares(setup.shape)[1]
            width = getattr(settings, "random_features", None)
            check_form(state["projection"], Like((features, width), torch.float16), "projection")
        form = Like((None, setup.classes), torch.float32, finite=True)
        check_form(state["head"]["weight"], form, "head.weight")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state, after a check of every part of it."""
        self._take_width(state)
        self._check(state)
        model = self.model
        if state["network"] is not None:
            self.base.load_state_dict(state["network"])
        if model.projects:
            model.projection.copy_(_scaled(state["projection"]))
        self.tuned = state["tuned"]
        self.order = list(state["domains"])
        sums = [{key: each.to(self.device) for key, each in of.items()} for of in state["sums"]]
        self.sums = DomainSums(dict(zip(self.order, sums, strict=True)))
        self.origins = {name: dict(kept) for name, kept in state.get(ORIGINS, {}).items()}
        head = state["head"]
        model.install(Head(head["weight"], head["bias"]), head["seen"])

    def _take_width(self, state: Mapping[str, Any]) -> None:
        """Take the width of a saved projection, an older default, unless the settings fix it."""
        projection = state.get("projection")
        fixed = getattr(self.entry.settings, "random_features", None) is not None
        if fixed or not self.model.projects:
            return
        if not isinstance(projection, Tensor) or projection.ndim != 2:
            return  # which `_check` refuses if there should be one
        if not 1 <= projection.shape[1] <= WIDEST:
            raise FormError(f"projection has not 1 to {WIDEST:,} columns")
        if projection.shape[1] != len(self.model.weight):
            self.model = self._make_predictor(self.inputs, projection.shape[1])

    def _check(self, state: Mapping[str, Any]) -> None:
        """Raise a FormError unless every part of a state fits this system."""
        _check_keys(state)
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
            "by_class": Like((width, self.columns), torch.float64, finite=True),
            "counts": Like((self.columns,), torch.float64, finite=True),
        }
        if self.columns > classes:
            sums["moments"] = Like((self.columns,), torch.float64, finite=True)
        if self.entry.level == "means":
            sums["squares"] = Like((), torch.float64, finite=True)
        if self.entry.level == "products":
            sums["products"] = Like(((width + 1) // 2, width + 1), torch.float64, finite=True)
        check_form(state["sums"], ListOf(sums), "sums")
        if len(state["sums"]) != len(state["domains"]):
            raise FormError("there are not as many sums as domains")
        origins = state.get(ORIGINS, {})
        tally = self.setup.task.tally(self.setup.task.blank(0))
        check_form(origins, MapOf(origin_form(len(tally))), ORIGINS)
        if not set(origins) <= set(state["domains"]):
            raise FormError("there are origins of domains that were not learned")
        form = partial(Like, dtype=torch.float32, finite=True)
        head = {"weight": form((width, classes)), "bias": form((classes,)), "seen": model.seen}
        check_form(state["head"], head, "head")


def _check_keys(state: Mapping[str, Any]) -> None:
    check_keys(state, STATE | ({ORIGINS: None} if ORIGINS in state else {}), "the state")


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
    own = not isinstance(setup.network, str)
    return own or is_pretrained(str(setup.network), setup.network_settings)
