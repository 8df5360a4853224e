"""Names that users give, and that become names of files: one rule for all of them."""

import re
import unicodedata

from ..errors import FarshoreError

LONGEST_NAME = 100
_DIGITS = re.compile(r"(\d+)", re.ASCII)


def natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return a key that sorts numbers in names by value: site-2 comes ahead of site-10."""
    split = [(place % 2, part) for place, part in enumerate(_DIGITS.split(name)) if part]
    parts = [(0, int(part), "") if number else (1, 0, part) for number, part in split]
    return parts, name


def check_name(name: str, what: str) -> str:
    """The name, unless it is a path, too long or has control characters; `what` gave it."""
    problem = find_problem(name)
    if problem is not None:
        shown = ascii(name[:40])[1:-1] + ("..." if len(name) > 40 else "")
        raise FarshoreError(f"{what} '{shown}' is not allowed: {problem}")
    return name


def find_problem(name: str) -> str | None:
    """What is wrong with a name, and what is allowed; None if nothing is."""
    if not name.strip():
        return "a name must have at least one character"
    if len(name) > LONGEST_NAME:
        return f"a name can have at most {LONGEST_NAME} characters"
    if "/" in name or "\\" in name:
        return "a name cannot be a path: remove / and \\"
    if name.startswith("."):
        return "a name cannot start with a dot"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        return "a name cannot contain line breaks or other control characters"
    return None
