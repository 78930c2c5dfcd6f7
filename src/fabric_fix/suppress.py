"""Comments that silence a statement: `# noqa`, `# noqa: FF201`, `# fabric-fix: ignore`, and the last with `[FF201]`."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO

from fabric_fix.finding import Finding

Silences = Mapping[int, tuple[frozenset[str], ...]]
"""For each line (from 1) of a logical line that has such comments: the codes or names, in capitals, that each of them
gives; an empty set silences everything."""

_OWN = re.compile(r"#\s*fabric-fix:\s*ignore\b\s*(?:\[([^\]]*)\])?", re.IGNORECASE)
_NOQA = re.compile(r"#\s*noqa(?![\w-])\s*(?::\s*([A-Z][\w-]*(?:[,\s]+[A-Z]+[0-9]+)*))?", re.IGNORECASE)


def silences(text: str) -> Silences:
    """The suppression comments of a source that parses.

    A logical line is a simple statement, or the head of a compound one: a comment in the body of a `with` does not
    silence what is wrong with the `with`.
    """
    folded = text.casefold()
    if "noqa" not in folded and "fabric-fix" not in folded:
        return {}  # nearly every file: it need not be tokenized
    found: dict[int, tuple[frozenset[str], ...]] = {}
    for lines, comments in _logical_lines(text):
        if codes := tuple(named for comment in comments for named in _codes(comment)):
            found.update(dict.fromkeys(lines, codes))
    return found


def is_silenced(finding: Finding, comments: Silences) -> bool:
    """Whether a comment on the statement of a finding names its code or name, or everything."""
    if not comments:
        return False
    places = {finding.span.line, (finding.statement or finding.span).line}
    return any(_names(finding, comments.get(line, ())) for line in places)


def silenced_edit(finding: Finding, comments: Silences) -> int | None:
    """The line of a comment that silences a finding on what its fix would change; None when there is none."""
    if finding.fix is None or not comments:
        return None
    from fabric_fix.edits.conflicts import place_of

    places = [place for edit in finding.fix.edits if (place := place_of(edit)) is not None]
    lines = (line for place in places for line in range(place.line, place.end_line + 1) if line in comments)
    return min((line for line in lines if _names(finding, comments[line])), default=None)


def _names(finding: Finding, named: Iterable[frozenset[str]]) -> bool:
    """Whether one of some comments names the code or the name of a finding, or everything."""
    return any(not codes or not codes.isdisjoint((finding.code.upper(), finding.name.upper())) for codes in named)


def _logical_lines(text: str) -> Iterator[tuple[range, list[str]]]:
    """The lines and the comments of each logical line; tokens, so that no comment is seen inside a string."""
    stream = StringIO(text.replace("\r\n", "\n").replace("\r", "\n"), newline="\n")
    start, comments = 0, list[str]()
    try:
        for token in tokenize.generate_tokens(stream.readline):
            if token.type == tokenize.COMMENT:
                comments.append(token.string)
            elif token.type == tokenize.NEWLINE:
                yield range(start, token.start[0] + 1), comments
                start, comments = 0, []
            elif token.type == tokenize.NL:
                comments = comments if start else []  # a comment on a line of its own is on no statement
            elif token.type not in (tokenize.INDENT, tokenize.DEDENT):
                start = start or token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return  # an end that `ast` takes and `tokenize` does not, such as a lone backslash: comments so far count


def _codes(comment: str) -> list[frozenset[str]]:
    """What each suppression in a comment names; one comment can hold both kinds."""
    found = [match[1] for pattern in (_OWN, _NOQA) for match in pattern.finditer(comment)]
    return [frozenset(re.split(r"[,\s]+", words.strip().upper())) - {""} if words else frozenset() for words in found]
