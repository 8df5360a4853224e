"""The MPS daemon: started and stopped with workers that share a GPU, unless one is running."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from farshore.runs.engines import mps
from farshore.runs.engines.local import LocalEngine


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for NVIDIA's command that records its arguments and its folder."""
    log = tmp_path / "log"
    command = tmp_path / mps.CONTROL
    command.write_text(
        f'#!/bin/sh\nif [ "$1" = "-d" ]; then echo "start $CUDA_MPS_PIPE_DIRECTORY" >> {log}; '
        f"else cat >> {log}; fi\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(mps, "DEFAULT_PIPES", str(tmp_path / "none"))
    monkeypatch.delenv(mps.PIPES, raising=False)
    return log


def test_the_daemon_lives_as_long_as_the_engine(control: Path) -> None:
    with LocalEngine(4, gpus=1):
        folder = os.environ[mps.PIPES]
        assert Path(folder).is_dir()
        assert control.read_text() == f"start {folder}\n"
    assert control.read_text() == f"start {folder}\nquit\n"
    assert mps.PIPES not in os.environ
    assert not Path(folder).exists()


@pytest.mark.parametrize(("slots", "gpus", "wanted"), [(2, 0, True), (1, 1, True), (4, 1, False)])
def test_no_daemon_without_a_shared_gpu_or_where_it_is_not_wanted(
    control: Path, slots: int, gpus: int, wanted: bool
) -> None:
    with LocalEngine(slots, gpus=gpus, mps=wanted):
        assert mps.PIPES not in os.environ
    assert not control.exists()


def test_somebody_elses_daemon_is_used_and_left_alone(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(mps.PIPES, "/somewhere")
    with LocalEngine(4, gpus=1):
        assert os.environ[mps.PIPES] == "/somewhere"
    assert not control.exists()


def test_a_daemon_that_does_not_start_is_done_without(control: Path) -> None:
    (control.parent / mps.CONTROL).write_text("#!/bin/sh\nexit 1\n")
    with LocalEngine(4, gpus=1):
        assert mps.PIPES not in os.environ


@pytest.mark.parametrize(
    ("gib", "cores", "gpus", "expected"),
    [(139, 16, 1, 10), (24, 16, 1, 3), (6, 16, 1, 1), (80, 16, 4, 4)],
)
def test_runs_a_gpu_by_memory_and_cores(
    gib: int, cores: int, gpus: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda number: SimpleNamespace(total_memory=gib * 2**30),
    )
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert mps.packed(gpus) == expected
