"""What a step of each method costs, relative to `er`: `python bench/step_cost.py [--methods ...]`.

The DomainBed MNIST CNN at full width with 4 x 64 images a step: one current domain and three replayed ones. The methods take
turns, step by step, in one process, so that a busy machine disturbs all of them alike; medians are compared. Methods that do
not replay see 64 images and are marked: their ratio is not one of equal rows.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from holdfast.learner import Learner
from holdfast.methods import METHODS, continual

DOMAINS, BATCH = 4, 64


def prepared(method: str, device: str) -> Learner:
    """A learner that has three domains behind it and is ready to step on the fourth."""
    fields = METHODS.get(method).Settings.model_fields
    early = {name: 0 for name in ("anneal_steps", "warmup_steps") if name in fields}
    learner = Learner("cnn", method, memory=600, settings={"batch_size": BATCH, **early}, device=device, small=True, short=True)
    generator = torch.Generator().manual_seed(0)
    for domain in range(DOMAINS - 1):
        images = torch.randint(0, 256, (256, 1, 28, 28), generator=generator).to(torch.uint8)
        learner.learn(images, torch.arange(256) % 10, domain=str(domain), steps=1)
    learner.method.network.train()
    learner.method.before_domain(str(DOMAINS - 1))
    return learner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(continual()))
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = options.methods.split(",")
    names = names if "er" in names else ["er", *names]
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (512, 1, 28, 28), generator=generator).to(torch.uint8)
    from holdfast.data.domain import Domain

    rows = Domain.divided("current", images, torch.arange(512) % 10).split("train").to(torch.device(options.device))
    learners = {name: prepared(name, options.device) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for step in range(options.steps + 2):
        for name, learner in learners.items():
            began = time.perf_counter()
            learner.step(rows, step)
            if options.device != "cpu":
                torch.cuda.synchronize()
            if step >= 2:  # the first steps allocate
                times[name].append(time.perf_counter() - began)
    base = statistics.median(times["er"])
    print(f"one step, {DOMAINS} x {BATCH} images, {options.device}, {options.threads} threads, median of {options.steps} interleaved steps")
    for name in names:
        median = statistics.median(times[name])
        replays = METHODS.get(name).replay.memory is not None
        note = "" if replays else f"  (no replay: {BATCH} images a step)"
        print(f"{name:18s} {1000 * median:8.1f} ms  {median / base:5.2f} x er{note}")


if __name__ == "__main__":
    main()
