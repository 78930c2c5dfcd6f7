"""The files of a run as parts of their projects: each is examined with the programs that use it.

First every file is looked at by itself, as a program that may call others of its project. What that shows of these
others decides which of them are examined again, together with the programs that use them. The other way round, a file
that is named alone is looked at with all programs of its project that lead to it, so that it makes no difference what
else is named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fabric_fix.records import replace

if TYPE_CHECKING:
    from fabric_fix.engine import FileResult, Job
    from fabric_fix.surroundings import ProgramFile

MAX_PASSES = 4
"""Times that files are examined beside what the others become."""


class Whole:
    """Examines jobs, each with what its project has around it."""

    def __init__(
        self,
        examine: Callable[[Iterable[Job]], Iterable[FileResult]],
        context: Callable[[str], Sequence[ProgramFile]],
    ) -> None:
        """`context` gives the files of a project that can be programs, by its root, those of the run among them."""
        self._examine = examine
        self._context = context

    def results(self, jobs: Iterable[Job]) -> list[FileResult]:
        """The results of the jobs, in their order."""
        kept: list[Job] = []
        results = list(self._examine(_noted(jobs, kept)))
        results, linked = self._with_users(kept, results)
        beside: dict[str, bytes] = {}
        for _ in range(MAX_PASSES):
            changed = {one.real: one.new for one in results if one.new != one.original and one.real in linked}
            if changed == beside:
                return results
            beside = changed
            again = [_beside(job, beside) for job in kept]
            before = results
            results, linked = self._with_users(again, list(self._examine(again)))
        return [_unsettled(one, other) for one, other in zip(results, before, strict=True)]

    def _with_users(self, jobs: Sequence[Job], results: list[FileResult]) -> tuple[list[FileResult], set[str]]:
        """The results, with those done again that other files have a say in; and the files that are tied to others."""
        places = {job.real: number for number, job in enumerate(jobs)}
        users: dict[str, list[str]] = {}
        flagged = {job.real for job, result in zip(jobs, results, strict=True) if result.outcomes}
        linked: set[str] = set()
        for result in [*results, *self._visits(jobs)]:
            for path, found in result.visited:
                linked |= {path, result.real}
                if path in places and _may_speak_for(result.real, path, jobs[places[path]].around.root):
                    users.setdefault(path, []).append(result.real)
                    if found:
                        flagged.add(path)
        numbers = sorted(places[path] for path in users if path in flagged)
        again = [
            replace(jobs[n], around=replace(jobs[n].around, importers=tuple(sorted(users[jobs[n].real]))))
            for n in numbers
        ]
        for number, result in zip(numbers, self._examine(again) if again else (), strict=True):
            results[number] = replace(result, visited=results[number].visited)
        return results, linked

    def _visits(self, jobs: Sequence[Job]) -> list[FileResult]:
        """What the programs call that are not examined themselves, and lead to files that are."""
        found: list[Job] = []
        by_root: dict[str, list[Job]] = {}
        for job in jobs:
            if job.around.root is not None:
                by_root.setdefault(job.around.root, []).append(job)
        for root, targets in by_root.items():
            named = {job.real for job in targets}
            others = [file for file in self._context(root) if file.real not in named]
            if others:
                found += _leading(root, named, others, targets[0])
        return list(self._examine(found)) if found else []


def _leading(root: str, targets: set[str], others: Sequence[ProgramFile], like: Job) -> list[Job]:
    """The programs among some files that lead to the targets by their imports."""
    from fabric_fix.analysis.modules import Modules

    modules = Modules(os.path.realpath(root), dict(like.around.beside))
    by_path = {file.real: file for file in others}
    leading = {path for target in targets for path in modules.importers(target, by_path)}
    around = replace(like.around, importers=())
    return [replace(like, **by_path[path]._asdict(), around=around, visit_only=True) for path in sorted(leading)]


def _may_speak_for(user: str, path: str, root: str | None) -> bool:
    """Whether a program says how a file is used; a test does so of tests only."""
    from fabric_fix.analysis.modules import is_test

    base = root or "/"
    return user != path and (is_test(os.path.relpath(path, base)) or not is_test(os.path.relpath(user, base)))


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
