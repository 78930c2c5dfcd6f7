"""A file as bytes and as text, and the way from one to the other and back without losing anything."""

from __future__ import annotations

import codecs

from fabric_fix.problem import Problem
from fabric_fix.records import Record

_WIDE_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Source(Record):
    """A decoded file: `data` is `mark` followed by `text` in `encoding`, newlines untouched."""

    path: str
    data: bytes
    text: str
    encoding: str
    mark: bytes = b""
    """The byte order mark, or nothing."""

    def encode(self, text: str) -> bytes:
        """Another text in this file's encoding and behind its mark; UnicodeEncodeError where the codec lacks it."""
        return self.mark + text.encode(self.encoding)


def decode(path: str, data: bytes) -> Source | Problem:
    """Decode a file as Python does: by its mark, then its coding cookie, then as UTF-8; never by the locale.

    A file whose bytes do not fit its encoding, or whose bytes would not come back the same, is a problem with a place.
    """
    if data.startswith(_WIDE_MARKS):
        return Problem(path, "not Python source: it is encoded in UTF-16 or UTF-32", 1, 1)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(mark) :]
    if (null := body.find(b"\0")) >= 0:
        return _at(path, body, null, "not Python source: it holds a null byte")
    encoding = _declared_encoding(path, body, mark)
    if isinstance(encoding, Problem):
        return encoding
    return _decode_body(Source(path, data, "", encoding, mark), body)


def _declared_encoding(path: str, body: bytes, mark: bytes) -> str | Problem:
    """The codec's name by mark and cookie (PEP 263).

    `tokenize.detect_encoding` refuses a coding line that is itself not UTF-8, which Python runs; hence no use of it.
    """
    head = body[:4096].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", 2)[:2]
    if not any(b"coding" in line for line in head):
        return "utf-8"  # nearly every file: no regular expression is compiled for these
    row, name = _cookie(head)
    normal = name.lower().replace("_", "-")
    if not name or normal == "utf-8" or normal.startswith("utf-8-"):
        return "utf-8"
    try:
        codec = codecs.lookup(name)
    except LookupError:
        return Problem(path, f"unknown encoding in its coding line: {name}", row, 1)
    if mark and codec.name != "utf-8":
        return Problem(path, f"its coding line says {name}, its byte order mark says UTF-8", row, 1)
    return codec.name


def _cookie(head: list[bytes]) -> tuple[int, str]:
    """Line, from 1, and name of the coding cookie in the first two lines; the second counts behind a comment."""
    import re

    for row, line in enumerate(head, 1):
        if found := re.match(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", line):
            return row, found[1].decode("ascii")
        if not re.match(rb"[ \t\f]*(#|$)", line):
            break
    return 1, ""


def _decode_body(shell: Source, body: bytes) -> Source | Problem:
    try:
        text = body.decode(shell.encoding)
    except UnicodeDecodeError as error:
        message = f"cannot be decoded as {shell.encoding}: byte 0x{body[error.start]:02x} ({error.reason})"
        return _at(shell.path, body, error.start, message)
    except (LookupError, ValueError) as error:  # a codec that is no text encoding, such as `hex`
        return Problem(shell.path, f"cannot be decoded as {shell.encoding}: {error}", 1, 1)
    decoded = Source(shell.path, shell.data, text, shell.encoding, shell.mark)
    if not _comes_back(decoded):
        return Problem(shell.path, f"its bytes do not survive decoding as {shell.encoding}", 1, 1)
    return decoded


def _comes_back(source: Source) -> bool:
    """Whether encoding the text gives the very bytes; stateful codecs can spell one text in several ways."""
    if source.encoding == "utf-8":
        return True  # strict UTF-8 has one spelling for each text
    try:
        return source.encode(source.text) == source.data
    except UnicodeEncodeError:
        return False


def _at(path: str, body: bytes, offset: int, message: str) -> Problem:
    """A problem at a byte: its line by any newline, its column in characters as far as these can be told."""
    before = body[:offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    line_start = before.rfind(b"\n") + 1
    column = len(before[line_start:].decode("utf-8", "replace")) + 1
    return Problem(path, message, before.count(b"\n") + 1, column)
