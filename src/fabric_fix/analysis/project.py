"""What the project around a file says: which Lightning it requires, and which strategies its programs run with."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fabric_fix.analysis.modules import Modules

if TYPE_CHECKING:
    from fabric_fix.analysis.hints import Hint, Hints

from fabric_fix.digests import ABSENT, digest, digest_of, listing

_NAMES = {"lightning": r"(?:pytorch-)?lightning(?:-fabric)?", "torch": "torch"}
"""Distributions, as a pattern of the names that they go by in requirements."""
_EXTRAS = r"(?:\[[^\]]*\])?"
_FILES = (
    "pyproject.toml",
    "requirements.txt",
    "requirements.in",
    "setup.cfg",
    "setup.py",
    "environment.yml",
    "environment.yaml",
)


class Project:
    """The folder that a file belongs to; its requirements are read when a rule asks."""

    def __init__(self, root: str | None, beside: dict[str, bytes] | None = None) -> None:
        """`beside` are files, by their real paths, that are to be read as other bytes than are on disk."""
        self.root = root
        self.modules = Modules(os.path.realpath(root) if root is not None else "", beside)
        self.consulted: dict[str, str] = {}
        """Digests of the files that an answer came from, by path; those that were not there count too."""
        self._texts: dict[str, str] = {}
        self._hints: Hints | None = None
        self._hinted: dict[str, str] = {}
        self._lowest: dict[str, tuple[int, ...] | None] = {}

    def requires_lightning(self, *version: int) -> bool:
        """Whether the project's own requirements exclude every Lightning before `version`."""
        return self.requires("lightning", *version)

    def requires(self, package: str, *version: int) -> bool:
        """Whether the project's own requirements exclude every release of `lightning` or `torch` before `version`."""
        if package not in self._lowest:
            bounds = [bound for name in _FILES for bound in self._bounds(name, _NAMES[package])]
            self._lowest[package] = min(bounds) if bounds else None
        lowest = self._lowest[package]
        return lowest is not None and lowest >= version

    def dependencies(self) -> tuple[tuple[str, str], ...]:
        """Path and digest of every file that an answer can have come from."""
        for path in self._hints.read if self._hints is not None else ():
            if path not in self._hinted:
                self._hinted[path] = listing(path) if os.path.isdir(path) else digest_of(path)
        return tuple({**self.modules.consulted(), **self._hinted, **self.consulted}.items())

    def hints(self, path: str, text: str) -> tuple[Hint, ...]:
        """The strategies that the files around a program say; the project is walked when this is asked first."""
        if self.root is None:
            return ()
        from fabric_fix.analysis.hints import around

        self._hints = around(self.root)
        return self._hints.of(path, text)

    def _bounds(self, name: str, pattern: str) -> list[tuple[int, ...]]:
        """The lower bounds that one file gives; a requirement without one counts as `()`."""
        if self.root is None:
            return []
        path = os.path.join(self.root, name)
        if path not in self._texts:
            self._texts[path] = self._read(path)
        found: list[tuple[int, ...]] = []
        for specifiers in _requirements(self._texts[path], pattern):
            lows = re.findall(r"(?:>=|==|~=|>|\^)\s*(\d+(?:\.\d+)*)", specifiers)
            found.append(max((tuple(int(part) for part in low.split(".")) for low in lows), default=()))
        return found

    def _read(self, path: str) -> str:
        """The text of a file, or nothing when there is none to read."""
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except OSError:
            self.consulted[path] = ABSENT
            return ""
        self.consulted[path] = digest(data)
        return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _requirements(text: str, pattern: str) -> list[str]:
    """The version specifiers of a distribution: quoted (`"lightning>=2.6"`), on a line, or as a table's key."""
    quoted = re.findall(rf"[\"']{pattern}{_EXTRAS}\s*([^\"']*)[\"']", text)
    plain = re.findall(rf"(?im)^\s*(?:-\s*)?{pattern}{_EXTRAS}\s*([=<>!~][=<>]?\s*\d[^\"'#;\n]*)", text)
    keyed = re.findall(rf"(?im)^\s*{pattern}\s*=\s*[\"']([^\"']*)[\"']", text)
    return [s for s in (*quoted, *plain, *keyed) if re.match(r"\s*([=<>!~^]|$)", s)]
