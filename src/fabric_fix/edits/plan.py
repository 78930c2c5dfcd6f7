"""Which fixes can be made together: those that do not touch each other; and which lines they may change."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from fabric_fix.edits.conflicts import anchor_of, place_of
from fabric_fix.edits.lines import LineTable, is_continued
from fabric_fix.edits.model import (
    AddArgument,
    Edit,
    MoveStatement,
    NameArgument,
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
    index_at,
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

    def lines(self, text: LineTable) -> TouchedLines:
        """The lines of a text that may change: those of the region and of the statements that share a line with it."""
        block, region = self.place.block, self.region
        at = index_at(block, start_of(self.place.statement))
        last = _joined_below(islice(block, at + 1, None), max(region.end, end_of(block[at]))[0], text)
        first = _joined_above((block[above] for above in range(at - 1, -1, -1)), region.start[0], text)
        return TouchedLines(first, last, self.is_whole and any(True for _ in blocks_of(self.place.statement)))


class Regions:
    """The regions of some fixes."""

    def __init__(self) -> None:
        self._sorted: list[Region] = []

    def overlap(self, regions: Iterable[Region]) -> bool:
        """Whether any of these has a character in common with any of those taken before."""
        return any(self._hits(region) for region in regions)

    def add(self, regions: Iterable[Region]) -> None:
        """Take regions, too."""
        for region in regions:
            hits = self._hits(region)
            first = self._sorted.index(hits[0]) if hits else bisect_right(self._sorted, region.start, key=_start)
            start = min([region.start, *(hit.start for hit in hits)])
            end = max([region.end, *(hit.end for hit in hits)])
            self._sorted[first : first + len(hits)] = [Region(start, end)]

    def _hits(self, region: Region) -> list[Region]:
        """Those that a region overlaps; they follow each other, since no two of them overlap."""
        at = max(bisect_right(self._sorted, region.start, key=_start) - 1, 0)
        hits = []
        while at < len(self._sorted) and self._sorted[at].start < region.end:
            hits += [self._sorted[at]] if region.overlaps(self._sorted[at]) else []
            at += 1
        return hits


def _start(region: Region) -> Position:
    return region.start


def _joined_below(below: Iterable[ast.stmt], last: int, text: LineTable) -> int:
    """The last line of what stands in lines that end at `last`, with the statements below that begin in these."""
    for statement in below:
        last = _end_of_line(last, text)
        if start_of(statement)[0] > last:
            break
        last = max(last, end_of(statement)[0])
    return _end_of_line(last, text)


def _end_of_line(last: int, text: LineTable) -> int:
    while last < text.last and is_continued(text.line(last)):
        last += 1
    return last


def _joined_above(above: Iterable[ast.stmt], first: int, text: LineTable) -> int:
    """The first line of what stands in lines that begin at `first`, with the statements above that end in these."""
    for statement in above:
        first = _start_of_line(first, text)
        if end_of(statement)[0] < first:
            break
        first = min(first, start_of(statement)[0])
    return _start_of_line(first, text)


def _start_of_line(first: int, text: LineTable) -> int:
    while first > text.first and is_continued(text.line(first - 1)):
        first -= 1
    return first


def regions_of(tree: ast.Module, fix: Fix) -> list[Region]:
    """What a fix touches; imports touch nothing. Raises EditError when a place is not found."""
    return [touched.region for edit in fix.edits for touched in _touched(tree, edit)]


def touched_lines(tree: ast.Module, edits: Iterable[Edit], text: LineTable) -> list[TouchedLines]:
    """The lines of a text that edits may change. Raises EditError when a place is not found."""
    return [touched.lines(text) for edit in edits for touched in _touched(tree, edit)]


def _touched(tree: ast.Module, edit: Edit) -> Iterator[Touched]:
    place, anchor = place_of(edit), anchor_of(edit)
    if place is not None:
        is_inside = isinstance(edit, ReplaceExpression | AddArgument | RemoveArgument | NameArgument)
        found = innermost_statement(tree, place) if is_inside else find_statement(tree, place)
        yield Touched(found, isinstance(edit, RemoveStatement | ReplaceStatement | MoveStatement))
    if anchor is not None:
        yield Touched(find_statement(tree, anchor), is_whole=False)
