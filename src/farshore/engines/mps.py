"""NVIDIA's MPS daemon: lets the kernels of several processes run on one GPU at the same time
instead of in turns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress

CONTROL = "nvidia-cuda-mps-control"
PIPES = "CUDA_MPS_PIPE_DIRECTORY"
LOGS = "CUDA_MPS_LOG_DIRECTORY"
DEFAULT_PIPES = "/tmp/nvidia-mps"  # where NVIDIA's daemon listens if nobody tells it otherwise
SECONDS = 20


# Runs that share a GPU by default: more gain little, since their kernels then fill it
# (bench/packing.py). Each wants a core to itself and room for its network, data and recorded step.
PACKED = 10
GIB_A_RUN = 8


def packed(gpus: int) -> int:
    """How many runs one of this machine's GPUs takes at a time."""
    import torch

    gib = (
        min(torch.cuda.get_device_properties(number).total_memory for number in range(gpus)) / 2**30
    )
    return max(1, min(PACKED, (os.cpu_count() or 1) // gpus, int(gib // GIB_A_RUN)))


class Mps:
    """A daemon of our own, with a folder of its own; processes started while it runs use it.
    `close` ends it.
    """

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="farshore-mps-")
        self.before = {name: os.environ.get(name) for name in (PIPES, LOGS)}
        os.environ |= {PIPES: self.folder, LOGS: self.folder}
        try:
            subprocess.run([CONTROL, "-d"], check=True, capture_output=True, timeout=SECONDS)
        except (OSError, subprocess.SubprocessError):
            self._tidy()
            raise

    def close(self) -> None:
        """End the daemon, after the processes that use it."""
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [CONTROL], input=b"quit\n", capture_output=True, timeout=SECONDS, check=False
            )
        self._tidy()

    def _tidy(self) -> None:
        for name, value in self.before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(self.folder, ignore_errors=True)


def start_mps() -> Mps | None:
    """A daemon, where the driver has one and none is running; without it processes share the GPU
    in turns.
    """
    running = PIPES in os.environ or os.path.exists(os.path.join(DEFAULT_PIPES, "control"))
    if running or shutil.which(CONTROL) is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        return Mps()
    return None
