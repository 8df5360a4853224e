"""Members of a committee: their names and settings as text, and what each is built from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...entry import Entry
from ...errors import FarshoreError
from ...methods import METHODS
from ...observer import Observer
from ...system import OF_STEPS, Setup

# Closed forms keep no rows and are calibrated.
CLOSED_FORMS = ("ridge", "slda", "ncm")
# Settings that are passed on to the members that are trained by steps.
PASSED_ON = ("learning_rate", "weight_decay", "batch_size")
# With more members, there would be too many weights to try.
MOST_MEMBERS = 6
MEMBER = re.compile(r"\s*([\w-]+)\s*(?:\(([^()]*)\))?\s*")


@dataclass(frozen=True)
class Member:
    """A method of a committee with settings of its own."""

    text: str
    entry: type[Entry]
    settings: Mapping[str, Any]

    @property
    def closed(self) -> bool:
        """Whether it is a closed form."""
        return self.entry.name in CLOSED_FORMS

    @property
    def trained(self) -> bool:
        """Whether it is trained by steps, like a network."""
        return self.entry.system == "gradient" and self.entry.kind == "continual"


def read_members(text: str) -> list[Member]:
    """Members from text such as `er+er-kd(teacher=ema)+ridge`; a ValueError says what is wrong."""
    members = [_member(part) for part in re.split(r"\+(?![^()]*\))", text)]
    names = [member.text for member in members]
    fits = all(
        member.trained or member.closed or member.entry.name == "trees" for member in members
    )
    if not (2 <= len(members) <= MOST_MEMBERS and members[0].trained and fits):
        raise ValueError(
            "2 to 6 members joined by +, first one that is trained by steps, then others, trees, "
            f"{', '.join(CLOSED_FORMS)}, such as er+er-kd(teacher=ema)+ridge"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"different members, and {text!r} names one twice")
    return members


def _member(part: str) -> Member:
    found = MEMBER.fullmatch(part)
    if found is None or found[1] not in METHODS:
        raise ValueError(f"methods joined by +, and {part.strip()!r} is none")
    entry = METHODS.get(found[1])
    pairs = [pair.partition("=") for pair in (found[2] or "").split(",") if pair.strip()]
    given = {name.strip(): value.strip() for name, _, value in pairs}
    try:
        settings = entry.Settings.plain(given)
    except FarshoreError as error:
        raise ValueError(f"settings that {found[1]} has: {error}") from None
    shown = ",".join(f"{name}={value}" for name, value in given.items())
    return Member(f"{found[1]}({shown})" if given else found[1], entry, settings)


def member_setups(setup: Setup, members: list[Member]) -> dict[str, Setup]:
    """What each member is built from; only the first one reports its steps."""
    given = {name: setup.settings[name] for name in PASSED_ON if name in setup.settings}
    setups = {}
    for number, member in enumerate(members):
        own = replace(setup, entry=member.entry, settings={**member.settings})
        if member.trained:
            own = replace(own, settings={**given, **member.settings})
        else:  # without steps, there is nothing to average over
            own = replace(own, run=setup.run.model_copy(update=dict.fromkeys(OF_STEPS, "none")))
        setups[member.text] = replace(own, observer=Observer()) if number else own
    return setups
