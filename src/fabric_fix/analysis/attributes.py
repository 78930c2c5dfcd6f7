"""Attributes: what `object.name` gives, without a call."""

from __future__ import annotations

import ast

from fabric_fix.analysis import imports
from fabric_fix.analysis.frames import Table
from fabric_fix.analysis.interp import Interpreter, Known
from fabric_fix.analysis.objects import (
    EMPTY,
    Bound,
    Class,
    Const,
    External,
    FabricObj,
    Function,
    Inside,
    Instance,
    ModuleObj,
    Obj,
    StrategyView,
    Thing,
    Value,
    Wrapped,
)

INSIDE = ("module", "_forward_module", "_original_module")
"""Attributes of a wrapped module that give what is inside it (`wrappers.py`, `_FabricModule`)."""


_NO_GRADIENT = frozenset({"data", "shape", "device", "dtype", "ndim", "requires_grad", "is_cuda", "grad"})
"""Attributes of a tensor through which no gradient flows."""


def attribute_of(it: Interpreter, value: Value, name: str, node: ast.AST, silent: bool = False) -> Value:
    """The attribute of every object of a value."""
    if len(value) == 1:
        (obj,) = value
        found = _attribute(it, obj, name, node, silent)
    else:
        found = EMPTY
        for obj in value:
            found = found | _attribute(it, obj, name, node, silent)
    if name in it.spellings:
        found = it.promote(found, name, node)
    return it.limit(found)


def _attribute(it: Interpreter, obj: Obj, name: str, node: ast.AST, silent: bool) -> Value:
    if isinstance(obj, External):
        return it.external(f"{obj.path}.{name}")
    if isinstance(obj, ModuleObj):
        return imports.member(it, obj, name)
    if isinstance(obj, FabricObj):
        return _of_fabric(it, obj, name, node)
    if isinstance(obj, StrategyView):
        return _of_strategy(it, obj, name, node)
    if isinstance(obj, Wrapped):
        return _of_wrapped(it, obj, name, node, silent)
    if isinstance(obj, Instance):
        return of_instance(it, obj, name, node, silent)
    if isinstance(obj, Class):
        return _of_class(it, obj, name, node)
    if isinstance(obj, Inside):
        if not silent:
            it.use(obj, "attr", node, name)
        return frozenset((it.part(obj.wrapped, "attr", name, node),))
    if isinstance(obj, Const) and name == "value" and isinstance(obj.value, str):
        return frozenset((obj,))  # a member of an enumeration
    return _of_thing(it, obj, name, node, silent)


def _of_fabric(it: Interpreter, obj: FabricObj, name: str, node: ast.AST) -> Value:
    stored = it.field(obj, name)
    if stored is not None:
        return stored
    own = obj.cls.method(name) if obj.cls else None
    if own is not None:
        return _method(it, obj, name, own, node)
    if name in ("strategy", "_strategy"):
        return frozenset((it.remember(("strategy", obj, False), StrategyView(obj, False)),))
    return frozenset((it.remember(("bound", obj, name), Bound(obj, name, None)),))


def _of_strategy(it: Interpreter, obj: StrategyView, name: str, node: ast.AST) -> Value:
    if name == "_backward_sync_control" and not obj.control:
        return frozenset((it.remember(("strategy", obj.fabric, True), StrategyView(obj.fabric, True)),))
    if name == "__class__":
        return frozenset((it.part(obj, "attr", name, node),))
    return frozenset((it.remember(("bound", obj, name), Bound(obj, name, None)),))


def _of_wrapped(it: Interpreter, obj: Wrapped, name: str, node: ast.AST, silent: bool) -> Value:
    if obj.kind == "module" and name in INSIDE:
        return frozenset((it.remember(("inside", obj, name), Inside(obj, name)),))
    if not silent:
        it.use(obj, "attr", node, name)
    stored = it.field(obj.inner, name)
    if stored is not None:
        return stored
    if isinstance(obj.inner, Instance):
        own = obj.inner.cls.method(name)
        if own is not None:
            return frozenset((it.remember(("bound", obj, name), Bound(obj, name, own)),))
    if name == "no_sync" and obj.kind == "module":
        return frozenset((it.remember(("bound", obj, name), Bound(obj, name, None)),))
    return frozenset((it.part(obj, "attr", name, node),))


def of_instance(it: Interpreter, obj: Instance, name: str, node: ast.AST, silent: bool) -> Value:
    """An attribute of an instance: its field, a property, a method, a class attribute, or something unknown."""
    stored = it.field(obj, name)
    own = obj.cls.method(name)
    if own is not None and not silent and obj.cls.kind == "module":
        it.use(obj, "bind", node, name)
    if own is not None and (stored is None or "property" in own.decorators):
        method = _method(it, obj, name, own, node)
        put_in = _of_class_chain(it, obj.cls, name)  # `Class.method = …` somewhere
        return method if put_in is None else method | frozenset(_bound(it, obj, name, part) for part in put_in)
    if stored is not None:
        if not silent:
            it.use(obj, "attr", node, name)
        return stored
    found = _of_class_chain(it, obj.cls, name)
    if found is not None:
        return found | (frozenset((it.part(obj, "attr", name, node),)) if obj.root else EMPTY)
    if not silent:
        it.use(obj, "attr", node, name)
    made = it.part(obj, "attr", name, node)
    annotation = _annotation(obj.cls, name)
    if annotation is not None and it.annotated(annotation, obj.cls.closure) == "fabric":
        return frozenset((it.fabric_for(made, node),))
    return frozenset((made,))


def _annotation(cls: Class, name: str) -> ast.expr | None:
    found = cls.annotations.get(name)
    if found is None:
        for base in cls.bases:
            if isinstance(base, Class):
                found = found or _annotation(base, name)
    return found


def _of_class_chain(it: Interpreter, cls: Class, name: str) -> Value | None:
    stored = it.field(cls, name)
    if stored is not None:
        return stored
    for base in cls.bases:
        if isinstance(base, Class):
            stored = _of_class_chain(it, base, name)
            if stored is not None:
                return stored
    return None


def _method(it: Interpreter, obj: Obj, name: str, own: Function, node: ast.AST) -> Value:
    if any(d.rpartition(".")[2] in ("property", "cached_property") for d in own.decorators):
        return _property(it, obj, own, node)
    if "staticmethod" in own.decorators:
        return frozenset((own,))
    return frozenset((it.remember(("bound", obj, name), Bound(obj, name, own)),))


def _bound(it: Interpreter, obj: Obj, name: str, part: Obj) -> Obj:
    """A function that was put into a class, as a method of an object."""
    if not isinstance(part, Function):
        return part
    return it.remember(("bound", obj, name, part), Bound(obj, name, part))


def _property(it: Interpreter, obj: Obj, own: Function, node: ast.AST) -> Value:
    """The value of a property, which is not asked again while the fields are what they were.

    For one that gives a field that is this field; it may be made when it is first asked for.
    """
    from fabric_fix.analysis.calls import call_function

    key = (obj, own)
    known = it.properties.get(key)
    fields = it.state.table(obj)
    if known is not None and known.assumed <= it.state.assumed and _is_still(fields, known):
        return known.value
    found = call_function(it, own, node, [], obj)
    fields = it.state.table(obj)
    given = {name: value for name, value in fields.items() if found <= value}
    it.properties[key] = Known(given or dict(fields), bool(given), it.state.assumed, found)
    return found


def _is_still(fields: Table, known: Known) -> bool:
    """Whether the fields of an object are as they were when a property was asked for, as far as that gives them."""
    same = all(fields.get(name) == value for name, value in known.fields.items())
    return same and (known.gives_field or len(fields) == len(known.fields))


def _of_class(it: Interpreter, obj: Class, name: str, node: ast.AST) -> Value:
    stored = _of_class_chain(it, obj, name)
    if stored is not None:
        return stored
    own = obj.method(name)
    if own is not None:
        if "classmethod" in own.decorators:
            return frozenset((it.remember(("bound", obj, name), Bound(obj, name, own)),))
        return frozenset((own,))
    return frozenset((it.part(obj, "attr", name, node),))


def _of_thing(it: Interpreter, obj: Obj, name: str, node: ast.AST, silent: bool) -> Value:
    if isinstance(obj, Thing):
        owner = it.remembered(("strategy_of", obj))
        if owner is not None:
            return _of_strategy(it, _view(it, owner), name, node)
        if not silent:
            it.use(obj, "bind" if name == "forward" else "attr", node, name)
        stored = it.field(obj, name)
        if stored is None and obj.kind == "args" and obj.base is not None:
            stored = it.field(obj.base, name)
        if stored is not None:
            return stored
        if name in _NO_GRADIENT:
            return frozenset((it.part(obj, "iter", name, node),))
    return frozenset((it.part(obj, "attr", name, node),))


def _view(it: Interpreter, fabric: Obj) -> StrategyView:
    assert isinstance(fabric, FabricObj)
    found = it.remember(("strategy", fabric, False), StrategyView(fabric, False))
    assert isinstance(found, StrategyView)
    return found


def strategy_view(it: Interpreter, obj: Obj) -> StrategyView | None:
    """For a strategy object that a Fabric was made with: that Fabric's strategy."""
    fabric = it.remembered(("strategy_of", obj))
    return None if fabric is None else _view(it, fabric)
