"""Pieces of the source as written; `ast.get_source_segment` splits the whole text into lines for each of them."""

from __future__ import annotations

import ast

from fabric_fix.analysis.program import Program
from fabric_fix.edits.lines import LineTable


def lines_of(program: Program) -> LineTable:
    """The lines of a program's text."""
    return program.once(_lines)


def _lines(program: Program) -> LineTable:
    return LineTable(program.text)


def segment(program: Program, node: ast.expr | ast.stmt) -> str:
    """The source of a node that was parsed from a program's text, newlines as they are there."""
    lines = lines_of(program)
    start = lines.offset(node.lineno, node.col_offset)
    return program.text[start : lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)]
