"""Peak memory and rows per second of a memory-mapped data set larger than the memory limit.

    python bench/data.py [--limit-mb 1000] [--data-mb 2000] [--steps 200]

The work runs in a separate process with a limited data segment (RLIMIT_DATA). Its peak resident
memory, including mapped pages, is read from the kernel. There are two checks: the same data set
read into memory must fail under the same limit, and a small data set in memory shows how much speed
memory mapping costs.
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
    """Write random images and labels, in parts."""
    rows = megabytes * MB // int(np.prod(SHAPE))
    rng = np.random.default_rng(0)
    images = np.lib.format.open_memmap(folder / "inputs.npy", "w+", np.uint8, (rows, *SHAPE))
    for start in range(0, rows, 4096):
        part = images[start : start + 4096]
        part[:] = np.frombuffer(rng.bytes(part.size), np.uint8).reshape(part.shape)
    images.flush()
    np.save(folder / "labels.npy", rng.integers(0, 10, rows))


def work(folder: Path, mode: str, limit: int, steps: int, rows: int | None) -> dict[str, float]:
    """Train and evaluate once, in a child process."""
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
    start = time.perf_counter()
    learner.score(domain.split("all"))
    evaluation_rate = len(domain) / (time.perf_counter() - start)
    return {
        "rows": len(domain),
        "data_mb": inputs.nbytes / MB,
        "peak_mb": peak_resident() / MB,
        "train_rows_s": steps
        * learner.system.method.settings.batch_size
        / learner.system.seconds["steps"],
        "evaluate_rows_s": evaluation_rate,
    }


def peak_resident() -> int:
    """Peak resident memory in bytes, including mapped pages."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def child(
    folder: Path, mode: str, limit: int, steps: int, rows: int | None = None
) -> dict[str, float] | None:
    """Run `work` in a separate process; None if it ran out of memory."""
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
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        if "memory" in process.stderr.lower():
            return None
        raise SystemExit(process.stderr)
    return dict(json.loads(process.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit-mb", type=int, default=1000)
    parser.add_argument("--data-mb", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--folder",
        help="where to write the temporary data set; default: the system's temporary folder",
    )
    parser.add_argument("--quick", action="store_true", help="skip the speed comparison")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        write(folder, args.data_mb)
        mapped = child(folder, "mapped", args.limit_mb, args.steps)
        if mapped is None:
            raise SystemExit(f"memory-mapped work did not fit into {args.limit_mb} MB")
        whole = child(folder, "memory", args.limit_mb, args.steps)
        tenth = int(mapped["rows"]) // 10
        small = {
            mode: child(folder, mode, 0, args.steps, tenth)
            for mode in ("mapped", "memory")
            if not args.quick
        }
    within = mapped["peak_mb"] <= args.limit_mb < mapped["data_mb"]
    print(
        f"data set {mapped['data_mb']:.0f} MB ({mapped['rows']:.0f} images {SHAPE}), limit "
        f"{args.limit_mb} MB"
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
        folder, mode, limit, steps, rows = sys.argv[2:7]
        print(json.dumps(work(Path(folder), mode, int(limit), int(steps), int(rows) or None)))
    else:
        main()
