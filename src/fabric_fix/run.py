"""One run of the tool: which files, what is done with their results, what goes to which stream."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from fabric_fix.config import ConfigError, Configs, Settings
from fabric_fix.deadline import PER_FILE, end_of
from fabric_fix.prefilter import is_relevant
from fabric_fix.problem import Problem, os_reason
from fabric_fix.records import replace
from fabric_fix.streams import emit, read_input, say

if TYPE_CHECKING:
    from fabric_fix.discovery import Candidate
    from fabric_fix.engine import FileResult, Job
    from fabric_fix.report import Entry
    from fabric_fix.rule import Rule

STDIN = "<stdin>"
"""What reports call standard input that was given no name."""


class Mode(enum.Enum):
    """What is done with the fixes."""

    FIX = enum.auto()
    CHECK = enum.auto()
    DIFF = enum.auto()


class Run:
    """Collects what the files give and shows it; standard output carries code, patch or machine format only."""

    def __init__(self, mode: Mode, command_line: Settings) -> None:
        self._mode = mode
        self._configs = Configs(command_line)
        self._problems: list[Problem] = []
        self._entries: list[Entry] = []
        self._patched = 0
        self._shown = command_line
        try:
            self._shown = self._configs.at(os.getcwd())
        except ConfigError as error:
            self._problems.append(error.problem)
        self._ends = end_of(self._shown.total_timeout or 0)

    def files(self, paths: Sequence[str]) -> int:
        """Handle files and folders; the exit status."""
        from fabric_fix.discovery import Discovery

        discovery = Discovery(self._configs)
        candidates = discovery.find(paths)
        self._problems += [problem for problem in discovery.problems if problem not in self._problems]
        self._remark(discovery.notes)
        analysed = 0
        for result in self._results(self._jobs(candidates)):
            self._take(result)
            analysed += 1
        self._remark([f"{len(candidates)} files, {analysed} of them analysed"])
        return self._finish()

    def standard_input(self, name: str | None) -> int:
        """Handle standard input as a file of that name; the exit status. In place means: to standard output."""
        try:
            data = read_input()
        except OSError as error:
            self._problems.append(Problem(name or STDIN, f"standard input cannot be read: {os_reason(error)}"))
            return self._finish()
        real = os.path.realpath(name) if name else os.path.join(os.getcwd(), STDIN)
        result = None
        job = self._stdin_job(name or STDIN, real, data)
        for result in self._results([job] if job else []):
            self._show_rewritten(result) if self._mode is Mode.FIX else self._show(result)
        if self._mode is Mode.FIX:
            emit(result.new if result else data)
        return self._finish(takes_stdout=self._mode is Mode.FIX)

    def _stdin_job(self, path: str, real: str, data: bytes) -> Job | None:
        from fabric_fix.discovery import Candidate

        try:
            candidate = Candidate(path, real, self._configs.at(os.path.dirname(real)), named=True)
        except ConfigError as error:
            if error.problem not in self._problems:
                self._problems.append(error.problem)
            return None
        return self._job(candidate, data)

    def _jobs(self, candidates: Sequence[Candidate]) -> Iterator[Job]:
        """The few files that matter, each once, whatever its names; the bytes of the others are dropped at once."""
        known: set[tuple[int, int]] = set()
        for candidate in candidates:
            try:
                with open(candidate.real, "rb", buffering=0) as stream:
                    data = stream.read()
            except OSError as error:
                self._problems.append(Problem(candidate.path, f"cannot be read: {os_reason(error)}"))
                continue
            job = self._job(candidate, data)
            if job is not None and not self._is_known(candidate, known):
                yield job

    def _is_known(self, candidate: Candidate, known: set[tuple[int, int]]) -> bool:
        """Whether a file with several hard links was met under another name."""
        try:
            status = os.stat(candidate.real)
        except OSError:
            return False  # it has just gone, which whoever writes it will say
        if status.st_nlink == 1:
            return False
        if (status.st_dev, status.st_ino) in known:
            self._remark([f"{candidate.path}: another name of a file that is looked at"])
            return True
        known.add((status.st_dev, status.st_ino))
        return False

    def _job(self, candidate: Candidate, data: bytes) -> Job | None:
        if not is_relevant(data):
            if candidate.named and (b"\0" in data or not candidate.path.endswith((".py", ".pyw", ".pyi"))):
                self._refuse_unless_python(candidate, data)
            return None
        if reason := candidate.left_out():
            self._remark([f"{candidate.path}: {reason}"])
            return None
        from fabric_fix.engine import Job
        from fabric_fix.ignoring import project_root

        settings, root = candidate.settings, project_root(os.path.dirname(candidate.real))
        return Job(
            candidate.path,
            candidate.real,
            data,
            self._rules(settings),
            settings.strategy or (),
            root,
            bool(settings.unsafe_fixes),
            self._mode is Mode.CHECK,
            PER_FILE if settings.timeout is None else settings.timeout,
            self._shown.total_timeout or 0,
            self._ends,
        )

    def _refuse_unless_python(self, candidate: Candidate, data: bytes) -> None:
        """A named file may end in anything; one that is no Python at all was named by mistake."""
        if candidate.path != STDIN and (problem := python_problem(candidate.path, data)) and not candidate.left_out():
            self._problems.append(problem)

    def _rules(self, settings: Settings) -> tuple[type[Rule], ...]:
        from fabric_fix.registry import all_rules, select

        return select(all_rules(), settings.select, settings.ignore or ())

    def _results(self, jobs: Iterable[Job]) -> Iterator[FileResult]:
        """Nothing is loaded for the analysis before there is something to analyse."""
        coming = iter(jobs)
        first = next(coming, None)
        if first is not None:
            from fabric_fix.workers import examine_all

            yield from examine_all(chain((first,), coming))

    def _take(self, result: FileResult) -> None:
        """Write a file, if that is what the run is for, and show the result."""
        if self._mode is Mode.FIX and result.new != result.original:
            from fabric_fix.writing import write

            problem = write(result.path, result.real, result.original, result.new)
            if problem is None:
                self._show_rewritten(result)
                return
            result = replace(result, problems=(*result.problems, problem))
        self._show(result)

    def _show_rewritten(self, result: FileResult) -> None:
        from fabric_fix.report import mark_written

        self._show(mark_written(result), written=True)

    def _show(self, result: FileResult, written: bool = False) -> None:
        from fabric_fix.report import entries_of

        self._problems += result.problems
        self._entries += entries_of(result, written)
        if self._mode is Mode.DIFF:
            from fabric_fix.diffing import patch_of

            emit(patch_of(result, self._patched))
            if result.new != result.original and os.path.relpath(result.real).startswith(os.pardir):
                say(f"{result.path}: outside of the working directory, where git apply does not take a patch")
            self._patched += len(result.fixes)

    def _finish(self, takes_stdout: bool = False) -> int:
        """Print the report and give the exit status."""
        self._report(takes_stdout or self._mode is Mode.DIFF)
        for problem in self._problems:
            say(f"error: {problem}")
        if self._problems:
            return 2
        return 1 if self._entries else 0

    def _report(self, stdout_is_taken: bool) -> None:
        """The findings in their format: machine formats on standard output unless code or a patch is there."""
        form = self._shown.output_format or "text"
        if form == "text":
            if not self._shown.quiet:
                self._report_text()
            return
        from fabric_fix import report

        lines = [report.json(self._entries)] if form == "json" else list(report.concise(self._entries))
        data = "".join(line + "\n" for line in lines)
        if stdout_is_taken:
            for line in data.split("\n")[:-1]:
                say(line)
        else:
            emit(data.encode("utf-8", "surrogateescape"))

    def _report_text(self) -> None:
        if not self._entries:
            if not self._problems:
                say("Nothing found")
            return
        from fabric_fix import report

        for line in report.text(self._entries):
            say(line)
        for line in report.summary(self._entries, self._mode is Mode.DIFF):
            say(line)

    def _remark(self, notes: Sequence[str]) -> None:
        if self._shown.verbose:
            for note in sorted(notes):
                say(note)


def python_problem(path: str, data: bytes) -> Problem | None:
    """Why a file is no Python source, or None when it is."""
    import ast

    from fabric_fix.source import decode

    source = decode(path, data)
    if isinstance(source, Problem):
        return source
    try:
        ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Problem(path, f"not Python source: {error}")
    return None
