from __future__ import annotations

import time
from pathlib import Path

import pytest

from farshore.errors import FarshoreError
from farshore.runs.plan.bounded_yaml import read_yaml, write_yaml
from farshore.runs.plan.experiment import make_book, read_experiment
from farshore.runs.plan.plan import make_plan
from farshore.runs.store.store import Store

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
)
PART = "parts: [{benchmarks: [rotated-digits], methods: [er]%s}]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUGHS, r"aliases \(\*a0\) are not allowed"),
        ("settings: &s {a: *s}\n", "aliases"),
        ("[" * 5000 + "]" * 5000, "more than 50 levels"),
        ("- " * 5000 + "x", "more than 50 levels"),
        ("a: " + "x" * 2_000_000, "larger than 1,048,576 bytes"),
        ("[" + "1," * 30_000 + "1]", "more than 20,000 values"),
        ("a: !!python/object/apply:os.system ['true']", "is not YAML"),
        ("a: " + "9" * 10_000, "is not YAML"),
        ("name: \x01", "is not YAML"),
        ("\xff\xfe\x00", "is not YAML"),
    ],
)
def test_hostile_files_are_refused_quickly(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text.encode("latin1"))
    began = time.perf_counter()
    with pytest.raises(FarshoreError, match=words) as refused:
        read_yaml(path)
    assert time.perf_counter() - began < 20
    assert "\n" not in str(refused.value)


def test_a_shared_value_is_written_out(tmp_path: Path) -> None:
    shared = ["a", 1]
    (tmp_path / "x.yaml").write_text(write_yaml({"one": shared, "two": shared}))
    assert read_yaml(tmp_path / "x.yaml") == {"one": shared, "two": shared}


@pytest.mark.parametrize(
    ("head", "part", "words"),
    [
        ("name: ../../x", "", "a name cannot be a path"),
        ("name: .x", "", "start with a dot"),
        ('name: "a\\0b"', "", "control characters"),
        (f"name: {'x' * 300}", "", "at most 100 characters"),
        ("name: mine", ", settings: {nonsense: 1}", "parts.0.settings: er: unknown setting"),
        ("name: mine", ", settings: {batch_size: 100000000000}", "batch_size = 100000000000"),
        ("name: mine", ", settings: {batch_size: {a: [1]}}", "batch_size"),
        ("name: mine", ", at_most: {nonsense: 1}", "parts.0.at_most: unknown setting"),
        ("name: mine", ", settings_from: ../other", "a name cannot be a path"),
        ("name: mine\nscenario_seed: -1", "", "scenario_seed = -1"),
        ("name: mine\nsearch: {trials: 1000000000000}", "", "search.trials"),
        ("name: mine\nsearch: {seeds: 1000000000000}", "", "search.seeds"),
    ],
)
def test_what_is_wrong_is_refused_ahead_of_all_runs(
    head: str, part: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(f"{head}\nabout: x\n{PART % part}")
    with pytest.raises(FarshoreError, match=words):
        read_experiment(tmp_path / "mine.yaml")


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_experiments_in_a_circle_are_refused(circle: list[str], tmp_path: Path) -> None:
    for name, other in zip(circle, [*circle[1:], circle[0]], strict=True):
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nabout: x\n{PART % f', settings_from: {other}'}"
        )
    first = tmp_path / "a.yaml"
    with pytest.raises(FarshoreError, match="in a circle"):
        make_plan(read_experiment(first), Store(tmp_path / "runs"), make_book(first))
