"""Where the time of one step goes.

    python bench/kernels.py [--method er] [--device cuda --way graph/bf16] [--network cnn --size 28]

One current domain and three replayed ones, as in step_cost.py. Lists the kernels of the recorded
step on a GPU, or the operators on a CPU, longest first. Kernels may run in parallel: their sum can
exceed the time of the step.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

import torch
from step_cost import DOMAINS, add_shape_arguments, made, medians, opened, prepared, shape_of, wait
from torch.profiler import ProfilerActivity, profile


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="er")
    parser.add_argument("--way", default="eager/float32", help="execution/precision")
    add_shape_arguments(parser)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lines", type=int, default=20)
    args = parser.parse_args()
    args.shape = shape_of(args)
    cuda, device = args.device == "cuda", torch.device(args.device)
    with ExitStack() as stack:
        step = opened(
            stack,
            prepared(args.method, args.way, args),
            made(args.shape, DOMAINS - 1),
        )
        microseconds = 1e6 * medians({"": step}, 1, args.steps, device)[""]
        with profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as trace:
            for _ in range(args.steps):
                step()
            wait(device)
    rows = [
        (row.self_device_time_total if cuda else row.self_cpu_time_total, row.count, row.key)
        for row in trace.key_averages()
    ]
    rows = sorted(
        ((time / args.steps, count / args.steps, name) for time, count, name in rows),
        reverse=True,
    )
    where = torch.cuda.get_device_name() if cuda else f"{torch.get_num_threads()} CPU threads"
    print(
        f"{args.method}, {args.way}, {args.network}, {DOMAINS} x {args.batch} inputs of "
        f"{' x '.join(map(str, args.shape))}; {where}"
    )
    print(
        f"a step takes {microseconds:.0f} us; {sum(row[1] for row in rows):.0f} kernels, together "
        f"{sum(row[0] for row in rows):.0f} us\n"
    )
    print("| us per step | calls | kernel |\n|---|---|---|")
    for time, count, name in rows[: args.lines]:
        print(f"| {time:.1f} | {count:.1f} | {name[:100]} |")
    print(
        f"| {sum(row[0] for row in rows[args.lines :]):.1f} | "
        f"{sum(row[1] for row in rows[args.lines :]):.1f} | all others |"
    )


if __name__ == "__main__":
    main()
