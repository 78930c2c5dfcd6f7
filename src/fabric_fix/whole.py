"""The files of a run as parts of their projects: each is examined with the programs that use it.

First every file is looked at by itself, as a program that may call others of its project. What that shows of these
others decides which of them are examined again, together with the programs that use them. The other way round, a file
that is named alone is looked at with all programs of its project that lead to it, so that it makes no difference what
else is named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING

from fabric_fix.engine import FileResult, Job, untouched
from fabric_fix.prefilter import makes_fabric, names_fabric
from fabric_fix.records import replace

if TYPE_CHECKING:
    from fabric_fix.surroundings import ProgramFile

MAX_STEPS = 8
"""Imports from a file that names nothing of Fabric to one that something is found in."""
MAX_PASSES = 4
"""Times that files are examined beside what the others become."""


class Whole:
    """Examines jobs, each with what its project has around it."""

    def __init__(
        self,
        examine: Callable[[Iterable[Job]], Iterable[FileResult]],
        context: Callable[[str], Sequence[ProgramFile]],
        mentioning: Callable[[str, frozenset[str], Sequence[str]], Sequence[ProgramFile]],
        unasked: Callable[[str], Job | None],
    ) -> None:
        """What is around the jobs comes from three functions.

        `context` gives the files of a project that use Fabric, by its root; `mentioning` gives those in which one of
        some names stands, whatever they use; `unasked` gives the job of a file that the run was to look at, and that
        does not name Fabric itself.
        """
        self._examine = examine
        self._context = context
        self._mentioning = mentioning
        self._unasked = unasked
        self._flagged: set[str] = set()
        """The real paths of files that something may be found in, as the others were at first or have become."""
        self._makers: dict[str, frozenset[str]] = {}

    def results(self, jobs: Iterable[Job]) -> list[FileResult]:
        """The results of the jobs, in their order; then those of files that only others make matter."""
        kept: list[Job] = []
        results, visits = self._looked_at(_noted(jobs, kept), kept)
        linked = self._with_users(kept, results, visits)
        beside: dict[str, bytes] = {}
        for _ in range(MAX_PASSES):
            changed = {one.real: one.new for one in results if one.new != one.original and one.real in linked}
            if changed == beside:
                return results
            beside, before = changed, results
            again = [_beside(job, beside) for job in kept]
            results, visits = self._looked_at(again, again)
            linked = self._with_users(again, results, visits)
        return [_unsettled(one, other) for one, other in zip(results, before, strict=True)]

    def _looked_at(self, jobs: Iterable[Job], kept: list[Job]) -> tuple[list[FileResult], list[FileResult]]:
        """The results of jobs, which are in `kept` once all are taken, and those of the programs around them.

        Which programs these are is found out while the jobs are being done.
        """
        found = list(self._examine(chain(jobs, self._visits(kept))))
        results = [self._opened(job, result) for job, result in zip(kept, found, strict=False)]
        return results, found[len(kept) :]

    def _opened(self, job: Job, result: FileResult) -> FileResult:
        """A result that depends on who uses the file, when it does not name Fabric and its project makes one."""
        root = job.around.root
        if root is None or job.around.is_shown or names_fabric(job.data):
            return result
        return replace(result, is_open=bool(self._makers_in(root)))

    def _makers_in(self, root: str) -> frozenset[str]:
        """The files of a project that make a Fabric, by their real paths."""
        if root not in self._makers:
            self._makers[root] = frozenset(file.real for file in self._context(root) if makes_fabric(file.data))
        return self._makers[root]

    def _with_users(self, jobs: list[Job], results: list[FileResult], around: list[FileResult]) -> set[str]:
        """Examine those again that other files have a say in; gives the files that are tied to others."""
        self._flagged |= {job.real for job, result in zip(jobs, results, strict=True) if result.outcomes}
        visits = [*results, *around]
        self._flagged |= {path for result in visits for path, found in result.visited if found}
        taken = self._take_unasked(jobs, results, visits) | _show(jobs, around)
        others = self._visits_of_others(jobs, {path for result in visits for path, _ in result.visited}, results)
        self._flagged |= {path for result in others for path, found in result.visited if found}
        taken |= self._take_unasked(jobs, results, others)
        visits += others
        places = {job.real: number for number, job in enumerate(jobs)}
        users: dict[str, list[str]] = {}
        linked: set[str] = set()
        for result in visits:
            for path, _ in result.visited:
                linked |= {path, result.real}
                if path in places and _may_speak_for(result.real, path, jobs[places[path]].around.root):
                    users.setdefault(path, []).append(result.real)
        numbers = sorted(places[path] for path in users.keys() | taken if path in self._flagged)
        again = [_with_importers(jobs[number], users.get(jobs[number].real, ())) for number in numbers]
        for number, result in zip(numbers, self._examine(again) if again else (), strict=True):
            results[number] = replace(result, visited=results[number].visited)
        return linked

    def _take_unasked(self, jobs: list[Job], results: list[FileResult], visits: Sequence[FileResult]) -> set[str]:
        """Add the files that do not matter by themselves, and in which something may be wrong; gives their paths."""
        known, taken = {job.real for job in jobs}, set[str]()
        for path in sorted({path for result in visits for path, found in result.visited if found} - known):
            job = self._unasked(path)
            if job is not None:
                around = replace(job.around, is_shown=True)
                jobs.append(_beside(replace(job, around=around), dict(jobs[0].around.beside)))
                results.append(untouched(job))
                taken.add(path)
        return taken

    def _visits(self, jobs: Sequence[Job]) -> Iterator[Job]:
        """Visits to the programs that are not examined themselves, and lead to files that are."""
        for root, targets in _by_root(jobs).items():
            named = {job.real for job in targets}
            others = [file for file in self._context(root) if file.real not in named]
            if others:
                yield from _visits_to(named, others, targets[0])
            yield from self._silent(root, targets)

    def _silent(self, root: str, jobs: Sequence[Job]) -> Iterator[Job]:
        """Visits to jobs that do not name Fabric, and lead to a file that makes one."""
        silent = [job for job in jobs if not names_fabric(job.data) and not job.around.is_shown]
        makers = self._makers_in(root) if silent else frozenset[str]()
        for job in silent if makers else ():
            yield replace(job, around=replace(job.around, targets=makers), visit_only=True)

    def _visits_of_others(
        self, jobs: Sequence[Job], visited: set[str], results: Sequence[FileResult]
    ) -> list[FileResult]:
        """What the files call that do not name Fabric, and lead to one that something is or may be found in."""
        found: list[Job] = []
        wanted = self._flagged | {result.real for result in results if result.is_open} - visited
        for root, targets in _by_root(job for job in jobs if job.real in wanted).items():
            known = {job.real for job in jobs} | {file.real for file in self._context(root)}
            others = [file for file in self._mentioned(root, targets) if file.real not in known]
            if others:
                found += _visits_to({job.real for job in targets}, others, targets[0])
        return list(self._examine(found)) if found else []

    def _mentioned(self, root: str, targets: Sequence[Job]) -> list[ProgramFile]:
        """The files of a project that name one of some files in an import, or one that does, and so on."""
        found: dict[str, ProgramFile] = {}
        names = frozenset(name for job in targets for name in _names(job.real))
        places = [job.real for job in targets]
        for _ in range(MAX_STEPS):
            files = {file.real: file for file in self._mentioning(root, names, places) if file.real not in found}
            more = frozenset(name for path in files for name in _names(path)) - names
            found.update(files)
            places += files
            names |= more
            if not more:
                break
        return list(found.values())


def _show(jobs: list[Job], visits: Sequence[FileResult]) -> set[str]:
    """Mark the jobs that a visit of their own has shown something in, whatever words they have; gives their paths."""
    found = {result.real for result in visits if (result.real, True) in result.visited}
    for number, job in enumerate(jobs):
        if job.real in found:
            jobs[number] = replace(job, around=replace(job.around, is_shown=True))
    return found & {job.real for job in jobs}


def _by_root(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        if job.around.root is not None:
            found.setdefault(job.around.root, []).append(job)
    return found


def _names(path: str) -> list[str]:
    """What an import of a file has to say: its name, or that of its package, which may pass its names on."""
    folder, file = os.path.split(path)
    name = file.removesuffix(".py")
    package = [os.path.basename(folder)] if os.path.isfile(os.path.join(folder, "__init__.py")) else []
    return package if name == "__init__" else [name, *package]


def _with_importers(job: Job, users: Sequence[str]) -> Job:
    return replace(job, around=replace(job.around, importers=tuple(sorted(set(users)))))


def _visits_to(targets: Set[str], others: Sequence[ProgramFile], like: Job) -> list[Job]:
    """Visits to those programs among some files that lead to the targets; which these are, the visit finds out."""
    around = replace(like.around, importers=(), targets=frozenset(targets))
    in_order = sorted(others, key=lambda file: file.real)
    return [replace(like, **file._asdict(), around=around, visit_only=True) for file in in_order]


def _may_speak_for(user: str, path: str, root: str | None) -> bool:
    """Whether a program says how a file is used; a test does so of tests only."""
    from fabric_fix.analysis.modules import is_test

    return user != path and (is_test(path, root or "") or not is_test(user, root or ""))


def _noted(jobs: Iterable[Job], kept: list[Job]) -> Iterable[Job]:
    for job in jobs:
        kept.append(job)
        yield job


def _beside(job: Job, changed: dict[str, bytes]) -> Job:
    others = tuple(sorted((path, data) for path, data in changed.items() if path != job.real))
    return replace(job, around=replace(job.around, beside=others))


def _unsettled(result: FileResult, before: FileResult) -> FileResult:
    """A file as it was, when what it becomes depends on what the others become, which depends on it."""
    if result.new == before.new:
        return result
    from fabric_fix.problem import Problem

    message = "its fixes and those of other files did not settle; nothing was changed: run on it alone"
    return replace(
        before,
        new=before.original,
        new_text=before.text,
        outcomes=(),
        fixes=(),
        problems=(Problem(before.path, message),),
    )
