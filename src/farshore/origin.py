"""What code made a number, and on what: versions, the commit, the hardware. Recorded beside
results; it decides nothing.
"""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from pathlib import Path

import torch

from . import __version__


def versions() -> dict[str, str]:
    """Versions that a reader needs to get the same numbers."""
    return {
        "farshore": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": str(torch.get_num_threads()),
    }


def hardware(device: torch.device) -> dict[str, str]:
    """What the run ran on: times mean nothing without it, and GPUs of two kinds may round
    otherwise.
    """
    found = {"processor": _processor()}
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
    return found


@cache
def _processor() -> str:
    """The name that the system gives; the kind of machine where it gives none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def commit() -> str:
    """The commit of the code that runs, where it is known. Recorded beside a result, never part
    of a run's name.
    """
    try:
        place = Path(__file__).parent
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
