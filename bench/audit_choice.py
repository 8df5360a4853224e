"""Is the method that an audit recommends as good as the best one in hindsight?

    farshore audit heart-hospitals; farshore audit covertype; farshore audit covertype-zones
    python bench/audit_choice.py runs/audit-*.json

Two questions, each answered by the paired difference over sites from the candidate with the highest
mean: how good is the recommended method, and how good is the rule itself, when the method scored at
a site is chosen without that site. The first looks at the sites of the choice; the second does not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from farshore.results.summary import Difference, Unit, difference
from farshore.tasks.metrics import METRICS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="JSON files that audits have written")
    print(
        "| data | sites | recommended | best in hindsight | recommended minus best | "
        "chosen without the site | minus best |"
    )
    print("|---|---|---|---|---|---|---|")
    for file in parser.parse_args().files:
        print(line(json.loads(file.read_text())))


def line(audit: Mapping[str, dict]) -> str:
    """One row of the table."""
    ranked = {each["method"]: each for each in audit["methods"] if each["rank"] is not None}
    best = max(ranked, key=lambda name: ranked[name]["mean"])
    chosen = audit["choice"]["method"]
    of_best = ranked[best]["by_site"]
    by_rule = audit["choice"]["without"]
    cells = [
        str(audit["title"]),
        str(len(of_best)),
        f"{chosen} {100 * ranked[chosen]['mean']:.1f}",
        f"{best} {100 * ranked[best]['mean']:.1f}",
        words(minus(ranked[chosen]["by_site"], of_best)),
        ", ".join(
            f"{name} ({list(by_rule.values()).count(name)})" for name in sorted({*by_rule.values()})
        ),
        words(minus(audit["scores"], of_best)),
    ]
    return "| " + " | ".join(cells) + " |"


def minus(first: Mapping[str, float], second: Mapping[str, float]) -> Difference:
    """The paired difference over sites."""
    places = [
        {("", site, "", "", 0): score for site, score in scores.items()}
        for scores in (first, second)
    ]
    paired = difference(*places, Unit.TARGET, METRICS["accuracy"])
    assert paired is not None
    return paired


def words(paired: Difference) -> str:
    """The difference with its standard error, and whether it is within one."""
    error = paired.error or 0.0
    verdict = "yes" if abs(paired.mean) <= error or paired.mean >= 0 else "no"
    return f"{100 * paired.mean:+.1f} ± {100 * error:.1f}, within one error: {verdict}"


if __name__ == "__main__":
    main()
