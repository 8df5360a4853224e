"""The battery of methods: what every method must do, whatever it learns by."""

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch
from torch import Tensor

from ..base.trees import copied, differences, tensors
from ..entry import Entry
from ..errors import FarshoreError
from ..learner.learner import Learner
from ..learner.loading import load
from ..methods import METHODS, Method
from ..observer import Observer
from ..runs import catalog
from ..runs.protocol import execute
from ..runs.result import TargetScores
from ..runs.run import Run
from ..settings import RunSettings
from ..training.trainer import Trainer
from . import toys
from .battery import Battery, ensure, not_for
from .waiting import Waiting

EDGE_CASES = (
    *("one domain", "missing class", "one row per batch", "unequal domains", "one row"),
    "total budget",
)
SMALL_MEMORY = 7


@dataclass(frozen=True)
class MethodCase:
    """The method that is checked, with settings that differ from the toy ones."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    @property
    def kind(self) -> type[Entry]:
        """The class."""
        return METHODS.get(self.name)

    @property
    def of_run(self) -> dict[str, Any]:
        """The settings of the run, which hold for what the method is compared with, too."""
        return {name: of for name, of in self.settings.items() if name in RunSettings.model_fields}

    def learner(
        self,
        *,
        make: Callable[..., Learner] = toys.toy_learner,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Learner:
        """A small learner that has learned nothing yet."""
        if self.kind.kind == "offline":
            raise not_for("does not learn one domain after the other")
        chosen = {**self.settings, **(settings or {})}
        return make(self.name, settings=chosen, **{"device": self.device, **options})

    def learned(self, **options: Any) -> Learner:
        """A small learner that has learned toy domains."""
        return self.learner(make=toys.toy_learned, **options)

    def by_gradients(self) -> type[Method]:
        """The class, if it learns by gradient steps; otherwise the check does not apply."""
        if self.kind.system != "gradient":
            raise not_for("learns without gradient steps")
        return cast(type[Method], self.kind)


BATTERY: Battery[type[Entry], MethodCase] = Battery(METHODS, MethodCase)
method_checks = BATTERY.checks
parametrize_method_checks = BATTERY.parametrize


def check_method(
    method: str | type[Entry],
    *,
    settings: Mapping[str, Any] | None = None,
    device: str = "cpu",
    numbers: bool = False,
) -> None:
    """Run every check on a method, given by its name or as a class. The first failure raises.

    settings: of the method and of the run, in place of its defaults.
    numbers: whether labels are numbers instead of classes.
    """
    with toys.toy_numbers() if numbers else contextlib.nullcontext():
        BATTERY.run(method, settings=settings, device=device)


# ---- what it says of itself ----------------------------------------------------------------------


@BATTERY.check
def names_itself(case: MethodCase) -> None:
    """Name, group, kind and version are there, and the name is the registered one."""
    kind = case.kind
    ensure(kind.name == case.name, f"registered as {case.name!r}, its `name` is {kind.name!r}")
    for attribute in ("group", "reference"):
        ensure(getattr(kind, attribute, ""), f"{kind.__name__}.{attribute} is empty")
    ensure(kind.kind in catalog.KINDS, f"kind = {kind.kind!r} is none of {catalog.KINDS}")
    message = f"results_version = {kind.results_version!r} is not a whole number from 1"
    ensure(isinstance(kind.results_version, int) and kind.results_version >= 1, message)


@BATTERY.check
def docstring_gives_equation_and_paper(case: MethodCase) -> None:
    """A reader can hold the method beside its paper."""
    text = inspect.getdoc(case.kind) or ""
    for word in ("Equation:", "Paper:"):
        ensure(word in text, f"the docstring of {case.kind.__name__} has no {word!r}")


@BATTERY.check
def settings_have_help_texts(case: MethodCase) -> None:
    """Every setting explains itself, and the defaults of all settings are allowed."""
    fields = case.kind.Settings.model_fields
    silent = [name for name, info in fields.items() if not info.description]
    ensure(not silent, f"settings without a help text: {', '.join(silent)}")
    case.kind.Settings.build({})


# ---- it learns -----------------------------------------------------------------------------------


@BATTERY.check
def steps_lower_the_loss(case: MethodCase) -> None:
    """After 60 steps the loss on the training rows is lower than after one."""
    case.by_gradients()
    inputs, labels = toys.toy_rows(0)

    def loss(steps: int) -> float:
        learner = case.learner()
        learner.learn(inputs, labels, domain="a", steps=steps, validation=0)
        task = learner.known_task
        encoded = task.encoded(labels.tolist(), domain="a")
        return float(task.risk(learner.logits(inputs).cpu(), encoded))

    after_one, after_many = loss(1), loss(60)
    losses = f"{after_one:.4f} after 1 step, {after_many:.4f} after 60"
    ensure(after_many < after_one, f"the loss does not fall: {losses}")


@BATTERY.check
def same_seed_gives_the_same_bits(case: MethodCase) -> None:
    """Two learners with one seed are equal bit for bit."""
    first, second = (case.learned().state_dict() for _ in range(2))
    _ensure_same(first, second, "two learners with the same seed differ")


@BATTERY.check
def draws_come_from_its_own_generator(case: MethodCase) -> None:
    """The data's and PyTorch's global generators are left alone: equal seeds, equal rows."""
    case.by_gradients()
    before = torch.random.get_rng_state()
    learner = case.learned(domains=2)
    moved = not torch.equal(before, torch.random.get_rng_state())
    ensure(not moved, "it draws from PyTorch's global generator: use self.generator")
    settings = {**case.of_run, "batch_size": _trainer(learner).method.settings.batch_size}
    plain = toys.toy_learned("finetune", domains=2, device=case.device, settings=settings)
    streams = [each.state_dict()["system"]["generators"]["data"].cpu() for each in (learner, plain)]
    seen = "with one seed it sees other rows than `finetune`; use self.generator"
    ensure(torch.equal(*streams), f"it moves the generator of the data: {seen}")


@BATTERY.check
def steps_do_not_wait(case: MethodCase) -> None:
    """No step reads a tensor's value on the host, which would make it wait for a GPU."""
    case.by_gradients()
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 2
    inputs = torch.randn(40, 4, generator=generator) + labels[:, None]
    learner = case.learner(memory=12, network_settings={"width": 8})
    learner.learn(inputs, labels, domain="a", steps=3)
    trainer, waiting = _trainer(learner), Waiting()
    for owner, name in (
        (trainer.method, "update"),
        (trainer.method, "after_step"),
        (trainer.memory, "draw"),
        (trainer.memory, "observe"),
    ):
        if owner is not None:
            setattr(owner, name, waiting.watched(getattr(owner, name)))
    learner.learn(inputs + 1, labels, domain="b", steps=3)
    found = ", ".join(sorted(set(waiting.operations)))
    ensure(not found, f"a step waits for the device: {found}")


@BATTERY.check
def terms_are_finite_and_detached(case: MethodCase) -> None:
    """An observer gets at least one named term per step; terms are finite and keep no gradient."""
    case.by_gradients()
    case.learned(domains=2, observer=_Terms())


class _Terms(Observer):
    """Looks at every term."""

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        ensure(terms, f"step {step} of {domain} has no terms")
        for name, term in terms.items():
            ensure(not term.requires_grad, f"the term {name!r} still takes a gradient: detach it")
            value = float(term)
            ensure(math.isfinite(value), f"the term {name!r} is {value} in step {step} of {domain}")


# ---- what it keeps -------------------------------------------------------------------------------


@BATTERY.check
def resuming_equals_never_stopping(case: MethodCase) -> None:
    """Saved and loaded after every domain, it ends with the same bits."""
    straight = case.learned()
    learner = case.learner()
    with TemporaryDirectory() as folder:
        for number in range(3):
            learner.learn(*toys.toy_rows(number), domain=f"d{number}", steps=8)
            learner.save(folder)
            learner = load(folder, device=case.device)
    _ensure_same(
        straight.state_dict(),
        learner.state_dict(),
        "a learner that was saved and loaded between domains differs from one that was not; "
        "name everything it remembers in `remembers`",
    )


@BATTERY.check
def memory_stays_bounded(case: MethodCase) -> None:
    """It keeps no more rows than it may; all else grows by a fixed amount per domain."""
    learner = case.learner(memory=SMALL_MEMORY)
    sizes = []
    for number in range(4):
        learner.learn(*toys.toy_rows(number), domain=f"d{number}", steps=3)
        usage = learner.system.usage()
        sizes.append(usage.method_bytes)
        kept = f"it keeps {usage.memory_items} rows after {number + 1} domains"
        ensure(usage.memory_items <= SMALL_MEMORY, f"{kept}; {SMALL_MEMORY} are allowed")
    message = f"what it remembers grows faster from domain to domain: {sizes} bytes"
    ensure(sizes[3] - sizes[2] <= max(1, sizes[1] - sizes[0], sizes[2] - sizes[1]), message)


@BATTERY.check
def stored_tensors_have_no_gradient(case: MethodCase) -> None:
    """No gradient flows into what is remembered."""
    system = case.learned().system
    stored = [rows for fields in system.kept_rows().values() for rows in fields.values()]
    state = system.state_dict()
    stored += tensors({name: part for name, part in state.items() if name != "network"})
    message = "a tensor that is remembered takes part in a gradient: detach it"
    ensure(all(not each.requires_grad and each.grad_fn is None for each in stored), message)


@BATTERY.check
def forgetting_a_domain_leaves_the_others(case: MethodCase) -> None:
    """A domain is forgotten, or the refusal changes nothing; the rest saves and trains on."""
    learner = case.learned(domains=2)
    before, held = copied(learner.state_dict()), learner.system.usage()
    try:
        learner.forget("d0")
    except FarshoreError:
        _ensure_same(before, learner.state_dict(), "a refusal to forget changed the learner")
        if case.kind.system == "gradient":
            _trainer(learner).method.forget("d0")
    else:
        ensure("d0" not in learner.system.kept_rows(), "rows of a forgotten domain are kept")
        ensure("d0" not in learner.system.domains, "a forgotten domain is still listed")
    after = learner.system.usage()
    ensure(
        after.method_bytes <= held.method_bytes and after.memory_items <= held.memory_items,
        "it keeps more after forgetting a domain than before",
    )
    learner.system.load_state_dict(learner.system.state_dict())
    learner.learn(*toys.toy_rows(2), domain="d2", steps=2)
    _ensure_finite(learner, toys.toy_rows(2)[0])


@BATTERY.check
def exact_forgetting_equals_never_having_seen(case: MethodCase) -> None:
    """If the system says that it forgets exactly, its whole state is as without the domain."""

    def learned(*numbers: int) -> Learner:
        learner = case.learner(task=toys.toy_task())
        for number in numbers:
            learner.learn_domain(toys.toy_domain(number), steps=4)
        return learner

    if not learned(0).system.forgets_exactly:
        raise not_for("keeps its weights when a domain is forgotten")
    for forgotten in (0, 1, 2):
        learner = learned(0, 1, 2)
        learner.forget(f"d{forgotten}")
        never = learned(*(number for number in (0, 1, 2) if number != forgotten))
        what = "a learner that forgot a domain differs from one that never saw it"
        _ensure_same(learner.state_dict(), never.state_dict(), what)


# ---- odd data ------------------------------------------------------------------------------------


def _stays_finite(case: MethodCase, edge: str) -> None:
    """Weights, memory and logits are finite numbers."""
    inputs, labels = toys.toy_rows(0, classes=3)
    settings: dict[str, Any] = {"batch_size": 1} if edge == "one row per batch" else {}
    if edge == "total budget":
        settings = {"replay_budget": "total", "batch_size": 4}
    learner = case.learner(classes=[0, 1, 2], settings=settings)
    learner.learn(inputs, labels, domain="a", steps=6)
    for number in range(1, 1 if edge == "one domain" else 4):
        more, classes = toys.toy_rows(number, classes=3)
        if edge == "missing class":
            present = classes != number % 3
            more, classes = more[present], classes[present]
        if edge == "unequal domains":
            more, classes = more[: 5 * number], classes[: 5 * number]
        if edge == "one row":
            more, classes = more[:1], classes[:1]
        learner.learn(more, classes, domain=f"d{number}", steps=6, validation=0)
    _ensure_finite(learner, inputs)


for _edge in EDGE_CASES:
    BATTERY.add(partial(_stays_finite, edge=_edge), f"stays finite with {_edge}")


@BATTERY.check
def images_and_batchnorm(case: MethodCase) -> None:
    """A user's own network with BatchNorm trains on uint8 images and resumes bit for bit."""
    if case.kind.tables_only:
        raise not_for("it learns from tables only")

    def learned(folder: Path | None) -> Learner:
        learner = case.learner(network=toys.toy_image_network(), network_settings=None)
        for number in range(2):
            learner.learn(*toys.toy_images(number), domain=f"d{number}", steps=4)
            if folder is not None:
                learner.save(folder)
                learner = load(folder, network=toys.toy_image_network(), device=case.device)
        return learner

    straight = learned(None)
    with TemporaryDirectory() as folder:
        resumed = learned(Path(folder))
    _ensure_finite(straight, toys.toy_images(0)[0])
    if case.device == "cpu":  # on a GPU convolutions add in any order
        what = "with images and BatchNorm, a learner that was saved and loaded differs"
        _ensure_same(straight.state_dict(), resumed.state_dict(), what)
    kept = straight.system.kept_rows()
    types = {rows["inputs"].dtype for rows in kept.values()}
    ensure(types <= {torch.uint8}, "images are not kept as uint8")
    ensure(
        bool(kept) == case.kind.keeps_rows(),
        f"keeps_rows() says {case.kind.keeps_rows()}, but rows of {len(kept)} domains are kept",
    )


# ---- what it is made of --------------------------------------------------------------------------


@BATTERY.check
def zero_weights_reduce_it_to_its_simpler_method(case: MethodCase) -> None:
    """With the settings of `reduces_to` it is that method bit for bit."""
    simpler = case.by_gradients().reduces_to
    if simpler is None:
        raise not_for("has no weight whose zero makes it another method")
    name, zeros = simpler
    simpler_one = toys.toy_learned(name, settings=case.of_run, device=case.device)
    learners = (case.learned(settings=zeros), simpler_one)
    own, simple = (learner.state_dict()["system"]["network"] for learner in learners)
    _ensure_same(own, simple, f"with {dict(zeros)} its weights are not those of {name!r}")


@BATTERY.check
def the_target_changes_no_weight(case: MethodCase) -> None:
    """The target is made once, at the end; as noise it changes no weight and no source score."""
    fields = case.kind.Settings.model_fields
    usual = toys.toy_settings(case.name).items()
    settings = {name: value for name, value in usual if name in fields} | dict(case.settings)
    results = []
    for noise in (False, True):
        observer = toys.DomainCount()
        with toys.toy_shift(noise=noise, observer=observer) as opened:
            where = {"benchmark": toys.ToyShift.name, "device": case.device}
            run = Run.build(**where, method=case.name, settings=settings)
            results.append(execute(run, observer=observer))
        when = f"the target was made after {opened} of {observer.learned} domains"
        sealed = opened == [observer.learned]
        ensure(sealed, f"{when}: it must stay sealed until all are learned")
    real, noisy = (cast(TargetScores, result.target) for result in results)
    one, two = ((result.matrices, result.doses) for result in results)
    same = real.weights == noisy.weights and one == two
    ensure(same, "its weights or its scores on the sources depend on the target")
    ensure(
        real.scores != noisy.scores or case.kind.kind == "reference",
        "it scores the same on the target and on noise: its logits do not depend on the inputs",
    )


# ---- shared --------------------------------------------------------------------------------------


def _trainer(learner: Learner) -> Trainer:
    return cast(Trainer, learner.system)


def _ensure_same(first: Any, second: Any, sentence: str) -> None:
    where = differences(first, second)
    ensure(not where, f"{sentence}: {', '.join(where[:3])}")


def _ensure_finite(learner: Learner, inputs: Tensor) -> None:
    state = [*tensors(learner.state_dict()), learner.logits(inputs)]
    ensure(
        all(bool(torch.isfinite(each).all()) for each in state if each.is_floating_point()),
        "weights, memory or logits are not finite numbers",
    )
