"""The edits that fixes are made of: small frozen descriptions, each with a twin on `ast` and on LibCST.

A place is a `Span` in `ast` coordinates (lines from 1, columns in UTF-8 bytes) of the source that was analysed.
`code` is Python source without indentation of its own; a compound statement is indented by four blanks and is
re-indented to its place.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from fabric_fix.finding import Span
from fabric_fix.records import Record


class EditError(Exception):
    """An edit that cannot be made; the message is the reason, fit to be shown to the user."""


class Where(enum.Enum):
    """On which side of its anchor a statement is put."""

    BEFORE = "before"
    AFTER = "after"


class ReplaceExpression(Record):
    """Put another expression in the place of one; parentheses and comments around it stay."""

    span: Span
    code: str


class BindResult(Record):
    """Turn an expression statement into an assignment: `targets = <expression>`."""

    statement: Span
    targets: str


class ReplaceTargets(Record):
    """Replace the target of an assignment that has exactly one `=` (`a, b = f()` -> `targets = f()`).

    An annotated assignment is refused.
    """

    statement: Span
    targets: str


class AddArgument(Record):
    """Add an argument to a call: a keyword at the end, or a positional one at `index` (its place among positionals).

    Refused where a `*` or `**` argument could already hold it.
    """

    call: Span
    code: str
    keyword: str | None = None
    index: int | None = None


class RemoveArgument(Record):
    """Remove one argument of a call; `argument` is the span of its value (a keyword's value, too)."""

    call: Span
    argument: Span


class NameArgument(Record):
    """Give an argument by keyword where it stands; `argument` is the span of its value, the last positional one."""

    call: Span
    argument: Span
    keyword: str


class RemoveStatement(Record):
    """Remove a statement; its comments stay, and a block that would be empty gets `pass`."""

    statement: Span


class InsertStatement(Record):
    """Insert one statement (simple or compound) beside another, in the same block.

    Several statements put on the same side of one anchor stand in the order in which they were given.
    """

    anchor: Span
    where: Where
    code: str


class MoveStatement(Record):
    """Move a statement beside another of the same block; its comments go with it, blank lines do not.

    Edits inside the moved statement are made as well.
    """

    statement: Span
    anchor: Span
    where: Where


class ReplaceStatement(Record):
    """Put one statement (simple or compound) in the place of another; comments above and behind it stay."""

    statement: Span
    code: str


class AddImport(Record):
    """Make sure that `from module import name` is there, at the top of the file; nothing when it is already."""

    module: str
    name: str


Edit: TypeAlias = (
    ReplaceExpression
    | BindResult
    | ReplaceTargets
    | AddArgument
    | RemoveArgument
    | NameArgument
    | RemoveStatement
    | InsertStatement
    | MoveStatement
    | ReplaceStatement
    | AddImport
)
