"""Ways to say an edit by the code that it is about, and to check what it makes of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fabric_fix.edits.model import (
    AddArgument,
    AddImport,
    BindResult,
    Edit,
    InsertStatement,
    MoveStatement,
    NameArgument,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
    ReplaceTargets,
    Where,
)
from fabric_fix.edits.rewrite import rewrite
from fabric_fix.edits.verify import comments
from fabric_fix.finding import Fix, Span


@dataclass(frozen=True)
class Editing:
    """Edits of a text, with places said as the code that stands there (its first whole-word place out of comments)."""

    text: str

    def at(self, code: str) -> Span:
        places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(code)}(?!\w)", self.text)]
        start = next(place for place in places if "#" not in re.split(r"[\r\n]", self.text[:place])[-1])
        return Span(*self._position(start), *self._position(start + len(code)))

    def _position(self, offset: int) -> tuple[int, int]:
        starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", self.text[:offset]))]
        return len(starts), len(self.text[starts[-1] : offset].encode())

    def remove(self, code: str) -> Edit:
        return RemoveStatement(self.at(code))

    def before(self, anchor: str, code: str) -> Edit:
        return InsertStatement(self.at(anchor), Where.BEFORE, code)

    def after(self, anchor: str, code: str) -> Edit:
        return InsertStatement(self.at(anchor), Where.AFTER, code)

    def replace(self, old: str, code: str) -> Edit:
        return ReplaceStatement(self.at(old), code)

    def move_before(self, code: str, anchor: str) -> Edit:
        return MoveStatement(self.at(code), self.at(anchor), Where.BEFORE)

    def move_after(self, code: str, anchor: str) -> Edit:
        return MoveStatement(self.at(code), self.at(anchor), Where.AFTER)

    def bind(self, statement: str, targets: str) -> Edit:
        return BindResult(self.at(statement), targets)

    def targets(self, statement: str, targets: str) -> Edit:
        return ReplaceTargets(self.at(statement), targets)

    def expression(self, old: str, code: str) -> Edit:
        return ReplaceExpression(self.at(old), code)

    def keyword(self, call: str, code: str, name: str) -> Edit:
        return AddArgument(self.at(call), code, keyword=name)

    def positional(self, call: str, code: str, index: int | None) -> Edit:
        return AddArgument(self.at(call), code, index=index)

    def drop(self, call: str, argument: str) -> Edit:
        return RemoveArgument(self.at(call), self.at(argument))

    def name(self, call: str, argument: str, keyword: str) -> Edit:
        return NameArgument(self.at(call), self.at(argument), keyword)

    def add_import(self, module: str, name: str) -> Edit:
        return AddImport(module, name)


Edits: TypeAlias = Callable[[Editing], Sequence[Edit]]
Case: TypeAlias = tuple[str, Edits, str]
"""A text, the edits, and the text that they make."""


def check_case(case: Case) -> None:
    """Check that the edits of a text make another text, and keep its comments."""
    before, edits, after = case
    fix = Fix("Edit", tuple(edits(Editing(before))))
    result = rewrite(before, [fix])
    assert [reason for _, reason in result.failed] == []
    assert result.text == after
    assert result.applied == (fix,)
    assert not comments(before) - comments(after)


def reason_of(text: str, edits: Edits) -> str:
    """Check that the edits of a text are refused and the text stays; gives the reason."""
    result = rewrite(text, [Fix("Edit", tuple(edits(Editing(text))))])
    assert result.text == text
    assert result.applied == ()
    assert len(result.failed) == 1
    return result.failed[0][1]
