"""Which functions are worth a look of their own: those whose source can lead to a call of Fabric's.

A function that nothing calls and that neither calls a method of Fabric nor a function that does, has no event to find.
The question is asked of the source text, which is some hundred times cheaper than to interpret it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

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

_METHODS = _WORDS - {"Fabric", "LightningLite"}
_USED = re.compile(rf"(?<=\.)(?:{'|'.join(sorted(_METHODS))})\b|\b(?:{'|'.join(sorted(_METHODS))})(?=\()")

_MAKES = "Fabric("
"""Stands among the words of what makes a Fabric."""

Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Relevance:
    """Answers for the functions and classes of one file."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._lines = text.splitlines(keepends=True) if "\f" not in text and "\x0b" not in text else []
        self.shift = 0
        """What was added to the line numbers of the tree since."""
        self._words: dict[ast.AST, frozenset[str]] = {}
        self._names: set[str] = set(_WORDS)
        self._acting: set[str] = set(_METHODS) | {_MAKES}
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self._units = [stmt for stmt in tree.body if isinstance(stmt, kinds)]
        self._named: frozenset[str] | None = None
        self._everything = not self._lines
        if not self._everything:
            self._names |= self._shared(tree, self._units)
            self._spread(self._names)
            self._spread(self._acting)

    def add(self, names: set[str]) -> None:
        """Take names that the module imports, and that lead to Fabric where they come from."""
        if not names <= self._acting:
            self._names |= names
            self._acting |= names
            self._spread(self._names)
            self._spread(self._acting)

    def acts(self, node: ast.AST) -> bool:
        """Whether a function makes a Fabric or calls one of its methods, itself or through others; not only has one."""
        return self._everything or bool(self._words_of(node) & self._acting)

    def says_strategy(self, node: ast.AST) -> bool:
        """Whether a function can say which strategy a program runs with."""
        return bool(self._words_of(node) & _STRATEGY_WORDS)

    @property
    def names(self) -> set[str]:
        """The names of the module whose functions and classes act on a Fabric."""
        if self._everything:
            return {unit.name for unit in self._units}
        return self._acting - _METHODS - {_MAKES}

    @property
    def leads(self) -> bool:
        """Whether anything of the module leads to Fabric."""
        return bool(self.names)

    @property
    def named(self) -> frozenset[str]:
        """The names of the module's functions and classes that another of its functions or classes has in it."""
        if self._named is None:
            names = frozenset(unit.name for unit in self._units)
            self._named = frozenset().union(*(self._named_in(unit, names) for unit in self._units))
        return self._named

    def _named_in(self, unit: Unit, names: frozenset[str]) -> frozenset[str]:
        others = (self._words_of(unit) & names) - {unit.name}
        if not others:
            return others
        return others & {node.id for node in ast.walk(unit) if isinstance(node, ast.Name)}

    def of(self, node: ast.AST) -> bool:
        """Whether a function (or lambda) is worth a look."""
        return self._everything or bool(self._words_of(node) & self._names)

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
        named: list[tuple[str, ast.AST]] = []
        for unit in self._units:
            named.append((unit.name, unit))
            if isinstance(unit, ast.ClassDef):
                functions = (ast.FunctionDef, ast.AsyncFunctionDef)
                named.extend((item.name, item) for item in unit.body if isinstance(item, functions))
        changed = True
        while changed:
            changed = False
            for name, node in named:
                if name not in names and self._words_of(node) & names:
                    names.add(name)
                    changed = True

    def _words_of(self, node: ast.AST) -> frozenset[str]:
        found = self._words.get(node)
        if found is None:
            start, end = getattr(node, "lineno", 1) - self.shift, (getattr(node, "end_lineno", None) or 0) - self.shift
            source = "".join(self._lines[start - 1 : max(end, 0)])
            found = frozenset(_WORD.findall(source))
            if not found.isdisjoint(_METHODS):  # in a comment such a word leads nowhere
                found -= _METHODS - frozenset(_USED.findall(source))
            if "Fabric(" in source or "LightningLite(" in source:
                found |= {_MAKES}
            self._words[node] = found
        return found
