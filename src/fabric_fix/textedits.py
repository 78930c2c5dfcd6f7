"""A fix as changes of text, the way editors and ruff's JSON have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from fabric_fix.finding import Fix
from fabric_fix.tracking import changed_blocks, split_lines


@dataclass(frozen=True)
class TextEdit:
    """Replace what is between two places by `content`; rows and columns from 1, columns in characters."""

    content: str
    location: tuple[int, int]
    end_location: tuple[int, int]


def text_edits(text: str, fix: Fix) -> tuple[TextEdit, ...]:
    """What a fix alone would change in a text, whole lines at a time; nothing when it cannot be made."""
    new = _rewritten(text, fix)
    return tuple(_edits(split_lines(text), split_lines(new)))


def _rewritten(text: str, fix: Fix) -> str:
    """The text after a fix; a source that is nested deeply, as by a sum of thousands of terms, needs a deep stack."""
    from fabric_fix.edits.rewrite import rewrite

    try:
        return rewrite(text, [fix]).text
    except (RecursionError, MemoryError):
        from fabric_fix.deep import run_deep

    found: list[str] = []
    with suppress(RecursionError, MemoryError):
        run_deep(lambda: found.append(rewrite(text, [fix]).text))
    return found[0] if found else text


def _edits(old: list[str], new: list[str]) -> Iterator[TextEdit]:
    for tag, i1, i2, j1, j2 in changed_blocks(old, new):
        if tag != "equal":
            yield TextEdit("".join(new[j1:j2]), _start(old, i1), _start(old, i2))


def _start(lines: list[str], index: int) -> tuple[int, int]:
    """Where a line begins; behind a last line without newline, the end of that."""
    if index == len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
        return index, len(lines[-1]) + 1
    return index + 1, 1
