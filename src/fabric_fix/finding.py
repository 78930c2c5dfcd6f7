"""What a rule reports: findings, and the fixes that they carry."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from fabric_fix.records import Record

if TYPE_CHECKING:
    import ast

    from fabric_fix.edits.model import Edit


class Applicability(enum.IntEnum):
    """How sure a fix is; ordered, so that "at least safe" is a comparison."""

    UNSAFE = 1
    """Depends on something that the source does not show; made with `--unsafe-fixes` only."""
    SAFE = 2
    """The program trains as its author meant, under every strategy it can run with; made by default."""


class Span(NamedTuple):
    """A piece of source in the coordinates of `ast`: lines from 1, columns in UTF-8 bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, node: ast.expr | ast.stmt | ast.keyword) -> Span:
        """The span of an `ast` node; for a decorated definition it starts at `def` or `class`, as in `ast`."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return cls(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


class Fix(Record):
    """Edits that belong together: all of them are made, or none."""

    message: str
    """What the fix does, in the imperative: "Bind the result to `model`"."""
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE


class Finding(Record):
    """A fault, its place, and its fix or the reason why there is none (or why the fix is unsafe)."""

    code: str
    name: str
    path: str
    span: Span
    message: str
    fix: Fix | None = None
    reason: str | None = None
    """Why there is no fix, or why it is unsafe; None beside a safe fix."""
    statement: Span | None = None
    """The whole statement, for suppression comments anywhere on it; defaults to `span`."""

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        """Findings are reported in this order."""
        return self.path, self.span.line, self.span.column, self.code
