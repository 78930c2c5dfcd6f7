"""The tool, run over a project on disk as the command does it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fabric_fix.config import Settings
from fabric_fix.engine import FileResult
from fabric_fix.problem import Problem
from fabric_fix.run import Mode, Run


class _Collected(Run):
    """A run that keeps its results instead of showing and writing them."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(mode, Settings(no_cache=True, quiet=True))
        self.results: list[FileResult] = []

    def _take(self, result: FileResult) -> None:
        self.results.append(result)

    def _finish(self, takes_stdout: bool = False) -> int:
        return len(self._problems)

    @property
    def problems(self) -> list[Problem]:
        """Those of the run, and of no file."""
        return self._problems


class Project:
    """The files of a project in a folder of their own, for as long as the block lasts."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> Project:
        self._root = Path(self._folder.name).resolve()
        (self._root / "pyproject.toml").touch()
        for path, text in self._files.items():
            place = self._root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def results(self, mode: Mode, paths: Sequence[str] = ("",)) -> dict[str, FileResult]:
        """What a run over some of its files or folders gives, by their paths in the project; nothing is written."""
        run = _Collected(mode)
        run.files([str(self._root / path) for path in paths])
        assert not run.problems, run.problems
        return {Path(result.real).relative_to(self._root).as_posix(): result for result in run.results}
