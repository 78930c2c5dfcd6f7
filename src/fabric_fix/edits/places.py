"""Finding places on `ast`: the statement, the block and the expression that a span means."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from fabric_fix.edits.conflicts import contains
from fabric_fix.edits.model import EditError
from fabric_fix.finding import Span

Position = tuple[int, int]


@dataclass(frozen=True, eq=False)
class StatementPlace:
    """A statement, the list of statements that it stands in, and the node that owns the list."""

    statement: ast.stmt
    block: list[ast.stmt]
    owner: ast.AST

    @property
    def is_elif(self) -> bool:
        """Whether the statement is the `if` of an `elif`: the only one in `orelse`, at its parent's column."""
        return (
            isinstance(self.owner, ast.If)
            and isinstance(self.statement, ast.If)
            and self.block is self.owner.orelse
            and len(self.block) == 1
            and self.statement.col_offset == self.owner.col_offset
        )


@dataclass(frozen=True, eq=False)
class ExpressionPlace:
    """An expression, and the field of its parent that it is, or is in the list of."""

    node: ast.expr
    parent: ast.AST
    field: str

    def put(self, new: ast.expr) -> None:
        """Put another expression in this place."""
        items = getattr(self.parent, self.field)
        if not isinstance(items, list):
            setattr(self.parent, self.field, new)
            return
        index = next((at for at, item in enumerate(items) if item is self.node), None)
        if index is None:  # arguments may have come and gone
            raise EditError("the expression was taken away by another edit")
        items[index] = new


def blocks_of(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """The statement lists of a module or statement in source order, each with the node that owns it."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        block = getattr(node, field, None)
        if not isinstance(block, list) or not block:
            continue
        if isinstance(block[0], ast.stmt):
            yield node, block
        else:
            for part in block:
                yield part, part.body


def start_of(statement: ast.stmt) -> Position:
    """Where a statement starts, its decorators included (their line, column 0)."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    if decorators:
        return (decorators[0].lineno, 0)
    return (statement.lineno, statement.col_offset)


def end_of(node: ast.stmt | ast.expr) -> Position:
    """Where a parsed node ends."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.end_lineno, node.end_col_offset)


def index_at(block: list[ast.stmt], position: Position) -> int:
    """The index of the last statement of a block that starts at or before a position; 0 where none does."""
    return max(bisect_right(block, position, key=start_of) - 1, 0)


def innermost_statement(tree: ast.Module, span: Span) -> StatementPlace:
    """The innermost statement that contains a span. Raises EditError when none does."""
    found: StatementPlace | None = None
    node: ast.AST = tree
    while (inner := _statement_in(node, span)) is not None:
        found, node = inner, inner.statement
        if Span.of(inner.statement) == span:
            break
    if found is None:
        raise EditError(f"there is no statement at line {span.line}")
    return found


def _statement_in(node: ast.AST, span: Span) -> StatementPlace | None:
    """The statement directly in a module or statement that contains a span."""
    start, end = (span.line, span.column), (span.end_line, span.end_column)
    for owner, block in blocks_of(node):
        statement = block[index_at(block, start)]
        if start_of(statement) <= start and end <= end_of(statement):
            return StatementPlace(statement, block, owner)
    return None


def find_statement(tree: ast.Module, span: Span) -> StatementPlace:
    """The statement with exactly this span. Raises EditError when there is none."""
    place = innermost_statement(tree, span)
    if Span.of(place.statement) != span:
        raise EditError(f"there is no such statement at line {span.line}")
    return place


def find_expression(tree: ast.Module, span: Span) -> ExpressionPlace:
    """The outermost expression with exactly this span. Raises EditError when there is none."""
    place = _search(innermost_statement(tree, span).statement, span)
    if place is None:
        raise EditError(f"there is no such expression at line {span.line}")
    return place


def _search(node: ast.AST, span: Span) -> ExpressionPlace | None:
    for child, field in _children(node):
        if isinstance(child, ast.stmt):
            continue
        if isinstance(child, ast.expr):
            own = Span.of(child)
            if own == span:
                return ExpressionPlace(child, node, field)
            if not contains(own, span):
                continue
        found = _search(child, span)
        if found is not None:
            return found
    return None


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield value, field
        elif isinstance(value, list):
            yield from ((item, field) for item in value if isinstance(item, ast.AST))
