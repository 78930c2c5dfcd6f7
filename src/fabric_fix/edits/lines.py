"""A text's lines as Python counts them, and offsets in characters from the columns of `ast`, which are in bytes."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

_NEWLINE = re.compile(r"\r\n|\r|\n")


def is_continued(line: str) -> bool:
    """Whether a line (with its newline) ends in a backslash, so that the next one belongs to it."""
    return line.rstrip("\r\n").endswith("\\")


def without_last_newline(text: str) -> str:
    """A text without the newline at its end, if there is one."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith(("\r", "\n")) else text


class LineTable:
    """Where each line of a text starts; only LF, CR and CRLF end a line (a form feed does not).

    `first` is the number of the first line: that of a part of a larger text is not 1.
    """

    def __init__(self, text: str, first: int = 1) -> None:
        self.text = text
        self.first = first
        self.starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        self._is_ascii = text.isascii()
        if self.starts[-1] == len(text):
            self._count = len(self.starts) - 1
        else:
            self._count = len(self.starts)

    @property
    def last(self) -> int:
        """The number of the last line; one less than that of the first for an empty text."""
        return self.first + self._count - 1

    def line(self, number: int) -> str:
        """A line with its newline."""
        at = number - self.first
        return self.text[self.starts[at] : self.starts[at + 1] if at + 1 < len(self.starts) else None]

    def offset(self, line: int, column: int) -> int:
        """The offset in characters of a line and a column (in UTF-8 bytes, from 0)."""
        start = self.starts[line - self.first]
        if self._is_ascii:
            return start + column
        piece = self.text[start : start + column]
        return start + len(piece.encode()[:column].decode(errors="ignore"))

    def newline_at(self, offset: int) -> str:
        """The newline that ends the line of an offset; that of the line above for a last line without one."""
        at = min(bisect_right(self.starts, offset), len(self.starts) - 1)
        if not at:
            return "\n"
        end = self.starts[at]
        return "\r\n" if self.text[max(end - 2, 0) : end] == "\r\n" else self.text[end - 1]

    def split(self) -> list[str]:
        """The lines with their newlines; nothing for an empty text."""
        bounds = [*self.starts, len(self.text)]
        return [self.text[start:end] for start, end in pairwise(bounds)][: self._count]
