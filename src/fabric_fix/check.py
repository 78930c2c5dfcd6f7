"""One file is looked at: parse, analyse, ask the rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from fabric_fix.analysis import known
from fabric_fix.analysis.program import Program
from fabric_fix.analysis.project import Project
from fabric_fix.deadline import NEVER, Deadline
from fabric_fix.finding import Finding
from fabric_fix.records import Record
from fabric_fix.rule import Rule

_FABRIC = re.compile("abric|LightningLite")
_STRING = re.compile(r"""(?<!["'])"[^"'\\]+"(?!")|(?<!["'])'[^"'\\]+'(?!')""")


class CheckResult(Record):
    """What was found in one file; `gave_up` says why the look at it is incomplete."""

    findings: tuple[Finding, ...]
    gave_up: str | None = None
    gave_up_at: int = 1
    """The line that it had come to then."""


def check_text(
    text: str,
    path: str,
    *,
    rules: Sequence[type[Rule]],
    strategies: tuple[str, ...] = (),
    project_root: str | None = None,
    deadline: Deadline = NEVER,
) -> CheckResult:
    """Find what the rules have to say of one file.

    `strategies` are names as `Fabric(strategy=...)` takes them, which the program must run on beside its own.
    Raises what `ast.parse` raises (`SyntaxError`, `ValueError`, `RecursionError`), and `UnfinishedError`.
    """
    if not _names_fabric(text):
        ast.parse(text)
        return CheckResult(())
    families: frozenset[str] = frozenset()
    for name in strategies:
        families |= known.strategy_families(name, None, None)
    program = Program(text, path, families, Project(project_root), deadline)
    if program.gave_up:
        return CheckResult((), program.gave_up, program.gave_up_at)
    if not program.interpreter.events:
        return CheckResult(())  # nothing that a rule could ask about
    from fabric_fix.trial import check_rule

    findings = [finding for rule in rules for finding in check_rule(rule, program)]
    return CheckResult(tuple(sorted(findings, key=lambda finding: finding.sort_key)))


def _names_fabric(text: str) -> bool:
    """Whether Fabric is named outside of comments, or so that a comment cannot be told from a string at once."""
    for match in _FABRIC.finditer(text):
        start = max(text.rfind("\n", 0, match.start()), text.rfind("\r", 0, match.start())) + 1
        line = text[start : match.start()]
        before, hash_sign, comment = _STRING.sub("", line).partition("#")
        if not hash_sign or "'" in before or '"' in before or "'''" in comment or '"""' in comment:
            return True
    return False
