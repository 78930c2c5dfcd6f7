"""The cases under `fixtures/`: what they hold, read once and typed.

fixtures/<rule_module>/<case>/
    input/      what the tool reads
    expected/   the same files as the tool must write them; absent: nothing may change
    case.toml   options, findings and [run], each optional (see `Case` and `Run`)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
PROGRAM = "train.py"
_SILENT = "silent:"


@dataclass(frozen=True)
class Run:
    """The `[run]` table: how the program of a case runs under the real runtime."""

    strategy: str
    before: str
    """What `input/` does: a regular expression for the exception's message, or `silent: <what is seen>`."""
    is_fixed: bool
    """Whether `expected/` trains; False where the rule only reports."""

    @property
    def is_silent(self) -> bool:
        """Whether the faulty program ends without an exception."""
        return self.before.startswith(_SILENT)


@dataclass(frozen=True)
class Case:
    """One folder of input and expected output."""

    rule: str
    """The module of the rule, such as `split_setup`."""
    folder: Path
    options: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    """What the first look over `input/` reports, as `CODE file:line safe|unsafe|none`."""
    run: Run | None = None

    @property
    def name(self) -> str:
        """`rule/case`, as pytest shows it."""
        return f"{self.rule}/{self.folder.name}"

    @property
    def input(self) -> Path:
        """The folder that the tool reads."""
        return self.folder / "input"

    @property
    def changes(self) -> bool:
        """Whether the tool is to write anything."""
        return (self.folder / "expected").is_dir()

    @property
    def expected(self) -> Path:
        """The folder that the tool's output must equal."""
        return self.folder / "expected" if self.changes else self.input


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder: its path there, with slashes, and its bytes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def load_cases(fixtures: Path = FIXTURES) -> list[Case]:
    """All cases, by rule and name; a folder without `input/` is none (the demo project lies beside them)."""
    return [_load(folder) for folder in sorted(fixtures.glob("*/*")) if (folder / "input").is_dir()]


def _load(folder: Path) -> Case:
    settings = folder / "case.toml"
    table = tomllib.loads(settings.read_text(encoding="utf-8")) if settings.exists() else {}
    unknown = table.keys() - {"options", "findings", "run"}
    if unknown:
        raise ValueError(f"{settings}: unknown keys {sorted(unknown)}")
    return Case(
        rule=folder.parent.name,
        folder=folder,
        options=tuple(table.get("options", ())),
        findings=tuple(table.get("findings", ())),
        run=_load_run(settings, table["run"]) if "run" in table else None,
    )


def _load_run(settings: Path, table: dict[str, Any]) -> Run:
    if not {"strategy", "before"} <= table.keys() <= {"strategy", "before", "after"}:
        raise ValueError(f"{settings}: [run] takes strategy, before and after")
    if table.get("after", "ok") != "ok":
        raise ValueError(f'{settings}: the only end of a fixed program is after = "ok"')
    return Run(strategy=table["strategy"], before=table["before"], is_fixed="after" in table)
