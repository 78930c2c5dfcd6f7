"""Form feeds before code, which LibCST drops: they are kept on lines of their own while it has the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

_SIGN = "\f\t \f\f \t\f"
"""What a line with kept blanks begins with: blanks, which LibCST keeps on a line of its own."""
_KEPT = re.compile(re.escape(_SIGN) + r"([ \t\f]*)(?:\r\n|\r|\n)")


class Feeds:
    """The blanks that are kept: for the number of each line that has some, how many stood before its code."""

    def __init__(self, widths: Mapping[int, int]) -> None:
        self._widths = widths
        self._numbers = sorted(widths)

    def moved(self, position: tuple[int, int]) -> tuple[int, int]:
        """Where a line and a column of the original are in the text with the blanks on their own lines."""
        line, column = position
        return line + bisect_right(self._numbers, line), max(column - self._widths.get(line, 0), 0)


def keep_feeds(lines: Sequence[str], written: Sequence[str], first: int) -> tuple[str, Feeds] | None:
    """A text with the blanks on lines of their own that LibCST leaves out when it writes the text.

    None when it writes anything else differently. `first` is the number of the first line.
    """
    if len(lines) != len(written) or any(_SIGN in line for line in lines):
        return None
    kept: list[str] = []
    widths: dict[int, int] = {}
    for number, (line, other) in enumerate(zip(lines, written, strict=True), first):
        if line != other:
            lost = line[: len(line) - len(other)]
            if not other or lost + other != line or "\f" not in lost or lost.strip(" \t\f"):
                return None
            widths[number] = len(lost)
            kept.append(_SIGN + lost + other[len(other.rstrip("\r\n")) :])
        kept.append(other)
    return "".join(kept), Feeds(widths)


def put_back(text: str) -> str:
    """A text with the kept blanks before the code below them again."""
    return _KEPT.sub(r"\1", text)
