"""Examining many files: in this process when they are few, else in one process for each processor."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from fabric_fix.deep import run_deep
from fabric_fix.engine import FileResult, Job, examine, untouched
from fabric_fix.problem import Problem
from fabric_fix.records import replace

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

WORTH_A_PROCESS = 50_000
"""Bytes of source for each process, below which starting it costs more time than it saves."""
MOST_PROCESSES = 16


def examine_all(jobs: Iterable[Job]) -> Iterator[FileResult]:
    """The results of the jobs, in their order.

    All jobs are taken before the first result is given, so that they can come from files that are read meanwhile, and
    no file is written before all are read.
    """
    few, size, processes = list[Job](), 0, min(_processors(), MOST_PROCESSES)
    coming = iter(jobs)
    for job in coming:
        few.append(job)
        size += len(job.data)
        if processes > 1 and size >= processes * WORTH_A_PROCESS and len(few) > 1:
            return _in_processes(few, coming, processes)
    processes = min(processes, size // WORTH_A_PROCESS, len(few))
    return _in_processes(few, (), processes) if processes > 1 else map(examine_deep, few)


def examine_deep(job: Job) -> FileResult:
    """Examine one file on a stack that deeply nested sources need."""
    results: list[FileResult] = []
    run_deep(lambda: results.append(examine(job)))
    return results[0]


def _processors() -> int:
    """Processors that this process may use; a container's limit counts, the machine's number does not."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pool(processes: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(processes)


def _in_processes(first: list[Job], coming: Iterable[Job], processes: int) -> Iterator[FileResult]:
    """Share the jobs out. When a process dies, those not done are done one by one, and it costs the file it died of."""
    if sys.platform == "linux":  # safe here, as this process has no other thread
        from fabric_fix.forks import Forks

        for job, result in Forks(processes, examine).results(chain(first, coming)):
            yield result or _died(job)
        return
    from concurrent.futures.process import BrokenProcessPool

    jobs: list[Job] = []
    futures: list[Future[FileResult]] = []
    done = 0
    pending = chain(first, coming)
    with _pool(processes) as pool:
        with contextlib.suppress(BrokenProcessPool):
            for job in pending:
                jobs.append(job)
                futures.append(pool.submit(examine_deep, job))
        jobs += pending
        with contextlib.suppress(BrokenProcessPool):
            for future in futures:
                yield future.result()
                done += 1
    for job in jobs[done:]:
        yield _alone(job)


def _alone(job: Job) -> FileResult:
    """Examine a file in a process of its own, which may die."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            return pool.submit(examine_deep, job).result()
        except BrokenProcessPool:
            return _died(job)


def _died(job: Job) -> FileResult:
    problem = Problem(job.path, "brought down the process that analysed it", 1, 1)
    return replace(untouched(job), problems=(problem,), transient=True)
