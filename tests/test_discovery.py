"""Which files are looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabric_fix.config import Configs, Settings
from fabric_fix.discovery import Discovery


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x = 1\n")


def found(*paths: str, exclude: tuple[str, ...] | None = None) -> list[str]:
    discovery = Discovery(Configs(Settings(exclude=exclude, base=os.getcwd())))
    files = [candidate.path for candidate in discovery.find(paths) if not candidate.left_out()]
    assert discovery.problems == []
    return files


def problems(*paths: str) -> list[str]:
    discovery = Discovery(Configs(Settings()))
    discovery.find(paths)
    return [str(problem) for problem in discovery.problems]


def test_python_files_only_sorted_hidden_ones_too(here: Path) -> None:
    make("b.py", "a/z.pyw", "a/b.py", "c.txt", "d.pyi", "e.ipynb", ".github/scripts/f.py", ".hidden.py", "a.py")
    assert found(".") == [".github/scripts/f.py", ".hidden.py", "a.py", "a/b.py", "a/z.pyw", "b.py"]


@pytest.mark.parametrize(
    "folder",
    [".venv", "venv", "node_modules", "build", "dist", "__pycache__", "lib/site-packages", ".git/hooks", ".tox"],
)
def test_not_in_folders_that_are_nobodys_source(here: Path, folder: str) -> None:
    make("a.py", f"{folder}/b.py", f"sub/{folder}/b.py")
    assert found(".") == ["a.py"]


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta/history"])
def test_not_in_an_environment_of_any_name(here: Path, mark: str) -> None:
    make("a.py", f"py311/{mark}", "py311/lib/b.py")
    assert found(".") == ["a.py"]


def test_but_in_such_a_folder_when_it_is_named(here: Path) -> None:
    make("build/a.py", "env/pyvenv.cfg", "env/b.py")
    assert found("build", "env", "build/a.py") == ["build/a.py", "env/b.py"]


def test_gitignore_nested_negated_and_of_the_parents(here: Path) -> None:
    Path(".gitignore").write_text("*.gen.py\n/out/\nlogs\n")
    make("a.py", "a.gen.py", "out/b.py", "sub/out/c.py", "sub/keep.gen.py", "sub/d.gen.py", "sub/logs/e.py")
    Path("sub/.gitignore").write_text("!keep.gen.py\nd2.py\n")
    make("sub/d2.py", "d2.py")
    assert found(".") == ["a.py", "d2.py", "sub/keep.gen.py", "sub/out/c.py"]
    assert found("sub") == ["sub/keep.gen.py", "sub/out/c.py"]


def test_gitignore_does_not_hold_for_what_is_named(here: Path) -> None:
    Path(".gitignore").write_text("a.py\nsub/\n")
    make("a.py", "sub/b.py")
    assert found("a.py") == ["a.py"]
    assert found("sub") == ["sub/b.py"]
    assert found(".", "a.py") == ["a.py"]


def test_nothing_can_be_kept_in_an_ignored_folder(here: Path) -> None:
    Path(".gitignore").write_text("sub/\n!sub/a.py\n")
    make("sub/a.py", "b.py")
    assert found(".") == ["b.py"]


def test_gitignore_above_the_repository_is_not_ours(here: Path) -> None:
    (here.parent / ".gitignore").write_text("*.py\n")
    make("a.py")
    assert found(".") == ["a.py"]


def test_lines_that_are_no_patterns_are_passed_over(here: Path) -> None:
    Path(".gitignore").write_text("!\n/\nb.py\n\\\n")
    make("a.py", "b.py")
    assert found(".") == ["a.py"]


def test_exclude_holds_for_what_is_named(here: Path) -> None:
    make("a.py", "tests/b.py", "tests/sub/c.py", "src/d_pb2.py", "src/tests.py")
    assert found(".", "tests/b.py", exclude=("tests/", "*_pb2.py")) == ["a.py", "src/tests.py"]
    assert found("tests/sub/c.py", "tests", exclude=("tests",)) == []
    assert found(str(here / "tests/b.py"), exclude=(str(here / "tests"),)) == []


def test_a_file_named_twice_is_one(here: Path) -> None:
    make("a.py", "sub/b.py")
    assert found("a.py", "./a.py", str(here / "a.py"), "sub/../a.py", ".", "sub") == ["a.py", "sub/b.py"]


def test_links_are_found_under_the_files_own_name(here: Path) -> None:
    make("z/real.py")
    Path("a.py").symlink_to("z/real.py")
    Path("folder").symlink_to("z")
    Path("loop").symlink_to(".")
    Path("z/up").symlink_to("..")
    assert found(".") == ["z/real.py"]
    assert found("a.py") == ["a.py"]
    assert found("a.py", "z/real.py") == ["z/real.py"]
    assert found("folder") == ["folder/real.py"]


def test_links_out_of_the_project_and_to_nothing_are_left(here: Path) -> None:
    (here.parent / "outside.py").write_text("x = 1\n")
    (here.parent / "other").mkdir()
    (here.parent / "other" / "b.py").write_text("x = 1\n")
    make("a.py", ".venv/lib.py")
    Path("out.py").symlink_to(here.parent / "outside.py")
    Path("other").symlink_to(here.parent / "other")
    Path("dead.py").symlink_to("nowhere.py")
    Path("lib.py").symlink_to(".venv/lib.py")
    assert found(".") == ["a.py"]
    assert found("out.py") == ["out.py"]


def test_link_to_what_the_walk_did_not_reach(here: Path) -> None:
    make("shared/tool.py", "src/a.py")
    Path("src/tool.py").symlink_to("../shared/tool.py")
    assert found("src") == ["src/a.py", "src/tool.py"]


def test_pipe_in_a_folder_is_no_file(here: Path) -> None:
    make("a.py")
    os.mkfifo("pipe.py")
    assert found(".") == ["a.py"]
    assert problems("pipe.py") == ["pipe.py: neither a file nor a folder"]


def test_names_that_are_not_utf_8(here: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    make(name)
    assert found(".") == [name]


def test_paths_outside_of_the_working_directory_are_absolute(here: Path) -> None:
    (here.parent / "outside.py").write_text("x = 1\n")
    assert found("../outside.py") == [str(here.parent / "outside.py")]


def test_what_cannot_be_looked_at_is_named(here: Path) -> None:
    make("empty/readme.txt", "n.ipynb", "a.py")
    Path("dangling.py").symlink_to("nowhere")
    assert problems("missing.py", "empty", "n.ipynb", "dangling.py", "a.py") == [
        "missing.py: no such file or folder",
        "n.ipynb: a notebook: only Python files can be handled",
        "dangling.py: cannot be read: No such file or directory",
        "empty: a folder without Python files",
    ]


def test_bad_settings_are_told_once_and_cost_only_their_folder(here: Path) -> None:
    make("a.py", "bad/b.py", "bad/sub/c.py")
    Path("bad/pyproject.toml").write_text("[tool.fabric-fix]\nzzz = 1\n")
    discovery = Discovery(Configs(Settings()))
    assert [candidate.path for candidate in discovery.find(["."])] == ["a.py"]
    assert len(discovery.problems) == 1
