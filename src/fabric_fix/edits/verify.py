"""Proof that a rewritten text is the original with the edits made, and nothing else."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fabric_fix.edits.lines import LineTable
from fabric_fix.edits.model import EditError


@dataclass(frozen=True)
class TouchedLines:
    """The lines of a touched statement: the first and the last, from 1, both included."""

    first: int
    last: int
    has_footer: bool = False
    """Whether the comments below belong to the statement, as those at the end of a block do."""


def parse(text: str) -> ast.Module:
    """The `ast` of a text, without the warnings that Python has for it. Raises SyntaxError or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def compiles(text: str) -> bool:
    """Whether Python compiles a text (which refuses more than its parser does)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def check_compiles(text: str, result: str) -> None:
    """Raise EditError unless Python compiles the result, where it compiles the text."""
    if compiles(result):
        return
    _parsed(result)
    if compiles(text):
        raise EditError("the result would not compile")


def check_result(lines: LineTable, result: str, expected: ast.Module, touched: Iterable[TouchedLines]) -> None:
    """Raise EditError unless the result means what it must, keeps all comments and all lines that are not touched."""
    if _differ(_parsed(result), expected):
        raise EditError("the result would mean something else than the fix")
    check_compiles(lines.text, result)
    changed = _check_lines(lines, result, touched)
    if changed:
        _check_comments(lines.text, result)


def _parsed(result: str) -> ast.Module:
    try:
        return parse(result)
    except (SyntaxError, ValueError) as error:
        raise EditError(f"the result would be no Python: {error}") from error


def _differ(one: object, other: object) -> bool:
    """Whether two trees differ in more than positions; `ast.dump` says the same and takes five times as long."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if left.__class__ is not right.__class__:
            return True
        if isinstance(left, ast.AST):
            pairs.extend((getattr(left, name, None), getattr(right, name, None)) for name in left._fields)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return True
            pairs.extend(zip(left, right, strict=True))
        elif left != right or (isinstance(left, float | complex) and repr(left) != repr(right)):
            return True  # 0.0 equals -0.0
    return False


def _check_lines(lines: LineTable, result: str, touched: Iterable[TouchedLines]) -> bool:
    """Check that all lines that are not touched are still there, in their order; says whether a `#` may be gone."""
    free = _free_lines(lines, touched)
    rest = iter(LineTable(result).split())
    for number, line in enumerate(lines.split(), lines.first):
        if number not in free and not any(_is_same_line(line, other) for other in rest):
            raise EditError(f"line {number} would be changed, which the fix does not touch")
    return any("#" in lines.line(number) for number in free)


def _free_lines(lines: LineTable, touched: Iterable[TouchedLines]) -> set[int]:
    """The numbers of the lines that may change: those touched and the blank lines and comments at these."""
    free: set[int] = set()
    for lines_of_one in touched:
        first, last = lines_of_one.first, lines_of_one.last
        while first > lines.first and _is_padding(lines.line(first - 1)):
            first -= 1
        while last < lines.last and _belongs_above(lines.line(last + 1), lines_of_one.has_footer):
            last += 1
        free.update(range(first, last + 1))
    return free


def _belongs_above(line: str, has_footer: bool) -> bool:
    """Whether a line is blank, or a comment at the end of the block above."""
    return not line.strip() or (has_footer and _is_padding(line))


def _is_padding(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("#")


def _is_same_line(line: str, other: str) -> bool:
    """Whether two lines are equal; where one ends its text without a newline, the other's newline does not count."""
    if line.endswith(("\n", "\r")) and other.endswith(("\n", "\r")):
        return line == other
    return line.rstrip("\r\n") == other.rstrip("\r\n")


def _check_comments(text: str, result: str) -> None:
    lost = comments(text) - comments(result)
    if lost:
        raise EditError(f"the comment `{next(iter(lost))}` would be lost: put it on a line of its own")


def comments(text: str) -> Counter[str]:
    """The comments of a text, each with how often it is there. Raises EditError when there is no telling."""
    source = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    try:
        tokens = list(tokenize.generate_tokens(source.readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise EditError(f"the comments cannot be told from the code: {error}") from error
    return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)
