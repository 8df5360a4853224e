"""Colours: one per group of methods, and a series for domains, orders and lines without a group."""

from __future__ import annotations

from ..runs import catalog

WHITE, GREY = "#ffffff", "#8a8a8a"
# Colours that people with any colour vision can distinguish, in the order of the catalog's groups.
SERIES = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8f8f2a",
    "#7a5cc0",
    "#996633",
    "#5c8a8a",
    "#b0457b",
    "#4c7a34",
    "#c23b22",
)


def line(group: str) -> str:
    """The colour of a group's lines and points, visible on white and on black."""
    return SERIES[catalog.GROUPS.index(group)] if group in catalog.GROUPS else GREY


def fill(group: str) -> str:
    """The background colour of a group's rows and bars: its line's, mixed with white."""
    colour = line(group)
    return WHITE if colour == GREY else _lighter(colour)


def _lighter(colour: str, share: float = 0.35) -> str:
    """A hexadecimal colour, of which this share remains."""
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)
