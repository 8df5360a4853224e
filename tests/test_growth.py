"""With a shared replay budget the work of a step is independent of the number of past domains.

Operations are counted, not timed.
"""

from __future__ import annotations

import pytest
import torch
from taping import Tape, tensors

from farshore import Learner
from farshore.data.domain import Domain
from farshore.methods import METHODS
from farshore.training.batches import Rehearsal


def learned(method: str, domains: int) -> tuple[Learner, Domain]:
    """A learner of so many domains, and the next one."""
    fields = METHODS.get(method).Settings.model_fields
    early = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    settings = {"batch_size": 64, "replay_budget": "total", **early}
    learner = Learner("mlp", method, memory=400, settings=settings, network_settings={"width": 64})
    generator = torch.Generator().manual_seed(0)
    for domain in range(domains + 1):
        made = Domain.divided(
            str(domain), torch.randn(24, 6, generator=generator), torch.arange(24) % 3
        )
        if domain < domains:
            learner.learn_domain(made, steps=1, classes=[0, 1, 2])
    return learner, made


def written(tape: Tape) -> int:
    """How many numbers the operations write."""
    return sum(tensor.numel() for _, _, _, result in tape.operations for tensor in tensors(result))


def work(method: str, domains: int) -> tuple[int, int]:
    """Operations of one step, and how many numbers they write."""
    learner, made = learned(method, domains)
    trainer = learner.system
    trainer.method.before_domain("last")
    trainer.method.network.train()
    trainer.method.before_step(trainer.steps_done, 0)
    rehearsal = Rehearsal(trainer, "last", made.split("train"))
    trainer.step(rehearsal)  # what is summed once per domain is summed here
    tape = Tape()
    with tape:
        trainer.step(rehearsal)
    return len(tape.operations), written(tape)


@pytest.mark.parametrize(
    "method",
    [
        "er",
        "er-ace",
        "agem",
        "fdr",
        "cl-vrex",
        "cl-fishr",
        "cl-coral",
        "cl-mmd",
        "cl-andmask",
        "cl-mix",
        "er-kd",
        "naive-cl-coral",
        "naive-cl-andmask",
    ],
)
def test_a_step_after_many_domains_does_the_work_of_one_after_few(method: str) -> None:
    few, many = work(method, 4), work(method, 60)
    assert many[0] <= 1.1 * few[0]
    assert many[1] <= 1.2 * few[1]


@pytest.mark.parametrize(
    "method", ["er", "cl-coral", "cl-fishr", "naive-cl-coral", "naive-cl-andmask"]
)
def test_learning_a_domain_after_many_writes_as_much_as_after_few(method: str) -> None:
    counts = []
    for domains in (20, 60):  # the room for priors doubles at other numbers
        learner, made = learned(method, domains)
        tape = Tape()
        with tape:
            learner.learn_domain(made, steps=2)
        counts.append(written(tape))
    assert counts[1] <= 1.2 * counts[0]
