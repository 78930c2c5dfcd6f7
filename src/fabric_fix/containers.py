"""Which containers surely take an assignment to an item: a tuple, or a view of a dict, does not."""

from __future__ import annotations

import ast
import re

from fabric_fix.analysis import known
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import EMPTY, Collection, Const, External, Instance, Obj, Sequence, Thing, Value
from fabric_fix.analysis.program import Program

_DISPLAYS = (ast.List, ast.Dict, ast.ListComp, ast.DictComp)
_MAKERS = frozenset({"list", "sorted", "dict", "copy", "OrderedDict", "defaultdict", "deque", "fromkeys", "Counter"})
"""Functions and methods that give a list or a dict; `copy` is one of these where it is a container's."""
_GROWS = frozenset({"append", "extend", "insert", "setdefault"})
_ANNOTATION = re.compile(
    r"(typing\.|collections\.(abc\.)?|\w\.)?"
    r"([Ll]ist|[Dd]ict|MutableMapping|MutableSequence|OrderedDict|[Dd]efault[Dd]ict)\b"
)


def item_problem(program: Program, target: ast.Subscript) -> str | None:
    """Why a result cannot be assigned to an item: the container refuses it, or may do so; None when it takes it."""
    owners = frozenset(obj for obj in program.once(_indexed).get(target, EMPTY) if not isinstance(obj, Const))
    if owners and all(_is_mutable(program, obj) for obj in owners):
        return None
    text = ast.unparse(target.value)
    by_hand = "give its items names of their own, set these up, and use them below"
    if any(_is_tuple(obj) for obj in owners):
        return f"`{text}` is a tuple, which takes no assignment: {by_hand}"
    return f"the source does not show that `{text}` takes an assignment, as a list or a dict does: {by_hand}"


def _indexed(program: Program) -> dict[ast.AST, Value]:
    """The containers whose items are taken, by the subscripts."""
    found: dict[ast.AST, Value] = {}
    for use in program.uses():
        if use.kind == "index" and isinstance(use.node, ast.Subscript):
            found[use.node] = found.get(use.node, EMPTY) | {use.obj}
    return found


def _is_mutable(program: Program, obj: Obj) -> bool:
    if isinstance(obj, Sequence):
        return obj.of == "list"
    if isinstance(obj, Collection):
        return _makes_mutable(obj.node) or isinstance(obj.node, ast.arg)
    if isinstance(obj, Instance):
        return obj.cls.method("__setitem__") is not None or any(_is_library_container(base) for base in obj.cls.bases)
    return obj in program.once(_changed) or (isinstance(obj, Thing) and _is_made_mutable(obj))


def _is_made_mutable(obj: Thing) -> bool:
    """Whether what made an object, or the annotation of a parameter, says that it is a list, a dict or the like."""
    if obj.kind == "call":
        return obj.callee.rpartition(".")[2] in _MAKERS - {"copy"} or known.is_module_class(obj.callee)
    if isinstance(obj.node, ast.BinOp):
        return any(isinstance(side, (ast.List, ast.ListComp)) for side in (obj.node.left, obj.node.right))
    annotation = obj.node.annotation if isinstance(obj.node, ast.arg) else None
    return annotation is not None and _ANNOTATION.match(ast.unparse(annotation).strip("'\"")) is not None


def _makes_mutable(node: ast.AST) -> bool:
    return isinstance(node, _DISPLAYS) or (isinstance(node, ast.Call) and last_name(node.func) in _MAKERS)


def _is_library_container(base: Obj) -> bool:
    if not isinstance(base, External):
        return False
    return base.path.rpartition(".")[2] in ("list", "dict", "OrderedDict", "UserDict", "UserList", *known.CONTAINERS)


def _is_tuple(obj: Obj) -> bool:
    return isinstance(obj, Sequence) and obj.of == "tuple" and isinstance(obj.node, (ast.Tuple, ast.arg))


def _changed(program: Program) -> Value:
    """What an item is assigned to somewhere, or something is added to."""
    return frozenset(
        use.obj for use in program.uses() if use.kind == "setitem" or (use.kind == "method" and use.detail in _GROWS)
    )
