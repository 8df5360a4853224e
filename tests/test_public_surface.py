"""The public names: imported when used, and none of them is `Any` for a type checker."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import farshore
from farshore.adaptation import ADAPTATIONS
from farshore.adaptation.adaptation import Adaptation
from farshore.invariance import Invariance
from farshore.memory import Memory
from farshore.methods import METHODS, Method

ROOT = Path(__file__).parents[1]
PACKAGES = [
    "farshore",
    "farshore.benchmarks",
    "farshore.invariance",
    "farshore.loggers",
    "farshore.memory",
    "farshore.methods",
    "farshore.networks",
    "farshore.testing",
]
# Those that are used before PyTorch is needed: by the commands, or to name what exists.
LAZY = [name for name in PACKAGES if name not in ("farshore.invariance", "farshore.testing")]
# Instances whose public attributes a user or a plugin reads, with a class to take the names from.
SHAPES: dict[str, type] = {
    "farshore.Learner": farshore.Learner,
    "farshore.Result": farshore.Result,
    "farshore.Run": farshore.Run,
    "farshore.Scenario": farshore.Scenario,
    "farshore.methods.Method": Method,
    "farshore.invariance.Invariance": Invariance,
    "farshore.memory.Memory": Memory,
    "farshore.adaptation.adaptation.Adaptation": Adaptation,
}


def exported(package: str) -> list[str]:
    """Every public name of a package, dotted."""
    module = importlib.import_module(package)
    return [f"{package}.{name}" for name in module.__all__]


def attributes(kind: type) -> set[str]:
    """Public attributes of a class of ours: declared, defined, or set by its methods."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith("farshore"):
            names |= {*vars(base), *inspect.get_annotations(base)}
            names |= {
                node.attr
                for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base))))
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and ast.unparse(node.value) == "self"
            }
    return {name for name in names if not name.startswith(("_", "model_"))}


def systems() -> dict[str, type]:
    """Methods and adaptations, by the dotted name of their class."""
    kinds = [registry.get(name) for registry in (METHODS, ADAPTATIONS) for name in registry.names()]
    return {f"{kind.__module__}.{kind.__qualname__}": kind for kind in kinds}


@pytest.fixture(scope="module")
def revealed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The type that mypy infers for every public expression. It runs once for all of them."""
    expressions = {name: name for package in PACKAGES for name in exported(package)}
    for dotted, kind in SHAPES.items():
        for attribute in attributes(kind):
            expressions[f"{dotted}.{attribute}"] = f"an({dotted}).{attribute}"
    for dotted in systems():
        expressions[f"{dotted}.settings"] = f"an({dotted}).settings"
    modules = sorted({*PACKAGES, *(name.rpartition(".")[0] for name in [*SHAPES, *systems()])})
    lines = [
        # Here and not as options, which would invalidate the cache of `make types`.
        '# mypy: disable-error-code="empty-body, type-abstract"',
        *(f"import {module}" for module in modules),
        "from typing import TypeVar",
        "T = TypeVar('T')",
        "def an(kind: type[T]) -> T: ...",
    ]
    place = {}
    for name, expression in expressions.items():
        lines.append(f"reveal_type({expression})")
        place[len(lines)] = name
    lines.append("farshore.NoSuchName")
    place[len(lines)] = "farshore.NoSuchName"
    folder = tmp_path_factory.mktemp("surface")
    (folder / "surface.py").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            f"--config-file={ROOT / 'pyproject.toml'}",
            str(folder / "surface.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = re.findall(r"surface\.py:(\d+): (?:note|error): (.*)", done.stdout)
    answers = {place[int(line)]: text for line, text in said if int(line) in place}
    assert set(place.values()) - set(answers) == set(), done.stdout[-400:] + done.stderr
    return answers


def is_any(answer: str) -> bool:
    """Whether the answer is `Any`, a class or function without types, or an error."""
    return not answer.startswith("Revealed type is ") or bool(
        re.search(r'is "(Any|type\[Any\]|def \(\*Any, \*\*Any\) -> Any)"', answer)
    )


@pytest.mark.soak  # a type checker runs for it
@pytest.mark.parametrize("package", PACKAGES)
def test_no_exported_name_is_any(package: str, revealed: dict[str, str]) -> None:
    assert {name: revealed[name] for name in exported(package) if is_any(revealed[name])} == {}


@pytest.mark.soak
@pytest.mark.parametrize("dotted", SHAPES)
def test_no_public_attribute_is_any(dotted: str, revealed: dict[str, str]) -> None:
    names = [f"{dotted}.{attribute}" for attribute in attributes(SHAPES[dotted])]
    assert len(names) > 5
    assert {name: revealed[name] for name in names if is_any(revealed[name])} == {}


@pytest.mark.soak
@pytest.mark.parametrize("dotted", systems())
def test_a_system_knows_the_type_of_its_settings(dotted: str, revealed: dict[str, str]) -> None:
    settings = systems()[dotted].Settings
    # `auto` and `best` share their class, whose settings are those of either.
    known = revealed[f"{dotted}.settings"].removeprefix('Revealed type is "').removesuffix('"')
    assert f"{settings.__module__}.{settings.__qualname__}" in known.split(" | ")


@pytest.mark.soak
def test_a_name_that_is_not_there_is_an_error_for_the_type_checker(
    revealed: dict[str, str],
) -> None:
    assert 'Module has no attribute "NoSuchName"' in revealed["farshore.NoSuchName"]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_public_names_are_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("package", LAZY)
def test_importing_a_package_does_not_import_torch(package: str) -> None:
    code = f"import sys, {package}; dir({package}); print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = ast.literal_eval(done.stdout)
    assert package in loaded
    assert not {"torch", "sklearn", "pandas", "scipy"} & set(loaded)
