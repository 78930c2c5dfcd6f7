"""A second look at a file, with the strategies that the files around it say that it runs with.

It is taken only where the source leaves a strategy open and there are such hints. They then count as `--strategy` does,
for the Fabrics that are open, and whatever is found because of one says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fabric_fix.analysis.program import Program
from fabric_fix.records import replace
from fabric_fix.trial import check_rule

if TYPE_CHECKING:
    from fabric_fix.analysis.hints import Hint
    from fabric_fix.finding import Finding
    from fabric_fix.rule import Rule

_APART = 4
"""Families that are looked at one by one, to tell which one a finding is due to."""


def with_hints(
    program: Program, plain: list[Finding], rules: Sequence[type[Rule]], shown: frozenset[str]
) -> list[Finding]:
    """What the rules find with the hints for a file, in the place of what they found without.

    `shown` tells which Fabrics are open: "unknown" when the source does not show the strategy of one, "auto" when it
    leaves the choice of one to Fabric, which the environment of `fabric run` makes.
    """
    hints = [
        hint
        for hint in program.project.hints(program.source.path, program.text)
        if "unknown" in shown or hint.is_environment
    ]
    found = _look(program, hints, rules) if hints else None
    if found is None:
        return plain
    told = set(map(_key, plain))
    causes = _Causes(program, hints, rules)
    return [finding if _key(finding) in told else _because(finding, plain, causes) for finding in found]


def _look(program: Program, hints: Iterable[Hint], rules: Sequence[type[Rule]]) -> list[Finding] | None:
    """What is found with some hints; None when the analysis gives up."""
    auto: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    for hint in hints:
        families |= hint.families
        auto |= hint.families if hint.is_environment else frozenset()
    hinted = {"unknown": families, "auto": auto}
    twin = program.with_hints(families, hinted)
    return None if twin.gave_up else [finding for rule in rules for finding in check_rule(rule, twin)]


def _key(finding: Finding) -> tuple[object, ...]:
    applicability = finding.fix.applicability if finding.fix else None
    return (*_fault(finding), finding.reason, applicability)


def _fault(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.span, finding.message


class _Causes:
    """Which hint a finding is due to."""

    def __init__(self, program: Program, hints: Sequence[Hint], rules: Sequence[type[Rule]]) -> None:
        self._program, self._hints, self._rules = program, hints, rules
        self._alone: list[tuple[Hint, set[tuple[object, ...]]]] | None = None

    def of(self, finding: Finding) -> Hint:
        """The first hint whose strategy alone gives the finding, else the first of all."""
        if len({hint.strategy for hint in self._hints}) == 1:
            return self._hints[0]
        if self._alone is None:
            first: dict[str, Hint] = {}
            for hint in self._hints:
                first.setdefault(hint.strategy, hint)
            self._alone = [(hint, self._with(hint)) for hint in list(first.values())[:_APART]]
        return next((hint for hint, keys in self._alone if _key(finding) in keys), self._hints[0])

    def _with(self, hint: Hint) -> set[tuple[object, ...]]:
        alike = [other for other in self._hints if other.strategy == hint.strategy]
        return set(map(_key, _look(self._program, alike, self._rules) or ()))


def _because(finding: Finding, plain: Sequence[Finding], causes: _Causes) -> Finding:
    """A finding that names the hint: in its message, or in its reason when only that is due to the hint."""
    hint = causes.of(finding)
    if any(_fault(finding) == _fault(other) for other in plain):
        return replace(finding, reason=f"{finding.reason} ({hint})") if finding.reason else finding
    return replace(finding, message=f"{finding.message} ({hint})")
