"""Comments that silence a statement: `# noqa`, `# noqa: FF201`, `# fabric-fix: ignore` and `# fabric-fix: ignore[FF201]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fabric_fix.finding import Finding, Span

Silences = Mapping[int, tuple[str, ...]]
"""For a line (from 1) that has such a comment: the codes it names, in capitals; empty when it silences everything."""


def silences(text: str) -> Silences:
    """The suppression comments of a source that parses, by line."""
    folded = text.casefold()
    if "noqa" not in folded and "fabric-fix" not in folded:
        return {}  # nearly every file: it need not be tokenized
    return {line: codes for line, comment in _comments(text) if (codes := _codes(comment)) is not None}


def is_silenced(finding: Finding, comments: Silences) -> bool:
    """Whether a comment on any line of the finding's statement (for a compound one: of its head) names its code."""
    if not comments:
        return False
    for span in (finding.span, finding.statement or finding.span):
        if any(_names(comments[line], finding) for line in _lines(span) if line in comments):
            return True
    return False


def _lines(span: Span) -> range:
    return range(span.line, span.end_line + 1)


def _names(codes: tuple[str, ...], finding: Finding) -> bool:
    known = (finding.code.upper(), finding.name.upper())
    return not codes or any(code in known for code in codes)


def _comments(text: str) -> Iterable[tuple[int, str]]:
    """Line and text of every comment; tokens, not patterns, so that none is seen inside a string."""
    import io
    import tokenize

    lines = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"), newline="\n")
    try:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):
        return  # an end that `ast` takes and `tokenize` does not, such as a lone backslash: comments so far count


def _codes(comment: str) -> tuple[str, ...] | None:
    """The codes that a comment names, none for all of them, None when it is about something else."""
    import re

    own = re.search(r"#\s*fabric-fix:\s*ignore\b\s*(?:\[([^\]]*)\])?", comment, re.IGNORECASE)
    noqa = re.search(r"#\s*noqa(?![\w-])\s*(?::\s*([A-Z][\w-]*(?:[,\s]+[A-Z]+[0-9]+)*))?", comment, re.IGNORECASE)
    found = own or noqa
    if found is None:
        return None
    return tuple(re.split(r"[,\s]+", found[1].strip().upper())) if found[1] and found[1].strip() else ()
