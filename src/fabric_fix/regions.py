"""Which lines a fix touches, so that each hunk of a patch can name the fixes that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabric_fix.edits.model import AddImport, Edit
from fabric_fix.finding import Fix, Span


def regions_of(fix: Fix) -> tuple[tuple[int, int], ...]:
    """First and last line (from 1, in the analysed text) of each place that an edit of the fix names."""
    return tuple(dict.fromkeys((span.line, span.end_line) for edit in fix.edits for span in _spans(edit)))


def imports_of(fix: Fix) -> tuple[str, ...]:
    """The names that the fix imports: their place is chosen while rewriting, so they are known by their words only."""
    return tuple(edit.name for edit in fix.edits if isinstance(edit, AddImport))


def _spans(edit: Edit) -> Iterator[Span]:
    return (value for value in vars(edit).values() if isinstance(value, Span))


def touches(regions: Iterable[tuple[int, int]], first: int, last: int) -> bool:
    """Whether a change of the lines `first` to `last` is at, or directly beside, one of the regions."""
    return any(start - 1 <= last and first <= end + 1 for start, end in regions)
