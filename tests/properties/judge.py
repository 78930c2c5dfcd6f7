"""What the tool makes of a faulty program, measured by the right one."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path

from fabric_fix.engine import FileResult, Job, Outcome, Status, examine
from fabric_fix.registry import all_rules
from tests.properties.draw import Draw
from tests.properties.meaning import Meaning, errors, meaning
from tests.properties.plan import OF_SYNC, SETUP_FAULTS, Fault, Plan
from tests.properties.program import write


@dataclass(frozen=True)
class Verdict:
    """How one program went."""

    kind: str
    """Empty when all is well; else which promise is broken."""
    told: str = ""
    planted: tuple[Fault, ...] = ()
    left: tuple[Fault, ...] = ()
    """Those of the planted faults that the tool left, with a reason."""

    @property
    def sort(self) -> str:
        """What programs with the same failure have in common."""
        return f"{self.kind}: {' + '.join(sorted(fault.kind for fault in self.planted))}"


@dataclass
class Trial:
    """One random program, with and without faults, and what the tool makes of both."""

    seed: int
    forced: Mapping[str, int] = field(default_factory=dict)
    several_files: bool = False

    def __post_init__(self) -> None:
        self.draw = Draw(self.seed, self.forced)
        self.plan = Plan(self.draw, self.several_files)

    @cached_property
    def right(self) -> dict[str, str]:
        """The right program."""
        return write(self.plan)

    @cached_property
    def meant(self) -> Meaning:
        """What the right program does."""
        return self._meaning(self.right)

    def _meaning(self, files: Mapping[str, str]) -> Meaning:
        return meaning(files, self.plan.families)

    @cached_property
    def planted(self) -> tuple[Fault, ...]:
        """The faults of the faulty program: those drawn that change what it does."""
        drawn = self.plan.faults()
        return tuple(fault for fault in drawn if self._meaning(write(self.plan, [fault])) != self.meant)

    @cached_property
    def faulty(self) -> dict[str, str]:
        """The program with its faults."""
        return write(self.plan, self.planted)

    def repaired(self, files: Mapping[str, str]) -> dict[str, FileResult]:
        """What the tool makes of a program."""
        return {path: self._examine(path, text) for path, text in files.items()}

    def _examine(self, path: str, text: str) -> FileResult:
        rules = all_rules()
        job = Job(path, str(Path(path).absolute()), text.encode(), rules, strategies=self.plan.options)
        return examine(job)

    def remaining(self, files: Mapping[str, str]) -> tuple[Fault, ...] | None:
        """The smallest set of the planted faults that a program still has; None when it is none of these programs."""
        found = self._meaning(files)
        known = [*self.planted, *self._uncovered()]
        for size in range(len(self.planted) + 1):
            for some in combinations(known, size):
                candidate = write(self.plan, some)
                if same_tree(candidate, files) or self._meaning(candidate) == found:
                    return some
        return None

    def _uncovered(self) -> list[Fault]:
        """What a fault can become: a backward that is Fabric's now wants its model, a raw model may be left in part."""
        raw = [fault.model for fault in self.planted if fault.kind == "raw_backward" and self.plan.needs_model]
        stale = [fault.model for fault in self.planted if fault.kind == "stale"]
        return [*(Fault("no_model", model) for model in raw), *(Fault("stale_call", model) for model in stale)]


def same_tree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two programs are the same but for comments and formatting."""
    return all(ast.dump(ast.parse(one[path])) == ast.dump(ast.parse(other[path])) for path in one)


def judge(trial: Trial) -> Verdict:
    """The first promise that is broken, or that all is well."""
    for kind, told in _right_program(trial):
        return Verdict(kind, told)
    if not trial.planted:
        return Verdict("")
    results = trial.repaired(trial.faulty)
    new = {path: result.new_text for path, result in results.items()}
    for kind, told in _any_result(trial, results, new):
        return Verdict(kind, told, trial.planted)
    left = trial.remaining(new)
    if left is None:
        return Verdict("a third program", "", trial.planted)
    outcomes = [outcome for result in results.values() for outcome in result.outcomes]
    kind, told = _names(left, outcomes) if not trial.several_files else ("", "")
    return Verdict(kind, told, trial.planted, left)


def _right_program(trial: Trial) -> Iterator[tuple[str, str]]:
    """What is wrong with the right program, or with what the tool says of it."""
    found = errors(trial.meant)
    if found:
        yield "the generator is wrong", str(found)
    results = trial.repaired(trial.right)
    told = [line for result in results.values() for line in describe(result)]
    if told:
        yield f"a finding in the right program ({told[0][:5]})", "\n".join(told)


def describe(result: FileResult) -> list[str]:
    """All that the tool says of a file."""
    found = [
        f"{one.finding.code} {result.path}:{one.finding.span.line} {one.status.value}: {one.finding.message}"
        f"; {one.reason}"
        for one in result.outcomes
    ]
    return found + [f"problem {problem}" for problem in result.problems]


def _any_result(trial: Trial, results: Mapping[str, FileResult], new: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What holds of every result, right or refused."""
    for path, result in results.items():
        if result.problems:
            yield "a problem", str(result.problems)
        try:
            ast.parse(new[path])
        except SyntaxError as error:
            yield "the result does not parse", str(error)
            return
        if lost := comments(trial.faulty[path]) - comments(new[path]):
            yield "a comment is lost", str(lost)
    again = trial.repaired({path: text for path, text in new.items() if text != trial.faulty[path]})
    for path, result in again.items():
        if result.new_text != new[path]:
            yield "a second run changes something", result.new_text


def comments(text: str) -> Counter[str]:
    """The comments of a file."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def _names(left: tuple[Fault, ...], outcomes: list[Outcome]) -> tuple[str, str]:
    """Whether what is left is named, with a reason."""
    named = {one.finding.code for one in outcomes if one.status in (Status.LEFT, Status.UNSAFE) and one.reason}
    if not left and named:
        return f"a finding in the repaired program ({', '.join(sorted(named))})", ""
    told = {fault for fault in left if named & set(fault.codes)}
    for fault in left:
        if fault not in told and not any(_hides(other, fault) for other in told):
            return f"a fault without a word ({fault.kind})", str(sorted(named))
    return "", ""


def _hides(fault: Fault, other: Fault) -> bool:
    """Whether what is wrong elsewhere can only be judged once a fault is repaired."""
    if fault.kind in OF_SYNC:
        return other.kind == "forward_outside" and other.model == fault.model
    return fault.kind in SETUP_FAULTS and other.kind not in SETUP_FAULTS
