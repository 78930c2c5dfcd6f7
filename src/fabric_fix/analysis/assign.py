"""Assignment: where a value goes."""

from __future__ import annotations

import ast

from fabric_fix.analysis import imports
from fabric_fix.analysis.doubles import replaces_strategy
from fabric_fix.analysis.expressions import evaluate, subscript_key
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import item
from fabric_fix.analysis.known import is_module_class
from fabric_fix.analysis.objects import (
    EMPTY,
    Class,
    Collection,
    FabricObj,
    Instance,
    ModuleObj,
    Obj,
    Sequence,
    StrategyView,
    Thing,
    Value,
    Wrapped,
)
from fabric_fix.analysis.places import spelled


def assign(it: Interpreter, target: ast.expr, value: Value) -> None:
    """Give a value to a target of any shape."""
    if isinstance(target, ast.Name):
        it.store(target.id, value)
        _bind(it, target, value)
    elif isinstance(target, ast.Attribute):
        _attribute(it, target, value)
    elif isinstance(target, ast.Subscript):
        _subscript(it, target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(it, target, value)
    elif isinstance(target, ast.Starred):
        assign(it, target.value, value)


def _bind(it: Interpreter, target: ast.expr, value: Value) -> None:
    place = spelled(target)
    if place is None or len(value) != 1:
        return
    for obj in value:
        if isinstance(obj, (Thing, Instance, Wrapped, FabricObj)):
            it.bindings.setdefault(obj, {})[(it.frame, place)] = it.stmt


def _attribute(it: Interpreter, target: ast.Attribute, value: Value) -> None:
    if target.attr == "grad":
        it.set_fact(None, "#plain", EMPTY)  # gradients set by hand: nothing is known of a step after it
    owners = evaluate(it, target.value)
    _kept(it, target, value)
    for owner in owners:
        if isinstance(owner, (FabricObj, StrategyView)) and replaces_strategy(owner, target.attr, value):
            it.set_fact(owner if isinstance(owner, FabricObj) else owner.fabric, "#double", it.const(True))
        kind = "setmodule" if any(_is_module(obj) for obj in value) else "setattr"
        it.use(owner, kind, target, target.attr)
        if isinstance(owner, Instance) and _setter(it, owner, target.attr, value):
            continue
        if isinstance(owner, Wrapped) and owner.kind == "module":
            owner = owner.inner
        if isinstance(owner, ModuleObj):
            imports.rebind(it, owner, target.attr, value)
        if isinstance(owner, (Instance, Thing, Class, FabricObj)):
            it.set_field(owner, target.attr, value, weak=len(owners) > 1)
    _bind(it, target, value)


def _is_module(obj: Obj) -> bool:
    if isinstance(obj, Instance):
        return obj.cls.kind == "module"
    return isinstance(obj, Thing) and is_module_class(obj.callee)


def _kept(it: Interpreter, target: ast.expr, value: Value) -> None:
    """An object goes to a place that outlives the name it came from."""
    for obj in value:
        it.use(obj, "keep", target)


def _setter(it: Interpreter, owner: Instance, name: str, value: Value) -> bool:
    found = owner.cls.method(f"{name}.setter")
    if found is None:
        return False
    from fabric_fix.analysis.calls import call_function
    from fabric_fix.analysis.events import Argument

    anchor = getattr(it.stmt, "value", None) or ast.Constant(None)
    call_function(it, found, it.stmt, [Argument(anchor, value)], owner)
    return True


def _subscript(it: Interpreter, target: ast.Subscript, value: Value) -> None:
    key = subscript_key(it, target.slice)
    _kept(it, target, value)
    for owner in evaluate(it, target.value):
        it.use(owner, "setitem", target)
        if isinstance(owner, (Collection, Thing)):
            it.set_field(owner, key or "*", value, weak=key is None)
        elif isinstance(owner, Sequence) and key is not None and key[1:].isdigit() and int(key[1:]) < len(owner.items):
            owner.items[int(key[1:])] = value
        elif isinstance(owner, Sequence) and key is None:
            owner.items = [old | value for old in owner.items]
    _bind(it, target, value)


def _unpack(it: Interpreter, target: ast.Tuple | ast.List, value: Value) -> None:
    count = len(target.elts)
    for obj in value:
        it.use(obj, "iterate", target)
    star = next((i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
    for index, part in enumerate(target.elts):
        if star is not None and index >= star:
            got = item(it, value, None, part) if index == star else item(it, value, index - count, part)
        else:
            got = item(it, value, index, part)
        assign(it, part, got)


def augment(it: Interpreter, stmt: ast.AugAssign) -> None:
    """`target += value`: the target then depends on both."""
    value = evaluate(it, stmt.value)
    old = _current(it, stmt.target)
    made = it.thing("op", stmt)
    for obj in old | value:
        made.deps = made.deps | _gradient(it, obj)
        made.sources = made.sources | _gradient(it, obj)
    if any(isinstance(obj, (Collection, Sequence)) for obj in old):
        for obj in old:
            if isinstance(obj, Collection):
                it.set_field(obj, "*", value, weak=True)
        return
    assign(it, stmt.target, frozenset((made,)))


def _current(it: Interpreter, target: ast.expr) -> Value:
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return evaluate(it, target)
    return EMPTY


def _gradient(it: Interpreter, obj: Obj) -> Value:
    from fabric_fix.analysis.derive import gradient

    return gradient(it, obj)
