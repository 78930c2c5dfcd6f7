"""A block as rows of statements that can be put in, taken out and written back: the geometry of statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import libcst as cst

from fabric_fix.edits.code import Maker, comments_in
from fabric_fix.edits.model import EditError, Where

Small: TypeAlias = cst.BaseSmallStatement
Suite: TypeAlias = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite
EmptyLines: TypeAlias = list[cst.EmptyLine]


@dataclass(eq=False)
class Piece:
    """One statement of a row, and what it is known by."""

    node: Small | cst.BaseCompoundStatement
    key: int | None = None
    """Where the statement started in the text; None for a new one."""
    follows: int | None = None
    """The key of the anchor after which it was put."""

    def take_semicolon(self, other: Piece) -> None:
        """End a small statement as another one ended."""
        if isinstance(other.node, cst.BaseSmallStatement):
            self.node = self.node.with_changes(semicolon=other.node.semicolon)

    def drop_semicolon(self) -> None:
        """End a small statement without a semicolon; where one is needed, it is written all the same."""
        self.node = self.node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


@dataclass(eq=False)
class Row:
    """A line of small statements, or one compound statement, with the lines above it."""

    pieces: list[Piece]
    leading: EmptyLines = field(default_factory=list)
    trailing: cst.TrailingWhitespace | None = None
    """What ends the line; None for a compound statement, which has that inside."""

    @property
    def is_compound(self) -> bool:
        """Whether the row is one compound statement."""
        return isinstance(self.pieces[0].node, cst.BaseCompoundStatement)

    @property
    def comment(self) -> cst.Comment | None:
        """The comment behind a line of small statements."""
        return self.trailing.comment if self.trailing is not None else None

    @property
    def needs_own_line(self) -> bool:
        """Whether the row cannot be written into a line of other statements."""
        return self.is_compound or bool(self.leading) or self.comment is not None


class Block:
    """The statements of a suite while they are rearranged; `make` is to be set for the place worked on."""

    def __init__(self, rows: list[Row], suite: Suite, make: Maker) -> None:
        self.rows = rows
        self.suite = suite
        self.make = make
        self.footer: EmptyLines = []
        self.is_module = isinstance(suite, cst.Module)
        self.is_inline = isinstance(suite, cst.SimpleStatementSuite)

    def find(self, key: int) -> tuple[Row, int]:
        """The row of a statement and its place in this row. Raises EditError when another edit took it away."""
        for row in self.rows:
            for index, piece in enumerate(row.pieces):
                if piece.key == key:
                    return row, index
        raise EditError("the statement was taken away by another edit")

    def put(self, new: Row, anchor: int, where: Where) -> None:
        """Put a row of one statement beside a statement."""
        row, index = self.find(anchor)
        if where is Where.AFTER:
            row, index = self._last_follower(row, index, anchor)
            new.pieces[0].follows = anchor
            index += 1
        at = self.rows.index(row)
        own_line = index == len(row.pieces) if where is Where.AFTER else index == 0
        if new.needs_own_line or (own_line and not self.is_inline):
            self._put_row(new, at, index, where)
        else:
            self._put_piece(new.pieces[0], row, index)

    def remove(self, key: int) -> None:
        """Take a statement out; its comments stay, and the only statement of a block becomes `pass`."""
        row, index = self.find(key)
        piece = row.pieces[index]
        inside = [self.make.comment_line(comment) for comment in comments_in([piece.node])]
        if len(row.pieces) > 1:
            row.leading = [*row.leading, *inside]
            self._drop_piece(row, index)
        elif len(self.rows) == 1 and not self.is_module:
            row.leading = [*row.leading, *inside]
            row.pieces = [Piece(cst.Pass())]
            row.trailing = row.trailing or self.make.line_end()
        else:
            behind = [self.make.comment_line(row.comment)] if row.comment else []
            self._drop_row(row, [*row.leading, *inside, *behind])

    def take(self, key: int) -> Row:
        """Take a statement out to put it elsewhere: as a row with its comments, without blank lines."""
        row, index = self.find(key)
        if len(row.pieces) > 1:
            piece = row.pieces[index]
            self._drop_piece(row, index)
            piece.drop_semicolon()
            return Row([piece], [], self.make.line_end())
        self._drop_row(row, [line for line in row.leading if line.comment is None])
        row.leading = [line for line in row.leading if line.comment is not None]
        return row

    def replace(self, key: int, new: Row) -> None:
        """Put another statement in the place of one; comments above and behind it stay, those inside go above."""
        row, index = self.find(key)
        inside = _missing(comments_in([row.pieces[index].node]), comments_in([*new.leading, new.pieces[0].node]))
        row.leading = [*row.leading, *(self.make.comment_line(comment) for comment in inside), *new.leading]
        if not new.is_compound and not row.is_compound:
            new.pieces[0].take_semicolon(row.pieces[index])
            row.pieces[index] = new.pieces[0]
        elif len(row.pieces) == 1:
            self._replace_row(row, new)
        else:
            at = self._split(row, index)
            self._split(self.rows[at], 1)
            self._replace_row(self.rows[at], new)

    def _replace_row(self, row: Row, new: Row) -> None:
        behind = row.comment
        row.pieces, row.trailing = new.pieces, new.trailing
        self.is_inline = self.is_inline and not new.is_compound
        if behind is None or not row.is_compound:
            return
        headed = _with_header_comment(row.pieces[0].node, behind)
        if headed is None:
            row.leading = [*row.leading, self.make.comment_line(behind)]
        else:
            row.pieces[0].node = headed

    def _last_follower(self, row: Row, index: int, anchor: int) -> tuple[Row, int]:
        """The last of the statements that earlier edits put directly after an anchor; else the anchor itself."""
        flat = [(other, at) for other in self.rows for at in range(len(other.pieces))]
        position = next(i for i, (other, at) in enumerate(flat) if other is row and at == index)
        for other, at in flat[position + 1 :]:
            if other.pieces[at].follows != anchor:
                break
            row, index = other, at
        return row, index

    def _put_piece(self, piece: Piece, row: Row, index: int) -> None:
        piece.drop_semicolon()
        if index == len(row.pieces):
            piece.take_semicolon(row.pieces[-1])
            row.pieces[-1].drop_semicolon()
        row.pieces.insert(index, piece)

    def _put_row(self, new: Row, at: int, index: int, where: Where) -> None:
        row = self.rows[at]
        self.is_inline = False
        if 0 < index < len(row.pieces):
            at = self._split(row, index)
        elif index == 0:
            self._lead_before(new, at)
        else:
            at += 1
            self._lead_after(new, at)
        self.rows.insert(at, new)

    def _split(self, row: Row, index: int) -> int:
        """Break a line before one of its statements; says which row the later part is."""
        at = self.rows.index(row)
        if not 0 < index < len(row.pieces):
            return at if index == 0 else at + 1
        later = Row(row.pieces[index:], [], row.trailing)
        row.pieces, row.trailing = row.pieces[:index], self.make.line_end()
        row.pieces[-1].drop_semicolon()
        self.rows.insert(at + 1, later)
        self.is_inline = False
        return at + 1

    def _lead_before(self, new: Row, at: int) -> None:
        """Put a row below the line above; under a definition, docstring or import the blank lines go first."""
        anchor = self.rows[at]
        if at == 0 and _is_import(new) and not _is_import(anchor) and not _head_blanks(anchor.leading):
            anchor.leading = [self.make.blank_line(), *anchor.leading]
        if at == 0 or not _wants_distance(self.rows[at - 1], new, self._is_docstring(at - 1)):
            return
        blanks = _head_blanks(anchor.leading)
        anchor.leading = anchor.leading[len(blanks) :]
        new.leading = [*blanks, *new.leading]

    def _lead_after(self, new: Row, at: int) -> None:
        above = self.rows[at - 1]
        if not _wants_distance(above, new, self._is_docstring(at - 1)):
            return
        blanks = _head_blanks(self.rows[at].leading) if at < len(self.rows) else []
        if not blanks and (self.is_module or above.is_compound):
            blanks = [self.make.blank_line()] * (2 if self.is_module and above.is_compound else 1)
        new.leading = [*blanks, *new.leading]

    def _is_docstring(self, at: int) -> bool:
        node = self.rows[0].pieces[0].node
        return at == 0 and isinstance(node, cst.Expr) and isinstance(node.value, cst.BaseString)

    def _drop_piece(self, row: Row, index: int) -> None:
        removed = row.pieces.pop(index)
        if index == len(row.pieces):
            row.pieces[-1].take_semicolon(removed)

    def _drop_row(self, row: Row, left: EmptyLines) -> None:
        """Take a row out and leave lines (its comments, its blank lines) to the next row, or to the block's end."""
        at = self.rows.index(row)
        del self.rows[at]
        if at == len(self.rows):
            if any(line.comment for line in left):
                self.footer = [*_without_tail_blanks(left), *self.footer]
            return
        below = self.rows[at]
        below.leading = self._merge(left, below.leading, is_first=at == 0)

    def _merge(self, left: EmptyLines, own: EmptyLines, is_first: bool) -> EmptyLines:
        has_own_blanks = bool(_head_blanks(own))
        if any(line.comment for line in left):
            return [*(_without_tail_blanks(left) if has_own_blanks else left), *own]
        if not is_first:
            return own if has_own_blanks else [*left, *own]
        if isinstance(self.suite, cst.Module) and self.suite.header and self.suite.header[-1].comment:
            return own
        return [*left, *own[len(_head_blanks(own)) :]]


def _with_header_comment(node: cst.CSTNode, comment: cst.Comment) -> cst.BaseCompoundStatement | None:
    """A compound statement with a comment behind its colon; None where there is no room for it."""
    body = getattr(node, "body", None)
    if not isinstance(body, cst.IndentedBlock) or body.header.comment is not None:
        return None
    assert isinstance(node, cst.BaseCompoundStatement)
    header = body.header.with_changes(whitespace=cst.SimpleWhitespace("  "), comment=comment)
    return node.with_changes(body=body.with_changes(header=header))


def _missing(old: Sequence[cst.Comment], new: Sequence[cst.Comment]) -> list[cst.Comment]:
    """The comments of replaced code that the new code does not have."""
    texts = [comment.value for comment in new]
    missing = []
    for comment in old:
        if comment.value in texts:
            texts.remove(comment.value)
        else:
            missing.append(comment)
    return missing


def _head_blanks(lines: Sequence[cst.EmptyLine]) -> EmptyLines:
    for index, line in enumerate(lines):
        if line.comment is not None:
            return list(lines[:index])
    return list(lines)


def _without_tail_blanks(lines: EmptyLines) -> EmptyLines:
    kept = list(lines)
    while kept and kept[-1].comment is None:
        kept.pop()
    return kept


def _wants_distance(above: Row, new: Row, is_docstring: bool) -> bool:
    node = above.pieces[-1].node
    if isinstance(node, cst.FunctionDef | cst.ClassDef) or is_docstring:
        return True
    return _is_import(above) and (_is_future(above) or not _is_import(new))


def _is_import(row: Row) -> bool:
    return isinstance(row.pieces[-1].node, cst.Import | cst.ImportFrom)


def _is_future(row: Row) -> bool:
    node = row.pieces[-1].node
    return isinstance(node, cst.ImportFrom) and isinstance(node.module, cst.Name) and node.module.value == "__future__"
