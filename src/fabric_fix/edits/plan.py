"""Which fixes can be made together: those that do not touch each other."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from fabric_fix.edits.conflicts import anchor_of, place_of
from fabric_fix.edits.model import (
    AddArgument,
    Edit,
    MoveStatement,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
)
from fabric_fix.edits.places import Position, blocks_of, end_of, find_statement, innermost_statement, start_of
from fabric_fix.edits.verify import TouchedLines
from fabric_fix.finding import Fix


@dataclass(frozen=True)
class Region:
    """A piece of the source that an edit touches, from a position to another."""

    start: Position
    end: Position
    is_block: bool = False
    """Whether it is a compound statement as a whole, to which the comments at its end belong, too."""

    def overlaps(self, other: Region) -> bool:
        """Whether two regions have a character in common."""
        return self.start < other.end and other.start < self.end


def regions_of(tree: ast.Module, fix: Fix) -> list[Region]:
    """What a fix touches; imports touch nothing. Raises EditError when a place is not found."""
    return [region for edit in fix.edits for region in edit_regions(tree, edit)]


def edit_regions(tree: ast.Module, edit: Edit) -> list[Region]:
    """The statements that an edit touches: whole ones that go or move, else the part before their blocks."""
    regions = []
    place, anchor = place_of(edit), anchor_of(edit)
    if place is not None:
        is_inside = isinstance(edit, ReplaceExpression | AddArgument | RemoveArgument)
        found = innermost_statement(tree, place) if is_inside else find_statement(tree, place)
        is_whole = isinstance(edit, RemoveStatement | ReplaceStatement | MoveStatement)
        regions.append(_whole(found.statement) if is_whole else _header(found.statement))
    if anchor is not None:
        regions.append(_header(find_statement(tree, anchor).statement))
    return regions


def touches(regions: Iterable[Region], others: Iterable[Region]) -> bool:
    """Whether any region of one fix overlaps any of another."""
    others = list(others)
    return any(region.overlaps(other) for region in regions for other in others)


def touched_lines(tree: ast.Module, edits: Iterable[Edit]) -> list[TouchedLines]:
    """The lines of all statements that edits touch."""
    return [
        TouchedLines(region.start[0], region.end[0], region.is_block)
        for edit in edits
        for region in edit_regions(tree, edit)
    ]


def _whole(statement: ast.stmt) -> Region:
    return Region(start_of(statement), end_of(statement), any(True for _ in blocks_of(statement)))


def _header(statement: ast.stmt) -> Region:
    """A statement up to its first block; a simple statement as a whole."""
    for _, block in blocks_of(statement):
        return Region(start_of(statement), start_of(block[0]))
    return _whole(statement)
