"""The other files of a project, searched for a word: whether they may use a name of a module, tests and all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from fabric_fix.analysis.project import Project
from fabric_fix.digests import listing
from fabric_fix.ignoring import NEVER_SOURCE

MANY = 2_000
"""Files beyond which no name is taken for one that only its own module has."""
_SUFFIXES = (".py", ".ipynb", ".yaml", ".yml")
"""Of files that can name what a module holds: a configuration says `_target_: core.model`."""


def user_of(project: Project, path: str, name: str) -> str | None:
    """A file of the project, as it is called there, that has the name of a module's variable in it; or None.

    `path` is the real path of the module. What cannot be told is told by the path of the module's folder.
    """
    return _first(project, path, [name])


def importer_of(project: Project, path: str, name: str) -> str | None:
    """The same for a file that has the name of the module in it as well."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return _first(project, path, [name, os.path.basename(os.path.dirname(path)) if stem == "__init__" else stem])


def _first(project: Project, path: str, words: list[str]) -> str | None:
    if not path:
        return None
    root = project.modules.root or os.path.dirname(path)
    patterns = [re.compile(rb"\b" + re.escape(word.encode()) + rb"\b") for word in words]
    for number, other in enumerate(_files(project, root)):
        if number == MANY:
            return project.modules.shown(os.path.dirname(path))
        data = project.modules.read(other) if other != path else None
        if data is not None and all(pattern.search(data) for pattern in patterns):
            return project.modules.shown(other)
    return None


def _files(project: Project, root: str) -> Iterator[str]:
    """The files below a folder that can use a module, in a fixed order; which folders were read is noted."""
    for folder, folders, names in os.walk(root):
        project.consulted[folder] = listing(folder)
        folders[:] = sorted(name for name in folders if name not in NEVER_SOURCE and not name.startswith("."))
        if folder != root and "pyvenv.cfg" in names:
            folders.clear()
            continue
        yield from (os.path.realpath(os.path.join(folder, name)) for name in sorted(names) if name.endswith(_SUFFIXES))
