"""The paper's experiments: their order in a report, and extra rows of their tables."""

from __future__ import annotations

from ..overlay import Beside

# Trials and seeds of the paper's search. Adaptations were not searched.
SEARCH = (20, 3)
NOT_SEARCHED = ("adaptation",)
# A user's own experiments come between these two.
FIRST = ("main",)
LAST = (
    "naive",
    "naive_vs_tailored",
    "adaptation",
    "source",
    "backward_transfer",
    "runtime",
    "no_alignment",
    "dynamic_priors",
    "memory_50",
    "memory_25",
    "other_target",
    "half_steps",
    "orders",
    "sensitivity",
    "step_time",
    "feature_space",
)
BESIDE: dict[str, Beside] = {
    "adaptation": Beside("main", ("finetune", "tailored")),
    "no_alignment": Beside("main", ("tailored",), "with alignment"),
    "dynamic_priors": Beside(
        "main", ("cl-vrex", "cl-fishr", "cl-coral", "cl-mmd"), "static priors"
    ),
}
# Experiments with the data for a figure.
EXAMPLES: dict[str, str] = {
    "naive-tailored": "reproduction/experiments/naive_vs_tailored.yaml",
    "memory": "reproduction/experiments/memory_50.yaml",
    "orders": "reproduction/experiments/orders.yaml",
    "sensitivity": "reproduction/experiments/sensitivity.yaml",
    "features": "reproduction/experiments/feature_space.yaml",
}
