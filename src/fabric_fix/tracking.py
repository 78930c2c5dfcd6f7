"""Following lines and findings from one text of a file to the next: which are the same, gone, or new."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from fabric_fix.finding import Finding, Fix
from fabric_fix.records import replace

Block: TypeAlias = "tuple[str, int, int, int, int]"
"""What `SequenceMatcher` calls an opcode: tag, then the old and the new range of lines, from 0."""

QUADRATIC = 1_000_000
"""Pairs of lines beyond which they are not all compared."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_NAMED_LINE = re.compile(r"`[^`]*`|(?<!, )\bline (\d+)\b(?! of )")
"""A line that a message names, but for those of other files: `line 3 of steps.py`, `in train.sh, line 3`."""


def split_lines(text: str) -> list[str]:
    """The lines of a text as `ast` counts them, newlines kept: form feeds and U+2028 end none."""
    return _LINE.findall(text)


def changed_blocks(old: Sequence[str | bytes], new: Sequence[str | bytes]) -> list[Block]:
    """How lines became other lines, equal blocks included; equal ends are cut off first."""
    limit = min(len(old), len(new))
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    tail = next((i for i in range(limit - head) if old[-1 - i] != new[-1 - i]), limit - head)
    inner = _blocks(old[head : len(old) - tail], new[head : len(new) - tail])
    middle = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in inner]
    first: list[Block] = [("equal", 0, head, 0, head)] if head else []
    last: list[Block] = [("equal", len(old) - tail, len(old), len(new) - tail, len(new))] if tail else []
    return _merge_equal([*first, *middle, *last])


def _blocks(old: Sequence[str | bytes], new: Sequence[str | bytes]) -> list[Block]:
    """The blocks by the matcher of the standard library.

    Where that would take minutes, it is between the lines that are there once, or by the shortest script.
    """
    if len(old) * len(new) > QUADRATIC:
        from fabric_fix.anchors import anchors
        from fabric_fix.shortest import shortest_script

        if apart := anchors(old, new):
            return list(_between(old, new, apart))
        if (found := shortest_script(old, new)) is not None:
            return found
    from difflib import SequenceMatcher

    return list[Block](SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _between(
    old: Sequence[str | bytes], new: Sequence[str | bytes], apart: Sequence[tuple[int, int]]
) -> Iterator[Block]:
    i = j = 0
    for i2, j2 in (*apart, (len(old), len(new))):
        for tag, i3, i4, j3, j4 in _blocks(old[i:i2], new[j:j2]) if i < i2 or j < j2 else ():
            yield tag, i + i3, i + i4, j + j3, j + j4
        if i2 < len(old):
            yield "equal", i2, i2 + 1, j2, j2 + 1
        i, j = i2 + 1, j2 + 1


def _merge_equal(blocks: list[Block]) -> list[Block]:
    merged: list[Block] = []
    for block in blocks:
        if merged and merged[-1][0] == block[0] == "equal":
            block = ("equal", merged[-1][1], block[2], merged.pop()[3], block[4])
        merged.append(block)
    return merged


class LineMap:
    """Where the lines (from 1) of a text come from in an older one."""

    def __init__(self, old: str, new: str) -> None:
        self._blocks = changed_blocks(split_lines(old), split_lines(new))
        self._old_ends = [block[2] for block in self._blocks]
        self._new_ends = [block[4] for block in self._blocks]

    def origin(self, line: int) -> tuple[int, bool]:
        """The old line of a new one, and whether it is the very same line; else the one it replaced, or stands before.

        That is the first of a block that another number of lines replaced, and the last line for what was added there.
        """
        at = bisect_left(self._new_ends, line)
        if at == len(self._blocks) or line < 1:
            return line, False
        tag, i1, i2, j1, j2 = self._blocks[at]
        offset = line - j1 if i2 - i1 == j2 - j1 else 1
        return (i1 + offset, True) if tag == "equal" else (max(min(i1 + offset, self._old_ends[-1]), 1), False)

    def old_line(self, line: int) -> int:
        """The old line of a new one."""
        return self.origin(line)[0]

    def was_changed(self, old_line: int) -> bool:
        """Whether an old line is gone or replaced."""
        at = bisect_left(self._old_ends, old_line)
        return old_line > 0 and at < len(self._blocks) and self._blocks[at][0] != "equal"


class Tracked:
    """A finding on its way through the rounds."""

    def __init__(self, first: Finding, later: bool, now: Finding | None) -> None:
        self.first = first
        """As first seen, its span moved to the lines of the original file."""
        self.later = later
        """Whether only a fix uncovered it."""
        self.now = now
        """As seen in the current text; None when it is gone."""
        self.number: int | None = None
        """Number of its fix within the file, from 1, once that is made."""
        self.made: Fix | None = None
        """The fix that was made."""
        self.refusal: str | None = None
        """Why its fix could not be made, in the lines of the original file."""


def survivors(
    applied: Sequence[Tracked], others: Sequence[Tracked], found: Sequence[Finding], lines: LineMap
) -> list[Tracked]:
    """Which of the findings whose fix was applied are still found in the new text.

    `others` are the remaining ones: each of them accounts for one finding of its kind in a changed place.
    """
    alive = []
    for kind in sorted({_kind(tracked) for tracked in applied}):
        same = [finding for finding in found if _kind_of(finding) == kind]
        fixed = [tracked for tracked in applied if _kind(tracked) == kind]
        spare = [tracked for tracked in others if _kind(tracked) == kind]
        alive += _still_there(fixed, spare, same, lines)
    return alive


def _kind(tracked: Tracked) -> tuple[str, str]:
    assert tracked.now is not None
    return _kind_of(tracked.now)


def _kind_of(finding: Finding) -> tuple[str, str]:
    """Code and message, whatever the lines are that the message names: a fix above them moves them."""
    return finding.code, with_lines(finding.message, lambda _: 0)


def _still_there(fixed: list[Tracked], spare: list[Tracked], found: Sequence[Finding], lines: LineMap) -> list[Tracked]:
    alive, unplaced = [], 0
    for finding in found:
        line, is_same = lines.origin(finding.span.line)
        if is_same:
            alive += [t for t in fixed if t.now and t.now.span.line == line and not _any_on(spare, line)][:1]
        else:
            unplaced += 1
    unplaced -= sum(1 for t in spare if t.now and lines.was_changed(t.now.span.line))
    touched = [t for t in fixed if t.now and lines.was_changed(t.now.span.line) and t not in alive]
    return alive + touched[: max(unplaced, 0)]


def _any_on(tracked: Sequence[Tracked], line: int) -> bool:
    return any(one.now is not None and one.now.span.line == line for one in tracked)


def carry_over(live: Sequence[Tracked], found: Sequence[Finding], lines: LineMap, origin: LineMap) -> list[Tracked]:
    """What is live after a round: those that are found again, then those that are new.

    `lines` leads to the text before the round, `origin` to the original file. The ones of `live` that are not found
    again get `now = None`.
    """
    missing, fresh = list(live), list[Tracked]()
    for finding in found:
        known = _same(missing, finding, lines)
        if known is None:
            fresh.append(Tracked(_moved(finding, origin), later=True, now=finding))
        else:
            missing.remove(known)
            known.now = finding
    for tracked in missing:
        tracked.now = None
    return [tracked for tracked in live if tracked.now is not None] + fresh


def _same(missing: Sequence[Tracked], finding: Finding, lines: LineMap) -> Tracked | None:
    """The finding that this one was before the round: of its code, on its line, or moved with its words unchanged.

    Of several such that have moved it is the nearest: others may be gone.
    """
    line, is_same = lines.origin(finding.span.line)
    ours = [tracked for tracked in missing if tracked.now is not None and tracked.now.code == finding.code]
    if is_same:
        return next((t for t in ours if t.now is not None and t.now.span.line == line), None)
    moved = ((t, t.now.span.line) for t in ours if t.now is not None and lines.was_changed(t.now.span.line))
    alike = [(abs(at - line), t) for t, at in moved if t.now is not None and _kind_of(t.now) == _kind_of(finding)]
    return min(alike, key=lambda pair: pair[0])[1] if alike else None


def _moved(finding: Finding, origin: LineMap) -> Finding:
    """A finding with the lines of an older text: those that it is on, and those that its words name."""
    span = finding.span
    line = origin.old_line(span.line)
    return replace(
        finding,
        span=span._replace(line=line, end_line=span.end_line + line - span.line),
        message=with_lines(finding.message, origin.old_line),
        reason=finding.reason and with_lines(finding.reason, origin.old_line),
    )


def with_lines(text: str, moved: Callable[[int], int]) -> str:
    """A message with other numbers for the lines of its own file that it names, outside of code that it quotes."""
    return _NAMED_LINE.sub(lambda match: f"line {moved(int(match[1]))}" if match[1] else match[0], text)
