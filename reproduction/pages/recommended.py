"""docs/recommended.md: the recommended method beside its members and what it has to beat.

It is made from recommended-head.md, the table of the experiment `auto`, and what other libraries do
on the same rows (anchors/outside.csv).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pandas as pd

from reproduction import ANCHORS, DOCS
from reproduction.arithmetic import (
    Difference,
    Scores,
    difference,
    mean,
    names,
    scores,
    unit_of,
)
from reproduction.finished_runs import rows_of
from reproduction.formatting import filled, interval, listed, markdown, several, signed

PAGE = DOCS / "recommended.md"
HEAD = Path(__file__).parent / "recommended-head.md"
OUTSIDE = ANCHORS / "outside.csv"
BENCHMARKS = (
    "heart-hospitals",
    "covertype",
    "covertype-natural",
    "covertype-zones",
    "elec2",
    "diabetes130",
    "rotated-digits",
    "coloured-digits",
)
SLOW = "er-kd(teacher=ema)"
MEMBERS = ("er", SLOW, "ridge", "slda", "trees")
FURTHER = ("er-kd", "cl-mix", "groupdro")
TOGETHER = ("joint", "joint-linear", "joint-forest", "joint-trees")
MAJORITY = "majority"
# What `auto` has to reach to be the default, in points; written down before the runs.
MEAN_REGRET, WORST_REGRET, BEHIND_ER = 1.0, 3.0, 2.0


def labelled(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs; `er-kd` with a slow teacher has a name of its own."""
    slow = [json.loads(text).get("teacher") == "ema" for text in frame["settings"]]
    return frame.assign(
        method=[SLOW if each else name for name, each in zip(frame["method"], slow, strict=True)]
    )


@cache
def measured(benchmark: str) -> dict[str, Scores]:
    """Scores by method on a data set."""
    return scores(labelled(rows_of("auto", benchmark)))


def benchmarks() -> list[str]:
    """The data sets on which `auto` and all its members have been run."""
    return [name for name in BENCHMARKS if {"auto", *MEMBERS[:4]} <= set(measured(name))]


def strongest(by_method: Mapping[str, Scores], among: tuple[str, ...]) -> str:
    """The one of these with the highest mean."""
    return max((name for name in among if name in by_method), key=lambda n: mean(by_method[n]))


def regret(benchmark: str) -> Difference:
    """`auto` minus the best single member in hindsight."""
    by_method = measured(benchmark)
    return difference(by_method["auto"], by_method[strongest(by_method, MEMBERS)])


def gain(benchmark: str) -> Difference:
    """`auto` minus `er`."""
    return difference(measured(benchmark)["auto"], measured(benchmark)["er"])


def holds() -> bool:
    """Whether `auto` reaches what it has to."""
    regrets = [regret(name).mean for name in benchmarks()]
    return (
        sum(regrets) / len(regrets) >= -MEAN_REGRET
        and min(regrets) >= -WORST_REGRET
        and min(gain(name).mean for name in benchmarks()) >= -BEHIND_ER
    )


def ranks() -> dict[str, float]:
    """The mean rank of `auto` and of every method that ran on all data sets."""
    known = benchmarks()
    common = [
        name
        for name in ("auto", *MEMBERS, *FURTHER)
        if all(name in measured(benchmark) for benchmark in known)
    ]
    by_benchmark = [
        pd.Series({name: -mean(measured(benchmark)[name]) for name in common}).rank()
        for benchmark in known
    ]
    return dict(sorted((sum(by_benchmark) / len(known)).items(), key=lambda each: each[1]))


@cache
def outside() -> pd.DataFrame:
    """The accuracy of each library on each data set: seeds, then targets count the same."""
    if not OUTSIDE.is_file():
        return pd.DataFrame()
    rows = pd.read_csv(OUTSIDE, dtype={"target": str})
    # A mean over some of the targets stands beside no mean over all of them.
    complete = [
        name
        for name, of in rows.groupby("benchmark")
        if set(of["target"]) >= {place[1] for place in measured(str(name)).get("auto", {})}
    ]
    rows = rows[rows["benchmark"].isin(complete)]
    by_target = rows.groupby(["benchmark", "model", "target"])["accuracy"].mean()
    return by_target.groupby(["benchmark", "model"]).mean().unstack("model")


def summary_section() -> str:
    """One row per data set: `auto`, its best member, `er`, and models of all data at once."""
    libraries = list(outside().columns)
    rows = []
    for benchmark in benchmarks():
        by_method, lost, won = measured(benchmark), regret(benchmark), gain(benchmark)
        member = strongest(by_method, MEMBERS)
        together = strongest(by_method, TOGETHER)
        elsewhere = outside().loc[benchmark] if benchmark in outside().index else {}
        rows.append(
            [
                benchmark,
                several(lost.units, str(lost.unit)),
                f"{mean(by_method['auto']):.1f}",
                f"`{member}` {mean(by_method[member]):.1f}",
                interval(lost),
                interval(won),
                f"`{together}` {mean(by_method[together]):.1f}",
                *(f"{elsewhere[each]:.1f}" if each in elsewhere else "-" for each in libraries),
                f"{mean(by_method[MAJORITY]):.1f}",
            ]
        )
    header = [
        "data set",
        "unit",
        "`auto`",
        "best member in hindsight",
        "`auto` minus it [95%]",
        "`auto` minus `er` [95%]",
        "best of all data at once",
        *(f"{each}, all data at once" for each in libraries),
        "most frequent class",
    ]
    return markdown(header, rows)


def leader() -> str:
    """The single method with the best mean rank: a committee is no single method."""
    return next(name for name in ranks() if name != "auto")


def misses() -> str:
    """What `auto` does not reach, each with its bound."""
    known = benchmarks()
    regrets = {name: regret(name).mean for name in known}
    gains = {name: gain(name).mean for name in known}
    worst, least = min(regrets, key=lambda n: regrets[n]), min(gains, key=lambda n: gains[n])
    average = sum(regrets.values()) / len(regrets)
    said = []
    if average < -MEAN_REGRET:
        said.append(f"a mean regret of {-average:.1f} points (allowed: {MEAN_REGRET:g})")
    if regrets[worst] < -WORST_REGRET:
        said.append(f"{-regrets[worst]:.1f} on {worst} (allowed: {WORST_REGRET:g})")
    if gains[least] < -BEHIND_ER:
        said.append(f"{-gains[least]:.1f} behind `er` on {least} (allowed: {BEHIND_ER:g})")
    return listed(said)


def sentences() -> str:
    """The summary in words, made from the numbers."""
    known = benchmarks()
    regrets = {name: regret(name).mean for name in known}
    gains = {name: gain(name).mean for name in known}
    worst, least = min(regrets, key=lambda n: regrets[n]), min(gains, key=lambda n: gains[n])
    ranked, single = ranks(), leader()
    missing = [name for name in BENCHMARKS if name not in known]
    if missing:
        reached = (
            "The design is not finished, so nothing is decided, and the default stays as it was. "
            f"Not run yet: {', '.join(missing)}."
        )
    elif holds():
        reached = "It reaches what was asked of it before the runs, and is the default."
    else:
        reached = (
            f"It misses what was asked of it before the runs: {misses()}. So, by the rule of the "
            f"design, the default is `{single}`, the single method with the best mean rank."
        )
    ahead = [
        name
        for name in known
        if mean(measured(name)["auto"]) > mean(measured(name)[strongest(measured(name), TOGETHER)])
    ]
    beside = f" ({listed(ahead)})" if len(ahead) > 1 else f" ({ahead[0]})" if ahead else ""
    return (
        f"Over {several(len(known), 'data set')}, `auto` is on average "
        f"{signed(sum(regrets.values()) / len(regrets))} points from the best single member in "
        f"hindsight (worst: {signed(regrets[worst])} on {worst}), and never more than "
        f"{max(0.0, -gains[least]):.1f} behind `er` (least: {signed(gains[least])} on {least}). "
        f"{reached} Mean ranks among methods that ran everywhere: "
        f"{', '.join(f'`{name}` {value:.1f}' for name, value in ranked.items())}. `auto`, which "
        "sees one site at a time, is ahead of the best of our models of all data at once on "
        f"{len(ahead)} of {len(known)}{beside}."
    )


def everything_section() -> str:
    """Every method on every data set, by mean rank."""
    known, ranked = benchmarks(), ranks()
    rest = [*(name for name in (*MEMBERS, *FURTHER) if name not in ranked), *TOGETHER, MAJORITY]
    rows = []
    for name in [*ranked, *rest]:
        found = [measured(benchmark).get(name) for benchmark in known]
        cells = [f"{mean(each):.1f}" if each else "-" for each in found]
        rows.append([f"`{name}`", f"{ranked[name]:.1f}" if name in ranked else "-", *cells])
    return markdown(["method", "mean rank", *known], rows)


def design_section() -> str:
    """What each data set was run with."""
    parts = []
    for benchmark in benchmarks():
        runs = measured(benchmark)["auto"]
        unit = unit_of(runs)
        seeds = f"{len({place[-1] for place in runs})} seeds"
        units = several(len(names(runs, unit)), str(unit))
        parts.append(f"{benchmark} {units if units == seeds else f'{units} x {seeds}'}")
    return "; ".join(parts) + "."


def text() -> str:
    """The whole page."""
    sections = {
        "summary": summary_section,
        "sentences": sentences,
        "design": design_section,
        "everything": everything_section,
    }
    return filled(HEAD, sections)
