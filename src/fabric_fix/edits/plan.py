"""Which fixes can be made together: those that do not touch each other; and which lines they may change."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabric_fix.edits.conflicts import anchor_of, place_of
from fabric_fix.edits.lines import is_continued
from fabric_fix.edits.model import (
    AddArgument,
    Edit,
    MoveStatement,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
)
from fabric_fix.edits.places import (
    Position,
    StatementPlace,
    blocks_of,
    end_of,
    find_statement,
    innermost_statement,
    start_of,
)
from fabric_fix.edits.verify import TouchedLines
from fabric_fix.finding import Fix


@dataclass(frozen=True)
class Region:
    """A piece of the source, from a position to another."""

    start: Position
    end: Position

    def overlaps(self, other: Region) -> bool:
        """Whether two regions have a character in common."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Touched:
    """A statement that an edit touches: as a whole, or only up to its first block."""

    place: StatementPlace
    is_whole: bool

    @property
    def region(self) -> Region:
        """What of the source is touched."""
        statement = self.place.statement
        first_block = next(blocks_of(statement), None)
        if self.is_whole or first_block is None:
            return Region(start_of(statement), end_of(statement))
        return Region(start_of(statement), start_of(first_block[1][0]))

    def lines(self, text: Sequence[str]) -> TouchedLines:
        """The lines of a text that may change: those of the region and of the statements that share a line with it."""
        region = self.region
        first, last = region.start[0], region.end[0]
        siblings = [(start_of(other)[0], end_of(other)[0]) for other in self.place.block]
        for start, end in [*siblings, (last, last)]:
            while last < len(text) and is_continued(text[last - 1]):
                last += 1
            last = max(last, end) if start <= last else last
        for start, end in [*reversed(siblings), (first, first)]:
            while first > 1 and is_continued(text[first - 2]):
                first -= 1
            first = min(first, start) if end >= first else first
        return TouchedLines(first, last, self.is_whole and any(True for _ in blocks_of(self.place.statement)))


def regions_of(tree: ast.Module, fix: Fix) -> list[Region]:
    """What a fix touches; imports touch nothing. Raises EditError when a place is not found."""
    return [touched.region for edit in fix.edits for touched in _touched(tree, edit)]


def touches(regions: Iterable[Region], others: Iterable[Region]) -> bool:
    """Whether any region of one fix overlaps any of another."""
    others = list(others)
    return any(region.overlaps(other) for region in regions for other in others)


def touched_lines(tree: ast.Module, edits: Iterable[Edit], text: Sequence[str]) -> list[TouchedLines]:
    """The lines of a text that edits may change. Raises EditError when a place is not found."""
    return [touched.lines(text) for edit in edits for touched in _touched(tree, edit)]


def _touched(tree: ast.Module, edit: Edit) -> Iterator[Touched]:
    place, anchor = place_of(edit), anchor_of(edit)
    if place is not None:
        is_inside = isinstance(edit, ReplaceExpression | AddArgument | RemoveArgument)
        found = innermost_statement(tree, place) if is_inside else find_statement(tree, place)
        yield Touched(found, isinstance(edit, RemoveStatement | ReplaceStatement | MoveStatement))
    if anchor is not None:
        yield Touched(find_statement(tree, anchor), is_whole=False)
