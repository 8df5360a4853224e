"""Weather: snow, frost, fog, spatter. Images are floats in [0, 1], [n, 3, size, size]."""

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from .draws import Draws
from .sampling import correlate, gaussian, interpolate, line_blur, zoomed

GREY = np.array([0.299, 0.587, 0.114])
WATER = np.array([175, 238, 238]) / 255
MUD = np.array([63, 42, 20]) / 255
WOBBLE = 100.0


def snow(images: np.ndarray, constants: tuple[float, ...], draws: Draws) -> np.ndarray:
    """Whiten the image and add blurred, thresholded noise, also rotated by 180 degrees."""
    mean, deviation, zoom, threshold, radius, sigma, mix = constants
    size = images.shape[-1]
    layer = zoomed(mean + deviation * draws.normal(1, size, size), zoom)
    layer = np.floor(np.where(layer < threshold, 0.0, layer).clip(0, 1) * 255) / 255
    layer = line_blur(layer, radius, sigma, draws.uniform(-135, -45))
    grey = (images * GREY[None, :, None, None]).sum(axis=1, keepdims=True)
    whitened = mix * images + (1 - mix) * np.maximum(images, 1.5 * grey + 0.5)
    return whitened + layer + layer[..., ::-1, ::-1]


def frost(
    images: np.ndarray,
    constants: tuple[float, float],
    draws: Draws,
    photographs: Sequence[np.ndarray],
) -> np.ndarray:
    """A weighted sum of the image and a random crop of a photograph [3, height, width]."""
    size = images.shape[-1]
    which = draws.whole(0, len(photographs))
    tops = draws.whole(0, np.array([photographs[k].shape[1] - size for k in which]))
    lefts = draws.whole(0, np.array([photographs[k].shape[2] - size for k in which]))
    corners = zip(which, tops, lefts, strict=True)
    crops = [photographs[k][:, top : top + size, left : left + size] for k, top, left in corners]
    return constants[0] * images + constants[1] * np.stack(crops)


def scaled(photograph: np.ndarray, factor: float) -> np.ndarray:
    """Shrink a photograph [3, height, width] by bilinear sampling at pixel centres, unsmoothed."""
    for axis in (1, 2):
        length = round(photograph.shape[axis] * factor)
        photograph = interpolate(photograph, (np.arange(length) + 0.5) / factor - 0.5, axis)
    return photograph


def fog(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """Add a plasma map and scale by max / (max + strength), the maximum over the whole image."""
    strength, decay = constants
    top = images.max(axis=(1, 2, 3), keepdims=True)
    foggy = images + strength * plasma(images.shape[-1], decay, draws)[:, None]
    return foggy * top / (top + strength)


def plasma(size: int, decay: float, draws: Draws) -> np.ndarray:
    """Return diamond-square maps [n, size, size] on a torus, scaled to [0, 1].

    At every halving, the middle of each square, then of each diamond, becomes the mean of its four
    corners plus a wobble. As in the published generator, a draw from U(-w, w) is multiplied by w
    once more, so the wobble falls by the square of the decay.
    """
    maps = np.zeros((len(draws.rngs), size, size))
    step, wobble = size, WOBBLE

    def middle(total: np.ndarray) -> np.ndarray:
        return total / 4 + wobble * draws.uniform(-wobble, wobble, *total.shape[1:])

    while step >= 2:
        half = step // 2
        corners = maps[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        maps[:, half::step, half::step] = middle(pairs + np.roll(pairs, -1, axis=2))
        centres = maps[:, half::step, half::step]
        maps[:, ::step, half::step] = middle(
            centres + np.roll(centres, 1, axis=1) + corners + np.roll(corners, -1, axis=2)
        )
        maps[:, half::step, ::step] = middle(
            centres + np.roll(centres, 1, axis=2) + corners + np.roll(corners, -1, axis=1)
        )
        step, wobble = half, wobble / decay
    maps -= maps.min(axis=(1, 2), keepdims=True)
    return maps / maps.max(axis=(1, 2), keepdims=True)


def spatter(images: np.ndarray, constants: tuple[float, ...], draws: Draws) -> np.ndarray:
    """Add drops of water (mud = 0) or mud (mud = 1) where smoothed noise exceeds a threshold."""
    mean, deviation, sigma, threshold, strength, mud = constants
    size = images.shape[-1]
    layer = gaussian(mean + deviation * draws.normal(size, size), sigma)
    layer = np.where(layer < threshold, 0.0, layer)
    if mud:
        mask = gaussian((layer > threshold).astype(float), strength)
        mask = np.where(mask < 0.8, 0.0, mask)[:, None]
        return images * (1 - mask) + MUD[None, :, None, None] * mask
    wetness = np.stack([_water(np.floor(drops.clip(0, 1) * 255)) for drops in layer])
    return images + strength * wetness[:, None] * WATER[None, :, None, None]


def _water(layer: np.ndarray) -> np.ndarray:
    """Return how wet each pixel is, in [0, 1].

    The wetness is the layer times a relief of the distance to the edges of its drops.
    """
    dry = ~_edges(layer)
    far = np.full(layer.shape, np.inf)
    distance = ndimage.distance_transform_edt(dry) if not dry.all() else far
    box = np.full((3, 3), 1 / 9)
    distance = np.round(correlate(np.minimum(distance, 20.0), box))
    relief = correlate(_equalised(distance), np.array([[-2.0, -1, 0], [-1, 0, 1], [0, 1, 2]]))
    wet = layer * correlate(relief.clip(0, 255), box)
    top = wet.max()
    return wet / top if top > 0 else wet


def _edges(layer: np.ndarray, low: float = 50.0, high: float = 150.0) -> np.ndarray:
    """Find edges as Canny does: Sobel maxima above `low` that are connected to one above `high`."""
    across = ndimage.sobel(layer, axis=1, mode="nearest")
    down = ndimage.sobel(layer, axis=0, mode="nearest")
    steep = np.abs(across) + np.abs(down)
    around = np.pad(steep, 1)
    height, width = layer.shape
    direction = np.round(np.arctan2(down, across) / (np.pi / 4)).astype(int) % 4
    keep = np.zeros(layer.shape, dtype=bool)
    for number, (r, c) in enumerate([(0, 1), (1, 1), (1, 0), (1, -1)]):
        before = around[1 - r : 1 - r + height, 1 - c : 1 - c + width]
        after = around[1 + r : 1 + r + height, 1 + c : 1 + c + width]
        keep |= (direction == number) & (steep > before) & (steep >= after)
    weak = keep & (steep > low)
    groups, _ = ndimage.label(weak, structure=np.ones((3, 3)))
    return weak & np.isin(groups, np.unique(groups[weak & (steep > high)]))


def _equalised(values: np.ndarray) -> np.ndarray:
    """Spread whole numbers over 0..255 by their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    below = counts.cumsum() - counts[0]
    levels = np.round(255 * below / max(1, values.size - counts[0]))
    return levels[inverse].reshape(values.shape)
