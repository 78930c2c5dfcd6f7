"""The meaning of edits on `ast`: what a rule simulates a fix with, and what a rewritten text must parse to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fabric_fix.edits.conflicts import check_conflicts
from fabric_fix.edits.imports import is_docstring, place_imports
from fabric_fix.edits.model import (
    AddArgument,
    BindResult,
    Edit,
    EditError,
    InsertStatement,
    MoveStatement,
    NameArgument,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
    ReplaceTargets,
    Where,
)
from fabric_fix.edits.places import ExpressionPlace, StatementPlace, find_expression, find_statement
from fabric_fix.finding import Span

Node = TypeVar("Node", bound=ast.AST)
Change = Callable[[], None]


def apply_to_tree(tree: ast.Module, edits: Sequence[Edit]) -> ast.Module:
    """Make edits on a freshly parsed tree, in place, and return it.

    The edits may come in any order: all places are found on the tree as it was. Old nodes keep their positions.
    New nodes have the position of the anchor, or of what they replace, and the attribute `_fabric_fix_new`.
    Raises EditError with a reason when a place is not found or an edit is refused; the tree is then not to be used.
    """
    placed = place_imports(tree, edits)
    check_conflicts(placed)
    work = _Work(tree)
    changes = [(_PHASES[type(edit)], work.prepare(edit)) for edit in placed]
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        change()
    work.fill_empty_blocks()
    return tree


def parse_expression(code: str) -> ast.expr:
    """The `ast` of an expression. Raises EditError when the code is none."""
    for written in (code.strip(), f"({code.strip()}\n)"):  # `a := b` and `yield a` need parentheses of their own
        try:
            return ast.parse(written, mode="eval").body
        except (SyntaxError, ValueError):
            continue
    raise EditError(f"`{code}` is no expression")


def parse_statement(code: str) -> ast.stmt:
    """The `ast` of one statement. Raises EditError when the code is not exactly one."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError) as error:
        raise EditError(f"`{code}` is no statement") from error
    if len(body) != 1:
        raise EditError(f"`{code}` is not one statement")
    return body[0]


def parse_targets(code: str) -> ast.expr:
    """The `ast` of an assignment's target. Raises EditError when the code is none."""
    statement = parse_statement(f"{code} = 0")
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise EditError(f"`{code}` is no target of an assignment")
    return statement.targets[0]


_PHASES: dict[type, int] = {
    ReplaceExpression: 0,
    AddArgument: 0,
    RemoveArgument: 0,
    NameArgument: 0,
    ReplaceTargets: 0,
    InsertStatement: 1,
    MoveStatement: 2,
    ReplaceStatement: 3,
    BindResult: 3,
    RemoveStatement: 4,
}
"""Statements are put beside their anchors while these are still where they were."""


class _Work:
    """The state of one application: which statements were put after which anchor, and which blocks lost some."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.after: dict[int, list[ast.stmt]] = {}
        self.emptied: list[tuple[list[ast.stmt], ast.stmt]] = []

    def prepare(self, edit: Edit) -> Change:
        """Find an edit's places and return what makes it."""
        prepare: Callable[[Any], Change] = getattr(self, f"_{type(edit).__name__}")
        return prepare(edit)

    def fill_empty_blocks(self) -> None:
        """Put `pass` into the blocks that have nothing left; a module may be empty."""
        for block, removed in self.emptied:
            if not block and block is not self.tree.body:
                block.append(_new(ast.Pass(), removed))

    def _ReplaceExpression(self, edit: ReplaceExpression) -> Change:
        place = find_expression(self.tree, edit.span)
        new = _new(parse_expression(edit.code), place.node)
        _copy_context(place, new)
        if isinstance(place.parent, ast.AnnAssign) and place.field == "target":
            place.parent.simple = int(isinstance(new, ast.Name) and not edit.code.lstrip().startswith("("))
        return lambda: place.put(new)

    def _AddArgument(self, edit: AddArgument) -> Change:
        call = _find_call(self.tree, edit.call)
        value = _new(parse_expression(edit.code), call)
        if edit.keyword is None:
            return lambda: _add_positional(call, value, edit.index)
        keyword = _new(ast.keyword(edit.keyword, value), call)
        return lambda: _add_keyword(call, keyword)

    def _RemoveArgument(self, edit: RemoveArgument) -> Change:
        call = _find_call(self.tree, edit.call)
        argument = find_argument(call, edit.argument)
        return lambda: _remove_argument(call, argument)

    def _NameArgument(self, edit: NameArgument) -> Change:
        call = _find_call(self.tree, edit.call)
        argument = find_argument(call, edit.argument)
        return lambda: _name_argument(call, argument, edit.keyword)

    def _ReplaceTargets(self, edit: ReplaceTargets) -> Change:
        statement = find_statement(self.tree, edit.statement).statement
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise EditError("the statement is no assignment with one `=`")
        target = _new(parse_targets(edit.targets), statement.targets[0])
        return lambda: statement.targets.__setitem__(0, target)

    def _BindResult(self, edit: BindResult) -> Change:
        place = find_statement(self.tree, edit.statement)
        if not isinstance(place.statement, ast.Expr):
            raise EditError("the statement is no bare expression")
        target = _new(parse_targets(edit.targets), place.statement)
        expression = place.statement

        def change() -> None:
            assign = ast.copy_location(ast.Assign(targets=[target], value=expression.value), expression)
            assign._fabric_fix_new = True  # type: ignore[attr-defined]
            place.block[_index(place)] = assign

        return change

    def _InsertStatement(self, edit: InsertStatement) -> Change:
        anchor = _find_anchor(self.tree, edit.anchor, edit.where)
        new = _new(parse_statement(edit.code), anchor.statement)
        return lambda: self._put(new, anchor, edit.where)

    def _MoveStatement(self, edit: MoveStatement) -> Change:
        place = _find_whole(self.tree, edit.statement)
        anchor = _find_anchor(self.tree, edit.anchor, edit.where)
        if place.block is not anchor.block:
            raise EditError("a statement can only be moved within its block")

        def change() -> None:
            del place.block[_index(place)]
            self._put(place.statement, anchor, edit.where)

        return change

    def _ReplaceStatement(self, edit: ReplaceStatement) -> Change:
        place = _find_whole(self.tree, edit.statement)
        new = _new(parse_statement(edit.code), place.statement)
        return lambda: place.block.__setitem__(_index(place), new)

    def _RemoveStatement(self, edit: RemoveStatement) -> Change:
        place = _find_whole(self.tree, edit.statement)
        self.emptied.append((place.block, place.statement))
        return lambda: place.block.__delitem__(_index(place))

    def _put(self, new: ast.stmt, anchor: StatementPlace, where: Where) -> None:
        index = _index(anchor)
        if where is Where.AFTER:
            earlier = self.after.setdefault(id(anchor.statement), [])
            index += 1
            while index < len(anchor.block) and any(anchor.block[index] is other for other in earlier):
                index += 1
            earlier.append(new)
        anchor.block.insert(index, new)


def _index(place: StatementPlace) -> int:
    for index, statement in enumerate(place.block):
        if statement is place.statement:
            return index
    raise EditError(f"the statement at line {place.statement.lineno} was taken away by another edit")


def _find_whole(tree: ast.Module, span: Span) -> StatementPlace:
    place = find_statement(tree, span)
    if place.is_elif:
        raise EditError("an `elif` is no statement of its own")
    return place


def _find_anchor(tree: ast.Module, span: Span, where: Where) -> StatementPlace:
    place = _find_whole(tree, span)
    documented = isinstance(place.owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    if where is Where.BEFORE and documented and place.block[0] is place.statement and is_docstring(place.statement):
        raise EditError("nothing may stand before a docstring")
    return place


def _find_call(tree: ast.Module, span: Span) -> ast.Call:
    node = find_expression(tree, span).node
    if not isinstance(node, ast.Call):
        raise EditError(f"the expression at line {span.line} is no call")
    return node


def find_argument(call: ast.Call, span: Span) -> ast.expr | ast.keyword:
    """The argument of a call whose value (of `*value`, too) has this span. Raises EditError when there is none."""
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    for argument in arguments:
        value = argument.value if isinstance(argument, ast.keyword | ast.Starred) else argument
        if span in (Span.of(argument), Span.of(value)):
            return argument
    raise EditError(f"the call at line {call.lineno} has no such argument")


def _remove_argument(call: ast.Call, argument: ast.expr | ast.keyword) -> None:
    if isinstance(argument, ast.keyword):
        call.keywords = [other for other in call.keywords if other is not argument]
    else:
        call.args = [other for other in call.args if other is not argument]


def _name_argument(call: ast.Call, argument: ast.expr | ast.keyword, keyword: str) -> None:
    if isinstance(argument, (ast.keyword, ast.Starred)) or not call.args or call.args[-1] is not argument:
        raise EditError(f"the argument at line {argument.lineno} is not the last positional one")
    if any(other.arg in (keyword, None) for other in call.keywords):
        raise EditError(f"`{keyword}` could already be given")
    call.args.pop()
    call.keywords.insert(0, ast.copy_location(ast.keyword(keyword, argument), argument))


def _add_positional(call: ast.Call, value: ast.expr, index: int | None) -> None:
    index = len(call.args) if index is None else index
    if not 0 <= index <= len(call.args):
        raise EditError(f"the call at line {call.lineno} has too few arguments")
    if any(isinstance(argument, ast.Starred) for argument in call.args[:index]):
        raise EditError("`*` could already hold the argument")
    if any(keyword.arg is None for keyword in call.keywords):
        raise EditError("`**` could already hold the argument")
    call.args.insert(index, value)


def _add_keyword(call: ast.Call, keyword: ast.keyword) -> None:
    if any(other.arg == keyword.arg for other in call.keywords):
        raise EditError(f"the call already has the argument `{keyword.arg}`")
    if any(other.arg is None for other in call.keywords):
        raise EditError("`**` could already hold the argument")
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        raise EditError("`*` could already hold the argument")
    call.keywords.append(keyword)


def _copy_context(place: ExpressionPlace, new: ast.expr) -> None:
    """Make a new target a target (`Store`, `Del`) like the one that it replaces, inside tuples, too."""
    context = getattr(place.node, "ctx", None)
    if context is None or isinstance(context, ast.Load):
        return
    stack = [new]
    while stack:
        node = stack.pop()
        if not hasattr(node, "ctx"):
            raise EditError("the expression cannot be assigned to")
        node.ctx = type(context)()
        if isinstance(node, ast.Tuple | ast.List):
            stack.extend(node.elts)
        elif isinstance(node, ast.Starred):
            stack.append(node.value)


def _new(node: Node, like: ast.stmt | ast.expr) -> Node:
    """Give a new node and all in it the position of an old one, and mark them."""
    for part in ast.walk(node):
        if "lineno" in part._attributes:
            ast.copy_location(part, like)
        part._fabric_fix_new = True  # type: ignore[attr-defined]
    return node
