"""A folder that keeps what was found out, from one run to the next.

Several processes may use it at a time, and anyone may spoil or delete it: each of its files is put in its place whole,
starts with a checksum of its name and content, and is as good as absent when that, or anything else, is wrong. Where
nothing can be written, nothing is kept.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import stat
import time
from typing import TYPE_CHECKING, Any

from fabric_fix.problem import os_reason

if TYPE_CHECKING:
    from fabric_fix.digests import FileDigests
    from fabric_fix.engine import FileResult

FOLDER = ".fabric_fix_cache"
"""What the folder is called where nobody says otherwise."""
TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This is a cache of fabric-fix: it can be deleted at any time, and needs no backup (https://bford.info/cachedir/).\n"
)
DAY = 24 * 60 * 60
UNUSED = 14 * DAY
"""Seconds after which what no run has asked for is removed."""
MOST_BYTES = 256 * 1024 * 1024
"""What the folder holds at most after it was looked through, which it is once a day."""

_FORM = b"fabric-fix cache 1\n"
_CHECKSUM = 16
_RESULT, _INDEX, _TEMPORARY = ".result", ".index", ".tmp"
_LOOKED_THROUGH = "looked-through"
_ANOTHERS = "it belongs to another user"


class Cache:
    """One such folder. It is made when there is something to keep."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.trouble: str | None = None
        """Why nothing more is kept in this run."""
        self._is_trusted = True
        self._is_made = False
        try:
            self._refuse_anothers()
        except FileNotFoundError:
            pass  # it will be made
        except OSError as error:
            self.trouble, self._is_trusted = os_reason(error), False

    # --- results ------------------------------------------------------------------------------------------------------

    def get(self, key: str, files: FileDigests) -> tuple[FileResult, ...] | None:
        """What was put under a key, if the files that it depends on are as they were; None when that is not known.

        The tuple is empty when there was nothing to say.
        """
        entry = _loaded(self.read(key + _RESULT))
        if not isinstance(entry, tuple) or len(entry) != 2:
            return None
        consulted, pickled = entry
        if any(files.of(path) != digest for path, digest in consulted):
            return None
        if not pickled:
            return ()
        result = _unpickled(pickled)
        return None if result is None else (result,)

    def put(self, key: str, result: FileResult) -> None:
        """Keep a result, unless another run may give another one."""
        if result.transient or self.trouble is not None:
            return
        import pickle

        pickled = b"" if result.says_nothing else pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        self.write(key + _RESULT, marshal.dumps((result.consulted, pickled)))

    # --- indexes ------------------------------------------------------------------------------------------------------

    def get_index(self, key: str) -> dict[str, Any]:
        """What was put under a key, else an empty dictionary."""
        index = _loaded(self.read(key + _INDEX))
        return index if isinstance(index, dict) else {}

    def put_index(self, key: str, index: dict[str, Any]) -> None:
        """Keep a dictionary of plain values."""
        self.write(key + _INDEX, marshal.dumps(index))

    # --- files --------------------------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        """The content that was written under a name, or None when it is not there as it was written."""
        if not self._is_trusted:
            return None
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb", buffering=0, opener=_open_at_once) as stream:
                status = os.fstat(stream.fileno())
                if not stat.S_ISREG(status.st_mode) or not _is_own(status):
                    return None
                data = stream.read()
        except (OSError, MemoryError):
            return None
        start = len(_FORM) + _CHECKSUM
        if not data or data[:start] != _head(name, data[start:]):
            return None
        if time.time() - status.st_mtime > DAY:
            with contextlib.suppress(OSError):
                os.utime(path)  # it is still of use
        return data[start:]

    def write(self, name: str, content: bytes) -> None:
        """Put content under a name; what hinders that is `trouble`."""
        if self.trouble is not None:
            return
        try:
            if not self._is_made:
                self._make()
            try:
                self._write(name, content)
            except FileNotFoundError:  # somebody has just deleted the folder
                self._make()
                self._write(name, content)
        except OSError as error:
            self.trouble = os_reason(error)

    def _write(self, name: str, content: bytes) -> None:
        path = os.path.join(self.folder, name)
        temporary = f"{path}.{os.getpid()}-{time.time_ns()}{_TEMPORARY}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(_head(name, content))
                stream.write(content)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    # --- the folder ---------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        """Make sure that the folder is there; a new or empty one is marked as what it is. Raises OSError."""
        os.makedirs(os.path.dirname(self.folder), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.folder, 0o700)
        self._refuse_anothers()
        with os.scandir(self.folder) as entries:
            is_empty = next(entries, None) is None
        if is_empty:  # another one may hold what git is to see
            for name, text in (("CACHEDIR.TAG", TAG), (".gitignore", "# made by fabric-fix\n*\n")):
                with contextlib.suppress(FileExistsError), open(os.path.join(self.folder, name), "x") as stream:
                    stream.write(text)
        self._is_made = True

    def _refuse_anothers(self) -> None:
        """OSError for a folder in which another user can write what this one would believe, and for what is none."""
        status = os.stat(self.folder)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not _is_own(status):
            raise PermissionError(errno.EPERM, _ANOTHERS)

    def look_through(self) -> None:
        """Once a day, remove what no run has asked for, and the oldest of what is too much."""
        if self.trouble is not None or not os.path.isdir(self.folder):
            return
        mark, now = os.path.join(self.folder, _LOOKED_THROUGH), time.time()
        with contextlib.suppress(OSError):
            if os.path.exists(mark) and abs(now - os.stat(mark).st_mtime) < DAY:
                return
            with open(mark, "wb"):
                os.utime(mark)  # first, so that others do not do the same
            _remove_old(self.folder, now)


def is_cache(folder: str) -> bool:
    """Whether a folder with a CACHEDIR.TAG is a cache of this tool, wherever the user has put it."""
    try:
        with open(os.path.join(folder, "CACHEDIR.TAG"), "rb") as stream:
            return stream.read(len(TAG)) == TAG.encode()
    except OSError:
        return False


def _remove_old(folder: str, now: float) -> None:
    """Remove files of the cache: those left over, those not used for long, and then the oldest beyond `MOST_BYTES`."""
    kept: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith((_RESULT, _INDEX, _TEMPORARY)) or not entry.is_file(follow_symlinks=False):
                continue
            status = entry.stat(follow_symlinks=False)
            if now - status.st_mtime > (DAY if entry.name.endswith(_TEMPORARY) else UNUSED):
                _remove(entry.path)
            else:
                kept.append((status.st_mtime, status.st_size, entry.path))
    total = 0
    for _, size, path in sorted(kept, reverse=True):
        total += size
        if total > MOST_BYTES:
            _remove(path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file that may be anything by now, a pipe that nobody writes to for one."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _head(name: str, content: bytes) -> bytes:
    from hashlib import blake2b

    return _FORM + blake2b(content, digest_size=_CHECKSUM, person=_FORM[:16], key=name.encode()[:64]).digest()


def _loaded(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        loaded: object = marshal.loads(content)
    except (EOFError, ValueError, TypeError, MemoryError):
        return None
    return loaded


def _unpickled(data: bytes) -> FileResult | None:
    """A result of this tool, made of its own classes only; None for anything else."""
    import importlib
    import io
    import pickle

    from fabric_fix.engine import FileResult

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> object:
            found = getattr(importlib.import_module(module), name) if module.startswith("fabric_fix.") else None
            if not isinstance(found, type) or found.__module__ != module:
                raise pickle.UnpicklingError(f"{module}.{name} is no part of a result")
            return found

    try:
        result = Unpickler(io.BytesIO(data)).load()
    except Exception:  # whatever it is that stands there, the file is looked at again
        return None
    return result if isinstance(result, FileResult) else None
