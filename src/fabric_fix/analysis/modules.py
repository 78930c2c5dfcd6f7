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
from collections.abc import Iterable, Iterator
from copy import copy
from zlib import crc32

from fabric_fix.analysis.frames import push_children
from fabric_fix.analysis.known import LIBRARIES
from fabric_fix.analysis.names import known_spellings
from fabric_fix.analysis.relevance import Relevance
from fabric_fix.digests import ABSENT, digest

SHIFT = 10_000_000
"""Lines between the numbers of one file and those of the next."""
_ACTS = re.compile(rb"\.(?:setup(?:_\w+)?|backward|no_backward_sync|no_sync|launch)\b|Fabric\(|LightningLite\(")
"""What a file has in it that acts on a Fabric: makes one, or calls a method of one."""
_CHOOSES = re.compile(rb"strategy\s*[:=]|[\"']-*strategy|[sS]trategy\(|STRATEGY|ArgumentParser")
"""What a file has in it that can say something of a strategy."""
SMALL = 6_000
"""Bytes of a file that is looked into whatever words it has."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]+))", re.M
)
_WORD = re.compile(r"[\w.]+")
_TEST = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")


class Module:
    """One parsed file."""

    def __init__(self, path: str, text: str, tree: ast.Module, number: int = 0) -> None:
        self.path = path
        """Its real path, or '' when it has none (standard input)."""
        self.text = text
        self.tree = tree
        self.number = number
        """Of the range that its lines are in; 0 for the file that is asked about."""
        self.spellings = known_spellings(tree, text)
        self.folder = os.path.dirname(path)
        self.relevance: Relevance = Relevance(tree, text)
        if number:
            _shift(tree, number * SHIFT)
            self.relevance.shift = number * SHIFT

    def twin(self, tree: ast.Module) -> Module:
        """The same file with another tree, to try a fix out."""
        made = copy(self)
        made.tree = tree
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
        self._found: dict[tuple[str, str], str | None] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._matter: dict[str, bool] = {}
        self._acting: dict[str, bool] = {}
        self._parsing: set[str] = set()
        self.consulted: dict[str, str] = {}
        """Digests of the files that an answer came from, by path; those that were looked for in vain count too."""

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
            made = Module(path, text, ast.parse(text), self._number(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        self.connect(made)
        return made

    def connect(self, module: Module) -> None:
        """Let a module know which of the names that it imports lead to Fabric."""
        if not is_test(module.path, self.root):
            self._parsing.add(module.path)
            module.relevance.add(self._relevant_names(module))
            self._parsing.discard(module.path)

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
            try:
                with open(path, "rb", buffering=0) as stream:
                    data: bytes | None = stream.read()
            except OSError:
                data = None
            self._bytes[path] = data
            self.consulted[path] = ABSENT if data is None else digest(data)
        return self._bytes[path]

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
            found = data is not None and (len(data) < SMALL or _CHOOSES.search(data) is not None or self.acts(path))
            self._matter[path] = found
        return found

    def acts(self, path: str) -> bool:
        """Whether a file, or one that it imports, has words in it that act on a Fabric."""
        found = self._acting.get(path)
        if found is None:
            self._acting[path] = False  # for those that import each other
            data = self.read(path)
            found = data is not None and _ACTS.search(data) is not None
            found = found or any(self.acts(other) for other in self.imported_files(path))
            self._acting[path] = found
        return found

    # --- where an import leads ----------------------------------------------------------------------------------------

    def resolve(self, importer: Module, name: str, level: int) -> str | None:
        """The real path of an imported module (`a.b`, or `..a.b` with `level` 2): a file, or a package's folder.

        None for what is not of this project.
        """
        return self._resolve(importer.path, name, level)

    def _resolve(self, importer: str, name: str, level: int) -> str | None:
        if not importer or not self.root:
            return None
        folder = os.path.dirname(importer)
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._below(folder, name)
        if name.partition(".")[0] in LIBRARIES:
            return None
        for place in self._places(folder):
            found = self._below(place, name)
            if found is not None:
                return found
        return None

    def _places(self, folder: str) -> list[str]:
        """The folders that absolute imports are looked up in, as the program's `sys.path` would have them."""
        package = folder
        while package != self.root and os.path.isfile(os.path.join(package, "__init__.py")):
            package = os.path.dirname(package)
        return list(dict.fromkeys([folder, package, self.root, os.path.join(self.root, "src")]))

    def below(self, folder: str, name: str) -> str | None:
        """A module or package directly inside a package's folder."""
        return self._below(folder, name) if os.path.isdir(folder) else None

    def _below(self, base: str, name: str) -> str | None:
        key = (base, name)
        if key not in self._found:
            self._found[key] = self._look(base, name)
        return self._found[key]

    def _look(self, base: str, name: str) -> str | None:
        place = os.path.join(base, *name.split(".")) if name else base
        if name and os.path.isfile(place + ".py"):
            found = os.path.realpath(place + ".py")
        elif os.path.isdir(place):
            found = os.path.realpath(place)
            if name and not _holds_python(found):
                return None
        else:
            self.consulted[place + ".py"] = self.consulted[os.path.join(place, "__init__.py")] = ABSENT
            return None
        inside = found == self.root or found.startswith(self.root + os.sep)
        return found if inside else None

    def file_of(self, place: str) -> str | None:
        """The file that runs when what `resolve` gave is imported; None for a namespace package."""
        if place.endswith(".py"):
            return place
        init = os.path.join(place, "__init__.py")
        return init if self._below(place, "__init__") is not None else None

    def dotted(self, place: str) -> str:
        """What the project calls a module by, for an import from its root."""
        return self.shown(place).removesuffix(".py").replace(os.sep, ".")

    # --- which programs lead to a file --------------------------------------------------------------------------------

    def importers(self, target: str, candidates: Iterable[str]) -> list[str]:
        """The candidates (real paths) whose imports lead to a file, sorted; tests lead to tests only."""
        tested = is_test(target, self.root)
        return [
            path
            for path in sorted(set(candidates))
            if path != target and (tested or not is_test(path, self.root)) and target in self.reach(path)
        ]

    def reach(self, path: str) -> set[str]:
        """The files of the project that a file imports, at any distance."""
        seen: set[str] = set()
        stack = [path]
        while stack:
            for other in self.imported_files(stack.pop()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return seen

    def imported_files(self, path: str) -> frozenset[str]:
        """The files of the project that a file imports, as far as its text tells."""
        found = self._imports.get(path)
        if found is None:
            self._imports[path] = frozenset()
            found = self._imports[path] = frozenset(self._files_named(path, self._text(path) or ""))
        return found

    def _files_named(self, path: str, text: str) -> Iterator[str]:
        for match in _IMPORT.finditer(text):
            dots, name, names, plain = match.groups()
            if plain is not None:
                for part in plain.split("#")[0].split(","):
                    word = _WORD.search(part)
                    yield from self._files(self._resolve(path, word[0], 0) if word else None)
                continue
            place = self._resolve(path, name, len(dots)) if name or dots else None
            yield from self._files(place)
            if place is not None and not place.endswith(".py"):
                for word in _WORD.findall(names):
                    yield from self._files(self._below(place, word))

    def _files(self, place: str | None) -> Iterator[str]:
        file = None if place is None else self.file_of(place)
        if file is not None:
            yield file

    # --- which names lead to Fabric -----------------------------------------------------------------------------------

    def _relevant_names(self, module: Module) -> set[str]:
        """The imported names of a module that lead to Fabric in the module that they come from."""
        found: set[str] = set()
        stack: list[ast.AST] = [module.tree] if module.path and "import" in module.text else []
        while stack:
            node = stack.pop()
            if isinstance(node, ast.ImportFrom):
                found |= self._relevant_in(module, node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if self._leads(self.resolve(module, alias.name, 0)):
                        found.add((alias.asname or alias.name).rpartition(".")[2])
            elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.Module)):
                push_children(node, stack)
        return found

    def _relevant_in(self, module: Module, node: ast.ImportFrom) -> set[str]:
        place = self.resolve(module, node.module or "", node.level)
        if place is None:
            return set()
        file = self.file_of(place)
        source = self.module(file) if file is not None and self._may_parse(file) else None
        names = source.relevance.names if source is not None else frozenset()
        found: set[str] = set()
        for alias in node.names:
            if alias.name == "*":
                found |= names
            elif alias.name in names or self._leads(self.below(place, alias.name)):
                found.add(alias.asname or alias.name)
        return found

    def _leads(self, place: str | None) -> bool:
        file = None if place is None else self.file_of(place)
        source = self.module(file) if file is not None and self._may_parse(file) else None
        return source is not None and source.relevance.leads

    def _may_parse(self, file: str) -> bool:
        return file not in self._parsing and self.acts(file)


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


def _holds_python(folder: str) -> bool:
    """Whether a folder can be a package: it holds Python files, or folders that may."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".py") or entry.is_dir() for entry in entries)
    except OSError:
        return False
