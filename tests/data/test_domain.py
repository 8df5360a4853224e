"""Domains, splits, the seal, images and tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from farshore.data.domain import Domain, Rows
from farshore.data.images.images import rotate
from farshore.data.scenario import arrange
from farshore.data.seal import FrozenModel, SealedTarget, weights_checksum
from farshore.data.tables.table import TablePreprocessing
from farshore.errors import FarshoreError, SealedTargetError


@given(st.integers(2, 60), st.floats(0, 0.9), st.integers(0, 50))
def test_a_split_uses_every_row_once(rows: int, share: float, seed: int) -> None:
    domain = Domain.divided(
        "d", torch.zeros(rows, 1), torch.zeros(rows).long(), validation=share, seed=seed
    )
    assert sorted([*domain.train.tolist(), *domain.validation.tolist()]) == list(range(rows))
    assert len(domain.validation) == round(rows * share)


def test_a_split_depends_only_on_its_seed_and_takes_exact_counts() -> None:
    first, same, other = (
        Domain.divided("d", torch.zeros(50, 1), torch.zeros(50).long(), seed=seed)
        for seed in (1, 1, 2)
    )
    assert torch.equal(first.train, same.train)
    assert not torch.equal(first.train, other.train)
    assert (
        len(
            Domain.divided("d", torch.zeros(50, 1), torch.zeros(50).long(), validation=7).validation
        )
        == 7
    )


def test_memory_mapped_rows_are_taken_like_tensors(tmp_path) -> None:
    values = np.arange(24, dtype=np.uint8).reshape(6, 4)
    np.save(tmp_path / "x.npy", values)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    labels = torch.arange(6)
    for inputs in (mapped, torch.from_numpy(values)):
        rows = Rows(inputs, labels, torch.tensor([5, 0, 3]))
        x, y = rows.take(torch.tensor([2, 0]))
        assert x.tolist() == [[12, 13, 14, 15], [20, 21, 22, 23]]
        assert y.tolist() == [3, 5]


@given(st.integers(1, 40), st.integers(1, 15))
def test_batches_contain_every_row_once_and_differ_by_at_most_one(count: int, size: int) -> None:
    rows = Rows(torch.arange(count)[:, None], torch.arange(count), torch.arange(count))
    parts = [labels for _, labels in rows.batches(size)]
    assert torch.cat(parts).tolist() == list(range(count))
    lengths = [len(part) for part in parts]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1


def test_the_seal_opens_for_a_frozen_model_and_records_it() -> None:
    target = SealedTarget(
        "t", lambda: Domain.divided("t", torch.zeros(3, 1), torch.zeros(3).long())
    )
    model = nn.Linear(2, 2)
    frozen = FrozenModel(model)
    assert len(target.open(frozen)) == 3
    assert target.opened == [weights_checksum(model)]
    assert not any(parameter.requires_grad for parameter in model.parameters())
    with torch.no_grad():
        model.weight += 1
    with pytest.raises(SealedTargetError, match="changed after"):
        target.open(frozen)


def test_checksums_distinguish_weights() -> None:
    one, two = nn.Linear(2, 2), nn.Linear(2, 2)
    assert weights_checksum(one) != weights_checksum(two)
    two.load_state_dict(one.state_dict())
    assert weights_checksum(one) == weights_checksum(two)


def test_a_quarter_turn_is_counter_clockwise_and_exact() -> None:
    image = torch.zeros(1, 1, 5, 5, dtype=torch.uint8)
    image[0, 0, 0, 1] = 200  # top row, left of the middle
    turned = rotate(image, 90)
    assert torch.equal(turned[0, 0], torch.rot90(image[0, 0], 1))
    assert torch.equal(rotate(image, 360), image)


def test_rotation_equals_a_loop_over_pixels() -> None:
    """Bilinear, zero outside, against a slow implementation."""
    image = (
        torch.randint(0, 256, (7, 6), generator=torch.Generator().manual_seed(0))
        .numpy()
        .astype(float)
    )
    angle = np.deg2rad(30)
    expected = np.zeros((7, 6))
    for row in range(7):
        for column in range(6):
            y, x = row - 3, column - 2.5
            source_x, source_y = (
                x * np.cos(angle) - y * np.sin(angle) + 2.5,
                x * np.sin(angle) + y * np.cos(angle) + 3,
            )
            left, top = int(np.floor(source_x)), int(np.floor(source_y))
            for dy in (0, 1):
                for dx in (0, 1):
                    if 0 <= top + dy < 7 and 0 <= left + dx < 6:
                        weight = (1 - abs(source_y - top - dy)) * (1 - abs(source_x - left - dx))
                        expected[row, column] += weight * image[top + dy, left + dx]
    rotated = rotate(torch.from_numpy(image).to(torch.uint8)[None, None], 30)[0, 0].numpy()
    assert np.abs(rotated - expected.round()).max() <= 1


def test_the_order_of_sources() -> None:
    assert arrange(["a", "b", "c"], "b", None) == ["a", "c"]
    assert arrange(["a", "b", "c"], "b", ["c", "a"]) == ["c", "a"]
    for order, message in (
        (["b", "a"], "is the target"),
        (["a"], "every source once"),
        (["a", "a"], "every source once"),
        (["x"], "unknown"),
    ):
        with pytest.raises(FarshoreError, match=message):
            arrange(["a", "b", "c"], "b", order)


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {"age": [30, 40, None, 50], "blood": ["A", "B", None, "A"], "empty": [None] * 4}
    )


def test_preprocessing_is_learned_once_and_frozen() -> None:
    made = TablePreprocessing(["age", "empty"], {"blood": None}).learn(table())
    later = pd.DataFrame({"age": [1000.0, None], "blood": ["0", "B"], "empty": [5.0, 7.0]})
    before = made.transform(table())
    made.learn(later)
    features = dict(zip(made.features, made.transform(later).T.tolist(), strict=True))
    assert features["age"] == [10.0, 0.0]  # far outside: clipped; missing: the median
    assert features["age missing"] == [0, 1]
    assert features["blood = A"] == [0, 0]
    assert features["blood = B"] == [0, 1]
    assert features["blood = (other)"] == [1, 0]
    # The column that was empty in the first domain is scaled in the first domain with values.
    assert features["empty"] == pytest.approx([-1, 1])
    assert torch.equal(made.transform(table()), before)
    again = TablePreprocessing.from_state(made.state_dict())
    assert torch.equal(again.transform(later), made.transform(later))


def test_tables_are_refused_clearly() -> None:
    made = TablePreprocessing(["age"]).learn(table())
    with pytest.raises(FarshoreError, match="no column 'age'"):
        made.transform(table().drop(columns="age"))
    with pytest.raises(FarshoreError, match="column 'age', row 1: 'old' is not a number"):
        made.transform(pd.DataFrame({"age": ["3", "old"]}))
