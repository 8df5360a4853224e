from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scenarios import make_scenario

from farshore import Run, execute
from farshore.benchmarks import make_benchmark
from farshore.data.scenario import Scenario
from farshore.data.seal import FrozenModel
from farshore.errors import FarshoreError


def table(rows: int = 40, seed: int = 0) -> pd.DataFrame:
    """Three sites whose numbers shift, a text column, missing values, a date and a patient."""
    rng = np.random.default_rng(seed)
    site = np.repeat(["north", "south", "east"], rows)
    label = np.tile(["sick", "well"], len(site) // 2)
    return pd.DataFrame(
        {
            "site": site,
            "pressure": rng.normal(np.repeat([0, 5, 9], rows), 1) + (label == "sick"),
            "colour": rng.choice(["red", "green", "blue"], len(site)),
            "depth": np.where(rng.random(len(site)) < 0.3, np.nan, rng.normal(100, 20, len(site))),
            "day": np.concatenate(
                [
                    rng.permutation(pd.date_range("2026-01-01", periods=rows).strftime("%Y-%m-%d"))
                    for _ in range(3)
                ]
            ),
            "patient": [
                f"{s}{number // 4}" for s, number in zip(site, np.arange(len(site)), strict=True)
            ],
            "outcome": label,
        }
    )


def scenario(frame: pd.DataFrame, tmp_path: Path, **options: Any) -> Scenario:
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return from_path(path, **options)


def from_path(path: Path, **options: Any) -> Scenario:
    names = ("target", "order", "seed", "left_out", "held_out")
    outer = {key: options.pop(key) for key in names if key in options}
    usual = {"domain": "site", "label": "outcome", "drop": ("day", "patient")}
    if path.is_file():
        return make_scenario("table", {"path": str(path), **usual, **options}, **outer)
    return make_scenario("image-folder", {"path": str(path), **options}, **outer)


def opened(made: Scenario) -> Any:
    return made.target.open(FrozenModel(torch.nn.Linear(1, 1)))


def test_a_table_becomes_domains(tmp_path: Path) -> None:
    made = scenario(table(), tmp_path, target="east")
    assert [domain.name for domain in made.sources] == ["north", "south"]
    assert (made.name, made.classes, made.network, made.profile, made.steps, made.memory) == (
        "table.csv",
        ("sick", "well"),
        "mlp",
        "default",
        100,
        1000,
    )
    first = made.sources[0]
    # pressure and depth with an indicator each; three colours, `other` and missing
    assert first.inputs.shape == (40, 2 * 2 + 5)
    assert torch.isfinite(first.inputs).all()
    assert (len(first.train), len(first.validation)) == (32, 8)
    assert abs(np.median(first.inputs[first.train, 0])) < 1e-6
    assert (
        made.sources[1].inputs[:, 0].median() > 2
    )  # frozen on the first domain, from which the second differs
    assert len(opened(made)) == 40


def test_parquet_and_csv_give_the_same(tmp_path: Path) -> None:
    frame = table()
    made = scenario(frame, tmp_path, target="east")
    frame.to_parquet(tmp_path / "table.parquet")
    other = from_path(tmp_path / "table.parquet", target="east")
    for a, b in zip(made.sources, other.sources, strict=True):
        assert torch.equal(a.inputs, b.inputs)
        assert torch.equal(a.train, b.train)
    assert torch.equal(opened(made).inputs, opened(other).inputs)


def test_all_sources_is_named_non_continual(tmp_path: Path) -> None:
    made = scenario(table(), tmp_path, target="east", preprocess="all-sources")
    assert any("not continual" in note for note in made.notes)
    assert made.sources[0].inputs[:, 0].median() < -0.3  # centred between both sources


def test_time_orders_domains_and_splits(tmp_path: Path) -> None:
    frame = table()
    frame["day"] = pd.to_datetime(frame["day"]) + pd.to_timedelta(
        frame["site"].map({"north": 400, "south": 0, "east": 800}), unit="D"
    )
    made = scenario(frame, tmp_path, target="east", time="day", drop=("patient",))
    assert [domain.name for domain in made.sources] == ["south", "north"]
    south = frame[frame["site"] == "south"]["day"].reset_index(drop=True)
    assert (
        south[made.sources[0].train.numpy()].max()
        <= south[made.sources[0].validation.numpy()].min()
    )
    assert made.sources[0].inputs.shape[1] == 9  # the time is not an input


def test_groups_stay_together(tmp_path: Path) -> None:
    frame = table()
    frame.loc[40:47, "patient"] = frame.loc[
        0:7, "patient"
    ].to_numpy()  # two patients of north are also in south
    made = scenario(frame, tmp_path, target="east", group="patient", drop=("day",))
    sides: dict[str, set[str]] = {"train": set(), "validation": set()}
    for domain in made.sources:
        patients = frame[frame["site"] == domain.name]["patient"].to_numpy()
        sides["train"] |= set(patients[domain.train.numpy()])
        sides["validation"] |= set(patients[domain.validation.numpy()])
    assert sides["train"]
    assert sides["validation"]
    assert not sides["train"] & sides["validation"]


def test_shared_rows_are_counted_and_can_be_left_out(tmp_path: Path) -> None:
    frame = table()
    same = ["pressure", "colour", "depth"]
    frame.loc[80:82, same] = frame.loc[[3, 4, 50], same].to_numpy()
    kept = scenario(frame, tmp_path, target="east")
    assert any(
        note.startswith(
            "warning: 3 source rows have the same inputs as rows of the target (3 there)"
        )
        for note in kept.notes
    )
    assert [len(domain) for domain in kept.sources] == [40, 40]
    without = scenario(frame, tmp_path, target="east", shared_rows="leave-out")
    assert [len(domain) for domain in without.sources] == [38, 39]
    assert any("left out of the sources" in note for note in without.notes)
    pressure = torch.cat([domain.inputs[:, 0] for domain in without.sources])
    assert not set(pressure.tolist()) & set(opened(without).inputs[:3, 0].tolist())
    frame.loc[83, "patient"] = "north1"
    grouped = scenario(frame, tmp_path, target="east", group="patient", drop=("day",))
    assert any(
        "4 source rows belong to 1 groups that are also in the target" in note
        for note in grouped.notes
    )


def test_the_target_never_reaches_training(tmp_path: Path) -> None:
    frame = table()
    weights = []
    for _ in range(2):
        frame.to_csv(tmp_path / "t.csv", index=False)
        options = {
            "path": str(tmp_path / "t.csv"),
            "domain": "site",
            "label": "outcome",
            "drop": ["day", "patient"],
        }
        result = execute(
            Run.build(benchmark="table", method="er", options=options, target="east", steps=5)
        )
        assert result.target is not None
        weights.append(result.target.weights)
        east = frame["site"] == "east"
        rng = np.random.default_rng(9)
        frame.loc[east, "pressure"] = rng.normal(1e3, 1e3, 40)
        frame.loc[east, "colour"] = "never seen"
        frame.loc[east, "outcome"] = rng.permutation(frame.loc[east, "outcome"].to_numpy())
    assert weights[0] == weights[1]
    assert Run.model_validate(result.run.model_dump()) == result.run  # a result records its run
    assert any("sha256" in note for note in result.notes)


def change(column: str, value: Any, rows: Any = 5) -> Any:
    def apply(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[rows, column] = value
        return frame

    return apply


REFUSALS: list[tuple[str, Any, dict[str, Any], str]] = [
    (
        "unknown domain column",
        None,
        {"domain": "sites"},
        "unknown column in --domain 'sites': did you mean 'site'?",
    ),
    ("unknown label column", None, {"label": "outcom"}, "did you mean 'outcome'?"),
    (
        "unknown dropped column",
        None,
        {"drop": ("dy",)},
        "unknown column in --drop 'dy': did you mean 'day'?",
    ),
    (
        "unknown time column",
        None,
        {"time": "dya"},
        "unknown column in --time 'dya': did you mean 'day'?",
    ),
    ("unknown group column", None, {"group": "patients"}, "did you mean 'patient'?"),
    ("no label", None, {"label": None}, "--label is not given"),
    ("no domain", None, {"domain": None}, "--domain is not given"),
    (
        "no target",
        None,
        {"target": None},
        r"--target is not given: .* north \(40 rows\), south \(40 rows\), east \(40 rows\)",
    ),
    ("unknown target", None, {"target": "est"}, "unknown target 'est': did you mean 'east'?"),
    (
        "one row",
        change("site", "lonely"),
        {},
        "domain 'lonely' has 1 row: a domain needs at least 2",
    ),
    (
        "one class",
        change("outcome", "well", slice(0, 39)),
        {},
        "domain 'north' has one class only .'well'.: merge it",
    ),
    (
        "class of the target only",
        change("outcome", "dead", [100, 101]),
        {},
        r"class 'dead' exists only in the target 'east' \(2 rows\)",
    ),
    (
        "text for a number",
        change("pressure", "high"),
        {},
        "column 'pressure', row 5: 'high' is not a number: fix it",
    ),
    (
        "text for a number in the target",
        change("pressure", "high", 100),
        {},
        "column 'pressure', row 100: 'high' is not a number",
    ),
    (
        "missing labels",
        None,
        {"label": "depth", "drop": (), "task": "classification"},
        "--label depth: .* rows have no value there",
    ),
    (
        "a quantity as classes",
        None,
        {"label": "pressure", "task": "classification"},
        "looks like a quantity: say that it is a number",
    ),
    (
        "missing domain",
        change("site", None),
        {},
        "--domain site: 1 rows have no value there, the first is row 5",
    ),
    (
        "bad date",
        change("day", "someday"),
        {"time": "day", "drop": ()},
        "row 5: 'someday' is neither a number nor an ISO date",
    ),
    ("order with the target", None, {"order": ["east", "north"]}, "which is the target"),
    (
        "order with auto",
        None,
        {"domain": "auto", "domain_by": "blocks", "order": ["a"], "target": "last"},
        "--order cannot be used",
    ),
    (
        "auto target",
        None,
        {"domain": "auto", "domain_by": "blocks", "target": "east"},
        "write `last` for the last fifth",
    ),
    (
        "auto column",
        None,
        {"domain": "auto", "domain_by": "blocks", "target": "sit=east"},
        "did you mean 'site'?",
    ),
    (
        "auto value",
        None,
        {"domain": "auto", "domain_by": "blocks", "target": "site=est"},
        "no row has 'est' in column 'site'",
    ),
    (
        "nothing left",
        None,
        {"drop": ("day", "patient", "pressure", "colour", "depth")},
        "no column is left to learn from",
    ),
    (
        "identifier",
        lambda f: f.assign(name=[f"n{i}" for i in range(len(f))]),
        {},
        "column 'name' has .* different values in",
    ),
]


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [case[1:] for case in REFUSALS],
    ids=[case[0] for case in REFUSALS],
)
def test_refusals_are_one_clear_line(
    spoil: Any, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    frame = table(rows=120) if "different values" in message else table()
    frame = spoil(frame) if spoil is not None else frame
    with pytest.raises(FarshoreError, match=message) as excinfo:
        scenario(frame, tmp_path, **({"target": "east"} | options))
    assert "\n" not in str(excinfo.value)


def test_a_target_with_one_class_gives_a_warning(tmp_path: Path) -> None:
    made = scenario(change("outcome", "sick", slice(80, 119))(table()), tmp_path, target="east")
    assert any("has one class only ('sick')" in note for note in made.notes)


def test_domains_are_constructed(tmp_path: Path) -> None:
    made = scenario(table(), tmp_path, domain="auto", domain_by="drift", target="site=east")
    assert [len(domain) for domain in made.sources] == [40, 40]
    assert any("2 found, boundaries at rows 40 of 80" in note for note in made.notes)
    assert made.sources[0].inputs.shape[1] == 9  # `site` selects the target and is not an input
    last = scenario(
        table(),
        tmp_path,
        domain="auto",
        domain_by="time",
        domains=2,
        time="day",
        drop=("site", "patient"),
    )
    assert (last.target.name, len(opened(last))) == ("last", 24)
    assert sum(len(domain) for domain in last.sources) == 96


def images(
    folder: Path, sites: dict[str, int], classes: tuple[str, ...] = ("dark", "bright")
) -> Path:
    rng = np.random.default_rng(0)
    for site, shift in sites.items():
        for place, name in enumerate(classes):
            (folder / site / name).mkdir(parents=True)
            for number in range(12):
                size = rng.integers(10, 30, 2)
                pixels = np.clip(rng.normal(60 + 100 * place + shift, 20, size), 0, 255).astype(
                    np.uint8
                )
                Image.fromarray(pixels).save(folder / site / name / f"{number:02d}.png")
    return folder


def test_a_folder_of_images_becomes_domains(tmp_path: Path) -> None:
    folder = images(tmp_path / "pictures", {"a": 0, "b": 20, "c": 40})
    made = from_path(folder, target="c", size=16)
    assert [domain.name for domain in made.sources] == ["a", "b"]
    assert (made.name, made.network, made.profile) == ("pictures", "histogram", "frozen-features")
    assert (made.sources[0].inputs.shape, made.sources[0].inputs.dtype) == (
        (24, 1, 16, 16),
        torch.uint8,
    )
    target = opened(made)
    assert (len(target), made.classes) == (24, ("bright", "dark"))
    bright = target.inputs[target.labels == 0].float().mean()
    assert bright > target.inputs[target.labels == 1].float().mean() + 50


def test_domains_of_images_are_constructed(tmp_path: Path) -> None:
    folder = images(tmp_path / "pictures", {"a": 0, "b": 80, "c": 0})
    made = from_path(folder, domain="auto", target="domain=c", size=8, domains=2)
    assert len(made.sources) == 2
    assert abs(len(made.sources[0]) - 24) <= 3
    assert (made.target.name, len(opened(made))) == ("domain=c", 24)
    plain = from_path(folder / "b", domain="auto", domain_by="blocks", domains=2, size=8)
    assert (plain.target.name, [len(domain) for domain in plain.sources]) == ("last", [10, 9])


def test_refusals_of_folders(tmp_path: Path) -> None:
    folder = images(tmp_path / "pictures", {"a": 0, "b": 20, "c": 40})
    with pytest.raises(FarshoreError, match="unknown option of image-folder 'label'"):
        from_path(folder, target="c", label="class")
    with pytest.raises(FarshoreError, match="unknown option of image-folder 'domain'"):
        from_path(folder, target="c", domain="site")
    with pytest.raises(FarshoreError, match="class/file without domains"):
        from_path(folder / "a", target="c")
    (folder / "b" / "dark" / "03.png").write_bytes(b"broken")
    with pytest.raises(FarshoreError, match=r"1 images cannot be read: .*b/dark/03\.png"):
        from_path(folder, target="c")


def test_duplicate_images_are_counted(tmp_path: Path) -> None:
    folder = images(tmp_path / "pictures", {"a": 0, "b": 20, "c": 40})
    (folder / "c" / "dark" / "copy.png").write_bytes(
        (folder / "a" / "dark" / "05.png").read_bytes()
    )
    made = from_path(folder, target="c")
    assert any(
        "1 source rows have the same inputs as rows of the target (1 there)" in note
        for note in made.notes
    )


def test_files_that_are_not_tables(tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_bytes(b"x")
    with pytest.raises(FarshoreError, match=r"is a spreadsheet: save its sheet as \.csv"):
        from_path(tmp_path / "table.xlsx", target="a")
    (tmp_path / "empty.csv").write_text("site,outcome\n")
    with pytest.raises(FarshoreError, match="has no rows"):
        from_path(tmp_path / "empty.csv", target="a")
    (tmp_path / "nothing.csv").write_text("")
    with pytest.raises(FarshoreError, match="cannot be read as a table"):
        from_path(tmp_path / "nothing.csv", target="a")
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(FarshoreError, match="cannot be read as a table"):
        from_path(tmp_path / "broken.parquet", target="a")


def test_a_left_out_domain_is_not_used_at_all(tmp_path: Path) -> None:
    frame = table()
    made = scenario(frame, tmp_path, target="south", left_out=("east",))
    assert ([domain.name for domain in made.sources], made.target.name) == (["north"], "south")
    frame.loc[frame["site"] == "east", ["pressure", "outcome"]] = [1e6, "never seen"]
    asked: dict[str, Any] = {"target": "south", "left_out": ("east",), "preprocess": "all-sources"}
    other = scenario(frame, tmp_path, **asked)
    plain = scenario(table(), tmp_path, **asked)
    assert other.classes == plain.classes == ("sick", "well")
    assert torch.equal(other.sources[0].inputs, plain.sources[0].inputs)
    assert torch.equal(opened(other).inputs, opened(plain).inputs)
    with pytest.raises(FarshoreError, match="unknown left-out domain 'est': did you mean 'east'"):
        scenario(frame, tmp_path, target="south", left_out=("est",))
    with pytest.raises(FarshoreError, match="left_out cannot be used with --domain auto"):
        scenario(frame, tmp_path, domain="auto", left_out=("east",))


def test_a_class_that_only_the_held_out_source_has_does_not_stop_a_selection(
    tmp_path: Path,
) -> None:
    frame = change("outcome", "dead", [50, 51])(table())
    with pytest.raises(FarshoreError, match="exists only in the target"):
        scenario(frame, tmp_path, target="south")
    with pytest.raises(FarshoreError, match="exists only in the target"):
        scenario(frame, tmp_path, target="south", left_out=("east",))
    made = scenario(frame, tmp_path, target="south", left_out=("east",), held_out=True)
    assert made.classes == ("dead", "sick", "well")
    assert int((opened(made).labels == 0).sum()) == 2


def test_own_data_read_their_domains_from_the_file(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    options = {"path": str(tmp_path / "t.csv"), "domain": "site", "label": "outcome"}
    made = make_benchmark("table", options)
    assert made.domain_names() == ("north", "south", "east")
    assert made.listed("south") == ["north", "east"]
    assert made.title == "t.csv"
    assert made.missing() is None
    assert make_benchmark("table", {"path": str(tmp_path / "no.csv")}).missing() is not None
    with pytest.raises(FarshoreError, match="constructed"):
        make_benchmark("table", {**options, "domain": "auto"}).domain_names()
    folder = images(tmp_path / "pictures", {"b": 0, "a": 20})
    assert make_benchmark("image-folder", {"path": str(folder)}).domain_names() == ("a", "b")


def test_the_path_must_be_given_and_be_of_the_right_kind(tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match="option 'path' of table is not given"):
        make_benchmark("table", {"label": "x"})
    with pytest.raises(FarshoreError, match="is a folder, not a table: use image-folder"):
        make_benchmark("table", {"path": str(tmp_path)}).scenario(target="a")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FarshoreError, match="is a file, not a folder of images: use table"):
        make_benchmark("image-folder", {"path": str(tmp_path / "a.csv")}).scenario(target="a")
