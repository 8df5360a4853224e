"""Read YAML from anybody: safe types only, and bounds on size, depth and aliases.

Aliases are refused: a few lines of them describe more than any memory holds, or a value that
contains itself.
"""

from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ...base.files import check_ends
from ...errors import FarshoreError, within

LARGEST_FILE = 1 << 20
MOST_EVENTS = 20_000
DEEPEST = 50


def read_yaml(path: Path) -> Any:
    """The contents of a YAML file; errors are one line that names it."""
    check_ends(path)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FarshoreError(f"{path} cannot be read: {reason}") from None
    if len(data) > LARGEST_FILE:
        why = f"{path} is larger than {LARGEST_FILE:,} bytes: it is not an experiment"
        raise FarshoreError(why)
    try:
        text = data.decode()
        with within(path):
            _check_events(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise FarshoreError(f"{path} is not YAML: {' '.join(str(error).split())[:300]}") from None


def write_yaml(contents: Any) -> str:
    """Plain values as YAML, in their order and without aliases."""
    write = partial(yaml.dump, Dumper=_WithoutAliases, sort_keys=False, allow_unicode=True)
    return str(write(contents, width=120))


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write every value in full: the reader refuses aliases."""
        return True


def _check_events(text: str) -> None:
    """Refuse what would take long or recurse, before anything is built from it."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            why = f"{_line(event)}: aliases (*{event.anchor}) are not allowed: write the value out"
            raise FarshoreError(why)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise FarshoreError(f"{_line(event)}: more than {DEEPEST} levels of nesting")
        if count > MOST_EVENTS:
            raise FarshoreError(f"more than {MOST_EVENTS:,} values: it is not an experiment")


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark is not None else "a line"
