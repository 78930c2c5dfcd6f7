"""Lines that are there once in an old and in a new text, in the same order: between them, texts are compared apart."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

Lines = Sequence[str | bytes]


def anchors(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """The longest series of such lines that rises in both, as pairs of indices."""
    places = _unique(new)
    pairs = [(at, places[line]) for line, at in _unique(old).items() if line in places]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):  # patience sorting: the least end of a series of each length
        at = bisect_left(ends, place)
        before.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [place]
        last[at : at + 1] = [number]
    return list(_series(pairs, before, last[-1] if last else -1))[::-1]


def _series(pairs: Sequence[tuple[int, int]], before: Sequence[int], number: int) -> Iterator[tuple[int, int]]:
    while number >= 0:
        yield pairs[number]
        number = before[number]


def _unique(lines: Lines) -> dict[str | bytes, int]:
    """The lines that are there once, with their indices, in order."""
    counts: dict[str | bytes, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    return {line: at for at, line in enumerate(lines) if counts[line] == 1}
