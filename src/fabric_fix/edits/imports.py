"""Where an import goes: `AddImport` as an insertion, as a longer import, or as nothing where the name is bound already.

An import runs what the imported module runs, and that may depend on what stands above it (`os.environ[...] = ...`,
`sys.path`). So it goes behind an import of the same package that runs anyway, and above nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from fabric_fix.edits.conflicts import anchor_of, place_of
from fabric_fix.edits.lines import LineTable
from fabric_fix.edits.model import AddImport, Edit, EditError, InsertStatement, MoveStatement, ReplaceStatement, Where
from fabric_fix.edits.places import Position, end_of
from fabric_fix.finding import Span

HOMES = ("lightning.fabric", "lightning_fabric")
"""The two distributions of Fabric: the same names, but not the same classes."""


def place_imports(tree: ast.Module, edits: Sequence[Edit], lines: LineTable | None = None) -> list[Edit]:
    """The edits with each `AddImport` replaced by the edit that it means on this tree, or dropped.

    The names of one module come in one statement. `lines`, those of the text, keep an import with a comment from being
    widened. Raises EditError when a name means something else in the file, or when there is no sure place.
    """
    placed: list[Edit] = [edit for edit in edits if not isinstance(edit, AddImport)]
    wanted = list(dict.fromkeys(edit for edit in edits if isinstance(edit, AddImport)))
    if not wanted:
        return placed
    file = _File(tree, min((place for edit in placed for place in _places(edit)), default=None), lines)
    missing: dict[str, list[str]] = {}
    for edit in wanted:
        module = file.home_of(edit.module)
        if not file.has(module, edit.name):
            missing.setdefault(module, []).append(edit.name)
    return [*(file.place(module, names) for module, names in missing.items()), *placed]


def _places(edit: Edit) -> Iterator[Position]:
    """Where an edit's code goes, at the earliest."""
    place, anchor = place_of(edit), anchor_of(edit)
    if place is not None:
        yield place.line, place.column
    if anchor is not None:
        is_below = isinstance(edit, InsertStatement | MoveStatement) and edit.where is Where.AFTER
        yield (anchor.end_line, anchor.end_column) if is_below else (anchor.line, anchor.column)


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string, which documents what it is the first statement of."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_future_import(statement: ast.stmt) -> bool:
    """Whether a statement is `from __future__ import ...`."""
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level


def head_of(tree: ast.Module) -> list[ast.stmt]:
    """The docstring and the `__future__` imports, which must stay first."""
    head: list[ast.stmt] = []
    for statement in tree.body:
        if not (is_future_import(statement) or (not head and is_docstring(statement))):
            break
        head.append(statement)
    return head


class _File:
    """What a file imports, and where; `first_use` is where the edits first need what they import."""

    def __init__(self, tree: ast.Module, first_use: Position | None, lines: LineTable | None) -> None:
        self.tree = tree
        self.first_use = first_use
        self.lines = lines
        self.bindings = list(_bindings(tree))
        self.top = [node for node in tree.body if _is_import(node) and not is_future_import(node)]
        self.roots = {root for node, _ in self.bindings for root in _roots(node)} - {"__future__"}

    def home_of(self, module: str) -> str:
        """A module of Fabric in the distribution that the file imports; any other as it is. Raises EditError."""
        home = next((home for home in HOMES if f"{module}.".startswith(f"{home}.")), None)
        if home is None:
            return module
        used = [other for other in HOMES if other.split(".")[0] in self.roots]
        if len(used) == 1:
            return used[0] + module[len(home) :]
        if used:
            raise EditError("the file imports `lightning` and `lightning_fabric`, whose classes are not the same")
        raise EditError("the file does not show whether Fabric comes from `lightning` or `lightning_fabric`")

    def has(self, module: str, name: str) -> bool:
        """Whether a name of a module is bound at the top of the file. Raises EditError when it means something else."""
        bound = [(node, is_inner) for node, is_inner in self.bindings if name in _names_of(node)]
        if not all(_is_that_import(node, module, name) for node, _ in bound):
            raise EditError(f"the name `{name}` already means something else in this file")
        if any(is_inner for _, is_inner in bound):
            raise EditError(f"the name `{name}` is imported inside a function, which may hide it")
        return any(self._is_in_time(node) for node in self.top if any(node is other for other, _ in bound))

    def place(self, module: str, names: Sequence[str]) -> Edit:
        """The edit that imports names. Raises EditError when no place is sure."""
        code = f"from {module} import {', '.join(names)}"
        above = self._neighbours(module.split(".")[0], names[0])
        wider = next((node for node in reversed(above) if self._can_widen(node, module)), None)
        if wider is not None:
            return ReplaceStatement(Span.of(wider), f"{ast.unparse(wider)}, {', '.join(names)}")
        if above:
            return InsertStatement(Span.of(above[-1]), Where.AFTER, code)
        if not self.tree.body:
            raise EditError("the file has no statement beside which an import could stand")
        return InsertStatement(Span.of(self.tree.body[0]), Where.BEFORE, code)

    def _neighbours(self, root: str, name: str) -> list[ast.stmt]:
        """The statements behind the last of which an import may stand; none when it may be the first of the file."""
        if root in self.roots:
            related = [node for node in self.top if root in _roots(node)]
            if not related:
                raise EditError(f"`{root}` is imported inside a function or a condition only, so `{name}` has no place")
        elif self.roots or self.top:
            related = self.top
        else:
            return head_of(self.tree)
        above = [node for node in related if self._is_in_time(node)]
        if not above:
            raise EditError(f"`{name}` is needed above the imports that it would have to stand behind")
        return above

    def _is_in_time(self, node: ast.stmt) -> bool:
        """Whether a statement stands before everything that needs what it imports."""
        return self.first_use is None or end_of(node) <= self.first_use

    def _can_widen(self, node: ast.stmt, module: str) -> bool:
        """Whether a statement imports from this module, on one plain line without a comment."""
        if not isinstance(node, ast.ImportFrom) or node.module != module or node.level or node.names[0].name == "*":
            return False
        span = Span.of(node)
        is_plain = span.line == span.end_line and span.end_column - span.column == len(ast.unparse(node).encode())
        return is_plain and (self.lines is None or "#" not in self.lines.line(span.line))


def _is_that_import(node: ast.AST, module: str, name: str) -> bool:
    """Whether a node imports just this name; the modules below are where a package has its names from."""
    return (
        isinstance(node, ast.ImportFrom)
        and not node.level
        and f"{node.module}.".startswith(f"{module}.")
        and any(alias.name == name and alias.asname in (None, name) for alias in node.names)
    )


def _bindings(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes of a file that bind a name, and whether they do so inside a function or a class."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, is_inner = stack.pop()
        if isinstance(node, _BINDERS) and _names_of(node):
            yield node, is_inner
        is_inner = is_inner or isinstance(node, _SCOPES)
        stack.extend((child, is_inner) for child in ast.iter_child_nodes(node))


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_BINDERS = (
    ast.Name,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.arg,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)


def _names_of(node: ast.AST) -> list[str]:
    """The names that a node binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    name = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
    return [name] if name else []


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _roots(node: ast.AST) -> set[str]:
    """The root packages that an import statement imports from."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {node.module.split(".")[0]}
    return set()
