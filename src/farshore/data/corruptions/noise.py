"""Noise: gaussian, shot, impulse, speckle. Images are floats in [0, 1], [n, 3, size, size]."""

import numpy as np

from .draws import Draws


def gaussian_noise(images: np.ndarray, deviation: float, draws: Draws) -> np.ndarray:
    """x + N(0, sd) for every value."""
    return images + deviation * draws.normal(*images.shape[1:])


def shot_noise(images: np.ndarray, photons: float, draws: Draws) -> np.ndarray:
    """Poisson(x c) / c."""
    return draws.poisson(images * photons) / photons


def impulse_noise(images: np.ndarray, amount: float, draws: Draws) -> np.ndarray:
    """Set this share of the values to 0 or 1, half each."""
    hit = draws.uniform(0, 1, *images.shape[1:])
    return np.where(hit < amount / 2, 0.0, np.where(hit < amount, 1.0, images))


def speckle_noise(images: np.ndarray, deviation: float, draws: Draws) -> np.ndarray:
    """x + x N(0, sd)."""
    return images + images * deviation * draws.normal(*images.shape[1:])
