"""What a frozen backbone saves, and what it costs in accuracy.

    python bench/features.py speed
    python bench/features.py accuracy --benchmarks cifar10-c wm811k --weights FILE [--device cuda]

speed: ten methods x three seeds on 5,000 images of 64 pixels with a frozen ResNet18, feature
extraction included, against one er run that trains the whole network for the same number of steps.
The images and the weights are random numbers: only the time counts. The command fails if the thirty
runs take longer.

accuracy: a frozen ResNet18 with ridge, ncm, slda and er beside er with full training and with the
last block alone, with the sources in the listed and in the reversed order. FILE are weights in
torchvision's names; the benchmarks must be prepared (`farshore prepare`). `--steps` sets the steps
per domain of every run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from farshore.benchmarks import make_benchmark
from farshore.networks.build import build_network
from farshore.runs.protocol import execute
from farshore.runs.result import Result
from farshore.runs.run import Run

METHODS = (
    "finetune",
    "er",
    "er-ace",
    "der++",
    "ewc",
    "cl-vrex",
    "cl-coral",
    "ridge",
    "slda",
    "ncm",
)
SEEDS = range(3)
DOMAINS, IMAGES, CLASSES, SIZE = 5, 5000, 10, 64
# What is compared on a benchmark: a name, the method, and its settings.
WAYS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("frozen, ncm", "ncm", {"train": "head"}),
    ("frozen, ridge", "ridge", {"train": "head"}),
    ("frozen, slda", "slda", {"train": "head"}),
    ("frozen, slda, shrinkage 1e-4", "slda", {"train": "head", "shrinkage": 1e-4}),
    ("frozen, er", "er", {"train": "head"}),
    ("last block, er", "er", {"train": "last-block"}),
    ("all, er", "er", {"train": "all"}),
)


def write_images(folder: Path) -> None:
    """Random images, a little brighter from class to class."""
    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        domain, label = number % DOMAINS, number // DOMAINS % CLASSES
        pixels = rng.integers(0, 150, (SIZE, SIZE, 3)) + 10 * label
        path = folder / f"site-{domain}" / f"class-{label}" / f"{number:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(path, compress_level=1)


def write_weights(file: Path) -> None:
    """Random weights of a ResNet18."""
    torch.manual_seed(0)
    network = build_network("resnet18", (3, SIZE, SIZE), CLASSES, {"weights": "none"})
    save_file(dict(network.features.state_dict()), file)


def speed(device: str, steps: int | None) -> int:
    """Time thirty runs on frozen features, and one run with full training."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["FARSHORE_FEATURES"] = str(folder / "features")
        write_images(folder / "images")
        write_weights(folder / "random.safetensors")
        fields: dict[str, Any] = {
            "benchmark": "image-folder",
            "options": {"path": str(folder / "images"), "size": SIZE},
            "network": "resnet18",
            "network_settings": {"weights": str(folder / "random.safetensors")},
            "target": f"site-{DOMAINS - 1}",
            "device": device,
            "steps": steps,
        }
        began = time.perf_counter()
        for method in METHODS:
            started = time.perf_counter()
            for seed in SEEDS:
                result = execute(Run.build(**fields, method=method, seed=seed))
            spent = time.perf_counter() - started
            print(f"frozen, {method}: {spent:.1f} s for {len(SEEDS)} seeds", flush=True)
        frozen = time.perf_counter() - began
        runs = len(METHODS) * len(SEEDS)
        print(f"{runs} runs on frozen features, {result.steps} steps per domain: {frozen:.0f} s")
        began = time.perf_counter()
        execute(Run.build(**fields, method="er", settings={"train": "all"}))
        full = time.perf_counter() - began
        print(f"one er run with full training: {full:.0f} s, {full / frozen:.1f} times as long")
    return 0 if frozen < full else 1


def accuracy(benchmarks: list[str], weights: str, device: str, steps: int | None) -> int:
    """Score each way on each benchmark in two orders of the sources, one seed each."""
    print("| benchmark | trained | target, listed order | reversed | seconds of each |")
    print("|---|---|---|---|---|")
    for benchmark in benchmarks:
        options = {"weights": weights}
        made = make_benchmark(benchmark, options)
        listed = tuple(made.listed(made.choose_target(None)))
        for name, method, settings in WAYS:
            results = []
            for order in (listed, listed[::-1]):
                # A cache of its own for each run, so that its time includes the extraction.
                with tempfile.TemporaryDirectory() as folder:
                    os.environ["FARSHORE_FEATURES"] = folder
                    run = Run.build(
                        benchmark=benchmark,
                        options=options,
                        method=method,
                        settings=settings,
                        order=order,
                        device=device,
                        steps=steps,
                    )
                    results.append(execute(run))
            print(row(benchmark, name, results), flush=True)
    return 0


def row(benchmark: str, name: str, results: Sequence[Result]) -> str:
    """One line of the table."""
    scores = (
        result.status if result.target_score is None else f"{100 * result.target_score:.1f}"
        for result in results
    )
    seconds = ", ".join(f"{result.seconds['total']:.0f}" for result in results)
    return f"| {benchmark} | {name} | {' | '.join(scores)} | {seconds} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=["speed", "accuracy"])
    parser.add_argument("--benchmarks", nargs="+", default=["cifar10-c", "wm811k"])
    parser.add_argument("--weights", default="imagenet")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int)
    given = parser.parse_args()
    if given.part == "speed":
        return speed(given.device, given.steps)
    return accuracy(given.benchmarks, given.weights, given.device, given.steps)


if __name__ == "__main__":
    sys.exit(main())
