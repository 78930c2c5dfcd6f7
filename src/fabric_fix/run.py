"""One run of the tool: which files, what is done with their results, what goes to which stream."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from fabric_fix.config import ConfigError, Configs, Settings
from fabric_fix.deadline import PER_FILE, end_of
from fabric_fix.folders import is_below, is_within
from fabric_fix.prefilter import can_be_wrong, sorted_out
from fabric_fix.problem import Problem, os_reason
from fabric_fix.reading import content, read_file
from fabric_fix.records import replace
from fabric_fix.streams import emit, read_input, say

if TYPE_CHECKING:
    from fabric_fix.analysis.modules import Modules
    from fabric_fix.discovery import Candidate
    from fabric_fix.engine import FileResult, Job
    from fabric_fix.recall import Recall
    from fabric_fix.report import Entry
    from fabric_fix.rule import Rule
    from fabric_fix.surroundings import Folders, ProgramFile

STDIN = "<stdin>"
"""What reports call standard input that was given no name."""
MANY = 200
"""Files, from which on it is faster to ask an index which of them matter than to read them all."""


class Mode(enum.Enum):
    """What is done with the fixes."""

    FIX = enum.auto()
    CHECK = enum.auto()
    DIFF = enum.auto()


class Request(NamedTuple):
    """A file that matters, before anything is loaded that its analysis needs."""

    candidate: Candidate
    data: bytes
    project_root: str


class Run:
    """Collects what the files give and shows it; standard output carries code, patch or machine format only."""

    def __init__(self, mode: Mode, command_line: Settings) -> None:
        self._mode = mode
        self._configs = Configs(command_line)
        self._problems: list[Problem] = []
        self._entries: list[Entry] = []
        self._patches: list[FileResult] = []
        """The files that the patch is of."""
        self._uncovered = 0
        self._analysed = 0
        self._recall: Recall | None = None
        self._keeps = not command_line.no_cache
        self._seen: list[tuple[Candidate, bytes]] = []
        """The files that can matter, with their bytes, wherever they were met."""
        self._walked: list[str] = []
        self._asked: dict[str, Candidate] = {}
        """The files that the run is to look at, by their real paths."""
        self._requested: set[str] = set()
        """Those of them that matter by themselves, whether they are known from an earlier run or not."""
        self._candidates: dict[str, Candidate] = {}
        """These, and those around them that were looked for."""
        self._folders: tuple[int, Folders] | None = None
        self._projects: dict[str, list[ProgramFile]] = {}
        self._modules: dict[str, Modules] = {}
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
        self._asked = {candidate.real: candidate for candidate in candidates}
        self._candidates = dict(self._asked)
        self._walked = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
        for result in self._results(self._requests(candidates)):
            self._take(result)
        counts = f"{len(candidates)} file{'s' * (len(candidates) != 1)}, {self._analysed} of them analysed"
        if self._recall is not None:
            self._remark(self._recall.close())
            counts += f", {self._recall.known} known from earlier runs" if self._recall.known else ""
        self._remark([counts])
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
        self._keeps = False
        request = self._stdin_request(name or STDIN, real, data)
        for result in self._results([request] if request else []):
            self._show_rewritten(result) if self._mode is Mode.FIX else self._show(result)
        if self._mode is Mode.FIX:
            emit(result.new if result else data)
        return self._finish(takes_stdout=self._mode is Mode.FIX)

    def _stdin_request(self, path: str, real: str, data: bytes) -> Request | None:
        from fabric_fix.discovery import Candidate

        try:
            candidate = Candidate(path, real, self._configs.at(os.path.dirname(real)), named=True)
        except ConfigError as error:
            if error.problem not in self._problems:
                self._problems.append(error.problem)
            return None
        return self._request(candidate, data)

    def _requests(self, candidates: Sequence[Candidate]) -> Iterator[Request]:
        """The few files that matter, each once, whatever its names; the bytes of the others are dropped at once."""
        known: set[tuple[int, int]] = set()
        index = self._memory() if self._keeps and len(candidates) >= MANY else None
        for candidate in candidates:
            if index is not None and not candidate.named and index.is_irrelevant(candidate):
                continue
            try:
                status = os.stat(candidate.real) if index is not None else None
                data = read_file(candidate.real)
            except OSError as error:
                self._problems.append(Problem(candidate.path, f"cannot be read: {os_reason(error)}"))
                continue
            request = self._request(candidate, data, status)
            if request is not None and not self._is_known(candidate, known):
                yield request

    def _memory(self) -> Recall:
        """What earlier runs found out."""
        if self._recall is None:
            from fabric_fix.recall import Recall

            self._recall = Recall(self._mode is Mode.CHECK, self._users_digest, self._project_files)
        return self._recall

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

    def _request(self, candidate: Candidate, data: bytes, status: os.stat_result | None = None) -> Request | None:
        relevant, decides = sorted_out(data)
        relevant = relevant or (candidate.named and can_be_wrong(data))
        if relevant or decides:
            self._seen.append((candidate, data))
        if not relevant:
            if status is not None and not decides:
                self._memory().turned_down(candidate, status)
            if candidate.named and (b"\0" in data or not candidate.path.endswith((".py", ".pyw", ".pyi"))):
                self._refuse_unless_python(candidate, data)
            return None
        if reason := candidate.left_out():
            self._remark([f"{candidate.path}: {reason}"])
            return None
        from fabric_fix.ignoring import project_root

        self._requested.add(candidate.real)
        return Request(candidate, data, project_root(os.path.dirname(candidate.real)))

    def _job(self, request: Request) -> Job:
        from fabric_fix.check import Surroundings
        from fabric_fix.engine import Job

        settings = request.candidate.settings
        return Job(
            request.candidate.path,
            request.candidate.real,
            request.data,
            self._rules(settings),
            settings.strategy or (),
            Surroundings(request.project_root, is_kept=self._keeps),
            bool(settings.unsafe_fixes),
            self._mode is Mode.CHECK,
            timeout=PER_FILE if settings.timeout is None else settings.timeout,
            total_timeout=self._shown.total_timeout or 0,
            ends=self._ends,
        )

    def _refuse_unless_python(self, candidate: Candidate, data: bytes) -> None:
        """A named file may end in anything; one that is no Python at all was named by mistake."""
        if candidate.path != STDIN and (problem := python_problem(candidate.path, data)) and not candidate.left_out():
            self._problems.append(problem)

    def _rules(self, settings: Settings) -> tuple[type[Rule], ...]:
        from fabric_fix.registry import all_rules, select

        return select(all_rules(), settings.select, settings.ignore or ())

    def _results(self, requests: Iterable[Request]) -> Iterator[FileResult]:
        """Nothing is loaded for the cache before there is something to look up."""
        coming = iter(requests)
        first = next(coming, None)
        if first is not None:
            requests = chain((first,), coming)
            yield from self._memory().results(requests, self._examined) if self._keeps else self._examined(requests)

    def _examined(self, requests: Iterable[Request]) -> Iterator[FileResult]:
        """Nothing is loaded for the analysis before there is something to analyse."""
        coming = map(self._job, requests)
        first = next(coming, None)
        if first is not None:
            from fabric_fix.check import forget
            from fabric_fix.whole import Whole
            from fabric_fix.workers import examine_all

            forget()
            whole = Whole(examine_all, self._programs, self._mentioning, self._unasked)
            for result in whole.results(chain((first,), coming)):
                self._analysed += 1
                yield result

    def _programs(self, root: str) -> list[ProgramFile]:
        """The files of a project that can be programs, named or not; what cannot be read of them is unknown."""
        from fabric_fix.surroundings import programs, read

        if root not in self._projects:
            if not self._covers(root):
                from fabric_fix.discovery import Discovery

                around = Discovery(self._configs).find([root])
                self._candidates.update((one.real, one) for one in around)
                self._seen += read(around)
            self._projects[root] = programs(root, self._seen, self._by_folder())
        return self._projects[root]

    def _by_folder(self) -> Folders:
        """The files of the run, and those around them that were looked for, by their folders."""
        from fabric_fix.surroundings import Folders

        if self._folders is None or self._folders[0] != len(self._candidates):
            self._folders = len(self._candidates), Folders(self._candidates.values())
        return self._folders[1]

    def _mentioning(self, root: str, names: frozenset[str], places: Sequence[str]) -> list[ProgramFile]:
        """The files of a project that import something of one of these names."""
        from fabric_fix.surroundings import mentioning

        if not self._covers(root):
            self._programs(root)
        return mentioning(root, self._by_folder(), names, places)

    def _unasked(self, real: str) -> Job | None:
        """The job of a file that the run came by, and that does not name Fabric."""
        from fabric_fix.ignoring import project_root

        candidate = self._asked.get(real)
        if candidate is None or real in self._requested or candidate.left_out():
            return None
        data = content(real)
        if data is None:
            return None
        return self._job(Request(candidate, data, project_root(os.path.dirname(real))))

    def _covers(self, root: str) -> bool:
        """Whether the run walks a whole project."""
        return any(is_within(root, folder) for folder in self._walked)

    def _users_digest(self, request: Request) -> str:
        """Stands for the programs of a file's project that lead to it, as they are."""
        from fabric_fix.analysis.modules import Modules
        from fabric_fix.digests import digest

        root = request.project_root
        by_path = {one.real: one.data for one in self._programs(root)}
        if root not in self._modules:
            self._modules[root] = Modules(os.path.realpath(root))
        users = self._modules[root].importers(request.candidate.real, by_path)
        return digest(*(part for path in users for part in (os.fsencode(path), b"\0", by_path[path])))

    def _project_files(self, root: str) -> list[str]:
        self._programs(root)
        return sorted(real for real in self._candidates if is_below(real, root))

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
        self._uncovered += result.uncovered
        self._entries += entries_of(result, written)
        if self._mode is Mode.DIFF and result.new != result.original:
            self._patches.append(result)

    def _emit_patch(self) -> None:
        """The patch of all files, with their names as they are in the folder that it is for."""
        from fabric_fix.diffing import base_of, patch_of

        base, number = base_of([result.real for result in self._patches]), 0
        for result in self._patches:
            emit(patch_of(result, number, base))
            number += len(result.fixes)
        if base != os.getcwd():
            import shlex

            say(f"The patch is for {base}, as not all files are in this folder: git -C {shlex.quote(base)} apply")

    def _finish(self, takes_stdout: bool = False) -> int:
        """Print patch and report and give the exit status."""
        if self._patches:
            self._emit_patch()
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
        for line in report.summary(self._entries, self._mode is Mode.DIFF, self._uncovered):
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
