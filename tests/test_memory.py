"""The memory's bounds, even shares, randomness and state."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from farshore.errors import FarshoreError
from farshore.memory import PartitionedMemory, ReservoirMemory
from farshore.memory.memory import positions, row_bytes, share
from farshore.memory.partitions import balanced_order


def rows(count: int, offset: int = 0) -> dict[str, torch.Tensor]:
    number = torch.arange(offset, offset + count)
    return {
        "inputs": number.to(torch.uint8)[:, None].expand(count, 3).clone(),
        "labels": number,
        "logits": number[:, None].float(),
    }


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 60), st.lists(st.integers(1, 80), min_size=1, max_size=8))
def test_partitions_share_the_capacity_evenly_and_never_exceed_it(
    capacity: int, sizes: list[int]
) -> None:
    memory = PartitionedMemory(capacity)
    for number, size in enumerate(sizes[:capacity]):
        memory.add(f"d{number}", rows(size))
        held = [len(fields["labels"]) for fields in memory.kept().values()]
        shares = [share(capacity, number + 1, place) for place in range(number + 1)]
        assert sum(shares) == capacity
        assert max(shares) - min(shares) <= 1
        assert all(kept <= allowed for kept, allowed in zip(held, shares, strict=True))
        # A domain with enough rows fills its share.
        assert all(
            kept == allowed
            for kept, allowed, size in zip(held, shares, sizes, strict=False)
            if size >= capacity
        )
        assert memory.items == sum(held) <= capacity
        assert memory.bytes == memory.items * row_bytes(rows(1))


@given(st.integers(1, 500), st.integers(1, 20), st.integers(0, 19))
def test_shares_never_grow_when_a_domain_comes(capacity: int, domains: int, place: int) -> None:
    if place < domains:
        assert share(capacity, domains + 1, place) <= share(capacity, domains, place)


@given(st.integers(15, 400), st.integers(1, 6))
def test_bound_in_bytes_holds(max_bytes: int, domains: int) -> None:
    memory = PartitionedMemory(1000, max_bytes=max_bytes)
    one = row_bytes(rows(1))
    for number in range(domains):
        if max_bytes // one < number + 1:
            with pytest.raises(FarshoreError, match="memory_bytes"):
                memory.add(f"d{number}", rows(50))
            return
        memory.add(f"d{number}", rows(50))
        assert memory.bytes <= max_bytes


def test_images_stay_uint8() -> None:
    memory = PartitionedMemory(10)
    memory.add("a", rows(20))
    assert memory.kept()["a"]["inputs"].dtype == torch.uint8
    assert row_bytes(rows(1)) == 3 + 8 + 4


def test_more_domains_than_rows_is_refused() -> None:
    memory = PartitionedMemory(2)
    memory.add("a", rows(3))
    memory.add("b", rows(3))
    with pytest.raises(FarshoreError, match="smaller than the number of domains"):
        memory.add("c", rows(3))
    assert list(memory.kept()) == ["a", "b"]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 5))
def test_every_prefix_of_a_balanced_order_is_balanced(labels: list[int], seed: int) -> None:
    tensor = torch.tensor(labels)
    order = balanced_order(tensor, generator(seed))
    assert sorted(order.tolist()) == list(range(len(labels)))
    counts = {label: labels.count(label) for label in labels}
    for length in range(1, len(labels) + 1):
        seen = tensor[order[:length]].tolist()
        for a in counts:
            for b in counts:
                # A class may lead another by more than one only if the other is used up.
                assert seen.count(a) - seen.count(b) <= 1 or seen.count(b) == counts[b]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 15), st.integers(0, 3))
def test_draws_are_in_range_and_distinct_where_possible(
    sizes: list[int], count: int, seed: int
) -> None:
    index = positions(torch.tensor(sizes), count, generator(seed), max(sizes))
    assert index.shape == (len(sizes), count)
    for size, chosen in zip(sizes, index.tolist(), strict=True):
        assert all(0 <= place < size for place in chosen)
        assert len(set(chosen)) == count or size < count


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 15))
def test_a_draw_is_the_same_if_the_smallest_size_is_known(sizes: list[int], count: int) -> None:
    drawn = (
        positions(torch.tensor(sizes), count, generator(0), max(sizes), least)
        for least in (0, min(sizes))
    )
    assert torch.equal(*drawn)


def test_draws_are_uniform() -> None:
    index = torch.cat([positions(torch.tensor([6]), 2, generator(seed), 6) for seed in range(1500)])
    counts = torch.bincount(index.flatten(), minlength=6).double()
    assert float((counts - 500).abs().max()) < 5 * 500**0.5


def test_one_row_is_the_first_of_what_a_longer_draw_takes() -> None:
    sizes = torch.tensor([6, 2, 9])
    for seed in range(20):
        assert torch.equal(
            positions(sizes, 1, generator(seed), 9), positions(sizes, 2, generator(seed), 9)[:, :1]
        )


def test_a_draw_takes_each_domains_own_rows_and_what_was_stored_beside_them() -> None:
    memory = PartitionedMemory(20)
    memory.add("a", rows(10))
    memory.add("b", rows(10, offset=100))
    draw = memory.draw(4, generator())
    assert draw.domains.tolist() == [0, 1]
    assert draw.labels.shape == (2, 4)
    assert bool((draw.labels[0] < 100).all())
    assert bool((draw.labels[1] >= 100).all())
    assert torch.equal(draw.stored["logits"][..., 0], draw.labels.float())


def test_a_subset_of_domains_is_drawn_when_asked_for() -> None:
    memory = PartitionedMemory(20)
    for number in range(5):
        memory.add(f"d{number}", rows(10, offset=10 * number))
    seen = set()
    for seed in range(40):
        draw = memory.draw(2, generator(seed), domains=2)
        assert draw.labels.shape == (2, 2)
        assert (draw.labels // 10).tolist() == [[number] * 2 for number in draw.domains.tolist()]
        seen |= set(draw.domains.tolist())
    assert seen == {0, 1, 2, 3, 4}


@given(st.integers(1, 12), st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(0, 3))
def test_reservoir_is_bounded_and_contains_only_offered_rows(
    capacity: int, batches: list[int], seed: int
) -> None:
    memory, draw = ReservoirMemory(capacity), generator(seed)
    offered = 0
    for size in batches:
        memory.observe(rows(size, offset=offered), draw)
        offered += size
        held = memory.contents()["labels"].tolist()
        assert len(held) == memory.items == min(offered, capacity)
        assert len(set(held)) == len(held)
        assert all(0 <= row < offered for row in held)
        if offered <= capacity:
            assert held == list(range(offered))
    assert memory.seen == offered


def test_reservoir_keeps_every_row_with_the_same_probability() -> None:
    trials, offered, capacity = 1200, 40, 10
    counts = torch.zeros(offered)
    for seed in range(trials):
        memory, draw = ReservoirMemory(capacity), generator(seed)
        for start in range(0, offered, 8):
            memory.observe(rows(8, offset=start), draw)
        counts[memory.contents()["labels"]] += 1
    expected = trials * capacity / offered
    spread = (expected * (1 - capacity / offered)) ** 0.5
    assert float((counts - expected).abs().max()) < 4.5 * spread


def test_reservoir_equals_one_row_at_a_time() -> None:
    """The batched form against Vitter's loop over rows, with the same draws."""
    memory, draw = ReservoirMemory(5), generator(3)
    slots: list[int] = []
    check = generator(3)
    seen = 0
    for size in (3, 4, 6, 2):
        memory.observe(rows(size, offset=seen), draw)
        drawn = torch.rand(size, generator=check, dtype=torch.float64)
        for row in range(size):
            n = seen + row
            if n < 5:
                slots.append(n)
            else:
                j = int(float(drawn[row]) * (n + 1))
                if j < 5:
                    slots[j] = n
        seen += size
    assert memory.contents()["labels"].tolist() == slots


def test_state_round_trips_with_the_count_of_offered_rows() -> None:
    memory, draw = ReservoirMemory(5), generator()
    memory.observe(rows(9), draw)
    other = ReservoirMemory(5)
    other.load_state_dict(memory.state_dict(), torch.device("cpu"))
    assert other.seen == 9
    assert torch.equal(other.contents()["labels"], memory.contents()["labels"])


def test_a_capacity_below_one_is_refused() -> None:
    with pytest.raises(FarshoreError, match="at least 1 row"):
        PartitionedMemory(0)


def test_forgetting_removes_a_partition() -> None:
    memory = PartitionedMemory(8)
    memory.add("a", rows(9))
    memory.add("b", rows(9))
    memory.forget("a")
    assert list(memory.kept()) == ["b"]
    assert memory.items == 4
