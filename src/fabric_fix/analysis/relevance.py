"""Which functions are worth a look of their own: those whose source can lead to a call of Fabric's.

A function that nothing calls and that neither calls a method of Fabric nor a function that does, has no event to find.
The question is asked of the source text, which is some hundred times cheaper than to interpret it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from fabric_fix.analysis.frames import push_children
from fabric_fix.prefilter import BETWEEN_WORDS

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

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
TRAINS = re.compile(r"\.(?:backward|no_backward_sync|no_sync|step|parameters)\(|\boptim\b|[oO]ptimizer")
"""What trains, or makes an optimizer; the pattern stands among the words of what does."""
_PROSE = re.compile(
    r"""[\"'#](?:"""  # the first character is a set, which the search for it needs to be fast
    r"""(?<=\#)[^\n]*"""
    r"""|(?<=\")(?:\"\"[^\"\\]*(?:(?:\\.|\"(?!\"\"))[^\"\\]*)*\"\"\"|[^\"\\\n]*(?:\\.[^\"\\\n]*)*\")"""
    r"""|(?<=')(?:''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|[^'\\\n]*(?:\\.[^'\\\n]*)*'))""",
    re.S,
)
"""Strings and comments."""
_LINE_END = re.compile(r"\r\n|\r|\n")


class Unit(NamedTuple):
    """A function, class or method in a text."""

    name: str
    first: int
    """The line of its `def` or `class`, from 1."""
    last: int
    """A line at or behind its end."""
    words: frozenset[str]


class Imported(NamedTuple):
    """What a module imports and leads to Fabric."""

    names: Set[str]
    """Functions and classes, as they are called where they are imported."""
    members: Mapping[str, Set[str]]
    """Modules, as they are called there, with their names that lead to Fabric."""


class Relevance:
    """Answers for the functions and classes of one file."""

    def __init__(self, tree: ast.Module, text: str, units: Sequence[Unit]) -> None:
        self._text = text
        self._lines: list[str] | None = None
        self.shift = 0
        """What was added to the line numbers of the tree since."""
        self._units = units
        self._by_line = {unit.first: unit for unit in units}
        self._words: dict[ast.AST, frozenset[str]] = {}
        self._members: Mapping[str, Set[str]] = {}
        self._names: set[str] = set(_WORDS) | self._shared(tree)
        self._acting: set[str] = set(ACTING)
        self._spread()
        self._definitions = [stmt for stmt in tree.body if isinstance(stmt, _UNITS)]
        self._named: frozenset[str] | None = None

    def add(self, imported: Imported) -> None:
        """Take what the module imports and leads to Fabric where it comes from."""
        if imported.members or not imported.names <= self._acting:
            self._members = imported.members
            self._names |= imported.names
            self._acting |= imported.names
            self._spread()

    def acts(self, node: ast.AST) -> bool:
        """Whether a function makes a Fabric or calls one of its methods, itself or through others; not only has one."""
        return lead(self._words_of(node), self._acting, self._members)

    def says_strategy(self, node: ast.AST) -> bool:
        """Whether a function can say which strategy a program runs with."""
        return bool(self._words_of(node) & _STRATEGY_WORDS)

    @property
    def names(self) -> set[str]:
        """The names of the module whose functions and classes act on a Fabric."""
        return self._acting - ACTING

    @property
    def named(self) -> frozenset[str]:
        """The names of the module's functions and classes that another of its functions or classes has in it."""
        if self._named is None:
            names = frozenset(node.name for node in self._definitions)
            self._named = frozenset().union(*(self._named_in(node, names) for node in self._definitions))
        return self._named

    def _named_in(self, node: Definition, names: frozenset[str]) -> frozenset[str]:
        others = (self._words_of(node) & names) - {node.name}
        if not others:
            return others
        found: set[str] = set()
        stack: list[ast.AST] = [node]
        while stack:
            part = stack.pop()
            if part.__class__ is ast.Name:
                found.add(part.id)
            else:
                push_children(part, stack)
        return others & found

    def of(self, node: ast.AST) -> bool:
        """Whether a function (or lambda) is worth a look."""
        return lead(self._words_of(node), self._names, self._members)

    def of_class(self, node: ast.ClassDef) -> bool:
        """Whether a class is worth a look."""
        return self.of(node)

    def _shared(self, tree: ast.Module) -> set[str]:
        """Names that code at module level gives to what it uses Fabric for: every function can use them."""
        plain = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        rest = [stmt for stmt in tree.body if not isinstance(stmt, plain)]
        spoken = [self._words_of(stmt) for stmt in rest if self._words_of(stmt) & _WORDS]
        stored: set[str] = set()
        for stmt in rest if spoken else []:
            stored |= {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return stored & frozenset().union(*spoken)

    def _spread(self) -> None:
        """Add the names of functions and methods that lead to Fabric, to what leads there, and so on."""
        units = [(unit.name, unit.words) for unit in self._units]
        spread(self._names, units, self._members)
        spread(self._acting, units, self._members)

    def _words_of(self, node: ast.AST) -> frozenset[str]:
        found = self._words.get(node)
        if found is None:
            first, last = getattr(node, "lineno", 1) - self.shift, (getattr(node, "end_lineno", None) or 0) - self.shift
            unit = self._by_line.get(first)
            if unit is not None and last <= unit.last and isinstance(node, _UNITS):
                found = unit.words
            else:
                if self._lines is None:
                    self._lines = _LINE_END.split(self._text)
                found = words_in("\n".join(self._lines[first - 1 : max(last, 0)]))
            self._words[node] = found
        return found


_UNITS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def words_in(source: str) -> frozenset[str]:
    """The words of a piece of source that can lead to Fabric."""
    source = _PROSE.sub(_without_prose, source)
    plain = source.encode("utf-8", "surrogatepass").translate(BETWEEN_WORDS)  # a third of the time that `\w+` takes
    found = frozenset(plain.decode("utf-8", "surrogatepass").split())
    if not found.isdisjoint(METHODS):  # in a comment such a word leads nowhere
        found -= METHODS - frozenset(_USED.findall(source))
    if "Fabric(" in source or "LightningLite(" in source:
        found |= {_MAKES}
    return found | {TRAINS.pattern} if TRAINS.search(source) else found


def _without_prose(match: re.Match[str]) -> str:
    """A string of one word, which may be an attribute's name, or one with expressions; else nothing."""
    text, source, at = match[0], match.string, match.start()
    if text[0] != "#" and not (" " in text or "\n" in text):
        return text
    prefix = source[max(at - 2, 0) : at].lower()
    return text if text[0] != "#" and (prefix.endswith("f") or prefix == "fr") else " "


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
