"""The change log of a model: what was done to it, when, by whom, and what it changed.

It lies in the model's folder and survives `undo`. `forget` removes from it what it says about the
forgotten site, except that a site was learned then.
"""

import getpass
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import torch

from .. import __version__
from ..base.forms import ListOf, MapOf, Maybe, check_form

# How a forgotten site is named in the log, with the checksum of its name.
FORGOTTEN = "forgotten site"
# The first entry of models that began with a template.
TEMPLATE = "made a template"


@dataclass(frozen=True)
class LogEntry:
    """One change.

    before, after: the scores on the held-out rows of every kept site. scores: those of the new
    site's own rows. settings: what decided the change, as texts.
    """

    action: str
    site: str | None = None
    rows: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    metric: str = "accuracy"
    note: str = ""
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    by: str = field(default_factory=lambda: user_name())
    versions: dict[str, str] = field(
        default_factory=lambda: {"farshore": __version__, "torch": str(torch.__version__)}
    )

    def without(self, site: str, mark: str) -> "LogEntry":
        """The entry without what it says about a site; `mark` stands for the name."""

        def rest(scores: Mapping[str, float]) -> dict[str, float]:
            return {name: value for name, value in scores.items() if name != site}

        note = "" if site in self.note else self.note
        entry = replace(self, before=rest(self.before), after=rest(self.after), note=note)
        if self.site != site:
            return entry
        return replace(entry, site=f"{FORGOTTEN} {mark}", rows=None, settings={}, scores={})


FORM = {
    **{"action": "", "site": Maybe(""), "rows": Maybe(0)},
    **dict.fromkeys(("settings", "versions"), MapOf("")),
    **dict.fromkeys(("scores", "before", "after"), MapOf(0.0)),
    **dict.fromkeys(("metric", "note", "when", "by"), ""),
}


def user_name() -> str:
    """Who runs this process, as far as the system knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def read_log(state: Any) -> list[LogEntry]:
    """The log from its saved state; an error if it is none."""
    check_form(state, {"entries": ListOf(FORM)}, "log")
    return [LogEntry(**entry) for entry in state["entries"]]


def log_state(entries: list[LogEntry]) -> dict[str, Any]:
    """The log as plain values."""
    return {"entries": [asdict(entry) for entry in entries]}


def as_json(entries: list[LogEntry]) -> str:
    """The log as a JSON list, the oldest change first."""
    return json.dumps([asdict(entry) for entry in entries], indent=1)


def rows_of_log(entries: list[LogEntry]) -> list[list[str]]:
    """The names of the columns, then a line per change: when, who, what, rows, scores."""
    header = ["when (UTC)", "by", "change", "rows", "scores, %", "kept sites, %"]
    return [header, *map(_line, entries)]


def _line(entry: LogEntry) -> list[str]:
    scores = ", ".join(f"{part} {100 * value:.1f}" for part, value in entry.scores.items())
    kept = ", ".join(
        f"{site} {100 * old:.1f} → {100 * entry.after.get(site, old):.1f}"
        for site, old in entry.before.items()
    )
    what = f"{entry.action} {entry.site}" if entry.site else entry.action
    return [
        entry.when[:16].replace("T", " "),
        entry.by,
        f"{what} ({entry.note})" if entry.note else what,
        str(entry.rows) if entry.rows is not None else "-",
        scores or "-",
        kept or "-",
    ]


def as_markdown(entries: list[LogEntry]) -> str:
    """The log as a Markdown table, followed by the settings of each change."""
    header, *lines = rows_of_log(entries)
    table = [header, ["---"] * len(header), *lines]
    text = "\n".join(f"| {' | '.join(map(escaped, line))} |" for line in table)
    details = []
    for number, (entry, line) in enumerate(zip(entries, lines, strict=True), start=1):
        named = {**entry.settings, **entry.versions}.items()
        told = ", ".join(f"{escaped(name)} {escaped(value)}" for name, value in named)
        details.append(f"{number}. {escaped(line[2])}: {told}")
    return text + "\n\nSettings and versions:\n\n" + "\n".join(details) + "\n"


def escaped(text: str) -> str:
    """A text for a cell of a Markdown table: on one line, without signs that mean something."""
    line = "".join(character if character.isprintable() else " " for character in text)
    for sign in "\\|`*_<>[]":
        line = line.replace(sign, f"\\{sign}")
    return line
