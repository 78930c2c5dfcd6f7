"""Which files a run looks at: those named, and those under the folders named, each once and in a fixed order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from fabric_fix.config import ConfigError, Configs, Settings
from fabric_fix.folders import is_below
from fabric_fix.ignoring import (
    NEVER_SOURCE,
    Patterns,
    excluding,
    is_left_out,
    patterns_above,
    project_root,
    read_patterns,
)
from fabric_fix.problem import Problem, os_reason

SUFFIXES = (".py", ".pyw")
"""What a file in a folder must end in; a file that is named may end in anything."""


class Candidate(NamedTuple):
    """A file to look at."""

    path: str
    """As reports and patches call it: relative to the working directory when it is inside, else absolute."""
    real: str
    """Where it really is, links resolved."""
    settings: Settings
    ignores: tuple[Patterns, ...] = ()
    """The `.gitignore` chain of its folder; empty for a file that was named."""
    named: bool = False

    def left_out(self) -> str | None:
        """Why this file is not looked at after all, or None. Asked only for the few files that pass the prefilter."""
        if is_excluded(self.settings, self.real, is_folder=False):
            return "excluded"
        if self.ignores and is_left_out(self.ignores, self.real, is_folder=False):
            return "ignored by .gitignore"
        return None


class _Folder(NamedTuple):
    path: str
    real: str
    settings: Settings
    ignores: tuple[Patterns, ...]


def is_excluded(settings: Settings, path: str, is_folder: bool) -> bool:
    """Whether an absolute path, or a folder above it, matches `exclude`; every way into the tool asks this."""
    return bool(settings.exclude) and bool(excluding(settings.base, settings.exclude or ()).verdict(path, is_folder))


def shown(path: str) -> str:
    """A path as the reports spell it: relative inside the working directory, else absolute."""
    absolute, here = os.path.abspath(path), os.getcwd()
    return absolute[len(here.rstrip(os.sep)) + 1 :] if is_below(absolute, here) else absolute


class Discovery:
    """The files, the problems and the remarks (for `--verbose`) that looking for them gives."""

    def __init__(self, configs: Configs) -> None:
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self._configs = configs
        self._found: dict[str, Candidate] = {}
        self._walked: set[str] = set()
        self._links: list[tuple[str, str]] = []
        self._tops: list[_Folder] = []

    def find(self, paths: Iterable[str]) -> list[Candidate]:
        """All files that the paths mean, sorted by the path that reports give them."""
        for path in paths:
            try:
                self._name(path)
            except OSError as error:
                self.problems.append(Problem(path, f"cannot be read: {os_reason(error)}"))
        self._follow_links()
        self._report_empty_folders()
        return sorted(self._found.values(), key=lambda candidate: candidate.path)

    def _name(self, path: str) -> None:
        """Take one path of the command line."""
        if not os.path.lexists(path):
            self.problems.append(Problem(path, "no such file or folder"))
            return
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            self._name_folder(path)
        elif not stat.S_ISREG(mode):
            self.problems.append(Problem(path, "neither a file nor a folder"))
        elif path.endswith(".ipynb"):
            self.problems.append(Problem(path, "a notebook: only Python files can be handled"))
        else:
            real = os.path.realpath(path)
            self._add_file(shown(path), real, os.path.dirname(real), (), named=True)

    def _name_folder(self, path: str) -> None:
        real = os.path.realpath(path)
        settings = self._settings(real)
        if settings is None:
            return
        if is_excluded(settings, real, is_folder=True):
            self.notes.append(f"{path}: excluded")
            return
        label = "" if real == os.path.realpath(os.getcwd()) else shown(path)
        self._tops.append(_Folder(label, real, settings, patterns_above(real)))
        self._walk(self._tops[-1])

    def _report_empty_folders(self) -> None:
        for top in self._tops:
            inside = (found.real.startswith(top.real + os.sep) for found in self._found.values())
            linked = (found.path.startswith(f"{top.path}/") for found in self._found.values())
            if not any(inside) and not any(linked):
                self.problems.append(Problem(top.path or ".", "a folder without Python files"))

    def _walk(self, top: _Folder) -> None:
        """Walk a folder; links are put off, so that a file is found under its own name first."""
        pending = [top]
        while pending:
            folder = pending.pop()
            if folder.real in self._walked:
                continue
            self._walked.add(folder.real)
            try:
                with os.scandir(folder.real) as entries:
                    found = list(entries)
            except OSError as error:
                self.problems.append(Problem(folder.path or ".", f"cannot be read: {os_reason(error)}"))
                continue
            pending += self._look_at(folder, found, is_top=folder is top)

    def _look_at(self, folder: _Folder, entries: list[os.DirEntry[str]], is_top: bool) -> list[_Folder]:
        """Keep the files of a folder and give the folders to walk next."""
        names = {entry.name for entry in entries}
        if not is_top and not names.isdisjoint(("pyvenv.cfg", "conda-meta")):
            self.notes.append(f"{folder.path}: a virtual environment")
            return []
        if not is_top and "CACHEDIR.TAG" in names and _is_own_cache(folder.real):
            return []
        ignores = () if ".git" in names and not is_top else folder.ignores  # a repository in a repository
        if ".gitignore" in names:
            ignores += read_patterns(os.path.join(folder.real, ".gitignore"), folder.real)
        inside = []
        for entry in entries:
            path = f"{folder.path}/{entry.name}" if folder.path else entry.name
            if entry.is_symlink():
                self._links.append((path, entry.path))
            elif entry.is_dir(follow_symlinks=False):
                inside += self._sub_folder(_Folder(path, entry.path, folder.settings, ignores), entry.name)
            elif entry.name.endswith(SUFFIXES) and entry.is_file(follow_symlinks=False):
                self._keep(Candidate(path, entry.path, folder.settings, ignores))
        return inside

    def _sub_folder(self, folder: _Folder, name: str) -> list[_Folder]:
        """The folder with its own settings, or nothing when it is left out."""
        if name in NEVER_SOURCE:
            return []
        if is_excluded(folder.settings, folder.real, True) or is_left_out(folder.ignores, folder.real, True):
            self.notes.append(f"{folder.path}: excluded or ignored")
            return []
        settings = self._settings(folder.real)
        return [] if settings is None else [_Folder(folder.path, folder.real, settings, folder.ignores)]

    def _follow_links(self) -> None:
        """Take what the links met so far lead to, if it belongs to the same project and was not found without them."""
        while self._links:
            path, place = self._links.pop()
            try:
                self._follow(path, place)
            except OSError as error:
                self.problems.append(Problem(path, f"cannot be read: {os_reason(error)}"))

    def _follow(self, path: str, place: str) -> None:
        real = os.path.realpath(place)
        root = project_root(os.path.dirname(os.path.realpath(os.path.dirname(place)) + os.sep))
        if not self._may_follow(real, root):
            self.notes.append(f"{path}: a link to nothing, out of the project, or to what is left out")
        elif os.path.isdir(real):
            if real not in self._walked and (settings := self._settings(real)) is not None:
                self._walk(_Folder(path, real, settings, patterns_above(real)))
        elif path.endswith(SUFFIXES) and os.path.isfile(real):
            self._add_file(path, real, os.path.dirname(real), patterns_above(os.path.dirname(real)))

    def _may_follow(self, real: str, root: str) -> bool:
        inside = real.startswith(root + os.sep) and os.path.exists(real)
        return inside and NEVER_SOURCE.isdisjoint(real[len(root) :].split(os.sep))

    def _add_file(self, path: str, real: str, folder: str, ignores: tuple[Patterns, ...], named: bool = False) -> None:
        settings = self._settings(folder)
        if settings is not None:
            self._keep(Candidate(path, real, settings, ignores, named))

    def _keep(self, candidate: Candidate) -> None:
        """One candidate for each real file: one that was named counts before one that was found, then its own name."""
        known = self._found.get(candidate.real)
        if known is None or _rank(candidate) > _rank(known):
            self._found[candidate.real] = candidate

    def _settings(self, folder: str) -> Settings | None:
        """The settings of a folder; None, and a problem told once, when they cannot be used."""
        try:
            return self._configs.at(folder)
        except ConfigError as error:
            if error.problem not in self.problems:
                self.problems.append(error.problem)
            return None


def _is_own_cache(folder: str) -> bool:
    from fabric_fix.cache import is_cache

    return is_cache(folder)


def _rank(candidate: Candidate) -> tuple[bool, bool]:
    return candidate.named, candidate.path == shown(candidate.real)
