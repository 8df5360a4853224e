"""NVIDIA's MPS daemon: several processes run kernels on one GPU concurrently, not in turns."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress

CONTROL = "nvidia-cuda-mps-control"
PIPES = "CUDA_MPS_PIPE_DIRECTORY"
LOGS = "CUDA_MPS_LOG_DIRECTORY"
DEFAULT_PIPES = "/tmp/nvidia-mps"  # where NVIDIA's daemon listens by default
TIMEOUT_SECONDS = 20


# Runs that share a GPU by default: more of them gain little, because their kernels then fill it
# (bench/packing.py). Each needs a core and GPU memory for its network, data and recorded step.
PACKED = 10
GIB_PER_RUN = 8


def packed(gpus: int) -> int:
    """How many runs one GPU of this machine carries out at a time."""
    import torch

    sizes = [torch.cuda.get_device_properties(number).total_memory for number in range(gpus)]
    fitting = int(min(sizes) // (GIB_PER_RUN << 30))
    return max(1, min(PACKED, (os.cpu_count() or 1) // gpus, fitting))


class Mps:
    """A private daemon with its own folder. Processes started while it runs use it."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="farshore-mps-")
        self.environment = {name: os.environ.get(name) for name in (PIPES, LOGS)}
        os.environ |= {PIPES: self.folder, LOGS: self.folder}
        try:
            start = [CONTROL, "-d"]
            subprocess.run(start, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
        except (OSError, subprocess.SubprocessError):
            self._clean_up()
            raise

    def close(self) -> None:
        """Stop the daemon; the processes that use it must have ended."""
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([CONTROL], input=b"quit\n", capture_output=True, timeout=TIMEOUT_SECONDS)
        self._clean_up()

    def _clean_up(self) -> None:
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(self.folder, ignore_errors=True)


def start_mps() -> Mps | None:
    """Start the daemon if installed and not running; without it processes take turns."""
    running = PIPES in os.environ or os.path.exists(os.path.join(DEFAULT_PIPES, "control"))
    if running or shutil.which(CONTROL) is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        return Mps()
    return None
