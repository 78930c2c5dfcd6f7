"""Models that are items of a list or dict, for which no name stands: `models[i]`, where that is one and the same."""

from __future__ import annotations

import ast

from fabric_fix.analysis.events import Call
from fabric_fix.analysis.objects import Value, Wrapped
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.setups import place_of_setup, targets_of


def wrapped_item(program: Program, node: ast.Call, wanted: dict[Call, Wrapped]) -> tuple[str, list[str]] | None:
    """The item that holds the wrapped module at a call, and what the source does not show of it."""
    found = {_item(program, node, event, wrapped) for event, wrapped in wanted.items()}
    one = found.pop() if len(found) == 1 else None
    if one is None:
        return None
    text, is_sure = one
    return text, [] if is_sure else [f"the source does not show that `{text}` is set up, like the other items"]


def half_wrapped_name(wanted: dict[Call, Wrapped]) -> str | None:
    """A name of the wrapped module that can, as far as is known, also be that of the raw one: both come from a list."""
    common: set[str] | None = None
    for event, wrapped in wanted.items():
        both = frozenset({wrapped, wrapped.inner})
        names = {name for name, held in event.places.items() if held == both}
        common = names if common is None else common & names
    return min(common, key=lambda name: (name.count("."), len(name), name)) if common else None


def _item(program: Program, node: ast.Call, event: Call, wrapped: Wrapped) -> tuple[str, bool] | None:
    """`models[i]` where `models[i](…)` gave what the loss comes from; whether it surely is set up."""
    calls = [use for use in program.uses() if use.kind == "call" and use.frame is event.frame]
    nodes = [use.node for use in calls if use.obj is wrapped and isinstance(use.node, ast.Call)]
    funcs = [call.func for call in nodes]
    if len({ast.unparse(func) for func in funcs}) != 1 or not _is_item(funcs[0]):
        return None
    if not all(_stays(program, call.func, call, node) for call in nodes):
        return None
    objs: Value = frozenset(use.obj for use in calls if use.node in nodes)
    text = ast.unparse(funcs[0])
    in_place = _set_up_in_place(program, node, wrapped) == text
    return (text, in_place or objs == {wrapped}) if objs <= {wrapped, wrapped.inner} else None


def _set_up_in_place(program: Program, node: ast.Call, wrapped: Wrapped) -> str | None:
    """`models[i]` where `models[i], … = fabric.setup(…)` ran just before, with the same `i`."""
    setups = program.setups().get(wrapped.node)
    if setups is None or program.syntax.function(wrapped.node) is not program.syntax.function(node):
        return None
    place = place_of_setup(program, wrapped.node, setups)
    target = None if isinstance(place, str) else targets_of(place)[0]
    if target is None or not _is_item(target) or not _stays(program, target, wrapped.node, node):
        return None
    return ast.unparse(target)


def _is_item(node: ast.expr) -> bool:
    """`models[i]`, `self.models["actor"]`: an item whose key is a name or a constant."""
    if not isinstance(node, ast.Subscript) or spelled(node.value) is None:
        return False
    return isinstance(node.slice, (ast.Name, ast.Constant))


def _stays(program: Program, item: ast.expr, first: ast.AST, second: ast.AST) -> bool:
    """Whether an item is the same object at two calls of a function, the second of which runs after the first."""
    passed = _between(program, program.syntax.statement(first), second)
    if passed is None or not isinstance(item, ast.Subscript):
        return False
    owner = spelled(item.value) or ""
    roots = {owner.partition(".")[0], item.slice.id if isinstance(item.slice, ast.Name) else ""}
    return not any(_changes(part, owner, roots) for part in passed)


def _between(program: Program, first: ast.stmt, second: ast.AST) -> list[ast.AST] | None:
    """All that may run between a statement and a node below it; None where the statement may not have run before."""
    outer = first
    while (end := program.syntax.in_block(second, program.syntax.block(outer))) is None:
        parent = program.syntax.parents[outer]
        if not isinstance(parent, (ast.With, ast.AsyncWith)):
            return None
        outer = parent
    block = program.syntax.block(outer)
    start = block.index(outer)
    own = set(ast.walk(first))
    inside = [part for statement in block[start : end + 1] for part in ast.walk(statement) if part not in own]
    return inside if start <= end else None


def _changes(part: ast.AST, owner: str, roots: set[str]) -> bool:
    """Whether something binds the names of an item anew, or can change what it is an item of."""
    if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
        return part.id in roots
    if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
        return owner in (spelled(part), spelled(part.value))
    if not isinstance(part, ast.Call):
        return False
    given = [*part.args, *(keyword.value for keyword in part.keywords)]
    receiver = spelled(part.func.value) if isinstance(part.func, ast.Attribute) else None
    return owner == receiver or any(spelled(argument) == owner for argument in given)
