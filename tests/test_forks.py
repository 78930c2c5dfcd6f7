"""Forked workers: order, processes that die, and messages that are longer than a pipe."""

from __future__ import annotations

import os
import sys

import pytest

from fabric_fix.engine import FileResult, Job

if sys.platform != "linux":
    pytest.skip("processes are forked on Linux only", allow_module_level=True)

from fabric_fix.forks import Forks
from fabric_fix.records import replace

SIZES = [10, 300_000, 10, 10, 2_000_000, 70_000, 70_000, *range(40)]
JOBS = [Job(f"{n}.py", f"/{n}.py", bytes(size), ()) for n, size in enumerate(SIZES)]


def doubled(job: Job) -> FileResult:
    return FileResult(job.path, job.real, job.data, job.data * 2 or b"x")


def unchanged(job: Job) -> FileResult:
    return FileResult(job.path, job.real, job.data, job.data)


def named_by_process(job: Job) -> FileResult:
    return FileResult(job.path, job.real, job.data, str(os.getpid()).encode())


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_large_messages_go_both_ways_and_keep_their_order(processes: int) -> None:
    found = list(Forks(processes, doubled).results(JOBS))
    assert [job for job, _ in found] == JOBS
    assert [result.new for _, result in found if result] == [job.data * 2 or b"x" for job in JOBS]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_comes_with_a_small_file_can_be_more_than_a_pipe_holds(processes: int) -> None:
    jobs = [Job(f"{n}.py", f"/{n}{'d' * 200_000}.py", b"x", ()) for n in range(10)]
    found = list(Forks(processes, doubled).results(jobs))
    assert [result and result.real for _, result in found] == [job.real for job in jobs]


def test_a_result_that_says_nothing_is_the_jobs_own() -> None:
    found = list(Forks(2, unchanged).results(JOBS))
    assert all(result is not None and result.new == job.data and result.path == job.path for job, result in found)


def test_what_a_result_depends_on_is_handed_on_with_it() -> None:
    consulted = (("/requirements.txt", "12ab"),)

    def examine(job: Job) -> FileResult:
        return replace(unchanged(job) if len(job.data) == 10 else doubled(job), consulted=consulted)

    found = list(Forks(2, examine).results(JOBS[:4]))
    assert [result and (result.new == job.data, result.consulted) for job, result in found] == [
        (len(job.data) == 10, consulted) for job in JOBS[:4]
    ]


@pytest.mark.parametrize("deadly", [{0}, {7}, {8, 9}, {46}, set(range(20))], ids=str)
def test_a_process_that_dies_costs_what_it_died_of(deadly: set[int]) -> None:
    names = {f"{n}.py" for n in deadly}

    def examine(job: Job) -> FileResult:
        if job.path in names:
            os._exit(139)
        return doubled(job)

    found = list(Forks(2, examine).results(JOBS))
    assert [job for job, _ in found] == JOBS
    assert {job.path for job, result in found if result is None} == names


def test_leaving_early_leaves_no_process_behind() -> None:
    running = Forks(3, named_by_process).results(JOBS)
    _, result = next(running)
    running.close()
    assert result is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.new), 0)
