"""Learner: learn, predict, save, load and forget.

It converts the user's data; a System does the work.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .checkpoints import Checkpoints
from .data.convert import (
    Label,
    as_inputs,
    as_labels,
    as_weights,
    check_no_quantity,
    encode_labels,
    find_classes,
    from_dataset,
)
from .data.domain import Domain, Rows
from .data.frames import (
    PREPROCESS,
    Preprocess,
    as_table,
    check_images,
    learn_columns,
)
from .data.hf_columns import is_hf_dataset, read_hf_dataset
from .data.image_folder import ImagePreprocessing
from .data.preprocessing import Preprocessing, from_state
from .data.progress import Follow, following
from .data.splits import split_seed
from .data.steps import usual_steps
from .data.table import TablePreprocessing
from .entry import Entry
from .errors import FarshoreError, StateError, unknown
from .evaluation.scores import score
from .execution import check_way
from .features import Extraction, FeatureCache, features_of, with_features
from .forms import FormError, Like, ListOf, MapOf, Maybe, check_form, check_keys
from .methods import METHODS
from .networks.build import (
    build_network,
    check_network,
    on_meta,
    settle_network,
)
from .networks.form import Settled
from .networks.freezing import Frozen, Parts, Train, divide, frozen_shape
from .networks.network import Network
from .networks.own_module import is_own_module
from .observer import Observer
from .optimization import find_device
from .randomness import generator, seeded
from .settings import RunSettings
from .settings import divide as divide_settings
from .state import load_state, save_state
from .system import SYSTEMS, Setup, System
from .trained_part import check_training, resolve_train, usual_profile

METRICS = ("accuracy", "macro_f1")
MOST_ROWS = 10**9
# Own data: a domain costs the same to learn, however many there were before it. Runs on benchmarks
# give the paper's budget, one batch of each past domain.
USUAL_RUN = {"replay_budget": "total", "train": "auto"}
STATE = dict.fromkeys(("config", "domains", "shape", "dtype", "preprocessing", "system"))
# The weights of the frozen part, if there is one.
FROZEN = "frozen"
CONFIG: dict[str, Any] = {
    "network": Maybe(""),
    "method": "",
    "memory": 0,
    "settings": MapOf(None),
    "network_settings": MapOf(None),
    "classes": Maybe(ListOf(None)),
    "metric": "",
    "preprocess": "",
    "weighted": Maybe(True),
    "seed": 0,
    "profile": Maybe(""),
}
LARGEST_INPUT = 1 << 28


class Learner:
    """One classifier that learns one domain after another.

    network: a name ("mlp", "cnn", "resnet18", "hf:facebook/dinov2-small", "timm:NAME",
        "torchvision:NAME", "module.py:factory") or your own `farshore.Network`, which is copied
        and never changed.
    method: a name; `farshore methods` lists them.
    memory: how many rows of all past domains are kept in total.
    settings: settings of the method and of the run by name, for example {"learning_rate": 1e-3}.
    classes: all labels that may ever occur; by default those of the first domain.
    preprocess: "columns" scales and encodes the columns of a table (a data frame or any rows of
        numbers) by the first domain's training rows; "none" takes numbers and images as they are.
        By default "columns"; "none" if the network is your own, whose first layer is made for
        certain inputs.
    weighted: whether rows have weights. By default they do if the weights of the first domain
        differ.
    profile: the name of a settings profile, which determines the defaults; if not given,
        `default` for tables, `frozen-features` for a classifier on a frozen backbone, and for
        images `large-data` if the network is pretrained and `images-from-scratch` if not.
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
        preprocess: Preprocess | None = None,
        weighted: bool | None = None,
        seed: int = 0,
        device: str = "cpu",
        profile: str | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.method_type: type[Entry] = METHODS.get(method)
        for_method, for_run = divide_settings(settings or {}, self.method_type.Settings)
        self.method_type.Settings.build(for_method)  # refuse bad values now, not at the first step
        self.run = RunSettings.build({**USUAL_RUN, **for_run})
        if self.run.class_weight != "none" and not self.method_type.weighs_classes:
            raise FarshoreError(
                f"class_weight = {self.run.class_weight!r} is not allowed for {method!r}: its loss "
                "has no term to weigh"
            )
        if metric not in METRICS:
            raise FarshoreError(
                f"metric = {metric!r} is not allowed: it should be 'accuracy' or 'macro_f1'"
            )
        if preprocess not in (None, *PREPROCESS):
            raise FarshoreError(
                f"preprocess = {preprocess!r} is not allowed: it should be 'columns' or 'none'"
            )
        if not 1 <= int(memory) <= MOST_ROWS:
            raise FarshoreError(
                f"memory = {memory} is not allowed: it must keep at least 1 row, and at most "
                f"{MOST_ROWS:,}"
            )
        if weighted and not self.method_type.weighs_rows:
            raise _cannot_weigh(method)
        check_network(network)
        self._method_settings = for_method
        self._network = network
        self.network_settings = dict(network_settings or {})
        self.train: Train = resolve_train(self.run, network, self.network_settings)
        self.run = self.run.model_copy(update={"train": self.train})
        check_training(self.run, self.train, self.method_type, network, self.network_settings)
        self.metric = metric
        self.preprocess: Preprocess = preprocess or (
            "columns" if isinstance(network, str) else "none"
        )
        self.weighted = weighted
        self.seed = int(seed)
        self.device = find_device(device)
        check_way(self.run, self.device)
        self.profile = profile
        self.capacity = int(memory)
        self.classes = check_classes(classes) if classes is not None else None
        self.observer = observer or Observer()
        self.shape: tuple[int, ...] | None = None
        self.dtype = torch.float32
        self.domains: list[dict[str, Any]] = []
        # How raw rows become inputs, if the first domain was a table or raw files.
        self.preprocessing: Preprocessing | None = None
        self._system: System | None = None
        # The part of the network that stays as it is, and the form of the inputs that it takes.
        self._frozen: Frozen | None = None
        self._raw_form: tuple[tuple[int, ...], torch.dtype] | None = None

    @property
    def system(self) -> System:
        """The system that does the work, built when the first domain gives the input shape."""
        if self._system is None:
            raise FarshoreError("this learner has not learned a domain yet: call learn first")
        return self._system

    # ---- the user's verbs ------------------------------------------------------------------------

    def learn(
        self,
        x: Any,
        y: Any = None,
        *,
        domain: str | None = None,
        steps: int | None = None,
        validation: float | int = 0.2,
        weights: Any = None,
        grow_classes: bool = False,
        checkpoints: Checkpoints | None = None,
    ) -> dict[str, float]:
        """Learn the next domain and return its scores.

        The first call fixes the shape of the inputs and, unless `classes` was given, the classes.

        x and y: arrays, tensors, lists of rows, or a data frame (pandas or Polars); or a torch
            Dataset or DataLoader of inputs and labels, without y; or a `datasets.Dataset`, with y
            as the name of its label column if it is not `label`. The columns of a table are scaled
            and encoded by the first domain's training rows, unless `preprocess` is "none"; NaN is a
            missing value.
        steps: training steps; by default 20 passes over the training rows, 100 to 1000 steps.
        validation: the fraction or number of rows that are held out to measure scores.
        weights: how much each row counts in training, 0 or more; scores count every row once. A
            weight of 2 means the same as the row given twice.
        grow_classes: add classes that no earlier domain had, instead of refusing them.
        checkpoints: where interrupted training of this domain is saved and resumed.
        """
        name = domain if domain is not None else f"domain {len(self.domains) + 1}"
        preprocessing = self.preprocessing
        with following(follow(self.observer)):
            if is_hf_dataset(x):
                x, y, form = self._read_hf_dataset(x, y)
                preprocessing = form or preprocessing
            x, y = from_dataset(x, y)
        labels = as_labels(y, where=f"the labels of domain {name!r}")
        if self.classes is None:
            check_no_quantity(labels, where=f"the labels of domain {name!r}")
        classes = self.classes if self.classes is not None else find_classes(labels)
        new = find_classes(list(set(labels) - set(classes))) if grow_classes else []
        classes = [*classes, *new]
        encoded = encode_labels(labels, classes, domain=name)
        seed = split_seed(self.seed, name)
        frame = as_table(x, preprocessing) if self._takes_tables() else None
        if frame is not None:
            empty = torch.empty(len(frame), 0)
            split = Domain.divided(name, empty, encoded, validation=validation, seed=seed)
            preprocessing = learn_columns(frame, split.train, preprocessing, self.observer.note)
            inputs = preprocessing.transform(frame)
        else:
            inputs = self._as_inputs(x, f"the inputs of domain {name!r}")
        row_weights = as_weights(weights, len(encoded), where=f"the weights of domain {name!r}")
        divided = Domain.divided(
            name, inputs, encoded, validation=validation, seed=seed, weights=row_weights
        )
        steps = steps if steps is not None else usual_steps(len(divided.train))
        before = self._system, self.classes
        try:
            self.grow(new)
            divided = self.prepared(divided)
            self.learn_domain(divided, steps=steps, classes=classes, checkpoints=checkpoints)
        except BaseException:
            self._system, self.classes = before
            raise
        self.preprocessing = preprocessing
        parts = {part: divided.split(part) for part in ("train", "validation")}
        scores = {
            f"{part} {self.metric}": self.score(rows) for part, rows in parts.items() if len(rows)
        }
        self.observer.domain(name, scores)
        return scores

    def grow(self, classes: Sequence[Label]) -> None:
        """Add classes after the known ones, whose outputs stay the same to the last bit."""
        if not classes:
            return
        name = self.method_type.name
        chosen = check_classes([*(self.classes or []), *classes])
        if not self.method_type.grows or self.run.average != "none":
            why = (
                "its settings average the weights"
                if self.method_type.grows
                else "its state is fixed"
            )
            raise FarshoreError(
                f"method {name!r} cannot add classes later ({why}): name all classes at "
                "the start, classes=[...] (--classes)"
            )
        if not isinstance(self._network, str):
            raise FarshoreError(
                "your own network has one output per class and cannot add more: name all "
                "classes at the start, classes=[...]"
            )
        if self._system is not None:
            assert self.shape is not None
            try:
                self._system = self._system.grown(self._setup(self.shape, chosen))
            except FormError as error:
                raise FarshoreError(
                    f"method {name!r} cannot add classes later ({error}): name all "
                    "classes at the start, classes=[...] (--classes)"
                ) from None
        self.classes = chosen
        self.observer.note(f"new classes: {', '.join(map(str, classes))}")

    def learn_domain(
        self,
        domain: Domain,
        *,
        steps: int,
        classes: Sequence[Label] | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        """Check a Domain with class numbers as labels, then learn it.

        With a frozen backbone its inputs are features, as `prepared` makes them.
        """
        if self.method_type.kind == "offline":
            raise FarshoreError(
                f"method {self.method_type.name!r} learns all its domains at once, not in turn: "
                "use learn_jointly(domains, steps=...), or another method"
            )
        self._check(domain, steps)
        self._begin(domain, classes, weighted=domain.weights is not None)
        self.system.learn(domain, steps=steps, checkpoints=checkpoints)
        self.domains.append({"name": domain.name, "rows": len(domain), "steps": steps})

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Learn all domains at once, for upper bounds and source models.

        `steps` is per domain. Returns the total number of steps.
        """
        if self.domains or not domains:
            raise FarshoreError("learn_jointly takes all domains in one call, and only once")
        weighted = any(domain.weights is not None for domain in domains)
        for domain in domains:
            self._check(domain, steps)
            self._begin(domain, None, weighted=weighted)
        total = self.system.learn_jointly(domains, steps=steps)
        self.domains += [
            {"name": domain.name, "rows": len(domain), "steps": steps} for domain in domains
        ]
        return total

    def predict(self, x: Any) -> np.ndarray:
        """The label of each row."""
        number = self.logits(self._to_inputs(x)).argmax(dim=1).cpu().numpy()
        return np.asarray(self.classes).take(number)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes`."""
        logits = self.logits(self._to_inputs(x))
        probabilities: np.ndarray = logits.softmax(dim=1).cpu().numpy()
        return probabilities

    def save(self, folder: str | Path, *, keep_previous: bool = False) -> None:
        """Write everything that learning needs to continue into `folder`, atomically.

        Other files in the folder stay. `keep_previous` keeps the previous state for undo.
        """
        save_state(folder, self.state_dict(), kind="learner", keep_previous=keep_previous)

    def forget(self, domain: str) -> None:
        """Delete the kept rows of this domain and the state that the method keeps for it.

        Trained weights stay as they are; a closed-form method recomputes its own.
        """
        names = [seen["name"] for seen in self.domains]
        if domain not in names:
            raise unknown("domain", domain, names)
        self.system.forget(domain)
        self.domains = [seen for seen in self.domains if seen["name"] != domain]

    # ---- prediction and scores -------------------------------------------------------------------

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits of these inputs, after a check of their shape, type and values."""
        system = self.system
        self._check_form(tuple(inputs.shape[1:]), inputs.dtype, "the inputs")
        if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
            raise FarshoreError(
                "the inputs contain NaN or infinite values: fill or drop those rows first"
            )
        no_labels = torch.zeros(len(inputs), dtype=torch.long)
        inside = self.inside(inputs)
        return system.logits(Rows(inside, no_labels, torch.arange(len(inputs))))

    def features(self, inputs: Tensor) -> Tensor:
        """Features of raw inputs, as the classifier receives them, [n, d]."""
        return self.system.features(self.inside(inputs))

    def predictor(self) -> nn.Module:
        """The module from raw inputs to logits: the frozen part and what was trained."""
        predictor = self.system.predictor()
        return predictor if self._frozen is None else nn.Sequential(self._frozen, predictor)

    # ---- the frozen part -------------------------------------------------------------------------

    def prepared(self, domain: Domain, cache: FeatureCache | None = None) -> Domain:
        """The domain as the system learns it: with the features of a frozen backbone as inputs.

        Without one, it is the domain itself. `cache`: where features are kept for other runs.
        """
        if self.train == "all":
            return domain
        self._open_backbone(tuple(domain.inputs.shape[1:]), _dtype(domain))
        if self._frozen is None:
            return domain
        assert self._raw_form is not None
        form = tuple(domain.inputs.shape[1:]), _dtype(domain)
        if form != self._raw_form:
            raise FarshoreError(
                f"domain {domain.name!r}: rows of shape {list(form[0])}, but this learner was "
                f"started with {list(self._raw_form[0])}"
            )
        return with_features(domain, self._extraction(copies=self.run.augment_copies), cache)

    @property
    def inside_form(self) -> tuple[tuple[int, ...], torch.dtype]:
        """Shape and type of a row as the system takes it."""
        assert self.shape is not None
        if self._frozen is None:
            return self.shape, self.dtype
        return frozen_shape(self._frozen, self.shape, self.dtype), torch.float32

    def inside(self, inputs: Tensor) -> Tensor:
        """Raw inputs as the system takes them: the features of a frozen part, if there is one."""
        return inputs if self._frozen is None else features_of(inputs, self._extraction())

    def _extraction(self, copies: int = 0) -> Extraction:
        assert self._frozen is not None
        run = self.run
        # Copies depend on the seed of the augmentation alone: runs of other seeds share them.
        return Extraction(
            self._frozen, self.device, run.augment, run.augment_flip, copies, 0, self.observer
        )

    def settled(self) -> Settled:
        """The network's settings with what its own configuration decides filled in."""
        if not isinstance(self._network, str):
            return Settled(self.network_settings)
        return settle_network(self._network, self.network_settings)

    def _open_backbone(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Build the frozen part, once the shape of the inputs is known."""
        if self._raw_form is not None:
            return
        self._frozen = self._divided(shape, 2).frozen
        self._raw_form = shape, dtype

    def _divided(self, shape: tuple[int, ...], classes: int, *, restored: bool = False) -> Parts:
        """The network in two parts; the classifier is drawn from the learner's seed."""
        with seeded(generator(self.seed, "init")):
            if isinstance(self._network, str):
                whole = build_network(
                    self._network, shape, classes, self.network_settings, restored=restored
                )
            else:
                whole = deepcopy(self._network)
            return divide(whole, self.train, augmented=self.run.augment != "none")

    def score(self, rows: Rows) -> float:
        """The learner's metric on these rows."""
        return score(self.metric, *self.outputs(rows))

    def outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Logits and labels of these rows."""
        return self.system.logits(rows), rows.labels[rows.index].to(self.device)

    def _takes_tables(self) -> bool:
        """Whether columns are preprocessed: the learner starts now, or it started with a table."""
        if self.domains or self.shape is not None:
            return isinstance(self.preprocessing, TablePreprocessing)
        return self.preprocess == "columns"

    def _read_hf_dataset(
        self, dataset: Any, label: str | None
    ) -> tuple[Any, list[Any] | None, ImagePreprocessing | None]:
        """Inputs and labels of a `datasets.Dataset`; images in the form that the network takes."""
        known = self.preprocessing
        form = self.settled().form
        return read_hf_dataset(
            dataset,
            label,
            known if isinstance(known, ImagePreprocessing) else None,
            form.size,
            form.interpolation,
        )

    def _as_inputs(self, x: Any, where: str) -> Tensor:
        inputs = as_inputs(x, where=where)
        if self.preprocess == "columns":
            check_images(inputs, where)
        return inputs

    def _to_inputs(self, x: Any) -> Tensor:
        """`x` as inputs for prediction, in the form that the learner was trained on."""
        if is_hf_dataset(x):
            x, _, _ = self._read_hf_dataset(x, None)
        x, _ = from_dataset(x)
        if isinstance(self.preprocessing, TablePreprocessing):
            frame = as_table(x, self.preprocessing)
            if frame is not None:
                return self.preprocessing.transform(frame)
        return self._as_inputs(x, "the inputs")

    # ---- set-up ----------------------------------------------------------------------------------

    def _check(self, domain: Domain, steps: int) -> None:
        if steps < 1:
            raise FarshoreError(f"steps = {steps} is not allowed: use at least 1 step per domain")
        if domain.name in [seen["name"] for seen in self.domains]:
            raise FarshoreError(
                f"domain {domain.name!r} was learned before: give the new one another name"
            )
        if domain.weights is not None and not self.method_type.weighs_rows:
            raise _cannot_weigh(self.method_type.name)
        if domain.weights is not None and self._system is not None and not self.weighted:
            raise FarshoreError(
                f"domain {domain.name!r} has weights, but the rows of the first domain had none: "
                "create the learner with weighted=True to give them later"
            )
        if len(domain.train) == 0:
            raise FarshoreError(f"domain {domain.name!r} has no training rows")
        if self.shape is not None and self._frozen is None:
            self._check_form(
                tuple(domain.inputs.shape[1:]), _dtype(domain), f"domain {domain.name!r}"
            )

    def _check_form(self, shape: tuple[int, ...], dtype: torch.dtype, what: str) -> None:
        if shape != self.shape:
            raise FarshoreError(
                f"{what}: rows of shape {list(shape)}, but this learner was started with "
                f"{list(self.shape or ())}"
            )
        if dtype != self.dtype:
            raise FarshoreError(
                f"{what}: {dtype} values, but this learner was started with {self.dtype}"
            )

    def _begin(
        self, domain: Domain, classes: Sequence[Label] | None, *, weighted: bool = False
    ) -> None:
        """Fix the input shape and the classes by the first domain, and build the system."""
        if self._system is not None:
            return
        chosen = list(classes or self.classes or [])
        if len(chosen) < 2:
            raise FarshoreError(
                f"the first domain has one class only ({chosen}): give classes=[...] "
                "with all labels that may occur"
            )
        form = self._raw_form or (tuple(domain.inputs.shape[1:]), _dtype(domain))
        self.weighted = weighted if self.weighted is None else self.weighted
        setup = self._setup(form[0], chosen)
        self._system = SYSTEMS.get(self.method_type.system)(setup)
        self.shape, self.dtype, self.classes = *form, chosen

    def _setup(
        self, shape: tuple[int, ...], classes: Sequence[Label], *, restored: bool = False
    ) -> Setup:
        if self.profile is None:
            self.profile = usual_profile(shape, self.train, self._network, self.network_settings)
        network: str | Network = self._network
        settings = self.network_settings
        if self._frozen is not None:
            dtype = self._raw_form[1] if self._raw_form is not None else self.dtype
            inside = frozen_shape(self._frozen, shape, dtype)
            if self.train == "head":
                network, settings = "head", {"width": self.run.head_width}
            else:
                network = self._divided(shape, len(classes), restored=restored).rest
            shape = inside
        elif self.train == "last-block":
            network = self._divided(shape, len(classes), restored=restored).rest
        return Setup(
            entry=self.method_type,
            settings=self._method_settings,
            profile=self.profile,
            run=self.run,
            shape=shape,
            classes=len(classes),
            network=network,
            network_settings=settings,
            capacity=self.capacity,
            seed=self.seed,
            device=self.device,
            observer=self.observer,
            weighted=bool(self.weighted),
            restored=restored,
        )

    # ---- state -----------------------------------------------------------------------------------

    @property
    def config(self) -> dict[str, Any]:
        """The arguments that create the same learner; `network` is None for a user's own."""
        return {
            "network": self._network if isinstance(self._network, str) else None,
            "method": self.method_type.name,
            "memory": self.capacity,
            "settings": {**self._method_settings, **self._run_settings()},
            "network_settings": self._stored_settings(),
            "classes": self.classes,
            "metric": self.metric,
            "preprocess": self.preprocess,
            "weighted": self.weighted,
            "seed": self.seed,
            "profile": self.profile,
        }

    def _stored_settings(self) -> dict[str, Any]:
        """Settings that build the network again where its library's files are not at hand."""
        if isinstance(self._network, str) and ":" in self._network and self.shape is not None:
            return dict(self.settled().settings)
        return self.network_settings

    def _run_settings(self) -> dict[str, Any]:
        """The settings of the run that are not usual, and those in which a learner has its own."""
        run = self.run.model_dump()
        changed = self.run.model_dump(exclude_defaults=True)
        return {**{name: run[name] for name in USUAL_RUN}, **changed}

    def state_dict(self) -> dict[str, Any]:
        """Everything that learning needs to continue exactly."""
        state: dict[str, Any] = {
            "config": self.config,
            "domains": self.domains,
            "shape": list(self.shape) if self.shape is not None else None,
            "dtype": str(self.dtype).removeprefix("torch."),
            "preprocessing": None,
            "system": self._system.state_dict() if self._system is not None else None,
        }
        if self.preprocessing is not None:
            state["preprocessing"] = self.preprocessing.state_dict()
        if self._frozen is not None:
            state[FROZEN] = dict(self._frozen.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict` in a learner of the same configuration."""
        frozen = {FROZEN: None} if FROZEN in state else {}
        check_keys(state, STATE | frozen, "the state")
        check_form(state["domains"], ListOf({"name": "", "rows": 0, "steps": 0}), "domains")
        self.domains = [dict(domain) for domain in state["domains"]]
        self.preprocessing = from_state(state["preprocessing"])
        if state["system"] is None:
            if self.domains:
                raise FormError("domains were learned, but there is no model")
            return
        kind = SYSTEMS.get(self.method_type.system)
        if len(self.classes or []) < 2:
            raise FormError("there is a model, but it has fewer than two classes")
        shape = _check_shape(state["shape"])
        if state["dtype"] not in ("float32", "uint8"):
            raise FormError(f"dtype is {str(state['dtype'])[:40]!r}, not float32 or uint8")
        if state["dtype"] == "uint8" and len(shape) != 3 and isinstance(self._network, str):
            raise FormError("dtype is uint8, but the rows are not images")
        _check_preprocessing(self.preprocessing, shape, state["dtype"])
        dtype = getattr(torch, state["dtype"])
        self._load_frozen(state.get(FROZEN), shape, dtype)
        setup = self._setup(shape, self.classes or [], restored=True)
        kind.check_state(setup, state["system"])
        self._system = kind(setup)
        self._system.load_state_dict(state["system"])
        self.shape, self.dtype = shape, dtype
        if self._system.domains != [domain["name"] for domain in self.domains]:
            raise FormError("domains are not those of the model")
        for rows in self._system.kept_rows().values():
            kept = dtype if self._frozen is None else torch.float32
            if rows["inputs"].dtype != kept:
                raise FormError(f"the kept rows are not {kept}")

    def _load_frozen(self, stored: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Restore the frozen part, after a check of its sizes ahead of any allocation."""
        if self.train == "all":
            if stored is not None:
                raise FormError("there is a frozen part, but all of the network is trained")
            return
        expected = on_meta(lambda: self._divided(shape, 2, restored=True)).frozen
        if expected is None:
            if stored is not None:
                raise FormError("there is a frozen part, but this network has none")
            return
        forms = {
            name: Like(tuple(value.shape), value.dtype, finite=value.is_floating_point())
            for name, value in expected.state_dict().items()
        }
        check_form(stored, forms, FROZEN)
        self._frozen = self._divided(shape, 2, restored=True).frozen
        assert self._frozen is not None
        self._frozen.load_state_dict(stored)
        self._raw_form = shape, dtype


def load(
    folder: str | Path,
    *,
    network: str | Network | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learner:
    """Load a learner from a folder written by `save`. Pass `network` again if it was your own."""
    state = load_state(folder, kind="learner")
    return from_state_dict(state, folder, network=network, device=device, observer=observer)


def from_state_dict(
    state: Mapping[str, Any],
    folder: str | Path,
    *,
    network: str | Network | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learner:
    """A learner from its `state_dict`; messages name `folder` as its origin."""
    try:
        check_form(state["config"], CONFIG, "config")
        config = dict(state["config"])
        if config["network"] is None:
            if network is None:
                raise FarshoreError(
                    f"{folder} was saved with your own network: call load(folder, network=...) "
                    "with the same modules"
                )
            config["network"] = network
        elif is_own_module(config["network"]):
            config["network"] = _own_module_again(config["network"], network, folder)
        learner = Learner(**config, device=device, observer=observer)
        learner.load_state_dict(state)
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        OverflowError,
    ) as error:
        reason = " ".join(str(error).split())[:500]
        raise StateError(f"{folder} does not contain a complete learner: {reason}") from error
    return learner


def _own_module_again(saved: str, network: str | Network | None, folder: str | Path) -> str:
    """The file and function that the caller names; the saved name never leads to an import."""
    if not isinstance(network, str) or not is_own_module(network):
        raise FarshoreError(
            f"{folder} was saved with the backbone {saved!r}, and loading a model runs no code: "
            f"name it again, network={saved!r} (--network {saved})"
        )
    return network


def follow(observer: Observer) -> Follow:
    """Show the progress of reading data as the steps of a domain."""

    def report(what: str, done: int, total: int) -> None:
        if done == 1:
            observer.start(what, total)
        observer.step(what, done - 1, {})

    return report


def check_classes(classes: Sequence[Label]) -> list[Label]:
    """The classes as a list, if they are labels and none is named twice."""
    labels = list(classes)
    for label in labels:
        if not isinstance(label, str | int | float) or label != label:
            raise FarshoreError(
                f"classes: {str(label)[:40]!r} is not a label: give numbers or text"
            )
    twice = next((label for label, count in Counter(labels).items() if count > 1), None)
    if twice is not None:
        raise FarshoreError(f"classes: {twice!r} is named twice: name every class once")
    return labels


def _cannot_weigh(method: str) -> FarshoreError:
    return FarshoreError(
        f"rows cannot have weights with {method!r}, whose loss does not support them: use another "
        "method, for example er, or leave the weights out"
    )


def _check_shape(shape: Any) -> tuple[int, ...]:
    """The shape of an input, if it is one that rows can have."""
    check_form(shape, ListOf(0), "shape")
    if not 1 <= len(shape) <= 4 or not all(length >= 1 for length in shape):
        raise FormError(f"shape is {list(shape)[:8]}, which no row has")
    if math.prod(shape) > LARGEST_INPUT:
        raise FormError(f"shape is {list(shape)}, which is too large for a row")
    return tuple(shape)


def _check_preprocessing(
    preprocessing: Preprocessing | None, shape: tuple[int, ...], dtype: str
) -> None:
    """Raise a FormError unless the preprocessing gives inputs of this shape and type."""
    images = isinstance(preprocessing, ImagePreprocessing)
    if preprocessing is not None and dtype != ("uint8" if images else "float32"):
        raise FormError(f"dtype is {dtype}, which the preprocessing does not give")
    if isinstance(preprocessing, ImagePreprocessing):
        made: tuple[int, ...] = (preprocessing.channels, preprocessing.size, preprocessing.size)
    elif preprocessing is not None:
        made = (len(preprocessing.features),)
    else:
        return
    if made != shape:
        raise FormError(f"preprocessing gives rows of shape {list(made)}, not {list(shape)}")


def _dtype(domain: Domain) -> torch.dtype:
    if isinstance(domain.inputs, Tensor):
        return domain.inputs.dtype
    return torch.uint8 if domain.inputs.dtype == np.uint8 else torch.float32
