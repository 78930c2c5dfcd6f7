"""The shortest script from some lines to others (Myers, 1986): fast where many lines are the same and few changed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

MOST_CHANGES = 3_000
"""Lines taken away and put in, beyond which the script is given up: time and memory grow with their square."""

Lines = Sequence[str | bytes]
Block = tuple[str, int, int, int, int]


def shortest_script(old: Lines, new: Lines) -> list[Block] | None:
    """The changes as opcodes of `difflib`, equal blocks included; None when there are too many."""
    reached = _reach(old, new)
    if reached is None:
        return None
    blocks: list[Block] = []
    i = j = 0
    for i1, j1, length in [*reversed(list(_runs(reached, len(old), len(new)))), (len(old), len(new), 0)]:
        if i < i1 or j < j1:
            blocks.append((_tag(i1 - i, j1 - j), i, i1, j, j1))
        if length:
            blocks.append(("equal", i1, i1 + length, j1, j1 + length))
        i, j = i1 + length, j1 + length
    return blocks


def _tag(gone: int, come: int) -> str:
    return "insert" if not gone else "replace" if come else "delete"


def _reach(old: Lines, new: Lines) -> list[array[int]] | None:
    """For each number of changes, how far in `old` each diagonal is reached, until the ends are; -1 for outside."""
    reached: list[array[int]] = []
    for changes in range(MOST_CHANGES + 1):
        row = array("l")
        for at in range(changes + 1):
            i = _start(reached, changes, at)
            j = i - (2 * at - changes)
            if not (0 <= i <= len(old) and 0 <= j <= len(new)):
                row.append(-1)
                continue
            while i < len(old) and j < len(new) and old[i] == new[j]:
                i, j = i + 1, j + 1
            row.append(i)
            if i == len(old) and j == len(new):
                return [*reached, row]
        reached.append(row)
    return None


def _start(reached: Sequence[array[int]], changes: int, at: int) -> int:
    """Where a diagonal is entered: from the one above by a line put in, or from the one below by a line taken away."""
    if not changes:
        return 0
    row = reached[changes - 1]
    inserted = row[at] if at < changes else -1
    deleted = row[at - 1] + 1 if at > 0 and row[at - 1] >= 0 else -1
    return max(inserted, deleted)


def _runs(reached: Sequence[array[int]], i: int, j: int) -> Iterator[tuple[int, int, int]]:
    """The runs of equal lines, from the last to the first: where they start in both, and their length."""
    for changes in range(len(reached) - 1, -1, -1):
        at = (i - j + changes) // 2
        start = _start(reached, changes, at)
        if i > start:
            yield start, start - (i - j), i - start
        j = start - (i - j)
        i = start
        if changes:
            row = reached[changes - 1]
            if at < changes and row[at] == start:
                j -= 1
            else:
                i -= 1
