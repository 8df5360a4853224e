"""Training time."""

from __future__ import annotations

from reproduction.compared import METHODS
from reproduction.finished_runs import rows_of
from reproduction.formatting import markdown
from reproduction.paper.scores import paper_numbers


def runtime_section() -> str:
    """Training time and its multiple of fine-tuning's, beside the paper's."""
    frame = rows_of("all_orders", "rotated-mnist")
    ours = frame.groupby("method")["seconds_of_training"].mean()
    paper = {
        name: mean
        for (name, variant, dataset), (mean, _) in paper_numbers("runtime").items()
        if dataset == "rotated-mnist" and not variant
    }
    rows = [
        [
            f"`{name}`",
            f"{ours[name]:.0f}",
            f"{paper[name]:.1f}" if name in paper else "-",
            f"{ours[name] / ours['finetune']:.2f}",
            f"{paper[name] / paper['finetune']:.2f}" if name in paper else "-",
        ]
        for name in METHODS
        if name in ours and (name in paper or name == "er")
    ]
    header = ["method", "ours, seconds", "paper, minutes", "ours / finetune", "paper / finetune"]
    return markdown(header, rows)
