"""Examining many files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabric_fix.engine import FileResult, Job, examine, run_deep


def examine_all(jobs: Sequence[Job]) -> Iterator[FileResult]:
    """The results of the jobs, in their order."""
    results: list[FileResult] = []
    run_deep(lambda: results.extend(map(examine, jobs)))
    return iter(results)
