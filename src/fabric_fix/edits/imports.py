"""Where an import goes: `AddImport` as an `InsertStatement`, or as nothing where the name is bound already."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from fabric_fix.edits.model import AddImport, Edit, EditError, InsertStatement, Where
from fabric_fix.finding import Span


def place_imports(tree: ast.Module, edits: Sequence[Edit]) -> list[Edit]:
    """The edits with each `AddImport` replaced by the insertion that it means on this tree, or dropped.

    Equal imports are made once. Raises EditError when the name means something else at the top of the file.
    """
    placed: list[Edit] = []
    seen: set[AddImport] = set()
    for edit in edits:
        if not isinstance(edit, AddImport):
            placed.append(edit)
        elif edit not in seen:
            seen.add(edit)
            if not _is_imported(tree, edit):
                placed.append(_insertion(tree, edit))
    return placed


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


def _is_imported(tree: ast.Module, edit: AddImport) -> bool:
    bound = [binding for name, binding in _bindings(tree) if name == edit.name]
    if not bound:
        return False
    if all(_is_that_import(binding, edit) for binding in bound):
        return any(binding in tree.body for binding in bound)  # one under `if TYPE_CHECKING` does not do
    raise EditError(f"the name `{edit.name}` already means something else in this file")


def _is_that_import(binding: ast.AST, edit: AddImport) -> bool:
    return (
        isinstance(binding, ast.ImportFrom)
        and binding.module == edit.module
        and not binding.level
        and any(alias.name == edit.name and alias.asname in (None, edit.name) for alias in binding.names)
    )


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The names that are bound in the module's own scope, with what binds them."""
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.split(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Lambda):
            continue
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, node
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                yield node.name, node
            stack.extend(ast.iter_child_nodes(node))


def _insertion(tree: ast.Module, edit: AddImport) -> InsertStatement:
    code = f"from {edit.module} import {edit.name}"
    if not tree.body:
        raise EditError("the file has no statement beside which an import could stand")
    head = _head(tree)
    block = _import_block(tree.body[len(head) :])
    relatives = [statement for statement in block if edit.module.split(".")[0] in _roots(statement)]
    before = relatives or block or head
    if before:
        return InsertStatement(Span.of(before[-1]), Where.AFTER, code)
    return InsertStatement(Span.of(tree.body[0]), Where.BEFORE, code)


def _head(tree: ast.Module) -> list[ast.stmt]:
    """The docstring and the `__future__` imports, which must stay first."""
    head: list[ast.stmt] = []
    for statement in tree.body:
        if not (is_future_import(statement) or (not head and is_docstring(statement))):
            break
        head.append(statement)
    return head


def _import_block(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    block: list[ast.stmt] = []
    for statement in body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        block.append(statement)
    return block


def _roots(statement: ast.stmt) -> set[str]:
    """The root packages that an import statement imports from."""
    if isinstance(statement, ast.Import):
        return {alias.name.split(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        return {statement.module.split(".")[0]}
    return set()
