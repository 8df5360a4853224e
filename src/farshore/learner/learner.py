"""Learner: the user's verbs, learn, predict, save and forget.

It checks what it is given and keeps the order of things. A Conversion makes inputs of the user's
data, a Backbone divides the network, and a System learns.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..base.forms import FormError
from ..base.notebook import html_table, short_list
from ..base.state import save_state
from ..data.domain import Domain, RowForm, Rows, check_row_form, row_form
from ..data.preprocessing import Preprocessing, from_state
from ..data.steps import usual_steps
from ..data.tables.convert import check_classes
from ..data.tables.frames import Preprocess, as_table
from ..data.tables.table import TablePreprocessing
from ..entry import Entry
from ..errors import FarshoreError, unknown
from ..methods import METHODS, OF_NETWORKS, default_method, fit_numbers
from ..methods.optimization import find_device
from ..networks.build import as_network
from ..networks.network import Network
from ..observer import Observer
from ..settings import RunSettings
from ..settings import divide as divide_settings
from ..system import SYSTEMS, Setup, System
from ..tasks.classification import Classification
from ..tasks.labels import TaskChoice, are_numbers, restored_task
from ..tasks.task import Label, Task
from ..training.checkpoints import Checkpoints
from ..training.execution.execution import check_way
from .arguments import check_arguments, check_training, check_weighs_rows
from .backbone import Backbone, resolve_train, train_by_settings, usual_profile
from .conversion import Conversion
from .joining import check_joinable
from .learner_state import FROZEN, TASK, check_state, stored_form

# Own data: a domain costs the same to learn, however many there were before it. Runs give the
# paper's budget, one batch of each past domain, because they name every setting.
USUAL_RUN = {"replay_budget": "total", "train": "auto"}
NOTHING_LEARNED = "this learner has not learned a domain yet: call learn first"
# What the first domain determines.
DETERMINED = ("_system", "task", "metric", "shape", "dtype", "weighted", "profile")


class Learner:
    """One classifier that learns one domain after another.

    network: a name ("mlp", "cnn", "resnet18", "hf:facebook/dinov2-small", "timm:NAME",
        "torchvision:NAME", "module.py:factory") or your own `farshore.Network`, which is copied
        and never changed. By default "mlp".
    method: a name; `farshore methods` lists them. By default `slda`, for numbers `ridge`; and `er`
        if you name a network whose weights start from random numbers, so that it has to be trained.
    memory: how many rows of all past domains are kept in total.
    settings: settings of the method and of the run by name, for example {"learning_rate": 1e-3}.
    classes: all labels that may ever occur; by default those of the first domain.
    task: what a label is, if that is known already, or its name. With `auto`, numbers that look
        like a quantity in the first domain make it regression.
    preprocess: "columns" scales and encodes the columns of a table (a data frame or any rows of
        numbers) by the first domain's training rows; "none" takes numbers and images as they are.
        By default "columns"; "none" if the network is your own, whose first layer is made for
        certain inputs.
    text: the columns of a table that are free text; by default those that are long and differ from
        row to row in the first domain. `hf:NAME` among them names a text encoder that reads them.
    weighted: whether rows have weights. By default they do if the weights of the first domain
        differ.
    profile: the name of a settings profile, which determines the defaults; if not given,
        `default` for tables, `text` for tables with text, `frozen-features` for a classifier on a
        frozen backbone, and for images `large-data` if the network is pretrained and
        `images-from-scratch` if not.
    """

    def __init__(
        self,
        network: str | Network | nn.Module | None = None,
        method: str | None = None,
        memory: int = 1000,
        *,
        settings: Mapping[str, Any] | None = None,
        network_settings: Mapping[str, Any] | None = None,
        classes: Sequence[Label] | None = None,
        task: Task | TaskChoice | None = None,
        metric: str = "accuracy",
        preprocess: Preprocess | None = None,
        text: Sequence[str] | None = None,
        weighted: bool | None = None,
        seed: int = 0,
        device: str = "cpu",
        profile: str | None = None,
        observer: Observer | None = None,
    ) -> None:
        of_network = dict(network_settings or {})
        named, network = network is not None, as_network(network)
        asked = {**USUAL_RUN, **(settings or {})}
        trained = train_by_settings(asked, network, of_network) != "head"
        # Whether the first domain's labels decide on the method.
        self._by_labels = method is None and not (named and trained)
        if method is None:
            method = default_method(are_numbers(task)) if self._by_labels else OF_NETWORKS
        self.method_type: type[Entry] = METHODS.get(method)
        for_method, for_run = divide_settings(settings or {}, self.method_type.Settings)
        self.method_type.Settings.build(for_method)  # refuse bad values now, not at the first step
        self.run = RunSettings.build({**USUAL_RUN, **for_run})
        check_arguments(self.method_type, self.run, metric, preprocess, memory, weighted)
        self._method_settings = for_method
        train = resolve_train(self.run, network, of_network)
        self.run = self.run.model_copy(update={"train": train})
        check_training(self.run, train, self.method_type, network, of_network)
        self.metric = metric
        self.preprocess: Preprocess = preprocess or (
            "columns" if isinstance(network, str) else "none"
        )
        self.text = [text] if isinstance(text, str) else list(text or ())
        self.weighted = weighted
        self.seed = int(seed)
        self.device = find_device(device)
        check_way(self.run, self.device)
        self.profile = profile
        self.capacity = int(memory)
        self.task_choice: TaskChoice = task if isinstance(task, str) else "auto"
        self.task = task if isinstance(task, Task) else None
        if classes is not None:
            self.task = Classification(tuple(check_classes(classes)))
        self.observer = observer or Observer()
        self.shape: tuple[int, ...] | None = None
        self.dtype = torch.float32
        self.domains: list[dict[str, Any]] = []
        # How raw rows become inputs, if the first domain was a table or raw files.
        self.preprocessing: Preprocessing | None = None
        make = partial(Backbone, run=self.run, seed=self.seed, device=self.device)
        self.backbone = make(network, of_network, train, observer=self.observer)
        self._system: System | None = None

    def __repr__(self) -> str:
        network = self.backbone.network
        learned = short_list([seen["name"] for seen in self.domains]) or "nothing yet"
        name = network if isinstance(network, str) else type(network).__name__
        parts = f"method={self.method_type.name!r}, network={name!r}, memory={self.capacity}"
        return f"Learner({parts}): learned {learned}"

    def _repr_html_(self) -> str:
        """For notebooks: the domains learned so far."""
        rows = [[seen["name"], seen["rows"], seen["steps"]] for seen in self.domains]
        return html_table(repr(self), ["domain", "rows", "steps"] if rows else [], rows)

    @property
    def classes(self) -> list[Label] | None:
        """The classes; None until they are known."""
        return list(self.task.classes) or None if self.task is not None else None

    @property
    def known_task(self) -> Task:
        """What a label is; known once a domain was learned."""
        if self.task is None:
            raise FarshoreError(NOTHING_LEARNED)
        return self.task

    @property
    def system(self) -> System:
        """The system that does the work, built when the first domain gives the input shape."""
        if self._system is None:
            raise FarshoreError(NOTHING_LEARNED)
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
            self.suit(given.preprocessing)
            divided = self.backbone.prepared(given.domain)
            self.learn_domain(divided, steps=steps, task=given.task, checkpoints=checkpoints)
        except BaseException:
            vars(self).update(before)
            self.backbone.frozen, self.backbone.form = divided_before
            raise
        self.preprocessing = given.preprocessing
        if before["task"] is not None:
            self.task = given.task.after(divided.labels[divided.train])
        parts = {part: divided.split(part) for part in ("train", "validation")}
        held = {part: rows for part, rows in parts.items() if len(rows)}
        scores = {f"{part} {self.metric}": self.score(rows) for part, rows in held.items()}
        self.observer.domain(name, scores)
        return scores

    def grow(self, classes: Sequence[Label]) -> None:
        """Add classes after the known ones, whose outputs stay the same to the last bit."""
        if not classes:
            return
        name, grows = self.method_type.name, self.method_type.grows
        chosen = Classification(tuple(check_classes([*(self.classes or []), *classes])))
        advice = "name all classes at the start, classes=[...] (--classes)"
        if not grows or self.run.average != "none":
            why = "its settings average the weights" if grows else "its state is fixed"
            raise FarshoreError(f"method {name!r} cannot add classes later ({why}): {advice}")
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
                why = f"method {name!r} cannot add classes later ({error}): {advice}"
                raise FarshoreError(why) from None
        self.task = chosen
        self.observer.note(f"new classes: {', '.join(map(str, classes))}")

    def suit(self, preprocessing: Preprocessing | None) -> None:
        """Take the settings profile that suits these inputs, if none was named."""
        if self.profile is None and isinstance(preprocessing, TablePreprocessing):
            self.profile = preprocessing.profile

    def learn_domain(
        self,
        domain: Domain,
        *,
        steps: int,
        classes: Sequence[Label] | None = None,
        task: Task | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        """Check a Domain whose labels are encoded as the task says, then learn it.

        With a frozen backbone its inputs are features, as `Backbone.prepared` makes them.
        """
        if self.method_type.kind == "offline":
            raise FarshoreError(
                f"method {self.method_type.name!r} learns all its domains at once, not in turn: "
                "use learn_jointly(domains, steps=...), or another method"
            )
        self._check(domain, steps)
        if classes is not None:
            task = Classification(tuple(classes))
        self.begin(domain, task, weighted=domain.weights is not None)
        self.system.learn(domain, steps=steps, checkpoints=checkpoints)
        self.domains.append({"name": domain.name, "rows": len(domain), "steps": steps})

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Learn all domains at once, `steps` for each; return the total number of steps."""
        if self.domains or not domains:
            raise FarshoreError("learn_jointly takes all domains in one call, and only once")
        weighted = any(domain.weights is not None for domain in domains)
        for domain in domains:
            self._check(domain, steps)
            self.begin(domain, None, weighted=weighted)
        total = self.system.learn_jointly(domains, steps=steps)
        self.domains += [{"name": of.name, "rows": len(of), "steps": steps} for of in domains]
        return total

    def predict(self, x: Any) -> np.ndarray:
        """The label of each row."""
        outputs = self.logits(self._conversion().inputs(x))
        return self.known_task.predictions(outputs)

    def predict_proba(self, x: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes`."""
        logits = self.logits(self._conversion().inputs(x))
        return self.known_task.probabilities(logits).cpu().numpy()

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

    def join(self, *others: "Learner", allow_small: bool = False) -> None:
        """Add what other learners have learned, as if this one had learned all their domains.

        Only for methods that keep sums (`ridge`, `slda`, `ncm`), on the same columns, scales,
        classes and settings: every difference is refused. The order has no influence.

        allow_small: also domains of so few rows that their sums would give the rows away.
        """
        named = {f"learner {number}": each for number, each in enumerate((self, *others), start=1)}
        check_joinable(named, allow_small=allow_small)
        self.system.join([other.system for other in others])
        for other in others:
            self.domains += [dict(domain) for domain in other.domains]

    # ---- prediction and scores -------------------------------------------------------------------

    def logits(self, inputs: Tensor) -> Tensor:
        """Logits of these inputs, after a check of their shape, type and values."""
        return self.system.logits(Rows.unlabelled(self._inside(inputs)))

    def logits_and_features(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and features of these inputs, after the same check."""
        return self.system.logits_and_features(self._inside(inputs))

    def _inside(self, inputs: Tensor) -> Tensor:
        """Checked inputs as the system takes them."""
        _ = self.system  # refuses a learner that has learned nothing yet
        assert self.shape is not None
        form = tuple(inputs.shape[1:]), inputs.dtype
        check_row_form(form, (self.shape, self.dtype), "the inputs")
        if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
            why = "the inputs contain NaN or infinite values: fill or drop those rows first"
            raise FarshoreError(why)
        return self.backbone.inside(inputs)

    def features(self, inputs: Tensor) -> Tensor:
        """Features of raw inputs, as the classifier receives them, [n, d]."""
        return self.system.features(self.backbone.inside(inputs))

    def text_features(self, x: Any) -> np.ndarray:
        """What an exported model takes as `texts`: the features of a table's columns of text."""
        table = self.preprocessing
        frame = as_table(x, table)
        if not isinstance(table, TablePreprocessing) or table.texts is None or frame is None:
            raise FarshoreError("this learner has no columns of text, or the rows are no table")
        return table.texts.encode(frame)

    def predictor(self) -> nn.Module:
        """The module from raw inputs to logits: the frozen part and what was trained."""
        frozen, predictor = self.backbone.frozen, self.system.predictor()
        return predictor if frozen is None else nn.Sequential(frozen, predictor)

    @property
    def inside_form(self) -> RowForm:
        """Shape and type of a row as the system takes it."""
        assert self.shape is not None
        return self.backbone.inside_form((self.shape, self.dtype))

    def score(self, x: Any, y: Any = None) -> float:
        """The learner's metric on these inputs and labels, or on `Rows` that have both."""
        task = self.known_task  # refuses a learner that has learned nothing yet
        if isinstance(x, Rows):
            return task.score(self.metric, *self.outputs(x))
        inputs, labels = self._conversion().labelled(x, y)
        return task.score(self.metric, self.logits(inputs), labels.to(self.device))

    def outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Logits and labels of these rows."""
        return self.system.logits(rows), rows.labels[rows.index].to(self.device)

    def _conversion(self) -> Conversion:
        """How rows become inputs now."""
        return Conversion(
            self.preprocess,
            self.text,
            self.preprocessing,
            self.task,
            self.task_choice,
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
            why = f"domain {domain.name!r} was learned before: give the new one another name"
            raise FarshoreError(why)
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

    def begin(self, domain: Domain, task: Task | None, *, weighted: bool = False) -> None:
        """Fix the input shape and the task by the first domain, and build the system.

        Nothing is learned from its rows.
        """
        if self._system is not None:
            return
        chosen = task or self.task or Classification()
        chosen.check_outputs("the first domain")
        if self._by_labels:
            self.method_type = METHODS.get(default_method(are_numbers(chosen)))
        chosen.check_method(self.method_type.name, self.method_type.needs_classes, fit_numbers)
        self.metric = chosen.main_metric(self.metric)
        form = self.backbone.form or row_form(domain)
        self.weighted = weighted if self.weighted is None else self.weighted
        setup = self._setup(form, chosen)
        self._system = SYSTEMS.get(self.method_type.system)(setup)
        self.shape, self.dtype, self.task = *form, chosen

    def _setup(self, form: RowForm, task: Task, *, restored: bool = False) -> Setup:
        backbone = self.backbone
        if self.profile is None:
            self.profile = usual_profile(
                form[0], backbone.train, backbone.network, backbone.settings
            )
        trained = backbone.trained(form, task.outputs, restored=restored)
        return Setup(
            entry=self.method_type,
            settings=self._method_settings,
            profile=self.profile,
            run=self.run,
            shape=trained.shape,
            task=task.under(self.run),
            network=trained.network,
            network_settings=trained.settings,
            capacity=self.capacity,
            seed=self.seed,
            device=self.device,
            observer=self.observer,
            metric=self.metric,
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
        # The settings of the run that are not usual, and those in which a learner has its own.
        own = {name: getattr(self.run, name) for name in USUAL_RUN}
        of_run = own | self.run.model_dump(exclude_defaults=True)
        same = ("classes", "metric", "preprocess", "text", "weighted", "seed", "profile")
        return {
            "network": network if isinstance(network, str) else None,
            "method": self.method_type.name,
            "memory": self.capacity,
            "settings": {**self._method_settings, **of_run},
            "network_settings": stored,
            "task": self.task_choice,
            **{name: getattr(self, name) for name in same},
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that learning needs to continue exactly."""
        preprocessing, system = self.preprocessing, self._system
        state: dict[str, Any] = {
            "config": self.config,
            "domains": self.domains,
            "shape": list(self.shape) if self.shape is not None else None,
            "dtype": str(self.dtype).removeprefix("torch."),
            "preprocessing": preprocessing.state_dict() if preprocessing is not None else None,
            "system": system.state_dict() if system is not None else None,
        }
        if self.task is not None:
            state[TASK] = self.task.state_dict()
        if self.backbone.frozen is not None:
            state[FROZEN] = dict(self.backbone.frozen.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state from `state_dict` in a learner of the same configuration."""
        check_state(state)
        self.domains = [dict(domain) for domain in state["domains"]]
        if self.weighted is None:  # what the first domain determined
            self.weighted = state["config"]["weighted"]
        self.preprocessing = from_state(state["preprocessing"])
        if state["system"] is None:
            if self.domains:
                raise FormError("domains were learned, but there is no model")
            return
        kind = SYSTEMS.get(self.method_type.system)
        task = self.task = self.task or restored_task(state.get(TASK))
        if task.outputs < task.fewest_outputs:
            raise FormError("there is a model, but it has fewer than two classes")
        own_network = not isinstance(self.backbone.network, str)
        form = stored_form(state, self.preprocessing, own_network=own_network)
        self.backbone.restore(state.get(FROZEN), form)
        setup = self._setup(form, task, restored=True)
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
