"""The files of a project as modules: where an import leads, and which programs lead to a file.

Nothing of a project is run. What cannot be found is unknown, never an error.

A line number says which file it belongs to: the lines of every module but the one that is asked about are shifted by a
multiple of `SHIFT`, which depends on its path alone, so that positions of different files never meet and have the same
order in every run.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Sequence, Set
from copy import copy
from zlib import crc32

from fabric_fix.analysis.frames import Scope, push_children
from fabric_fix.analysis.leading import TRAINING, Leading
from fabric_fix.analysis.names import known_spellings
from fabric_fix.analysis.paths import Paths
from fabric_fix.analysis.relevance import Relevance, Unit
from fabric_fix.digests import ABSENT, digest
from fabric_fix.reading import content

SHIFT = 10_000_000
"""Lines between the numbers of one file and those of the next."""
_CHOOSES = re.compile(rb"strategy\s*[:=]|[\"']-*strategy|[sS]trategy\(|STRATEGY|ArgumentParser")
"""What a file has in it that can say something of a strategy."""
SMALL = 6_000
"""Bytes of a file that is looked into whatever words it has."""
_TEST = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")


class Module:
    """One parsed file."""

    def __init__(self, path: str, text: str, tree: ast.Module, units: Sequence[Unit], number: int = 0) -> None:
        self.path = path
        """Its real path, or '' when it has none (standard input)."""
        self.text = text
        self.tree = tree
        self.number = number
        """Of the range that its lines are in; 0 for the file that is asked about."""
        self.spellings = known_spellings(tree, text)
        self.scopes: dict[ast.AST, Scope] = {}
        """Those of its functions and of the module itself, which are the same for every program."""
        self.relevance: Relevance = Relevance(tree, text, units)
        if number:
            _shift(tree, number * SHIFT)
            self.relevance.shift = number * SHIFT

    def scope(self, node: ast.AST) -> Scope:
        """The scope of a function of the module, or of the module itself."""
        found = self.scopes.get(node)
        if found is None:
            found = self.scopes[node] = Scope(node)
        return found

    def twin(self, tree: ast.Module) -> Module:
        """The same file with another tree, to try a fix out."""
        made = copy(self)
        made.tree, made.scopes = tree, {}
        return made


class Modules:
    """The modules of one project, parsed when they are asked for and kept for all questions of a run."""

    def __init__(self, root: str, beside: dict[str, bytes] | None = None) -> None:
        self.root = root
        """The real path of the project's folder; '' for none."""
        self._beside = beside or {}
        self._by_path: dict[str, Module | None] = {}
        self._numbers: dict[int, str] = {}
        self._bytes: dict[str, bytes | None] = {}
        self._digests: dict[str, str] = {}
        self._matter: dict[str, bool] = {}
        self.paths = Paths(root)
        self.leading = Leading(self.paths, self._text)
        self._training = self.leading.towards(TRAINING)

    # --- files --------------------------------------------------------------------------------------------------------

    def module(self, path: str) -> Module | None:
        """The module at a real path; None when it cannot be read as Python."""
        if path not in self._by_path:
            self._by_path[path] = self._parse(path)
        return self._by_path[path]

    def _parse(self, path: str) -> Module | None:
        text = self._text(path)
        if text is None:
            return None
        try:
            made = self.made(path, text, ast.parse(text), self._number(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return made

    def made(self, path: str, text: str, tree: ast.Module, number: int = 0) -> Module:
        """A parsed file as a module, which knows what of its imports leads to Fabric."""
        outline = self.leading.outline_of(path, text)
        module = Module(path, text, tree, outline.units, number)
        if not is_test(path, self.root):
            module.relevance.add(self.leading.imported(outline.bindings))
        return module

    def trains(self, module: Module) -> bool:
        """Whether a module, or what it imports, can train or make an optimizer."""
        return self._training.outline_acts(self.leading.outline_of(module.path, module.text))

    def _number(self, path: str) -> int:
        number = crc32(os.path.relpath(path, self.root).encode("utf-8", "surrogateescape")) + 1
        while self._numbers.setdefault(number, path) != path:
            number += 1
        return number

    def shown(self, path: str) -> str:
        """A path as it is within the project."""
        return os.path.relpath(path, self.root) if path and self.root else path

    def path_of(self, line: int) -> str:
        """The file that a shifted line is of, as it is within the project."""
        return self.shown(self._numbers.get(line // SHIFT, "another file"))

    def tree_at(self, line: int) -> ast.Module | None:
        """The tree that a shifted line is of."""
        module = self._by_path.get(self._numbers.get(line // SHIFT, ""))
        return None if module is None else module.tree

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, as they are to be taken in this run; None when it cannot be read."""
        if path in self._beside:
            return self._beside[path]
        if path not in self._bytes:
            self._bytes[path] = content(path)
        return self._bytes[path]

    def consulted(self) -> dict[str, str]:
        """Digests of the files that an answer came from, by path; those that were looked for in vain count too."""
        missed = [place + end for place in self.paths.missed for end in (".py", f"{os.sep}__init__.py")]
        for path, data in list(self._bytes.items())[len(self._digests) :]:
            self._digests[path] = ABSENT if data is None else digest(data)
        return {**dict.fromkeys(missed, ABSENT), **self._digests}

    def _text(self, path: str) -> str | None:
        from fabric_fix.source import Source, decode

        data = self.read(path)
        source = None if data is None else decode(path, data)
        return source.text if isinstance(source, Source) else None

    def can_matter(self, path: str) -> bool:
        """Whether a file is small, acts on a Fabric, or has words that have to do with the choice of a strategy."""
        found = self._matter.get(path)
        if found is None:
            data = self.read(path)
            found = data is not None and (len(data) < SMALL or _chooses(data) or self.leading.acts(path))
            self._matter[path] = found
        return found

    # --- where an import leads ----------------------------------------------------------------------------------------

    def resolve(self, importer: Module, name: str, level: int) -> str | None:
        """The real path of an imported module (`a.b`, or `..a.b` with `level` 2): a file, or a package's folder.

        None for what is not of this project.
        """
        return self.paths.resolve(importer.path, name, level)

    def below(self, folder: str, name: str) -> str | None:
        """A module or package directly inside a package's folder."""
        return self.paths.below(folder, name)

    def file_of(self, place: str) -> str | None:
        """The file that runs when what `resolve` gave is imported; None for a namespace package."""
        return self.paths.file_of(place)

    def dotted(self, place: str) -> str:
        """What the project calls a module by, for an import from its root."""
        return self.shown(place).removesuffix(".py").replace(os.sep, ".")

    # --- which programs lead to a file --------------------------------------------------------------------------------

    def importers(self, target: str, candidates: Iterable[str]) -> list[str]:
        """The candidates (real paths) whose imports lead to a file, sorted; tests lead to tests only."""
        return [path for path in sorted(set(candidates)) if self.leads_to(path, {target})]

    def leads_to(self, path: str, targets: Set[str]) -> bool:
        """Whether the imports of a file lead to one of some others; tests lead to tests only."""
        found = (self.reach(path) & targets) - {path}
        return any(is_test(target, self.root) for target in found) if is_test(path, self.root) else bool(found)

    def reach(self, path: str) -> set[str]:
        """The files of the project that a file imports, at any distance."""
        seen: set[str] = set()
        stack = [path]
        while stack:
            for other in self.leading.files(stack.pop()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return seen


def _chooses(data: bytes) -> bool:
    """Whether a file can say something of a strategy; nearly all have not even the words for it."""
    has_words = b"trategy" in data or b"STRATEGY" in data or b"ArgumentParser" in data
    return has_words and _CHOOSES.search(data) is not None


def _shift(tree: ast.Module, lines: int) -> None:
    """Add to all line numbers of a tree; `ast.increment_lineno` does the same at three times the cost."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        fields = node.__dict__
        if "lineno" in fields:
            fields["lineno"] += lines
            fields["end_lineno"] = (fields.get("end_lineno") or 0) + lines
        push_children(node, stack)


def is_test(path: str, root: str) -> bool:
    """Whether a real path is that of a test, whose calls say nothing of how a program is used.

    Only what is below the root counts: a project that lies in a folder `tests` is none. Without a root the name does.
    """
    return _TEST.search(os.path.relpath(path, root) if root and path else os.path.basename(path)) is not None
