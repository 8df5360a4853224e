"""What all tests share: one torch thread, reproducible property tests, and small domains."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

from farshore.testing import toy_images, toy_rows

torch.set_num_threads(1)
if (
    not torch.cuda.is_available()
):  # Triton looks when it is imported, whoever does it: kernels for a GPU are carried out in Python
    os.environ["TRITON_INTERPRET"] = "1"
settings.register_profile("suite", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def blobs():
    """A maker of toy domains: clouds of points, moved a little from domain to domain."""
    return toy_rows


@pytest.fixture
def pictures():
    """A maker of toy image domains: 8x8 one-channel uint8 images."""
    return toy_images
