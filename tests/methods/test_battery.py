"""Every registered method passes the battery of farshore.testing: a new method is checked by being
in the registry.
"""

from __future__ import annotations

import os

from farshore.entry import Entry
from farshore.methods import METHODS
from farshore.testing import Check, parametrize_method_checks

# The battery runs on a GPU too: FARSHORE_TEST_DEVICE=cuda python -m pytest
# tests/methods/test_battery.py
DEVICE = os.environ.get("FARSHORE_TEST_DEVICE", "cpu")


@parametrize_method_checks(METHODS.names(), device=DEVICE)
def test_method(method: str | type[Entry], check: Check) -> None:
    check(method)
