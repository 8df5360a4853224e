"""Peak memory and rows per second of a data set that is larger than the memory limit, read
memory-mapped.

    python bench/data.py [--limit-mb 1000] [--data-mb 2000] [--steps 200]

The work runs in a process of its own whose data segment is limited (RLIMIT_DATA) and whose peak
resident memory, mapped pages included, is read from the kernel. Beside it stand two checks: the
same set read into memory fails under the same limit, and a small set in memory shows what memory
mapping costs in speed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SHAPE = (3, 64, 64)
MB = 1_000_000


def write(folder: Path, megabytes: int) -> None:
    """Random images and labels, written in parts."""
    rows = megabytes * MB // int(np.prod(SHAPE))
    rng = np.random.default_rng(0)
    images = np.lib.format.open_memmap(folder / "inputs.npy", "w+", np.uint8, (rows, *SHAPE))
    for start in range(0, rows, 4096):
        part = images[start : start + 4096]
        part[:] = np.frombuffer(rng.bytes(part.size), np.uint8).reshape(part.shape)
    images.flush()
    np.save(folder / "labels.npy", rng.integers(0, 10, rows))


def work(folder: Path, mode: str, limit: int, steps: int, rows: int | None) -> dict[str, float]:
    """Train and evaluate once; what a child process does."""
    import torch

    from farshore import Domain, Learner

    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit * MB, limit * MB))
    torch.set_num_threads(1)
    inputs = np.load(folder / "inputs.npy", mmap_mode="r")[:rows]
    if mode == "memory":
        inputs = torch.from_numpy(np.array(inputs))
    labels = torch.from_numpy(np.load(folder / "labels.npy"))[:rows]
    learner = Learner(
        network="mlp",
        network_settings={"width": 32},
        method="er",
        memory=1000,
        classes=list(range(10)),
    )
    domain = Domain.divided("one", inputs, labels)
    learner.learn_domain(domain, steps=steps)
    began = time.perf_counter()
    learner.score(domain.split("all"))
    evaluated = len(domain) / (time.perf_counter() - began)
    return {
        "rows": len(domain),
        "data_mb": inputs.nbytes / MB,
        "peak_mb": peak_resident() / MB,
        "train_rows_s": steps
        * learner.system.method.settings.batch_size
        / learner.system.seconds["steps"],
        "evaluate_rows_s": evaluated,
    }


def peak_resident() -> int:
    """Peak resident memory in bytes, mapped pages included."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def child(
    folder: Path, mode: str, limit: int, steps: int, rows: int | None = None
) -> dict[str, float] | None:
    """Run `work` in a process of its own; None if it ran out of memory."""
    command = [
        sys.executable,
        __file__,
        "--child",
        str(folder),
        mode,
        str(limit),
        str(steps),
        str(rows or 0),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if "memory" in done.stderr.lower():
            return None
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit-mb", type=int, default=1000)
    parser.add_argument("--data-mb", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--folder",
        help="where the data set is written for the while; default: the system's temporary folder",
    )
    parser.add_argument("--quick", action="store_true", help="leave out the comparison of speeds")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        write(folder, asked.data_mb)
        mapped = child(folder, "mapped", asked.limit_mb, asked.steps)
        if mapped is None:
            raise SystemExit(f"memory-mapped work did not fit into {asked.limit_mb} MB")
        whole = child(folder, "memory", asked.limit_mb, asked.steps)
        few = int(mapped["rows"]) // 10
        small = {
            mode: child(folder, mode, 0, asked.steps, few)
            for mode in ("mapped", "memory")
            if not asked.quick
        }
    within = mapped["peak_mb"] <= asked.limit_mb < mapped["data_mb"]
    print(
        f"data set {mapped['data_mb']:.0f} MB ({mapped['rows']:.0f} images {SHAPE}), limit "
        f"{asked.limit_mb} MB"
    )
    print(
        f"memory-mapped: peak {mapped['peak_mb']:.0f} MB, within the limit: "
        f"{'yes' if within else 'NO'}"
    )
    print(
        f"memory-mapped: training {mapped['train_rows_s']:.0f} rows/s, evaluation "
        f"{mapped['evaluate_rows_s']:.0f} rows/s"
    )
    print(
        "read into memory under the same limit: "
        f"{'out of memory, as it must be' if whole is None else 'FITS, the limit proves nothing'}"
    )
    for mode, measured in small.items():
        assert measured is not None
        speed = (
            f"training {measured['train_rows_s']:.0f} rows/s, evaluation "
            f"{measured['evaluate_rows_s']:.0f} rows/s"
        )
        print(f"a tenth of it without limit, {mode}: {speed}, peak {measured['peak_mb']:.0f} MB")
    if not within or whole is not None:
        raise SystemExit(1)


if __name__ == "__main__":
    if "--child" in sys.argv:
        place, mode, limit, steps, rows = sys.argv[2:7]
        print(json.dumps(work(Path(place), mode, int(limit), int(steps), int(rows) or None)))
    else:
        main()
