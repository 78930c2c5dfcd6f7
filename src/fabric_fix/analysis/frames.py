"""Frames (a function in one calling context), scopes (which names are local) and the state of a program point."""

from __future__ import annotations

import ast
from itertools import compress, islice
from operator import is_not
from typing import TYPE_CHECKING

from fabric_fix.analysis.objects import UNBOUND, Function, Obj, Value

if TYPE_CHECKING:
    from fabric_fix.analysis.assumptions import Atoms
    from fabric_fix.analysis.modules import Module


class Scope:
    """Which names a function (or module) binds itself, and which it declares global or nonlocal."""

    __slots__ = ("has_inner", "locals", "outer")

    def __init__(self, node: ast.AST) -> None:
        self.locals: set[str] = set()
        self.outer: dict[str, str] = {}
        self.has_inner = False
        arguments = getattr(node, "args", None)
        if isinstance(arguments, ast.arguments):
            for argument in all_arguments(arguments):
                self.locals.add(argument.arg)
        body = node.body if isinstance(node.body, list) else [node.body]  # type: ignore[attr-defined]
        self._walk(body)
        self.locals.difference_update(self.outer)

    def _walk(self, nodes: list[ast.AST]) -> None:
        stack = list(nodes)
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                    self.locals.add(node.id)  # type: ignore[attr-defined]
                continue
            if kind in (ast.Constant, ast.Load, ast.Store):
                continue
            if kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
                self.locals.add(node.name)  # type: ignore[attr-defined]
                self.has_inner = True
                stack.extend(node.decorator_list)  # type: ignore[attr-defined]
                continue
            if kind is ast.Lambda:
                self.has_inner = True
                continue
            if kind in (ast.Import, ast.ImportFrom):
                for alias in node.names:  # type: ignore[attr-defined]
                    self.locals.add((alias.asname or alias.name).partition(".")[0])
                continue
            if kind is ast.Global or kind is ast.Nonlocal:
                word = "global" if kind is ast.Global else "nonlocal"
                self.outer.update(dict.fromkeys(node.names, word))  # type: ignore[attr-defined]
                continue
            if (kind is ast.ExceptHandler and node.name) or (kind in (ast.MatchAs, ast.MatchStar) and node.name):  # type: ignore[attr-defined]
                self.locals.add(node.name)  # type: ignore[attr-defined]
            elif kind is ast.MatchMapping and node.rest:  # type: ignore[attr-defined]
                self.locals.add(node.rest)  # type: ignore[attr-defined]
            for value in node.__dict__.values():  # as `push_children`, which is too often called from here
                what = value.__class__
                if what in _NO_NODES:
                    continue
                if what is list:
                    stack += [part for part in value if isinstance(part, ast.AST)]
                elif isinstance(value, ast.AST):
                    stack.append(value)


_NO_NODES = frozenset({int, str, type(None), ast.Load, ast.Store})
"""What most fields of nodes hold; `Load` and `Store` are one object each, and stand nowhere."""


def push_children(node: ast.AST, stack: list[ast.AST]) -> None:
    """Put the child nodes of a node on a stack; `ast.iter_child_nodes` does the same at three times the cost."""
    for value in node.__dict__.values():
        kind = value.__class__
        if kind in _NO_NODES:
            continue
        if kind is list:
            stack.extend([part for part in value if isinstance(part, ast.AST)])
        elif isinstance(value, ast.AST):
            stack.append(value)


def all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Every parameter of a function, in the order of the source."""
    found = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg:
        found.append(arguments.vararg)
    found.extend(arguments.kwonlyargs)
    if arguments.kwarg:
        found.append(arguments.kwarg)
    return found


class Frame:
    """A function in one calling context, or a module."""

    __slots__ = (
        "call",
        "call_stmt",
        "caller",
        "closure",
        "depth",
        "entry",
        "function",
        "module",
        "node",
        "returns",
        "scope",
        "source",
        "spellings",
    )

    def __init__(
        self,
        node: ast.AST,
        scope: Scope,
        *,
        function: Function | None = None,
        call: ast.AST | None = None,
        caller: Frame | None = None,
        call_stmt: ast.stmt | None = None,
        source: Module | None = None,
    ) -> None:
        self.node = node
        self.scope = scope
        self.function = function
        self.call = call
        self.caller = caller
        self.call_stmt = call_stmt
        self.closure: Frame | None = function.closure if function else None
        self.module: Frame = self.closure.module if self.closure else self
        """The frame of the module that its code is in."""
        self.source: Module = source if source is not None else self.module.source
        """That module."""
        self.spellings: frozenset[str] = self.source.spellings
        self.depth: int = caller.depth + 1 if caller else 0
        self.entry: dict[str, Value] = {}
        """The parameters with their values."""
        self.returns: list[tuple[Value, State]] = []

    def chain(self) -> list[Frame]:
        """This frame, its caller, and so on."""
        found: list[Frame] = []
        frame: Frame | None = self
        while frame is not None:
            found.append(frame)
            frame = frame.caller
        return found


Owner = Obj | Frame | None
Table = dict[str, Value]

_NONE: Table = {}
_UNBOUND: Value = frozenset({UNBOUND})


class State:
    """What is known at one program point.

    A table for each live frame (its variables), for each object (its fields, and facts that begin with `#`), and for
    None (facts of the whole program). States share tables until one of them writes, so a branch costs no copy of what
    it leaves alone.
    """

    __slots__ = ("_over", "_owned", "assumed", "base", "tables")

    def __init__(self, base: dict[Owner, Table]) -> None:
        self.assumed: Atoms = frozenset()
        """How the tests on the way here came out."""
        self.tables: dict[Owner, Table] = {}
        self.base = base
        """What imported modules left behind; one for all states of a program."""
        self._over: frozenset[Owner] = frozenset()
        """The owners of which this state has another table than `base`."""
        self._owned: set[Owner] = set()

    def get(self, owner: Owner, name: str) -> Value | None:
        """The value of a variable, field or fact."""
        table = self.tables.get(owner)
        if table is None:
            table = self.base.get(owner, _NONE)
        return table.get(name)

    def table(self, owner: Owner) -> Table:
        """Everything known of one owner; not to be written to."""
        table = self.tables.get(owner)
        return table if table is not None else self.base.get(owner, _NONE)

    def put(self, owner: Owner, name: str, value: Value) -> None:
        """Set a variable, field or fact."""
        self._own(owner)[name] = value

    def drop(self, owner: Owner, name: str) -> None:
        """Forget a variable or field."""
        if name in self.table(owner):
            del self._own(owner)[name]

    def replace(self, owner: Owner, table: Table | None) -> None:
        """Give an owner a table of its own, or forget it for None."""
        if table is None:
            self.tables.pop(owner, None)
        else:
            self.tables[owner] = table
            self._owned.add(owner)

    def is_shared(self, owner: Owner) -> bool:
        """Whether the table of an owner may be another state's, too, so that a change makes a new one."""
        return owner not in self._owned

    def _own(self, owner: Owner) -> Table:
        table = self.tables.get(owner)
        if table is None:
            table = self.tables[owner] = self.base.get(owner, _NONE).copy()
            self._owned.add(owner)
            if owner in self.base:
                self._over |= {owner}
        elif owner not in self._owned:
            table = self.tables[owner] = table.copy()
            self._owned.add(owner)
        return table

    def take(self, tables: dict[Owner, Table]) -> None:
        """Start with the tables of another state, which are not this one's to write to."""
        self.tables = dict(tables)

    def copy(self) -> State:
        """Another state with the same content; from now on both share their tables."""
        twin = State(self.base)
        twin.tables = self.tables.copy()
        twin.assumed = self.assumed
        twin._over = self._over
        self._owned = set()
        return twin

    def join(self, other: State) -> State:
        """What holds when either can be the case; a variable that only one knows may be unbound."""
        self.assumed = self.assumed & other.assumed
        for owner in differing(other.tables, self.tables):
            mine, theirs = self.tables.get(owner), other.tables[owner]
            if mine is None and owner not in self.base:
                self.tables[owner] = theirs.copy()
                self._owned.add(owner)
            elif mine is not theirs and mine != theirs:
                _join_tables(self._own(owner), theirs, isinstance(owner, Frame))
        for owner in self._over - other._over:
            _join_tables(self._own(owner), self.base[owner], isinstance(owner, Frame))
        self._over |= other._over
        return self

    def same(self, other: State) -> bool:
        """Whether both say the same."""
        if len(self.tables) != len(other.tables) or self.assumed != other.assumed:
            return False
        return all(self.tables[owner] == other.tables.get(owner) for owner in differing(self.tables, other.tables))


def differing(these: dict[Owner, Table], those: dict[Owner, Table]) -> list[Owner]:
    """The owners whose tables may be others in `those`; for all that are left out both have one and the same table.

    Tables are compared by their places, which spares a look-up for each: states that come from one have the owners
    that they have in common in one order, and no two owners have one table.
    """
    found = list(compress(these, map(is_not, these.values(), those.values())))
    found += islice(these, len(those), None)
    return found


def _join_tables(mine: Table, theirs: Table, variables: bool) -> None:
    for name, value in theirs.items():
        old = mine.get(name)
        if old is None:
            mine[name] = value | _UNBOUND if variables else value
        elif old is not value and old != value:
            mine[name] = old | value
    if variables and mine.keys() - theirs.keys():
        for name in mine.keys() - theirs.keys():
            mine[name] = mine[name] | _UNBOUND
