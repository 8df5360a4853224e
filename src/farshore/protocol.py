"""The protocol: train on the sources in turn, freeze, open the target, measure.

It turns one Run into one Result.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from . import catalog
from .batches import ALL_SOURCES
from .benchmarks import BENCHMARKS
from .benchmarks.benchmark import Benchmark
from .benchmarks.own_images import OwnImages
from .benchmarks.source import make_scenario
from .data.domain import Domain
from .data.inputs import Inputs
from .data.progress import following
from .data.scenario import Scenario
from .data.seal import FrozenModel, training
from .entry import AtTarget, Kind, Sources, SourceTraining
from .errors import DivergedError, FarshoreError, StateError, unknown
from .evaluation.scores import all_scores, confusion_matrix
from .evaluation.transfer import backward_transfer, forgetting, source_performance
from .execution import cpu_threads, usual_threads, warm_up
from .features import FeatureCache
from .files import write_atomic
from .learner import Learner
from .networks.build import plain_network_settings, settle_network
from .networks.network import Network
from .observer import Observer, follow
from .optimization import choose_device
from .origin import hardware, versions
from .profiles import PROFILES
from .randomness import generator
from .resume import Resume
from .settings import MethodSettings, RunSettings, divide, explain
from .trained_part import resolve_train, usual_profile

# How a run ended. `pruned`: stopped between two domains by the sources' scores; the target was
# never opened.
Status = Literal["done", "diverged", "pruned"]
SPLITS: tuple[Literal["train", "validation"], ...] = ("train", "validation")


class Run(BaseModel):
    """Everything that determines a result: what is learned, how, and from which seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str
    # Options of the benchmark, validated by its own model.
    options: dict[str, Any] = Field(default_factory=dict)
    method: str
    # Settings of the method and of the run, by name.
    settings: dict[str, Any] = Field(default_factory=dict)
    # A network that replaces the scenario's own; settings of whichever is used.
    network: str | None = None
    network_settings: dict[str, Any] = Field(default_factory=dict)
    seed: int = Field(0, ge=0, lt=2**63)
    # scikit-learn, which makes domains of own data, takes seeds of 32 bits.
    scenario_seed: int = Field(0, ge=0, lt=2**32)
    target: str | None = None
    order: tuple[str, ...] | None = None
    # Domains that this run uses neither as source nor as target: those later than the target if
    # the domains are ordered by time, and the real target if a source takes its place.
    left_out: tuple[str, ...] = ()
    # Whether the target is a source that takes the place of the real target, in selection by
    # leaving sources out. Its classes are known then.
    held_out: bool = False
    steps: int | None = Field(None, ge=1, lt=2**31)
    memory: int | None = Field(None, ge=1, lt=2**31)
    device: str = "cpu"
    # A trial of a search by successive halving, which may be stopped between two domains. It is
    # part of the run, so that other searches never get a run that was stopped.
    halving: bool = False

    @classmethod
    def build(cls, **values: Any) -> Run:
        """A run from plain values, in its normal form. Errors are reported in one line."""
        for name in values:
            if name not in cls.model_fields:
                raise unknown("name", name, cls.model_fields)
        try:
            return cls(**values).normal()
        except ValidationError as error:
            raise FarshoreError(explain(error)) from None

    def normal(self) -> Run:
        """The same run with validated options and settings.

        Two ways of writing a value therefore give the same run. Options at their defaults are left
        out, and the device `auto` becomes the one that is used.
        Unknown names and invalid values are refused.
        """
        kind = BENCHMARKS.get(self.benchmark)
        entry = catalog.find(self.method)
        network, network_settings, options = _normal_network(self, kind)
        try:
            for_method, for_run = divide(self.settings, entry.Settings)
            plain = entry.Settings.plain(for_method) | RunSettings.plain(for_run)
        except FarshoreError as error:
            raise FarshoreError(f"{self.method}: {error}") from None
        return self.model_copy(
            update={
                "device": choose_device(self.device),
                "options": kind.Options.build(options, self.benchmark).plain(),
                "settings": {name: plain[name] for name in self.settings},
                "network": network,
                "network_settings": network_settings,
            }
        )


def _normal_network(
    run: Run, kind: type[Benchmark]
) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
    """The run's network, its settings, and the benchmark's options.

    For own images all of it is written out: which network is usual depends on the weights at hand,
    and the size of the images on the network.
    """
    options = dict(run.options)
    if not issubclass(kind, OwnImages):
        name = run.network or kind.usual_network()
        return run.network, plain_network_settings(name, run.network_settings), options
    network = run.network
    if network is None:
        network = "resnet18" if "weights" in run.network_settings else kind.usual_network()
    settings = plain_network_settings(network, run.network_settings)
    wanted = kind.Options.build(options, kind.name)
    if wanted.size is None or wanted.interpolation is None:  # type: ignore[attr-defined]
        form = settle_network(network, settings).form
        options = {"size": form.size, "interpolation": form.interpolation} | {
            name: value for name, value in options.items() if value is not None
        }
    return network, settings, options


class TargetScores(BaseModel):
    """The scores of the frozen model on the target, measured once on all of its rows."""

    name: str
    rows: int
    scores: dict[str, float | None]
    confusion: list[list[int]]
    opened_at: str
    weights: str


class Result(BaseModel):
    """The result of a run. Averages, BWT and forgetting are computed from the matrices."""

    run: Run
    # The name of the benchmark, or of the file or folder for own data.
    title: str
    # Only continual methods are ranked: offline methods saw all sources at once, adaptations saw
    # the inputs of the target.
    kind: Kind = "continual"
    # `pruned`: stopped between two domains, by the sources' scores; the target was never opened.
    status: Status
    message: str = ""
    metric: str
    classes: list[str]
    sources: list[str]
    settings: dict[str, Any]
    run_settings: dict[str, Any]
    network: dict[str, Any]
    # How the steps of the last domain were carried out (eager, graph or compiled), and in which
    # precision.
    execution: str = "eager"
    precision: str = "float32"
    steps: int
    memory: int
    rows_per_step: list[int]
    # By split: R[i][j], the score on source j after learning source i; one row if the sources were
    # learned at once.
    matrices: dict[str, list[list[float]]]
    # What had been learned at each row of the matrices.
    stages: list[str] = Field(default_factory=list)
    # By split: every score of the final model on each source, whichever the matrices show.
    source_scores: dict[str, list[dict[str, float | None]]] = Field(default_factory=dict)
    target: TargetScores | None
    seconds: dict[str, float]
    step_milliseconds: list[float]
    memory_bytes: int
    memory_items: int
    method_bytes: int
    notes: list[str]
    versions: dict[str, str]
    # Processor and, if used, GPU; the exact data. Results of older versions lack both.
    hardware: dict[str, str] = Field(default_factory=dict)
    data: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_parts(self) -> Result:
        """Refuse results whose parts do not belong together: every reader relies on them."""
        if self.target is not None and self.metric not in self.target.scores:
            raise ValueError(f"one whose target has a score {self.metric!r}")
        for key, names in {
            "seconds": ("total", "training"),
            "versions": ("torch", "farshore"),
        }.items():
            missing = [name for name in names if name not in getattr(self, key)]
            if missing:
                raise ValueError(f"one with {key}.{missing[0]}")
        if not isinstance(self.network.get("name"), str):
            raise ValueError("one with network.name")
        for split in SPLITS:
            rows = self.matrices.get(split)
            if rows is None or (not rows and self.status == "done"):
                raise ValueError(f"one with matrices.{split}")
            widths = {len(row) for row in rows}
            if len(widths) > 1 or any(not len(rows) <= n <= len(self.sources) for n in widths):
                raise ValueError(f"one with a score per source in each row of matrices.{split}")
        if not all(map(math.isfinite, self.seconds.values())):
            raise ValueError("one with finite seconds")
        return self

    @property
    def target_score(self) -> float | None:
        """The main score: the scenario's metric on the unseen target."""
        return self.target.scores[self.metric] if self.target is not None else None

    def source_score(self, option: int = 2) -> float | None:
        """Mean source score of the final model; by the paper's option 2 on the training split."""
        return source_performance(dict(self.matrices), option) if self.status == "done" else None

    def backward_transfer(self, split: str = "validation") -> float | None:
        """BWT as Lopez-Paz and Ranzato defined it, on the named split."""
        return backward_transfer(self.matrices[split]) if self.status == "done" else None

    def forgetting(self, split: str = "validation") -> float | None:
        """Mean drop from the best score that each source ever had, on the named split."""
        return forgetting(self.matrices[split]) if self.status == "done" else None

    def save(self, path: str | Path) -> None:
        """Write the result as JSON, atomically."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, self.text().encode())

    def text(self) -> str:
        """The result as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=1)

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """Read a result written by `save`."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            reason = " ".join(explain(error, shown=60).split())
            raise StateError(f"{path} is not a complete result: {reason}") from error


# Called with the frozen learner once the target is open and measured, for figures.
Opened = Callable[[Learner, Scenario, Domain], None]
# Called ahead of each domain but the first with the validation scores so far.
Promising = Callable[[list[list[float]]], bool]


def execute(
    run: Run,
    *,
    observer: Observer | None = None,
    save_model: str | Path | None = None,
    resume: Resume | None = None,
    opened: Opened | None = None,
    promising: Promising | None = None,
) -> Result:
    """Carry out a run.

    Errors in the run are reported before the first step; the target is opened after the last one.

    resume: where the state is saved at the end of each domain. If it contains one, the run
        continues from there.
    opened: called with the frozen learner and the open target once the scores are measured.
    promising: if it returns False between two domains, the run is pruned.
    """
    entry = catalog.find(run.method)
    run = run.normal()
    warm_up(run.device)
    began = time.perf_counter()  # after the imports: times exclude the start of the interpreter
    with following(follow(observer or Observer())):
        scenario = make_scenario(
            run.benchmark,
            run.options,
            target=run.target,
            order=run.order,
            left_out=run.left_out,
            held_out=run.held_out,
            seed=run.scenario_seed,
            network=run.network,
        )
    scenario = replace(scenario, profile=_profile(run, scenario))
    for note in scenario.notes:
        (observer or Observer()).note(note)
    settings = entry_settings(run, scenario)
    adaptation = entry.at_target(settings)
    source = entry.source_training({**scenario.settings, **run.settings})
    learner = make_learner(run, scenario, source, observer)
    origin = learner.backbone.settled().origin
    scenario = _prepare(learner, scenario)
    scenario = replace(
        scenario, sources=tuple(domain.to(learner.device) for domain in scenario.sources)
    )
    seconds = {"preparation": time.perf_counter() - began}
    steps = run.steps or scenario.steps
    record = _Record()
    status: Status = "done"
    message, target = "", None
    try:
        _train(learner, scenario, source.sources, steps, record, resume, promising)
        opening = time.perf_counter()
        target = _measure_target(learner, scenario, adaptation, opened)
        seconds["target"] = time.perf_counter() - opening
        for note in adaptation.notes if adaptation is not None else ():
            learner.observer.note(note)
    except DivergedError as error:
        status, message = "diverged", str(error)
    except _Pruned as stop:
        status, message = "pruned", str(stop)
    notes: list[str] = []
    if save_model is not None and target is not None:
        try:
            learner.save(save_model)
        except StateError as error:  # a full disk must not cost the result
            notes.append(f"the model was not saved: {error}")
            learner.observer.note(notes[-1])
    seconds |= {
        "training": sum(record.step_seconds),
        "closing": record.closing,
        "evaluation": record.evaluation,
        "total": time.perf_counter() - began,
    }
    usage = learner.system.usage()
    return Result(
        run=run,
        title=scenario.name,
        kind=entry.kind,
        status=status,
        message=message,
        metric=scenario.metric,
        classes=list(scenario.classes),
        sources=[domain.name for domain in scenario.sources],
        settings=settings.model_dump(),
        run_settings=learner.run.model_dump(),
        network={
            "name": run.network or scenario.network,
            **network_settings(run, scenario),
            **({"origin": origin} if origin else {}),
        },
        execution=usage.execution,
        precision=usage.precision,
        steps=steps,
        memory=learner.capacity,
        rows_per_step=record.rows_per_step,
        matrices=record.matrices,
        stages=record.stages,
        source_scores=record.source_scores,
        target=target,
        seconds=seconds,
        step_milliseconds=[
            1000 * seconds_spent / count
            for seconds_spent, count in zip(record.step_seconds, record.steps, strict=True)
        ],
        memory_bytes=usage.memory_bytes,
        memory_items=usage.memory_items,
        method_bytes=usage.method_bytes,
        notes=[
            *scenario.notes,
            *learner.system.notes,
            *(adaptation.notes if adaptation is not None else []),
            *notes,
        ],
        versions=versions(),
        hardware=hardware(learner.device),
        data=dict(scenario.data),
    )


def entry_settings(run: Run, scenario: Scenario) -> MethodSettings:
    """The settings of the run's method: the scenario's defaults, overridden by the run's."""
    entry = catalog.find(run.method)
    values, _ = divide({**scenario.settings, **run.settings}, entry.Settings)
    return entry.Settings.build(values, PROFILES.get(scenario.profile), entry.name)


def make_learner(
    run: Run,
    scenario: Scenario,
    source: SourceTraining | None = None,
    observer: Observer | None = None,
) -> Learner:
    """The learner that is trained on the sources of a run. It never sees the target."""
    capacity = run.memory if run.memory is not None else scenario.memory
    if capacity < len(scenario.sources):
        raise FarshoreError(
            f"memory = {capacity} is smaller than the number of domains "
            f"({len(scenario.sources)}): give at least one row per domain"
        )
    if source is None:
        settings = {**scenario.settings, **run.settings}
        source = catalog.find(run.method).source_training(settings)
    learner = Learner(
        network=run.network or scenario.network,
        method=source.method,
        memory=capacity,
        settings={
            "replay_budget": RunSettings().replay_budget,
            "train": RunSettings().train,
            **source.settings,
        },
        network_settings=network_settings(run, scenario),
        classes=scenario.classes,
        metric=scenario.metric,
        seed=run.seed,
        device=run.device,
        profile=scenario.profile,
        observer=observer,
    )
    learner.preprocessing = scenario.preprocessing
    return learner


def network_settings(run: Run, scenario: Scenario) -> dict[str, Any]:
    """The network settings of the run, over those of the scenario if its network is used."""
    if run.network is not None:
        return dict(run.network_settings)
    return {**scenario.network_settings, **run.network_settings}


def _profile(run: Run, scenario: Scenario) -> str:
    """The settings profile: the benchmark's own, unless only a classifier is trained.

    For own images it also depends on whether the network is pretrained.
    """
    values = {**scenario.settings, **run.settings}
    settings = RunSettings(train=values.get("train", RunSettings().train))
    network, of_network = run.network or scenario.network, network_settings(run, scenario)
    train = resolve_train(settings, network, of_network)
    own = issubclass(BENCHMARKS.get(run.benchmark), OwnImages)
    if train != "head" and not own:
        return scenario.profile
    shape = tuple(scenario.sources[0].inputs.shape[1:])
    return usual_profile(shape, train, network, of_network)


def _prepare(learner: Learner, scenario: Scenario) -> Scenario:
    """The scenario as the learner sees it: with a frozen backbone, features instead of inputs.

    Those of the target are computed when it is opened, not earlier.
    """
    if learner.backbone.train == "all":
        return scenario
    cache = FeatureCache()
    return replace(
        scenario,
        sources=tuple(learner.prepared(domain, cache) for domain in scenario.sources),
        target=scenario.target.then(lambda target: learner.prepared(target, cache)),
    )


class _Pruned(Exception):
    """The run was stopped between two domains by its scores on the sources."""


class _Record:
    """What is measured while the sources are learned."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.matrices: dict[str, list[list[float]]] = {split: [] for split in SPLITS}
        self.source_scores: dict[str, list[dict[str, float | None]]] = {}
        self.steps: list[int] = []
        self.step_seconds: list[float] = []
        self.rows_per_step: list[int] = []
        self.closing = 0.0
        self.evaluation = 0.0


def _train(
    learner: Learner,
    scenario: Scenario,
    sources: Sources,
    steps: int,
    record: _Record,
    resume: Resume | None,
    promising: Promising | None,
) -> None:
    """Learn the sources; after each one, score all of them on both splits.

    Sources learned before an interruption are skipped.
    """
    if sources == "jointly":
        total = learner.learn_jointly(scenario.sources, steps=steps)
        _score(learner, scenario, ALL_SOURCES, total, record)
        _score_finally(learner, scenario, record)
        return
    learned, saved = resume.restore(learner) if resume is not None else (0, {})
    vars(record).update(saved)
    to_learn = scenario.sources[: 1 if sources == "first" else None]
    for domain in to_learn[learned:]:
        scores = record.matrices["validation"]
        if promising is not None and record.stages and not promising(scores):
            raise _Pruned(
                f"stopped after {record.stages[-1]}: earlier trials scored better on the sources' "
                "validation rows"
            )
        learner.learn_domain(domain, steps=steps)
        _score(learner, scenario, domain.name, steps, record)
        if domain is to_learn[-1]:
            _score_finally(learner, scenario, record)
        if resume is not None:
            resume.save(learner, vars(record))


def _score(learner: Learner, scenario: Scenario, stage: str, steps: int, record: _Record) -> None:
    """Add a row to the matrices, and the cost of the stage."""
    system = learner.system
    record.stages.append(stage)
    record.steps.append(steps)
    record.step_seconds.append(system.seconds["steps"])
    record.closing += system.seconds["closing"]
    record.rows_per_step.append(system.rows_per_step)
    began = time.perf_counter()
    for split in SPLITS:
        scores = [learner.score(source.split(split)) for source in scenario.sources]
        record.matrices[split].append(scores)
    record.evaluation += time.perf_counter() - began
    learner.observer.domain(
        stage,
        {
            f"{source.name} {split} {scenario.metric}": value
            for split in SPLITS
            for source, value in zip(scenario.sources, record.matrices[split][-1], strict=True)
        },
    )


def _score_finally(learner: Learner, scenario: Scenario, record: _Record) -> None:
    """Add every score of the final model on each source; some are too slow for every stage."""
    began = time.perf_counter()
    record.source_scores = {
        split: [all_scores(*learner.outputs(source.split(split))) for source in scenario.sources]
        for split in SPLITS
    }
    record.evaluation += time.perf_counter() - began


def _measure_target(
    learner: Learner, scenario: Scenario, adaptation: AtTarget | None, opened: Opened | None
) -> TargetScores:
    """Freeze the model, open the target, score all its rows, and verify that no weight changed.

    An adaptation gets a copy of the frozen model; the source model itself is frozen and checked.
    """
    predictor = learner.system.predictor()
    if adaptation is not None:
        learned = [source for source in scenario.sources if source.name in learner.system.domains]
        validation = [
            Inputs(source.inputs, source.validation, learner.device) for source in learned
        ]
        adaptation.prepare(cast(Network, predictor), validation)
    frozen = FrozenModel(learner.predictor())
    opened_at = datetime.now(UTC).isoformat(timespec="seconds")
    target: Domain = scenario.target.open(frozen)
    if adaptation is None:
        logits, labels = learner.outputs(target.split("all"))
    else:
        logits, labels = _adapt(adaptation, learner, target, scenario.seed)
    if opened is not None:
        opened(learner, scenario, target)
    frozen.check_unchanged()
    return TargetScores(
        name=target.name,
        rows=len(target),
        scores=all_scores(logits, labels),
        confusion=confusion_matrix(logits, labels).tolist(),
        opened_at=opened_at,
        weights=frozen.checksum,
    )


def _adapt(
    adaptation: AtTarget, learner: Learner, target: Domain, seed: int
) -> tuple[Tensor, Tensor]:
    """Logits and labels of the target's rows in the order in which the adaptation saw them.

    The order is shuffled by the scenario's seed only. The adaptation receives no labels.
    """
    order = torch.randperm(len(target), generator=generator(seed, "target order"))
    inputs = Inputs(target.inputs, order, learner.device)
    draws = generator(learner.seed, "adaptation", device=learner.device)
    network = cast(Network, deepcopy(learner.system.predictor()))
    threads = learner.run.threads or usual_threads(network)
    with training(f"the adaptation {adaptation.name!r}"), cpu_threads(threads):
        logits = adaptation.adapt(network, inputs, draws).detach()
    if not bool(torch.isfinite(logits).all()):
        raise DivergedError(
            f"the adaptation {adaptation.name!r} diverged on the target: lower adaptation_rate"
        )
    return logits, target.labels[order.to(target.labels.device)].to(learner.device)
