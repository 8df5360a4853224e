"""A-GEM: the projection's worked numbers and what it guarantees."""

from __future__ import annotations

import pytest
import torch
from attached import attached, gradients, replaying, small_network, trained, weights
from hypothesis import given
from hypothesis import strategies as st

from farshore.invariance.sign_agreement import remove_conflict
from farshore.tasks.classification import empirical_risk
from farshore.testing import differences


def project(g, reference):
    return remove_conflict(
        *(torch.tensor(v, dtype=torch.float64) for v in (g, reference)), "global", [1, len(g) - 1]
    )


def test_a_conflicting_gradient_loses_its_part_against_the_reference():
    projected = project([1.0, 2.0], [1.0, -1.0])
    assert torch.equal(projected, torch.tensor([1.5, 1.5], dtype=torch.float64))
    assert float(projected.square().sum()) == pytest.approx(4.5)


def test_an_agreeing_or_orthogonal_gradient_and_a_zero_reference_change_nothing():
    for reference in ([1.0, 1.0], [2.0, -1.0], [0.0, 0.0]):
        assert torch.equal(
            project([1.0, 2.0], reference), torch.tensor([1.0, 2.0], dtype=torch.float64)
        )


@given(st.integers(0, 10_000), st.sampled_from([1e-9, 1e-3, 1.0, 1e6]))
def test_projection_keeps_its_promises_whatever_the_length_of_the_reference(seed, length):
    g, reference = torch.randn(
        2, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    projected = project(g.tolist(), (length * reference).tolist())
    assert float(projected @ reference) >= -1e-9 * float(g.norm() * reference.norm())
    assert float(projected.norm()) <= float(g.norm()) * (1 + 1e-12)
    assert float(projected @ g) >= 0
    torch.testing.assert_close(
        projected, project(g.tolist(), reference.tolist()), rtol=1e-9, atol=1e-12
    )


def test_written_gradient_never_works_against_the_memory_and_conflicts_are_logged():
    seen = set()
    for seed in range(12):
        network = small_network(seed)
        batch = replaying(4, 6)
        risks = [
            empirical_risk(network(batch.inputs[part]), batch.labels[part])
            for part in (slice(0, 4), slice(4, None))
        ]
        current, reference = (
            torch.autograd.grad(risk, list(network.parameters())) for risk in risks
        )
        product = sum(float((a * b).sum()) for a, b in zip(current, reference, strict=True))
        method = attached("agem", network)
        terms = method.update(batch)
        written = gradients(network)
        kept = sum(float((a * b).sum()) for a, b in zip(written, reference, strict=True))
        assert kept >= -1e-12
        assert float(terms["conflict"]) == float(product < 0)
        assert torch.equal(terms["erm"], risks[0])
        if product >= 0:
            assert all(torch.equal(a, b) for a, b in zip(written, current, strict=True))
        seen.add(product < 0)
    assert seen == {True, False}


def test_the_first_domain_is_finetuning_and_the_second_is_not(blobs):
    assert (
        differences(
            weights(trained("agem", blobs, domains=1)),
            weights(trained("finetune", blobs, domains=1)),
        )
        == []
    )
    assert differences(weights(trained("agem", blobs)), weights(trained("finetune", blobs)))


def test_memory_holds_finished_domains_only_in_even_shares(blobs):
    memory = trained("agem", blobs).system.memory
    assert {name: len(part["labels"]) for name, part in memory.kept().items()} == {
        "0": 8,
        "1": 8,
        "2": 8,
    }
