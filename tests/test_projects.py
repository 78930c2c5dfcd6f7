"""Projects of several files: what is said of a file does not depend on which files are named, or in which order."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fabric_fix.config import Settings
from fabric_fix.run import Mode, Run
from tests.cases import Case, load_cases

Said = dict[str, list[dict[str, Any]]]
Look = Callable[..., Said]


def has_several_files(case: Case) -> bool:
    return sum(1 for _ in case.input.rglob("*.py")) > 1


PROJECTS = [case for case in load_cases() if has_several_files(case)]


@pytest.fixture
def look(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Look:
    """The findings of a run, by file."""

    def run(folder: Path, names: list[str], case: Case, no_cache: bool = True) -> Said:
        monkeypatch.chdir(folder)
        options = case.options
        strategies = tuple(b for a, b in pairwise(options) if a == "--strategy")
        settings = Settings(
            output_format="json",
            no_cache=no_cache,
            strategy=strategies or None,
            unsafe_fixes=True if "--unsafe-fixes" in options else None,
        )
        capfdbinary.readouterr()
        Run(Mode.CHECK, settings).files(names)
        found: Said = {}
        for entry in json.loads(capfdbinary.readouterr().out):
            found.setdefault(os.path.relpath(entry["filename"], folder), []).append(
                {key: value for key, value in entry.items() if key != "filename"}
            )
        return found

    return run


@pytest.mark.parametrize("case", PROJECTS, ids=lambda case: case.name)
def test_a_file_that_is_named_alone_is_told_the_same(case: Case, tmp_path: Path, look: Look) -> None:
    folder = tmp_path / "project"
    shutil.copytree(case.input, folder)
    (folder / ".git").mkdir(exist_ok=True)
    whole = look(folder, ["."], case)
    alone = {name: look(folder, [name], case).get(name) for name in whole}
    assert alone == whole


@pytest.mark.parametrize("name", ["factory_of_another_file", "own_class_called_fabric"])
def test_a_project_below_a_folder_of_tests_is_told_the_same_from_outside(name: str, tmp_path: Path, look: Look) -> None:
    case = next(case for case in PROJECTS if case.folder.name == name)
    folder = tmp_path / "tests" / "clone"
    shutil.copytree(case.input, folder)
    (folder / ".git").mkdir()
    inside = look(folder, ["."], case)
    outside = look(tmp_path, ["tests/clone"], case)
    assert bool(inside) == bool(case.findings)
    assert {os.path.join("tests", "clone", path): found for path, found in inside.items()} == outside


def test_there_are_projects_and_some_have_findings() -> None:
    assert len(PROJECTS) > 100
    assert sum(bool(case.findings) for case in PROJECTS) > 60


@pytest.mark.parametrize("case", [case for case in PROJECTS if case.findings], ids=lambda case: case.name)
def test_what_is_known_of_a_file_does_not_outlive_a_change_to_those_that_use_it(
    case: Case, tmp_path: Path, look: Look
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(case.input, folder)
    (folder / ".git").mkdir(exist_ok=True)
    told = set(look(folder, ["."], case))
    others = [path for path in folder.rglob("*.py") if path.relative_to(folder).as_posix() not in told]
    for path in others:
        path.write_text("")
    look(folder, ["."], case, no_cache=False)
    for path in others:
        shutil.copy(case.input / path.relative_to(folder), path)
    assert look(folder, ["."], case, no_cache=False) == look(folder, ["."], case)
