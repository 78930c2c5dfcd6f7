"""All edits of a plan, made in one walk over the concrete syntax tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias, cast

import libcst as cst

from fabric_fix.edits.blocks import Block, Row, Suite
from fabric_fix.edits.calls import add_argument, name_argument, new_argument, positional_place, remove_argument
from fabric_fix.edits.code import Maker
from fabric_fix.edits.conflicts import anchor_of, place_of
from fabric_fix.edits.locate import Located, Range
from fabric_fix.edits.model import (
    AddArgument,
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
from fabric_fix.edits.parentheses import fit
from fabric_fix.edits.suites import new_row, read_block, write_block
from fabric_fix.finding import Span

BlockEdit: TypeAlias = InsertStatement | MoveStatement | ReplaceStatement | RemoveStatement
ArgumentEdit: TypeAlias = AddArgument | RemoveArgument | NameArgument
_MEASURED = (cst.BaseExpression, cst.BaseSmallStatement, cst.BaseStatement)
"""Nodes whose recorded place holds all that is in them (that of a parameter, for one, leaves out its default)."""
_PHASES: tuple[type, ...] = (InsertStatement, MoveStatement, ReplaceStatement, RemoveStatement)


def transform(located: Located, edits: Sequence[Edit]) -> str:
    """The text with the edits made; imports must be placed already. Raises EditError with a reason."""
    result = located.module.visit(_Editor(located, edits))
    assert isinstance(result, cst.Module)
    return result.code


class _Editor(cst.CSTTransformer):
    def __init__(self, located: Located, edits: Sequence[Edit]) -> None:
        super().__init__()
        self.located = located
        self.touched: list[Range] = []
        self.expressions: dict[int, ReplaceExpression] = {}
        self.calls: dict[int, list[ArgumentEdit]] = {}
        self.smalls: dict[int, BindResult | ReplaceTargets] = {}
        self.block_edits: list[BlockEdit] = []
        self.parents: list[tuple[cst.CSTNode, str]] = []
        for edit in edits:
            self._register(edit)
        self.touched = _merged(self.touched)
        self.block_edits.sort(key=lambda edit: _PHASES.index(type(edit)))
        self.edits_at: dict[int, list[int]] = {}
        for number, edit in enumerate(self.block_edits):
            self.edits_at.setdefault(self._start(_own_place(edit)), []).append(number)

    def _register(self, edit: Edit) -> None:
        for span in (place_of(edit), anchor_of(edit)):
            if span is not None:
                self.touched.append(self.located.range_of_span(span))
        if isinstance(edit, ReplaceExpression):
            self.expressions[id(self.located.expression(edit.span))] = edit
        elif isinstance(edit, ArgumentEdit):
            self.calls.setdefault(id(self.located.expression(edit.call)), []).append(edit)
        elif isinstance(edit, BindResult | ReplaceTargets):
            self.smalls[id(self.located.statement(edit.statement))] = edit
        elif isinstance(edit, InsertStatement | MoveStatement | ReplaceStatement | RemoveStatement):
            self.block_edits.append(edit)

    def on_visit(self, node: cst.CSTNode) -> bool:
        place = self.located.range_of(node) if isinstance(node, _MEASURED) else None
        enters = place is None or self._is_touched(place)
        if enters:
            self.parents.append((node, ""))
        return enters

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        self.parents[-1] = (node, attribute)

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]  # nodes are neither removed nor multiplied here
        if self.parents and self.parents[-1][0] is original_node:
            self.parents.pop()
        if isinstance(original_node, cst.BaseExpression):
            return self._leave_expression(original_node, cast(cst.BaseExpression, updated_node))
        if id(original_node) in self.smalls:
            return self._leave_small(self.smalls[id(original_node)], updated_node)
        if isinstance(original_node, cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite):
            return self._leave_suite(original_node, cast(Suite, updated_node))
        return updated_node

    def _is_touched(self, place: Range) -> bool:
        at = bisect_right(self.touched, place[1], key=lambda touched: touched[0]) - 1
        return at >= 0 and self.touched[at][1] >= place[0]

    def _leave_expression(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        if id(original) in self.expressions:
            edit = self.expressions[id(original)]
            parent, field = self.parents[-1]
            return fit(self._make(edit.span).expression(edit.code), original, parent, field)
        if id(original) in self.calls:
            return self._edit_call(original, updated, self.calls[id(original)])
        return updated

    def _edit_call(
        self, original: cst.BaseExpression, updated: cst.BaseExpression, edits: Sequence[ArgumentEdit]
    ) -> cst.Call:
        if not isinstance(original, cst.Call) or not isinstance(updated, cst.Call):
            raise EditError("the expression is no call in the concrete syntax tree")
        olds: list[cst.Arg | None] = list(original.args)
        for edit in edits:
            make = self._make(edit.call)
            if isinstance(edit, RemoveArgument):
                at = self._argument_index(olds, edit.argument)
                updated = remove_argument(updated, at, make)
                del olds[at]
            elif isinstance(edit, NameArgument):
                updated = name_argument(updated, self._argument_index(olds, edit.argument), edit.keyword)
            else:
                at = len(olds) if edit.keyword else positional_place(updated.args, edit.index)
                arg = new_argument(make.expression(edit.code), edit.keyword)
                updated = add_argument(updated, arg, at, make)
                olds.insert(at, None)
        return updated

    def _argument_index(self, olds: Sequence[cst.Arg | None], span: Span) -> int:
        start, end = self.located.range_of_span(span)
        for index, arg in enumerate(olds):
            place = self.located.range_of(arg.value) if arg is not None else None
            if place is not None and start <= place[0] and place[1] <= end:
                return index
        raise EditError("the argument is not found in the concrete syntax tree")

    def _leave_small(self, edit: BindResult | ReplaceTargets, updated: cst.CSTNode) -> cst.CSTNode:
        target = self._make(edit.statement).target(edit.targets)
        if isinstance(edit, BindResult):
            assert isinstance(updated, cst.Expr)
            return cst.Assign(targets=[target], value=updated.value, semicolon=updated.semicolon)
        assert isinstance(updated, cst.Assign)
        return updated.with_changes(targets=[updated.targets[0].with_changes(target=target.target)])

    def _leave_suite(self, original: Suite, updated: Suite) -> Suite:
        starts = {self.located.start_of(node) for node in _statements(original)} if self.block_edits else set()
        numbers = sorted(number for start in starts & self.edits_at.keys() for number in self.edits_at[start])
        edits = [self.block_edits[number] for number in numbers]
        if not edits:
            return updated
        block = read_block(original, updated, self.located.start_of, self._make(_own_place(edits[0])))
        for edit in edits:
            self._edit_block(block, edit)
        return write_block(block, updated)

    def _edit_block(self, block: Block, edit: BlockEdit) -> None:
        block.make = self._make(_own_place(edit))
        if isinstance(edit, InsertStatement):
            block.put(self._new_row(block, edit.code), self._start(edit.anchor), edit.where)
        elif isinstance(edit, MoveStatement):
            taken = block.take(self._start(edit.statement))
            block.make = self._make(edit.anchor)
            block.put(taken, self._start(edit.anchor), edit.where)
        elif isinstance(edit, ReplaceStatement):
            block.replace(self._start(edit.statement), self._new_row(block, edit.code))
        else:
            block.remove(self._start(edit.statement))

    def _new_row(self, block: Block, code: str) -> Row:
        indent = block.suite.indent if isinstance(block.suite, cst.IndentedBlock) else None
        return new_row(block.make.statement(code, indent))

    def _make(self, place: Span) -> Maker:
        """A maker of code in the newlines of a place: those of the line in which it ends."""
        return Maker(self.located.module, self.located.lines.newline_at(self.located.range_of_span(place)[1]))

    def _start(self, span: Span) -> int:
        return self.located.range_of_span(span)[0]


def _merged(ranges: Sequence[Range]) -> list[Range]:
    """Ranges from the first to the last, those that touch each other as one."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def _own_place(edit: BlockEdit) -> Span:
    return edit.anchor if isinstance(edit, InsertStatement) else edit.statement


def _statements(suite: Suite) -> list[cst.CSTNode]:
    if isinstance(suite, cst.SimpleStatementSuite):
        return list(suite.body)
    statements: list[cst.CSTNode] = []
    for row in suite.body:
        statements.extend(row.body if isinstance(row, cst.SimpleStatementLine) else [row])
    return statements
