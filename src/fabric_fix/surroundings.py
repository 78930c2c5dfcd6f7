"""The files of a project that can be programs: what is known of how its other files are used comes from them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fabric_fix.engine import Job
from fabric_fix.prefilter import chooses_strategy, is_relevant

if TYPE_CHECKING:
    from fabric_fix.discovery import Candidate


def programs(root: str, candidates: Iterable[Candidate]) -> list[Job]:
    """The files under a root that use Fabric, and those beside or above them that may choose a strategy for them.

    A job has no rules yet. Files that cannot be read are left out.
    """
    inside = [one for one in candidates if one.real.startswith(root.rstrip(os.sep) + os.sep)]
    found: list[Job] = []
    rest: list[tuple[Candidate, bytes]] = []
    folders: set[str] = set()
    for candidate in inside:
        data = _read(candidate.real)
        if is_relevant(data):
            found.append(_job(candidate, data))
            folders |= _folders_above(candidate.real, root)
        elif chooses_strategy(data):
            rest.append((candidate, data))
    found += [_job(one, data) for one, data in rest if os.path.dirname(one.real) in folders]
    return found


def _job(candidate: Candidate, data: bytes) -> Job:
    return Job(candidate.path, candidate.real, data, ())


def _folders_above(path: str, root: str) -> set[str]:
    found: set[str] = set()
    folder = os.path.dirname(path)
    while folder.startswith(root):
        found.add(folder)
        if folder == root:
            break
        folder = os.path.dirname(folder)
    return found


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read()
    except OSError:
        return b""
