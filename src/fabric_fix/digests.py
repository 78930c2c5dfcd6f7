"""Digests of content: what a result was computed from, so that it is not used for anything else."""

from __future__ import annotations

import os

ABSENT = ""
"""The digest of a file that is not there, or cannot be read."""


def digest(*parts: bytes) -> str:
    """A digest of some bytes, one after the other."""
    from hashlib import blake2b

    state = blake2b(digest_size=20)
    for part in parts:
        state.update(part)
    return state.hexdigest()


class FileDigests:
    """Digests of the files that results depend on, and of the names in folders, each read once in a run."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The digest of a file's content, or `ABSENT`."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = listing(path) if os.path.isdir(path) else digest_of(path)
        return found


def listing(folder: str) -> str:
    """A digest of the names in a folder but for hidden ones, such as the cache's own; or `ABSENT`."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        return digest(*(os.fsencode(name) + b"\0" for name in names))
    except OSError:
        return ABSENT


def digest_of(path: str) -> str:
    """A digest of a file's content, or `ABSENT`."""
    try:
        with open(path, "rb") as stream:
            return digest(stream.read())
    except OSError:
        return ABSENT
