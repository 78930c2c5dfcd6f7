"""Method calls on objects that are not Fabrics: tensors, models, optimizers, wrapped objects, lists and dicts."""

from __future__ import annotations

import ast

from fabric_fix.analysis import calls, fabric_calls, known, library
from fabric_fix.analysis.attributes import INSIDE
from fabric_fix.analysis.derive import argument_gradients, derived, gradients
from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.expressions import collection, told_apart
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.objects import (
    EMPTY,
    Collection,
    Const,
    Inside,
    Instance,
    Obj,
    Sequence,
    Thing,
    Value,
    Wrapped,
    raw,
)

_LOOKS_UP = frozenset({"get", "pop", "setdefault", "index", "count", "remove", "discard"})
"""Methods of lists, sets and dicts whose first argument is compared with what is there."""


def of_wrapped(it: Interpreter, node: ast.Call, obj: Wrapped | Inside, name: str, args: list[Argument]) -> Value:
    """A method of a wrapped object, or of what is inside one."""
    it.use(obj, "method", node, name)
    if isinstance(obj, Wrapped) and obj.kind == "optimizer" and name == "step":
        return fabric_calls.optimizer_step(it, node, obj, args)
    if name == "no_sync":
        fabric_calls.model_no_sync(it, node, obj, args)
    if isinstance(obj, Wrapped) and obj.kind == "module":
        stored = it.field(obj.inner, name)
        if stored is not None and name not in INSIDE:
            found: Value = EMPTY
            for callee in stored:
                found = found | calls.apply(it, node, callee, args)
            return found
    calls.pass_arguments(it, node, args, follow=False)
    if name in known.KEEPS_IDENTITY:
        return frozenset((obj,))
    return _result(it, node, obj, name, args)


def of_thing(it: Interpreter, node: ast.Call, obj: Thing, name: str, args: list[Argument]) -> Value:
    """A method of an object of which only the origin is known."""
    if name in ("add_argument", "add_argument_group", "add_mutually_exclusive_group", "parse_args", "parse_known_args"):
        found = library.argument_parser(it, node, obj, name, args)
        if found is not None:
            return found
    it.use(obj, "method", node, name)
    if name == "step" and is_optimizer(obj):
        return fabric_calls.optimizer_step(it, node, obj, args)
    return unseen(it, node, obj, name, args)


def of_instance(it: Interpreter, node: ast.Call, obj: Instance, name: str, args: list[Argument]) -> Value:
    """A method of an instance that its class does not define in the program (it is inherited from a library)."""
    it.use(obj, "method", node, name)
    if name == "step" and is_optimizer(obj):
        return fabric_calls.optimizer_step(it, node, obj, args)
    return unseen(it, node, obj, name, args)


def unseen(it: Interpreter, node: ast.Call, obj: Obj, name: str, args: list[Argument]) -> Value:
    """A method that is not followed."""
    if name == "no_sync":
        fabric_calls.raw_no_sync(it, node, obj)
    harmless = name in ("load_state_dict", "append", "update", "add", "print", "info")
    calls.pass_arguments(it, node, args, follow=not harmless, detail=name)
    if name in known.KEEPS_IDENTITY:
        return frozenset((obj,))
    return _result(it, node, obj, name, args)


def _result(it: Interpreter, node: ast.Call, obj: Obj, name: str, args: list[Argument]) -> Value:
    itself: Value
    if name in ("parameters", "named_parameters", "modules", "children"):
        made = it.thing("op", node, name)
        owners: Value = frozenset((obj.wrapped,)) if isinstance(obj, Inside) else _owner(it, obj)
        made.deps = made.sources = made.deps | owners  # of all the objects that the receiver can be
        made.base = obj
        return frozenset((made,))
    itself = gradients(it, frozenset((obj,)))
    cut = name in known.CUTS_GRADIENT
    made = derived(it, "call", node, name, itself | argument_gradients(it, args), cut=cut)
    made.base = obj
    if cut:
        made.kind = "op"
    return frozenset((made,))


def _owner(it: Interpreter, obj: Obj) -> Value:
    """The models that parameters belong to: a model itself, the one that a submodule is part of."""
    if isinstance(obj, Thing) and obj.kind == "call":
        return frozenset((obj,))  # what has parameters is a model, whatever it was made from
    base = obj.base if isinstance(obj, Thing) and obj.kind == "item" else None
    if isinstance(base, Thing) and base.kind == "call" and not base.callee.rpartition(".")[2][:1].isupper():
        return frozenset((obj,))  # `agent, player = build_agent(...)`
    return it.roots_of(obj) or gradients(it, frozenset((obj,)))


def of_container(it: Interpreter, node: ast.Call, obj: Obj, name: str, args: list[Argument]) -> Value:
    """A method of a list, tuple or dict."""
    if name in _LOOKS_UP and args:
        told_apart(it, args[0].value, args[0].node)
    if name in ("append", "add", "extend", "insert", "update", "setdefault"):
        _grow(it, node, obj, name, args)
        return it.const(None)
    if name in ("get", "pop") and args and isinstance(obj, Collection):
        return _get(it, node, obj, args)
    if name == "items":
        return _pairs(it, node, obj)
    if name in ("values", "copy", "keys"):
        made = collection(it, node)
        it.set_field(made, "*", content(it, obj) if name != "keys" else EMPTY)
        return frozenset((made,))
    return frozenset((derived(it, "call", node, name, gradients(it, frozenset((obj,)))),))


def _grow(it: Interpreter, node: ast.Call, obj: Obj, name: str, args: list[Argument]) -> None:
    added: Value = EMPTY
    for argument in args:
        for part in argument.value:
            it.use(part, "keep", node)
            spread = content(it, part) if name in ("extend", "update") else frozenset((part,))
            added = added | spread
            if isinstance(obj, Collection) and isinstance(part, Collection) and name == "update":
                for key, value in list(it.state.table(part).items()):
                    it.set_field(obj, key, value)
    if name == "update" and isinstance(obj, Collection):
        for argument in args:
            if argument.name not in (None, "**"):
                it.set_field(obj, f"'{argument.name}", argument.value)
        args = [argument for argument in args if argument.name in (None, "**")]
    if name == "update" and isinstance(obj, Collection) and not all(_is_spread(it, a) for a in args):
        for key, value in list(it.state.table(obj).items()):  # any of its values can be another one now
            if key.startswith("'"):
                it.set_field(obj, key, value | frozenset((it.part(obj, "item", "*", node),)))
    if isinstance(obj, Sequence):
        if added not in obj.items:
            obj.items.append(added)
    else:
        it.set_field(obj, "*", added, weak=True)


def _is_spread(it: Interpreter, argument: Argument) -> bool:
    """Whether what a dict is updated with is known key by key."""
    dicts = [part for part in argument.value if isinstance(part, Collection) and it.field(part, "*") is None]
    return bool(dicts) and len(dicts) == len(argument.value)


def _get(it: Interpreter, node: ast.Call, obj: Collection, args: list[Argument]) -> Value:
    for key in args[0].value:
        if isinstance(key, Const):
            stored = it.field(obj, f"'{key.value}")
            if stored is not None:
                return stored
    found = content(it, obj)
    return found or frozenset((it.part(obj, "item", "*", node),))


def _pairs(it: Interpreter, node: ast.Call, obj: Obj) -> Value:
    made = collection(it, node)
    pair = it.remember(("pair", node, it.frame), Sequence(node))
    assert isinstance(pair, Sequence)
    pair.items = [frozenset((it.thing("op", node, "key"),)), content(it, obj)]
    it.set_field(made, "*", frozenset((pair,)))
    return frozenset((made,))


def is_optimizer(obj: Obj) -> bool:
    """Whether an object is an optimizer: wrapped as one, made by an optimizer class, or named like one."""
    if isinstance(obj, Wrapped):
        return obj.kind == "optimizer"
    if isinstance(obj, Instance):
        return obj.cls.kind == "optimizer"
    if isinstance(obj, Thing):
        if obj.callee:
            return known.is_optimizer_class(obj.callee) and not known.is_scheduler_class(obj.callee)
        name = obj.label.lower()
        return "opt" in name and "sched" not in name and "option" not in name
    return False


def is_scheduler(obj: Obj) -> bool:
    """Whether an object surely is a learning-rate scheduler."""
    obj = raw(obj)
    if isinstance(obj, Instance):
        return obj.cls.kind == "scheduler"
    return isinstance(obj, Thing) and known.is_scheduler_class(obj.callee)


def is_loader(obj: Obj) -> bool:
    """Whether an object surely is a DataLoader."""
    obj = raw(obj)
    if isinstance(obj, Instance):
        return obj.cls.kind == "loader"
    return isinstance(obj, Thing) and known.is_loader_class(obj.callee)
