"""Processes that are forked, each for as many files as it gets through.

`concurrent.futures` does the same everywhere, but takes longer to import than a small project takes to be analysed.
A worker has one job that it does and at most one that waits in its pipe, which is never more than the pipe holds: so
neither side ever waits for the other to read.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import NoReturn

from fabric_fix.deep import run_deep
from fabric_fix.engine import FileResult, Job, untouched
from fabric_fix.records import replace

AHEAD = 2
"""Jobs that a worker has at a time, the one that it does included."""
ROOM = 60_000
"""Bytes that a pipe of Linux surely holds (65,536), less those of the lengths."""


_SAID = ("consulted", "visited", "is_open", "transient")
"""What is sent of a result that leaves its file as it is, with nothing to tell of it."""


class Forks:
    """Some workers, and the jobs that they have."""

    def __init__(self, processes: int, examine: Callable[[Job], FileResult]) -> None:
        self._processes = processes
        self._examine = examine
        self._workers: list[_Worker] = []
        self._waiting: deque[tuple[int, Job]] = deque()
        self._results: dict[int, FileResult | None] = {}
        """By number; None for a job whose worker died of it."""
        self._messages: dict[int, bytes] = {}
        """By number: jobs that wait, as they are sent."""
        self._suspects: set[int] = set()
        """Jobs that a worker died over, which are tried once more by themselves."""

    def results(self, jobs: Iterable[Job]) -> Generator[tuple[Job, FileResult | None], None, None]:
        """Each job with its result, in their order; None where the process that did it died of it, twice.

        All jobs are taken before the first result is given.
        """
        taken: list[Job] = []
        try:
            for job in jobs:
                self._waiting.append((len(taken), job))
                taken.append(job)
                self._feed()
                self._collect(0)
            for number, job in enumerate(taken):
                while number not in self._results:
                    self._feed()
                    self._collect(None)
                yield job, self._results.pop(number)
        finally:
            for worker in self._workers:
                worker.close()
            for worker in self._workers:
                worker.end()

    def _feed(self) -> None:
        """Give the workers what they can take."""
        while self._waiting and len(self._workers) < self._processes:
            self._workers.append(_Worker(self._examine, self._workers))
            self._give(self._workers[-1])
        for worker in sorted(self._workers, key=lambda one: len(one.jobs)):
            while self._waiting and worker.takes(self._message()) and self._give(worker):
                pass

    def _message(self) -> bytes:
        """The next job as it is sent, which can be much more than its file: what surrounds that is with it."""
        number, job = self._waiting[0]
        if number not in self._messages:
            self._messages[number] = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        return self._messages[number]

    def _give(self, worker: _Worker) -> bool:
        number, job = self._waiting[0]
        alone = number in self._suspects
        if worker.jobs and (alone or worker.jobs[0][0] in self._suspects):
            return False
        message = self._message()
        self._waiting.popleft()
        del self._messages[number]
        worker.give(number, job, message)
        return True

    def _collect(self, timeout: float | None) -> None:
        """Take the results that are there; with None, wait for one."""
        busy = {worker.source: worker for worker in self._workers if worker.jobs}
        for source in select.select(list(busy), (), (), timeout)[0] if busy else ():
            worker = busy[source]
            try:
                number, result = worker.take()
            except (EOFError, OSError):
                self._bury(worker)
            else:
                self._results[number] = result

    def _bury(self, worker: _Worker) -> None:
        """A worker died: of its first job, if that is one that another one had died of, else nobody knows."""
        self._workers.remove(worker)
        worker.end()
        first, *others = worker.jobs
        self._waiting.extendleft(reversed(others))
        if first[0] in self._suspects:
            self._results[first[0]] = None
        else:
            self._suspects.add(first[0])
            self._waiting.appendleft(first)


class _Worker:
    """A process that does jobs until its pipe is closed."""

    def __init__(self, examine: Callable[[Job], FileResult], others: Iterable[_Worker]) -> None:
        jobs_read, self._sink = os.pipe()
        self.source, results_write = os.pipe()
        self.jobs: deque[tuple[int, Job]] = deque()
        self._closed = False
        self._process = os.fork()
        if not self._process:
            for other in others:  # or these would not see it when this process closes their pipes
                other.close()
            os.close(self._sink)
            os.close(self.source)
            _end_after(lambda: _serve(jobs_read, results_write, examine))
        os.close(jobs_read)
        os.close(results_write)

    def takes(self, message: bytes) -> bool:
        """Whether it does nothing, or has room for a job beside the one that it does."""
        return not self.jobs or (len(self.jobs) < AHEAD and len(message) < ROOM)

    def give(self, number: int, job: Job, message: bytes) -> None:
        """Send a job; a process that has died is noticed when its result is asked for."""
        self.jobs.append((number, job))
        with contextlib.suppress(BrokenPipeError):
            _send(self._sink, message)

    def take(self) -> tuple[int, FileResult]:
        """The result of its first job; EOFError when it died."""
        data = _receive(self.source)
        number, job = self.jobs.popleft() if data is not None else (0, None)
        if data is None or job is None:
            raise EOFError
        result = pickle.loads(data)
        if isinstance(result, tuple):  # the file stays as it is, and there is nothing to tell
            result = replace(untouched(job), **dict(zip(_SAID, result, strict=True)))
        return number, result

    def close(self) -> None:
        """Close this side of its pipes, which ends it once it has nothing to do."""
        if not self._closed:
            self._closed = True
            os.close(self._sink)
            os.close(self.source)

    def end(self) -> None:
        """End it, whatever it does, and wait for that."""
        self.close()
        with contextlib.suppress(OSError):
            if self.jobs:
                os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)


def _end_after(work: Callable[[], None]) -> NoReturn:
    """Do what a worker does, and end: it never comes back into the code that it was forked from."""
    status = 1
    try:
        run_deep(work)
        status = 0
    finally:
        os._exit(status)


def _serve(source: int, sink: int, examine: Callable[[Job], FileResult]) -> None:
    while (data := _receive(source)) is not None:
        result = examine(pickle.loads(data))
        said = tuple(getattr(result, name) for name in _SAID) if result.says_nothing else result
        _send(sink, pickle.dumps(said, pickle.HIGHEST_PROTOCOL))


def _send(sink: int, data: bytes) -> None:
    whole = memoryview(len(data).to_bytes(8, "little") + data)
    while whole:
        whole = whole[os.write(sink, whole) :]


def _receive(source: int) -> bytes | None:
    """The next message, or None at the end."""
    head = _read(source, 8)
    return None if head is None else _read(source, int.from_bytes(head, "little"))


def _read(source: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(source, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
