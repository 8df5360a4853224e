"""docs/recommended.md: the recommended method beside others, over orders and targets.

It is made from recommended-head.md and from the table of the experiment `recommended` alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from farshore.methods import METHODS
from reproduction import DOCS
from reproduction.arithmetic import (
    Difference,
    Scores,
    Unit,
    difference,
    enough,
    mean,
    names,
    scores,
    summary_of,
    unit_of,
)
from reproduction.finished_runs import rows_of
from reproduction.formatting import filled, interval, markdown, over, several

PAGE = DOCS / "recommended.md"
HEAD = Path(__file__).parent / "recommended-head.md"
BENCHMARKS = ("covertype", "heart-hospitals", "rotated-digits", "rotated-mnist", "wm811k")
UNRANKED = ("joint", "majority")
FIELDS = METHODS.get("best").Settings.model_fields
USUAL = {name: FIELDS[name].default for name in ("evenness", "members")}
NAMED = {"wm811k": "wm811k (macro F1)"}


def variant(settings: Mapping[str, Any]) -> str | None:
    """What these settings of `best` change; None for the defaults."""
    if settings.get("members", USUAL["members"]) != USUAL["members"]:
        return f"with `{settings['members'].partition('+')[0]}`"
    value = settings.get("evenness", USUAL["evenness"])
    return None if value == USUAL["evenness"] else f"λ = {value:g}"


def labelled(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs; each variant of `best` has a name of its own."""
    variants = [variant(json.loads(text)) for text in frame["settings"]]
    return frame.assign(
        method=[each or name for name, each in zip(frame["method"], variants, strict=True)]
    )


def measured(benchmark: str) -> dict[str, Scores]:
    """Scores by method on a data set, of the methods that ran in enough units."""
    return enough(scores(labelled(rows_of("recommended", benchmark))))


def benchmarks() -> list[str]:
    """The data sets on which `best` has been run."""
    return [name for name in BENCHMARKS if {"best", "er"} <= set(measured(name))]


def is_committee(name: str) -> bool:
    """Whether this is a variant of `best`."""
    return name.startswith(("λ", "with "))


def first(by_method: Mapping[str, Scores]) -> str:
    """The ranked method with the highest mean, `best` and the other committees left out."""
    rivals = [
        name for name in by_method if name not in (*UNRANKED, "best") and not is_committee(name)
    ]
    return max(rivals, key=lambda name: mean(by_method[name]))


def against(by_method: Mapping[str, Scores], one: str, other: str) -> Difference:
    """The paired difference of two methods."""
    return difference(by_method[one], by_method[other])


def leads(gap: Difference) -> bool:
    """Whether the first method is ahead, or its interval reaches the other."""
    return gap.mean >= 0 or not gap.certain


def summary_section() -> str:
    """One row per data set: best beside its strongest rival and er."""
    rows = []
    for benchmark in benchmarks():
        by_method = measured(benchmark)
        rival = first(by_method)
        to_rival, to_er = against(by_method, "best", rival), against(by_method, "best", "er")
        rows.append(
            [
                NAMED.get(benchmark, benchmark),
                several(to_er.units, str(to_er.unit)),
                f"{mean(by_method['best']):.1f}",
                f"{mean(by_method['er']):.1f}",
                interval(to_er),
                f"`{rival}` {mean(by_method[rival]):.1f}",
                interval(to_rival),
            ]
        )
    header = [
        "data set",
        "over",
        "`best`",
        "`er`",
        "`best` minus `er` [95%]",
        "strongest other method",
        "`best` minus it [95%]",
    ]
    return markdown(header, rows)


def sentences() -> str:
    """The summary in words, made from the numbers."""
    known = benchmarks()
    level = [
        name for name in known if leads(against(measured(name), "best", first(measured(name))))
    ]
    behind = [name for name in known if name not in level]
    gains = {name: against(measured(name), "best", "er") for name in known}
    better = [name for name, gain in gains.items() if gain.certain and gain.mean > 0]
    worse = [name for name, gain in gains.items() if gain.mean < 0]
    lines = [
        f"`best` is first, or not clearly behind the first, on {len(level)} of {len(known)} data "
        f"sets. It is clearly ahead of `er` on {len(better)} of them."
    ]
    for name in behind:
        by_method = measured(name)
        rival = first(by_method)
        gap = -against(by_method, "best", rival).mean
        lines.append(f"On {name} it loses to `{rival}` by {gap:.1f} points.")
    missing = [name for name in BENCHMARKS if name not in known]
    if missing:
        lines.append(f"It has not been run on {' and '.join(missing)} yet.")
    for name in worse:
        lines.append(f"On {name} it is {-gains[name].mean:.1f} points behind `er`.")
    return " ".join(lines)


def committees_section() -> str:
    """The variants of `best`, and the choice among them without each data set in turn."""
    known = benchmarks()
    gains: dict[str, dict[str, Difference]] = {}
    for benchmark in known:
        by_method = measured(benchmark)
        for name in by_method:
            if name == "best" or is_committee(name):
                label = f"`best` (λ = {USUAL['evenness']:g})" if name == "best" else name
                gains.setdefault(label, {})[benchmark] = against(by_method, name, "er")
    complete = {label: each for label, each in gains.items() if len(each) == len(known)}
    if len(complete) < 2:
        return "Other variants have not been run on all of these data sets yet."
    rows = []
    for benchmark in known:
        others = [name for name in known if name != benchmark]
        chosen = max(
            complete,
            key=lambda label: sum(complete[label][name].mean for name in others),
        )
        rows.append(
            [
                benchmark,
                *(interval(complete[label][benchmark]) for label in complete),
                chosen,
                interval(complete[chosen][benchmark]),
            ]
        )
    header = [
        "data set",
        *(f"{label}: minus `er` [95%]" for label in complete),
        "chosen without it",
        "minus `er`",
    ]
    return markdown(header, rows)


def remark(name: str, by_method: Mapping[str, Scores]) -> str:
    """What a reader of a row must know: no rank, or fewer orders or targets than er."""
    known = [{place[1:4] for place in by_method[each]} for each in (name, "er")]
    ran, usual = map(len, known)
    fewer = f" (in {ran} of {usual} orders)" if ran < usual else ""
    return (" (reference)" if name in UNRANKED else "") + fewer


def tables_section() -> str:
    """Every method on every data set."""
    sections = []
    for benchmark in BENCHMARKS:
        by_method = {
            name: runs for name, runs in measured(benchmark).items() if not is_committee(name)
        }
        if "er" not in by_method:
            continue
        rows = []
        for name in sorted(by_method, key=lambda name: -mean(by_method[name])):
            rows.append(
                [
                    f"`{name}`" + remark(name, by_method),
                    *over(summary_of(by_method[name])),
                    interval(against(by_method, name, "er")) if name != "er" else "-",
                    interval(against(by_method, name, "best"))
                    if name != "best" and "best" in by_method
                    else "-",
                ]
            )
        er = by_method["er"]
        unit = unit_of(er)
        header = [
            "method",
            f"mean ± standard error over {unit}s",
            f"worst {unit}",
            "minus `er` [95%]",
            "minus `best` [95%]",
        ]
        levels = dict.fromkeys([unit, Unit.ORDER, Unit.SEED])
        design = ", ".join(several(len(names(er, level)), str(level)) for level in levels)
        title = f"### {NAMED.get(benchmark, benchmark)}: {design}"
        sections.append(f"{title}\n\n" + markdown(header, rows))
    return "\n".join(sections)


def text() -> str:
    """The whole page."""
    sections = {
        "summary": summary_section,
        "sentences": sentences,
        "committees": committees_section,
        "tables": tables_section,
    }
    return filled(HEAD, sections)
