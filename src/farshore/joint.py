"""JointLearner: all domains at hand at once. No continual learner can do this; it makes upper
bounds and source models.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from .batch import Batch
from .data.domain import Domain, Rows
from .data.seal import training
from .errors import FarshoreError
from .learner import FINITE_CHECK_STEPS, Learner
from .methods.method import Terms, balanced_weights
from .optimization import check_finite

ALL_SOURCES = "all sources"


class JointLearner(Learner):
    """A learner that sees one minibatch of `batch_size` rows of every domain in each step
    (DomainBed's convention).
    """

    def learn_jointly(self, domains: Sequence[Domain], *, steps: int) -> None:
        """Learn all domains together. `steps` counts per domain, so that k domains get k x
        steps, as if they came in turn.
        """
        if self.domains or not domains:
            raise FarshoreError("learn_jointly takes all domains in one call, and only once")
        for domain in domains:
            self._check(domain, steps)
            if self.shape is None:
                row, _ = domain.split("train").take(torch.zeros(1, dtype=torch.long))
                self._begin(tuple(row.shape[1:]), row.dtype, self.classes or [])
        with training(ALL_SOURCES):
            self._train_jointly(
                [domain.split("train").to(self.device) for domain in domains],
                self.joint_steps(steps, len(domains)),
            )
        self.method.domains += [domain.name for domain in domains]
        self.domains += [
            {"name": domain.name, "rows": len(domain), "steps": steps} for domain in domains
        ]

    def joint_steps(self, steps: int, domains: int) -> int:
        """How many steps are made in all; an offline method may have a setting for it."""
        return (
            steps
            if getattr(self.method.settings, "joint_steps", "per-domain") == "total"
            else steps * domains
        )

    def _train_jointly(self, sources: Sequence[Rows], steps: int) -> None:
        if self.run.class_weight == "balanced":
            labels = torch.cat([rows.labels[rows.index] for rows in sources])
            self.method.class_weight = balanced_weights(labels, len(self._known_classes()))
        self.observer.start(ALL_SOURCES, steps)
        began = time.perf_counter()
        self.choose_way(steps, sources)
        with self.arithmetic(), self.steps(lambda: self._joint_step(sources)) as carry_out:
            for step in range(steps):
                self.method.before_step(step, step)
                terms = carry_out()
                self.steps_done += 1
                self.observer.step(ALL_SOURCES, step, terms)
                if step % FINITE_CHECK_STEPS == FINITE_CHECK_STEPS - 1 or step == steps - 1:
                    check_finite(self.method.network, ALL_SOURCES, step)
        self.seconds = {"steps": time.perf_counter() - began, "closing": 0.0}

    def _joint_step(self, sources: Sequence[Rows]) -> Terms:
        batch = self._joint_batch(sources)
        terms = self.method.update(batch)
        self.method.after_step(batch)
        return terms

    def _joint_batch(self, sources: Sequence[Rows]) -> Batch:
        """Rows of every domain, uniform with replacement, as one flat batch."""
        size = self.method.settings.batch_size
        drawn = [
            rows.take(
                torch.randint(
                    len(rows), (size,), generator=self.generators.data, device=self.device
                )
            )
            for rows in sources
        ]
        inputs = torch.cat([x.to(self.device) for x, _ in drawn])
        return Batch(inputs, torch.cat([y for _, y in drawn]), rows=len(inputs))
