"""Items and elements: what unpacking, subscripts and loops give."""

from __future__ import annotations

import ast

from fabric_fix.analysis.events import Iteration
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.objects import EMPTY, Collection, Obj, Sequence, Thing, Value, Wrapped


def item(it: Interpreter, value: Value, index: int | None, node: ast.AST) -> Value:
    """The item at an index of each object of a value; any item for None."""
    found: Value = EMPTY
    for obj in value:
        found = found | _item(it, obj, index, node)
    return found


def _item(it: Interpreter, obj: Obj, index: int | None, node: ast.AST) -> Value:
    if isinstance(obj, Sequence):
        if index is not None and -len(obj.items) <= index < len(obj.items):
            return obj.items[index]
        return frozenset().union(*obj.items) if obj.items else EMPTY
    if isinstance(obj, Collection):
        stored = it.field(obj, f"'{index}" if index is not None else "*")
        return stored or _any_of(it, obj) or frozenset((it.part(obj, "item", str(index), node),))
    if isinstance(obj, Thing):
        stored = it.field(obj, f"'{index}")
        return stored or frozenset((it.part(obj, "item", str(index), node),))
    return frozenset((it.part(obj, "item", str(index), node),))


def _any_of(it: Interpreter, obj: Obj) -> Value:
    stored = [value for name, value in it.state.table(obj).items() if not name.startswith("#")]
    return it.limit(frozenset().union(*stored))


def content(it: Interpreter, obj: Obj) -> Value:
    """Everything that a sequence or collection holds."""
    if isinstance(obj, Sequence):
        return frozenset().union(*obj.items) if obj.items else EMPTY
    if isinstance(obj, Collection):
        return _any_of(it, obj)
    return EMPTY


def elements(it: Interpreter, value: Value, node: ast.expr) -> Value:
    """What a loop over a value gives; a loop over a loader is an event."""
    found: Value = EMPTY
    for obj in value:
        found = found | _elements(it, obj, node)
    loaders = frozenset(obj for obj in value if isinstance(obj, (Thing, Wrapped)))
    if loaders:
        key = (node, it.frame)
        event = it.iterations.get(key)
        if event is None:
            event = it.iterations[key] = Iteration(node, it.stmt, it.frame)
        event.loader = event.loader | loaders
        for obj in loaders:
            it.use(obj, "iterate", node)
    return it.limit(found)


def _elements(it: Interpreter, obj: Obj, node: ast.expr) -> Value:
    if isinstance(obj, (Sequence, Collection)):
        return content(it, obj) or frozenset((it.part(obj, "iter", "", node),))
    if isinstance(obj, Thing) and obj.label == "enumerate" and obj.base is not None:
        pair = it.remember(("pair", obj, node), Sequence(node))
        assert isinstance(pair, Sequence)
        pair.items = [frozenset((it.part(obj, "iter", "index", node),)), _elements(it, obj.base, node)]
        return frozenset((pair,))
    made = it.part(obj, "iter", "", node)
    if isinstance(obj, Thing) and obj.label in ("parameters", "named_parameters", "modules", "children"):
        made.deps = made.sources = obj.deps
        made.label = obj.label
    return frozenset((made,))
