"""elec2 and diabetes130: on small files of the official layout, from a local server, and on the
real files where they are at hand.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from farshore import Run, execute
from farshore.benchmarks import diabetes130, elec2, make_benchmark
from farshore.benchmarks.diabetes130 import CATEGORIES, NUMBERS, SITES, Diabetes130, frequent
from farshore.benchmarks.elec2 import COLUMNS, ROWS, Elec2
from farshore.data.seal import FrozenModel
from farshore.errors import FarshoreError
from farshore.runs.plan.select import select_targets
from farshore.testing import check_benchmark


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


BLANK = FrozenModel(torch.nn.Linear(1, 1))


def elec2_text(space: str = "", chunk: bool = False) -> bytes:
    """Rows in DRAIN's layout: as many as in the real file, in chronological order."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 1000, (sum(ROWS), len(COLUMNS)))
    table[:, 1] = np.arange(len(table)) // 48 % 7 + 1
    table[:, -1] = table[:, 3] > 500
    frame = pd.DataFrame(table, columns=COLUMNS)
    if chunk:
        frame.insert(0, "chunk", np.repeat(np.arange(len(ROWS)), ROWS))
    text = frame.to_csv(index=False)
    return text.replace(",1\n", f",{space}1\n").encode()


def diabetes_text(rows: int = 700) -> bytes:
    """Rows in UCI's layout: every site, patients with several stays, and missing cells."""
    rng = np.random.default_rng(0)
    codes = ["1", "2", "3", "4", "5", "6", "17", "20", "8", "9", "7"]
    columns: dict[str, object] = {"encounter_id": np.arange(rows)}
    columns["patient_nbr"] = rng.integers(0, rows // 2, rows)
    for column in CATEGORIES:
        columns[column] = rng.choice(["a", "b", "?"], rows, p=[0.6, 0.3, 0.1])
    for column in NUMBERS:
        columns[column] = rng.integers(0, 50, rows)
    columns["admission_source_id"] = [codes[row % len(codes)] for row in range(rows)]
    columns["readmitted"] = rng.choice(["NO", "<30", ">30"], rows)
    columns["examide"] = np.where(np.arange(rows) == 1, "rare", "No")
    frame = pd.DataFrame(columns)
    frame["race"] = np.where(np.arange(rows) % 50 == 3, "?", "Caucasian")
    return frame.to_csv(index=False, lineterminator="\r\n").encode()


def zipped(name: str, text: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with small files in place of both tables."""
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    table = pd.read_csv(io.BytesIO(elec2_text())).to_numpy("<i4")
    monkeypatch.setattr(elec2, "VALUES", hashlib.sha256(table.tobytes()).hexdigest())
    text = diabetes_text().replace(b"\r\n", b"\n")
    monkeypatch.setattr(diabetes130, "PUBLISHED", hashlib.sha256(text).hexdigest())
    for name, file, content in (
        ("elec2", "elec2_clean.csv", elec2_text()),
        ("diabetes130", "diabetic_data.csv", diabetes_text()),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_bytes(content)
    return tmp_path


@pytest.mark.soak
@pytest.mark.parametrize("name", ["elec2", "diabetes130"])
def test_it_passes_the_battery(root: Path, name: str) -> None:
    check_benchmark(name)


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("elec2", "elec2_clean.csv", elec2_text(space=" ")),
        ("elec2", "elec2.csv.gz", gzip.compress(elec2_text(chunk=True))),
        ("diabetes130", "diabetic_data.csv.gz", gzip.compress(diabetes_text())),
        ("diabetes130", "diabetes130.csv.gz", diabetes_text().replace(b"\r\n", b"\n")),
        (
            "diabetes130",
            "dataset_diabetes.zip",
            zipped("dataset_diabetes/diabetic_data.csv", diabetes_text()),
        ),
    ],
)
def test_every_form_gives_the_same_bytes(root: Path, name: str, file: str, content: bytes) -> None:
    benchmark = make_benchmark(name)
    before = benchmark.prepare()
    assert before is not None
    other = root / "other" / name
    other.mkdir(parents=True)
    (other / file).write_bytes(content)
    again = make_benchmark(name).prepare(root / "other")
    assert again is not None
    assert again.manifest["files"] == before.manifest["files"]
    assert benchmark.prepare(seed=3) == before  # rows do not depend on the seed


@pytest.mark.parametrize("name", ["elec2", "diabetes130"])
def test_other_rows_are_refused(root: Path, name: str) -> None:
    path = next((root / name).iterdir())
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(FarshoreError, match="is not the published table"):
        make_benchmark(name).prepare()
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(FarshoreError, match="is not the published table"):
        make_benchmark(name).prepare()
    path.unlink()
    (root / name / "dataset_diabetes.zip").write_bytes(zipped("else.csv", b"1"))
    if name == "diabetes130":
        with pytest.raises(FarshoreError, match="contains none of"):
            make_benchmark(name).prepare()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "elec2_clean.csv").write_bytes(elec2_text())
    (folder / "dataset_diabetes.zip").write_bytes(zipped("diabetic_data.csv", diabetes_text()))
    handler = partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


@pytest.mark.parametrize("kind", [Elec2, Diabetes130])
def test_it_is_downloaded_and_checked(
    root: Path, server: str, tmp_path: Path, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    (official,) = kind.files
    served = (tmp_path / "served" / official.name).read_bytes()
    file = replace(
        official, urls=(server + official.name,), sha256=hashlib.sha256(served).hexdigest()
    )
    monkeypatch.setattr(kind, "files", (file,))
    prepared = kind().prepare(tmp_path / "new")
    assert list(prepared.domains) == list(kind.domains)
    monkeypatch.setattr(kind, "files", (replace(file, urls=("http://127.0.0.1:9/gone",)),))
    with pytest.raises(FarshoreError, match=f"put {official.name} .* into .*{kind.raw}") as raised:
        kind().prepare(tmp_path / "newer")
    assert f"farshore prepare {kind.set_name} --root" in str(raised.value)


# ---- elec2 ---------------------------------------------------------------------------------------


def test_a_fortnight_is_predicted_from_those_before_it(root: Path) -> None:
    benchmark = make_benchmark("elec2")
    assert [domain.name for domain in benchmark.scenario(target="5").sources] == list("01234")
    scenario = benchmark.scenario()
    assert len(scenario.sources) == 40
    assert scenario.target.name == "40"
    aims = select_targets(benchmark, "each:39/40")
    assert [(aim.target, aim.left_out, aim.in_time) for aim in aims] == [
        ("39", ("40",), True),
        ("40", (), True),
    ]
    with pytest.raises(FarshoreError, match="'0' is the first domain of elec2"):
        benchmark.scenario(target="0")
    with pytest.raises(FarshoreError, match="unknown target"):
        benchmark.scenario(target="41")
    order = [str(number) for number in (4, 3, 2, 1, 0)]
    turned = benchmark.scenario(target="5", order=order).sources
    assert [domain.name for domain in turned] == order
    named = benchmark.scenario(target="5", left_out=["1"]).sources
    assert [domain.name for domain in named] == list("0234")


def test_validation_rows_are_the_latest_and_scales_those_of_the_first(root: Path) -> None:
    first, second = make_benchmark("elec2").scenario(target="2").sources
    assert first.validation.tolist() == list(range(536, 670))
    assert torch.allclose(first.inputs[first.train].std(dim=0, correction=0), torch.ones(7))
    assert not torch.allclose(second.inputs[second.train].std(dim=0, correction=0), torch.ones(7))


def test_runs_of_one_plan_name_targets_and_orders(root: Path) -> None:
    result = execute(Run(benchmark="elec2", method="finetune", target="2", steps=3))
    assert list(result.sources) == ["0", "1"]
    turned = execute(
        Run(benchmark="elec2", method="finetune", target="2", steps=3, order=("1", "0"))
    )
    assert list(turned.sources) == ["1", "0"]


def test_the_real_rows_of_elec2(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    (tmp_path / "elec2").symlink_to(shared / "natural", target_is_directory=True)
    prepared = Elec2().prepare()
    assert tuple(prepared.domains.values()) == ROWS
    assert sum(ROWS) == 27_549
    inputs, labels = prepared.read("40")
    assert np.asarray(inputs[-1]).tolist() == [7, 48, 1688, 6215, 1705, 4747, -419]
    frame = pd.read_csv(shared / "natural" / "elec2.csv.gz")
    assert labels.float().mean().item() == pytest.approx(frame["Y"][frame["chunk"] == 40].mean())


# ---- diabetes130 ---------------------------------------------------------------------------------


def test_patients_stay_on_one_side_and_the_target_has_no_say(root: Path) -> None:
    listed = Diabetes130().scenario()
    prepared = Diabetes130().prepare()
    side: dict[int, str] = {}
    for domain in listed.sources:
        patients = np.asarray(prepared.read(domain.name)[0][:, -1])
        for name, rows in (("train", domain.train), ("held", domain.validation)):
            for patient in patients[rows.numpy()].tolist():
                assert side.setdefault(patient, name) == name
    fewer = Diabetes130().scenario(target="other", left_out=["7"])
    for domain, other in zip(listed.sources, fewer.sources, strict=False):
        assert torch.equal(domain.train, other.train)


def test_columns_rare_categories_and_missing_cells(root: Path) -> None:
    scenario = Diabetes130().scenario()
    first = scenario.sources[0]
    names = scenario.preprocessing.features
    assert len({name.partition("=")[0] for name in names}) == len(CATEGORIES) + len(NUMBERS)
    assert not [name for name in names if "rare" in name]
    assert first.inputs.shape[1] == len(names)
    (note,) = scenario.notes
    assert note.endswith("source rows: patients also at 7")
    target = scenario.target.open(BLANK)
    assert (target.name, len(target.train)) == ("7", 0)
    assert frequent(pd.Series(["a"] * 99 + ["b"])) == ["a", "b"]
    assert frequent(pd.Series(["a"] * 100 + ["b"])) == ["a"]


def test_the_real_rows_of_diabetes130(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    (tmp_path / "diabetes130").symlink_to(shared / "natural", target_is_directory=True)
    prepared = Diabetes130().prepare()
    frame = pd.read_csv(shared / "natural" / "diabetes130.csv.gz", dtype=str)
    counts = Counter(frame["admission_source_id"][frame["race"] != "?"])
    assert sum(prepared.domains.values()) == 99_493 == sum(counts.values())
    rare = [code for code in counts if code not in SITES]
    assert prepared.domains == {
        **{code: counts[code] for code in SITES if code != "other"},
        "other": sum(counts[code] for code in rare),
    }
    assert (len(rare), max(counts[code] for code in rare)) == (8, 54)
    labels = prepared.read("7")[1]
    rows = frame[(frame["race"] != "?") & (frame["admission_source_id"] == "7")]
    assert int(labels.sum()) == int((rows["readmitted"] != "NO").sum())
