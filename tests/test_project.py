"""The project's own files are consistent: workflows, hooks, templates, changelog, hints."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import farshore
from farshore.errors import INSTALL, FarshoreError, needs

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
# Files that name commands and paths a contributor types.
GUIDES = [
    *WORKFLOWS,
    HOOKS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    ROOT / ".github" / "pull_request_template.md",
    ROOT / ".ci" / "run",
]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def classified() -> list[str]:
    """The minor versions of Python among the classifiers."""
    found = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line)
        for line in PROJECT["project"]["classifiers"]
    ]
    return [match.group(1) for match in found if match]


def test_the_workflow_tests_every_supported_python() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "ci.yml")
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]["python-version"]
    assert matrix == classified()
    assert PROJECT["project"]["requires-python"] == f">={matrix[0]}"
    assert all(isinstance(version, str) for version in matrix)  # 3.10 without quotes is 3.1
    used = [
        step["with"]["python-version"]
        for step in steps(workflow)
        if step.get("uses", "").startswith("actions/setup-python")
    ]
    assert len(used) == len(workflow["jobs"])
    assert set(used) <= {*matrix, "${{ matrix.python-version }}"}
    assert PROJECT["tool"]["mypy"]["python_version"] == matrix[0]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{matrix[0].replace('.', '')}"


def test_the_workflow_checks_what_the_policy_promises() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "ci.yml")
    commands = {
        name: "\n".join(step.get("run", "") for step in job["steps"])
        for name, job in workflow["jobs"].items()
    }
    assert "--resolution lowest-direct" in commands["lowest"]
    assert all(tool in commands["lint"] for tool in ("ruff check", "lint-imports", "mypy"))
    assert "make release" in commands["package"]
    smoke = (ROOT / "tests" / "smoke.sh").read_text()
    assert all(f"farshore {each}" in smoke for each in ("--version", "demo", "audit"))
    assert "make docs\ngit diff --exit-code\nmake site" in commands["docs"]
    assert "schedule" in workflow["jobs"]["soak"]["if"]
    assert workflow[True]["schedule"]  # `on`, which YAML reads as a truth value


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_with_their_version(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"(actions|astral-sh)/[\w-]+@v\d+", step["uses"])


def test_the_workflow_installs_what_the_makefile_installs() -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    workflow = read(ROOT / ".github" / "workflows" / "ci.yml")
    makefile = (ROOT / "Makefile").read_text()
    named = re.search(r"^EXTRAS := (.*)$", makefile, flags=re.MULTILINE).group(1)
    assert set(named.split(",")) <= extras
    assert "'.[$(EXTRAS)]'" in makefile
    assert workflow["env"]["EXTRAS"] == named
    installed = re.findall(
        r"\.\[(.*?)\]", "\n".join(step.get("run", "") for step in steps(workflow))
    )
    assert set(installed) == {"$EXTRAS"}


def test_the_workflow_lints_what_the_makefile_lints() -> None:
    texts = [(ROOT / name).read_text() for name in (".github/workflows/ci.yml", "Makefile")]
    linted = [set(re.findall(r"ruff (check [\w ]+|format --check [\w ]+)", text)) for text in texts]
    assert linted[0] == linted[1]
    assert len(linted[0]) == 2


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_targets_and_files_that_are_named_exist(path: Path) -> None:
    text = path.read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    assert set(re.findall(r"(?:`|^|run: )make ([a-z]+)", text, flags=re.MULTILINE)) <= targets
    for name in re.findall(
        r"(?<![\w./-])((?:docs|tests|bench|src|reproduction|\.github|\.ci)/[\w./-]*\w)", text
    ):
        if "states" not in name:  # written when a version of the format is fixed
            assert (ROOT / name).exists(), name


def test_make_targets_are_declared_phony() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    declared = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert set(declared.group(1).split()) == targets


def test_hooks_run_the_tools_that_are_tested() -> None:
    hooks = {
        hook["id"]: (repository, hook)
        for repository in read(HOOKS)["repos"]
        for hook in repository["hooks"]
    }
    assert {"ruff-check", "ruff-format", "mypy", "lint-imports"} <= set(hooks)
    pinned = re.search(r"^ruff==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert hooks["ruff-check"][0]["rev"] == f"v{pinned.group(1)}"
    assert hooks["mypy"][1]["language"] == "system"  # sees the installed dependencies
    assert re.search(read(HOOKS)["exclude"], "tests/fixtures/states/1/model/manifest.json")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_issue_templates_have_the_fields_that_github_needs(path: Path) -> None:
    template = read(path)
    if path.name == "config.yml":
        assert isinstance(template["blank_issues_enabled"], bool)
        return
    assert {"name", "description", "body"} <= set(template)
    for field in template["body"]:
        assert field["type"] in {"textarea", "input", "checkboxes", "dropdown", "markdown"}
        assert field["attributes"]["label"]


def test_the_changelog_has_a_section_for_this_version() -> None:
    heads = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert heads[0] == "Unreleased" or heads[0] == farshore.__version__
    assert len(heads) == len(set(heads))
    assert re.fullmatch(r"\d+\.\d+\.\d+", farshore.__version__)


def test_constraints_fit_the_bounds_of_the_project() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    tested = {canonicalize_name(name): version for name, version in pins.items()}
    asked = PROJECT["project"]["dependencies"] + [
        line for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines
    ]
    for line in asked:
        requirement = Requirement(line)
        assert requirement.specifier, f"{line} has no lower bound"
        assert requirement.specifier.contains(tested[canonicalize_name(requirement.name)]), line


def test_hints_name_an_extra_of_the_checkout_and_no_package_on_an_index() -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    for path in SOURCES:
        hints = re.findall(r"pip install.*", path.read_text())
        assert not hints or path.name == "errors.py", f"{path} writes its own hint: {hints}"
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "needs":
                extra = call.args[0]
                if isinstance(extra, ast.Constant):
                    assert extra.value in extras, f"{path}: no extra is called {extra.value!r}"
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for named in re.findall(r"pip install '?([^\s'`]+)", page.read_text()):
            assert named.startswith((".", "-")), f"{page.name}: pip install {named}"


def test_a_hint_says_what_needs_it_and_another_way_out() -> None:
    assert INSTALL.format("report") == "pip install '.[report]'"
    error = needs("report", "the page needs plotly", otherwise="ask for Markdown")
    assert isinstance(error, FarshoreError)
    assert str(error) == (
        "the page needs plotly: from a checkout, pip install '.[report]', or ask for Markdown"
    )


def test_the_version_is_printed_without_importing_torch() -> None:
    code = (
        "import sys; sys.argv = ['farshore', '--version']\n"
        "from farshore.cli.app import main\n"
        "try: main()\n"
        "finally: print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [f"farshore {farshore.__version__}", "False"]


def test_package_data_are_declared() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["farshore"]
    package = ROOT / "src" / "farshore"
    declared = {path for pattern in patterns for path in package.glob(pattern)}
    data = {
        path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert data == declared
    for path in PROJECT["project"]["license-files"]:
        assert (ROOT / path).is_file()


def test_a_class_name_means_one_thing() -> None:
    package = ROOT / "src" / "farshore"
    places: dict[str, list[str]] = {}
    for source in SOURCES:
        where = source.relative_to(package)
        for node in ast.parse(source.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(where))
    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
