"""Augmentations: label-keeping, in range, one draw a batch."""

from __future__ import annotations

import colorsys

import pytest
import torch

from farshore.adaptation.augmentation import (
    augment,
    blur,
    grey,
    in_unit_range,
    jitter_columns,
    move,
    quarter_turns,
    shift,
    turn_hue,
)


def images(count: int = 4, channels: int = 3, height: int = 8, width: int = 8) -> torch.Tensor:
    return torch.rand(count, channels, height, width, generator=torch.Generator().manual_seed(1))


class Fixed:
    """Draws that were decided before."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def between(self, low: float, high: float) -> float:
        value = self.values.pop(0)
        assert low <= value <= high
        return value


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("flips", [False, True])
def test_the_chain_keeps_form_and_range_and_depends_on_its_generator_alone(
    channels: int, flips: bool
) -> None:
    x = images(channels=channels, height=8, width=10)
    first, same, other = (
        augment(x, torch.Generator().manual_seed(seed), flips=flips) for seed in (0, 0, 1)
    )
    assert first.shape == x.shape
    assert float(first.min()) >= 0
    assert float(first.max()) <= 1
    assert torch.equal(first, same)
    assert not torch.allclose(first, other, atol=0.05)


def test_all_images_of_a_call_share_the_draw_but_for_the_noise() -> None:
    x = images(1).expand(6, -1, -1, -1)
    made = augment(x, torch.Generator().manual_seed(0), flips=True)
    assert 0 < float((made - made[:1]).abs().max()) < 0.06  # noise of .005 each


def test_without_flips_left_stays_left() -> None:
    x = torch.zeros(1, 1, 16, 16)
    x[..., :6] = 0.8
    for seed in range(30):
        made = augment(x, torch.Generator().manual_seed(seed), flips=False)
        assert float(made[..., :8].mean()) > float(made[..., 8:].mean())
    mirrored = [augment(x, torch.Generator().manual_seed(seed), flips=True) for seed in range(30)]
    share = sum(float(made[..., :8].mean()) < float(made[..., 8:].mean()) for made in mirrored) / 30
    assert 0.2 < share < 0.8


def test_hue_turns_as_in_colorsys() -> None:
    x = images(2, 3, 3, 3)
    x[0, :, 0, 0] = 0.4  # grey has no hue
    for turn in (-0.06, 0.0, 0.05, 0.3):
        made = turn_hue(x, turn)
        for n in range(2):
            for i in range(3):
                for j in range(3):
                    h, s, v = colorsys.rgb_to_hsv(*x[n, :, i, j].tolist())
                    assert made[n, :, i, j].tolist() == pytest.approx(
                        colorsys.hsv_to_rgb((h + turn) % 1, s, v), abs=1e-5
                    )


def test_grey_is_luminance() -> None:
    assert grey(torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1)).item() == pytest.approx(0.299)
    assert torch.equal(grey(images(channels=1)), images(channels=1))


def test_moving_by_nothing_changes_nothing_and_shifts_are_in_parts_of_the_side() -> None:
    x = images(height=16, width=16)
    torch.testing.assert_close(move(x, Fixed(0, 1, 0, 0)), x, rtol=1e-4, atol=1e-5)
    moved = move(
        x, Fixed(0, 1, 1 / 16, 0)
    )  # one pixel of sixteen: each place shows its right neighbour
    torch.testing.assert_close(moved[..., :-1], x[..., 1:], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        moved[..., -1], x[..., -1], rtol=1e-4, atol=1e-5
    )  # the edge is repeated
    farthest = move(x, Fixed(0, 1, 0, 1 / 8))  # 1/16 of twice the side, as in the authors' code
    torch.testing.assert_close(farthest[..., :-2, :], x[..., 2:, :], rtol=1e-4, atol=1e-5)
    uneven = images(height=8, width=16)
    assert move(uneven, Fixed(15, 1.1, 0, 0)).shape == uneven.shape


def test_turning_by_a_small_angle_keeps_a_ring_even_where_sides_differ() -> None:
    row, column = torch.meshgrid(torch.arange(32) - 15.5, torch.arange(48) - 23.5, indexing="ij")
    ring = torch.exp(-(((row**2 + column**2).sqrt() - 8) ** 2) / 8)[None, None]
    torch.testing.assert_close(move(ring, Fixed(15, 1, 0, 0)), ring, rtol=0, atol=0.05)


def test_blur() -> None:
    x = images()
    torch.testing.assert_close(blur(x, sigma=0.001), x)
    point = torch.zeros(1, 1, 9, 9)
    point[0, 0, 4, 4] = 1
    made = blur(point, sigma=0.5)[0, 0]
    assert float(made.sum()) == pytest.approx(1, abs=1e-5)
    assert float(made[4, 5] / made[4, 4]) == pytest.approx(
        float(torch.exp(torch.tensor(-2.0))), abs=1e-5
    )
    torch.testing.assert_close(
        blur(torch.full((1, 2, 5, 5), 0.3), sigma=0.5), torch.full((1, 2, 5, 5), 0.3)
    )


def test_shifts_move_each_image_by_itself_by_a_pixel_at_most_where_they_are_small() -> None:
    x = images(60, 1)
    made = shift(x, torch.Generator().manual_seed(0), flips=False)
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate")
    found = set()
    for before, after in zip(padded, made, strict=True):
        places = [
            (i, j)
            for i in range(3)
            for j in range(3)
            if torch.equal(before[:, i : i + 8, j : j + 8], after)
        ]
        assert places
        found.update(places)
    assert len(found) == 9
    mirrored = shift(x, torch.Generator().manual_seed(0), flips=True)
    assert 10 < sum(torch.equal(a, b) for a, b in zip(made, mirrored, strict=True)) < 50


def test_quarter_turns_are_each_images_own() -> None:
    x = images(4)
    made = quarter_turns(x, torch.tensor([0, 1, 2, 3]))
    for turn in range(4):
        assert torch.equal(made[turn], torch.rot90(x[turn], turn, dims=(1, 2)))


def test_noise_on_tables_is_measured_by_each_column() -> None:
    rows = torch.randn(4000, 3, generator=torch.Generator().manual_seed(2))
    rows *= torch.tensor([0.0, 1.0, 50.0])
    change = jitter_columns(rows, 0.1, torch.Generator().manual_seed(0)) - rows
    assert change.std(dim=0).tolist() == pytest.approx([0.0, 0.1, 5.0], rel=0.05)
    assert torch.equal(jitter_columns(rows[:1], 0.1, torch.Generator()), rows[:1])


def test_what_may_be_clipped() -> None:
    assert in_unit_range(images())
    assert in_unit_range((images() * 255).to(torch.uint8))
    assert not in_unit_range(images() - 0.5)
    assert not in_unit_range(torch.rand(4, 3))
