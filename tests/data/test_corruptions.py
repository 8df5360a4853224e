from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from corrupting import photographs, pictures

from farshore.data.corruptions.blur import disk
from farshore.data.corruptions.corrupt import (
    CONSTANTS,
    CORRUPTIONS,
    SEVERITIES,
    check_severity,
    corrupt,
    read_photographs,
)
from farshore.data.corruptions.draws import Draws
from farshore.data.corruptions.sampling import bilinear, gaussian, line_blur, zoomed
from farshore.data.corruptions.weather import plasma
from farshore.errors import FarshoreError

ALL = sorted(CORRUPTIONS)


@pytest.fixture(scope="module")
def frost() -> dict[int, list[np.ndarray]]:
    return {size: photographs(size) for size in (32, 64)}


def damage(images: np.ndarray, changed: np.ndarray) -> float:
    return float(np.abs(changed.astype(float) - images).mean())


@pytest.mark.parametrize("size", [32, 64])
@pytest.mark.parametrize("name", ALL)
def test_the_same_bytes_in_any_batch(name: str, size: int, frost: dict) -> None:
    images = pictures(size)
    by_severity = {s: corrupt(images, name, s, seed=3, photographs=frost[size]) for s in SEVERITIES}
    assert all(
        array.dtype == np.uint8 and array.shape == images.shape for array in by_severity.values()
    )
    again = corrupt(
        images[5:12], name, 5, seed=3, numbers=range(5, 12), photographs=frost[size], batch=3
    )
    assert np.array_equal(again, by_severity[5][5:12])
    assert min(damage(images, array) for array in by_severity.values()) > 0.1


@pytest.mark.parametrize(
    "name",
    [
        "gaussian_noise",
        "snow",
        "fog",
        "elastic_transform",
        "spatter",
        "glass_blur",
        "motion_blur",
        "frost",
    ],
)
def test_another_seed_or_number_gives_other_draws(name: str, frost: dict) -> None:
    images = pictures(32, rows=2)
    first = corrupt(images, name, 5, seed=0, photographs=frost[32])
    assert not np.array_equal(first, corrupt(images, name, 5, seed=1, photographs=frost[32]))
    assert not np.array_equal(
        first, corrupt(images, name, 5, seed=0, numbers=[5, 6], photographs=frost[32])
    )


def test_noises_have_their_formulas() -> None:
    flat = np.full((200, 3, 32, 32), 128, np.uint8)
    for severity in SEVERITIES:
        deviation = CONSTANTS[32]["gaussian_noise"][severity - 1]
        changed = corrupt(flat, "gaussian_noise", severity, seed=0) / 255
        assert changed.std() == pytest.approx(deviation, rel=0.02)
        assert changed.mean() == pytest.approx(
            127.5 / 255, abs=0.002
        )  # truncated to bytes, not rounded
        shot = corrupt(flat, "shot_noise", severity, seed=0) / 255
        assert shot.std() == pytest.approx(
            np.sqrt(128 / 255 / CONSTANTS[32]["shot_noise"][severity - 1]), rel=0.03
        )
        speckle = corrupt(flat, "speckle_noise", severity, seed=0) / 255
        assert speckle.std() == pytest.approx(
            128 / 255 * CONSTANTS[32]["speckle_noise"][severity - 1], rel=0.02
        )
        impulse = corrupt(flat, "impulse_noise", severity, seed=0)
        amount = CONSTANTS[32]["impulse_noise"][severity - 1]
        assert (impulse == 0).mean() == pytest.approx(amount / 2, rel=0.1)
        assert (impulse == 255).mean() == pytest.approx(amount / 2, rel=0.1)


def test_light_has_its_formulas() -> None:
    import colorsys

    images = pictures(32, rows=2)
    for name in ("brightness", "saturate"):
        changed = corrupt(images, name, 5, seed=0)
        for row, column in ((3, 4), (16, 16), (20, 9)):
            hue, saturation, value = colorsys.rgb_to_hsv(*(images[0, :, row, column] / 255))
            if name == "brightness":
                value = min(1.0, value + 0.3)
            else:
                saturation = min(1.0, 2.5 * saturation + 0.2)
            expected = np.floor(np.array(colorsys.hsv_to_rgb(hue, saturation, value)) * 255 + 1e-6)
            assert np.array_equal(changed[0, :, row, column], expected)
    plain = images / 255
    means = plain.mean(axis=(2, 3), keepdims=True)
    expected = np.floor(((plain - means) * 0.15 + means) * 255 + 1e-6).astype(np.uint8)
    assert np.array_equal(corrupt(images, "contrast", 5, seed=0), expected)
    grey = np.full((1, 3, 32, 32), 100, np.uint8)
    reddened = corrupt(grey, "saturate", 5, seed=0)[0, :, 0, 0]
    assert reddened.tolist() == [100, 80, 80]  # shift .2, hue of red
    assert corrupt(grey * 0, "brightness", 5, seed=0)[0, :, 0, 0].tolist() == [76, 76, 76]


def test_blurs_have_their_formulas() -> None:
    point = np.zeros((1, 1, 21, 21))
    point[0, 0, 10, 10] = 1
    blurred = gaussian(point, 1.0)[0, 0]
    weights = np.exp(-(np.arange(-4, 5) ** 2) / 2)
    weights /= weights.sum()
    assert blurred[6:15, 6:15] == pytest.approx(np.outer(weights, weights))
    assert disk(1.5, 0.1).sum() == pytest.approx(1)
    assert (disk(1.5, 0.1) > 1e-9).sum() == 9
    assert (disk(1, 0.2) > 1e-3).sum() == 5
    # A horizontal line: each pixel averages to its right, so the point smears to the left.
    smeared = line_blur(point, 6, 1.0, np.array([0.0]))[0, 0]
    side = np.exp(-(np.arange(13) ** 2) / 2)
    assert smeared[10, 10::-1] == pytest.approx((side / side.sum())[:11])
    assert smeared[10, 11:].sum() == 0
    flat = np.full((1, 3, 32, 32), 0.25)
    assert zoomed(flat, 1.17) == pytest.approx(flat)
    ramp = np.broadcast_to(np.arange(32.0), (1, 1, 32, 32))
    assert zoomed(ramp, 1.0) == pytest.approx(ramp)
    assert zoomed(ramp, 1.25)[0, 0, 0] == pytest.approx(
        np.linspace(3, 28, 32)
    )  # 26 pixels of the middle over 32


def test_glass_copies_neighbours_and_zoom_keeps_flat_images() -> None:
    images = pictures(32, rows=2)
    changed = corrupt(images, "glass_blur", 1, seed=0)  # sigma .05: no blur, only shuffled pixels
    for image, moved in zip(images, changed, strict=True):
        known = {tuple(pixel) for pixel in image.reshape(3, -1).T.tolist()}
        assert {tuple(pixel) for pixel in moved.reshape(3, -1).T.tolist()} <= known
    assert np.array_equal(
        changed[..., :2, :], images[..., :2, :]
    )  # the first rows are not shuffled
    flat = np.full((1, 3, 32, 32), 90, np.uint8)
    for name in (
        "zoom_blur",
        "gaussian_blur",
        "defocus_blur",
        "motion_blur",
        "glass_blur",
        "elastic_transform",
        "pixelate",
        "contrast",
    ):
        assert np.abs(corrupt(flat, name, 5, seed=0).astype(int) - 90).max() <= 1, name


def test_fog_maps_and_resampling() -> None:
    maps = plasma(32, 2.0, Draws(0, range(3)))
    assert maps.min(axis=(1, 2)).tolist() == [0, 0, 0]
    assert maps.max(axis=(1, 2)).tolist() == [1, 1, 1]
    smooth, rough = (
        np.abs(np.diff(plasma(32, decay, Draws(0, range(20))), axis=1)).mean()
        for decay in (3.0, 1.75)
    )
    assert smooth < rough
    rows, columns = np.mgrid[:8, :8].astype(float)
    images = np.random.default_rng(0).uniform(size=(2, 3, 8, 8))
    positions = [np.broadcast_to(grid, (2, 8, 8)) for grid in (rows, columns)]
    assert np.array_equal(bilinear(images, *positions, border="mirror"), images)
    left = bilinear(images, positions[0], positions[1] - 1, border="mirror")
    assert np.array_equal(left[..., 0], images[..., 1])
    assert np.array_equal(
        bilinear(images, positions[0], positions[1] - 1, border="reflect")[..., 0], images[..., 0]
    )


def test_invalid_arguments_are_refused() -> None:
    images = pictures(32, rows=1)
    with pytest.raises(FarshoreError, match="severity = 6"):
        check_severity(6)
    with pytest.raises(FarshoreError, match="rain"):
        corrupt(images, "rain", 1, seed=0)
    with pytest.raises(FarshoreError, match="photographs"):
        corrupt(images, "frost", 1, seed=0)
    with pytest.raises(FarshoreError, match="cannot be corrupted"):
        corrupt(images[..., :30, :30], "fog", 1, seed=0)


def test_the_real_photographs() -> None:
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("FARSHORE_SHARED", default)) / "frost"
    if not folder.is_dir():
        pytest.skip(
            "the frost photographs are not available: set FARSHORE_SHARED to the folder that "
            "contains frost/"
        )
    for size in (32, 64):
        real = read_photographs(folder, size)
        assert len(real) == 5
        for photograph in real:
            assert photograph.shape[0] == 3
            assert min(photograph.shape[1:]) > size
            assert 0 <= photograph.min() < photograph.max() <= 1
        changed = corrupt(pictures(size), "frost", 5, seed=0, photographs=real)
        assert damage(pictures(size), changed) > 5
