"""One reservoir per class: even shares, even draws, bounded, and unchanged by saving."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from farshore.memory import ClassReservoirMemory


def rows(labels: Tensor, start: int = 0) -> dict[str, Tensor]:
    numbers = torch.arange(start, start + len(labels), dtype=torch.float32)
    return {"inputs": numbers[:, None], "labels": labels}


def filled(
    capacity: int = 9, offers: int = 40, classes: int = 3, rare: int = 20
) -> ClassReservoirMemory:
    """Class 0 occurs `rare` times less often than the others."""
    memory, generator = ClassReservoirMemory(capacity, classes), torch.Generator().manual_seed(0)
    for step in range(offers):
        labels = torch.randint(1, classes, (6,), generator=generator)
        if step % rare == 0:
            labels[0] = 0
        memory.observe(rows(labels, 6 * step), generator)
    return memory


@pytest.mark.parametrize("capacity", [3, 7, 9, 20])
def test_shares_are_even_and_bounded(capacity: int) -> None:
    memory = filled(capacity, offers=200, rare=2)
    held = torch.bincount(memory.contents()["labels"], minlength=3)
    assert int(held.max() - held.min()) <= 1
    assert memory.items == int(held.sum()) == capacity


def test_first_rows_stay_in_order_while_there_is_room() -> None:
    memory = ClassReservoirMemory(8, 2)
    memory.observe(rows(torch.tensor([1, 0, 1, 1])), torch.Generator())
    assert memory.contents()["inputs"][:, 0].tolist() == [1, 0, 2, 3]
    assert memory.items == 4


def test_draws_are_even_however_rare_a_class_is() -> None:
    memory, generator = filled(capacity=60, offers=100, rare=3), torch.Generator().manual_seed(1)
    counts = torch.stack(
        [torch.bincount(memory.draw(9, generator).labels, minlength=3) for _ in range(50)]
    )
    assert counts.unique().tolist() == [3]


def test_draws_are_different_rows_until_all_were_drawn() -> None:
    memory, generator = filled(capacity=9), torch.Generator().manual_seed(1)
    assert len(memory.draw(memory.items, generator).inputs.unique()) == memory.items
    more = memory.draw(2 * memory.items + 1, generator)
    counted = more.inputs.unique(return_counts=True)[1]
    assert set(counted.tolist()) == {2, 3}


def test_every_row_of_a_class_is_kept_with_the_same_chance() -> None:
    kept = torch.zeros(40)
    for seed in range(2000):
        memory, generator = ClassReservoirMemory(10, 2), torch.Generator().manual_seed(seed)
        for step in range(10):
            memory.observe(rows(torch.tensor([0, 0, 0, 0]), 4 * step), generator)
        kept[memory.contents()["inputs"][:, 0].long()] += 1
    assert float((kept / 2000 - 5 / 40).abs().max()) < 4.5 * (0.125 * 0.875 / 2000) ** 0.5


def test_more_classes_than_rows() -> None:
    memory, generator = filled(capacity=2, classes=5), torch.Generator().manual_seed(0)
    assert memory.items == 2
    assert len(memory.draw(7, generator).labels) == 7


def test_a_bound_in_bytes() -> None:
    memory = ClassReservoirMemory(100, 3, max_bytes=6 * 12)
    memory.observe(rows(torch.arange(60) % 3), torch.Generator())
    assert memory.items == 6
    assert memory.bytes == 72


def test_state() -> None:
    one, other = filled(), ClassReservoirMemory(9, 3)
    other.load_state_dict(one.state_dict(), torch.device("cpu"))
    for memory in (one, other):
        memory.observe(rows(torch.tensor([0, 1, 2, 2]), 1000), torch.Generator().manual_seed(5))
    assert torch.equal(one.contents()["inputs"], other.contents()["inputs"])
    drawn = [memory.draw(5, torch.Generator().manual_seed(6)).inputs for memory in (one, other)]
    assert torch.equal(*drawn)


def test_empty_state() -> None:
    memory = ClassReservoirMemory(9, 3)
    memory.load_state_dict(ClassReservoirMemory(9, 3).state_dict(), torch.device("cpu"))
    assert memory.items == 0
