"""How sure the analysis is that an object is a raw model, and how an object that is passed can be named as wrapped."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Argument, Call
from fabric_fix.analysis.objects import Inside, Instance, Obj, Thing, Value, Wrapped, raw
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.scopes import place_of
from fabric_fix.setups import wrapped_of

_NO_MODEL = (
    "Loss",
    "Criterion",
    "ReLU",
    "GELU",
    "Softmax",
    "Sigmoid",
    "Tanh",
    "Dropout",
    "Identity",
    "Flatten",
    "Parameter",
    "Buffer",
)


def surely_raw(obj: Obj) -> bool:
    """Whether an object surely is a raw model: made by calling a class of modules, here or in a library."""
    if isinstance(obj, Instance):
        return obj.cls.kind == "module" and not obj.root
    if not isinstance(obj, Thing) or obj.kind not in ("call", "op"):
        return False
    if known.is_module_class(obj.callee):
        return True
    root, _, name = obj.callee.rpartition(".")
    of_class = root.rpartition(".")[2][:1].isupper() and name in ("from_pretrained", "from_config")
    plain = name[:1].isupper() and not known.is_optimizer_class(obj.callee) and not known.is_loader_class(obj.callee)
    return bool(root) and (plain or of_class) and not obj.callee.startswith(("torch.utils", "builtins"))


def has_parameters(obj: Obj) -> bool:
    """Whether a raw model can have parameters of its own to train (a loss or an activation has none)."""
    name = obj.cls.node.name if isinstance(obj, Instance) else getattr(obj, "callee", "").rpartition(".")[2]
    return not name.endswith(_NO_MODEL)


def fabric_place(events: Sequence[Call]) -> str | None:
    """A name of the Fabric at a call, in every context, each of which may have its own; None when there is none."""
    is_one = all(len(event.fabrics) == 1 for event in events)
    return place_of(events, {event: frozenset(event.fabrics) for event in events}) if is_one else None


def fabric_of_strategy(node: ast.Call) -> str | None:
    """`fabric` in `fabric.strategy.no_backward_sync` and `fabric.strategy._backward_sync_control.no_backward_sync`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    if isinstance(inner, ast.Attribute) and inner.attr == "_backward_sync_control":
        inner = inner.value
    if isinstance(inner, ast.Attribute) and inner.attr in ("strategy", "_strategy"):
        return spelled(inner.value)
    return None


def wrapped_name(events: Sequence[Call], wanted: dict[Call, Wrapped]) -> str | None:
    """A name under which the wrapped module wanted in each context can be read there.

    A field that holds the raw module before its set-up and the wrapped one after it counts as well.
    """
    exact = place_of(events, {event: frozenset((wrapped,)) for event, wrapped in wanted.items()})
    if exact is not None:
        return exact
    common: set[str] | None = None
    for event, wrapped in wanted.items():
        names = {name for name, held in event.places.items() if "." in name and _field_of(held, wrapped)}
        common = names if common is None else common & names
    return min(common, key=lambda name: (len(name), name)) if common else None


def _field_of(held: Value, wrapped: Wrapped) -> bool:
    return wrapped in held and all(raw(obj) is wrapped.inner or getattr(obj, "value", 0) is None for obj in held)


def wrapped_argument(
    program: Program, events: Sequence[Call], argument: ast.expr, values: dict[Call, Value]
) -> str | None:
    """The source of the wrapped module for an argument that is the raw one, or what is inside the wrapped one."""
    if isinstance(argument, ast.Attribute) and all(_is_inside(value) for value in values.values()):
        base = spelled(argument.value)
        if base is not None and all(event.places.get(base) == _wrapped_of(value) for event, value in values.items()):
            return base
    wanted: dict[Call, Wrapped] = {}
    for event, value in values.items():
        found = _the_wrapped(program, value)
        if found is None:
            return None
        wanted[event] = found
    return wrapped_name(events, wanted)


def _wrapped_of(value: Value) -> Value:
    """The wrapped modules that a value is the inside of."""
    return frozenset(obj.wrapped for obj in value if isinstance(obj, Inside))


def _is_inside(value: Value) -> bool:
    return bool(value) and all(isinstance(obj, Inside) for obj in value)


def _the_wrapped(program: Program, value: Value) -> Wrapped | None:
    found: set[Wrapped] = set()
    for obj in value:
        if isinstance(obj, Inside):
            found.add(obj.wrapped)
        elif isinstance(obj, Wrapped):
            found.add(obj)
        else:
            found.update(wrapped_of(program, obj))
    return next(iter(found)) if len(found) == 1 else None


def module_argument_of(events: Sequence[Call]) -> Argument | None:
    """The module that a `no_backward_sync` call is given."""
    return events[0].argument("module", 0)
