"""Patches, as git, patch and unidiff take them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unidiff.patch import PatchSet

from fabric_fix.diffing import patch_of, unified
from fabric_fix.engine import FileResult, MadeFix

LONG = [f"line {n}\n".encode() for n in range(40)]
PAIRS = {
    "first line": (b"a\nb\nc\n", b"A\nb\nc\n"),
    "only line": (b"a\n", b"b\n"),
    "last line": (b"a\nb\n", b"a\nB\n"),
    "appended": (b"a\n", b"a\nb\n"),
    "prepended": (b"a\n", b"b\na\n"),
    "emptied": (b"a\n", b""),
    "filled": (b"", b"a\n"),
    "two hunks": (b"".join(LONG), b"".join(LONG).replace(b"line 3\n", b"").replace(b"line 33\n", b"x\ny\n")),
    "hunks that touch": (b"".join(LONG), b"".join(LONG).replace(b"line 3\n", b"x\n").replace(b"line 10\n", b"y\n")),
    "no final newline": (b"a\nb", b"A\nb"),
    "no final newline, last line changed": (b"a\nb", b"a\nB"),
    "final newline gained": (b"a\nb", b"a\nb\n"),
    "final newline lost": (b"a\nb\n", b"a\nb"),
    "appended without final newline": (b"a", b"a\nb"),
    "CRLF": (b"a\r\nb\r\n", b"a\r\nB\r\n"),
    "CRLF without final newline": (b"a\r\nb", b"a\r\nB"),
    "CR only": (b"a\rb\rc\r", b"a\rB\rc\r"),
    "mixed": (b"a\r\nb\rc\nd\r\n", b"a\r\nb\rC\nd\r\n"),
    "form feed": (b"a\n\x0c\nb\x0cc\n", b"a\n\x0c\nb\x0cC\n"),
    "line separator": ("a\n'x\u2028y\x85'\nb\n".encode(), "a\n'x\u2028y\x85'\nB\n".encode()),
    "mark": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfA\nb\n"),
    "not UTF-8": (b"# coding: latin-1\n'\xe9'\na\n", b"# coding: latin-1\n'\xe9'\nA\n"),
    "lines that look like a patch": (
        b"-- a\n++ b\n@@ -1 +1 @@\n\\ No newline\n",
        b"-- a\n++ c\n@@ -1 +1 @@\n\\ No newline\n",
    ),
    "tabs and blanks at the end": (b"\ta  \n\t\nb\t\n", b"\ta  \n\t\n\tc \n"),
}


def git(folder: Path, *arguments: str, patch: bytes = b"") -> None:
    done = subprocess.run(["git", *arguments], cwd=folder, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode() + patch.decode("utf-8", "backslashreplace")


def assert_git_applies(folder: Path, name: str, old: bytes, new: bytes, patch: bytes) -> None:
    (folder / name).write_bytes(old)
    git(folder, "apply", "--check", "-", patch=patch)
    git(folder, "apply", "-", patch=patch)
    assert (folder / name).read_bytes() == new


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


@pytest.mark.parametrize("case", PAIRS)
def test_git_apply_gives_the_very_bytes(repository: Path, case: str) -> None:
    old, new = PAIRS[case]
    assert_git_applies(repository, "a.py", old, new, unified("a.py", old, new, lambda _: "FF101 fix 1"))


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs GNU patch")
@pytest.mark.parametrize("case", [case for case in PAIRS if case not in ("emptied", "filled")])
def test_patch_gives_the_very_bytes(tmp_path: Path, case: str) -> None:
    old, new = PAIRS[case]
    (tmp_path / "a.py").write_bytes(old)
    patch = unified("a.py", old, new, lambda _: "FF101 fix 1")
    subprocess.run(["patch", "-p1", "--binary", "-s"], cwd=tmp_path, input=patch, check=True)
    assert (tmp_path / "a.py").read_bytes() == new
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


@pytest.mark.parametrize(
    "name", ["my file.py", 'quo"te.py', "back\\slash.py", "tab\t.py", "é.py", "-x.py", "new\nline.py"]
)
def test_odd_names_are_quoted_as_git_does(repository: Path, name: str) -> None:
    assert_git_applies(repository, name, b"a\n", b"b\n", unified(name, b"a\n", b"b\n", lambda _: ""))


def test_patch_applies_from_a_folder_inside_the_repository(repository: Path) -> None:
    folder = repository / "sub"
    folder.mkdir()
    assert_git_applies(folder, "a.py", b"a\n", b"b\n", unified("a.py", b"a\n", b"b\n", lambda _: ""))


lines = st.lists(st.sampled_from([b"a", b"b", b"", b"\r", b"c\rd", b"\x0c"]), max_size=12).map(b"\n".join)


@given(old=lines, new=lines)
@settings(max_examples=60, deadline=None)
def test_any_pair_of_texts(tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes) -> None:
    if old == new:
        return
    folder = tmp_path_factory.mktemp("any")
    assert_git_applies(folder, "a.py", old, new, unified("a.py", old, new, lambda _: "FF101 fix 1"))


def test_unidiff_reads_files_and_fixes() -> None:
    old, new = PAIRS["two hunks"]
    patch = PatchSet(unified("pkg/a.py", old, new, lambda _: "FF201 fix 3").decode())
    assert [file.path for file in patch] == ["pkg/a.py"]
    assert [hunk.section_header for hunk in patch[0]] == ["FF201 fix 3", "FF201 fix 3"]
    assert [(hunk.source_start, hunk.source_length, hunk.target_length) for hunk in patch[0]] == [(1, 7, 6), (31, 7, 8)]


def result(old: bytes, new: bytes, fixes: tuple[MadeFix, ...]) -> FileResult:
    return FileResult("a.py", "a.py", old, new, old.decode(), new.decode(), fixes=fixes)


def sections(patch: bytes) -> list[str]:
    return [line.split(b"@@")[2].decode().strip() for line in patch.split(b"\n") if line.startswith(b"@@ ")]


def test_each_hunk_names_the_fixes_whose_lines_it_holds() -> None:
    old, new = PAIRS["two hunks"]
    fixes = (MadeFix(1, "FF101", ((4, 4),)), MadeFix(2, "FF201", ((34, 34), (4, 4))))
    assert sections(patch_of(result(old, new, fixes), 5)) == ["FF101 fix 6, FF201 fix 7", "FF201 fix 7"]


def test_hunk_of_an_import_names_the_fix_that_needs_it() -> None:
    old = b"".join(LONG)
    new = old.replace(b"line 1\n", b"line 1\nfrom x import Name\n").replace(b"line 33\n", b"Name\n")
    fixes = (MadeFix(1, "FF201", ((34, 34),), ("Name",)), MadeFix(2, "FF101", ((35, 35),)))
    assert sections(patch_of(result(old, new, fixes))) == ["FF201 fix 1", "FF201 fix 1, FF101 fix 2"]


def test_lines_of_a_file_with_lone_carriage_returns() -> None:
    old = b"a\rb\rc\n" + b"x\n" * 20 + b"d\n"
    new = old.replace(b"d\n", b"D\n")
    fixes = (MadeFix(1, "FF101", ((24, 24),)), MadeFix(2, "FF201", ((2, 2),)))
    assert sections(patch_of(result(old, new, fixes))) == ["FF101 fix 1"]


def test_no_change_is_no_patch() -> None:
    assert patch_of(result(b"a\n", b"a\n", ())) == b""
