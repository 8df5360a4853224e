"""Setup of all tests: one torch thread, reproducible property tests, and small domains."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
# Interpret GPU kernels in Python. Triton reads this variable when it is first imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
settings.register_profile("suite", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def blobs():
    """Factory of toy domains: one cloud of points per class, shifted from domain to domain."""

    def make(domain: int, rows: int = 48, classes: int = 2, width: int = 4):
        generator = torch.Generator().manual_seed(1000 + domain)
        labels = torch.arange(rows) % classes
        centres = torch.eye(classes, width) * 3
        inputs = centres[labels] + 0.4 * torch.randn(rows, width, generator=generator)
        return inputs + 0.5 * domain, labels

    return make


@pytest.fixture
def pictures():
    """Factory of toy image domains: 8x8 grey images with a bright left or right half.

    Each domain is darker than the previous one.
    """

    def make(domain: int, rows: int = 24):
        generator = torch.Generator().manual_seed(2000 + domain)
        labels = torch.arange(rows) % 2
        images = torch.randint(0, 60, (rows, 1, 8, 8), generator=generator)
        for half in (0, 1):
            images[labels == half, :, :, 4 * half : 4 * half + 4] += 150 - 30 * domain
        return images.to(torch.uint8), labels

    return make
