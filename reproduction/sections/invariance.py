"""Does invariance help? The tailored methods beside replay with the same distillation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from statistics import fmean

from reproduction.arithmetic import (
    Scores,
    above_zero,
    enough,
    mean,
    names,
    paired_difference,
    pooled,
    scores,
    unit_of,
)
from reproduction.collect import ROWS
from reproduction.compared import BENCHMARKS, TAILORED
from reproduction.finished_runs import rows_of, table
from reproduction.formatting import interval, listed, markdown, several, signed

# Replay and distillation, without a notion of invariance.
CONTROL = "er-kd"
REFERENCES = ("finetune", "er", "der++", CONTROL)
DATA = ("rotated-mnist", "covertype", "heart-hospitals", "rotated-digits", "wm811k")


def constant(benchmark: str, by_method: Mapping[str, Scores]) -> float:
    """What a constant answer scores at the target.

    On covertype, whose target is balanced, one of its classes; `majority` names the most frequent
    class of the sources, which that target does not have.
    """
    if benchmark == "covertype":
        return 100 / len(set(ROWS["cache-la-poudre"]) - {"cottonwood"})
    return mean(by_method["majority"])


def measured(benchmark: str) -> dict[str, Scores]:
    """Runs with default settings: those of `control`, and `der++` from `all_orders`."""
    frame = rows_of("control", benchmark)
    found = enough(scores(frame[frame["settings"] == "{}"]))
    others = enough(scores(rows_of("all_orders", benchmark)))
    return {**{name: others[name] for name in others if name == "der++"}, **found}


def differences(benchmark: str) -> dict[str, str]:
    """Each tailored method minus the control: certainly ahead, behind, or neither."""
    by_method = measured(benchmark)
    found = {}
    for name in TAILORED:
        gap = paired_difference(by_method[name], by_method[CONTROL])
        if gap is not None:
            sides = {True: "ahead", False: "behind"}
            found[name] = sides[gap.mean > 0] if gap.certain else "neither"
    return found


def references_section() -> str:
    """By data set: the references, the tailored methods, and what replay and distillation gain."""
    rows = []
    for benchmark in DATA:
        by_method = measured(benchmark)
        tailored, control = pooled(by_method, TAILORED), by_method[CONTROL]
        unit = unit_of(control)
        rows.append(
            [
                benchmark + (" (macro F1)" if benchmark == "wm811k" else ""),
                several(len(names(control, unit)), str(unit)),
                f"{constant(benchmark, by_method):.1f}",
                *(f"{mean(by_method[n]):.1f}" if n in by_method else "-" for n in REFERENCES),
                f"{mean(tailored):.1f}",
                f"{mean(by_method['joint']):.1f}",
                interval(paired_difference(control, by_method["er"])),
                interval(paired_difference(tailored, control)),
            ]
        )
    header = [
        "data set",
        "n",
        "constant",
        *(f"`{name}`" for name in REFERENCES),
        "tailored",
        "`joint`",
        f"`{CONTROL}` minus `er` [95%]",
        f"tailored minus `{CONTROL}` [95%]",
    ]
    return markdown(header, rows)


def answer_section() -> str:
    """The answer in words, made from the numbers."""
    found = [side for benchmark in DATA for side in differences(benchmark).values()]
    ahead, behind = found.count("ahead"), found.count("behind")
    steps = {
        "replay (`er` minus `finetune`)": ("er", "finetune"),
        f"distillation (`{CONTROL}` minus `er`)": (CONTROL, "er"),
    }
    gains = []
    for words, (first, second) in steps.items():
        gaps = [paired_difference(measured(name)[first], measured(name)[second]) for name in DATA]
        average = fmean(gap.mean for gap in gaps if gap is not None)
        certain = sum(map(above_zero, gaps))
        gains.append(f"{words} {signed(average)} points, certain on {certain} of {len(DATA)}")
    notions = fmean(
        mean(pooled(measured(name), TAILORED)) - mean(measured(name)[CONTROL]) for name in DATA
    )
    doses = "; ".join(f"{name}: {dose(name)}" for name in BENCHMARKS)
    shown = "these runs show that it does" if ahead > behind else "these runs do not show it"
    return (
        f"At default weights, {shown}: of {len(found)} comparisons of a tailored method with "
        f"`{CONTROL}` (replay and distillation, no invariance), {ahead} are certainly ahead and "
        f"{behind} certainly behind. What explains the gain over fine-tuning, on average over the "
        f"{len(DATA)} data sets: {'; '.join(gains)}; a notion in place of distillation "
        f"(tailored minus `{CONTROL}`) {signed(notions)}. `cl-coral` minus `{CONTROL}` by λ is "
        f"{doses} (one seed)."
    )


def dose(benchmark: str) -> str:
    """CL-CORAL minus the control by the weight of its penalty, over the orders that were run."""
    frame = table("orders_sensitivity")
    frame = frame[(frame["benchmark"] == benchmark) & (frame["method"] == "cl-coral")]
    by_weight = {
        json.loads(settings)["penalty_weight"]: scores(part)["cl-coral"]
        for settings, part in frame.groupby("settings")
        if "penalty_weight" in json.loads(str(settings))
    }
    gaps = {
        weight: paired_difference(by_weight[weight], measured(benchmark)[CONTROL])
        for weight in sorted(by_weight)
    }
    return listed([f"{signed(gap.mean)} at {w:.2g}" for w, gap in gaps.items() if gap is not None])
