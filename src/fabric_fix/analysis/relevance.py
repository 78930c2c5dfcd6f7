"""Which functions are worth a look of their own: those whose source can lead to a call of Fabric's.

A function that nothing calls and that neither calls a method of Fabric nor a function that does, has no event to find.
The question is asked of the source text, which is some hundred times cheaper than to interpret it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

_WORD = re.compile(r"\w+")
_WORDS = frozenset(
    [
        "setup",
        "setup_module",
        "setup_optimizers",
        "setup_optimizer",
        "setup_dataloaders",
        "setup_module_and_optimizers",
        "backward",
        "no_backward_sync",
        "no_sync",
        "launch",
        "Fabric",
        "LightningLite",
    ]
)


_STRATEGY_WORDS = frozenset(["strategy", "add_argument", "ArgumentParser", "parse_args", "parse_known_args"])

METHODS = _WORDS - {"Fabric", "LightningLite"}
_USED = re.compile(rf"(?<=\.)(?:{'|'.join(sorted(METHODS))})\b|\b(?:{'|'.join(sorted(METHODS))})(?=\()")

_MAKES = "Fabric("
"""Stands among the words of what makes a Fabric."""
ACTING = METHODS | {_MAKES}
"""The words of what acts on a Fabric by itself."""

Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Imported(NamedTuple):
    """What a module imports and leads to Fabric."""

    names: Set[str]
    """Functions and classes, as they are called where they are imported."""
    members: Mapping[str, Set[str]]
    """Modules, as they are called there, with their names that lead to Fabric."""


class Relevance:
    """Answers for the functions and classes of one file."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._lines = text.splitlines(keepends=True) if "\f" not in text and "\x0b" not in text else []
        self.shift = 0
        """What was added to the line numbers of the tree since."""
        self._words: dict[ast.AST, frozenset[str]] = {}
        self._members: Mapping[str, Set[str]] = {}
        self._names: set[str] = set(_WORDS)
        self._acting: set[str] = set(ACTING)
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self._units = [stmt for stmt in tree.body if isinstance(stmt, kinds)]
        self._everything = not self._lines
        if not self._everything:
            self._names |= self._shared(tree, self._units)
            self._spread(self._names)
            self._spread(self._acting)

    def add(self, imported: Imported) -> None:
        """Take what the module imports and leads to Fabric where it comes from."""
        if imported.members or not imported.names <= self._acting:
            self._members = imported.members
            self._names |= imported.names
            self._acting |= imported.names
            self._spread(self._names)
            self._spread(self._acting)

    def acts(self, node: ast.AST) -> bool:
        """Whether a function makes a Fabric or calls one of its methods, itself or through others; not only has one."""
        return self._everything or lead(self._words_of(node), self._acting, self._members)

    def says_strategy(self, node: ast.AST) -> bool:
        """Whether a function can say which strategy a program runs with."""
        return bool(self._words_of(node) & _STRATEGY_WORDS)

    @property
    def names(self) -> set[str]:
        """The names of the module whose functions and classes act on a Fabric."""
        if self._everything:
            return {unit.name for unit in self._units}
        return self._acting - ACTING

    def of(self, node: ast.AST) -> bool:
        """Whether a function (or lambda) is worth a look."""
        return self._everything or lead(self._words_of(node), self._names, self._members)

    def of_class(self, node: ast.ClassDef) -> bool:
        """Whether a class is worth a look."""
        return self.of(node)

    def _shared(self, tree: ast.Module, units: Sequence[Unit]) -> set[str]:
        """Names that code at module level gives to what it uses Fabric for: every function can use them."""
        inside: set[ast.stmt] = set(units)
        plain = (ast.Import, ast.ImportFrom)
        rest = [stmt for stmt in tree.body if stmt not in inside and not isinstance(stmt, plain)]
        spoken = [self._words_of(stmt) for stmt in rest if self._words_of(stmt) & _WORDS]
        stored: set[str] = set()
        for stmt in rest if spoken else []:
            stored |= {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return stored & frozenset().union(*spoken)

    def _spread(self, names: set[str]) -> None:
        """Add the names of functions and methods that lead to one of some names, and so on."""
        named: list[tuple[str, frozenset[str]]] = []
        for unit in self._units:
            named.append((unit.name, self._words_of(unit)))
            if isinstance(unit, ast.ClassDef):
                functions = (ast.FunctionDef, ast.AsyncFunctionDef)
                named.extend((item.name, self._words_of(item)) for item in unit.body if isinstance(item, functions))
        spread(names, named, self._members)

    def _words_of(self, node: ast.AST) -> frozenset[str]:
        found = self._words.get(node)
        if found is None:
            start, end = getattr(node, "lineno", 1) - self.shift, (getattr(node, "end_lineno", None) or 0) - self.shift
            found = self._words[node] = words_in("".join(self._lines[start - 1 : max(end, 0)]))
        return found


def words_in(source: str) -> frozenset[str]:
    """The words of a piece of source that can lead to Fabric."""
    found = frozenset(_WORD.findall(source))
    if not found.isdisjoint(METHODS):  # in a comment such a word leads nowhere
        found -= METHODS - frozenset(_USED.findall(source))
    if "Fabric(" in source or "LightningLite(" in source:
        found |= {_MAKES}
    return found


def lead(words: Set[str], names: Set[str], members: Mapping[str, Set[str]]) -> bool:
    """Whether one of some names is among the words of a unit, or an imported module beside one of its members."""
    if not words.isdisjoint(names):
        return True
    return any(module in words and not words.isdisjoint(inside) for module, inside in members.items())


def spread(names: set[str], units: Iterable[tuple[str, Set[str]]], members: Mapping[str, Set[str]]) -> None:
    """Add the names of those units that lead to one of some names or members, and so on."""
    left = [(name, words) for name, words in units if name not in names]
    size = -1
    while len(names) != size:
        size = len(names)
        names.update(name for name, words in left if lead(words, names, members))
        left = [(name, words) for name, words in left if name not in names]
