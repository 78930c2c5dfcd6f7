"""The files of a project that can be programs: what is known of how its other files are used comes from them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, NamedTuple

from fabric_fix.prefilter import chooses_strategy, is_relevant, names_fabric, sorted_out

if TYPE_CHECKING:
    from fabric_fix.discovery import Candidate


class ProgramFile(NamedTuple):
    """A file that can be a program, as reports call it, where it is, and what is in it."""

    path: str
    real: str
    data: bytes


def read(candidates: Iterable[Candidate]) -> list[tuple[Candidate, bytes]]:
    """The files that can matter, with their bytes; those that cannot be read are left out."""
    found: list[tuple[Candidate, bytes]] = []
    for candidate in candidates:
        try:
            with open(candidate.real, "rb", buffering=0) as stream:
                data = stream.read()
        except OSError:
            continue
        if any(sorted_out(data)):
            found.append((candidate, data))
    return found


MANY = 2_000
"""Files of a project beyond which those that use a file are looked for beside and above it only."""


def mentioning(
    root: str, candidates: Iterable[Candidate], names: frozenset[str], places: Iterable[str]
) -> list[ProgramFile]:
    """The files under a root in which an import names one of these modules.

    In a project of very many files they are looked for in the folders of the files at `places`, and above these.
    """
    import re

    start = root.rstrip(os.sep) + os.sep
    inside = [one for one in candidates if one.real.startswith(start)]
    if len(inside) > MANY:
        folders = {folder for place in places for folder in _folders_above(place, root)}
        inside = [one for one in inside if os.path.dirname(one.real) in folders]

    words = b"|".join(re.escape(name.encode("utf-8", "surrogateescape")) for name in sorted(names))
    pattern = re.compile(rb"import[^\n]*\b(?:" + words + rb")\b|from[^\n]*\b(?:" + words + rb")\b[^\n]*import")
    found: list[ProgramFile] = []
    for candidate in sorted(inside, key=lambda one: one.real):
        with contextlib.suppress(OSError), open(candidate.real, "rb", buffering=0) as stream:
            data = stream.read()
            if pattern.search(data):
                found.append(ProgramFile(candidate.path, candidate.real, data))
    return found


def programs(root: str, files: Iterable[tuple[Candidate, bytes]], candidates: Iterable[Candidate]) -> list[ProgramFile]:
    """The files under a root that name Fabric, and those beside or above them that may choose a strategy for them.

    Each is there once; they are sorted by their paths.
    """
    inside = {one.real: (one, data) for one, data in files if one.real.startswith(root.rstrip(os.sep) + os.sep)}
    using = {real for real, (one, data) in inside.items() if is_relevant(data) and not one.left_out()}
    folders = {folder for real in using for folder in _folders_above(real, root)}
    naming = {real for real, (one, data) in inside.items() if names_fabric(data) and not one.left_out()}
    inside.update((one.real, (one, data)) for one, data in list(_choosing(folders, inside.keys(), candidates)))
    chosen = [real for real in inside if real in using | naming or os.path.dirname(real) in folders]
    return [ProgramFile(inside[real][0].path, real, inside[real][1]) for real in sorted(chosen)]


def _choosing(folders: Set[str], known: Set[str], candidates: Iterable[Candidate]) -> Iterator[tuple[Candidate, bytes]]:
    """The files directly in some folders that can choose a strategy, but for those that are known."""
    for candidate in candidates:
        if os.path.dirname(candidate.real) in folders and candidate.real not in known:
            with contextlib.suppress(OSError), open(candidate.real, "rb", buffering=0) as stream:
                data = stream.read()
                if chooses_strategy(data):
                    yield candidate, data


def _folders_above(path: str, root: str) -> list[str]:
    found = [os.path.dirname(path)]
    while found[-1] != root and len(found[-1]) > len(root):
        found.append(os.path.dirname(found[-1]))
    return found
