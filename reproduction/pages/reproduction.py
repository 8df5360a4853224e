"""docs/reproduction.md: our numbers beside the paper's, claim by claim.

It is made from reproduction-head.md and from the tables of finished runs alone.
"""

from __future__ import annotations

from pathlib import Path

from reproduction import DOCS
from reproduction.compared import BENCHMARKS, PENALISED
from reproduction.formatting import filled
from reproduction.sections.claims import claims_section
from reproduction.sections.covertype import (
    cope_section,
    methods_table,
    orders_table,
    search_section,
    second_section,
    share_section,
)
from reproduction.sections.images import images_section
from reproduction.sections.missing import missing_section
from reproduction.sections.orders import ablations_section, orders_section, readings_section
from reproduction.sections.paper_claims import gains_section, leads_section
from reproduction.sections.rotated_mnist import column_section, last_section, searched_section
from reproduction.sections.run_time import runtime_section
from reproduction.sections.search import ablated_section, protocol_section
from reproduction.sections.sensitivity import sensitivity_section
from reproduction.sections.transfer import transfer_section

PAGE = DOCS / "reproduction.md"
HEAD = Path(__file__).parent / "reproduction-head.md"
# The data sets of the search with drawn orders.
SEARCHED = (*BENCHMARKS, "covertype-natural")


def text() -> str:
    """The whole page."""
    sections = {
        "leads": leads_section,
        "claims": claims_section,
        "orders rotated-mnist": lambda: orders_section("rotated-mnist"),
        "orders covertype": lambda: orders_section("covertype"),
        "column": column_section,
        "last": last_section,
        "searched": searched_section,
        "share": share_section,
        "orders of covertype": orders_table,
        "methods on covertype": methods_table,
        "search on covertype": search_section,
        "second covertype": second_section,
        "cope": cope_section,
        "readings": readings_section,
        "gains": gains_section,
        "ablations": ablations_section,
        "sensitivity": lambda: "\n".join(
            sensitivity_section(benchmark, PENALISED) for benchmark in BENCHMARKS
        ),
        "protocol": lambda: "\n".join(map(protocol_section, SEARCHED)),
        "protocol ablated": lambda: ablated_section("covertype"),
        "images": images_section,
        "transfer": transfer_section,
        "runtime": runtime_section,
        "missing": missing_section,
    }
    return filled(HEAD, sections)
