from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from farshore.data.downloads.archives import read_gzip, unpack
from farshore.errors import FarshoreError


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def write_tar(path: Path, members: dict[str, bytes], link: str | None = None) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            facts = tarfile.TarInfo(name)
            facts.size = len(data)
            archive.addfile(facts, io.BytesIO(data))
        if link is not None:
            facts = tarfile.TarInfo("link")
            facts.type, facts.linkname = tarfile.SYMTYPE, link
            archive.addfile(facts)
    return path


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_plain_files_are_unpacked(write: object, tmp_path: Path) -> None:
    archive = write(tmp_path / "archive", {"a/b.txt": b"one", "c.txt": b"two"})  # type: ignore[operator]
    written = unpack(archive, tmp_path / "out", limit=100)
    assert {
        path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in written
    } == {"a/b.txt": b"one", "c.txt": b"two"}


@pytest.mark.parametrize("write", [write_zip, write_tar])
@pytest.mark.parametrize(
    "name", ["../outside", "/outside", "a/../../outside", "C:/outside", "..\\outside"]
)
def test_nothing_is_written_outside(write: object, name: str, tmp_path: Path) -> None:
    archive = write(tmp_path / "archive", {name: b"harm"})  # type: ignore[operator]
    with pytest.raises(FarshoreError, match="outside its folder"):
        unpack(archive, tmp_path / "deep" / "out", limit=100)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["archive"]


@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_more_bytes_than_expected_are_refused(write: object, tmp_path: Path) -> None:
    archive = write(tmp_path / "archive", {"bomb": b"\0" * 100_000})  # type: ignore[operator]
    with pytest.raises(FarshoreError, match="more bytes than expected"):
        unpack(archive, tmp_path / "out", limit=1000)


def test_links_and_damage_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FarshoreError, match="link or device"):
        unpack(write_tar(tmp_path / "a.tar", {}, link="/etc/passwd"), tmp_path / "out", limit=100)
    (tmp_path / "b.tar").write_bytes(b"no archive at all")
    with pytest.raises(FarshoreError, match="is damaged"):
        unpack(tmp_path / "b.tar", tmp_path / "out", limit=100)
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        facts = zipfile.ZipInfo("link")
        facts.external_attr = 0o120777 << 16
        archive.writestr(facts, "/etc/passwd")
    with pytest.raises(FarshoreError, match="contains a link"):
        unpack(tmp_path / "c.zip", tmp_path / "out", limit=100)


def test_gzip_is_bounded_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\0" * 5000))
    assert read_gzip(path, limit=5000) == b"\0" * 5000
    with pytest.raises(FarshoreError, match="more than the expected"):
        read_gzip(path, limit=4999)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FarshoreError, match="is damaged"):
        read_gzip(path, limit=5000)
