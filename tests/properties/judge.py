"""What the tool makes of a faulty program, measured by the right one."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from fabric_fix.engine import FileResult, Job, Outcome, Status, examine
from fabric_fix.registry import all_rules
from fabric_fix.run import Mode
from tests.properties.draw import Draw
from tests.properties.meaning import Meaning, errors, meaning
from tests.properties.plan import OF_SYNC, SETUP_FAULTS, Fault, Plan
from tests.properties.program import write
from tests.properties.project import Project
from tests.properties.spread import BYSTANDERS, Spread


@dataclass(frozen=True)
class Verdict:
    """How one program went."""

    kind: str
    """Empty when all is well; else which promise is broken."""
    told: str = ""
    planted: tuple[Fault, ...] = ()
    left: tuple[Fault, ...] = ()
    """Those of the planted faults that the tool left, with a reason."""
    silent: str = ""
    """Which of these it left without a reason, in a project of several files."""

    @property
    def sort(self) -> str:
        """What programs with the same failure have in common."""
        return f"{self.kind}: {' + '.join(sorted(fault.kind for fault in self.planted))}"

    @property
    def end(self) -> str:
        """What became of the program, in a word or two."""
        if self.kind:
            return "wrong"
        if self.silent:
            return "with a fault that nothing is said of"
        if not self.planted:
            return "without a fault, and left alone"
        return "left in part or altogether, with reasons" if self.left else "made right"


@dataclass
class Trial:
    """One random program, with and without faults, and what the tool makes of both."""

    seed: int
    forced: Mapping[str, int] = field(default_factory=dict)
    several_files: bool = False

    def __post_init__(self) -> None:
        self.draw = Draw(self.seed, self.forced)
        self.spread = Spread(self.draw) if self.several_files else None
        self.plans = self.spread.plans if self.spread else [Plan(self.draw)]
        self.plan = self.plans[0]

    def write(self, faults: Iterable[Fault] = ()) -> dict[str, str]:
        """The files of the program, or of the programs, with some faults."""
        return self.spread.files(faults) if self.spread else write(self.plan, faults)

    @property
    def programs(self) -> dict[str, tuple[str, ...]]:
        """The files that are run, each with the families of its strategies."""
        return self.spread.programs if self.spread else {"train.py": self.plan.families}

    @cached_property
    def right(self) -> dict[str, str]:
        """The right program."""
        return self.write()

    @cached_property
    def meant(self) -> Meaning:
        """What the right program does."""
        return self._meaning(self.right)

    def _meaning(self, files: Mapping[str, str]) -> Meaning:
        return tuple(run for path, families in self.programs.items() for run in meaning(files, families, path))

    @cached_property
    def planted(self) -> tuple[Fault, ...]:
        """The faults of the faulty program: those drawn that change what it does."""
        drawn = [fault for plan in self.plans for fault in plan.faults()]
        return tuple(fault for fault in drawn if self._meaning(self.write([fault])) != self.meant)

    @cached_property
    def faulty(self) -> dict[str, str]:
        """The program with its faults."""
        return self.write(self.planted)

    def repaired(self, files: Mapping[str, str]) -> dict[str, FileResult]:
        """What the tool makes of a program: of each of its files."""
        if not self.several_files:
            return {path: self._examine(path, text) for path, text in files.items()}
        with Project(files) as project:
            return project.results(Mode.FIX)

    def named(self, files: Mapping[str, str]) -> Iterator[tuple[str, list[str], list[str]]]:
        """Of each file with findings: what a run over the whole project says of it, and what one over it alone says."""
        with Project(files) as project:
            whole = project.results(Mode.CHECK)
            for path in [path for path, result in whole.items() if result.outcomes]:
                alone = project.results(Mode.CHECK, [path])
                yield path, describe(whole[path]), describe(alone[path]) if path in alone else []

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
                candidate = self.write(some)
                if same_tree(candidate, files) or self._meaning(candidate) == found:
                    return some
        return None

    def _uncovered(self) -> list[Fault]:
        """What a fault can become: a backward that is Fabric's now wants its model, a raw model may be left in part."""
        raw = [one for one in self.planted if one.kind == "raw_backward" and self.plans[one.program].needs_model]
        stale = [one for one in self.planted if one.kind == "stale"]
        return [*(replace(one, kind="no_model") for one in raw), *(replace(one, kind="stale_call") for one in stale)]


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
    new = {**trial.faulty, **{path: result.new_text for path, result in results.items()}}
    for kind, told in _any_result(trial, results, new):
        return Verdict(kind, told, trial.planted)
    left = trial.remaining(new)
    if left is None:
        return Verdict("a third program", "", trial.planted)
    outcomes = [outcome for result in results.values() for outcome in result.outcomes]
    kind, told = _names(left, outcomes)
    if trial.several_files and kind.startswith("a fault without a word"):  # not all that crosses files is seen
        return Verdict("", told, trial.planted, left, kind)
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
    for path in set(results) - set(trial.programs):
        if "abric" not in trial.faulty[path] and results[path].outcomes and path in BYSTANDERS:
            yield "a finding in a script without Fabric", "\n".join(describe(results[path]))
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
    is_new = {path: text for path, text in new.items() if trial.several_files or text != trial.faulty[path]}
    for path, result in trial.repaired(is_new).items():
        if result.new_text != new[path]:
            yield "a second run changes something", result.new_text
    for path, whole, alone in trial.named(trial.faulty) if trial.several_files else ():
        if whole != alone:
            told = "\n".join([path, "--- with the whole project", *whole, "--- alone", *alone])
            yield "named alone, a file has other findings", told


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
