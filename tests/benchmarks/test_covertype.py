from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scenarios import make_scenario

from farshore import Run, execute
from farshore.base.randomness import generator
from farshore.benchmarks import covertype
from farshore.benchmarks.covertype import (
    LAND_TYPES,
    ZONES,
    Covertype,
    CovertypeNatural,
    CovertypeZones,
    balance,
    read_covertype,
    validation_rows,
)
from farshore.data.seal import FrozenModel
from farshore.errors import FarshoreError
from farshore.testing import check_benchmark
from reproduction.collect import ROWS


def test_the_papers_counts(data_root: Path) -> None:
    prepared = Covertype().prepare()
    assert prepared.domains == {
        "rawah": 15124,
        "neota": 6912,
        "comanche": 34272,
        "cache-la-poudre": 9078,
    }
    assert sum(prepared.domains.values()) == 65386
    classes = {domain["name"]: domain["classes"] for domain in prepared.manifest["domains"]}
    assert classes["rawah"] == {"0": 3781, "1": 3781, "3": 3781, "5": 3781}
    assert classes["neota"] == {"0": 2304, "1": 2304, "5": 2304}
    assert classes["comanche"] == dict.fromkeys("012345", 5712)
    assert classes["cache-la-poudre"] == {"1": 3026, "2": 3026, "4": 3026}


def test_the_rows_before_balancing_that_the_documents_use(shared: Path) -> None:
    table, cover = read_covertype(shared / "covertype")
    types = (
        "spruce-fir",
        "lodgepole-pine",
        "ponderosa-pine",
        "cottonwood",
        "aspen",
        "douglas-fir",
        "krummholz",
    )
    for area, rows in ROWS.items():
        inside = cover[table[:, 10 + covertype.AREAS.index(area)] == 1]
        counts = {name: int((inside == number).sum()) for number, name in enumerate(types, 1)}
        assert {name: count for name, count in counts.items() if count} == rows


def test_natural_frequencies_have_as_many_rows_and_the_shares_of_the_areas(
    data_root: Path, shared: Path
) -> None:
    prepared = CovertypeNatural().prepare()
    assert prepared.domains == Covertype().prepare().domains
    table, cover = read_covertype(shared / "covertype")
    for number, area in enumerate(covertype.AREAS):
        inside = covertype.CLASS_NUMBERS[cover[table[:, 10 + number] == 1]]
        shares = np.bincount(inside[inside >= 0], minlength=6) / (inside >= 0).sum()
        inputs, labels = prepared.read(area)
        drawn = np.bincount(np.asarray(labels), minlength=6) / len(labels)
        assert drawn == pytest.approx(shares, abs=0.02)
        assert len(np.unique(np.asarray(inputs), axis=0)) > 0.99 * len(labels)


def test_rows_at_natural_frequencies_are_drawn_by_the_seed() -> None:
    labels = np.repeat([0, 1], [90, 10])
    first, again, other = (
        CovertypeNatural().draw_rows(labels, torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    )
    assert len(first) == len(set(first.tolist())) == 20
    assert (first == np.sort(first)).all()
    assert (first == again).all()
    assert (first != other).any()


def test_every_soil_type_has_a_zone() -> None:
    assert len(LAND_TYPES) == 40
    assert sorted(LAND_TYPES) == list(LAND_TYPES)
    assert {code // 1000 for code in LAND_TYPES} == set(ZONES)


@pytest.mark.soak
def test_the_zones_have_no_soil_at_least_two_classes_and_pass_the_battery(data_root: Path) -> None:
    prepared = CovertypeZones().prepare()
    assert prepared.domains == {
        "lower-montane": 4109,
        "montane-dry": 284,
        "montane": 5006,
        "montane-dry-and-montane": 447,
        "montane-and-subalpine": 4320,
        "subalpine": 5113,
        "alpine": 3000,
    }
    for domain in prepared.manifest["domains"]:
        assert len(domain["classes"]) >= 2
        assert max(domain["classes"].values()) <= 1000
    inputs, _ = prepared.read("alpine")
    assert inputs.shape[1] == 14
    assert (np.asarray(inputs)[:, 10:].sum(axis=1) == 1).all()
    check_benchmark("covertype-zones")


@pytest.mark.soak
def test_natural_frequencies_pass_the_battery(data_root: Path) -> None:
    check_benchmark("covertype-natural")


def test_scenario_has_the_papers_numbers(data_root: Path) -> None:
    scenario = Covertype().scenario()
    assert [domain.name for domain in scenario.sources] == ["rawah", "neota", "comanche"]
    assert sum(len(domain.train) for domain in scenario.sources) == 45046
    assert all(domain.inputs.shape[1] == 50 for domain in scenario.sources)
    assert (len(scenario.classes), scenario.steps, scenario.memory, scenario.network) == (
        6,
        500,
        1000,
        "mlp",
    )
    target = scenario.target.open(FrozenModel(torch.nn.Linear(1, 1)))
    assert (len(target), target.inputs.shape[1], sorted(set(target.labels.tolist()))) == (
        9078,
        50,
        [1, 2, 4],
    )
    # The first source fixes the scale: its measured columns have deviation 1, the others' have not.
    first, last = scenario.sources[0], scenario.sources[2]
    assert torch.allclose(first.inputs[first.train, :10].std(dim=0), torch.ones(10), atol=0.05)
    assert not torch.allclose(last.inputs[last.train, :10].std(dim=0), torch.ones(10), atol=0.05)


def test_other_targets_and_orders_keep_rows_and_splits(data_root: Path) -> None:
    listed = Covertype().scenario()
    rawah = Covertype().scenario(target="rawah", order=["comanche", "cache-la-poudre", "neota"])
    neota = {s.name: s for s in rawah.sources}["neota"]
    assert torch.equal(neota.train, listed.sources[1].train)
    assert torch.equal(neota.labels, listed.sources[1].labels)
    assert rawah.target.name == "rawah"


def test_it_runs(data_root: Path) -> None:
    result = execute(Run(benchmark="covertype", method="er", steps=60))
    assert result.target is not None
    assert result.target.rows == 9078
    assert result.seconds["preparation"] < 2
    assert (result.source_score(1) or 0) > 0.5


def test_same_seed_same_bytes(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "covertype").symlink_to(data_root / "covertype", target_is_directory=True)
    first, second = Covertype().prepare(), Covertype().prepare(tmp_path)
    assert first.manifest["files"] == second.manifest["files"]
    assert Covertype().prepare(tmp_path, seed=1).manifest["files"] != first.manifest["files"]


def test_all_sources_is_named_non_continual(data_root: Path) -> None:
    scenario = make_scenario("covertype", {"preprocess": "all-sources"})
    assert any("not continual" in note for note in scenario.notes)
    assert make_scenario("covertype").notes == ()
    with pytest.raises(FarshoreError, match="unknown option of rotated-digits 'preprocess'"):
        make_scenario("rotated-digits", {"preprocess": "all-sources"})


def test_official_file_and_archive_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(70 * 55).reshape(70, 55) % 1000
    rows[:, 54] = np.repeat(np.arange(1, 8), 10)
    packed = gzip.compress("\n".join(",".join(map(str, row)) for row in rows).encode(), mtime=0)
    (tmp_path / "covtype.data.gz").write_bytes(packed)
    with pytest.raises(FarshoreError, match="not the published file"):
        read_covertype(tmp_path)
    (tmp_path / "covtype.data.gz").unlink()
    with zipfile.ZipFile(tmp_path / "covertype.zip", "w") as archive:
        archive.writestr("covtype.info", "about")
        archive.writestr("covtype.data.gz", packed)
    with pytest.raises(FarshoreError, match="not the published file"):
        read_covertype(tmp_path)
    import hashlib
    from dataclasses import replace

    monkeypatch.setattr(
        Covertype,
        "files",
        (replace(Covertype.files[0], sha256=hashlib.sha256(packed).hexdigest()),),
    )
    with pytest.raises(FarshoreError, match="published 581,012 rows"):
        read_covertype(tmp_path)
    monkeypatch.setattr(covertype, "PUBLISHED", (10,) * 7)
    table, cover = read_covertype(tmp_path)
    assert np.array_equal(table, rows[:, :54])
    assert np.array_equal(cover, rows[:, 54])


def test_a_damaged_npz_is_refused(tmp_path: Path) -> None:
    (tmp_path / "covtype.npz").write_bytes(b"no archive")
    with pytest.raises(FarshoreError, match=r"covtype\.npz cannot be read"):
        read_covertype(tmp_path)
    buffer = io.BytesIO()
    np.savez(buffer, X=np.zeros((3, 54), np.int16), y=np.ones(3, np.uint8))
    (tmp_path / "covtype.npz").write_bytes(buffer.getvalue())
    with pytest.raises(FarshoreError, match="published 581,012 rows"):
        read_covertype(tmp_path)


@given(st.lists(st.integers(2, 5000), min_size=1, max_size=8))
def test_rounding_is_carried_over_the_domains(rows: list[int]) -> None:
    counts = {str(number): count for number, count in enumerate(rows)}
    validation = validation_rows(counts)
    train = [counts[name] - validation[name] for name in counts]
    assert all(abs(t - 0.8 * n) < 1 + 1e-9 for t, n in zip(train, rows, strict=True))
    assert abs(sum(train) - 0.8 * sum(rows)) <= 0.5 + 1e-9


@given(st.lists(st.integers(0, 4), min_size=1, max_size=200))
def test_balanced_to_the_rarest_class(labels: list[int]) -> None:
    array = np.array(labels)
    balanced = balance(array, generator(0, "test"))
    counts = np.unique(array[balanced], return_counts=True)
    assert counts[0].tolist() == sorted(set(labels))
    assert set(counts[1].tolist()) == {np.unique(array, return_counts=True)[1].min()}
    assert np.array_equal(balanced, np.unique(balanced))
