"""Files are written completely or not at all, never through a link, and nothing else is deleted."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from filling import full_disk

from farshore.base.files import (
    append_line,
    check_writable,
    remove_folder,
    write_atomic,
    write_output,
)
from farshore.base.lock import exclusive
from farshore.base.state import load_state, save_state
from farshore.errors import FarshoreError, StateError
from farshore.training.checkpoints import Checkpoints


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """All files and links with their contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("write", [write_atomic, write_output])
@pytest.mark.parametrize("limit", [0, 5000])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, write, limit: int
) -> None:
    path = tmp_path / "file"
    write(path, b"old")
    with full_disk(limit), pytest.raises((OSError, FarshoreError), match="File too large"):
        write(path, b"n" * 10_000)
    assert snapshot(tmp_path) == {"file": b"old"}
    with full_disk(limit), pytest.raises((OSError, FarshoreError)):
        write(tmp_path / "other", b"n" * 10_000)
    assert snapshot(tmp_path) == {"file": b"old"}


def test_a_link_is_replaced_in_our_folders_and_followed_where_the_user_named_it(
    tmp_path: Path,
) -> None:
    victim = tmp_path / "victim"
    for name in ("ours", "named"):
        (tmp_path / name).symlink_to(victim)
    victim.write_bytes(b"mine")
    write_atomic(tmp_path / "ours", b"new")
    assert victim.read_bytes() == b"mine"
    write_output(tmp_path / "named", b"theirs")
    assert (tmp_path / "named").is_symlink()
    assert victim.read_bytes() == b"theirs"


def test_devices_are_written_and_stay_devices(tmp_path: Path) -> None:
    write_output(Path(os.devnull), b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    reader, writer = os.pipe()
    write_output(Path(f"/dev/fd/{writer}"), b"through a pipe")
    assert os.read(reader, 100) == b"through a pipe"
    os.close(reader)
    os.close(writer)
    with pytest.raises(FarshoreError, match="No space left"):
        write_output(Path("/dev/full"), b"x")
    with pytest.raises(FarshoreError, match="Is a directory"):
        write_output(tmp_path, b"x")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(FarshoreError, match="cannot be written"):
        write_output(tmp_path / "circle", b"x")


def test_a_full_standard_output_is_one_line() -> None:
    """Tested in a new process, because the interpreter writes what is left when it ends."""
    script = """
import sys
from farshore.errors import FarshoreError
from farshore.base.files import print_output
try:
    print_output("text" * 10_000)
except FarshoreError as error:
    sys.exit(str(error))
"""
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 1
    assert ended.stderr == "the standard output cannot be written: No space left on device\n"


def test_probing_a_folder_touches_nobodys_files(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (tmp_path / "victim").write_bytes(b"mine")
    (runs / ".probe").write_bytes(b"mine too")
    (runs / ".probe-link").symlink_to(tmp_path / "victim")
    before = snapshot(tmp_path)
    check_writable(runs)
    assert snapshot(tmp_path) == before
    with full_disk(0), pytest.raises(FarshoreError, match=r"--runs '.*' cannot be written: File"):
        check_writable(runs, "--runs")
    assert snapshot(tmp_path) == before


def test_a_line_is_not_appended_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "progress").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(tmp_path / "progress", "line")
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_folder_behind_a_link_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis").write_bytes(b"mine")
    (tmp_path / "stages").symlink_to(tmp_path / "theirs")
    before = snapshot(tmp_path)
    with pytest.raises(StateError, match="could not be deleted"):
        remove_folder(tmp_path / "stages")
    assert snapshot(tmp_path) == before


# ---- locks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_lock_that_is_a_link_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / ".lock").symlink_to(tmp_path / target)
    before = snapshot(tmp_path)
    with pytest.raises(FarshoreError, match=r"\.lock is a link"), exclusive(folder):
        pass
    assert snapshot(tmp_path) == before


def test_somebody_elses_lock_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_bytes(b"mine")
    with pytest.raises(FarshoreError, match="is not a lock of farshore"), exclusive(tmp_path):
        pass
    assert snapshot(tmp_path) == {".lock": b"mine"}
    (tmp_path / ".lock").write_bytes(b"")  # what a kill at the worst moment leaves of ours
    for _ in range(2):
        with exclusive(tmp_path):
            pass


def test_a_lock_works_on_a_full_disk(tmp_path: Path) -> None:
    with full_disk(0), exclusive(tmp_path):
        assert (tmp_path / ".lock").exists()
        with pytest.raises(FarshoreError, match="in use by another process"), exclusive(tmp_path):
            pass


class Msvcrt:
    """What Windows has for locks: bytes of a file that one descriptor locks, for nobody to read."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.locked: dict[tuple[int, int], int] = {}

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        assert (mode, count) == (self.LK_NBLCK, 1)
        place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        assert place[1] > 1000
        if place in self.locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.locked[place] = descriptor

    def close(self, descriptor: int) -> None:
        self.locked = {place: by for place, by in self.locked.items() if by != descriptor}
        CLOSE(descriptor)


CLOSE = os.close


def test_a_lock_where_there_is_no_flock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Msvcrt()
    monkeypatch.setattr("farshore.base.lock.fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr(os, "close", windows.close)
    for name in ("pread", "pwrite"):  # Windows has neither
        monkeypatch.delattr(os, name, raising=False)
    for _ in range(2):
        with exclusive(tmp_path):
            for _ in range(2):  # being refused does not release it
                in_use = f"in use by process {os.getpid()} on"
                with pytest.raises(FarshoreError, match=in_use), exclusive(tmp_path):
                    pass
        assert windows.locked == {}


# ---- states --------------------------------------------------------------------------------------

FOREIGN = ["thesis.txt", "state-of-the-art.json", "tensors-mine.safetensors", ".state-x", ".git"]


def test_foreign_files_in_a_state_folder_stay(tmp_path: Path) -> None:
    for name in FOREIGN:
        (tmp_path / name).write_bytes(b"mine")
    for number in range(3):
        save_state(tmp_path, {"n": number}, kind="checkpoint", keep_previous=True)
    checkpoints = Checkpoints(tmp_path, base="other")
    assert checkpoints.read() is None
    assert snapshot(tmp_path) == dict.fromkeys(FOREIGN, b"mine")


def test_a_checkpoint_in_the_folder_of_a_model_does_not_delete_the_model(tmp_path: Path) -> None:
    save_state(tmp_path, {"n": 1}, kind="learner")
    with pytest.raises(StateError, match="contains a saved learner"):
        Checkpoints(tmp_path, base="x").read()
    assert load_state(tmp_path, kind="learner") == {"n": 1}


def test_nothing_is_saved_through_links(tmp_path: Path) -> None:
    for name in ("model", "elsewhere"):
        save_state(tmp_path / name, {"n": 1}, kind="test")
    (tmp_path / "model" / "manifest.json").unlink()
    (tmp_path / "model" / "manifest.json").symlink_to(tmp_path / "elsewhere" / "manifest.json")
    (tmp_path / "checkpoint").symlink_to(tmp_path / "elsewhere")
    before = snapshot(tmp_path)
    with pytest.raises(StateError, match=r"manifest\.json is a link"):
        save_state(tmp_path / "model", {"n": 2}, kind="test")
    with pytest.raises(StateError, match="checkpoint is a link"):
        Checkpoints(tmp_path / "checkpoint", base="x").read()
    assert snapshot(tmp_path) == before
