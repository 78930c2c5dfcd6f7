"""Which strategies the files around a project's code say that its programs run with.

They are asked when a Fabric's source does not show its strategy and the user named none: commands in scripts,
Makefiles, Dockerfiles, workflows and documentation (`hint_commands`), configurations in YAML (`hint_configs`). A hint
is for one program and what it imports. That of a configuration which no program names is for the files below the folder
that the configuration (without `conf`, `config` and the like) lies in, as far as they read one and name no other. A
command whose program is not found, or may be one of two, is no hint.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from fabric_fix.analysis import hint_readers, known
from fabric_fix.analysis.assumptions import matches
from fabric_fix.analysis.hint_commands import TELLING, Command, of_text
from fabric_fix.analysis.possible import EXCLUDED
from fabric_fix.folders import is_below
from fabric_fix.ignoring import NEVER_SOURCE, Patterns, is_left_out, patterns_above, read_patterns
from fabric_fix.records import Record
from fabric_fix.strategies import normal_name

if TYPE_CHECKING:
    from fabric_fix.analysis.hint_configs import Stated

MAX_BYTES = 1_000_000
"""Size of a file that is read."""
MAX_ENTRIES = 50_000
"""Names that a walk looks at before it ends."""
MAX_FILES = 4_000
"""Files that are read in search of hints."""
DATA = frozenset(
    ["checkpoints", "data", "datasets", "lightning_logs", "logs", "mlruns", "multirun", "outputs", "runs", "wandb"]
)
"""Folders that programs write, with the configurations of past runs, or read by the thousand."""
_KINDS = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".slurm", ".sbatch"), "shell"),
    **dict.fromkeys((".mk",), "make"),
    **dict.fromkeys((".md", ".rst"), "prose"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".py",), "python"),
    **dict.fromkeys((".dockerfile",), "docker"),
}
_NAMED = {"makefile": "make", "gnumakefile": "make", "justfile": "make", ".justfile": "make", "dockerfile": "docker"}
_CONFIG_FOLDER = re.compile(r"(hydra_)?(conf|cfg|config|setting|configuration)s?")
_FROM_ENVIRONMENT = ("fabric run", "lightning run", "LT_STRATEGY")


class Hint(Record):
    """A strategy that a program is said to run with."""

    strategy: str
    """One of `strategies.NAMES`."""
    path: str
    """The file that says it, relative to the root."""
    line: int
    script: str | None
    """The real path of the program, when it is known."""
    how: str
    """What says it: "fabric run", "lightning run", "LT_STRATEGY" or "yaml"."""

    @property
    def families(self) -> frozenset[str]:
        """What `known.strategy_families` makes of the strategy."""
        return known.strategy_families(self.strategy, None, None)

    @property
    def is_environment(self) -> bool:
        """Whether it takes the place of `strategy="auto"`, which is what Fabric has without the argument."""
        return self.how in _FROM_ENVIRONMENT

    def __str__(self) -> str:
        """As a message names it."""
        how = "`strategy`" if self.how == "yaml" else f"`{self.how}`"
        return f"strategy {self.strategy}: {how} in {self.path}, line {self.line}"


def hints(root: str) -> tuple[Hint, ...]:
    """All hints of a project, by path and line."""
    return around(root).hints


@lru_cache(maxsize=64)
def around(root: str) -> Hints:
    """What the files of a project say, read once in a process."""
    return Hints(root)


class Hints:
    """The hints of one project; `read` names every file and folder that was read or looked for."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._left = MAX_FILES
        self._texts: dict[str, str | None] = {}
        self._looked: set[str] = set()
        self._imported: dict[str, frozenset[str]] = {}
        self._files: dict[str, list[str]] = {}
        for path, kind in self._walk():
            self._files.setdefault(kind, []).append(path)
        found = {*self._of_commands(), *self._of_configs()}
        self.hints = tuple(sorted(found, key=lambda hint: (hint.path, hint.line, hint.strategy, hint.script or "")))
        self._texts.clear()
        self._files.clear()

    @property
    def read(self) -> tuple[str, ...]:
        """The absolute paths that the hints depend on, sorted; folders for what is in them."""
        return tuple(sorted(self._looked))

    def of(self, path: str, text: str) -> tuple[Hint, ...]:
        """The hints for one file of the project, given by its real path."""
        return tuple(hint for hint in self.hints if self._is_for(hint, path, text))

    def _is_for(self, hint: Hint, path: str, text: str) -> bool:
        if hint.script is not None:
            if hint.script not in self._imported:
                self._imported[hint.script] = hint_readers.imported(hint.script, self._root, self._text)
            return path in self._imported[hint.script]
        below = os.path.join(self._root, _home(hint.path))
        if not is_below(path, below) or hint_readers.names_a_config(text):
            return False
        return bool(hint_readers.READS_CONFIGS.search(text))

    # --- files --------------------------------------------------------------------------------------------------------

    def _walk(self) -> Iterator[tuple[str, str]]:
        """The files that can matter, with their kinds, in a fixed order."""
        pending: list[tuple[str, tuple[Patterns, ...]]] = [(self._root, patterns_above(self._root))]
        entries = 0
        while pending and entries < MAX_ENTRIES:
            folder, ignores = pending.pop()
            self._looked.add(folder)
            try:
                with os.scandir(folder) as found:
                    inside = sorted(found, key=lambda entry: entry.name)
            except OSError:
                continue
            entries += len(inside)
            names = {entry.name for entry in inside}
            if folder != self._root and names & {"pyvenv.cfg", "conda-meta", ".git"}:
                continue  # an environment, or another project
            if ".gitignore" in names:
                ignores += read_patterns(os.path.join(folder, ".gitignore"), folder)
            for entry in reversed(inside):
                if entry.is_dir(follow_symlinks=False):
                    if not _is_passed_over(entry.name) and not is_left_out(ignores, entry.path, True):
                        pending.append((entry.path, ignores))
                elif (kind := _kind(entry, folder)) and not is_left_out(ignores, entry.path, False):
                    yield entry.path, kind

    def _text(self, path: str) -> str | None:
        """The text of a file that is asked for again, kept until all is read; None without, or when it is too large."""
        if path not in self._texts:
            self._looked.add(path)
            self._texts[path] = _read(path)
        return self._texts[path]

    def _texts_of(self, kind: str) -> Iterator[tuple[str, str]]:
        """The files of a kind, each with its text, which is not kept: most of them do not matter."""
        for path in self._files.get(kind, ()):
            self._left -= 1
            if self._left < 0:
                return
            self._looked.add(path)
            if (kind != "bare" or _is_shell_script(path)) and (text := _read(path)) is not None:
                yield path, text

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._root).replace(os.sep, "/")

    # --- commands -----------------------------------------------------------------------------------------------------

    def _of_commands(self) -> Iterator[Hint]:
        for kind in ("shell", "make", "docker", "prose", "bare"):
            for path, text in self._texts_of(kind):
                if TELLING.search(text):
                    for command in of_text(text, "shell" if kind == "bare" else kind):
                        yield from self._of_command(command, path)
        for path, text in self._texts_of("workflow"):
            if TELLING.search(text):
                from fabric_fix.analysis.hint_configs import of_workflow

                for command in of_workflow(text, path):
                    yield from self._of_command(command, path)

    def _of_command(self, command: Command, path: str) -> Iterator[Hint]:
        name = normal_name(command.strategy)
        script = self._script(command, os.path.dirname(path))
        if name and script and not _is_excluded(name, command.accelerator):
            yield Hint(name, self._relative(path), command.line, script, command.how)

    def _script(self, command: Command, folder: str) -> str | None:
        """The program that a command starts, from the folder of its file, the root or one between; None for two."""
        found: set[str] = set()
        while folder.startswith(self._root):
            place = os.path.normpath(os.path.join(folder, command.folder or "", command.script))
            self._looked.add(place)
            if os.path.isfile(place):
                found.add(os.path.realpath(place))
            if folder == self._root:
                break
            folder = os.path.dirname(folder)
        return next(iter(found)) if len(found) == 1 else None

    # --- configurations -----------------------------------------------------------------------------------------------

    def _of_configs(self) -> Iterator[Hint]:
        from fabric_fix.analysis import hint_configs

        saying: list[str] = []
        composing: list[str] = []
        elsewhere: set[str] = set()
        """Files that say where they go in another configuration."""
        for path, text in self._texts_of("yaml"):
            saying += [path] if hint_configs.MATTERS.search(text) else []
            composing += [path] if hint_configs.HAS_DEFAULTS.search(text) else []
            elsewhere |= {path} if hint_configs.HAS_PACKAGE.match(text) else set()
        if not saying:
            return
        mains, named = self._readers(self._files["yaml"])
        governed = {os.path.dirname(path) for path in (*composing, *mains)}
        unnamed = _unnamed([path for path in composing if path not in elsewhere], set(mains), governed)
        for path in sorted({*mains, *unnamed}):
            for one in hint_configs.of_main(path, self._text, self._root):
                yield from self._of_stated(one, mains.get(path, [None]))
        for path in saying:
            if path in named or not (path in mains or _is_below(os.path.dirname(path), governed)):
                for tree in hint_configs.documents(self._text(path) or "", path):
                    for one in hint_configs.stated(tree):
                        yield from self._of_stated(one, named.get(path, [None]))

    def _of_stated(self, one: Stated, scripts: list[str | None]) -> Iterator[Hint]:
        if not _is_excluded(one.strategy, one.accelerator):
            for script in scripts:
                yield Hint(one.strategy, self._relative(one.path), one.line, script, "yaml")

    def _readers(self, configs: list[str]) -> tuple[dict[str, list[str | None]], dict[str, list[str | None]]]:
        """The programs that name a configuration: with `hydra.main`, and with a path of their own."""
        known_files = set(configs)
        mains: dict[str, list[str | None]] = {}
        named: dict[str, list[str | None]] = {}
        for path, text in self._texts_of("python"):
            if not ("hydra" in text or ".yaml" in text or ".yml" in text):
                continue
            for folder, name in hint_readers.hydra_mains(text, path):
                for file in _configs_called(name, folder, configs):
                    mains.setdefault(file, []).append(path)
            for literal in hint_readers.literal_configs(text):
                places = {os.path.normpath(os.path.join(at, literal)) for at in (self._root, os.path.dirname(path))}
                for file in sorted(places & known_files):
                    named.setdefault(file, []).append(path)
        return mains, named


def _read(path: str) -> str | None:
    try:
        if os.path.getsize(path) > MAX_BYTES:
            return None
        with open(path, encoding="utf-8", errors="strict") as stream:
            return stream.read()
    except (OSError, ValueError):
        return None


def _is_shell_script(path: str) -> bool:
    """Whether the first line of a file without a suffix names a shell."""
    try:
        with open(path, "rb") as stream:
            return re.match(rb"#!.*sh\b", stream.read(100)) is not None
    except OSError:
        return False


def _kind(entry: os.DirEntry[str], folder: str) -> str | None:
    name = entry.name.lower()
    stem, suffix = os.path.splitext(name)
    kind = _NAMED.get(name) or ("docker" if stem == "dockerfile" else _KINDS.get(suffix))
    if kind is None and not suffix and not name.startswith("."):
        kind = "bare"
    if kind == "yaml" and f"{os.sep}.github" in folder:
        kind = "workflow"
    return kind if kind and entry.is_file(follow_symlinks=False) else None


def _is_passed_over(name: str) -> bool:
    return name in NEVER_SOURCE or name in DATA or (name.startswith(".") and name != ".github")


def _is_excluded(strategy: str, accelerator: str | None) -> bool:
    """Whether Fabric refuses a strategy beside an accelerator, or makes the choice itself, which says nothing."""
    if strategy == "auto":
        return True
    excluded = EXCLUDED.get((accelerator or "").lower(), frozenset())
    return all(matches(family, excluded) for family in known.strategy_families(strategy, None, None))


def _is_below(folder: str, tops: set[str]) -> bool:
    return any(folder == top or folder.startswith(top + os.sep) for top in tops)


def _configs_called(name: str, folder: str | None, configs: list[str]) -> list[str]:
    """The main configuration of that name; where its folder is computed, the only file of that name in the project."""
    if folder is not None:
        return [path for path in configs if path == os.path.join(folder, f"{name}.yaml")]
    found = [path for path in configs if path.endswith(f"{os.sep}{name}.yaml")]
    return found if len(found) == 1 else []


def _unnamed(composing: list[str], named: set[str], governed: set[str]) -> Iterator[str]:
    """The main configurations of folders in which no program names one."""
    spoken_for = {os.path.dirname(path) for path in named}
    for path in composing:
        folder = os.path.dirname(path)
        if not _is_below(folder, spoken_for) and not _is_below(os.path.dirname(folder), governed):
            yield path


def _home(path: str) -> str:
    """The folder, relative to the root, whose programs a configuration is for when none names it."""
    kept: list[str] = []
    for name in path.split("/")[:-1]:
        if _CONFIG_FOLDER.fullmatch(name):
            break
        kept.append(name)
    return os.path.join(*kept) if kept else ""
