"""How long a run and each of its files may take, by the clock.

The steps of the analysis are counted, which ends it at the same place on every machine; the clock is for what no step
counts: trials of fixes, large edits, a machine that stands still.
"""

from __future__ import annotations

import time

PER_FILE = 20.0
"""Seconds for one file where nobody says otherwise.

All the steps that the analysis allows itself take 2 s at most on a machine of 2023, so only ten times as slow a one, or
a file of hundreds of findings, comes near: what is found does not depend on how busy a machine is.
"""


class UnfinishedError(Exception):
    """The look at a file ends before it is done, because the time is used up, say; the message says why."""

    def __init__(self, message: str, advice: str, line: int = 1) -> None:
        super().__init__(message)
        self.advice = advice
        """What the user can do."""
        self.line = line
        """Where the analysis was, in the text that it looked at."""


class Deadline:
    """The moment at which the work on one file ends."""

    def __init__(self, seconds: float = 0, total: float = 0, until: float | None = None) -> None:
        """From now on, `seconds` (0 for no limit); not beyond `until`, the end of a run of `total` seconds."""
        self._seconds, self._total, self._until = seconds, total, until
        ends = [time.monotonic() + seconds] if seconds else []
        ends += [until] if until is not None else []
        self._end = min(ends, default=float("inf"))

    def check(self, line: int = 1) -> None:
        """Raise UnfinishedError when it has passed."""
        now = time.monotonic()
        if now <= self._end:
            return
        if self._until is not None and now > self._until:
            advice = "give the run more with --total-timeout, or fewer files"
            raise UnfinishedError(f"the {self._total:g} s for the whole run are used up", advice, line)
        advice = "split the file into smaller ones, leave it out with --exclude, or give it more with --timeout"
        raise UnfinishedError(f"takes more than {self._seconds:g} s", advice, line)


NEVER = Deadline()
"""No limit."""


def end_of(total: float) -> float | None:
    """The end of a run that begins now and may take so many seconds; None for 0, which is no limit.

    On the clock that all processes of a machine share (`time.monotonic` counts from the start of the system).
    """
    return time.monotonic() + total if total else None
