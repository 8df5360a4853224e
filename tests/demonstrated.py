"""Made-up scores for the runs of the demo."""

from __future__ import annotations

from farshore.runs.plan.plan import Planned

LEVELS = {"auto": 0.75, "er": 0.66, "cl-vrex": 0.67, "cl-coral": 0.65, "naive-cl-vrex": 0.4}
JOINT = 0.72


def demo_score(entry: Planned) -> float:
    """Fine-tuning depends on the last source; the others hardly do."""
    last = float((entry.run.order or ("45",))[-1])
    if entry.run.method == "finetune":
        near = abs(last - float(entry.condition.target)) < 31
        return 0.8 if near else 0.15
    return LEVELS.get(entry.run.method, JOINT) + last / 10_000
