"""Trainer: learns by gradient steps.

It owns the training loop and decides how a step is carried out.
Read `_train` from top to bottom: it is all of training. `batches` draws the rows
of each step.
"""

import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..base.allocation import check_fits, explain_shortage
from ..base.randomness import Generators, seeded
from ..base.trees import mapped, widened
from ..data.domain import Domain, Rows
from ..data.seal import training
from ..errors import FarshoreError
from ..memory import MEMORIES
from ..memory.memory import Fields, Memory
from ..methods.method import Method, Terms
from ..methods.optimization import check_finite, make_optimizer
from ..networks.build import build_network, check_sizes
from ..networks.network import EVALUATION_ROWS, Network
from ..system import Setup, System, Usage
from .augmentation import Augmentation
from .averaging import WeightAverage
from .batches import ALL_SOURCES, AllSources, Rehearsal
from .checkpoints import Checkpoints, DomainCheckpoint
from .execution.cuda_graphs import steps_of
from .execution.execution import arithmetic, choose_way, laid_out
from .execution.extractor import StepChanges, evaluation, extraction
from .profiles import PROFILES
from .snapshot import restore_snapshot, take_snapshot

# Values of inputs per batch of an evaluation: fewer rows at once if a row is large. On a CPU, the
# activations of large batches do not fit the caches.
EVALUATION_VALUES = {"cpu": 1 << 16, "cuda": 1 << 22}
FEWEST_ROWS = {"cpu": 16, "cuda": 64}
FINITE_CHECK_STEPS = 100


class Trainer(System):
    """Trains the network of one Method. Built once the shape of the inputs is known."""

    def __init__(self, setup: Setup) -> None:
        kind = cast(type[Method], setup.entry)
        self.setup, self.run, self.device = setup, setup.run, setup.device
        self.observer = setup.observer
        self.generators = Generators.from_seed(setup.seed, setup.device)
        with seeded(self.generators.init):
            sizes, of_network = (setup.shape, setup.classes), setup.network_settings
            network = build_network(setup.network, *sizes, of_network, restored=setup.restored)
            settings = kind.Settings.build(setup.settings, PROFILES.get(setup.profile), kind.name)
            self.method: Method = kind(settings)
            self.method.task = setup.task
            network = self.method.prepare(network).to(self.device)
        self.memory: Memory | None = None
        if kind.replay.memory is not None:
            memory = MEMORIES.get(kind.replay.memory)
            self.memory = memory.build(setup.capacity, setup.classes, setup.run)
            self.memory.task = setup.task
        self.method.attach(network, self.memory, self.generators.method, self._make_optimizer)
        if self.run.backbone_rate is not None and not any(
            group["lr"] == self.run.backbone_rate
            for optimizer in self.method.opts
            for group in optimizer.param_groups
        ):
            raise FarshoreError(
                f"backbone_rate = {self.run.backbone_rate:g} is not allowed here: method "
                f"{kind.name!r} on this network has no features that the run's optimiser trains; "
                "leave it out"
            )
        self.average: WeightAverage | None = None
        if self.run.average != "none":
            self.average = WeightAverage(self.run, network)
        self.seconds = {"steps": 0.0, "closing": 0.0}
        self.rows_per_step = 0
        self.notes: list[str] = []
        self.steps_done = 0
        self.choose_way(0)

    @property
    def domains(self) -> list[str]:
        """The domains learned so far, in order."""
        return self.method.domains

    @classmethod
    def check_state(cls, setup: Setup, state: Mapping[str, Any]) -> None:
        """Check that the stored weights have the sizes of the described network."""
        if isinstance(setup.network, str):
            check_sizes(
                setup.network, setup.shape, setup.classes, setup.network_settings, state["network"]
            )

    # ---- training --------------------------------------------------------------------------------

    def learn(self, domain: Domain, *, steps: int, checkpoints: Checkpoints | None = None) -> None:
        """Learn the next domain, with the rehearsal that the method asks for."""
        rows = domain.split("train").to(self.device)
        rehearsal = Rehearsal(self, domain.name, rows)
        if self.memory is not None:
            self.memory.open_domain(domain.name, rehearsal)
        with training(f"domain {domain.name!r}"):
            if self.run.reset_optimizer == "domain" and self.domains:
                self.method.reset_optimizers()
            self.rows_per_step = rehearsal.rows_per_step
            self._check_batch()
            if self.average is not None:
                self.average.begin(steps)
            self.method.before_domain(domain.name)
            with self.arithmetic():
                self.method.look_at(rows)
            resume = checkpoints.of(self, domain, steps) if checkpoints is not None else None
            self._train(rehearsal, steps, resume, close=lambda: self._close(domain.name, rehearsal))

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> int:
        """Learn all domains at once.

        `steps` counts per domain: k domains get k x steps, as if they came in turn, unless the
        method counts differently. Returns the total number of steps.
        """
        if self.domains:
            raise FarshoreError("domains are learned jointly in one call, before any other")
        sources = [domain.split("train").to(self.device) for domain in domains]
        total = self.method.joint_steps(steps, len(domains))
        with training(ALL_SOURCES):
            self.rows_per_step = len(domains) * self.method.settings.batch_size
            self._check_batch()
            if self.average is not None:
                self.average.begin(total)
            self._train(AllSources(self, sources), total)
        self.method.domains += [domain.name for domain in domains]
        return total

    def _train(
        self,
        batches: Rehearsal | AllSources,
        steps: int,
        resume: DomainCheckpoint | None = None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """Carry out the steps, then close the domain."""
        if self.run.class_weight == "balanced":
            labels = torch.cat([rows.labels[rows.index] for rows in batches.parts])
            self.method.class_weight = self.setup.task.balanced(labels)
        self.observer.start(batches.name, steps)
        began = time.perf_counter()
        try:
            first = resume.restore() if resume is not None else 0
        except FarshoreError:
            if self.average is not None:
                self.average.cancel()
            raise
        self.choose_way(steps, batches.parts)
        shortage = explain_shortage(f"a step on {self.rows_per_step:,} rows", self._smaller_steps())
        with shortage, self.arithmetic():
            with self.carrying_out(lambda: self.step(batches)) as carry_out:
                for step in range(first, steps):
                    self.method.before_step(self.steps_done, step)
                    terms = carry_out()
                    self.steps_done += 1
                    self.observer.step(batches.name, step, terms)
                    if resume is not None:
                        resume.reached(step + 1)
                    if (step + 1) % FINITE_CHECK_STEPS == 0 or step == steps - 1:
                        check_finite(self.method.network, batches.name, step)
            ended = time.perf_counter()
            self.doses = self._measure(batches)
            self._estimate_batchnorm(batches)
            close()
            if self.average is not None:
                self.average.install()
            self._wait()
        self.seconds = {"steps": ended - began, "closing": time.perf_counter() - ended}

    def _check_batch(self) -> None:
        """Refuse a batch whose inputs alone exceed the machine's memory."""
        values = self.rows_per_step * math.prod(self.setup.shape)
        check_fits(4 * values, f"a step on {self.rows_per_step:,} rows", "lower batch_size")

    def _smaller_steps(self) -> str:
        """What to set if a step does not fit into the memory."""
        if len(self.setup.shape) != 3:
            return "lower batch_size"
        rows = self.run.micro_batch or self.rows_per_step
        smaller = max(1, min(rows // 2, 32))
        advice = "train=head or smaller images (--size)"
        if self.device.type == "cuda" and self.way.precision != "bf16":
            advice = f"precision=bf16, {advice}"
        if rows == 1:
            return advice
        return f"set micro_batch={smaller} (the same gradient, with less memory); else {advice}"

    def step(self, batches: Rehearsal | AllSources) -> Terms:
        """The work of a step on the device: draw, update, observe. It reads no value back."""
        batch = batches.draw()
        terms = self.method.update(batch)
        self.method.after_step(batch)
        batches.observe(batch)
        if self.average is not None:
            self.average.update()
        return terms

    def _measure(self, batches: Rehearsal | AllSources) -> dict[str, float | None]:
        """How strongly the method's terms act on one more batch, which changes nothing.

        Without dropout, augmentation and averaged weights.
        """
        method = self.method
        if type(method).doses is Method.doses or self.run.micro_batch is not None:
            return {}
        generators = self.generators.state_dict()
        frozen = self.run.freeze_batchnorm
        try:
            with method.network.batchnorm("frozen" if frozen else "no_update"):
                found = method.doses(batches.draw())
        except torch.OutOfMemoryError:  # a step may need less, in half precision
            found = {}
        self.generators.load_state_dict(generators)
        values = {name: float(value) for name, value in found.items()}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def _estimate_batchnorm(self, batches: Rehearsal | AllSources) -> None:
        """BatchNorm statistics of averaged weights, from batches as in the steps."""
        if self.average is None:
            return
        generators = self.generators.state_dict()

        def forward() -> None:
            batch = batches.draw()
            self.method.forward(batch)
            for draw in batch.draws.values():
                self.method.network(draw.inputs.reshape(-1, *self.setup.shape))

        rows = max(len(part) for part in batches.parts)
        self.average.estimate_batchnorm(-(-rows // self.method.settings.batch_size), forward)
        self.generators.load_state_dict(generators)

    def _close(self, domain: str, rehearsal: Rehearsal) -> None:
        """End a domain: the memory selects rows, then the method sees the rows once more."""
        if self.memory is not None:
            self.memory.close_domain(domain, rehearsal, self.generators.memory)
        self.method.domains.append(domain)
        self.method.after_domain(domain, rehearsal.rows)
        for text in self.method.notes:
            self._note(text)

    def _make_optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        settings = self.method.settings
        rate, decay = settings.learning_rate, settings.weight_decay
        backbone = self.method.network.features.parameters()
        return make_optimizer(self.run, parameters, rate=rate, decay=decay, backbone=backbone)

    def grown(self, setup: Setup) -> "Trainer":
        """A trainer whose classifier has more outputs; the old ones and all else stay.

        New outputs start like those of a new network, with empty moments of the optimiser. The
        logits that the memory keeps get those of the new outputs.
        """
        state, larger = self.state_dict(), Trainer(setup)
        network, own = larger.method.network, self.method.network
        saved, made = state["network"], network.state_dict()
        weights = {name: widened(saved[name], fresh) for name, fresh in made.items()}
        network.load_state_dict(weights)
        shapes = zip(own.parameters(), network.parameters(), strict=True)
        sizes = {tuple(old.shape): new.shape for old, new in shapes if old.shape != new.shape}
        state["network"] = weights
        state["method"] = self.method.grown_state(state["method"], network)
        state["optimizers"] = [_resized(saved, sizes) for saved in state["optimizers"]]
        if state["memory"] is not None:
            for fields in state["memory"]["rows"]:
                if "logits" in fields:
                    parts = fields["inputs"].split(EVALUATION_ROWS)
                    with torch.no_grad():
                        logits = torch.cat([network.eval()(part).float() for part in parts])
                    fields["logits"] = widened(fields["logits"], logits)
        larger.load_state_dict(state)
        larger.seconds, larger.notes = self.seconds, self.notes
        return larger

    # ---- the way a step is carried out -----------------------------------------------------------

    def choose_way(self, steps: int, parts: Sequence[Rows] = ()) -> None:
        """Choose how the next steps are carried out, in which precision and memory format."""
        method = self.method
        reason = method.uncaptured()
        if not all(isinstance(rows.inputs, Tensor) for rows in parts):
            reason = reason or "the domain's inputs do not fit into the memory of the GPU"
        where = (self.run, self.device, method.network, steps)
        uncompiled = method.uncompiled or self._uncompiled()
        self.way = choose_way(*where, uncaptured=reason, uncompiled=uncompiled)
        for text in self.way.notes:
            self._note(text)

    def _uncompiled(self) -> str:
        """Why the run's settings keep the features from being compiled; empty if they do not."""
        if self.run.micro_batch is not None:
            return "micro_batch computes features in parts"
        return "images are augmented in the step" if self.run.augment != "none" else ""

    def _note(self, text: str) -> None:
        """Report a note once, and keep it for the result."""
        if text not in self.notes:
            self.notes.append(text)
            self.observer.note(text)

    def arithmetic(self) -> AbstractContextManager[None]:
        """Compute inside with the precision, repeatability and threads that the run asks for."""
        return arithmetic(self.way, self.run, self.device, self.method.network)

    @contextmanager
    def carrying_out(self, step: Callable[[], Terms]) -> Iterator[Callable[[], Terms]]:
        """Yield a function that carries out one step per call, in training mode."""
        method, generators = self.method, self.generators
        network = method.network
        network.train()

        def phase() -> Hashable:
            # A new optimiser creates its state in its first step, which must not be recorded.
            return method.phase(), *(len(optimizer.state) for optimizer in method.opts)

        drawn = (generators.data, generators.memory, generators.method)
        with (
            network.batchnorm("frozen" if self.run.freeze_batchnorm else "train"),
            laid_out(network, method.opts, self.way),
            extraction(network, self.way, self.device, self._note, self._changes()),
            steps_of(self.way, self.device, step, phase, drawn, self._note) as steps,
        ):
            if self.average is not None:
                self.average.lay_out()
            yield steps
            self._wait()
        network.eval()

    def _changes(self) -> StepChanges:
        """What differs in the features of a step from those in evaluation."""
        run, augment = self.run, None
        if run.augment != "none" and len(self.setup.shape) == 3:
            augment = Augmentation(run.augment, self.generators.data, flip=run.augment_flip)
        return StepChanges(augment, run.micro_batch)

    def _wait(self) -> None:
        """Wait for the device, so that times measure finished work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    # ---- prediction ------------------------------------------------------------------------------

    def predictor(self) -> nn.Module:
        """The method's predictor."""
        return self.method.predictor()

    def logits(self, rows: Rows) -> Tensor:
        """Logits in evaluation mode, in batches that suit the device."""
        predictor = self.predictor().eval()
        (logits,) = self._in_batches(rows, predictor, lambda inputs: (predictor(inputs),))
        return logits

    def logits_and_features(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Both, by one pass through the network if it is what predicts."""
        network = self.method.network
        if self.predictor() is not network or type(network).forward is not Network.forward:
            return super().logits_and_features(inputs)

        def both(part: Tensor) -> tuple[Tensor, Tensor]:
            features = network.extract(part)
            return network.classifier(features), features

        logits, features = self._in_batches(Rows.unlabelled(inputs), network.eval(), both)
        return logits, features

    def _in_batches(
        self, rows: Rows, model: nn.Module, outputs: Callable[[Tensor], tuple[Tensor, ...]]
    ) -> list[Tensor]:
        """What a model puts out for these rows."""
        values = max(1, math.prod(rows.inputs.shape[1:]))
        kind = "cpu" if self.device.type == "cpu" else "cuda"
        size = max(FEWEST_ROWS[kind], min(EVALUATION_ROWS, EVALUATION_VALUES[kind] // values))
        whole, done = [torch.empty(0)], 0
        with self.arithmetic(), evaluation(model, self.way, self.device), torch.inference_mode():
            for inputs, _ in rows.batches(size):
                parts = [part.float() for part in outputs(inputs.to(self.device))]
                # One tensor for all batches: many small ones would fragment the memory.
                if done == 0:
                    whole = [part.new_empty(len(rows), *part.shape[1:]) for part in parts]
                for tensor, part in zip(whole, parts, strict=True):
                    tensor[done : done + len(part)] = part
                done += len(parts[0])
        return whole

    def features(self, inputs: Tensor) -> Tensor:
        """Features by the current model in evaluation mode."""
        network = self.method.network.eval()
        with self.arithmetic(), torch.no_grad():
            parts = inputs.split(EVALUATION_ROWS)
            return torch.cat([network.extract(part.to(self.device)).float() for part in parts])

    # ---- the past and state ----------------------------------------------------------------------

    def forget(self, domain: str) -> None:
        """Delete what is kept of this domain; the weights stay as they are."""
        if self.memory is not None:
            self.memory.forget(domain)
        self.method.forget(domain)
        self.method.domains = [name for name in self.domains if name != domain]

    @property
    def mixes_domains(self) -> bool:
        """Whether the memory does."""
        return self.memory is not None and self.memory.mixes_domains

    def empty_memory(self) -> None:
        """Delete all rows of a memory that mixes domains."""
        if self.memory is not None and self.memory.mixes_domains:
            self.memory.clear()

    def kept_rows(self) -> dict[str, Fields]:
        """The rows in the memory."""
        return self.memory.kept() if self.memory is not None else {}

    def usage(self) -> Usage:
        """Effective settings, and what memory and method store."""
        return Usage(
            settings=self.method.settings.model_dump(),
            memory_items=self.memory.items if self.memory is not None else 0,
            memory_bytes=self.memory.bytes if self.memory is not None else 0,
            method_bytes=self.method.bytes,
            execution=self.way.execution,
            precision=self.way.precision,
        )

    def state_dict(self, *, inside_domain: bool = False) -> dict[str, Any]:
        """A snapshot, for saved models, resumed runs and, `inside_domain`, checkpoints."""
        return take_snapshot(self, inside_domain=inside_domain)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot, after a check of every part of it."""
        restore_snapshot(self, state)


def _resized(state: Any, sizes: Mapping[tuple[int, ...], torch.Size]) -> Any:
    """The same state, in which tensors of these sizes are filled up with zeros."""

    def resize(value: Tensor) -> Tensor:
        larger = sizes.get(tuple(value.shape))
        return value if larger is None else widened(value, value.new_zeros(larger))

    return mapped(state, resize)
