"""Where a number comes from: versions, commit and hardware, recorded with every result."""

import platform
import subprocess
from functools import cache
from pathlib import Path

import torch

from .. import __version__


def versions() -> dict[str, str]:
    """The versions needed to reproduce the numbers."""
    return {
        "farshore": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": str(torch.get_num_threads()),
    }


def hardware(device: torch.device) -> dict[str, str]:
    """The hardware of a run: times depend on it, and GPU types may round differently."""
    names = {"processor": _processor()}
    if device.type == "cuda":
        names["gpu"] = torch.cuda.get_device_name(device)
    return names


@cache
def _processor() -> str:
    """The processor's model name, or the machine type if the system has no name for it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def commit() -> str:
    """The commit of the running code, or empty if unknown. It is never part of a run's name."""
    try:
        words, here = ["git", "rev-parse", "HEAD"], Path(__file__).parent
        process = subprocess.run(words, cwd=here, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
