"""docs/reproduction.md, one screen of verdicts, and docs/reproduction/, the numbers behind them.

They are made from reproduction-head.md, heads/ and the tables of finished runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from reproduction import DOCS
from reproduction.compared import BENCHMARKS, PENALISED
from reproduction.formatting import filled
from reproduction.sections.claims import claims_section, verdicts_section
from reproduction.sections.covertype import (
    cope_section,
    methods_table,
    orders_table,
    search_section,
    second_section,
    share_section,
)
from reproduction.sections.doses import (
    answer_section as doses_section,
)
from reproduction.sections.doses import (
    colour_section,
    corners_section,
    correlations_section,
    defaults_section,
    progress_section,
    questions_section,
    response_section,
    strength_section,
)
from reproduction.sections.features import features_section
from reproduction.sections.frozen import frozen_section
from reproduction.sections.images import images_section
from reproduction.sections.invariance import answer_section, references_section
from reproduction.sections.missing import missing_section
from reproduction.sections.orders import (
    ablations_section,
    orders_section,
    readings_section,
    sources_section,
    variance_section,
)
from reproduction.sections.paper_claims import gains_section, leads_section
from reproduction.sections.paper_tables import tables_section
from reproduction.sections.rotated_mnist import (
    bound_section,
    column_section,
    last_section,
    searched_section,
    suspects_section,
)
from reproduction.sections.run_time import runtime_section
from reproduction.sections.search import ablated_section, protocol_section
from reproduction.sections.sensitivity import sensitivity_section
from reproduction.sections.transfer import transfer_section

PAGE = DOCS / "reproduction.md"
HEAD = Path(__file__).parent / "reproduction-head.md"
HEADS = Path(__file__).parent / "heads"
# The data sets of the search with drawn orders.
SEARCHED = (*BENCHMARKS, "covertype-natural")
# The pages of docs/reproduction/, each with what replaces the marks of its head.
DETAILS: dict[str, dict[str, Callable[[], str]]] = {
    "claims": {
        "leads": leads_section,
        "claims": claims_section,
        "in domain": sources_section,
    },
    "orders": {
        "orders rotated-mnist": lambda: orders_section("rotated-mnist"),
        "orders covertype": lambda: orders_section("covertype"),
        "variance": variance_section,
    },
    "rotated-mnist": {
        "column": column_section,
        "last": last_section,
        "searched": searched_section,
        "bound": bound_section,
        "suspects": suspects_section,
    },
    "covertype": {
        "share": share_section,
        "orders of covertype": orders_table,
        "methods on covertype": methods_table,
        "search on covertype": search_section,
        "second covertype": second_section,
        "cope": cope_section,
    },
    "doses": {
        "progress": progress_section,
        "questions": questions_section,
        "corners": corners_section,
        "response": response_section,
        "strength": strength_section,
        "colour": colour_section,
        "correlations": correlations_section,
        "defaults": defaults_section,
    },
    "readings": {"readings": readings_section},
    "ablations": {"gains": gains_section, "ablations": ablations_section},
    "sensitivity": {
        "sensitivity": lambda: "\n".join(
            sensitivity_section(benchmark, PENALISED) for benchmark in BENCHMARKS
        )
    },
    "search": {
        "protocol": lambda: "\n".join(map(protocol_section, SEARCHED)),
        "protocol ablated": lambda: ablated_section("covertype"),
    },
    "images": {"images": images_section},
    "frozen": {"frozen": frozen_section},
    "features": {"features": features_section},
    "transfer": {"transfer": transfer_section},
    "run-time": {"runtime": runtime_section},
    "unclear": {},
    "missing": {"missing": missing_section},
}


def text() -> str:
    """The first page."""
    return filled(
        HEAD,
        {
            "verdicts": verdicts_section,
            "doses": doses_section,
            "answer": answer_section,
            "references": references_section,
            "tables": tables_section,
        },
    )


def details() -> Iterator[tuple[Path, str]]:
    """The other pages and their contents."""
    for name, sections in DETAILS.items():
        yield DOCS / "reproduction" / f"{name}.md", filled(HEADS / f"{name}.md", sections)
