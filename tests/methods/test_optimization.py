"""Optimisers without what PyTorch wraps around them: the same numbers, and no compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW

from farshore.methods.optimization import plain

# Learns two domains, saves, opens, predicts and learns on; prints which modules that has imported.
PROGRAM = """
import sys, torch, farshore
from farshore.data.domain import Domain
inputs, labels = torch.randn(40, 3), torch.arange(40) % 2
one, two, three = (Domain.divided(name, inputs, labels) for name in "abc")
for method in ("cl-coral", "upgd"):
    learner = farshore.Learner("mlp", method, memory=20, network_settings={"width": 4})
    for domain in (one, two):
        learner.learn_domain(domain, steps=2, classes=[0, 1])
    learner.save(f"{sys.argv[1]}/{method}")
    opened = farshore.load(f"{sys.argv[1]}/{method}")
    opened.predict(inputs.numpy())
    opened.learn_domain(three, steps=2)
print("torch" in sys.modules, "torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(Adam, {}), (AdamW, {"weight_decay": 0.1}), (SGD, {"momentum": 0.9, "lr": 0.01})],
)
def test_a_plain_optimiser_has_the_numbers_and_the_state_of_pytorchs(kind, settings) -> None:
    def steps(make: type[torch.optim.Optimizer]) -> tuple[list, list]:
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))]
        optimizer = make(parameters, fused=True, **settings)
        values = []
        for step in range(6):
            if step == 3:  # a new one continues from the state
                state = optimizer.state_dict()
                optimizer = make(parameters, fused=True, **settings)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            assert all(parameter.grad is None for parameter in parameters)
            sum((parameter**3).sum() for parameter in parameters).backward()
            optimizer.step()
            values += [parameter.detach().clone() for parameter in parameters]
        assert isinstance(optimizer, kind)
        saved = optimizer.state_dict()
        moments = [saved["state"][index] for index in sorted(saved["state"])]
        return values + [v for each in moments for v in each.values()], saved["param_groups"]

    (found, groups), (expected, others) = steps(plain(kind)), steps(kind)
    assert groups == others
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_learning_and_predicting_import_no_compiler(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
