"""The files of a project that can be programs: what is known of how its other files are used comes from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, NamedTuple

from fabric_fix.folders import is_within
from fabric_fix.prefilter import BETWEEN_WORDS, chooses_strategy, is_relevant, names_fabric, sorted_out
from fabric_fix.reading import content

if TYPE_CHECKING:
    from fabric_fix.discovery import Candidate


class ProgramFile(NamedTuple):
    """A file that can be a program, as reports call it, where it is, and what is in it."""

    path: str
    real: str
    data: bytes


class Folders:
    """The files of a run by their folders, and what some of them import."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.files: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            self.files.setdefault(candidate.real.rpartition(os.sep)[0] or os.sep, []).append(candidate)
        self._imported: dict[str, frozenset[bytes]] = {}

    def imported(self, real: str, data: bytes | None = None) -> frozenset[bytes]:
        """The words of a file's imports; `data` is what is in it, where that is known."""
        found = self._imported.get(real)
        if found is None:
            found = self._imported[real] = frozenset(_imported(content(real) or b"" if data is None else data))
        return found


def read(candidates: Iterable[Candidate]) -> list[tuple[Candidate, bytes]]:
    """The files that can matter, with their bytes; those that cannot be read are left out."""
    contents = ((candidate, content(candidate.real)) for candidate in candidates)
    return [(candidate, data) for candidate, data in contents if data is not None and any(sorted_out(data))]


MANY = 2_000
"""Files of a project beyond which those that use a file are looked for beside and above it only."""


def mentioning(root: str, folders: Folders, names: frozenset[str], places: Iterable[str]) -> list[ProgramFile]:
    """The files under a root in which an import names one of these modules.

    In a project of very many files they are looked for in the folders of the files at `places`, and above these.
    """
    inside = [folder for folder in folders.files if is_within(folder, root)]
    if sum(len(folders.files[folder]) for folder in inside) > MANY:
        near = {folder for place in places for folder in _folders_above(place, root)}
        inside = [folder for folder in inside if folder in near]
    wanted = frozenset(name.encode("utf-8", "surrogateescape") for name in names)
    candidates = sorted((one for folder in inside for one in folders.files[folder]), key=lambda one: one.real)
    naming = [one for one in candidates if not wanted.isdisjoint(folders.imported(one.real))]
    return [ProgramFile(one.path, one.real, content(one.real) or b"") for one in naming]


def _imported(data: bytes) -> Iterator[bytes]:
    """The words of the imports of a file, and of what looks like one."""
    at = data.find(b"import")
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        if (opened := data.find(b"(", at, end if end >= 0 else len(data))) >= 0:
            end = data.find(b")", opened)
        end = end if end >= 0 else len(data)
        yield from data[start:end].translate(BETWEEN_WORDS).split()
        at = data.find(b"import", end)


def programs(root: str, files: Iterable[tuple[Candidate, bytes]], folders: Folders) -> list[ProgramFile]:
    """The files under a root that name Fabric, and those beside or above them that may choose a strategy for them.

    Each is there once; they are sorted by their paths.
    """
    inside = {one.real: (one, data) for one, data in files if is_within(one.real, root)}
    using = {real for real, (one, data) in inside.items() if is_relevant(data) and not one.left_out()}
    near = {folder for real in using for folder in _folders_above(real, root)}
    naming = {real for real, (one, data) in inside.items() if names_fabric(data) and not one.left_out()}
    inside.update((one.real, (one, data)) for one, data in list(_choosing(near, inside.keys(), folders)))
    chosen = [real for real in inside if real in using | naming or os.path.dirname(real) in near]
    return [ProgramFile(inside[real][0].path, real, inside[real][1]) for real in sorted(chosen)]


def _choosing(near: Set[str], known: Set[str], folders: Folders) -> Iterator[tuple[Candidate, bytes]]:
    """The files directly in some folders that can choose a strategy, but for those that are known."""
    for folder in near:
        for candidate in folders.files.get(folder, ()):
            data = content(candidate.real) if candidate.real not in known else None
            if data is None:
                continue
            folders.imported(candidate.real, data)  # which is asked for later, when there is nothing to wait for
            if chooses_strategy(data):
                yield candidate, data


def _folders_above(path: str, root: str) -> list[str]:
    found = [os.path.dirname(path)]
    while found[-1] != root and len(found[-1]) > len(root):
        found.append(os.path.dirname(found[-1]))
    return found
