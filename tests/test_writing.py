"""Files are replaced whole, or stay as they were."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fabric_fix.writing import write


def put(path: Path, new: bytes = b"new\n") -> str | None:
    problem = write(str(path), os.path.realpath(path), b"old\n", new)
    return problem.message if problem else None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\n")
    return path


def test_new_bytes_and_no_litter(file: Path) -> None:
    assert put(file, b"\xef\xbb\xbfnew\r\n") is None
    assert file.read_bytes() == b"\xef\xbb\xbfnew\r\n"
    assert os.listdir(file.parent) == ["a.py"]


def test_mode_is_kept(file: Path) -> None:
    file.chmod(0o754)
    assert put(file) is None
    assert stat.S_IMODE(file.stat().st_mode) == 0o754


def test_link_stays_a_link(file: Path) -> None:
    link = file.parent / "link.py"
    link.symlink_to("a.py")
    assert put(link) is None
    assert link.is_symlink()
    assert file.read_bytes() == b"new\n"


def test_hard_link_sees_the_new_bytes(file: Path) -> None:
    other = file.parent / "b.py"
    os.link(file, other)
    assert put(file, b"n\n") is None
    assert other.read_bytes() == b"n\n"
    assert other.stat().st_ino == file.stat().st_ino


def test_changed_file_is_refused(file: Path) -> None:
    file.write_bytes(b"somebody else's\n")
    assert "changed while" in (put(file) or "")
    assert file.read_bytes() == b"somebody else's\n"
    assert os.listdir(file.parent) == ["a.py"]


def test_file_changed_during_the_writing_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _descriptor: file.write_bytes(b"saved in an editor\n"))
    assert "changed while" in (put(file) or "")
    assert file.read_bytes() == b"saved in an editor\n"
    assert os.listdir(file.parent) == ["a.py"]


def test_failure_leaves_the_old_file_and_no_litter(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "No space left" in (put(file) or "")
    assert file.read_bytes() == b"old\n"
    assert os.listdir(file.parent) == ["a.py"]


def test_folder_that_takes_no_file_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: str) -> None:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert put(file) == f"cannot be written: no new file can be made in {file.parent}: Permission denied"
    assert file.read_bytes() == b"old\n"


def test_vanished_file_is_a_problem(file: Path) -> None:
    file.unlink()
    assert "No such file" in (put(file) or "")
