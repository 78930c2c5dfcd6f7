"""Proof that a rewritten text is the original with the edits made, and nothing else."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
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


def check_result(text: str, result: str, expected: ast.Module, touched: Iterable[TouchedLines]) -> None:
    """Raise EditError unless the result means what it must, keeps all comments and all lines that are not touched."""
    _check_meaning(text, result, expected)
    changed = _check_lines(text, result, touched)
    if changed:
        _check_comments(text, result)


def _check_meaning(text: str, result: str, expected: ast.Module) -> None:
    try:
        tree = parse(result)
    except (SyntaxError, ValueError) as error:
        raise EditError(f"the result would be no Python: {error}") from error
    if ast.dump(tree) != ast.dump(expected):
        raise EditError("the result would mean something else than the fix")
    if not compiles(result) and compiles(text):
        raise EditError("the result would not compile")


def _check_lines(text: str, result: str, touched: Iterable[TouchedLines]) -> bool:
    """Check that all lines that are not touched are still there, in their order; says whether a `#` may be gone."""
    lines = LineTable(text).split()
    fixed = _fixed_lines(lines, touched)
    rest = iter(LineTable(result).split())
    for number in fixed:
        line = lines[number - 1]
        if not any(_is_same_line(line, other) for other in rest):
            raise EditError(f"line {number} would be changed, which the fix does not touch")
    return any("#" in line for number, line in enumerate(lines, 1) if number not in fixed)


def _fixed_lines(lines: Sequence[str], touched: Iterable[TouchedLines]) -> dict[int, None]:
    """The numbers of the lines that must stay: all but those touched and the blank lines and comments at these."""
    free: set[int] = set()
    for lines_of_one in touched:
        first, last = lines_of_one.first, lines_of_one.last
        while first > 1 and _is_padding(lines[first - 2]):
            first -= 1
        while last < len(lines) and _belongs_above(lines, last, lines_of_one.has_footer):
            last += 1
        free.update(range(first, last + 1))
    return dict.fromkeys(number for number in range(1, len(lines) + 1) if number not in free)


def _belongs_above(lines: Sequence[str], index: int, has_footer: bool) -> bool:
    """Whether a line is blank, or a comment at the end of the block above."""
    line = lines[index]
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
        raise EditError(f"a comment would be lost: {next(iter(lost))}")


def comments(text: str) -> Counter[str]:
    """The comments of a text, each with how often it is there. Raises EditError when there is no telling."""
    source = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    try:
        tokens = list(tokenize.generate_tokens(source.readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise EditError(f"the comments cannot be told from the code: {error}") from error
    return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)
