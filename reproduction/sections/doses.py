"""Does invariance help? The study of doses, analysed as experiments/dose.yaml said before its runs.

A corner is a pair of alignment and distillation. A cell is a notion with a dose in a corner; `er`
and `er-kd` are the cells without penalty and alignment. A unit counts in a corner once every cell
of the corner has all of its runs there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy import stats

from farshore.results import summary
from reproduction.arithmetic import UNLIMITED, Difference, Place, Scores, Unit, scores
from reproduction.compared import TAILORED
from reproduction.finished_runs import SCORE, table
from reproduction.formatting import interval, listed, markdown, several, signed
from reproduction.sections.missing import provenance

# From the smallest to the largest; a mask has temperatures instead of ratios, and a hard form.
DOSES = ("none", "default", "0.1", "0.5", "1", "sum")
TEMPERATURES = {1e6: "none", 0.3: "0.1", 0.1: "0.5", 0.03: "1"}
BALANCED_DOSES = ("0.1", "0.5", "1")
# Alignment and distillation.
Corner = tuple[int, float]
PAPERS, CONTROLS = (1, 0.0), (0, 0.5)
CORNERS: dict[Corner, str] = {
    PAPERS: "alignment (the paper's method)",
    CONTROLS: "distillation (`er-kd` with a penalty)",
    (1, 0.5): "both",
    (0, 0.0): "neither",
}
CONTROL = "er-kd"
# Where `sum` would be the default: penalties that are printed without a sum.
UNPRINTED = ("cl-vrex", "cl-mmd")
VALIDATION, UNSEEN = "source_validation_score", "unseen_source_score"
PROBES = ("domain_probe", "domain_probe_within_class")
COLUMNS = (SCORE, VALIDATION, UNSEEN, "follows_colour", *PROBES)
# A rank correlation over fewer runs of a unit says nothing.
FEWEST_RUNS = 10


@dataclass(frozen=True)
class Design:
    """What dose.yaml plans on a data set: corners, doses, the unit and the runs of a cell in it."""

    unit: Unit
    units: int
    corners: tuple[Corner, ...]
    doses: tuple[str, ...] = DOSES
    seeds: int = 3

    def cells(self, notion: str, corner: Corner) -> tuple[str, ...]:
        """The doses in a corner."""
        unprinted = notion in UNPRINTED and not corner[0]
        return tuple(dose for dose in self.doses if not (dose == "sum" and unprinted))


LAST, TARGET = Unit.LAST_SOURCE, Unit.TARGET
DESIGN = {
    "coloured-digits": Design(LAST, 4, tuple(CORNERS)),
    "heart-hospitals": Design(TARGET, 4, tuple(CORNERS)),
    "rotated-digits": Design(LAST, 4, (PAPERS, CONTROLS)),
    "covertype": Design(LAST, 3, (PAPERS, CONTROLS), ("none", "default", "0.5", "sum")),
    "covertype-zones": Design(TARGET, 7, (PAPERS,), ("default", "0.5"), seeds=1),
}


def cell(method: str, settings: Mapping[str, Any]) -> tuple[Corner, str]:
    """Corner and dose of a run."""
    if method in ("er", CONTROL):
        return (0, 0.5 * (method == CONTROL)), "none"
    corner = int(settings.get("alignment_weight") != 0), settings.get("distillation_weight", 0.0)
    if method == "cl-andmask":
        dose = "sum" if "mask" in settings else "default"
        return corner, TEMPERATURES.get(settings.get("mask_temperature", 0), dose)
    if settings.get("penalty_weight") == 0:
        return corner, "none"
    if "penalty_ratio" in settings:
        return corner, f"{settings['penalty_ratio']:g}"
    return corner, "sum" if any(name.endswith("_reduction") for name in settings) else "default"


# The scores of a cell by column, in percent.
Cell = Mapping[str, Scores]


@cache
def cells(benchmark: str) -> dict[tuple[str, Corner, str], Cell]:
    """The scores of every cell with runs, by method, corner and dose."""
    frame = table("dose")
    frame = frame[frame["benchmark"] == benchmark]
    return {
        (str(method), *cell(str(method), json.loads(str(settings)))): {
            column: scores(part, column).get(str(method), {}) for column in COLUMNS
        }
        for (method, settings), part in frame.groupby(["method", "settings"])
    }


def planned_cells(benchmark: str, notion: str, corner: Corner) -> dict[str, Cell]:
    """The cells of a corner by dose with what has run of them."""
    ran = cells(benchmark)
    stand_in = {(0, 0.0): "er", CONTROLS: CONTROL}.get(corner, notion)
    return {
        dose: ran.get((stand_in if dose == "none" else notion, corner, dose), {})
        for dose in DESIGN[benchmark].cells(notion, corner)
    }


def finished_cells(benchmark: str, notion: str, corner: Corner) -> dict[str, Cell]:
    """The cells of a corner that have all of their runs, whatever the others have."""
    design = DESIGN[benchmark]
    found = planned_cells(benchmark, notion, corner).items()
    return {
        dose: each
        for dose, each in found
        if len(each.get(SCORE, {})) == design.units * design.seeds
    }


@cache
def doses_of(benchmark: str, notion: str, corner: Corner) -> dict[str, Cell]:
    """The cells of a corner by dose, at the units where all of them have all of their runs.

    Empty if there is no such unit.
    """
    design, found = DESIGN[benchmark], planned_cells(benchmark, notion, corner)
    level = design.unit.level
    runs = [[place[level] for place in each.get(SCORE, {})] for each in found.values()]
    units = {unit for unit in runs[0] if all(of.count(unit) == design.seeds for of in runs)}

    def complete(values: Scores) -> Scores:
        return {place: value for place, value in values.items() if place[level] in units}

    if not units:
        return {}
    return {dose: {name: complete(of) for name, of in each.items()} for dose, each in found.items()}


def at_unit(runs: Scores, benchmark: str) -> dict[str, float]:
    """The mean over orders and seeds by unit."""
    return summary.by_unit(runs, DESIGN[benchmark].unit)


def chosen_doses(by_dose: Mapping[str, Cell], benchmark: str, rule: str) -> dict[str, str]:
    """By unit the dose with the best score on sources; ties go to the smaller dose."""
    means = {dose: at_unit(each[rule], benchmark) for dose, each in by_dose.items()}
    units = set.intersection(*(set(of_dose) for of_dose in means.values()))
    return {unit: max(means, key=lambda dose: means[dose][unit]) for unit in sorted(units)}


def chosen(by_dose: Mapping[str, Cell], benchmark: str, rule: str) -> Scores:
    """The target scores of the chosen doses."""
    level, picks = DESIGN[benchmark].unit.level, chosen_doses(by_dose, benchmark, rule)
    return {
        place: value
        for dose, each in by_dose.items()
        for place, value in each[SCORE].items()
        if picks.get(str(place[level])) == dose
    }


def gap(benchmark: str, first: Scores, second: Scores) -> Difference | None:
    """The paired difference over the units of a data set."""
    return summary.difference(first, second, DESIGN[benchmark].unit, UNLIMITED)


def control(benchmark: str) -> Scores:
    """The target scores of `er-kd`."""
    return cells(benchmark).get((CONTROL, CONTROLS, "none"), {}).get(SCORE, {})


def by_corner(benchmark: str, notion: str) -> Iterator[tuple[Corner, dict[str, Cell]]]:
    """The corners of a data set with what has run there."""
    for corner in DESIGN[benchmark].corners:
        if found := doses_of(benchmark, notion, corner):
            yield corner, found


@cache
def gain(benchmark: str, notion: str, rule: str = VALIDATION) -> Difference | None:
    """Question 1: chosen dose minus none at the same alignment and distillation, over corners.

    Only where all corners have run; a difference at a place is the mean over them.
    """
    parts = []
    for corner in DESIGN[benchmark].corners:
        by_dose = doses_of(benchmark, notion, corner)
        if "none" not in by_dose:
            return None
        picked = chosen(by_dose, benchmark, rule)
        without = by_dose["none"][SCORE]
        parts.append({place: score - without[place] for place, score in picked.items()})
    shared = [place for place in parts[0] if all(place in part for part in parts)]
    over = {place: sum(part[place] for part in parts) / len(parts) for place in shared}
    return gap(benchmark, over, dict.fromkeys(over, 0.0))


@cache
def ahead(benchmark: str, notion: str, rule: str = VALIDATION) -> Difference | None:
    """Question 2: the paper's method with its chosen dose minus `er-kd`."""
    by_dose = doses_of(benchmark, notion, PAPERS)
    return gap(benchmark, chosen(by_dose, benchmark, rule), control(benchmark)) if by_dose else None


def picked(by_dose: Mapping[str, Cell], benchmark: str, rule: str = VALIDATION) -> str:
    """The chosen doses in words, with the number of units where they differ."""
    found = list(chosen_doses(by_dose, benchmark, rule).values())
    counts = {dose: found.count(dose) for dose in DOSES if dose in found}
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{dose} ({count})" for dose, count in counts.items())


def questions_section() -> str:
    """Questions 1 and 2 by data set and notion, under both rules."""
    rows = [
        [
            benchmark,
            f"`{notion}`",
            *(counted(measure(benchmark, notion, rule)) for measure, rule in pairs),
        ]
        for pairs in [
            [(measure, rule) for measure in (gain, ahead) for rule in (VALIDATION, UNSEEN)]
        ]
        for benchmark in DESIGN
        for notion in TAILORED
        if any(measure(benchmark, notion) is not None for measure in (gain, ahead))
    ]
    second = "rule two"
    header = [
        "data set",
        "notion",
        "chosen dose minus none",
        second,
        f"the paper's method at its chosen dose minus `{CONTROL}`",
        second,
    ]
    return tabled(header, rows)


def tabled(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a sentence while nothing is there to be shown."""
    return markdown(header, rows) if rows else "Not yet: no corner has all of its runs.\n"


def counted(difference: Difference | None) -> str:
    """A difference with its interval and n."""
    if difference is None:
        return "-"
    return f"{interval(difference)}, {several(difference.units, str(difference.unit))}"


def corners_section() -> str:
    """Questions 1 and 2 by corner, with the doses that were chosen."""
    rows = []
    for benchmark in DESIGN:
        for notion in TAILORED:
            for corner, by_dose in by_corner(benchmark, notion):
                best = chosen(by_dose, benchmark, VALIDATION)
                none = by_dose.get("none", {}).get(SCORE, {})
                rows.append(
                    [
                        benchmark,
                        f"`{notion}`",
                        CORNERS[corner].partition(" (")[0],
                        picked(by_dose, benchmark),
                        counted(gap(benchmark, best, none)),
                        interval(gap(benchmark, best, control(benchmark))),
                        picked(by_dose, benchmark, UNSEEN),
                    ]
                )
    header = [
        "data set",
        "notion",
        "with",
        "chosen dose (units)",
        "minus none",
        f"minus `{CONTROL}`",
        "chosen by rule two",
    ]
    return tabled(header, rows)


def mean_at(runs: Scores, benchmark: str) -> float | None:
    """The mean over units."""
    found = summary.estimate(runs, DESIGN[benchmark].unit, UNLIMITED)
    return None if found is None else found.mean


def response_section(column: str = SCORE, benchmarks: Sequence[str] = tuple(DESIGN)) -> str:
    """Every cell that has all of its runs, with its mean over units."""
    rows = []
    for benchmark in benchmarks:
        for notion in TAILORED:
            for corner in DESIGN[benchmark].corners:
                by_dose = finished_cells(benchmark, notion, corner)
                if not set(by_dose) - {"none"}:
                    continue
                means = [
                    mean_at(by_dose[dose][column], benchmark) if dose in by_dose else None
                    for dose in DOSES
                ]
                rows.append(
                    [
                        benchmark,
                        f"`{notion}`",
                        CORNERS[corner].partition(" (")[0],
                        *("-" if mean is None else f"{mean:.1f}" for mean in means),
                    ]
                )
    return tabled(["data set", "notion", "with", *DOSES], rows)


def response(benchmark: str, notion: str) -> dict[str, float]:
    """The paper's method by dose: the mean score minus that of dose none."""
    by_dose = finished_cells(benchmark, notion, PAPERS)
    gaps = {
        dose: gap(benchmark, each[SCORE], by_dose["none"][SCORE])
        for dose, each in by_dose.items()
        if "none" in by_dose
    }
    return {dose: found.mean for dose, found in gaps.items() if found is not None}


def strength_section() -> str:
    """How strong the doses are that no ratio fixes: gradient ratios, and the share masked away."""
    frame = table("dose")
    kinds = [
        cell(method, json.loads(settings))
        for method, settings in zip(frame["method"], frame["settings"], strict=True)
    ]
    frame = frame.assign(corner=[corner for corner, _ in kinds], dose=[dose for _, dose in kinds])
    frame = frame[frame["corner"] == PAPERS]
    rows = []
    for benchmark in DESIGN:
        part = frame[frame["benchmark"] == benchmark]
        for notion in TAILORED:
            masked = notion == "cl-andmask"
            of_notion = part[part["method"] == notion].groupby("dose")
            medians = of_notion["masked_share" if masked else "penalty_dose"].median().dropna()
            shown = [dose for dose in medians.index if masked or dose not in BALANCED_DOSES]
            if shown:
                values = [f"{medians[dose]:.2g}" if dose in shown else "-" for dose in DOSES]
                rows.append([benchmark, f"`{notion}`", *values])
    return tabled(["data set", "notion", *DOSES], rows)


def colour_section() -> str:
    """The share of decisions that follow the colour on coloured-digits."""
    rows = []
    for name in ("er", CONTROL):
        for (method, _, _), found in cells("coloured-digits").items():
            share = mean_at(found["follows_colour"], "coloured-digits")
            if method == name and share is not None:
                rows.append(f"`{name}` {share:.1f}%")
    references = f"References: {listed(rows)}.\n\n" if len(rows) > 1 else ""
    return references + response_section("follows_colour", ["coloured-digits"])


@cache
def correlation(benchmark: str, notion: str, column: str) -> Difference | None:
    """Question 3: Spearman's correlation of a probe with the target's score, over a unit's runs.

    Over the runs of the finished corners; the mean over units, in hundredths.
    """
    runs: dict[str, dict[tuple[Any, ...], tuple[float, float]]] = {}
    level = DESIGN[benchmark].unit.level
    for corner, by_dose in by_corner(benchmark, notion):
        for dose, each in by_dose.items():
            for place, probe in each[column].items():
                pair = probe, each[SCORE][place]
                runs.setdefault(str(place[level]), {})[(corner, dose, *place)] = pair
    found: dict[Place, float] = {}
    for unit, pairs in runs.items():
        first, second = zip(*pairs.values(), strict=True)
        if len(pairs) >= FEWEST_RUNS and len(set(first)) > 1 and len(set(second)) > 1:
            parts = ["", "", "", "", 0]
            parts[level] = unit
            rho = float(stats.spearmanr(first, second).statistic)
            found[tuple(parts)] = 100 * rho  # type: ignore[index]
    return gap(benchmark, found, dict.fromkeys(found, 0.0)) if found else None


def rho(difference: Difference | None) -> str:
    """A mean correlation with its interval."""
    if difference is None:
        return "-"
    if difference.low is None or difference.high is None:
        return f"{difference.mean / 100:+.2f}"
    low, high = max(-1.0, difference.low / 100), min(1.0, difference.high / 100)
    return f"{difference.mean / 100:+.2f} [{low:+.2f}, {high:+.2f}]"


def correlations_section() -> str:
    """Question 3 by data set and notion."""
    rows = []
    for benchmark in DESIGN:
        for notion in TAILORED:
            found = [correlation(benchmark, notion, column) for column in PROBES]
            if found[0] is not None:
                units = several(found[0].units, str(found[0].unit))
                rows.append([benchmark, f"`{notion}`", units, *map(rho, found)])
    header = ["data set", "notion", "n", "probe of the domain", "probe within classes"]
    return tabled(header, rows)


def tally(found: Sequence[Difference | None]) -> tuple[int, int, int]:
    """How many have an interval, how many lie above zero, and how many below."""
    known = [each for each in found if each is not None and each.low is not None]
    certain = [each.mean > 0 for each in known if each.certain]
    return len(known), sum(certain), len(certain) - sum(certain)


def by_notion(measure: Callable[[str, str], Difference | None]) -> dict[str, tuple[int, int, int]]:
    """The tally of each notion over the data sets."""
    return {
        notion: tally([measure(benchmark, notion) for benchmark in DESIGN]) for notion in TAILORED
    }


def helping(measure: Callable[[str, str], Difference | None]) -> list[str]:
    """The notions that are certainly ahead on two data sets at least and behind on none."""
    counts = by_notion(measure).items()
    return [notion for notion, (_, above, below) in counts if above > 1 and not below]


def progress() -> tuple[int, int]:
    """Finished and planned runs of the study."""
    planned = 0
    for design in DESIGN.values():
        count = sum(
            len([dose for dose in design.cells(notion, corner) if corner[0] or dose != "none"])
            for notion in TAILORED
            for corner in design.corners
        )
        planned += (count + 2) * design.units * design.seeds
    return len(table("dose")), planned


def progress_section() -> str:
    """How much has run, with what, and what is missing."""
    finished, planned = progress()
    commits, place, seconds = provenance(table("dose"))
    behind = f"Code {commits}; {place}; {seconds} seconds of training a run (median)."
    if finished == planned:
        return f"All {planned:,} runs have finished. {behind}"
    runs = table("dose")["benchmark"].value_counts()
    by_data = ", ".join(f"{name} {int(runs.get(name, 0)):,}" for name in DESIGN)
    return (
        f"{finished:,} of {planned:,} runs have finished ({by_data}). A unit counts in a corner "
        "once all cells of the corner have run there. A cell is in the table of responses once it "
        f"has all of its runs. What is not in a table has not run. {behind}"
    )


def in_words(counts: tuple[int, int, int]) -> str:
    """A tally in words."""
    known, above, below = counts
    return f"certainly better in {above} and worse in {below} of {several(known, 'comparison')}"


def answer_section() -> str:
    """The short answer, in words that follow from the tables."""
    gains, leads = (by_notion(measure) for measure in (gain, ahead))
    first, second = (
        tuple(sum(column) for column in zip(*each.values(), strict=True)) for each in (gains, leads)
    )
    finished, planned = progress()
    missing = f" ({finished:,} of {planned:,} runs so far)" if finished < planned else ""
    link = "the [study of doses](reproduction/doses.md)"
    if not first[0] and not second[0]:
        return (
            f"**Not shown so far.** {link.capitalize()}, with the dose as a factor, is unfinished"
            f"{missing}: no comparison has three units yet. {shortcut()}"
        )
    return " ".join(
        [
            f"**{verdict(first, second)}** In {link}{missing}, the dose of each penalty or mask is "
            "chosen on the sources.",
            f"Against the same method without it: {in_words(first)}{average(gain)}.",
            f"The paper's methods at that dose against `{CONTROL}`: {in_words(second)}"
            f"{average(ahead)}.",
            f"By chance alone, one in forty would be certain on either side. {explained()}",
            shortcut(),
        ]
    )


def shortcut() -> str:
    """How many decisions follow the misleading colour, by method and dose."""
    data, column = "coloured-digits", "follows_colour"
    references = {
        name: mean_at(cells(data).get((name, corner, "none"), {}).get(column, {}), data)
        for name, corner in (("er", (0, 0.0)), (CONTROL, CONTROLS))
    }
    shares = {
        (notion, dose): share
        for notion in TAILORED
        for dose, found in finished_cells(data, notion, PAPERS).items()
        if dose != "none" and (share := mean_at(found[column], data)) is not None
    }
    if not shares or None in references.values():
        return ""
    low, high = (pick(shares, key=lambda cell: shares[cell]) for pick in (min, max))
    others = " and ".join(f"{share:.1f}% of `{name}`'s" for name, share in references.items())
    return (
        f"Where the colour misleads (coloured-digits), {others} decisions follow it; of the "
        f"paper's methods, between {shares[low]:.1f}% (`{low[0]}`, dose {low[1]}) and "
        f"{shares[high]:.1f}% (`{high[0]}`, dose {high[1]})."
    )


def average(measure: Callable[[str, str], Difference | None]) -> str:
    """The mean of the differences with an interval."""
    found = [measure(benchmark, notion) for benchmark in DESIGN for notion in TAILORED]
    known = [each.mean for each in found if each is not None and each.low is not None]
    return f", on average {signed(sum(known) / len(known))} points" if known else ""


def verdict(first: Sequence[int], second: Sequence[int]) -> str:
    """The answer in a few words; a notion counts by the rule of `helping`."""
    notions = [f"`{name}`" for name in helping(gain)]
    words = listed(notions) if len(notions) > 1 else "".join(notions)
    if notions:
        beyond = set(helping(gain)) & set(helping(ahead))
        more = f"also beyond `{CONTROL}`" if beyond else f"but not certainly beyond `{CONTROL}`"
        return f"Yes, for {words}, {more}."
    if first[1] <= first[2] and second[1] <= second[2]:
        return "Not shown: certain gains are not more frequent than certain losses."
    return "Not shown: no notion is certainly better on two data sets and worse on none."


def explained() -> str:
    """Whether scores rise where the representation tells less about the domain."""
    found = [correlation(data, notion, PROBES[0]) for data in DESIGN for notion in TAILORED]
    known, above, below = tally(found)
    if not known:
        return "The paper's explanation cannot be judged yet."
    means = [each.mean / 100 for each in found if each is not None and each.low is not None]
    rule = "supports" if below > known / 2 else "does not support"
    return (
        f"The paper's explanation is that such representations tell less about the domain. This "
        f"{rule} it: the correlation of a domain probe with the target's score is certainly "
        f"negative in {below} and certainly positive in {above} of {known} cases (mean ρ "
        f"{sum(means) / len(means):+.2f})."
    )


def better_on_sources(benchmark: str, notion: str, dose: str) -> bool:
    """Whether a dose beats the default of the paper's method by the first rule."""
    by_dose = doses_of(benchmark, notion, PAPERS)
    if dose not in by_dose or "default" not in by_dose:
        return False
    ours, usual = (mean_at(by_dose[name][VALIDATION], benchmark) for name in (dose, "default"))
    return ours is not None and usual is not None and ours > usual


def defaults_section() -> str:
    """The rule for a new default, and what it says of each notion and balanced dose."""
    rows = []
    for notion in TAILORED:
        for dose in BALANCED_DOSES:
            better = [data for data in DESIGN if better_on_sources(data, notion, dose)]
            found = [
                gap(data, by_dose[dose][SCORE], by_dose["default"][SCORE])
                for data in DESIGN
                if {dose, "default"} <= (by_dose := doses_of(data, notion, PAPERS)).keys()
            ]
            known, above, below = tally(found)
            fulfilled = len(better) >= 4 and above >= 2 and not below
            if known:
                counts = [f"{count} of {known}" for count in (len(better), above, below)]
                rows.append([f"`{notion}`", dose, *counts, "yes" if fulfilled else "no"])
    header = ["notion", "dose", "better on sources", "certainly better", "certainly worse", "rule"]
    return tabled(header, rows)
