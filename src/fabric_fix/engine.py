"""From the bytes of one file to what is wrong with it and what it becomes; no printing, no writing.

`--diff` and a run in place take the same result, so that the diff shown is the file written; `--check` makes the same
fixes and drops them, so that what it calls fixable is. It tells of the file as it is, as ruff does: what only fixes
uncover is counted and no more, as it need not have a place in that.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence

from fabric_fix.check import NOTHING_AROUND, Surroundings, check_text, project_of, visited_by
from fabric_fix.deadline import Deadline, UnfinishedError
from fabric_fix.finding import Applicability, Finding, Fix
from fabric_fix.problem import Problem
from fabric_fix.records import Record, replace
from fabric_fix.rule import Rule
from fabric_fix.source import Source, decode
from fabric_fix.suppress import Silences, is_silenced, silenced_edit, silences
from fabric_fix.tracking import LineMap, Tracked, carry_over, survivors, with_lines

NOT_COMPLETE = "not analysed completely"
NOT_BEGUN = "not analysed"
GIVEN_UP = "split the file into smaller ones, or leave it out with --exclude"
"""What to do about a file that is too much to be analysed."""
MAX_ROUNDS = 10
"""Rounds of fixes after which a file counts as not settling; ruff's number."""


class Status(enum.Enum):
    """What became of a finding."""

    FIXABLE = "fixable"
    """Its fix is in the new bytes: made when they are written."""
    FIXED = "fixed"
    """The same, and they were written."""
    UNSAFE = "unsafe"
    """It has a fix that `--unsafe-fixes` makes."""
    LEFT = "left"
    """It has no fix, or none that could be made."""


class Job(Record):
    """What to do with one file."""

    path: str
    real: str
    data: bytes
    rules: tuple[type[Rule], ...]
    strategies: tuple[str, ...] = ()
    around: Surroundings = NOTHING_AROUND
    unsafe: bool = False
    look_only: bool = False
    visit_only: bool = False
    """The file is asked only which other files it uses, and how."""
    timeout: float = 0
    """Seconds that it may take; 0 for no limit."""
    total_timeout: float = 0
    """Seconds that the whole run may take, until `ends`; only to be named."""
    ends: float | None = None
    """When the whole run must be over, by the clock that all processes share."""


class Outcome(Record):
    """A finding and what became of it."""

    finding: Finding
    """In the lines of the original file."""
    status: Status
    reason: str | None = None
    """Why there is no fix, why it is unsafe, or why it could not be made; None beside a fix that is made."""
    reason_now: str | None = None
    """The same in the lines of the new text."""
    fix: Fix | None = None
    """The fix that is made, or that `--unsafe-fixes` makes, perhaps only after others.

    None when there is none, or when the finding goes with the fixes of others.
    """
    number: int | None = None
    """Number of its fix within the file, from 1; None when none is made."""
    later: bool = False
    """Whether it is only there once the other fixes are made."""
    now: Finding | None = None
    """In the lines of the new text; None when it is gone."""


class MadeFix(Record):
    """A fix that is in the new bytes, with the first and last lines of the original that its edits touch."""

    number: int
    code: str
    regions: tuple[tuple[int, int], ...]
    imports: tuple[str, ...] = ()


class FileResult(Record):
    """All that there is to say about one file; picklable."""

    path: str
    real: str
    original: bytes
    new: bytes
    text: str = ""
    """The decoded original, without its mark."""
    new_text: str = ""
    outcomes: tuple[Outcome, ...] = ()
    fixes: tuple[MadeFix, ...] = ()
    problems: tuple[Problem, ...] = ()
    uncovered: int = 0
    """How many more findings there are once the fixes are made, if the job was to look only."""
    visited: tuple[tuple[str, bool], ...] = ()
    """The real paths of the other files whose functions it calls, and whether that may show faults in them."""
    is_open: bool = False
    """Whether models or optimizers come to it from callers that were not seen, or it only makes a Fabric for others."""
    consulted: tuple[tuple[str, str], ...] = ()
    """Path and digest (`digests.ABSENT` where nothing was) of the other files that this depends on."""
    transient: bool = False
    """Whether another look could have another result, as this one depended on memory, on time or on a bug."""

    @property
    def says_nothing(self) -> bool:
        """Whether the file stays as it is, and there is nothing to tell of it."""
        return not self.outcomes and not self.problems and self.new == self.original


def untouched(job: Job) -> FileResult:
    """The result that leaves a file as it is, with nothing to tell of it."""
    return FileResult(job.path, job.real, job.data, job.data)


def examine(job: Job) -> FileResult:
    """Look at a file and make its fixes, for the result or, if the job is to look only, for a try.

    Whatever fails is in `problems`.
    """
    source = decode(job.path, job.data)
    if isinstance(source, Problem):
        return replace(untouched(job), problems=() if job.visit_only else (source,))
    unchanged = replace(untouched(job), text=source.text, new_text=source.text)
    if job.visit_only:
        return _visit(job, source, unchanged)
    repair = _Repair(job, source)
    try:
        return repair.run(unchanged)
    except UnfinishedError as error:
        what = NOT_COMPLETE if repair.is_begun else NOT_BEGUN
        problem = Problem(job.path, f"{what}: {error}; {error.advice}", error.line, 1)
        return replace(unchanged, problems=(problem,), transient=True)
    except UnicodeEncodeError:
        message = f"its fixes need characters that {source.encoding} lacks; nothing was changed"
        return replace(unchanged, problems=(Problem(job.path, message, 1, 1),), consulted=tuple(repair.consulted))
    except Exception as error:  # the boundary: whatever one file brings down, the others are still done
        problem = explain_failure(job.path, source.text, error)
        return replace(unchanged, problems=(problem,), transient=not isinstance(error, SyntaxError))


def _visit(job: Job, source: Source, unchanged: FileResult) -> FileResult:
    """Which other files a program uses; one that cannot be analysed is not what was asked about, and says nothing."""
    if not _leads(job):
        return unchanged
    try:
        result = visited_by(source.text, job.path, job.rules, job.strategies, job.real, job.around)
    except SyntaxError:  # whatever it imports may be used by it
        reached = sorted(project_of(job.around).modules.reach(job.real))
        return replace(unchanged, visited=tuple((path, False) for path in reached), transient=True)
    except Exception:
        return replace(unchanged, transient=True)
    return replace(unchanged, visited=result.visited, consulted=result.consulted)


def _leads(job: Job) -> bool:
    """Whether a program has to do with Fabric, and its imports lead to a file that is asked about."""
    modules = project_of(job.around).modules
    return modules.leading.acts(job.real) and modules.leads_to(job.real, job.around.targets)


def explain_failure(path: str, text: str, error: Exception) -> Problem:
    """What an exception over a file means to its owner."""
    if isinstance(error, SyntaxError):
        message, line = error.msg, error.lineno or 1
        if "nested" in message:  # the tokenizer's own limits: 100 indentations, 200 brackets
            return Problem(path, f"nested too deeply: {message}", line, error.offset or 1)
        from fabric_fix.newer import needed_python

        if needed := needed_python(text):
            message += f"; run fabric-fix under Python {needed}, whose syntax this is"
        return Problem(path, f"cannot be parsed: {message}", line, max(error.offset or 1, 1))
    if isinstance(error, (RecursionError, MemoryError)):
        return Problem(path, "nested too deeply to be analysed", 1, 1)
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return Problem(path, f"internal error, please report it: {type(error).__name__} at {place}: {error}", 1, 1)


class _Repair:
    """One file on its way through the rounds."""

    def __init__(self, job: Job, source: Source) -> None:
        self._job = job
        self._deadline = Deadline(job.timeout, job.total_timeout, job.ends)
        self.is_begun = False
        """Whether there was time for a look at all."""
        self._source = source
        self._text = source.text
        self._live: list[Tracked] = []
        self._done: list[Tracked] = []
        self._fixes: list[MadeFix] = []
        self._problems: list[Problem] = []
        self._visited: dict[str, bool] = {}
        self._is_open = False
        self._is_transient = False
        self.consulted: dict[tuple[str, str], None] = {}
        """Other files that the result depends on; one that changed meanwhile is there twice, and never right again."""

    def run(self, unchanged: FileResult) -> FileResult:
        self._live = [Tracked(finding, later=False, now=finding) for finding in self._look(self._text)]
        rounds = 0
        while wanted := [one for one in self._live if self._is_wanted(one)]:
            if rounds == MAX_ROUNDS:
                return self._unsettled(unchanged)
            rounds += self._round(wanted)
        data = self._source.data if self._text == self._source.text else self._source.encode(self._text)
        return self._shown_only(unchanged) if self._job.look_only else self._result(unchanged, data)

    def _shown_only(self, unchanged: FileResult) -> FileResult:
        """What is wrong with the file as it is; the fixes were made to know that they can be."""
        tried = self._result(unchanged, unchanged.original)
        outcomes = tuple(replace(one, number=None, now=one.finding) for one in tried.outcomes if not one.later)
        uncovered = len(tried.outcomes) - len(outcomes)
        return replace(tried, new_text=unchanged.text, outcomes=outcomes, fixes=(), uncovered=uncovered)

    def _look(self, text: str) -> list[Finding]:
        """What is wrong with a text and not silenced."""
        job = self._job
        self._deadline.check()
        self.is_begun = True
        result = check_text(
            text,
            job.path,
            rules=job.rules,
            strategies=job.strategies,
            real=job.real,
            around=job.around,
            deadline=self._deadline,
        )
        for path, found in result.visited:  # with its fixes made, it may show more of the others
            self._visited[path] = found or self._visited.get(path, False)
        self._is_open = self._is_open or result.is_open
        self.consulted.update(dict.fromkeys(result.consulted))
        if result.gave_up and text != self._source.text:
            raise UnfinishedError(f"with its fixes made, it {result.gave_up}", GIVEN_UP)
        if result.gave_up:
            message = f"{NOT_COMPLETE}: {result.gave_up}; {GIVEN_UP}"
            self._problems.append(Problem(job.path, message, result.gave_up_at, 1))
        comments = silences(text) if result.findings else {}
        return [_spared(finding, comments) for finding in result.findings if not is_silenced(finding, comments)]

    def _is_wanted(self, tracked: Tracked) -> bool:
        fix = tracked.now.fix if tracked.now else None
        least = Applicability.UNSAFE if self._job.unsafe else Applicability.SAFE
        return fix is not None and fix.applicability >= least and tracked.refusal is None

    def _round(self, wanted: list[Tracked]) -> bool:
        """Make what can be made of the wanted fixes; whether that changed the text."""
        from fabric_fix.edits.rewrite import rewrite

        owners = {id(one.now.fix): one for one in wanted if one.now and one.now.fix}
        rewritten = rewrite(self._text, [one.now.fix for one in wanted if one.now and one.now.fix])
        for fix, reason in rewritten.failed:
            _owner(owners, fix).refusal = with_lines(reason, LineMap(self._source.text, self._text).old_line)
        applied = [_owner(owners, fix) for fix in rewritten.applied]
        if not applied:
            for fix in rewritten.waiting:
                _owner(owners, fix).refusal = "its fix touches another one that cannot be made"
            return False
        return self._take(rewritten.text, applied)

    def _take(self, text: str, applied: list[Tracked]) -> bool:
        """Accept a rewritten text if every finding whose fix it holds is gone; else drop the fixes of the others."""
        others = [one for one in self._live if one not in applied]
        try:
            found, lines = self._look(text), LineMap(self._text, text)
        except (SyntaxError, ValueError, RecursionError) as error:
            self._is_transient = True
            return self._drop(applied, f"gives a file that cannot be analysed ({error})")
        if alive := survivors(applied, others, found, lines):
            rest = [one for one in applied if one not in alive] or applied[:-1]
            return self._without(rest) if rest else self._drop(alive, "does not remove what it is for")
        origin = LineMap(self._source.text, self._text)
        for one in applied:
            self._number(one, origin)
        self._live = carry_over(others, found, lines, LineMap(self._source.text, text))
        self._done += [one for one in [*applied, *others] if one not in self._live]
        self._text = text
        return True

    def _without(self, rest: list[Tracked]) -> bool:
        """Make fewer fixes in this round: what seems left of one may be what another one has just uncovered."""
        from fabric_fix.edits.rewrite import rewrite

        rewritten = rewrite(self._text, [one.now.fix for one in rest if one.now and one.now.fix])
        if len(rewritten.applied) < len(rest):
            return self._drop(rest, "cannot be made without another one")
        return self._take(rewritten.text, rest)

    def _drop(self, tracked: Sequence[Tracked], what: str) -> bool:
        for one in tracked:
            one.refusal = f"its fix {what}: a bug in {one.first.name}"
            message = f"the fix of {one.first.code} {what} and was not made: a bug in the rule {one.first.name}"
            self._problems.append(Problem(self._job.path, message, one.first.span.line, one.first.span.column + 1))
        return False

    def _number(self, tracked: Tracked, origin: LineMap) -> None:
        assert tracked.now is not None
        assert tracked.now.fix is not None
        from fabric_fix.regions import imports_of, regions_of

        tracked.number = len(self._fixes) + 1
        regions = tuple((origin.origin(a)[0], origin.origin(b)[0]) for a, b in regions_of(tracked.now.fix))
        self._fixes.append(MadeFix(tracked.number, tracked.first.code, regions, imports_of(tracked.now.fix)))
        tracked.made, tracked.now = tracked.now.fix, None

    def _unsettled(self, unchanged: FileResult) -> FileResult:
        """The file as it was: fixes that go on for ever are wrong, and nobody knows which."""
        message = f"its fixes did not settle in {MAX_ROUNDS} rounds; nothing was changed"
        self._problems.append(Problem(self._job.path, message, 1, 1))
        self._live = [one for one in [*self._done, *self._live] if not one.later]
        for one in self._live:
            one.refusal, one.number, one.made = "the fixes of this file did not settle", None, None
            one.now = one.first
        self._done, self._fixes, self._text = [], [], self._source.text
        return self._result(unchanged, unchanged.original)

    def _result(self, unchanged: FileResult, data: bytes) -> FileResult:
        outcomes: list[Outcome] = []
        if tracked := [*self._done, *self._live]:
            back, forth = LineMap(self._source.text, self._text), LineMap(self._text, self._source.text)
            outcomes = [self._outcome(one, back, forth) for one in tracked]
        return FileResult(
            unchanged.path,
            unchanged.real,
            unchanged.original,
            data,
            unchanged.text,
            self._text,
            tuple(sorted(outcomes, key=lambda outcome: outcome.finding.sort_key)),
            tuple(self._fixes),
            tuple(self._problems),
            visited=tuple(self._visited.items()),
            is_open=self._is_open,
            consulted=tuple(self.consulted),
            transient=self._is_transient,
        )

    def _outcome(self, tracked: Tracked, back: LineMap, forth: LineMap) -> Outcome:
        """`back` leads from the new text to the original one, `forth` from the original to the new one."""
        first, now, refusal = tracked.first, tracked.now, tracked.refusal
        if now is None:
            return Outcome(first, Status.FIXABLE, fix=tracked.made, number=tracked.number, later=tracked.later)
        fix = now.fix if refusal is None else None
        status = Status.LEFT if fix is None else Status.UNSAFE
        reason = refusal or (now.reason and with_lines(now.reason, back.old_line))
        reason_now = with_lines(refusal, forth.old_line) if refusal else now.reason
        return Outcome(first, status, reason, reason_now, fix, later=tracked.later, now=now)


def _spared(finding: Finding, comments: Silences) -> Finding:
    """A finding without its fix where that would change a statement with a comment that silences this finding."""
    line = silenced_edit(finding, comments)
    if line is None:
        return finding
    reason = f"its fix would change line {line}, where a comment says to leave {finding.code} alone: repair it by hand"
    return replace(finding, fix=None, reason=reason)


def _owner(owners: dict[int, Tracked], fix: Fix) -> Tracked:
    """The finding that a fix came from: the same object, or, from a rewriter that copies, an equal one."""
    if id(fix) in owners:
        return owners[id(fix)]
    return next(one for one in owners.values() if one.now is not None and one.now.fix == fix)
