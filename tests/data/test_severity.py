"""Damage grows with severity, as far as the published constants let it; where they do not, what
they do let grow.

All severities get the same draws here, so that nothing but the constants differs.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from corrupting import photographs, pictures

from farshore.data.corruptions.blur import glass_blur
from farshore.data.corruptions.corrupt import CONSTANTS, CORRUPTIONS, SEVERITIES
from farshore.data.corruptions.digital import elastic_transform
from farshore.data.corruptions.draws import Draws

STEPS = list(itertools.pairwise(SEVERITIES))
# Steps at which the mean change of a pixel does not grow, with the published constants.
# elastic_transform: the random affine map, which moves pixels furthest, gets weaker while the local
# warping gets stronger. frost: the image is dimmed at the same time as the photograph brightens it.
# glass_blur: the blur after the shuffling undoes a part of the shuffling. saturate:
# colours are removed at severities 1 and 2 and strengthened from 3 on. spatter: pale water at
# severities 1 to 3, small drops of mud from 4 on.
NOT_GROWING = {
    32: {
        "elastic_transform": STEPS,
        "frost": [(3, 4), (4, 5)],
        "glass_blur": [(2, 3), (4, 5)],
        "saturate": [(2, 3)],
        "spatter": [(3, 4)],
    },
    64: {
        "elastic_transform": STEPS,
        "frost": [(2, 3)],
        "glass_blur": [(1, 2), (3, 4)],
        "saturate": [(2, 3)],
        "spatter": [(3, 4)],
    },
}
SIZE = pytest.mark.parametrize("size", [32, 64])


def corrupted(name: str, size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the images as floats, and their corrupted versions by severity."""
    images = pictures(size) / 255
    extra = {"photographs": photographs(size)} if name == "frost" else {}
    rows = range(len(images))
    return images, [
        CORRUPTIONS[name](images, constants, Draws(5, rows), **extra).clip(0, 1)
        for constants in CONSTANTS[size][name]
    ]


@SIZE
@pytest.mark.parametrize("name", sorted(CORRUPTIONS))
def test_the_mean_change_of_a_pixel_grows(name: str, size: int) -> None:
    images, versions = corrupted(name, size)
    damage = [np.abs(version - images).mean() for version in versions]
    assert [step for step in STEPS if not damage[step[0] - 1] < damage[step[1] - 1]] == NOT_GROWING[
        size
    ].get(name, [])
    if name != "elastic_transform":
        assert damage[0] < damage[4]


@SIZE
def test_frost_leaves_less_and_less_of_the_image(size: int) -> None:
    """The photograph's relative weight grows, so the result agrees less with the image."""
    assert all(
        before[1] / before[0] < after[1] / after[0]
        for before, after in itertools.pairwise(CONSTANTS[size]["frost"])
    )
    images, versions = corrupted("frost", size)
    agreement = [
        np.mean(
            [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(images, version, strict=True)]
        )
        for version in versions
    ]
    assert all(after < before for before, after in itertools.pairwise(agreement))


def ramps(size: int, rows: int = 30) -> np.ndarray:
    """Return images with the position of each pixel as channels: row, column, zero."""
    row, column = np.mgrid[:size, :size] / size
    return np.broadcast_to(np.stack([row, column, 0 * row]), (rows, 3, size, size))


@SIZE
def test_elastic_transform_warps_more_and_more_while_its_affine_map_gets_weaker(size: int) -> None:
    positions = ramps(size)
    inner = slice(size // 4, -size // 4)  # away from the borders, where the image is mirrored
    basis = np.stack(
        [
            positions[0, 0, inner, inner].ravel(),
            positions[0, 1, inner, inner].ravel(),
            np.ones((size // 2) ** 2),
        ],
        axis=1,
    )
    warped = []
    for constants in CONSTANTS[size]["elastic_transform"]:
        moved = (
            size
            * (
                elastic_transform(positions, constants, Draws(5, range(len(positions)))) - positions
            )[:, :2, inner, inner]
        )
        flat = moved.reshape(-1, len(basis))
        affine = np.linalg.lstsq(basis, flat.T, rcond=None)[0]
        warped.append(np.sqrt(np.square(flat - (basis @ affine).T).mean()))
    assert warped[0] == pytest.approx(0, abs=1e-9)  # severity 1 is only the affine map
    assert all(before < after for before, after in itertools.pairwise(warped))
    jitter = [constants[2] for constants in CONSTANTS[size]["elastic_transform"]]
    assert jitter == sorted(jitter, reverse=True)


@SIZE
def test_glass_blur_moves_pixels_as_far_or_farther(size: int) -> None:
    positions = ramps(size)
    moved = []
    for _, shift, rounds in CONSTANTS[size]["glass_blur"]:
        # A sigma this small does not blur: the result shows where each pixel came from.
        shuffled = glass_blur(positions, (0.05, shift, rounds), Draws(5, range(len(positions))))
        moved.append(np.sqrt(np.square(shuffled - positions).sum(axis=1)).mean())
    assert all(before <= after for before, after in itertools.pairwise(moved))
    assert moved[0] < moved[4]


def test_glass_blur_damages_more_with_more_rounds() -> None:
    """For 32 pixels, severities 4 and 5 are 2 and 3 with a second round."""
    images, versions = corrupted("glass_blur", 32)
    damage = [np.abs(version - images).mean() for version in versions]
    assert damage[1] < damage[3]
    assert damage[2] < damage[4]


@SIZE
def test_saturate_moves_the_saturation_further_on_each_side(size: int) -> None:
    images, versions = corrupted("saturate", size)

    def saturation(pixels: np.ndarray) -> float:
        top = pixels.max(axis=1)
        return float(((top - pixels.min(axis=1)) / np.where(top > 0, top, 1)).mean())

    means = [saturation(version) for version in versions]
    assert means[1] < means[0] < saturation(images) < means[2] < means[3] < means[4]
