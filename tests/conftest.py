"""Setup of all tests: one torch thread, reproducible property tests, and small domains."""

from __future__ import annotations

import os
import sys
import tempfile

import pytest
import torch
from hypothesis import settings

from farshore.testing import toy_images, toy_rows

torch.set_num_threads(1)
# Interpret GPU kernels in Python. Triton reads this variable when it is first imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
# Features of frozen backbones are cached in a folder that disappears with the tests.
FEATURES = tempfile.TemporaryDirectory(prefix="farshore-features-")
os.environ["FARSHORE_FEATURES"] = FEATURES.name
settings.register_profile("suite", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def blobs():
    """Factory of toy domains: clouds of points, moved a little from domain to domain."""
    return toy_rows


@pytest.fixture
def pictures():
    """Factory of toy image domains: 8x8 one-channel uint8 images."""
    return toy_images


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Type a command; returns the exit code and what was printed."""

    from farshore.cli.app import main

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["farshore", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run
