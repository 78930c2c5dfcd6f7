"""The files of a project that can be programs: what is known of how its other files are used comes from them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fabric_fix.prefilter import BETWEEN_WORDS, chooses_strategy, is_relevant, names_fabric, sorted_out

if TYPE_CHECKING:
    from fabric_fix.discovery import Candidate


class ProgramFile(NamedTuple):
    """A file that can be a program, as reports call it, where it is, and what is in it."""

    path: str
    real: str
    data: bytes


Candidates: TypeAlias = "Mapping[str, Sequence[Candidate]]"
"""The files of a run by their folders."""


def by_folder(candidates: Iterable[Candidate]) -> Candidates:
    """Files by the folders that they are in."""
    found: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.real.rpartition(os.sep)[0] or os.sep, []).append(candidate)
    return found


def read(candidates: Iterable[Candidate]) -> list[tuple[Candidate, bytes]]:
    """The files that can matter, with their bytes; those that cannot be read are left out."""
    contents = ((candidate, _content(candidate)) for candidate in candidates)
    return [(candidate, data) for candidate, data in contents if any(sorted_out(data))]


MANY = 2_000
"""Files of a project beyond which those that use a file are looked for beside and above it only."""


def mentioning(root: str, candidates: Candidates, names: frozenset[str], places: Iterable[str]) -> list[ProgramFile]:
    """The files under a root in which an import names one of these modules.

    In a project of very many files they are looked for in the folders of the files at `places`, and above these.
    """
    inside = [folder for folder in candidates if _is_below(folder, root)]
    if sum(len(candidates[folder]) for folder in inside) > MANY:
        folders = {folder for place in places for folder in _folders_above(place, root)}
        inside = [folder for folder in inside if folder in folders]
    wanted = frozenset(name.encode("utf-8", "surrogateescape") for name in names)
    found: list[ProgramFile] = []
    for candidate in sorted((one for folder in inside for one in candidates[folder]), key=lambda one: one.real):
        data = _content(candidate)
        if any(not wanted.isdisjoint(words) for words in _imports(data)):
            found.append(ProgramFile(candidate.path, candidate.real, data))
    return found


def _imports(data: bytes) -> Iterator[list[bytes]]:
    """The words of each import of a file, and of what looks like one."""
    at = data.find(b"import")
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        if (opened := data.find(b"(", at, end if end >= 0 else len(data))) >= 0:
            end = data.find(b")", opened)
        end = end if end >= 0 else len(data)
        yield data[start:end].translate(BETWEEN_WORDS).split()
        at = data.find(b"import", end)


def programs(root: str, files: Iterable[tuple[Candidate, bytes]], candidates: Candidates) -> list[ProgramFile]:
    """The files under a root that name Fabric, and those beside or above them that may choose a strategy for them.

    Each is there once; they are sorted by their paths.
    """
    inside = {one.real: (one, data) for one, data in files if _is_below(one.real, root)}
    using = {real for real, (one, data) in inside.items() if is_relevant(data) and not one.left_out()}
    folders = {folder for real in using for folder in _folders_above(real, root)}
    naming = {real for real, (one, data) in inside.items() if names_fabric(data) and not one.left_out()}
    inside.update((one.real, (one, data)) for one, data in list(_choosing(folders, inside.keys(), candidates)))
    chosen = [real for real in inside if real in using | naming or os.path.dirname(real) in folders]
    return [ProgramFile(inside[real][0].path, real, inside[real][1]) for real in sorted(chosen)]


def _choosing(folders: Set[str], known: Set[str], candidates: Candidates) -> Iterator[tuple[Candidate, bytes]]:
    """The files directly in some folders that can choose a strategy, but for those that are known."""
    for folder in folders:
        for candidate in candidates.get(folder, ()):
            if candidate.real not in known and chooses_strategy(data := _content(candidate)):
                yield candidate, data


def _content(candidate: Candidate) -> bytes:
    """The bytes of a file; none, when it cannot be read."""
    with contextlib.suppress(OSError), open(candidate.real, "rb", buffering=0) as stream:
        return stream.read()
    return b""


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _folders_above(path: str, root: str) -> list[str]:
    found = [os.path.dirname(path)]
    while found[-1] != root and len(found[-1]) > len(root):
        found.append(os.path.dirname(found[-1]))
    return found
