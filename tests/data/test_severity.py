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
# glass_blur: the blur after the shuffling takes back a part of what the shuffling did. saturate:
# colours are taken away at severities 1 and 2 and strengthened from 3 on. spatter: pale water at
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
    """The images as floats, and what each severity makes of them."""
    images = pictures(size) / 255
    more = {"photographs": photographs(size)} if name == "frost" else {}
    rows = range(len(images))
    return images, [
        CORRUPTIONS[name](images, each, Draws(5, rows), **more).clip(0, 1)
        for each in CONSTANTS[size][name]
    ]


@SIZE
@pytest.mark.parametrize("name", sorted(CORRUPTIONS))
def test_the_mean_change_of_a_pixel_grows(name: str, size: int) -> None:
    images, made = corrupted(name, size)
    done = [np.abs(each - images).mean() for each in made]
    assert [step for step in STEPS if not done[step[0] - 1] < done[step[1] - 1]] == NOT_GROWING[
        size
    ].get(name, [])
    if name != "elastic_transform":
        assert done[0] < done[4]


@SIZE
def test_frost_leaves_less_and_less_of_the_image(size: int) -> None:
    """The weight of the photograph grows against that of the image, so what is left agrees with
    the image less and less.
    """
    assert all(
        before[1] / before[0] < after[1] / after[0]
        for before, after in itertools.pairwise(CONSTANTS[size]["frost"])
    )
    images, made = corrupted("frost", size)
    agreement = [
        np.mean(
            [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(images, each, strict=True)]
        )
        for each in made
    ]
    assert all(after < before for before, after in itertools.pairwise(agreement))


def ramps(size: int, rows: int = 30) -> np.ndarray:
    """Images whose pixels say where they stand: row, column, nothing."""
    row, column = np.mgrid[:size, :size] / size
    return np.broadcast_to(np.stack([row, column, 0 * row]), (rows, 3, size, size))


@SIZE
def test_elastic_transform_warps_more_and_more_while_its_affine_map_gets_weaker(size: int) -> None:
    places = ramps(size)
    inner = slice(size // 4, -size // 4)  # away from the borders, where the image is mirrored
    basis = np.stack(
        [
            places[0, 0, inner, inner].ravel(),
            places[0, 1, inner, inner].ravel(),
            np.ones((size // 2) ** 2),
        ],
        axis=1,
    )
    warped = []
    for constants in CONSTANTS[size]["elastic_transform"]:
        moved = (
            size
            * (elastic_transform(places, constants, Draws(5, range(len(places)))) - places)[
                :, :2, inner, inner
            ]
        )
        flat = moved.reshape(-1, len(basis))
        affine = np.linalg.lstsq(basis, flat.T, rcond=None)[0]
        warped.append(np.sqrt(np.square(flat - (basis @ affine).T).mean()))
    assert warped[0] == pytest.approx(0, abs=1e-9)  # severity 1 is the affine map alone
    assert all(before < after for before, after in itertools.pairwise(warped))
    jitter = [constants[2] for constants in CONSTANTS[size]["elastic_transform"]]
    assert jitter == sorted(jitter, reverse=True)


@SIZE
def test_glass_blur_moves_pixels_as_far_or_farther(size: int) -> None:
    places = ramps(size)
    moved = []
    for _, shift, rounds in CONSTANTS[size]["glass_blur"]:
        # A sigma this small does not blur: what is left is where each pixel came from.
        found = glass_blur(places, (0.05, shift, rounds), Draws(5, range(len(places))))
        moved.append(np.sqrt(np.square(found - places).sum(axis=1)).mean())
    assert all(before <= after for before, after in itertools.pairwise(moved))
    assert moved[0] < moved[4]


def test_glass_blur_damages_more_with_more_rounds() -> None:
    """In the table of 32 pixels severities 4 and 5 are 2 and 3 with a second round."""
    images, made = corrupted("glass_blur", 32)
    done = [np.abs(each - images).mean() for each in made]
    assert done[1] < done[3]
    assert done[2] < done[4]


@SIZE
def test_saturate_moves_the_saturation_further_on_each_side(size: int) -> None:
    images, made = corrupted("saturate", size)

    def saturation(each: np.ndarray) -> float:
        top = each.max(axis=1)
        return float(((top - each.min(axis=1)) / np.where(top > 0, top, 1)).mean())

    found = [saturation(each) for each in made]
    assert found[1] < found[0] < saturation(images) < found[2] < found[3] < found[4]
