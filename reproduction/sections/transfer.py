"""Backward transfer."""

from __future__ import annotations

from statistics import median

from reproduction.arithmetic import Scores, enough, means, scores, summary_of
from reproduction.compared import BENCHMARKS, METHODS
from reproduction.finished_runs import rows_of, table
from reproduction.formatting import markdown
from reproduction.paper.scores import paper_numbers, papers_scores


def transfer_section() -> str:
    """Backward transfer beside the paper's, and the gain by learning each source."""
    theirs = {
        key: mean for key, (mean, _) in paper_numbers("backward_transfer").items() if not key[1]
    }
    positive = sum(mean > 0 for mean in theirs.values())
    plain = [mean for (name, _, _), mean in theirs.items() if name == "finetune"]
    rows = []
    for benchmark in BENCHMARKS:
        frame = rows_of("all_orders", benchmark)
        transfers, gains = (
            enough(scores(frame, column)) for column in ("backward_transfer", "gain_by_learning")
        )
        paper = papers_scores(benchmark, "backward_transfer")
        for name in METHODS:
            if name not in paper or name not in transfers or name not in gains:
                continue
            rows.append(
                [
                    benchmark,
                    f"`{name}`",
                    f"{paper[name][0]:+.1f} ± {paper[name][1]:.1f}",
                    ranged(transfers[name]),
                    ranged(gains[name]),
                ]
            )
    summary = (
        f"In the paper, {positive} of {len(theirs)} values are positive, including fine-tuning's "
        f"({min(plain):+.1f} to {max(plain):+.1f}).\n\n"
    )
    header = ["data set", "method", "paper", "backward transfer", "final minus before learning"]
    return summary + markdown(header, rows) + "\n" + transfer_errors()


def ranged(runs: Scores) -> str:
    """The mean, and those of the worst and the best last source."""
    summary = summary_of(runs)
    worst, best = summary.values[summary.worst], summary.values[summary.best]
    return f"{summary.mean:+.1f} ({worst:+.1f} to {best:+.1f})"


def transfer_errors() -> str:
    """Standard errors over seeds: the paper's, and ours in a single order."""
    paper = papers_scores("rotated-mnist", "backward_transfer")
    fitted = table("fitted_order")
    theirs = median(error for _, error in paper.values())
    transfer, gain = (
        median(error for name, (_, error) in means(fitted, column).items() if name in paper)
        for column in ("backward_transfer", "gain_by_learning")
    )
    return (
        "The standard errors over three seeds are informative too. On rotated-mnist, the median of "
        f"the paper's is {theirs:.1f} points. The median of ours, in a single order (experiment "
        f"`fitted_order`), is {transfer:.1f} for backward transfer and {gain:.1f} for the last "
        "column.\n"
    )
