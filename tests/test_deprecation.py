"""A deprecated name warns as docs/versioning.md says, where its user sees it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from farshore import FarshoreDeprecationWarning


def average(values: list[float]) -> float:
    """A former name."""
    message = "average is deprecated since farshore 0.2: use mean instead"
    warnings.warn(message, FarshoreDeprecationWarning, stacklevel=2)
    return sum(values) / len(values)


def test_the_old_name_works_and_warns_at_the_line_that_used_it() -> None:
    with pytest.warns(FarshoreDeprecationWarning, match=r"0\.2: use mean instead") as caught:
        assert average([1.0, 3.0]) == 2.0
    assert caught[0].filename == __file__


def test_users_see_the_warning_without_asking_for_it() -> None:
    """Python shows a plain DeprecationWarning only for code in `__main__`."""
    code = (
        "import types, warnings\n"
        "from farshore import FarshoreDeprecationWarning\n"
        "library = types.ModuleType('library')\n"
        "exec('def caller(f): return f()', library.__dict__)\n"
        "def old(): warnings.warn('use new()', FarshoreDeprecationWarning, stacklevel=2)\n"
        "library.caller(old)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "FarshoreDeprecationWarning: use new()" in done.stderr
