"""Learner: the user's verbs, learn, predict, save and forget.

It checks what it is given and keeps the order of things. A Conversion makes inputs of the user's
data, a Backbone divides the network, and a System learns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..base.forms import FormError
from ..base.state import save_state
from ..data.domain import Domain, RowForm, Rows, check_row_form, row_form
from ..data.preprocessing import Preprocessing, from_state
from ..data.steps import usual_steps
from ..data.tables.convert import Label, check_classes
from ..data.tables.frames import Preprocess
from ..entry import Entry
from ..errors import FarshoreError, unknown
from ..methods import DEFAULT_METHOD, METHODS
from ..methods.optimization import find_device
from ..networks.build import check_network
from ..networks.network import Network
from ..observer import Observer
from ..settings import RunSettings
from ..settings import divide as divide_settings
from ..system import SYSTEMS, Setup, System
from ..tasks.scores import score
from ..training.checkpoints import Checkpoints
from ..training.execution.execution import check_way
from .arguments import check_arguments, check_training, check_weighs_rows
from .backbone import Backbone, resolve_train, usual_profile
from .conversion import Conversion
from .learner_state import FROZEN, check_state, stored_form

# Own data: a domain costs the same to learn, however many there were before it. Runs give the
# paper's budget, one batch of each past domain, because they name every setting.
USUAL_RUN = {"replay_budget": "total", "train": "auto"}
# What the first domain determines.
DETERMINED = ("_system", "classes", "shape", "dtype", "weighted", "profile")


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
        method: str = DEFAULT_METHOD,
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
        check_arguments(self.method_type, self.run, metric, preprocess, memory, weighted)
        check_network(network)
        self._method_settings = for_method
        of_network = dict(network_settings or {})
        train = resolve_train(self.run, network, of_network)
        self.run = self.run.model_copy(update={"train": train})
        check_training(self.run, train, self.method_type, network, of_network)
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
        self.backbone = Backbone(
            network,
            of_network,
            train,
            run=self.run,
            seed=self.seed,
            device=self.device,
            observer=self.observer,
        )
        self._system: System | None = None

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
        given = self._conversion().domain(
            name, x, y, validation=validation, weights=weights, grow_classes=grow_classes
        )
        steps = steps if steps is not None else usual_steps(len(given.domain.train))
        # A first domain that fails determines nothing: the next one may have another form.
        before = {name: getattr(self, name) for name in DETERMINED}
        divided_before = self.backbone.frozen, self.backbone.form
        try:
            self.grow(given.new_classes)
            divided = self.backbone.prepared(given.domain)
            self.learn_domain(divided, steps=steps, classes=given.classes, checkpoints=checkpoints)
        except BaseException:
            vars(self).update(before)
            self.backbone.frozen, self.backbone.form = divided_before
            raise
        self.preprocessing = given.preprocessing
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
        if not isinstance(self.backbone.network, str):
            raise FarshoreError(
                "your own network has one output per class and cannot add more: name all "
                "classes at the start, classes=[...]"
            )
        if self._system is not None:
            assert self.shape is not None
            try:
                self._system = self._system.grown(self._setup((self.shape, self.dtype), chosen))
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

        With a frozen backbone its inputs are features, as `Backbone.prepared` makes them.
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
        """Learn all domains at once, `steps` for each; return the total number of steps."""
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
        number = self.logits(self._conversion().inputs(x)).argmax(dim=1).cpu().numpy()
        return np.asarray(self.classes).take(number)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes`."""
        logits = self.logits(self._conversion().inputs(x))
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
        assert self.shape is not None
        form = tuple(inputs.shape[1:]), inputs.dtype
        check_row_form(form, (self.shape, self.dtype), "the inputs")
        if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
            raise FarshoreError(
                "the inputs contain NaN or infinite values: fill or drop those rows first"
            )
        no_labels = torch.zeros(len(inputs), dtype=torch.long)
        inside = self.backbone.inside(inputs)
        return system.logits(Rows(inside, no_labels, torch.arange(len(inputs))))

    def features(self, inputs: Tensor) -> Tensor:
        """Features of raw inputs, as the classifier receives them, [n, d]."""
        return self.system.features(self.backbone.inside(inputs))

    def predictor(self) -> nn.Module:
        """The module from raw inputs to logits: the frozen part and what was trained."""
        frozen, predictor = self.backbone.frozen, self.system.predictor()
        return predictor if frozen is None else nn.Sequential(frozen, predictor)

    @property
    def inside_form(self) -> RowForm:
        """Shape and type of a row as the system takes it."""
        assert self.shape is not None
        return self.backbone.inside_form((self.shape, self.dtype))

    def score(self, rows: Rows) -> float:
        """The learner's metric on these rows."""
        return score(self.metric, *self.outputs(rows))

    def outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Logits and labels of these rows."""
        return self.system.logits(rows), rows.labels[rows.index].to(self.device)

    def _conversion(self) -> Conversion:
        """How rows become inputs now."""
        return Conversion(
            self.preprocess,
            self.preprocessing,
            self.classes,
            started=bool(self.domains) or self.shape is not None,
            settled=self.backbone.settled,
            observer=self.observer,
            seed=self.seed,
        )

    # ---- set-up ----------------------------------------------------------------------------------

    def _check(self, domain: Domain, steps: int) -> None:
        if steps < 1:
            raise FarshoreError(f"steps = {steps} is not allowed: use at least 1 step per domain")
        if domain.name in [seen["name"] for seen in self.domains]:
            raise FarshoreError(
                f"domain {domain.name!r} was learned before: give the new one another name"
            )
        if domain.weights is not None:
            check_weighs_rows(self.method_type)
        if domain.weights is not None and self._system is not None and not self.weighted:
            raise FarshoreError(
                f"domain {domain.name!r} has weights, but the rows of the first domain had none: "
                "create the learner with weighted=True to give them later"
            )
        if len(domain.train) == 0:
            raise FarshoreError(f"domain {domain.name!r} has no training rows")
        if self.shape is not None and self.backbone.frozen is None:
            check_row_form(row_form(domain), (self.shape, self.dtype), f"domain {domain.name!r}")

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
        form = self.backbone.form or row_form(domain)
        self.weighted = weighted if self.weighted is None else self.weighted
        setup = self._setup(form, chosen)
        self._system = SYSTEMS.get(self.method_type.system)(setup)
        self.shape, self.dtype, self.classes = *form, chosen

    def _setup(self, form: RowForm, classes: Sequence[Label], *, restored: bool = False) -> Setup:
        backbone = self.backbone
        if self.profile is None:
            self.profile = usual_profile(
                form[0], backbone.train, backbone.network, backbone.settings
            )
        trained = backbone.trained(form, len(classes), restored=restored)
        return Setup(
            entry=self.method_type,
            settings=self._method_settings,
            profile=self.profile,
            run=self.run,
            shape=trained.shape,
            classes=len(classes),
            network=trained.network,
            network_settings=trained.settings,
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
        network, stored = self.backbone.network, self.backbone.settings
        if self.shape is not None:
            stored = self.backbone.stored_settings()
        return {
            "network": network if isinstance(network, str) else None,
            "method": self.method_type.name,
            "memory": self.capacity,
            "settings": {**self._method_settings, **self._run_settings()},
            "network_settings": stored,
            "classes": self.classes,
            "metric": self.metric,
            "preprocess": self.preprocess,
            "weighted": self.weighted,
            "seed": self.seed,
            "profile": self.profile,
        }

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
        if self.backbone.frozen is not None:
            state[FROZEN] = dict(self.backbone.frozen.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict` in a learner of the same configuration."""
        check_state(state)
        self.domains = [dict(domain) for domain in state["domains"]]
        self.preprocessing = from_state(state["preprocessing"])
        if state["system"] is None:
            if self.domains:
                raise FormError("domains were learned, but there is no model")
            return
        kind = SYSTEMS.get(self.method_type.system)
        if len(self.classes or []) < 2:
            raise FormError("there is a model, but it has fewer than two classes")
        own_network = not isinstance(self.backbone.network, str)
        form = stored_form(state, self.preprocessing, own_network=own_network)
        self.backbone.restore(state.get(FROZEN), form)
        setup = self._setup(form, self.classes or [], restored=True)
        kind.check_state(setup, state["system"])
        self._system = kind(setup)
        self._system.load_state_dict(state["system"])
        self.shape, self.dtype = form
        if self._system.domains != [domain["name"] for domain in self.domains]:
            raise FormError("domains are not those of the model")
        for rows in self._system.kept_rows().values():
            kept = self.dtype if self.backbone.frozen is None else torch.float32
            if rows["inputs"].dtype != kept:
                raise FormError(f"the kept rows are not {kept}")
