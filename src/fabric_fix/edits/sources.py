"""A text that edits are made in: as a whole when it is small, else in the parts that the edits touch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from fabric_fix.edits.conflicts import check_conflicts
from fabric_fix.edits.feeds import Feeds, keep_feeds, put_back
from fabric_fix.edits.imports import place_imports
from fabric_fix.edits.lines import LineTable, without_last_newline
from fabric_fix.edits.model import Edit, EditError
from fabric_fix.edits.parts import LARGE, Part, Parts
from fabric_fix.edits.plan import touched_lines
from fabric_fix.edits.tree import apply_to_tree
from fabric_fix.edits.verify import check_compiles, check_result, parse

if TYPE_CHECKING:
    from fabric_fix.edits.locate import Located

_MOST_TERMS = 500
"""Of one `and` or `or`; with more, LibCST's walks, which are recursive, end in a RecursionError anyway."""


class Source(Protocol):
    """A text that edits can be made in."""

    text: str
    tree: ast.Module

    def result(self, edits: Sequence[Edit]) -> str:
        """The text with edits made and proved right. Raises EditError with the reason when it cannot be."""


@lru_cache(maxsize=1)
def source_of(text: str) -> Source:
    """A text as edits are made in it; the last one is kept. Raises EditError when it cannot be edited."""
    tree = _parse_ast(text)
    lines = LineTable(text).split()
    return Large(text, tree, lines) if len(lines) > LARGE or len(text) > 40 * LARGE else Whole(text)


class Whole:
    """A text that is read with LibCST as it is. Raises EditError for one that LibCST does not write back."""

    def __init__(self, text: str, first: int = 1) -> None:
        self.text = text
        self.first = first
        self.tree = self._parsed()
        _check_depth(self.tree, text)
        self.located = _parse_cst(text, first)

    def _parsed(self) -> ast.Module:
        """A fresh tree, whose lines are numbered from `first`."""
        tree = _parse_ast(self.text)
        return tree if self.first == 1 else _renumbered(tree, self.first - 1)

    def result(self, edits: Sequence[Edit]) -> str:
        """The text with edits made and proved right. Raises EditError with the reason when it cannot be."""
        try:
            return self._result(edits)
        except RecursionError as error:
            raise EditError("the file is too deeply nested to be edited") from error
        except EditError:
            raise
        except Exception as error:  # LibCST's validation raises many kinds, and one fix must not cost the others
            raise EditError(f"the edit cannot be made: {type(error).__name__}: {error}") from error

    def _result(self, edits: Sequence[Edit]) -> str:
        from fabric_fix.edits.transform import transform

        lines = LineTable(self.text, self.first)
        placed = place_imports(self.tree, edits, lines)
        expected = apply_to_tree(self._parsed(), placed)
        result = self._with_last_newline(put_back(transform(self.located, placed)))
        check_result(lines, result, expected, touched_lines(self.tree, placed, lines))
        return result

    def _with_last_newline(self, result: str) -> str:
        """A result that ends as the text does: in a newline, or not."""
        if self.text == _completed(self.text):
            return result
        return result + "\r" if self.text.endswith("\r") else without_last_newline(result)


class Large:
    """A text of which only the parts are read with LibCST that edits touch."""

    def __init__(self, text: str, tree: ast.Module, lines: list[str]) -> None:
        self.text = text
        self.tree = tree
        self._lines = lines
        self._parts = Parts(tree, lines)
        self._read: dict[Part, str] = {}

    def result(self, edits: Sequence[Edit]) -> str:
        """The text with edits made and proved right. Raises EditError with the reason when it cannot be."""
        placed = place_imports(self.tree, edits, LineTable(self.text))
        check_conflicts(placed)
        pieces: list[str] = []
        done = 0
        for part in self._parts.of(placed):
            pieces += [*self._lines[done : part.first - 1], self._result(part)]
            done = part.last
        result = "".join([*pieces, *self._lines[done:]])
        check_compiles(self.text, result)
        return result

    def _result(self, part: Part) -> str:
        """A part with its edits made. Another try of other fixes leaves most parts as they were: they are kept."""
        known = self._read.get(part)
        if known is not None:
            return known
        own = "".join(self._lines[part.first - 1 : part.last])
        new = Whole(part.above + own + part.below, part.first_number).result(part.edits)
        if not (new.startswith(part.above) and new.endswith(part.below)):
            raise EditError("the edit would change the statements around it")
        new = new[len(part.above) : len(new) - len(part.below)]
        if part.last < len(self._lines) and not new.endswith(("\n", "\r")):
            raise EditError("the edit would join two lines")
        self._read[part] = new
        return new


def _renumbered(tree: ast.Module, offset: int) -> ast.Module:
    for node in ast.walk(tree):
        if "lineno" in node._attributes:
            node.lineno += offset  # type: ignore[attr-defined]
            node.end_lineno += offset  # type: ignore[attr-defined]
    return tree


def _parse_ast(text: str) -> ast.Module:
    try:
        return parse(text)
    except (SyntaxError, ValueError) as error:
        raise EditError(f"the file is no Python: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise EditError("the file is too deeply nested to be edited") from error


def _check_depth(tree: ast.Module, text: str) -> None:
    """Refuse what `ast` holds as one list and LibCST's parser as one level a term: its stack would overflow."""
    if text.count("and") + text.count("or") < _MOST_TERMS:
        return
    if any(isinstance(node, ast.BoolOp) and len(node.values) >= _MOST_TERMS for node in ast.walk(tree)):
        raise EditError("the file is too deeply nested to be edited")


def _parse_cst(text: str, first: int) -> Located:
    """What LibCST reads; form feeds that it drops are kept away from it, as is a lone CR at the end."""
    complete = _completed(text)
    located = _read_cst(complete, first)
    if located.code == complete:
        return located
    kept = keep_feeds(LineTable(complete).split(), LineTable(located.code).split(), first)
    if kept is not None:
        without = _read_cst(kept[0], first, kept[1])
        if without.code == kept[0] and put_back(without.code) == complete:
            return without
    line = _first_difference(complete, located) + first - 1
    raise EditError(f"LibCST, which edits the file, would change line {line}; write that line in the usual way")


def _read_cst(text: str, first: int, feeds: Feeds | None = None) -> Located:
    import libcst

    from fabric_fix.edits.locate import Located

    try:
        return Located(libcst.parse_module(text), text, first, feeds)
    except libcst.ParserSyntaxError as error:
        raise EditError("LibCST cannot parse the file, though Python can") from error
    except RecursionError as error:
        raise EditError("the file is too deeply nested to be edited") from error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native parser is a BaseException
        raise EditError(f"LibCST cannot parse the file: {type(error).__name__}: {error}") from error


def _first_difference(text: str, located: Located) -> int:
    """The first line, from 1, that LibCST would change."""
    pairs = zip(LineTable(text).split(), LineTable(located.code).split(), strict=False)
    return next((number for number, (line, other) in enumerate(pairs, 1) if line != other), 1)


def _completed(text: str) -> str:
    """The text that LibCST is given: one that ends in a newline, but never in a CR alone, which LibCST drops."""
    if text.endswith("\r"):
        return text[:-1]
    newline = LineTable(text).newline_at(len(text))
    return text if text.endswith("\n") or newline == "\r" else text + newline
