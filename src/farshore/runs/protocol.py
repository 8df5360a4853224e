"""The protocol: train on the sources in turn, freeze, open the target, measure.

It turns one Run into one Result.
"""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from ..base.origin import hardware, versions
from ..base.randomness import generator
from ..benchmarks import BENCHMARKS, make_benchmark
from ..data.domain import Domain
from ..data.feature_files import FeatureCache
from ..data.inputs import Inputs
from ..data.progress import following
from ..data.scenario import Scenario
from ..data.seal import FrozenModel, training
from ..entry import AtTarget, Entry, SourceTraining
from ..errors import DivergedError, FarshoreError, StateError
from ..learner.backbone import train_by_settings, usual_profile
from ..learner.learner import Learner
from ..methods import fit_numbers
from ..networks.network import Network
from ..networks.pretrained.own_module import name_note
from ..observer import Observer, follow
from ..settings import MethodSettings, RunSettings, divide
from ..training.batches import ALL_SOURCES
from ..training.execution.execution import cpu_threads, fix_workspace, usual_threads
from ..training.profiles import PROFILES
from . import catalog
from .beginnings import Beginnings, Stage, beginning_keys
from .result import SPLITS, Matrix, Result, RunStatus, TargetScores
from .resume import Resume
from .run import Run

# What a result says of the system that its `usage` says, under the same names.
USAGE = ("execution", "precision", "memory_bytes", "memory_items", "method_bytes")
# Called with the frozen learner once the target is open and measured, for figures.
Opened = Callable[[Learner, Scenario, Domain], None]
# Called ahead of each domain but the first with the validation scores so far.
Promising = Callable[[Matrix], bool]
# With more sources than this, so many of them, drawn once per run, are scored after every source;
# the others only before and after they are learned, and at the end.
MANY_SOURCES, SAMPLED_SOURCES = 50, 12


def execute(
    run: Run,
    *,
    observer: Observer | None = None,
    save_model: str | Path | None = None,
    resume: Resume | None = None,
    opened: Opened | None = None,
    promising: Promising | None = None,
    normal: bool = False,
    beginnings: Beginnings | None = None,
) -> Result:
    """Carry out a run.

    Errors in the run are reported before the first step; the target is opened after the last one.

    resume: where the state is saved at the end of each domain. If it contains one, the run
        continues from there.
    opened: called with the frozen learner and the open target once the scores are measured.
    promising: if it returns False between two domains, the run is pruned.
    normal: the run is in its normal form already.
    beginnings: what earlier runs of this process learned; sources learned there are not learned
        again, and count with the seconds that they took. `seconds["shared"]` is their sum.
    """
    run = run if normal else run.normal()
    entry = catalog.find(run.method)
    fix_workspace(run.device)
    began = time.perf_counter()  # after the imports: times exclude the start of the interpreter
    ready = _set_up(run, entry, observer)
    learner, adaptation = ready.learner, ready.adaptation
    seconds = {"preparation": time.perf_counter() - began}
    record = _Record()
    status: RunStatus = "done"
    message, target = "", None
    try:
        _train(ready, record, resume, promising, beginnings)
        opening = time.perf_counter()
        target = _measure_target(learner, ready.scenario, adaptation, opened)
        seconds["target"] = time.perf_counter() - opening
        for note in adaptation.notes if adaptation is not None else ():
            learner.observer.note(note)
    except DivergedError as error:
        status, message = "diverged", str(error)
    except _Pruned as stop:
        status, message = "pruned", str(stop)
    unsaved = _save(learner, save_model) if save_model is not None and target is not None else []
    seconds |= {
        "training": sum(record.step_seconds),
        "closing": record.closing,
        "evaluation": record.evaluation,
        "total": record.shared + time.perf_counter() - began,
        **({"shared": record.shared} if record.shared else {}),
    }
    return _result(ready, record, status, message, target, seconds, unsaved)


@dataclass(frozen=True)
class _Ready:
    """A run that is ready for its first step. The target is still sealed."""

    run: Run
    entry: type[Entry]
    settings: MethodSettings
    scenario: Scenario  # as the learner sees it
    source: SourceTraining
    adaptation: AtTarget | None
    learner: Learner
    # Which weights the network starts from, in words; empty if they are random.
    origin: str
    steps: int


def _set_up(run: Run, entry: type[Entry], observer: Observer | None) -> _Ready:
    """Make the scenario and the learner of a run."""
    with following(follow(observer or Observer())):
        scenario = make_benchmark(run.benchmark, run.options).scenario(
            target=run.target,
            order=run.order,
            left_out=run.left_out,
            held_out=run.held_out,
            seed=run.scenario_seed,
            network=run.network,
        )
    scenario.task.check_method(entry.name, entry.needs_classes, fit_numbers)
    source = entry.source_training({**scenario.settings, **run.settings})
    notes = (*scenario.notes, *_sampling_note(source, len(scenario.sources)))
    scenario = replace(scenario, profile=_profile(run, scenario), notes=notes)
    for note in scenario.notes:
        (observer or Observer()).note(note)
    values, _ = divide({**scenario.settings, **run.settings}, entry.Settings)
    settings = entry.Settings.build(values, PROFILES.get(scenario.profile), entry.name)
    adaptation = entry.at_target(settings)
    learner = _make_learner(run, scenario, source, observer)
    origin = learner.backbone.settled().origin
    seen, steps = _prepare(learner, scenario), run.steps or scenario.steps
    return _Ready(run, entry, settings, seen, source, adaptation, learner, origin, steps)


def _save(learner: Learner, folder: str | Path) -> list[str]:
    """Save the learner. Returns why it was not saved: a full disk must not cost the result."""
    try:
        learner.save(folder)
    except StateError as error:
        note = f"the model was not saved: {error}"
        learner.observer.note(note)
        return [note]
    return []


def _result(
    ready: _Ready,
    record: "_Record",
    status: RunStatus,
    message: str,
    target: TargetScores | None,
    seconds: dict[str, float],
    unsaved: list[str],
) -> Result:
    """Everything that was chosen and measured, as one result."""
    run, scenario, learner, adaptation = ready.run, ready.scenario, ready.learner, ready.adaptation
    usage = learner.system.usage()
    return Result(
        version=2,
        run=run,
        title=scenario.name,
        kind=ready.entry.kind,
        status=status,
        message=message,
        metric=scenario.metric,
        task=scenario.task.state_dict(),
        classes=[str(name) for name in scenario.classes],
        sources=[domain.name for domain in scenario.sources],
        settings=ready.settings.model_dump(),
        run_settings=learner.run.model_dump(),
        network={
            "name": run.network or scenario.network,
            **_network_settings(run, scenario),
            **({"origin": ready.origin} if ready.origin else {}),
        },
        **{name: getattr(usage, name) for name in USAGE},
        steps=ready.steps,
        memory=learner.capacity,
        rows_per_step=record.rows_per_step,
        matrices=record.matrices,
        stages=record.stages,
        source_scores=record.source_scores,
        doses=record.doses,
        target=target,
        seconds=seconds,
        step_milliseconds=[
            1000 * spent / count
            for spent, count in zip(record.step_seconds, record.steps, strict=True)
        ],
        notes=[
            *scenario.notes,
            *name_note(run.network or ""),
            *dict.fromkeys([*record.system_notes, *learner.system.notes]),
            *(adaptation.notes if adaptation is not None else []),
            *unsaved,
        ],
        versions=versions(),
        hardware=hardware(learner.device),
        data=dict(scenario.data),
    )


def _make_learner(
    run: Run, scenario: Scenario, source: SourceTraining, observer: Observer | None
) -> Learner:
    """The learner that is trained on the sources of a run. It never sees the target."""
    capacity = run.memory if run.memory is not None else scenario.memory
    if capacity < len(scenario.sources):
        raise FarshoreError(
            f"memory = {capacity} is smaller than the number of domains "
            f"({len(scenario.sources)}): give at least one row per domain"
        )
    learner = Learner(
        network=run.network or scenario.network,
        method=source.method,
        memory=capacity,
        settings={**RunSettings().model_dump(), **source.settings},
        network_settings=_network_settings(run, scenario),
        task=scenario.task,
        metric=scenario.metric,
        seed=run.seed,
        device=run.device,
        profile=scenario.profile,
        observer=observer,
    )
    learner.preprocessing = scenario.preprocessing
    return learner


def _network_settings(run: Run, scenario: Scenario) -> dict[str, Any]:
    """The network settings of the run, over those of the scenario if its network is used."""
    if run.network is not None:
        return dict(run.network_settings)
    return {**scenario.network_settings, **run.network_settings}


def _profile(run: Run, scenario: Scenario) -> str:
    """The profile: the benchmark's, unless the network decides or only a classifier is trained."""
    network, of_network = run.network or scenario.network, _network_settings(run, scenario)
    train = train_by_settings({**scenario.settings, **run.settings}, network, of_network)
    if train != "head" and not BENCHMARKS.get(run.benchmark).profile_follows_network:
        return scenario.profile
    shape = tuple(scenario.sources[0].inputs.shape[1:])
    return usual_profile(shape, train, network, of_network)


def _prepare(learner: Learner, scenario: Scenario) -> Scenario:
    """The scenario as the learner sees it; the target's features wait until it is opened."""
    if learner.backbone.train != "all":
        cache = FeatureCache()
        scenario = replace(
            scenario,
            sources=tuple(learner.backbone.prepared(domain, cache) for domain in scenario.sources),
            target=scenario.target.then(lambda target: learner.backbone.prepared(target, cache)),
        )
    sources = tuple(domain.to(learner.device) for domain in scenario.sources)
    return replace(scenario, sources=sources)


class _Pruned(Exception):
    """The run was stopped between two domains by its scores on the sources."""


class _Record:
    """What is measured while the sources are learned."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.matrices: dict[str, list[list[float | None]]] = {split: [] for split in SPLITS}
        self.source_scores: dict[str, list[dict[str, float | None]]] = {}
        self.steps: list[int] = []
        self.step_seconds: list[float] = []
        self.rows_per_step: list[int] = []
        self.doses: dict[str, dict[str, float | None]] = {}
        self.closing = 0.0
        self.evaluation = 0.0
        # Seconds of steps and closing that an earlier run spent on sources that both begin with.
        self.shared = 0.0
        self.system_notes: list[str] = []

    def add(self, stage: Stage) -> None:
        """Add what a stage took."""
        self.step_seconds.append(stage.seconds["steps"])
        self.closing += stage.seconds["closing"]
        self.rows_per_step.append(stage.rows_per_step)
        self.system_notes += [note for note in stage.notes if note not in self.system_notes]
        if stage.shared:
            self.shared += sum(stage.seconds.values())


def _train(
    ready: _Ready,
    record: _Record,
    resume: Resume | None,
    promising: Promising | None,
    beginnings: Beginnings | None,
) -> None:
    """Learn the sources not learned yet; after each one, score all of them on both splits."""
    run, learner, scenario, steps = ready.run, ready.learner, ready.scenario, ready.steps
    sources = ready.source.sources
    if sources == "jointly":
        total = learner.learn_jointly(scenario.sources, steps=steps)
        _score(ready, record, ALL_SOURCES, total, Stage.of(learner), None)
        _score_finally(ready, record)
        return
    to_learn = scenario.sources[: 1 if sources == "first" else None]
    keys = list(beginning_keys(learner, to_learn, steps)) if beginnings is not None else []
    learned, saved = resume.restore(learner) if resume is not None else (0, {})
    vars(record).update(saved)
    for number, domain in enumerate(to_learn[learned:], start=learned):
        scores = record.matrices["validation"]
        if promising is not None and record.stages and not promising(scores):
            raise _Pruned(
                f"stopped after {record.stages[-1]}: earlier trials scored better on the sources' "
                "validation rows"
            )
        last = domain is to_learn[-1]
        if beginnings is None:
            learner.learn_domain(domain, steps=steps)
            stage = Stage.of(learner)
        else:
            stage = beginnings.learn(keys[number], learner, domain, steps, last=last)
        scored = None if last else scored_after(len(record.stages), len(scenario.sources), run)
        _score(ready, record, domain.name, steps, stage, scored)
        if last:
            _score_finally(ready, record)
        if resume is not None:
            resume.save(learner, vars(record))


def scored_after(number: int, sources: int, run: Run) -> set[int] | None:
    """Which sources are scored after the one with this number, which is not the last; None: all."""
    if sources <= MANY_SOURCES:
        return None
    order = torch.randperm(sources, generator=generator(run.scenario_seed, "scored"))
    return {*order[:SAMPLED_SOURCES].tolist(), number, number + 1}


def _sampling_note(source: SourceTraining, sources: int) -> list[str]:
    if source.sources in ("jointly", "first") or sources <= MANY_SOURCES:
        return []
    return [
        f"after each of the {sources} sources, {SAMPLED_SOURCES} drawn ones are scored; the others "
        "just before and after they are learned, and at the end"
    ]


def _score(
    ready: _Ready, record: _Record, name: str, steps: int, stage: Stage, scored: set[int] | None
) -> None:
    """Add a row to the matrices, and the cost of the stage."""
    learner, scenario = ready.learner, ready.scenario
    record.stages.append(name)
    record.steps.append(steps)
    record.add(stage)
    if stage.doses:
        record.doses[name] = stage.doses
    began = time.perf_counter()
    for split in SPLITS:
        row = [
            learner.score(source.split(split)) if scored is None or number in scored else None
            for number, source in enumerate(scenario.sources)
        ]
        record.matrices[split].append(row)
    record.evaluation += time.perf_counter() - began
    scores = {
        f"{source.name} {split} {scenario.metric}": value
        for split in SPLITS
        for source, value in zip(scenario.sources, record.matrices[split][-1], strict=True)
        if value is not None
    }
    learner.observer.domain(name, scores)


def _score_finally(ready: _Ready, record: _Record) -> None:
    """Add every score of the final model on each source; some are too slow for every stage."""
    began, scenario, outputs = time.perf_counter(), ready.scenario, ready.learner.outputs
    record.source_scores = {
        split: [scenario.task.scores(*outputs(of.split(split))) for of in scenario.sources]
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
        validation = [
            Inputs(source.inputs, source.validation, learner.device)
            for source in scenario.sources
            if source.name in learner.system.domains
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
        scores=scenario.task.scores(logits, labels),
        confusion=scenario.task.confusion(logits, labels),
        reliability=scenario.task.reliability(logits, labels),
        examples=scenario.task.examples(logits, labels),
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
        why = f"the adaptation {adaptation.name!r} diverged on the target: lower adaptation_rate"
        raise DivergedError(why)
    return logits, target.labels[order.to(target.labels.device)].to(learner.device)
