"""Where the time of one step goes: `python bench/kernels.py [--method er] [--device cuda --way
graph/bf16] [--network cnn --size 28]`.

One current domain and three replayed ones, as in step_cost.py. On a GPU the kernels of the recorded
step, on a CPU the operators, longest first. Kernels may run side by side: their sum can exceed the
step.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

import torch
from step_cost import DOMAINS, about_images, images, medians, opened, prepared, wait
from torch.profiler import ProfilerActivity, profile


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="er")
    parser.add_argument("--way", default="eager/float32", help="execution/precision")
    about_images(parser)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lines", type=int, default=20)
    asked = parser.parse_args()
    asked.shape = (asked.channels, asked.size, asked.size)
    cuda, device = asked.device == "cuda", torch.device(asked.device)
    with ExitStack() as stack:
        step = opened(
            stack, prepared(asked.method, asked.way, asked), images(asked.shape, DOMAINS - 1)
        )
        taken = 1e6 * medians({"": step}, 1, asked.steps, device)[""]
        with profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as found:
            for _ in range(asked.steps):
                step()
            wait(device)
    rows = [
        (row.self_device_time_total if cuda else row.self_cpu_time_total, row.count, row.key)
        for row in found.key_averages()
    ]
    rows = sorted(
        ((spent / asked.steps, count / asked.steps, name) for spent, count, name in rows),
        reverse=True,
    )
    where = torch.cuda.get_device_name() if cuda else f"{torch.get_num_threads()} CPU threads"
    print(
        f"{asked.method}, {asked.way}, {asked.network}, {DOMAINS} x {asked.batch} images of "
        f"{asked.size} pixels; {where}"
    )
    print(
        f"a step takes {taken:.0f} us; {sum(row[1] for row in rows):.0f} kernels, together "
        f"{sum(row[0] for row in rows):.0f} us\n"
    )
    print("| us a step | times | kernel |\n|---|---|---|")
    for spent, count, name in rows[: asked.lines]:
        print(f"| {spent:.1f} | {count:.1f} | {name[:100]} |")
    print(
        f"| {sum(row[0] for row in rows[asked.lines :]):.1f} | "
        f"{sum(row[1] for row in rows[asked.lines :]):.1f} | all others |"
    )


if __name__ == "__main__":
    main()
