"""Finding the LibCST node of an `ast` span: one walk over the tree gives each node its place in the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import libcst as cst
from libcst._nodes.internal import CodegenState  # what LibCST's own position providers are made with

from fabric_fix.edits.feeds import Feeds
from fabric_fix.edits.lines import LineTable
from fabric_fix.edits.model import EditError
from fabric_fix.finding import Span

Statement: TypeAlias = cst.BaseSmallStatement | cst.BaseCompoundStatement
Range: TypeAlias = tuple[int, int]


class Located:
    """A parsed module, the text that it writes, and where in this text its statements and expressions stand.

    Offsets are in characters. Positions leave out parentheses around an expression (but for tuples and generators,
    where `ast` counts them, both are known) and comments and blanks around a statement.
    """

    def __init__(self, module: cst.Module, text: str, first: int = 1, feeds: Feeds | None = None) -> None:
        self.module = module
        self.text = text
        self.lines = LineTable(text, first)
        self.feeds = feeds or Feeds({})
        recorder = _Recorder(module)
        module._codegen(recorder)
        self.code = "".join(recorder.tokens)
        self._ranges = recorder.ranges
        self._expressions: dict[Range, list[cst.BaseExpression]] = {}
        self._statements: dict[int, Statement] = {}
        for node, place in recorder.ranges.values():
            self._index(node, place)

    def _index(self, node: cst.CSTNode, place: Range) -> None:
        if isinstance(node, cst.BaseExpression):
            self._expressions.setdefault(place, []).append(node)
        elif isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            self._statements[place[0]] = node

    def range_of(self, node: cst.CSTNode) -> Range | None:
        """Where a node stands, decorators included; None for nodes without a place of their own."""
        found = self._ranges.get(id(node))
        if found is None:
            return None
        start, end = found[1]
        if isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
            first = self._ranges.get(id(node.decorators[0].decorator))
            start = first[1][0] if first else start
        return start, end

    def range_of_span(self, span: Span) -> Range:
        """A span of `ast` as offsets in the text."""
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return self.lines.offset(*self.feeds.moved(start)), self.lines.offset(*self.feeds.moved(end))

    def start_of(self, node: cst.CSTNode) -> int:
        """Where a statement starts; for a decorated definition at `def` or `class`."""
        return self._ranges[id(node)][1][0]

    def statement(self, span: Span) -> Statement:
        """The statement with this span. Raises EditError when there is none."""
        found = self._statements.get(self.range_of_span(span)[0])
        if found is None:
            raise EditError(f"the statement at line {span.line} is not found in the concrete syntax tree")
        return found

    def expression(self, span: Span) -> cst.BaseExpression:
        """The outermost expression with this span. Raises EditError when there is none."""
        start, end = self.range_of_span(span)
        found: Sequence[cst.BaseExpression] = self._expressions.get((start, end), [])
        if not found and self.lines.text[start : start + 1] == "(":
            found = self._parenthesised(start, end)
        if not found:
            raise EditError(f"the expression at line {span.line} is not found in the concrete syntax tree")
        return found[-1]  # a node is recorded when it is left, so the outermost is last

    def _parenthesised(self, start: int, end: int) -> Sequence[cst.BaseExpression]:
        """The tuple or generator whose parentheses `ast` counts as its own."""
        inside = [
            (place, node)
            for place, nodes in self._expressions.items()
            if start < place[0] and place[1] < end
            for node in nodes
            if isinstance(node, cst.Tuple | cst.GeneratorExp)
        ]
        text = self.lines.text
        return [node for place, node in inside if _only_brackets(text[start : place[0]], text[place[1] : end])][:1]


class _Recorder(CodegenState):
    """Writes a module's text and notes where its nodes stand, without the whitespace that belongs to them."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.ranges: dict[int, tuple[cst.CSTNode, Range]] = {}

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = self.offset
        yield
        end = self.offset
        if start_node is not None and id(start_node) in self.ranges:
            start = self.ranges[id(start_node)][1][0]
        if end_node is not None and id(end_node) in self.ranges:
            end = self.ranges[id(end_node)][1][1]
        self.ranges[id(node)] = (node, (start, end))


def _only_brackets(before: str, after: str) -> bool:
    """Whether a node stands alone between one opening and one closing bracket, comments and blanks apart."""
    return _without_comments(before) == "(" and _without_comments(after) in (")", ",)")


def _without_comments(text: str) -> str:
    lines = text.replace("\r", "\n").split("\n")
    return "".join("".join(line.split("#")[0].replace("\\", "").split()) for line in lines)
