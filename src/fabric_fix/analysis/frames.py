"""Frames (a function in one calling context), scopes (which names are local) and the state of a program point."""

from __future__ import annotations

import ast

from fabric_fix.analysis.objects import UNBOUND, Function, Obj, Value

Key = tuple[Obj | None, str]


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
            if kind is ast.ExceptHandler and node.name:  # type: ignore[attr-defined]
                self.locals.add(node.name)  # type: ignore[attr-defined]
            elif kind in (ast.MatchAs, ast.MatchStar) and node.name:  # type: ignore[attr-defined]
                self.locals.add(node.name)  # type: ignore[attr-defined]
            elif kind is ast.MatchMapping and node.rest:  # type: ignore[attr-defined]
                self.locals.add(node.rest)  # type: ignore[attr-defined]
            push_children(node, stack)


def push_children(node: ast.AST, stack: list[ast.AST]) -> None:
    """Put the child nodes of a node on a stack; `ast.iter_child_nodes` does the same at three times the cost."""
    for value in node.__dict__.values():
        if isinstance(value, list):
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

    __slots__ = ("call", "call_stmt", "caller", "closure", "depth", "entry", "function", "node", "returns", "scope")

    def __init__(
        self,
        node: ast.AST,
        scope: Scope,
        *,
        function: Function | None = None,
        call: ast.AST | None = None,
        caller: Frame | None = None,
        call_stmt: ast.stmt | None = None,
    ) -> None:
        self.node = node
        self.scope = scope
        self.function = function
        self.call = call
        self.caller = caller
        self.call_stmt = call_stmt
        self.closure: Frame | None = function.closure if function else None
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


class State:
    """What is known at one program point: the variables of live frames, and the fields of objects with facts (`#...`)."""

    __slots__ = ("heap", "names")

    def __init__(self) -> None:
        self.names: dict[Frame, dict[str, Value]] = {}
        self.heap: dict[Key, Value] = {}

    def copy(self) -> State:
        """A state of its own with the same content."""
        twin = State()
        twin.names = {frame: names.copy() for frame, names in self.names.items()}
        twin.heap = self.heap.copy()
        return twin

    def join(self, other: State) -> State:
        """What holds when either can be the case; a name that only one knows may be unbound."""
        for frame, names in other.names.items():
            mine = self.names.get(frame)
            if mine is None:
                self.names[frame] = names.copy()
            elif mine is not names:
                _join_names(mine, names)
        heap = self.heap
        for key, value in other.heap.items():
            old = heap.get(key)
            if old is None:
                heap[key] = value
            elif old is not value and old != value:
                heap[key] = old | value
        return self

    def same(self, other: State) -> bool:
        """Whether both say the same."""
        return self.heap == other.heap and self.names == other.names


_UNBOUND: Value = frozenset({UNBOUND})


def _join_names(mine: dict[str, Value], other: dict[str, Value]) -> None:
    for name, value in other.items():
        old = mine.get(name)
        if old is None:
            mine[name] = value | _UNBOUND
        elif old is not value and old != value:
            mine[name] = old | value
    if len(mine) > len(other):
        for name in mine:
            if name not in other:
                mine[name] = mine[name] | _UNBOUND
