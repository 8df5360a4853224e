"""Rotate batches of images, uint8 [n, channels, height, width], by bilinear resampling."""

import math

import torch
from torch import Tensor


def rotate(images: Tensor, degrees: float, *, batch: int = 4096) -> Tensor:
    """Rotate images counter-clockwise about their centre: bilinear, same size, zero padding."""
    if degrees % 360 == 0:
        return images.clone()
    height, width = images.shape[-2:]
    angle = math.radians(degrees)
    # Each output pixel is sampled at its own position rotated back (clockwise; rows count
    # downwards).
    rows = torch.arange(height, dtype=torch.float64) - (height - 1) / 2
    columns = torch.arange(width, dtype=torch.float64) - (width - 1) / 2
    row, column = torch.meshgrid(rows, columns, indexing="ij")
    from_column = column * math.cos(angle) - row * math.sin(angle)
    from_row = column * math.sin(angle) + row * math.cos(angle)
    grid = torch.stack([2 * from_column / width, 2 * from_row / height], dim=-1).float()
    parts = []
    for part in images.split(batch):
        # Bilinear, with zeros around, by default.
        grids = grid.expand(len(part), -1, -1, -1)
        rotated = torch.nn.functional.grid_sample(part.float(), grids, align_corners=False)
        parts.append(rotated.round().clamp(0, 255).to(torch.uint8))
    return torch.cat(parts)
