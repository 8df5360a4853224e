"""Label-preserving augmentations of images: small changes of light, position, angle and sharpness.

Images are floats in [0, 1]. Tables get noise.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

GREY = (0.299, 0.587, 0.114)


def as_unit(inputs: Tensor) -> Tensor:
    """uint8 images as floats in [0, 1], as a network scales them; other inputs are unchanged."""
    return inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs


def in_unit_range(inputs: Tensor) -> bool:
    """Whether these are images with values in [0, 1], which augmentations may clip."""
    shares = inputs.dtype == torch.uint8 or bool(((inputs >= 0) & (inputs <= 1)).all())
    return inputs.ndim == 4 and shares


def augment(images: Tensor, generator: torch.Generator, *, flips: bool) -> Tensor:
    """CoTTA's chain: jitter, a small affine transform, blur, a random flip, and noise.

    The random values are drawn once and are the same for all images of a call; only the pixel noise
    differs.
    """
    draw = _Draws(generator)
    images = move(jitter(images.clamp(0, 1), draw), draw)
    images = blur(images, sigma=draw.between(0.001, 0.5))
    # Drawn in either case, so that the setting does not change later draws.
    if draw.between(0, 1) < 0.5 and flips:
        images = images.flip(3)
    noise = torch.randn(images.shape, generator=generator, device=images.device, dtype=images.dtype)
    return (images + 0.005 * noise).clamp(0, 1)


class _Draws:
    """Python random numbers from a torch generator."""

    def __init__(self, generator: torch.Generator) -> None:
        self.options: dict[str, Any] = {"generator": generator, "device": generator.device}

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * float(torch.rand((), **self.options))

    def order(self, count: int) -> list[int]:
        return list(torch.randperm(count, **self.options).tolist())


def jitter(images: Tensor, draw: _Draws) -> Tensor:
    """Change light and colour in random order; saturation and hue only of three channels."""
    brightness, contrast = draw.between(0.6, 1.4), draw.between(0.7, 1.3)
    saturation = draw.between(0.5, 1.5)
    hue, gamma = draw.between(-0.06, 0.06), draw.between(0.7, 1.3)
    changes: list[Callable[[Tensor], Tensor]] = [
        lambda x: x * brightness,
        lambda x: _blend(x, grey(x).mean(dim=(2, 3), keepdim=True), contrast),
        lambda x: _blend(x, grey(x), saturation) if x.shape[1] == 3 else x,
        lambda x: turn_hue(x, hue) if x.shape[1] == 3 else x,
        lambda x: x.clamp(min=1e-8) ** gamma,
    ]
    for index in draw.order(len(changes)):
        images = changes[index](images).clamp(0, 1)
    return images


def grey(images: Tensor) -> Tensor:
    """Luminance [n, 1, h, w]; the mean of the channels if there are not three."""
    channels = images.shape[1]
    even = [1 / channels]
    weights = images.new_tensor(GREY if channels == 3 else even).view(1, -1, 1, 1)
    return (images * weights).sum(dim=1, keepdim=True)


def _blend(images: Tensor, other: Tensor, share: float) -> Tensor:
    return share * images + (1 - share) * other


def turn_hue(images: Tensor, turn: float) -> Tensor:
    """Rotate the hue of RGB images by this fraction of a circle, keeping saturation and value."""
    top, low = images.amax(dim=1), images.amin(dim=1)
    spread = top - low
    red, green, blue = (images[:, channel] for channel in range(3))
    safe = torch.where(spread > 0, spread, torch.ones_like(spread))
    hue = torch.where(
        top == red,
        ((green - blue) / safe) % 6,
        torch.where(top == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = hue + 6 * turn
    # Each channel is the value less the spread times a wave of the hue.
    channels = []
    for offset in (5, 3, 1):
        wave = (offset + hue) % 6
        channels.append(top - spread * torch.minimum(wave, 4 - wave).clamp(0, 1))
    return torch.stack(channels, dim=1)


def move(images: Tensor, draw: _Draws) -> Tensor:
    """Rotate by at most 15 degrees, shift by at most 1/8 of the side, scale by 0.9 to 1.1.

    Bilinear, with replicated edges. CoTTA's code shifts by 1/16 of an image that it has padded to
    twice its size.
    """
    angle, scale = math.radians(draw.between(-15, 15)), draw.between(0.9, 1.1)
    right, down = draw.between(-1 / 8, 1 / 8), draw.between(-1 / 8, 1 / 8)
    height, width = images.shape[2:]
    cosine, sine = math.cos(angle) / scale, math.sin(angle) / scale
    # grid_sample measures both axes from -1 to 1, so the off-diagonal entries need the aspect
    # ratio.
    matrix = images.new_tensor(
        [[cosine, -sine * height / width, 2 * right], [sine * width / height, cosine, 2 * down]]
    )
    shape, matrices = list(images.shape), matrix.expand(len(images), 2, 3)
    grid = functional.affine_grid(matrices, shape, align_corners=False)
    return functional.grid_sample(
        images, grid, mode="bilinear", padding_mode="border", align_corners=False
    )


def blur(images: Tensor, *, sigma: float) -> Tensor:
    """Gaussian blur, 5x5, with replicated edges."""
    offsets = torch.arange(-2, 3, device=images.device, dtype=images.dtype)
    weights = torch.softmax(-(offsets**2) / (2 * sigma**2), dim=0)
    channels = images.shape[1]
    padded = functional.pad(images, (2, 2, 2, 2), mode="replicate")
    down, across = weights.view(1, 1, 5, 1), weights.view(1, 1, 1, 5)
    rows = functional.conv2d(padded, down.expand(channels, 1, 5, 1), groups=channels)
    return functional.conv2d(rows, across.expand(channels, 1, 1, 5), groups=channels)


def jitter_columns(rows: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Add Gaussian noise to rows of a table, in standard deviations of each of its columns."""
    drawn = torch.randn(rows.shape, generator=generator, device=rows.device, dtype=rows.dtype)
    return rows + noise * rows.std(dim=0, correction=0) * drawn


def shift(images: Tensor, generator: torch.Generator, *, flips: bool) -> Tensor:
    """The random crop of SHOT++: shift each image by up to 1/14 of its side, and maybe flip it.

    1/14 corresponds to a crop of 224 out of 256 pixels; the largest shift is at least one pixel.
    Edges are replicated.
    """
    count, _, height, width = images.shape
    device = images.device
    reach_rows, reach_columns = (max(1, round(side / 14)) for side in (height, width))
    rows = _shifted_indices(count, height, reach_rows, generator).to(device)
    columns = _shifted_indices(count, width, reach_columns, generator).to(device)
    moved = images[
        torch.arange(count, device=device)[:, None, None], :, rows[:, :, None], columns[:, None, :]
    ].permute(0, 3, 1, 2)
    mirrored = torch.rand(count, generator=generator, device=generator.device).to(device) < 0.5
    return torch.where(mirrored.view(-1, 1, 1, 1), moved.flip(3), moved) if flips else moved


def _shifted_indices(count: int, side: int, reach: int, generator: torch.Generator) -> Tensor:
    """[count, side]: the source row (or column) of each pixel row after a random shift."""
    by = torch.randint(-reach, reach + 1, (count, 1), generator=generator, device=generator.device)
    return (torch.arange(side, device=generator.device)[None] + by).clamp(0, side - 1)


def quarter_turns(images: Tensor, turns: Tensor) -> Tensor:
    """Rotate each square image by its number of quarter turns, counter-clockwise."""
    turned = torch.stack([torch.rot90(images, turn, dims=(2, 3)) for turn in range(4)])
    return turned[turns, torch.arange(len(images), device=images.device)]
