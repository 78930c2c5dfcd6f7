"""Many files, several processes, one order; and a process that dies."""

from __future__ import annotations

import os
import sys

import pytest

from fabric_fix import workers
from fabric_fix.engine import FileResult, Job

JOBS = [Job(f"{n}.py", f"/{n}.py", b"x = 1\n" * 10, ()) for n in range(20)]


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(workers, "_processors", lambda: 2)


@pytest.mark.usefixtures("two_processes")
def test_results_come_in_the_order_of_the_jobs() -> None:
    results = list(workers.examine_all(JOBS))
    assert [result.path for result in results] == [job.path for job in JOBS]
    assert all(result.problems == () and result.original == b"x = 1\n" * 10 for result in results)


def die_of_one(job: Job) -> FileResult:
    if job.path == "7.py":
        os._exit(139)
    return FileResult(job.path, job.real, job.data, job.data)


@pytest.mark.skipif(sys.platform != "linux", reason="the replacement reaches forked processes only")
@pytest.mark.usefixtures("two_processes")
def test_process_that_dies_costs_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "examine", die_of_one)
    results = list(workers.examine_all(JOBS))
    assert [result.path for result in results] == [job.path for job in JOBS]
    assert [result.path for result in results if result.problems] == ["7.py"]


def test_few_files_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pool(_processes: int) -> None:
        raise AssertionError("a pool was started")

    monkeypatch.setattr(workers, "_pool", no_pool)
    assert len(list(workers.examine_all(JOBS))) == 20
