"""What a run knows from earlier ones: results of files that are as they were, and files that do not matter."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fabric_fix.cache import FOLDER, Cache
from fabric_fix.digests import FileDigests, digest
from fabric_fix.ignoring import project_root, repository_root
from fabric_fix.records import replace

if TYPE_CHECKING:
    from fabric_fix.discovery import Candidate
    from fabric_fix.engine import FileResult
    from fabric_fix.run import Request

MOST_FILES = 2_000
"""Files of a project beyond which results with findings are not kept: too much would have to be read to trust them."""
SETTLED = 3 * 10**9
"""Nanoseconds after which a file's times tell its content: it may change again within the same tick of its clock."""

Times = tuple[int, int, int, int]
"""Size, time of the content, time of the status, and number of a file: all change when somebody exchanges it."""


class _Slot(NamedTuple):
    """Where a result comes from or goes to."""

    cache: Cache
    key: str
    root: str
    found: tuple[FileResult, ...] | None


class Recall:
    """The caches that the files of one run belong to."""

    def __init__(
        self,
        look_only: bool,
        users_digest: Callable[[Request], str],
        project_files: Callable[[str], Sequence[str]],
    ) -> None:
        """`users_digest` stands for the programs that use a file; `project_files` are all of a project, by its root."""
        self.known = 0
        """How many results were there already."""
        self._look_only = look_only
        self._users_digest = users_digest
        self._project_files = lru_cache(maxsize=None)(project_files)
        self._files = FileDigests()
        self._caches: dict[str, Cache] = {}
        self._homes: dict[str, str] = {}
        self._indexes: dict[tuple[str, str], Index] = {}
        self._index_at: dict[tuple[str, str | None], Index] = {}
        """The same by folder and setting, as this is asked for every file of a large tree."""

    # --- results ------------------------------------------------------------------------------------------------------

    def results(
        self, requests: Iterable[Request], examined: Callable[[Iterator[Request]], Iterator[FileResult]]
    ) -> Iterator[FileResult]:
        """The results in the order of the requests, those that say nothing left out where they were known.

        `examined` gives the others; all requests are taken before the first result is given.
        """
        slots: list[_Slot] = []
        computed = list(examined(self._unknown(list(requests), slots)))  # all, as each depends on what the others are
        asked = sum(1 for slot in slots if slot.found is None)
        unasked, rest = computed[asked:], iter(computed)
        homes = {project_root(os.path.dirname(result.real)) for result in unasked}
        for slot in slots:
            if slot.found is None:
                result = next(rest)
                if slot.root not in homes:  # else what was not asked for would be missing another time
                    slot.cache.put(slot.key, self._tied(result, slot.root))
                yield result
            else:
                self.known += 1
                yield from slot.found
        yield from unasked

    def _tied(self, result: FileResult, root: str) -> FileResult:
        """A result that says which files decide about it: any that comes to use the file, when that matters."""
        if not result.outcomes and not result.is_open:
            return result
        files = self._project_files(root)
        if len(files) > MOST_FILES:
            return replace(result, transient=True)
        others = ((path, self._files.of(path)) for path in files if path != result.real)
        return replace(result, consulted=tuple(dict.fromkeys((*result.consulted, *others))))

    def _unknown(self, requests: Iterable[Request], slots: list[_Slot]) -> Iterator[Request]:
        for request in requests:
            cache = self._cache(request.candidate)
            key = self._key(request)
            slots.append(_Slot(cache, key, request.project_root, cache.get(key, self._files)))
            if slots[-1].found is None:
                yield request

    def _key(self, request: Request) -> str:
        """Names everything that a result depends on but for the files that it says itself."""
        path, real, settings, *_ = request.candidate
        chosen = settings.select, settings.ignore, settings.strategy, bool(settings.unsafe_fixes), self._look_only
        around = request.project_root, self._users_digest(request)
        return digest(repr((tool(), path, real, around, chosen)).encode(), b"\0", request.data)

    # --- files that do not matter -------------------------------------------------------------------------------------

    def is_irrelevant(self, candidate: Candidate) -> bool:
        """Whether a file is one that the prefilter has turned down."""
        try:
            status = os.stat(candidate.real)
        except OSError:
            return False
        return self._index(candidate).holds(candidate.real, status)

    def turned_down(self, candidate: Candidate, status: os.stat_result) -> None:
        """Keep in mind that the prefilter does so; `status` was taken before the file was read."""
        self._index(candidate).add(candidate.real, status)

    def _index(self, candidate: Candidate) -> Index:
        place = os.path.dirname(candidate.real), candidate.settings.cache_dir
        index = self._index_at.get(place)
        if index is None:
            home, cache = self._home(candidate), self._cache(candidate)
            index = self._indexes.get((home, cache.folder))
            if index is None:
                key = digest(repr((tool(), home)).encode())
                index = self._indexes[home, cache.folder] = Index(cache, key)
            self._index_at[place] = index
        return index

    # --- folders ------------------------------------------------------------------------------------------------------

    def _cache(self, candidate: Candidate) -> Cache:
        chosen = candidate.settings.cache_dir
        folder = os.path.abspath(chosen) if chosen else os.path.join(self._home(candidate), FOLDER)
        cache = self._caches.get(folder)
        if cache is None:
            cache = self._caches[folder] = Cache(folder)
        return cache

    def _home(self, candidate: Candidate) -> str:
        folder = os.path.dirname(candidate.real)
        found = self._homes.get(folder)
        if found is None:
            found = self._homes[folder] = home_of(folder)
        return found

    def close(self) -> list[str]:
        """Keep what is to be kept, tidy up; remarks about what could not be done."""
        for index in self._indexes.values():
            index.save()
        for cache in self._caches.values():
            cache.look_through()
        troubled = (cache for cache in self._caches.values() if cache.trouble)
        return [f"{cache.folder}: nothing is kept: {cache.trouble}" for cache in troubled]


class Index:
    """The files of a project that the prefilter turns down, by folder and name."""

    def __init__(self, cache: Cache, key: str) -> None:
        self._cache = cache
        self._key = key
        self._old: dict[str, dict[str, Times]] = cache.get_index(key)
        self._new: dict[str, dict[str, Times]] = {}
        self._is_changed = False

    def holds(self, path: str, status: os.stat_result) -> bool:
        """Whether a file is in the index, and is still the same."""
        folder, name = os.path.split(path)
        times = self._old.get(folder, {}).get(name)
        if times is None:
            return False
        if times != _times(status):
            self._is_changed = True
            return False
        self._new.setdefault(folder, {})[name] = times
        return True

    def add(self, path: str, status: os.stat_result) -> None:
        """Add a file, unless it is so new that another content could have the same times."""
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED:
            return
        folder, name = os.path.split(path)
        self._new.setdefault(folder, {})[name] = _times(status)
        self._is_changed = True

    def save(self) -> None:
        """Write the index: of the folders that this run has seen what it saw, of others what was known."""
        if self._is_changed:
            others = {folder: names for folder, names in self._old.items() if folder not in self._new}
            kept = {folder: names for folder, names in others.items() if os.path.isdir(folder)}
            self._cache.put_index(self._key, {**kept, **self._new})


def _times(status: os.stat_result) -> Times:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def home_of(folder: str) -> str:
    """Where the cache of a folder's files is: the root of their repository, else of their project, else right here."""
    root = repository_root(folder)
    if root is None:
        root = project_root(folder)
        if not os.path.lexists(os.path.join(root, "pyproject.toml")):
            return os.getcwd()
    return root


@lru_cache(maxsize=1)
def tool() -> str:
    """A digest of what computes the results: this tool, down to the change that somebody makes to it, and Python."""
    import importlib.util

    from fabric_fix import __version__

    parts = [__version__, sys.version, sys.platform]
    for package in ("fabric_fix", "fabric_fix.codemods", "libcst"):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            parts += _sources(folder, deep=package != "libcst")
    return digest(repr(parts).encode())


def _sources(folder: str, deep: bool) -> list[str]:
    """Name, size and time of the files of a package."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    found += _sources(entry.path, deep) if deep and entry.name != "__pycache__" else []
                else:
                    status = entry.stat()
                    found.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    except OSError:
        found.append(f"{folder} cannot be looked at")  # a package in an archive: its version has to do
    return found
