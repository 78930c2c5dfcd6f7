"""Making LibCST nodes from code, in the newlines and the indentation of the place that they go to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import libcst as cst

from fabric_fix.edits.model import EditError

Node = TypeVar("Node", bound=cst.CSTNode)


@dataclass(frozen=True)
class Maker:
    """Parses code for a module, with the newline of the line that it is put beside."""

    module: cst.Module
    newline: str

    def statement(self, code: str, indent: str | None = None) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
        """One statement; `indent` is what a block is indented by (None: as the file is). Raises EditError."""
        text = self._text(code.rstrip() + "\n")
        try:
            parsed = cst.parse_statement(text, config=self.module.config_for_parsing)
        except cst.ParserSyntaxError as error:
            raise EditError(f"`{code}` cannot be parsed") from error
        if not isinstance(parsed, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            raise EditError(f"`{code}` is not one statement")
        return _visited(parsed, _Fitter(indent, self.newline_node()))

    def expression(self, code: str) -> cst.BaseExpression:
        """An expression. Raises EditError when the code is none."""
        for written in (code.strip(), f"({code.strip()})"):
            try:
                parsed = cst.parse_expression(self._text(written), config=self.module.config_for_parsing)
                return _visited(parsed, _Fitter(None, self.newline_node()))
            except cst.ParserSyntaxError:
                continue
        raise EditError(f"`{code}` cannot be parsed")

    def target(self, code: str) -> cst.AssignTarget:
        """The target of an assignment with its `=`. Raises EditError when the code is none."""
        line = self.statement(f"{code} = 0")
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            raise EditError(f"`{code}` is no target of an assignment")
        return small.targets[0]

    def line_end(self) -> cst.TrailingWhitespace:
        """The end of a line without a comment."""
        return cst.TrailingWhitespace(cst.SimpleWhitespace(""), None, self.newline_node())

    def newline_node(self) -> cst.Newline:
        """The newline of the place; LibCST writes a module's usual newline for the value None."""
        return cst.Newline(None if self.newline == self.module.default_newline else self.newline)

    def comment_line(self, comment: cst.Comment) -> cst.EmptyLine:
        """A comment as a line of its own, at the indentation of its block."""
        return cst.EmptyLine(comment=comment, newline=self.newline_node())

    def blank_line(self) -> cst.EmptyLine:
        """A line without anything on it."""
        return cst.EmptyLine(indent=False, newline=self.newline_node())

    def _text(self, code: str) -> str:
        return code.replace("\r\n", "\n").replace("\r", "\n").replace("\n", self.newline)


def comments_in(nodes: Sequence[cst.CSTNode]) -> list[cst.Comment]:
    """All comments inside nodes, in their order."""
    collector = _Comments()
    for node in nodes:
        node.visit(collector)
    return collector.found


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[cst.Comment] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node)


class _Fitter(cst.CSTTransformer):
    """Indents each block by the unit of the file and ends each line as its lines end; strings stay as they are."""

    def __init__(self, indent: str | None, newline: cst.Newline) -> None:
        self.indent = indent
        self.newline = newline

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:
        return self.newline.deep_clone()

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node.with_changes(indent=self.indent)


def _visited(node: Node, transformer: cst.CSTTransformer) -> Node:
    result = node.visit(transformer)
    assert isinstance(result, type(node))
    return result
