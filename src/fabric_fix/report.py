"""What the user is told: findings as text, in a line each, or as JSON; the summary; and the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from fabric_fix.engine import FileResult, Outcome, Status
from fabric_fix.finding import Finding, Fix
from fabric_fix.records import Record, replace
from fabric_fix.streams import one_line
from fabric_fix.tracking import split_lines


class Entry(Record):
    """An outcome as it is shown: where its finding is in the text that the user has now."""

    outcome: Outcome
    finding: Finding
    text: str
    """The text that the finding's lines count in."""


def entries_of(result: FileResult, written: bool) -> list[Entry]:
    """The outcomes of a file, sorted by place.

    After a file was written, what is left is placed in the new text; before, everything is placed in the original.
    """
    entries = []
    for outcome in result.outcomes:
        if written and outcome.now is not None:
            in_new = replace(outcome, reason=outcome.reason_now)
            entries.append(Entry(in_new, outcome.now, result.new_text))
        else:
            entries.append(Entry(outcome, outcome.finding, result.text))
    return sorted(entries, key=lambda entry: entry.finding.sort_key)


def mark_written(result: FileResult) -> FileResult:
    """The result once its new bytes are in the file: what was fixable is fixed."""
    return replace(
        result,
        outcomes=tuple(
            replace(outcome, status=Status.FIXED) if outcome.status is Status.FIXABLE else outcome
            for outcome in result.outcomes
        ),
    )


def column_of(entry: Entry, line: int, byte_column: int) -> int:
    """A column in characters from 1, for one in UTF-8 bytes from 0."""
    lines = _lines(entry.text)
    if not 0 < line <= len(lines):
        return byte_column + 1
    return len(lines[line - 1].encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "replace")) + 1


def concise(entries: Sequence[Entry]) -> Iterator[str]:
    """One line for each finding: `train.py:12:5: FF101 [fixable] message`."""
    for entry in entries:
        finding = entry.finding
        column = column_of(entry, finding.span.line, finding.span.column)
        status = entry.outcome.status.value
        place = f"{one_line(finding.path)}:{finding.span.line}:{column}"
        yield f"{place}: {finding.code} [{status}] {finding.message}"


def text(entries: Sequence[Entry]) -> Iterator[str]:
    """Each finding with its source line, a caret under the place, and what is, or is not, done about it."""
    for entry, head in zip(entries, concise(entries), strict=True):
        yield head
        yield from _excerpt(entry)
        yield from _advice(entry)
        yield ""


def _excerpt(entry: Entry) -> Iterator[str]:
    span, lines = entry.finding.span, _lines(entry.text)
    if not 0 < span.line <= len(lines):
        return
    line = lines[span.line - 1].rstrip("\r\n")
    start = column_of(entry, span.line, span.column) - 1
    end = column_of(entry, span.line, span.end_column) - 1 if span.end_line == span.line else len(line)
    gutter = " " * len(str(span.line))
    yield f"  {span.line} | {_printable(line)}"
    indent = "".join(sign if sign == "\t" else " " for sign in line[:start])
    yield f"  {gutter} | {indent}{'^' * max(end - start, 1)}"


@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(split_lines(text))


def _printable(line: str) -> str:
    """A line that cannot play tricks on a terminal: form feeds, escapes and the like are shown as one sign."""
    return "".join(sign if sign.isprintable() or sign == "\t" else "\N{REPLACEMENT CHARACTER}" for sign in line)


def _advice(entry: Entry) -> Iterator[str]:
    fix, status = _fix_of(entry), entry.outcome.status
    if fix is not None:
        word = {Status.FIXED: "fixed", Status.FIXABLE: "fix", Status.UNSAFE: "unsafe fix"}[status]
        yield f"  {word}: {fix.message}"
    if note := _note(entry):
        yield f"  {note}"
    if entry.outcome.reason:
        word = "not made by default" if status is Status.UNSAFE else "left"
        yield f"  {word}: {entry.outcome.reason}"


def _fix_of(entry: Entry) -> Fix | None:
    """The fix that is made, or that `--unsafe-fixes` makes: as it is for the text as it is, if it can be made in it."""
    return entry.finding.fix if _is_at_once(entry) else entry.outcome.fix


def _is_at_once(entry: Entry) -> bool:
    """Whether the fix can be made in the text as it is, and as surely as after the fixes of others."""
    own, fix = entry.finding.fix, entry.outcome.fix
    return own is not None and fix is not None and own.applicability >= fix.applicability


def _note(entry: Entry) -> str | None:
    """What a finding has to do with the fixes of others, if anything."""
    outcome = entry.outcome
    if outcome.later:
        return "found once the other fixes are made"
    if outcome.status is Status.LEFT or _is_at_once(entry):
        return None
    return "fixable once the other fixes are made" if outcome.fix else "goes with the other fixes"


def summary(entries: Sequence[Entry], as_patch: bool, uncovered: int = 0) -> Iterator[str]:
    """How much was found, fixed, fixable and left, and the reasons for what is left, the most frequent first.

    `uncovered` is how many more there are once what is fixable is fixed.
    """
    counts = Counter(entry.outcome.status for entry in entries)
    files = len({entry.finding.path for entry in entries})
    words = {
        Status.FIXED: "fixed",
        Status.FIXABLE: "fixed by the patch" if as_patch else "fixable",
        Status.UNSAFE: "fixable with --unsafe-fixes",
        Status.LEFT: "left",
    }
    parts = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    more = f" ({uncovered} more once these are fixed)" if uncovered else ""
    yield f"Found {_many(len(entries), 'fault')} in {_many(files, 'file')}: {parts}{more}"
    reasons = Counter(entry.outcome.reason for entry in entries if entry.outcome.status is Status.LEFT)
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0] or "")):
        yield f"  {count} left: {reason or 'there is no fix'}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def json(entries: Sequence[Entry]) -> str:
    """A list of objects in ruff's shape, with `name`, `reason`, `status` and `note` besides."""
    from json import dumps

    return dumps([_object(entry) for entry in entries], indent=2)


def _object(entry: Entry) -> dict[str, object]:
    finding, span = entry.finding, entry.finding.span
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "filename": finding.path,
        "location": _location(entry, span.line, span.column),
        "end_location": _location(entry, span.end_line, span.end_column),
        "url": None,  # the documentation is in the tool: --explain
        "fix": _fix_object(entry),
        "reason": entry.outcome.reason or (_note(entry) if _fix_of(entry) is None else None),
        "status": entry.outcome.status.value,
        "note": _note(entry),
    }


def _location(entry: Entry, line: int, column: int) -> dict[str, int]:
    return {"row": line, "column": column_of(entry, line, column)}


def _fix_object(entry: Entry) -> dict[str, object] | None:
    from fabric_fix.textedits import text_edits

    fix = _fix_of(entry)
    if fix is None:
        return None
    # what only another fix uncovers, or makes fixable, has no place in the text yet, so its fix has no edits there
    is_hidden = (entry.outcome.later and entry.finding is not entry.outcome.now) or not _is_at_once(entry)
    edits = () if is_hidden else text_edits(entry.text, fix)
    places = [
        {
            "content": edit.content,
            "location": dict(zip(("row", "column"), edit.location, strict=True)),
            "end_location": dict(zip(("row", "column"), edit.end_location, strict=True)),
        }
        for edit in edits
    ]
    return {"applicability": fix.applicability.name.lower(), "message": fix.message, "edits": places}
