"""Texts and settings: strings that are put together, and methods that give a constant or change one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import product

from fabric_fix.analysis.assumptions import Atoms, guard_of, guarded, is_open, known_as, names_strategy
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.objects import EMPTY, Collection, Const, Thing, Value
from fabric_fix.analysis.settings import set_defaults

MAX_TEXTS = 8
"""Texts kept apart that one expression can give."""


def joined(it: Interpreter, node: ast.expr, parts: list[Value]) -> Value | None:
    """The texts that parts give one after the other, or None when that cannot be said.

    Where only the beginning is known, it is kept: `f"deepspeed_stage_{stage}"` is some DeepSpeed.
    """
    count = 1
    for index, part in enumerate(parts):
        if not part or not all(isinstance(obj, Const) for obj in part):
            return _beginning(it, node, parts[:index])
        count *= len(part)
    if count > MAX_TEXTS or not any(isinstance(o, Const) and isinstance(o.value, str) for p in parts for o in p):
        return None
    found: Value = EMPTY
    for choice in product(*parts):
        text = "".join(str(obj.value) for obj in choice if isinstance(obj, Const))
        guard: Atoms = frozenset().union(*(guard_of(it, obj) for obj in choice))
        found = found | (guarded(it, (node, it.frame, choice), text, guard) if guard else it.const(text))
    return found


def _beginning(it: Interpreter, node: ast.expr, parts: list[Value]) -> Value | None:
    if not parts or any(len(part) != 1 for part in parts):
        return None
    text = "".join(str(obj.value) for part in parts for obj in part if isinstance(obj, Const))
    made = it.thing("op", node, "str")
    if text.startswith("deepspeed"):
        it.families[made] = frozenset({"deepspeed"})
    elif text.startswith("ddp"):
        it.families[made] = frozenset({"ddp"})
    else:
        return None
    return frozenset((made,))


def marked(it: Interpreter, value: Value, key: tuple[object, ...], atoms: Atoms) -> Value:
    """Flags and names of strategies that a value has in one branch only, as objects of that branch."""
    if not atoms:
        return value
    found = value
    for obj in value:
        if isinstance(obj, Const) and (isinstance(obj.value, bool) or names_strategy(obj.value)):
            if atoms <= guard_of(it, obj):
                continue  # it says so already, from an earlier turn of a loop
            found = found - {obj} | guarded(it, ("branch", *key, obj), obj.value, guard_of(it, obj) | atoms)
    return found


def _test(it: Interpreter, node: ast.Call, value: Value) -> Value | None:
    from fabric_fix.analysis.conditions import verdict

    return verdict(it, node)


def _same(it: Interpreter, node: ast.Call, value: Value) -> Value | None:
    """`strategy.lower()`: the same strategy."""
    from fabric_fix.analysis.questions import value_of

    inner = value_of(it, node) if not node.args else EMPTY
    return inner if inner and all(isinstance(obj, Const) and isinstance(obj.value, str) for obj in inner) else None


def _get(it: Interpreter, node: ast.Call, value: Value) -> Value | None:
    """`config.get("strategy", "deepspeed")` of a configuration of unknown origin."""
    owners = quiet(it, node.func.value) if isinstance(node.func, ast.Attribute) else EMPTY
    if len(node.args) != 2 or len(owners) != 1 or not isinstance(node.args[0], ast.Constant):
        return None
    default = evaluate(it, node.args[1])
    if not (default and all(isinstance(obj, Const) and names_strategy(obj.value) for obj in default)):
        return None
    owner = next(iter(owners))
    if isinstance(owner, Collection) and it.field(owner, "*") is None:
        return default if it.field(owner, f"'{node.args[0].value!s}") is None else None
    if not is_open(owner):
        return None
    asked = it.part(owner, "item", f"'{node.args[0].value!s}", node)
    found: Value = frozenset((asked,))
    for obj in default:
        found = found | (known_as(it, asked, obj.value) if isinstance(obj, Const) else EMPTY)
    return found


def _update(it: Interpreter, node: ast.Call, value: Value) -> Value | None:
    """`options.update(strategy="deepspeed")`."""
    owners = quiet(it, node.func.value) if isinstance(node.func, ast.Attribute) else EMPTY
    for owner in owners:
        if isinstance(owner, (Collection, Thing)):
            for keyword in node.keywords:
                if keyword.arg is not None:
                    it.set_field(owner, f"'{keyword.arg}", evaluate(it, keyword.value), weak=len(owners) > 1)
    return None


METHODS: dict[str, Callable[[Interpreter, ast.Call, Value], Value | None]] = {
    "startswith": _test,
    "endswith": _test,
    "lower": _same,
    "strip": _same,
    "casefold": _same,
    "get": _get,
    "update": _update,
    "set_defaults": set_defaults,
}
"""Methods that have a meaning beside what is known of their receiver; None leaves what the call gave."""
