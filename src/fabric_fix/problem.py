"""What could not be handled, as a value: the report prints it, and it makes exit status 2."""

from __future__ import annotations

from fabric_fix.records import Record


class Problem(Record):
    """One thing that went wrong with a path, an option or a file of settings."""

    subject: str
    """What it is about: a path as the user spelled it, or an option."""
    message: str
    line: int | None = None
    """Line in the file, from 1; None when it is about the whole."""
    column: int | None = None
    """Column in characters, from 1; None when only the line is known, or nothing."""

    def __str__(self) -> str:
        place = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        return f"{self.subject}{place}: {self.message}"


class RegistryError(Exception):
    """The rules themselves are broken: one does not load, or two claim one code; ends the run."""


def os_reason(error: OSError) -> str:
    """The system's own words for an error, without the number and the path: "Permission denied"."""
    return error.strerror or str(error)
