from __future__ import annotations

import hashlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from farshore.benchmarks.prepared import PreparedBenchmark
from farshore.data.downloads import prepared as sets
from farshore.data.downloads.public_files import PublicFile, data_root, fetch
from farshore.errors import FarshoreError

CONTENT = b"the official bytes " * 1000
FACTS = {"set": "tiny", "seed": 0}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "official.bin").write_bytes(CONTENT)
    (folder / "broken.bin").write_bytes(CONTENT[:-1])
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    ) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


def public(*urls: str, name: str = "official.bin") -> PublicFile:
    return PublicFile(name, urls, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


class Bar:
    total = 0
    seen = 0

    def update(self, size: int) -> None:
        self.seen += size

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_download_is_checked_and_shown(server: str, tmp_path: Path) -> None:
    bars: dict[str, Bar] = {}
    file = public(
        server + "gone.bin", server + "official.bin"
    )  # the first address fails, the second serves
    paths = fetch(
        [file],
        tmp_path / "raw",
        again="farshore prepare tiny",
        bar=lambda name: bars.setdefault(name, Bar()),
    )
    assert paths[0].read_bytes() == CONTENT
    assert bars["official.bin"].seen >= len(CONTENT)


def test_a_download_with_the_wrong_checksum_is_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match="the wrong checksum"):
        fetch([public(server + "broken.bin")], tmp_path / "raw", again="farshore prepare tiny")
    assert not list((tmp_path / "raw").glob("official*"))


def test_without_a_network_the_error_says_what_to_put_where(tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    files = [
        public("http://127.0.0.1:9/official.bin"),
        public("http://127.0.0.1:9/other.bin", name="other.bin"),
    ]
    with pytest.raises(FarshoreError) as excinfo:
        fetch(files, folder, again="farshore prepare tiny --root there")
    message = str(excinfo.value)
    assert "\n" not in message
    for part in (
        "official.bin (19,000 bytes)",
        "other.bin",
        str(folder),
        "`farshore prepare tiny --root there`",
    ):
        assert part in message


def test_a_wrong_file_in_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "official.bin").write_bytes(b"something else")
    with pytest.raises(FarshoreError, match="not the published file"):
        fetch([public("http://127.0.0.1:9/official.bin")], tmp_path, again="farshore prepare tiny")


def test_the_data_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FARSHORE_DATA", raising=False)
    assert data_root().name == "farshore"
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path / "a"))
    assert data_root() == tmp_path / "a"
    assert data_root(tmp_path / "b") == tmp_path / "b"


def domains(rows: int = 50) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        yield (
            name,
            rng.integers(0, 255, (rows, 1, 4, 4), dtype=np.uint8),
            np.arange(rows, dtype=np.uint8) % 3,
        )


def test_a_built_set_is_mapped_and_described(tmp_path: Path) -> None:
    built = sets.build(tmp_path / "set", FACTS, domains())
    prepared = sets.find(tmp_path / "set", FACTS)
    assert prepared is not None
    assert prepared.domains == {"a": 50, "b": 50}
    inputs, labels = prepared.read("b")
    assert isinstance(inputs, np.memmap)
    assert np.array_equal(inputs, list(domains())[1][1])
    assert labels.tolist() == [row % 3 for row in range(50)]
    assert prepared.verify()
    assert prepared.manifest["domains"][0]["classes"] == {"0": 17, "1": 17, "2": 16}
    assert built.bytes == sum(path.stat().st_size for path in (tmp_path / "set").glob("*.npy"))


def test_other_settings_or_missing_bytes_do_not_count_as_complete(tmp_path: Path) -> None:
    sets.build(tmp_path / "set", FACTS, domains())
    assert sets.find(tmp_path / "set", {**FACTS, "seed": 1}) is None
    array = tmp_path / "set" / "01-inputs.npy"
    array.write_bytes(array.read_bytes()[:-1])
    assert sets.find(tmp_path / "set", FACTS) is None
    again = sets.build(tmp_path / "set", FACTS, domains())  # a damaged set is replaced
    assert again.verify()
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        yield next(domains())
        raise OSError(28, "No space left on device")

    with pytest.raises(FarshoreError, match="the disk is full"):
        sets.build(tmp_path / "set", FACTS, failing())
    assert list(tmp_path.iterdir()) == []


def test_two_concurrent_builds_both_succeed(tmp_path: Path) -> None:
    def slowly() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        yield from domains()
        sets.build(tmp_path / "set", FACTS, domains())  # another process is done first

    assert sets.build(tmp_path / "set", FACTS, slowly()).verify()
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


class Tiny(PreparedBenchmark):
    name = "tiny"
    raw = "tiny"
    set_name = "tiny"
    files = (public("http://127.0.0.1:9/official.bin"),)

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        return domains()

    def make(self, *_: object) -> None:  # type: ignore[override]
        raise NotImplementedError


def test_a_run_prepares_if_the_files_exist_and_otherwise_explains_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    with pytest.raises(FarshoreError, match="type `farshore prepare tiny` first"):
        Tiny().open(0)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "official.bin").write_bytes(CONTENT)
    assert Tiny().open(0).domains == {"a": 50, "b": 50}
    (tmp_path / "tiny" / "official.bin").unlink()
    assert Tiny().open(0).verify()  # the raw file is not needed any more
    facts = Tiny().data_facts(0)
    assert (facts["set"], facts["version"], len(facts["sha256"])) == ("tiny-seed-0", "1", 64)


def test_prepare_repairs_changed_bytes(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "official.bin").write_bytes(CONTENT)
    array = Tiny().prepare(tmp_path).folder / "00-inputs.npy"
    data = bytearray(array.read_bytes())
    data[-1] ^= 1
    array.write_bytes(bytes(data))
    mended = Tiny().prepare(tmp_path)
    assert mended.verify()
    assert np.array_equal(mended.read("a")[0], next(domains())[1])


BUILD = """
import sys, time, numpy as np
from pathlib import Path
from farshore.data.downloads.prepared import build
def domains():
    for name in ("a", "b"):
        yield name, np.zeros((2000, 1000), np.uint8), np.zeros(2000, np.uint8)
        print("written", flush=True)
        time.sleep(float(sys.argv[2]))
build(Path(sys.argv[1]), {"set": "tiny", "seed": 0}, domains())
"""


@pytest.mark.soak
def test_a_killed_build_never_looks_complete(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tmp_path / "set"), "60"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "written\n"
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    running.stdout.close()
    assert sets.find(tmp_path / "set", FACTS) is None
    assert len(list(tmp_path.iterdir())) == 1  # what the killed build left
    assert sets.build(tmp_path / "set", FACTS, domains()).verify()
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.soak
def test_a_full_disk_leaves_nothing_and_is_reported(tmp_path: Path) -> None:
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000))\n" + BUILD
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", limited, str(tmp_path / "set"), "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "the disk is full" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert time.perf_counter() - began < 60


def test_the_manifest_is_plain_json(tmp_path: Path) -> None:
    sets.build(tmp_path / "set", FACTS, domains())
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert manifest["settings"] == FACTS
    assert set(manifest["files"]) == {
        "00-inputs.npy",
        "00-labels.npy",
        "01-inputs.npy",
        "01-labels.npy",
    }
