"""The parts of a large text that edits touch, each as a small text of its own that holds the same statements.

Reading a file with LibCST, and proving a result, takes time for each of its lines. So a few statements of one block are
cut out, with a neighbour on either side, since blank lines and comments depend on these, and put under stand-ins for
the heads of the statements around them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabric_fix.edits.conflicts import anchor_of, contains, place_of
from fabric_fix.edits.imports import head_of, is_docstring
from fabric_fix.edits.lines import LineTable, is_continued
from fabric_fix.edits.model import Edit
from fabric_fix.edits.places import blocks_of, end_of, index_at, start_of
from fabric_fix.finding import Span

LARGE = 300
"""Lines of a text, and of a statement, beyond which it is worth being cut."""


@dataclass(frozen=True)
class Part:
    """Lines of a text and the edits inside them."""

    first: int
    """The first line, from 1."""
    last: int
    """The last line, included."""
    above: str
    """Lines to put above, so that the part is read as it would be in its place."""
    below: str
    """Lines to put below."""
    edits: tuple[Edit, ...]

    @property
    def first_number(self) -> int:
        """The number of the first line of `above`, where the part's own lines keep theirs."""
        return self.first - len(LineTable(self.above).split())


@dataclass(frozen=True)
class _Block:
    """A list of statements, and stand-ins for the heads of those that it is in."""

    statements: list[ast.stmt]
    owner: ast.AST
    heads: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Place:
    """The span of what an edit touches: of all of it, since it is not to be torn apart."""

    number: int
    """Which of the edits it is: statements put at one place stand in the order of the edits."""
    span: Span
    edit: Edit


class Parts:
    """Cuts a text; `lines` are its lines with their newlines, `newline` is its usual one."""

    def __init__(self, tree: ast.Module, lines: Sequence[str]) -> None:
        self.tree = tree
        self.lines = lines
        self.newline = lines[0][len(lines[0].rstrip("\r\n")) :] if lines else "\n"
        self.indent = self._first_indent(tree.body)
        self.head = len(head_of(tree))

    def of(self, edits: Sequence[Edit]) -> list[Part]:
        """The parts that hold edits (whose imports are placed), from the top to the bottom of the text."""
        spans = [(number, _span_of(edit), edit) for number, edit in enumerate(edits)]
        places = [_Place(number, span, edit) for number, span, edit in spans if span is not None]
        return sorted(self._cut(_Block(self.tree.body, self.tree), places), key=lambda part: part.first)

    def _cut(self, block: _Block, places: Sequence[_Place]) -> Iterator[Part]:
        for first, last, inside in self._clusters(block, places):
            inner = self._inner_blocks(block, first, inside) if first == last else None
            if inner is None:
                yield self._part(block, first, last, inside)
            else:
                for deeper, some in inner:
                    yield from self._cut(deeper, some)

    def _clusters(self, block: _Block, places: Sequence[_Place]) -> Iterator[tuple[int, int, list[_Place]]]:
        """Ranges of statements that do not share neighbours, each with the places in it."""
        ranges = sorted(
            ((*self._range(block.statements, place.span), place) for place in places), key=lambda found: found[:2]
        )
        current: tuple[int, int, list[_Place]] | None = None
        for first, last, place in ranges:
            if current is not None and self._grown(block, *current[:2])[1] >= self._grown(block, first, last)[0] - 1:
                current = (current[0], max(current[1], last), [*current[2], place])
                continue
            if current is not None:
                yield current
            current = (first, last, [place])
        if current is not None:
            yield current

    def _range(self, block: list[ast.stmt], span: Span) -> tuple[int, int]:
        return index_at(block, (span.line, span.column)), index_at(block, (span.end_line, max(span.end_column - 1, 0)))

    def _grown(self, block: _Block, first: int, last: int) -> tuple[int, int]:
        """A range with a neighbour on either side, and with all that shares a line with these."""
        body = block.statements
        first, last = max(first - 1, 0), min(last + 1, len(body) - 1)
        if body is self.tree.body and first <= self.head:
            first = 0
        while first > 0 and (is_docstring(body[first]) or not self._is_apart(body[first - 1], body[first])):
            first -= 1
        while last < len(body) - 1 and not self._is_apart(body[last], body[last + 1]):
            last += 1
        return first, last

    def _is_apart(self, above: ast.stmt, below: ast.stmt) -> bool:
        """Whether a statement ends in a line, and the next one starts in a later one that nothing joins to it."""
        end, start = end_of(above)[0], start_of(below)[0]
        return end < start and not any(is_continued(line) for line in self.lines[end - 1 : start - 1])

    def _inner_blocks(
        self, block: _Block, index: int, places: Sequence[_Place]
    ) -> list[tuple[_Block, list[_Place]]] | None:
        """The blocks of one large statement, where all places are inside of these; else None."""
        statement = block.statements[index]
        if end_of(statement)[0] - statement.lineno < LARGE:
            return None
        head = self._stand_in(statement)
        inner = [(owner, body) for owner, body in blocks_of(statement) if self._can_stand_alone(statement, owner, body)]
        found: dict[int, tuple[_Block, list[_Place]]] = {}
        for place in places:
            at = next((at for at, (_, body) in enumerate(inner) if _holds(body, place.span)), None)
            if at is None:
                return None
            owner, body = inner[at]
            found.setdefault(at, (_Block(body, owner, (*block.heads, head)), []))[1].append(place)
        return list(found.values())

    def _stand_in(self, statement: ast.stmt) -> str:
        """A head of the same kind: whether there is a docstring depends on that."""
        heads = {ast.FunctionDef: "def _():", ast.AsyncFunctionDef: "async def _():", ast.ClassDef: "class _:"}
        return self._indent_of(statement) + heads.get(type(statement), "if 1:")

    def _can_stand_alone(self, statement: ast.stmt, owner: ast.AST, body: list[ast.stmt]) -> bool:
        """Whether a block is indented below its statement's head; that of an `elif` or `case` is not taken apart."""
        if owner is not statement or not self._starts_line(body[0]):
            return False
        return len(self._indent_of(body[0])) > len(self._indent_of(statement))

    def _indent_of(self, statement: ast.stmt) -> str:
        line = self.lines[start_of(statement)[0] - 1]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _starts_line(self, statement: ast.stmt) -> bool:
        row = start_of(statement)[0]
        indent = self._indent_of(statement)
        above_is_joined = row > 1 and is_continued(self.lines[row - 2])
        return statement.col_offset == len(indent) and not above_is_joined and "\f" not in self.lines[row - 1]

    def _part(self, block: _Block, first: int, last: int, places: Sequence[_Place]) -> Part:
        first, last = self._grown(block, first, last)
        body = block.statements
        top = end_of(body[first - 1])[0] + 1 if first else self._first_line(block)
        is_end = body is self.tree.body and last == len(body) - 1
        bottom = len(self.lines) if is_end else self._last_line(body, last)
        is_start = body is self.tree.body and first == 0
        unit = f"if 1:{self.newline}{self.indent}pass{self.newline}" if self.indent else ""
        above = "" if is_start else unit + "".join(head + self.newline for head in block.heads)
        below = unit if is_start and not is_end else ""
        ordered = sorted(places, key=lambda place: place.number)
        return Part(top, bottom, above, below, tuple(place.edit for place in ordered))

    def _last_line(self, body: list[ast.stmt], index: int) -> int:
        """The line in which a statement ends, with the comments below that are indented as its own last block is."""
        line = last = end_of(body[index])[0]
        width = len(self._indent_of(body[index]))
        while index == len(body) - 1 and line < len(self.lines) and self.lines[line].strip()[:1] in ("", "#"):
            line += 1
            text = self.lines[line - 1]
            if text.strip() and len(text) - len(text.lstrip(" \t")) > width:
                last = line
        return last

    def _first_line(self, block: _Block) -> int:
        """The line of a block's first statement, or of the blank lines and comments above it."""
        if block.statements is self.tree.body:
            return 1
        line = start_of(block.statements[0])[0]
        while self.lines[line - 2].strip()[:1] in ("", "#"):
            line -= 1
        return line

    def _first_indent(self, body: Sequence[ast.stmt]) -> str:
        """By what the first indented block of the text is indented, which is what its new blocks will be."""
        for statement in body:
            for owner, block in blocks_of(statement):
                row = owner.pattern.lineno if isinstance(owner, ast.match_case) else start_of(block[0])[0]
                line = self.lines[row - 1]
                indent = line[: len(line) - len(line.lstrip(" \t\f"))]
                if isinstance(owner, ast.match_case) or self._starts_line(block[0]):
                    return indent
        return ""


def _span_of(edit: Edit) -> Span | None:
    """All that an edit touches: what it changes, and what it puts something beside."""
    spans = [span for span in (place_of(edit), anchor_of(edit)) if span is not None]
    if not spans:
        return None
    start, end = min(spans), max(spans, key=lambda span: (span.end_line, span.end_column))
    return Span(start.line, start.column, end.end_line, end.end_column)


def _holds(body: list[ast.stmt], span: Span) -> bool:
    (line, column), (end_line, end_column) = start_of(body[0]), end_of(body[-1])
    return contains(Span(line, column, end_line, end_column), span)
