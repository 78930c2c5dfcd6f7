"""What the project around a file says: which Lightning it requires."""

from __future__ import annotations

import re
from pathlib import Path

_REQUIREMENT = re.compile(r"(?im)^\s*[\"']?(?:pytorch-)?lightning(?:-fabric)?(?:\[[^\]]*\])?\s*([=<>!~][^\"'#;\n]*)")
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

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self._requires: tuple[int, ...] | None = None
        self._read = False

    def requires_lightning(self, *version: int) -> bool:
        """Whether the project's own requirements exclude every Lightning before `version`."""
        if not self._read:
            self._read = True
            self._requires = self._lowest()
        return self._requires is not None and self._requires >= version

    def _lowest(self) -> tuple[int, ...] | None:
        if self.root is None:
            return None
        bounds = [bound for name in _FILES for bound in self._bounds(self.root / name)]
        return min(bounds) if bounds else None

    def _bounds(self, path: Path) -> list[tuple[int, ...]]:
        """The lower bounds that one file gives; a requirement without one counts as `()`."""
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        found: list[tuple[int, ...]] = []
        for specifiers in _requirements(text):
            lows = re.findall(r"(?:>=|==|~=|>)\s*(\d+(?:\.\d+)*)", specifiers)
            found.append(max((tuple(int(part) for part in low.split(".")) for low in lows), default=()))
        return found


def _requirements(text: str) -> list[str]:
    quoted = re.findall(r"[\"'](?:pytorch-)?lightning(?:-fabric)?(?:\[[^\]]*\])?\s*([^\"']*)[\"']", text)
    plain = [m.group(1) for m in _REQUIREMENT.finditer(text)]
    return [s for s in (*quoted, *plain) if re.match(r"\s*([=<>!~]|$)", s)]
