"""Where an import leads: the files of a project, as the program's `sys.path` would have them found."""

from __future__ import annotations

import contextlib
import os

from fabric_fix.analysis.known import LIBRARIES
from fabric_fix.folders import is_within


class Paths:
    """The files and folders of one project, each folder listed once."""

    def __init__(self, root: str) -> None:
        self.root = root
        """The real path of the project's folder; '' for none."""
        self._found: dict[tuple[str, str], str | None] = {}
        self._listings: dict[str, dict[str, bool]] = {}
        self._places: dict[str, tuple[str, ...]] = {}
        self.missed: set[str] = set()
        """What was looked for in vain, without `.py` or `__init__.py`."""

    def resolve(self, importer: str, name: str, level: int) -> str | None:
        """The real path of an imported module (`a.b`, or `..a.b` with `level` 2): a file, or a package's folder.

        None for what is not of this project.
        """
        if not importer or not self.root:
            return None
        folder = os.path.dirname(importer)
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self.below(folder, name)
        if name.partition(".")[0] in LIBRARIES:
            return None
        for place in self._places_of(folder):
            found = self.below(place, name)
            if found is not None:
                return found
        return None

    def below(self, folder: str, name: str) -> str | None:
        """A module or package inside a folder; the folder itself for ''."""
        key = (folder, name)
        if key not in self._found:
            self._found[key] = self._look(folder, name)
        return self._found[key]

    def file_of(self, place: str) -> str | None:
        """The file that runs when what `resolve` gave is imported; None for a namespace package."""
        if place.endswith(".py"):
            return place
        init = os.path.join(place, "__init__.py")
        return init if self.below(place, "__init__") is not None else None

    def is_inside(self, path: str) -> bool:
        """Whether a real path is of this project."""
        return is_within(path, self.root)

    def _places_of(self, folder: str) -> tuple[str, ...]:
        found = self._places.get(folder)
        if found is None:
            package = folder
            while package != self.root and self._listing(package).get("__init__.py") is False:
                package = os.path.dirname(package)
            places = (folder, package, self.root, os.path.join(self.root, "src"))
            found = self._places[folder] = tuple(dict.fromkeys(places))
        return found

    def _look(self, base: str, name: str) -> str | None:
        *parents, last = name.split(".")
        folder = base
        for part in parents:
            if self._listing(folder).get(part) is not True:
                self.missed.add(os.path.join(base, *parents, last))
                return None
            folder = os.path.join(folder, part)
        inside = self._listing(folder)
        if name and inside.get(f"{last}.py") is False:
            found = os.path.realpath(os.path.join(folder, f"{last}.py"))
        elif not name:
            found = os.path.realpath(base)
        elif inside.get(last) is True and self._holds_python(os.path.join(folder, last)):
            found = os.path.realpath(os.path.join(folder, last))
        else:
            self.missed.add(os.path.join(folder, last))
            return None
        return found if self.is_inside(found) else None

    def _holds_python(self, folder: str) -> bool:
        """Whether a folder can be a package: it holds Python files, or folders that may."""
        return any(is_folder or name.endswith(".py") for name, is_folder in self._listing(folder).items())

    def _listing(self, folder: str) -> dict[str, bool]:
        """The names in a folder, and whether each is that of a folder; nothing for what is none."""
        found = self._listings.get(folder)
        if found is None:
            found = self._listings[folder] = {}
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                found.update((entry.name, _is_folder(entry)) for entry in entries)
        return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
