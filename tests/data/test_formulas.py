"""Exact formulas of corruptions, each checked against a second computation.

Noise, light and blur are in test_corruptions.py.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
from corrupting import pictures
from PIL import Image

from farshore.data.corruptions.blur import zoom_blur
from farshore.data.corruptions.corrupt import CONSTANTS, SEVERITIES, corrupt
from farshore.data.corruptions.digital import elastic_transform
from farshore.data.corruptions.draws import Draws
from farshore.data.corruptions.sampling import zoomed
from farshore.data.corruptions.weather import MUD, fog, plasma, snow, spatter

SIZE = pytest.mark.parametrize("size", [32, 64])


@SIZE
def test_frost_is_a_weighted_sum(size: int) -> None:
    images = pictures(size, rows=3)
    flat = [np.full((3, 2 * size, 2 * size), 0.8)]
    for severity in SEVERITIES:
        mine, photograph = CONSTANTS[size]["frost"][severity - 1]
        expected = np.floor((mine * images / 255 + photograph * 0.8).clip(0, 1) * 255 + 1e-6)
        assert np.array_equal(
            corrupt(images, "frost", severity, seed=0, photographs=flat), expected
        )


@SIZE
def test_fog_is_added_and_scaled_back_by_the_brightest_value(size: int) -> None:
    images = pictures(size, rows=3) / 255
    for strength, decay in CONSTANTS[size]["fog"]:
        corrupted = fog(images, (strength, decay), Draws(2, range(3)))
        mist = plasma(size, decay, Draws(2, range(3)))
        for image, fogged, layer in zip(images, corrupted, mist, strict=True):
            assert fogged == pytest.approx(
                (image + strength * layer) * image.max() / (image.max() + strength)
            )


@SIZE
def test_snow_without_a_flake_is_the_whitened_image(size: int) -> None:
    images = pictures(size, rows=2) / 255
    for constants in CONSTANTS[size]["snow"]:
        *_, mix = constants
        corrupted = snow(
            images, (*constants[:3], 99.0, *constants[4:]), Draws(0, range(2))
        )  # a threshold that no flake reaches
        red, green, blue = images[:, 0], images[:, 1], images[:, 2]
        white = 1.5 * (0.299 * red + 0.587 * green + 0.114 * blue) + 0.5
        for channel in range(3):
            assert corrupted[:, channel] == pytest.approx(
                mix * images[:, channel] + (1 - mix) * np.maximum(images[:, channel], white)
            )
        flaky = snow(images, constants, Draws(0, range(2)))
        flakes = (flaky - corrupted)[:, 0]
        assert (flakes > -1e-9).all()
        assert flakes == pytest.approx(
            flakes[:, ::-1, ::-1]
        )  # the layer and the layer rotated by 180 degrees


@SIZE
def test_mud_replaces_pixels_and_leaves_the_others(size: int) -> None:
    images = pictures(size, rows=4) / 255
    for constants in CONSTANTS[size]["spatter"][3:]:
        corrupted = spatter(images, constants, Draws(0, range(4)))
        # corrupted = x (1 - m) + mud m, one m per pixel for all channels, zero or at least 0.8.
        mud = MUD[None, :, None, None]
        weight = ((corrupted - images) * (mud - images)).sum(axis=1) / np.square(mud - images).sum(
            axis=1
        )
        assert corrupted == pytest.approx(images + weight[:, None] * (mud - images))
        assert ((np.abs(weight) < 1e-9) | (weight > 0.8 - 1e-9)).all()
        assert 0 < (weight > 0.5).mean() < 0.2


@SIZE
def test_zoom_blur_is_the_mean_of_the_zooms(size: int) -> None:
    images = pictures(size, rows=2) / 255
    for last in CONSTANTS[size]["zoom_blur"]:
        zooms = [zoomed(images, 1 + step / 100) for step in range(round(100 * (last - 1)) + 1)]
        assert zoom_blur(images, last, Draws(0, range(2))) == pytest.approx(
            (images + sum(zooms)) / (len(zooms) + 1)
        )


def test_pixelate_to_half_is_the_mean_of_four() -> None:
    images = pictures(64, rows=2)
    four = images.reshape(2, 3, 32, 2, 32, 2).astype(float).mean(axis=(3, 5))
    expected = four.repeat(2, axis=2).repeat(2, axis=3)
    assert (
        np.abs(corrupt(images, "pixelate", 5, seed=0) - expected).max() <= 1
    )  # rows and columns are rounded one after the other


@SIZE
def test_jpeg_is_a_round_trip_of_the_named_quality(size: int) -> None:
    images = pictures(size, rows=2)
    for severity in SEVERITIES:
        corrupted = corrupt(images, "jpeg_compression", severity, seed=0)
        for image, decoded in zip(images, corrupted, strict=True):
            file = io.BytesIO()
            Image.fromarray(image.transpose(1, 2, 0)).save(
                file, "JPEG", quality=CONSTANTS[size]["jpeg_compression"][severity - 1]
            )
            assert np.array_equal(decoded.transpose(1, 2, 0), np.asarray(Image.open(file)))


@SIZE
def test_the_first_elastic_transform_is_affine(size: int) -> None:
    """Three points around the centre are moved by at most the jitter; all others follow."""
    row, column = np.mgrid[:size, :size].astype(float)
    positions = np.stack([row, column, np.ones_like(row)])[None].repeat(6, axis=0)
    constants = CONSTANTS[size]["elastic_transform"][0]
    corrupted = elastic_transform(positions, constants, Draws(1, range(6)))[:, :2]
    third, centre = size // 3, size // 2
    inner = slice(size // 4, -size // 4)
    basis = np.stack(
        [row[inner, inner].ravel(), column[inner, inner].ravel(), np.ones((size // 2) ** 2)], axis=1
    )
    for mapped in corrupted:
        inverse, error = np.linalg.lstsq(
            basis, mapped[:, inner, inner].reshape(2, -1).T, rcond=None
        )[:2]
        assert np.abs(error).max() < 1e-12 * size**4
        for point in (
            (centre + third, centre + third),
            (centre - third, centre + third),
            (centre - third, centre - third),
        ):
            # `inverse` maps a pixel to where it came from.
            moved = np.linalg.solve(inverse[:2].T, np.array(point) - inverse[2])
            assert 0 < np.abs(moved - point).max() <= constants[2] * size + 1e-6
