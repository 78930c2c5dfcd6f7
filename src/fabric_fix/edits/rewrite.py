"""Making fixes in a text: plan, one pass over one LibCST tree, and proof of the result."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric_fix.edits.imports import place_imports
from fabric_fix.edits.lines import LineTable, without_last_newline
from fabric_fix.edits.model import Edit, EditError
from fabric_fix.edits.plan import Region, regions_of, touched_lines, touches
from fabric_fix.edits.tree import apply_to_tree
from fabric_fix.edits.verify import check_result, parse
from fabric_fix.finding import Fix

if TYPE_CHECKING:
    from fabric_fix.edits.locate import Located

_MOST_TERMS = 500
"""Of one `and` or `or`; with more, LibCST's walks, which are recursive, end in a RecursionError anyway."""


@dataclass(frozen=True)
class Rewritten:
    """A text after its fixes, and what became of each of them."""

    text: str
    applied: tuple[Fix, ...]
    waiting: tuple[Fix, ...]
    """These touch an applied (or failed) one, and are to be looked for again in the new text."""
    failed: tuple[tuple[Fix, str], ...]
    """These cannot be made, with the reason."""


def rewrite(text: str, fixes: Sequence[Fix]) -> Rewritten:
    """Make fixes in a text (newlines as in the file, no byte order mark), earlier ones before later ones.

    Never raises for what is in the text or in the fixes: a fix that cannot be made, or whose result cannot be
    proved right, is in `failed` with its reason, and the others stand.
    """
    try:
        source = _Source(text)
    except EditError as error:
        return Rewritten(text, (), (), tuple((fix, str(error)) for fix in fixes))
    return _Session(source).run(fixes)


class _Source:
    """A text that LibCST writes back as it is. Raises EditError for one that it does not."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = _parse_ast(text)
        _check_depth(self.tree, text)
        self.located = _parse_cst(text)

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

        lines = LineTable(self.text).split()
        placed = place_imports(self.tree, edits, lines)
        expected = apply_to_tree(parse(self.text), placed)
        result = transform(self.located, placed)
        result = self._with_last_newline(result)
        check_result(self.text, result, expected, touched_lines(self.tree, placed, lines))
        return result

    def _with_last_newline(self, result: str) -> str:
        """A result that ends as the text does: in a newline, or not."""
        if self.text == self.located.lines.text:
            return result
        return result + "\r" if self.text.endswith("\r") else without_last_newline(result)


class _Session:
    """One call of `rewrite`: what was decided about each fix so far."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.text = source.text
        self.chosen: list[Fix] = []
        self.made: list[Fix] = []
        self.waiting: list[Fix] = []
        self.failed: list[tuple[Fix, str]] = []

    def run(self, fixes: Sequence[Fix]) -> Rewritten:
        self._choose(fixes)
        self._make(self.chosen)
        return Rewritten(self.text, tuple(self.made), tuple(self.waiting), tuple(self.failed))

    def _choose(self, fixes: Sequence[Fix]) -> None:
        taken: list[Region] = []
        for fix in fixes:
            try:
                regions = regions_of(self.source.tree, fix)
            except EditError as error:
                self.failed.append((fix, str(error)))
                continue
            if touches(regions, taken):
                self.waiting.append(fix)
            else:
                self.chosen.append(fix)
                taken.extend(regions)

    def _make(self, fixes: Sequence[Fix]) -> None:
        """Make fixes beside those made so far: all at once, or, where that fails, each half by itself."""
        edits = [edit for fix in (*self.made, *fixes) for edit in fix.edits]
        try:
            self.text = self.source.result(edits) if edits else self.source.text
        except EditError as error:
            if len(fixes) == 1:
                self.failed.append((fixes[0], str(error)))
                return
            middle = len(fixes) // 2
            self._make(fixes[:middle])
            self._make(fixes[middle:])
        else:
            self.made.extend(fixes)


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


def _parse_cst(text: str) -> Located:
    import libcst

    from fabric_fix.edits.locate import Located

    complete = _completed(text)
    try:
        located = Located(libcst.parse_module(complete), complete)
    except libcst.ParserSyntaxError as error:
        raise EditError("LibCST cannot parse the file, though Python can") from error
    except RecursionError as error:
        raise EditError("the file is too deeply nested to be edited") from error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native parser is a BaseException
        raise EditError(f"LibCST cannot parse the file: {type(error).__name__}: {error}") from error
    if located.code != complete:
        raise EditError(f"LibCST does not write the file back as it is (line {_first_difference(complete, located)})")
    return located


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
