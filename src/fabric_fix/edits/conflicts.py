"""Edits of one plan that contradict each other: an edit inside something that another edit takes away."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from fabric_fix.edits.model import (
    AddArgument,
    AddImport,
    BindResult,
    Edit,
    EditError,
    InsertStatement,
    MoveStatement,
    NameArgument,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
    ReplaceTargets,
)
from fabric_fix.finding import Span


def place_of(edit: Edit) -> Span | None:
    """The span of what an edit changes; None for AddImport and for InsertStatement, which change nothing there is."""
    if isinstance(edit, ReplaceExpression):
        return edit.span
    if isinstance(edit, AddArgument | RemoveArgument | NameArgument):
        return edit.call
    if isinstance(edit, AddImport | InsertStatement):
        return None
    return edit.statement


def anchor_of(edit: Edit) -> Span | None:
    """The span of the statement beside which an edit puts another; None for edits without an anchor."""
    return edit.anchor if isinstance(edit, InsertStatement | MoveStatement) else None


def lost_to(edit: Edit) -> Span | None:
    """The span of what an edit takes away, so that no other edit may be made inside it."""
    if isinstance(edit, RemoveStatement | ReplaceStatement):
        return edit.statement
    if isinstance(edit, ReplaceExpression):
        return edit.span
    return edit.argument if isinstance(edit, RemoveArgument) else None


def check_conflicts(edits: Sequence[Edit]) -> None:
    """Raise EditError when an edit would be lost in, or depends on the place of, what another takes away."""
    moved = [edit.statement for edit in edits if isinstance(edit, MoveStatement)]
    if len(set(moved)) != len(moved):
        raise EditError("a statement would be moved twice")
    bound = [edit.statement for edit in edits if isinstance(edit, BindResult | ReplaceTargets)]
    if len(set(bound)) != len(bound):
        raise EditError("the targets of a statement would be set twice")
    dropped = [edit for edit in edits if isinstance(edit, RemoveArgument)]
    if len(set(dropped)) != len(dropped):
        raise EditError("an argument would be removed twice")
    touched = sorted(_touched(edits), key=lambda found: found[0])
    for taker in edits:
        lost = lost_to(taker)
        if lost is not None:
            _check_lost(lost, taker, _inside(lost, touched))
    if not {anchor_of(edit) for edit in edits}.isdisjoint(moved):
        raise EditError("a statement would be put beside one that is moved away")


def _touched(edits: Sequence[Edit]) -> Iterator[tuple[Span, Edit, bool]]:
    """The places and the anchors of edits, with whether it is an anchor."""
    for edit in edits:
        place, anchor = place_of(edit), anchor_of(edit)
        if place is not None:
            yield place, edit, False
        if anchor is not None:
            yield anchor, edit, True


def _inside(lost: Span, touched: Sequence[tuple[Span, Edit, bool]]) -> Iterator[tuple[Span, Edit, bool]]:
    at = bisect_left(touched, (lost.line, lost.column), key=lambda found: (found[0].line, found[0].column))
    while at < len(touched) and touched[at][0].line <= lost.end_line:
        if contains(lost, touched[at][0]):
            yield touched[at]
        at += 1


def _check_lost(lost: Span, taker: Edit, inside: Iterable[tuple[Span, Edit, bool]]) -> None:
    for span, other, is_anchor in inside:
        if other is taker or (is_anchor and span == lost):
            continue
        if is_anchor:
            raise EditError(f"a statement would be put into code that is replaced at line {lost.line}")
        if span == lost and isinstance(taker, ReplaceExpression) and isinstance(other, BindResult | MoveStatement):
            continue  # a bare expression has the span of its statement
        raise EditError(f"two edits touch the same code at line {span.line}")


def contains(outer: Span, inner: Span) -> bool:
    """Whether a span lies within another (or is the same)."""
    return (outer.line, outer.column) <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= (
        outer.end_line,
        outer.end_column,
    )
