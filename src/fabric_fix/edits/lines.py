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
    """Where each line of a text starts; only LF, CR and CRLF end a line (a form feed does not)."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = [match.span() for match in _NEWLINE.finditer(text)]
        self.starts = [0, *(end for _, end in ends)]
        self._newlines = [text[start:end] for start, end in ends]

    def offset(self, line: int, column: int) -> int:
        """The offset in characters of a line (from 1) and a column (in UTF-8 bytes, from 0)."""
        start = self.starts[line - 1]
        piece = self.text[start : start + column]
        if piece.isascii():
            return start + column
        return start + len(piece.encode()[:column].decode(errors="ignore"))

    def line_of(self, offset: int) -> int:
        """The line (from 1) that an offset lies in."""
        return bisect_right(self.starts, offset)

    def newline_at(self, offset: int) -> str:
        """The newline that ends the line of an offset; that of a line above for a last line without one."""
        index = min(self.line_of(offset), len(self._newlines)) - 1
        return self._newlines[index] if self._newlines else "\n"

    def split(self) -> list[str]:
        """The lines with their newlines; nothing for an empty text."""
        bounds = [*self.starts, len(self.text)]
        lines = [self.text[start:end] for start, end in pairwise(bounds)]
        return lines if lines[-1] else lines[:-1]
