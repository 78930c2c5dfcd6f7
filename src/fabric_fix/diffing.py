"""The patch of a file: bytes that `git apply` and `patch -p1` turn into the very bytes that a run in place writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from fabric_fix.engine import FileResult, MadeFix
from fabric_fix.folders import is_below
from fabric_fix.regions import touches
from fabric_fix.tracking import Block, changed_blocks

CONTEXT = 3
"""Unchanged lines around a change, as git and diff have them."""

Label = Callable[[Sequence[Block]], str]
"""Names a hunk, by its changed blocks."""


def patch_of(result: FileResult, number_from: int = 0, base: str = os.curdir) -> bytes:
    """The patch of one file, empty when nothing changes; fixes are numbered on from `number_from`.

    File names are relative to `base`: `git apply` takes them so, when it is run there.
    """
    if result.new == result.original:
        return b""
    name = os.path.relpath(result.real, base)
    return unified(name, result.original, result.new, _labels(result, number_from))


def base_of(paths: Sequence[str]) -> str:
    """The folder that a patch of files, by their real paths, is for: `git apply` takes no name with `..` in it.

    It is the working directory where all of them are inside, else the root of its repository, else a folder above all.
    """
    from fabric_fix.ignoring import repository_root

    here = os.getcwd()
    for folder in (here, repository_root(here)):
        if folder is not None and all(is_below(path, folder) for path in paths):
            return folder
    return os.path.commonpath([os.path.dirname(path) for path in paths])


def unified(name: str, old: bytes, new: bytes, label: Label) -> bytes:
    r"""A unified diff without timestamps; lines end at `\n` only, whatever else a line holds."""
    before, after = _lines(old), _lines(new)
    parts = [b"--- " + _quoted("a/" + name) + b"\n", b"+++ " + _quoted("b/" + name) + b"\n"]
    for hunk in _hunks(changed_blocks(before, after)):
        parts.append(_header(hunk, label([block for block in hunk if block[0] != "equal"])))
        parts += _body(hunk, before, after)
    return b"".join(parts)


def _lines(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + [data[data.rfind(b"\n") + 1 :]] * (
        data[-1:] not in (b"", b"\n")
    )


def _hunks(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Changes with their context; two that are no further apart than their contexts reach are one hunk."""
    hunk: list[Block] = []
    for tag, i1, i2, j1, j2 in blocks:
        if tag != "equal":
            hunk.append((tag, i1, i2, j1, j2))
        elif not hunk:
            hunk = [(tag, max(i1, i2 - CONTEXT), i2, max(j1, j2 - CONTEXT), j2)]
        elif i2 - i1 <= 2 * CONTEXT:
            hunk.append((tag, i1, i2, j1, j2))
        else:
            yield [*hunk, (tag, i1, i1 + CONTEXT, j1, j1 + CONTEXT)]
            hunk = [(tag, i2 - CONTEXT, i2, j2 - CONTEXT, j2)]
    if any(tag != "equal" for tag, *_ in hunk):
        yield _cut_end(hunk)


def _cut_end(hunk: list[Block]) -> list[Block]:
    tag, i1, i2, j1, j2 = hunk[-1]
    if tag == "equal":
        return [*hunk[:-1], (tag, i1, min(i2, i1 + CONTEXT), j1, min(j2, j1 + CONTEXT))]
    return hunk


def _header(hunk: Sequence[Block], label: str) -> bytes:
    old = _range(hunk[0][1], hunk[-1][2])
    new = _range(hunk[0][3], hunk[-1][4])
    return f"@@ -{old} +{new} @@ {label}".rstrip().encode() + b"\n"


def _range(start: int, end: int) -> str:
    """First line and length; an empty range is named by the line before it, and a length of 1 is left out."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _body(hunk: Sequence[Block], before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[bytes]:
    for tag, i1, i2, j1, j2 in hunk:
        if tag == "equal":
            yield from (_marked(b" ", line) for line in before[i1:i2])
        else:
            yield from (_marked(b"-", line) for line in before[i1:i2])
            yield from (_marked(b"+", line) for line in after[j1:j2])


def _marked(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def _quoted(name: str) -> bytes:
    """A file name as git writes it: in C's quotes when it holds a quote, a control or a byte beyond ASCII."""
    raw = os.fsencode(name.replace(os.sep, "/"))
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
        return raw + b"\t" * (b" " in raw)  # the tab ends a name that holds blanks
    return b'"' + b"".join(_escaped(byte) for byte in raw) + b'"'


def _escaped(byte: int) -> bytes:
    short = {0x07: b"\\a", 0x08: b"\\b", 0x09: b"\\t", 0x0A: b"\\n", 0x0B: b"\\v", 0x0C: b"\\f", 0x0D: b"\\r"}
    if byte in short:
        return short[byte]
    if byte in b'"\\':
        return b"\\" + bytes([byte])
    return bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte


def _labels(result: FileResult, number_from: int) -> Label:
    """Names each hunk of a file by the fixes whose lines it holds: `FF101 fix 1, FF301 fix 2`."""
    physical = _physical_lines(result.text)
    added = result.new.split(b"\n")

    def label(changes: Sequence[Block]) -> str:
        made = [fix for fix in result.fixes if _is_in(fix, changes, physical, added)]
        return ", ".join(f"{fix.code} fix {number_from + fix.number}" for fix in made or result.fixes)

    return label


def _is_in(fix: MadeFix, changes: Sequence[Block], physical: Sequence[int], added: Sequence[bytes]) -> bool:
    last = len(physical) - 1
    regions = [(physical[min(first, last)], physical[min(end, last)]) for first, end in fix.regions]
    return any(
        touches(regions, i1 + 1, max(i2, i1 + 1)) or _imports(fix, added[j1:j2]) for _, i1, i2, j1, j2 in changes
    )


def _imports(fix: MadeFix, added: Sequence[bytes]) -> bool:
    """Whether lines import a name that the fix needs; only the rewriter knows where it put the import."""
    lines = [line for line in added if b"import" in line]
    return any(name.encode() in line for name in fix.imports for line in lines)


def _physical_lines(text: str) -> list[int]:
    r"""For each line as `ast` counts them, from 1, the line that `\n` alone gives; they differ after a lone CR."""
    from fabric_fix.tracking import split_lines

    numbers, current = [1], 1
    for line in split_lines(text):
        numbers.append(current)
        current += line.endswith("\n")
    return numbers
