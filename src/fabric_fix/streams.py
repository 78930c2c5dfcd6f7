"""The standard streams: bytes out as they are, messages that any terminal can show, and what to do when one is gone."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys

BROKEN_PIPE = 141
"""Exit status when the reader of the output has gone, as `| head -1` does: that of a program which SIGPIPE ends, `git`
for one. ruff says 0 and black 1, which here mean "nothing found" and "something found"; nobody knows which it is."""

_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


def emit(data: bytes) -> None:
    """Bytes to standard output. Raises OSError when it is closed or full."""
    if not data:
        return
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(line: str) -> None:
    """A line for humans; what the terminal cannot show, a name in another encoding for one, is escaped."""
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(one_line(line).encode(encoding, "backslashreplace").decode(encoding) + "\n")


def one_line(text: str) -> str:
    """A text, a file's name for one, with its newlines and other controls (but for tabs) as escapes."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def read_input() -> bytes:
    """All of standard input. Raises OSError when it is closed or cannot be read."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer.read()


def give_up() -> None:
    """Send what is still to be written to nowhere, so that the end of the process does not fail over it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
