"""Registries: names, plug-ins of other packages, and helpful errors."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from farshore.base import registry as module
from farshore.base.registry import Registry
from farshore.errors import FarshoreError


def registry() -> Registry:
    return Registry("thing", "farshore.things", {"path": "pathlib:Path"}, "farshore")


def test_builtin_names_are_imported_when_asked_for() -> None:
    from pathlib import Path

    assert registry().names() == ["path"]
    assert registry().get("path") is Path


def test_entry_points_of_other_packages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("ordered", "collections:OrderedDict", "farshore.things"),
        EntryPoint("broken", "no.such:Thing", "farshore.things"),
    ]
    monkeypatch.setattr(
        module, "entry_points", lambda group: points if group == "farshore.things" else []
    )
    from collections import OrderedDict

    made = registry()
    assert made.names() == ["path", "ordered", "broken"]
    assert made.get("ordered") is OrderedDict
    with pytest.raises(FarshoreError, match="cannot be imported"):
        made.get("broken")


def test_a_taken_name_is_refused_and_an_unknown_one_gets_the_nearest() -> None:
    made = registry()
    with pytest.raises(FarshoreError, match="taken"):
        made.add("path", 1)
    with pytest.raises(FarshoreError, match="did you mean 'path'"):
        made.get("pth")
    made.add("other", 2)
    assert made.get("other") == 2
    made.remove("other")
    assert made.names() == ["path"]


@pytest.mark.parametrize("group", ["methods", "adaptations", "benchmarks", "networks", "profiles"])
def test_the_registries_are_open(group: str) -> None:
    from farshore.adaptation import ADAPTATIONS
    from farshore.benchmarks import BENCHMARKS
    from farshore.methods import METHODS
    from farshore.networks import NETWORKS
    from farshore.training.profiles import PROFILES

    all_of_them = (METHODS, ADAPTATIONS, BENCHMARKS, NETWORKS, PROFILES)
    found = {made.group: made for made in all_of_them}[f"farshore.{group}"]
    assert all(found.get(name) is not None for name in found.names())
