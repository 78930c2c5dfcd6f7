"""Putting a file's new bytes in the place of the ones that were read: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

from fabric_fix.problem import Problem, os_reason


def write(path: str, real: str, original: bytes, new: bytes) -> Problem | None:
    """Replace the content of `real` (links resolved) by `new`; a problem, and the file as it was, when that cannot be.

    Refused when the file no longer holds `original`. Mode, owner and links stay; no other file is left behind.
    """
    try:
        if _read(real) != original:
            return Problem(path, "changed while it was being looked at; nothing was written")
        if not os.access(real, os.W_OK):
            return Problem(path, "cannot be written: Permission denied")
        if os.stat(real).st_nlink > 1:
            _write_in_place(real, new)
            return None
        return _replace(path, real, original, new)
    except OSError as error:
        return Problem(path, f"cannot be written: {os_reason(error)}")


def _read(real: str) -> bytes:
    with open(real, "rb") as stream:
        return stream.read()


def _write_in_place(real: str, new: bytes) -> None:
    """A replaced file would leave its other hard links behind with the old content."""
    with open(real, "r+b") as stream:
        stream.write(new)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())


def _replace(path: str, real: str, original: bytes, new: bytes) -> Problem | None:
    folder = os.path.dirname(real)
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".fabric-fix-", suffix=".tmp", dir=folder)
    except OSError as error:  # the file is written beside the old one, and then takes its place
        return Problem(path, f"cannot be written: no new file can be made in {folder}: {os_reason(error)}")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(new)
            stream.flush()
            _copy_status(real, stream.fileno())
            os.fsync(stream.fileno())
        if _read(real) != original:  # as late as can be: somebody may have saved it while we wrote
            os.unlink(temporary)
            return Problem(path, "changed while it was being looked at; nothing was written")
        os.replace(temporary, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return None


def _copy_status(real: str, descriptor: int) -> None:
    """Mode, owner, and extended attributes where the system has them, of the file that is replaced."""
    status = os.stat(real)
    if hasattr(os, "fchown") and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(real):
                os.setxattr(descriptor, name, os.getxattr(real, name))
    os.chmod(descriptor if os.chmod in os.supports_fd else real, stat.S_IMODE(status.st_mode))
