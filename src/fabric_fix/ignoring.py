"""Which paths are not looked at: patterns of `.gitignore` and `exclude`, and folders that are never anyone's source."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from fabric_fix.folders import is_within
from fabric_fix.records import Record

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NEVER_SOURCE = frozenset(
    {
        ".bzr",
        ".direnv",
        ".eggs",
        ".fabric_fix_cache",
        ".git",
        ".git-rewrite",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pants.d",
        ".pyenv",
        ".pytest_cache",
        ".pytype",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        ".vscode",
        "__pycache__",
        "__pypackages__",
        "_build",
        "buck-out",
        "build",
        "dist",
        "node_modules",
        "site-packages",
        "venv",
    }
)
"""Names of folders that a walk leaves out: those of ruff, and byte code."""


class Patterns(Record):
    """Patterns of one file or option, and the absolute folder that they are relative to."""

    base: str
    spec: GitIgnoreSpec

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: left out; False: a `!` pattern keeps it; None: no pattern speaks of this absolute path."""
        relative = os.path.relpath(path, self.base).replace(os.sep, "/")
        if relative.startswith("../") or relative in (".", ".."):
            relative = path.lstrip("/")  # beside the base: unanchored patterns still count
        return self.spec.check_file(relative + "/" if is_folder else relative).include


def is_left_out(chain: tuple[Patterns, ...], path: str, is_folder: bool) -> bool:
    """What the nearest patterns that speak of a path say; `chain` runs from the outermost folder inwards."""
    for patterns in reversed(chain):
        verdict = patterns.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


@lru_cache(maxsize=64)
def excluding(base: str, words: tuple[str, ...]) -> Patterns:
    """The patterns of an `exclude` option; ValueError for one that is none. Absolute ones are anchored to `base`."""
    prefix = base.rstrip("/") + "/"
    lines = ["/" + word[len(prefix) :] if word.startswith(prefix) else word.removeprefix("./") for word in words]
    return Patterns(base, _spec(lines))


def read_patterns(file: str, base: str) -> tuple[Patterns, ...]:
    """The patterns of a `.gitignore`, in a chain of its own; an empty chain when there are none to read."""
    try:
        with open(file, "rb") as stream:
            lines = stream.read().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ()  # git, too, goes on without a .gitignore that it cannot read
    if not any(line.strip() for line in lines):
        return ()
    return (Patterns(base, _spec([line for line in lines if _is_pattern(line)])),)


def repository_root(folder: str) -> str | None:
    """The nearest folder upwards that holds `.git`, or None outside of a repository."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


@lru_cache(maxsize=256)
def project_root(folder: str) -> str:
    """The nearest folder upwards with a `pyproject.toml` or `.git`.

    Without one it is the working directory, if that is above and neither the root of the file system nor a home, which
    are no projects; else the folder itself.
    """
    place = folder
    while not any(os.path.lexists(os.path.join(place, name)) for name in ("pyproject.toml", ".git")):
        parent = os.path.dirname(place)
        if parent == place:
            return _without_marks(folder)
        place = parent
    return place


def _without_marks(folder: str) -> str:
    here = os.getcwd()
    return (
        here if is_within(folder, here) and here not in (os.sep, os.path.realpath(os.path.expanduser("~"))) else folder
    )


def patterns_above(folder: str) -> tuple[Patterns, ...]:
    """The chain of the folders over this one up to the repository's root.

    Empty when these patterns leave the folder itself out: whoever names an ignored folder wants it looked at.
    """
    root = repository_root(folder)
    if root is None:
        return ()
    chain = read_patterns(os.path.join(root, ".git", "info", "exclude"), root)
    place = root
    for name in os.path.relpath(folder, root).split(os.sep):
        if place == folder:
            break
        chain += read_patterns(os.path.join(place, ".gitignore"), place)
        place = os.path.join(place, name)
        if is_left_out(chain, place, is_folder=True):
            return ()
    return chain


def _spec(lines: list[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _is_pattern(line: str) -> bool:
    """Whether git would take a line; it passes over those that are none, and so does this."""
    try:
        _spec([line])
    except ValueError:
        return False
    return True
