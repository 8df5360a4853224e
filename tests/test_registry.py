"""Registries: names, plug-ins of other packages, and helpful refusals."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from holdfast import registry as module
from holdfast.errors import HoldfastError
from holdfast.registry import Registry


def registry() -> Registry:
    return Registry("thing", "holdfast.things", {"path": "pathlib:Path"})


def test_builtin_names_are_imported_when_asked_for() -> None:
    from pathlib import Path

    assert registry().names() == ["path"]
    assert registry().get("path") is Path


def test_entry_points_of_other_packages_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("ordered", "collections:OrderedDict", "holdfast.things"), EntryPoint("broken", "no.such:Thing", "holdfast.things")]
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == "holdfast.things" else [])
    from collections import OrderedDict

    made = registry()
    assert made.names() == ["path", "ordered", "broken"]
    assert made.get("ordered") is OrderedDict
    with pytest.raises(HoldfastError, match="cannot be imported"):
        made.get("broken")


def test_a_taken_name_is_refused_and_an_unknown_one_gets_the_nearest() -> None:
    made = registry()
    with pytest.raises(HoldfastError, match="taken"):
        made.add("path", 1)
    with pytest.raises(HoldfastError, match="did you mean 'path'"):
        made.get("pth")
    made.add("other", 2)
    assert made.get("other") == 2
    made.remove("other")
    assert made.names() == ["path"]


@pytest.mark.parametrize("group", ["methods", "adaptations", "benchmarks", "networks"])
def test_the_registries_are_open(group: str) -> None:
    from holdfast.adaptation import ADAPTATIONS
    from holdfast.benchmarks import BENCHMARKS
    from holdfast.methods import METHODS
    from holdfast.networks import NETWORKS

    found = {made.group: made for made in (METHODS, ADAPTATIONS, BENCHMARKS, NETWORKS)}[f"holdfast.{group}"]
    assert all(found.get(name) is not None for name in found.names())
