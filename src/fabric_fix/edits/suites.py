"""Suites of LibCST as `Block`s, and back."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from fabric_fix.edits.blocks import Block, Piece, Row, Suite
from fabric_fix.edits.code import Maker


def read_block(original: Suite, updated: Suite, start_of: Callable[[cst.CSTNode], int], make: Maker) -> Block:
    """The rows of a suite; the statements are known by where the original ones start."""
    if isinstance(original, cst.SimpleStatementSuite) or isinstance(updated, cst.SimpleStatementSuite):
        assert isinstance(original, cst.SimpleStatementSuite)
        assert isinstance(updated, cst.SimpleStatementSuite)
        pieces = [Piece(new, start_of(old)) for old, new in zip(original.body, updated.body, strict=True)]
        return Block([Row(pieces, [], updated.trailing_whitespace)], original, make)
    rows = [_row(old, new, start_of) for old, new in zip(original.body, updated.body, strict=True)]
    return Block(rows, original, make)


def write_block(block: Block, updated: Suite) -> Suite:
    """The suite with the rows of its block; a one-line suite becomes indented where it has to."""
    if isinstance(updated, cst.Module):
        return _write_module(block, updated)
    body = [_statement(row) for row in block.rows]
    if isinstance(updated, cst.IndentedBlock):
        return updated.with_changes(body=body, footer=[*block.footer, *updated.footer])
    row = block.rows[0]
    if block.is_inline and not row.leading and not row.is_compound:
        return updated.with_changes(body=_smalls(row), trailing_whitespace=row.trailing)
    return cst.IndentedBlock(body=body, header=block.make.line_end(), footer=block.footer)


def _write_module(block: Block, module: cst.Module) -> cst.Module:
    body = [_statement(row) for row in block.rows]
    return module.with_changes(body=body, footer=[*block.footer, *module.footer])


def _row(old: cst.CSTNode, new: cst.CSTNode, start_of: Callable[[cst.CSTNode], int]) -> Row:
    if isinstance(new, cst.SimpleStatementLine):
        assert isinstance(old, cst.SimpleStatementLine)
        pieces = [Piece(after, start_of(before)) for before, after in zip(old.body, new.body, strict=True)]
        return Row(pieces, list(new.leading_lines), new.trailing_whitespace)
    assert isinstance(new, cst.BaseCompoundStatement)
    return Row([Piece(new.with_changes(leading_lines=[]), start_of(old))], list(new.leading_lines))


def new_row(statement: cst.SimpleStatementLine | cst.BaseCompoundStatement) -> Row:
    """The row of a new statement, with the comments that its code has above it."""
    leading = [line for line in statement.leading_lines if line.comment is not None]
    if isinstance(statement, cst.SimpleStatementLine):
        return Row([Piece(small) for small in statement.body], leading, statement.trailing_whitespace)
    return Row([Piece(statement.with_changes(leading_lines=[]))], leading)


def _statement(row: Row) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
    if isinstance(row.pieces[0].node, cst.BaseCompoundStatement):
        return row.pieces[0].node.with_changes(leading_lines=row.leading)
    assert row.trailing is not None
    return cst.SimpleStatementLine(_smalls(row), row.leading, row.trailing)


def _smalls(row: Row) -> list[cst.BaseSmallStatement]:
    """The statements of a line with a semicolon between any two."""
    smalls = []
    for index, piece in enumerate(row.pieces):
        node = piece.node
        assert isinstance(node, cst.BaseSmallStatement)
        if index + 1 < len(row.pieces):
            node = node.with_changes(semicolon=_between(node.semicolon))
        smalls.append(node)
    return smalls


def _between(semicolon: cst.Semicolon | cst.MaybeSentinel) -> cst.Semicolon:
    if not isinstance(semicolon, cst.Semicolon):
        return cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    return semicolon
