"""Learner: trains on the next domain, predicts, saves, loads and goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .checkpoints import Checkpoints, load_optimizers
from .data.convert import Label, as_inputs, as_labels, encode_labels, find_classes, from_dataset
from .data.domain import Domain, Rows
from .data.frames import is_treated, learn_columns, to_inputs
from .data.preprocessing import Preprocessing, from_state
from .data.seal import training
from .errors import FarshoreError, StateError, unknown
from .evaluation.scores import score
from .execution import arithmetic, check_way, choose_way, evaluation, extraction, laid_out, steps_of
from .memory import PartitionedMemory, ReservoirMemory, make_memory
from .methods import METHODS
from .methods.method import Method, Terms, balanced_weights
from .networks.build import check_sizes, make_network
from .networks.network import EVALUATION_ROWS, Network
from .observer import Observer
from .optimization import check_finite, find_device, make_optimizer
from .profiles import PROFILES
from .randomness import Generators, derive, seeded
from .rehearsal import Rehearsal
from .settings import RunSettings, divide
from .state import load_state, save_state

EVALUATION_VALUES = 4096 * 1024  # fewer rows at once where a row is large
FINITE_CHECK_STEPS = 100


class Learner:
    """One classifier that learns domain after domain.

    network: a name ("mlp", "cnn", "resnet18") or your own `farshore.Network`.
    method: a name; `farshore methods` lists them.
    memory: how many rows are kept of all past domains together.
    settings: settings of the method and of the run by name, for example {"learning_rate": 1e-3,
    "replay_budget": "total"}.
    classes: all labels that may ever come; otherwise the first domain fixes them.
    profile: the name of a settings profile, which decides the defaults; if not given, `large-data`
    for images and `default` for tables.
    """

    def __init__(
        self,
        network: str | Network = "mlp",
        method: str = "er",
        memory: int = 1000,
        *,
        settings: Mapping[str, Any] | None = None,
        network_settings: Mapping[str, Any] | None = None,
        classes: Sequence[Label] | None = None,
        metric: str = "accuracy",
        seed: int = 0,
        device: str = "cpu",
        profile: str | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.method_type = METHODS.get(method)
        for_method, for_run = divide(settings or {}, self.method_type.Settings)
        self.method_type.Settings.build(
            for_method
        )  # refuses bad values now, not at the first domain
        self.run = RunSettings.build(for_run)
        if self.run.class_weight != "none" and not self.method_type.weighs_classes:
            raise FarshoreError(
                f"class_weight = {self.run.class_weight!r} is not allowed for {method!r}: its "
                "loss has no term to weigh"
            )
        self._method_settings = for_method
        self._network = network
        self.network_settings = dict(network_settings or {})
        if metric not in ("accuracy", "macro_f1"):
            raise FarshoreError(
                f"metric = {metric!r} is not allowed: it should be 'accuracy' or 'macro_f1'"
            )
        self.metric = metric
        self.seed = int(seed)
        self.device = find_device(device)
        check_way(self.run, self.device)
        self.profile = profile
        self.capacity = int(memory)
        self.classes = list(classes) if classes is not None else None
        self.observer = observer or Observer()
        self.shape: tuple[int, ...] | None = None
        self.dtype = torch.float32
        self.domains: list[dict[str, Any]] = []
        self.steps_done = 0
        # How raw rows become inputs, where this learner was begun with a data frame or by a run on
        # raw files.
        self.preprocessing: Preprocessing | None = None
        self.seconds = {
            "steps": 0.0,
            "closing": 0.0,
        }  # of the last domain: its steps; filling the memory and the priors
        self.notes: list[str] = []  # how steps were carried out otherwise than asked for, and why
        self.checkpoints: Checkpoints | None = (
            None  # where a domain is continued from if its training was interrupted
        )
        PartitionedMemory(self.capacity)  # refuses a capacity below 1

    # ---- the user's verbs ------------------------------------------------------------------------

    def learn(
        self,
        x: Any,
        y: Any = None,
        *,
        domain: str | None = None,
        steps: int = 500,
        validation: float | int = 0.2,
    ) -> dict[str, float]:
        """Learn one further domain. Returns its scores; `validation` rows are held out to measure
        them.

        x and y: arrays, tensors or lists; or a data frame, whose columns are scaled and encoded by
        what the first domain's training rows show; or a torch Dataset of (input, label) pairs,
        without y. The first call fixes the form of the inputs and, unless `classes` was given, the
        classes.
        """
        name = domain if domain is not None else f"domain {len(self.domains) + 1}"
        x, y = from_dataset(x, y)
        labels = as_labels(y, where=f"the labels of domain {name!r}")
        classes = self.classes if self.classes is not None else find_classes(labels)
        encoded = encode_labels(labels, classes, domain=name)
        seed = derive(self.seed, "split", len(self.domains))
        preprocessing = self.preprocessing
        if is_treated(x, preprocessing, bool(self.domains)):
            split = Domain.divided(
                name, torch.empty(len(x), 0), encoded, validation=validation, seed=seed
            )
            preprocessing = learn_columns(x, split.train, preprocessing)
            x = preprocessing.transform(x)
        inputs = as_inputs(x, where=f"the inputs of domain {name!r}")
        made = Domain.divided(name, inputs, encoded, validation=validation, seed=seed)
        self.learn_domain(made, steps=steps, classes=classes)
        self.preprocessing = preprocessing
        scores = {
            f"{part} {self.metric}": self.score(made.split(part))
            for part in ("train", "validation")
            if len(made.split(part))
        }
        self.observer.domain(name, scores)
        return scores

    def learn_domain(
        self, domain: Domain, *, steps: int, classes: Sequence[Label] | None = None
    ) -> None:
        """Learn a Domain whose labels are class numbers. What is wrong with it is said before
        the first step.
        """
        if self.method_type.kind == "offline":
            raise FarshoreError(
                f"method {self.method_type.name!r} learns all its domains at once, not one after "
                "the other: "
                "use farshore.joint.JointLearner(...).learn_jointly(domains, steps=...), or "
                "another method"
            )
        self._check(domain, steps)
        if self.shape is None:
            self._begin(
                tuple(domain.inputs.shape[1:]), _dtype(domain), classes or self.classes or []
            )
        if isinstance(self.memory, PartitionedMemory):
            self.memory.check_room(domain.name)
        with training(f"domain {domain.name!r}"):
            self._train(domain, steps)
        self.domains.append({"name": domain.name, "rows": len(domain), "steps": steps})

    def predict(self, x: Any) -> np.ndarray:
        """The label of each row."""
        number: np.ndarray = (
            self.logits(to_inputs(x, self.preprocessing)).argmax(dim=1).cpu().numpy()
        )
        return np.asarray(self._known_classes()).take(number)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes`."""
        probabilities: np.ndarray = (
            self.logits(to_inputs(x, self.preprocessing)).softmax(dim=1).cpu().numpy()
        )
        return probabilities

    def save(self, folder: str | Path, *, keep_previous: bool = False) -> None:
        """Write everything that training needs to go on into `folder`, atomically;
        `keep_previous` keeps what was there for undo.
        """
        save_state(folder, self.state_dict(), kind="learner", keep_previous=keep_previous)

    def forget(self, domain: str) -> None:
        """Delete the kept rows of this domain and what the method remembers of it alone. The
        weights stay as they are.
        """
        if domain not in [seen["name"] for seen in self.domains]:
            raise unknown("domain", domain, [seen["name"] for seen in self.domains])
        if isinstance(self.memory, ReservoirMemory):
            raise FarshoreError(
                f"method {self.method_type.name!r} keeps rows of all domains in one sample: they "
                "cannot be told apart"
            )
        if isinstance(self.memory, PartitionedMemory):
            self.memory.forget(domain)
        self.method.forget(domain)
        self.domains = [seen for seen in self.domains if seen["name"] != domain]
        self.method.domains = [seen["name"] for seen in self.domains]

    # ---- prediction and scores -------------------------------------------------------------------

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits in evaluation mode, in large batches."""
        self._known_classes()
        self._check_form(tuple(inputs.shape[1:]), inputs.dtype, "the inputs")
        if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
            raise FarshoreError(
                "the inputs hold NaN or infinite values: fill or drop those rows first"
            )
        return self.outputs(
            Rows(inputs, torch.zeros(len(inputs), dtype=torch.long), torch.arange(len(inputs)))
        )[0]

    def score(self, rows: Rows) -> float:
        """The learner's metric on these rows."""
        logits, labels = self.outputs(rows)
        return score(self.metric, logits, labels)

    def outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Logits and labels of these rows."""
        with self.arithmetic():
            return self._outputs(rows)

    def _outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        predictor = self.method.predictor().eval()
        size = max(
            64, min(EVALUATION_ROWS, EVALUATION_VALUES // max(1, math.prod(rows.inputs.shape[1:])))
        )
        logits, place = torch.empty(0), 0
        with evaluation(predictor, self.way, self.device), torch.inference_mode():
            for inputs, _ in rows.batches(size):
                part = predictor(inputs.to(self.device)).float()
                # one tensor for all: many small ones would be scattered over the memory that the
                # batches used
                if place == 0:
                    logits = part.new_empty(len(rows), *part.shape[1:])
                logits[place : place + len(part)] = part
                place += len(part)
        return logits, rows.labels[rows.index].to(self.device)

    # ---- set-up ----------------------------------------------------------------------------------

    def _known_classes(self) -> list[Label]:
        if self.shape is None or self.classes is None:
            raise FarshoreError("this learner has not learned a domain yet: call learn first")
        return self.classes

    def _check(self, domain: Domain, steps: int) -> None:
        if steps < 1:
            raise FarshoreError(f"steps = {steps} is not allowed: at least 1 step a domain")
        if domain.name in [seen["name"] for seen in self.domains]:
            raise FarshoreError(
                f"domain {domain.name!r} was learned before: give the new one another name"
            )
        if len(domain.train) == 0:
            raise FarshoreError(f"domain {domain.name!r} has no training rows")
        if self.shape is not None:
            self._check_form(
                tuple(domain.inputs.shape[1:]), _dtype(domain), f"domain {domain.name!r}"
            )

    def _check_form(self, shape: tuple[int, ...], dtype: torch.dtype, what: str) -> None:
        if shape != self.shape:
            raise FarshoreError(
                f"{what}: rows of shape {list(shape)}, but this learner was begun with "
                f"{list(self.shape or ())}"
            )
        if dtype != self.dtype:
            raise FarshoreError(
                f"{what}: {dtype} values, but this learner was begun with {self.dtype}"
            )

    def _begin(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        classes: Sequence[Label],
        *,
        restored: bool = False,
    ) -> None:
        """Fix the form of the inputs and the classes, and build everything that depends on them."""
        if len(classes) < 2:
            raise FarshoreError(
                f"the first domain has one class only ({list(classes)}): give classes=[...] "
                "naming all that may come"
            )
        if self.profile is None:
            self.profile = "large-data" if len(shape) == 3 else "default"
        settings = self.method_type.Settings.build(
            self._method_settings, PROFILES.get(self.profile), self.method_type.name
        )
        self.generators = Generators.from_seed(self.seed, self.device)
        with seeded(self.generators.init):
            network = make_network(
                self._network, shape, len(classes), self.network_settings, restored=restored
            )
            self.method: Method = self.method_type(settings)
            network = self.method.prepare(network).to(self.device)
        self.memory = make_memory(
            self.method_type.replay.memory, self.capacity, len(classes), self.run
        )
        self.method.attach(network, self.memory, self.generators.method, self._make_optimizer)
        self.rehearsal = Rehearsal(self.method, self.memory, self.generators, self.run, self.device)
        self.choose_way(0)
        self.shape, self.dtype, self.classes = shape, dtype, list(classes)

    def _make_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        settings = self.method.settings
        return make_optimizer(
            self.run, parameters, rate=settings.learning_rate, decay=settings.weight_decay
        )

    # ---- training --------------------------------------------------------------------------------

    def _train(self, domain: Domain, steps: int) -> None:
        rows = domain.split("train").to(self.device)
        if self.run.reset_optimizer == "domain" and self.domains:
            self.method.reset_optimizers()
        if self.run.class_weight == "balanced":
            self.method.class_weight = balanced_weights(
                rows.labels[rows.index], len(self._known_classes())
            )
        self.method.before_domain(domain.name)
        self.observer.start(domain.name, steps)
        staging = self.rehearsal.staging(domain, rows)
        began = time.perf_counter()
        first = (
            self.checkpoints.resume(self, domain, steps, staging)
            if self.checkpoints is not None
            else 0
        )
        self.choose_way(steps, [rows])
        with self.arithmetic():
            with self.steps(lambda: self.device_step(rows, staging)) as carry_out:
                for step in range(first, steps):
                    self.method.before_step(self.steps_done, step)
                    terms = carry_out()
                    self.steps_done += 1
                    self.observer.step(domain.name, step, terms)
                    if self.checkpoints is not None:
                        self.checkpoints.reached(self, domain, step + 1, steps, staging)
                    if step % FINITE_CHECK_STEPS == FINITE_CHECK_STEPS - 1 or step == steps - 1:
                        check_finite(self.method.network, domain.name, step)
            ended = time.perf_counter()
            if isinstance(self.memory, PartitionedMemory):
                self.memory.add(domain.name, self.rehearsal.kept(domain.name, rows, staging))
            self.method.domains.append(domain.name)
            self.method.after_domain(domain.name, rows)
            self._wait()
        self.seconds = {"steps": ended - began, "closing": time.perf_counter() - ended}

    def device_step(self, rows: Rows, staging: ReservoirMemory | None) -> Terms:
        """What a step does on the device: draw, update, offer the rows to the reservoir if there
        is one. It reads no value there.
        """
        batch = self.rehearsal.batch(rows)
        terms = self.method.update(batch)
        self.method.after_step(batch)
        if staging is not None:
            staging.offer(self.rehearsal.offered(batch), self.generators.memory)
        return terms

    def choose_way(self, steps: int, rows: Sequence[Rows] = ()) -> None:
        """How the steps of the coming domain are carried out, in which precision and memory
        format.
        """
        method, network = self.method, self.method.network
        reason = method.uncaptured()
        if not all(isinstance(each.inputs, Tensor) for each in rows):
            reason = reason or "the domain's inputs do not fit into the memory of the GPU"
        self.way = choose_way(
            self.run,
            self.device,
            network,
            steps,
            uncaptured=reason,
            uncompiled=self.method_type.uncompiled,
        )
        for text in self.way.notes:
            self._note(text)

    def _note(self, text: str) -> None:
        """Say it once, and keep it for the result."""
        if text not in self.notes:
            self.notes.append(text)
            self.observer.note(text)

    def arithmetic(self) -> AbstractContextManager[None]:
        """Inside, products are as exact and as repeatable as the run asks."""
        return arithmetic(self.way, self.run, self.device)

    @contextmanager
    def steps(self, step: Callable[[], Terms]) -> Iterator[Callable[[], Terms]]:
        """What carries out a domain's steps, with the network in training mode."""
        method, generators = self.method, self.generators
        network = method.network
        network.train()

        def phase() -> Hashable:
            # A fresh optimiser creates its state in its first step, which must not be recorded.
            return method.phase(), *(len(optimizer.state) for optimizer in method.opts)

        drawn = (generators.data, generators.memory, generators.method)
        with (
            network.batchnorm("frozen" if self.run.freeze_batchnorm else "train"),
            laid_out(network, method.opts, self.way),
            extraction(network, self.way, self.device, self._note),
            steps_of(self.way, self.device, step, phase, drawn, self._note) as steps,
        ):
            yield steps
            self._wait()
        network.eval()

    def _wait(self) -> None:
        """Times are of work done, not of work asked for."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    # ---- rows of the past ------------------------------------------------------------------------

    def replay_plan(self) -> tuple[int, int]:
        """(past domains a step, rows of each): the replay budget, the same for all methods that
        replay.
        """
        return self.rehearsal.plan()

    @property
    def rows_a_step(self) -> int:
        """Rows that a step on the next domain would use: current and replayed."""
        return self.rehearsal.rows_a_step

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that training needs to go on exactly."""
        config = {
            "network": self._network if isinstance(self._network, str) else None,
            "method": self.method_type.name,
            "memory": self.capacity,
            "settings": {**self._method_settings, **self.run.model_dump(exclude_defaults=True)},
            "network_settings": self.network_settings,
            "classes": self.classes,
            "metric": self.metric,
            "seed": self.seed,
            "profile": self.profile,
        }
        state: dict[str, Any] = {
            "config": config,
            "domains": self.domains,
            "steps_done": self.steps_done,
            "shape": None,
        }
        state["preprocessing"] = (
            self.preprocessing.state_dict() if self.preprocessing is not None else None
        )
        if self.shape is None:
            return state
        return state | {
            "shape": list(self.shape),
            "dtype": str(self.dtype).removeprefix("torch."),
            "network": dict(self.method.network.state_dict()),
            "optimizers": [optimizer.state_dict() for optimizer in self.method.opts],
            "memory": self.memory.state_dict() if self.memory is not None else None,
            "method": self.method.state_dict(),
            "generators": self.generators.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, into a learner of the same configuration."""
        self.domains = [dict(domain) for domain in state["domains"]]
        self.steps_done = int(state["steps_done"])
        self.preprocessing = from_state(state.get("preprocessing"))
        if state["shape"] is None:
            return
        shape, classes = tuple(state["shape"]), self.classes or []
        if isinstance(self._network, str):
            check_sizes(self._network, shape, len(classes), self.network_settings, state["network"])
        self._begin(shape, getattr(torch, state["dtype"]), classes, restored=True)
        self.method.network.load_state_dict(state["network"])
        load_optimizers(self.method.opts, state["optimizers"])
        if self.memory is not None:
            self.memory.load_state_dict(state["memory"], self.device)
        self.method.domains = [domain["name"] for domain in self.domains]
        self.method.load_state_dict(state["method"])
        self.generators.load_state_dict(state["generators"])


def load(
    folder: str | Path,
    *,
    network: Network | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learner:
    """A learner from the folder that `save` wrote. Hand in `network` again if it was your own
    module.
    """
    return from_state_dict(
        load_state(folder, kind="learner"),
        folder,
        network=network,
        device=device,
        observer=observer,
    )


def from_state_dict(
    state: Mapping[str, Any],
    folder: str | Path,
    *,
    network: Network | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learner:
    """A learner from what `state_dict` gave; `folder` says in messages where it is from."""
    try:
        config = dict(state["config"])
        if config["network"] is None:
            if network is None:
                raise FarshoreError(
                    f"{folder} was saved with your own network: call load(folder, network=...) "
                    "with the same modules"
                )
            config["network"] = network
        learner = Learner(**config, device=device, observer=observer)
        learner.load_state_dict(state)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise StateError(f"{folder} does not hold a whole learner: {error}") from error
    return learner


def _dtype(domain: Domain) -> torch.dtype:
    if isinstance(domain.inputs, Tensor):
        return domain.inputs.dtype
    return torch.uint8 if domain.inputs.dtype == np.uint8 else torch.float32
