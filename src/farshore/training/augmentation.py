"""Augmentation: random changes of training images, on the device and inside the step.

It is applied to images as the network gets them, after mean and deviation. Every draw comes from
the generator that is handed in, and nothing is read back, so a recorded step draws anew each time.
"""

import torch
from torch import Tensor

# The share of a side by which an image is shifted at most, and how far it is scaled.
SHIFT, ZOOM = 0.125, (0.8, 1.1)
# Brightness is added, contrast multiplied, and each channel multiplied on its own.
BRIGHTNESS, CONTRAST, COLOUR = 0.4, 0.4, 0.2


class Augmentation:
    """`standard`: shift, scale and flip; `strong`: also brightness, contrast and colour."""

    def __init__(self, kind: str, generator: torch.Generator, *, flip: bool = True) -> None:
        self.kind = kind
        self.generator = generator
        self.flip = flip

    def __call__(self, images: Tensor) -> Tensor:
        """Changed images [n, channels, height, width]; other inputs stay as they are."""
        if images.ndim != 4 or self.kind == "none":
            return images
        moved = self._moved(images)
        return self._coloured(moved) if self.kind == "strong" else moved

    def _draw(self, rows: int, columns: int, like: Tensor) -> Tensor:
        """Uniform on [-1, 1]."""
        drawn = torch.rand(rows, columns, generator=self.generator, device=like.device)
        return (2 * drawn - 1).to(like.dtype)

    def _moved(self, images: Tensor) -> Tensor:
        """Scale about the centre, shift, and flip half of the images; edges are mirrored."""
        draws = self._draw(len(images), 4, images)
        low, high = ZOOM
        scale = (high + low) / 2 + (high - low) / 2 * draws[:, 0]
        sign = torch.where(draws[:, 1] < 0, -1.0, 1.0) if self.flip else torch.ones_like(scale)
        shift = 2 * SHIFT * draws[:, 2:]
        zeros = torch.zeros_like(scale)
        across = torch.stack([scale * sign, zeros, shift[:, 0]], dim=1)
        down = torch.stack([zeros, scale, shift[:, 1]], dim=1)
        maps, shape = torch.stack([across, down], dim=1), list(images.shape)
        grid = torch.nn.functional.affine_grid(maps, shape, align_corners=False)
        return torch.nn.functional.grid_sample(
            images, grid, padding_mode="reflection", align_corners=False
        )

    def _coloured(self, images: Tensor) -> Tensor:
        """Change brightness and contrast, and the strength of each channel."""
        rows, channels = images.shape[:2]
        draws = self._draw(rows, 2 + channels, images)
        mean = images.mean(dim=(1, 2, 3), keepdim=True)
        contrast = 1 + CONTRAST * draws[:, :1, None, None]
        strength = 1 + COLOUR * draws[:, 2:, None, None]
        bright = BRIGHTNESS * draws[:, 1:2, None, None]
        return (mean + contrast * (images - mean)) * strength + bright
