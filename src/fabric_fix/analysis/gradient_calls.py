"""How gradients come and go: `backward`, `step()`, `zero_grad()` and clipping, and the events they leave."""

from __future__ import annotations

import ast

from fabric_fix.analysis.derive import gradients
from fabric_fix.analysis.events import Argument, Backward, Call, PlainBackward, Setup, Step
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.objects import (
    EMPTY,
    UNKNOWN,
    Const,
    External,
    FabricObj,
    Instance,
    Obj,
    StrategyView,
    Thing,
    Value,
    Wrapped,
    raw,
    raws,
)


def event(
    it: Interpreter, kind: type[Call], node: ast.Call, method: str, fabric: FabricObj, args: list[Argument]
) -> Call:
    """The event of a call here, made at its first interpretation and widened at later ones."""
    from fabric_fix.analysis.conditions import strategies

    key = (kind.__name__, node, it.frame)
    found = it.events.get(key)
    if found is None:
        found = it.events[key] = kind(node, it.stmt, it.frame, method)
        found.args = args
        found.places = {} if kind is Setup else it.places()
    else:
        widen(found, args, {} if kind is Setup else it.places())
    found.mixed = found.mixed or it.mixed
    found.expected = it.expecting > 0 or bool(it.fact(fabric, "#double"))
    found.fabrics = found.fabrics | {fabric}
    found.strategies = found.strategies | strategies(it, fabric)
    return found


def widen(found: Call, args: list[Argument], places: dict[str, Value]) -> None:
    """Join what a call met at another time into its event."""
    for old, new in zip(found.args, args, strict=False):
        old.value = old.value | new.value
    found.places = {name: found.places[name] | places[name] for name in found.places if name in places}


def use_arguments(it: Interpreter, node: ast.Call, args: list[Argument], kind: str) -> None:
    """Record that the arguments of a call, and what they hold, were used in a way."""
    for argument in args:
        for obj in argument.value:
            for part in (obj, *content(it, obj)):
                it.use(part, kind, node)


def backward(it: Interpreter, node: ast.Call, fabric: FabricObj, args: list[Argument]) -> Value:
    """`fabric.backward(loss, model=...)`."""
    found = event(it, Backward, node, "backward", fabric, args)
    assert isinstance(found, Backward)
    use_arguments(it, node, [a for a in args if a.name == "model"], "backward")
    loss = found.argument("tensor", 0)
    value = loss.value if loss is not None else EMPTY
    deps: Value = EMPTY
    for obj in value:
        if not (isinstance(obj, Thing) and obj.kind in ("param", "name", "item", "attr") and not obj.deps):
            deps = deps | gradients(it, frozenset((obj,)))
    found.loss = found.loss | value
    found.deps = found.deps | (deps - {UNKNOWN})
    found.uncertain = found.uncertain or not value or UNKNOWN in deps or any(_hidden(obj) for obj in value)
    found.models = found.models | it.fact(fabric, "#models")
    found.many = found.many or bool(it.fact(fabric, "#many"))
    counts = [obj.value for obj in it.fact(fabric, "#count") if isinstance(obj, Const) and isinstance(obj.value, int)]
    found.count = max([found.count, *counts])
    for modules in it.sync:
        found.sync = found.sync | modules
    drop_gradients(it, raws(deps - {UNKNOWN}))
    _note_backward(it, found)
    return it.const(None)


def _hidden(obj: Obj) -> bool:
    """Whether a loss comes from where the analysis cannot see what it was computed from."""
    return not isinstance(obj, Thing) or obj.kind in ("param", "name", "item", "attr")


def _note_backward(it: Interpreter, found: Backward) -> None:
    pending = _backwards(it.fact(None, "#pending"))
    targets = raws(found.deps)
    touches: dict[Value, bool] = {}  # many have the same models
    for other in pending:
        if other.deps not in touches:
            touches[other.deps] = bool(raws(other.deps) & targets)
        if touches[other.deps]:
            found.repeats.add(other)
    stepping = it.fact(None, "#stepping")
    marker = it.remember(("event", found), _Mark(found))
    if stepping and not any(isinstance(o, Const) and o.value is False for o in stepping):
        group: Value = frozenset((marker,))
    else:
        group = it.fact(None, "#group") | {marker}
    _note_group(found, _backwards(group))
    it.set_fact(None, "#group", group)
    it.set_fact(None, "#pending", it.fact(None, "#pending") | {marker})
    it.set_fact(None, "#unstepped", it.fact(None, "#unstepped") | {marker})
    it.set_fact(None, "#stepping", it.const(False))


def _note_group(found: Backward, members: set[Backward]) -> None:
    """Let the backward calls that run before one step know of each other; those that know the same share one set."""
    others = [other for other in members if other is not found]
    shared = others[0].group if others else None
    if shared is not None and found.group <= members and all(other.group is shared for other in others):
        if len(shared) == len(others) and found not in shared:  # only those in a set have it as theirs
            shared.add(found)
            found.group = shared
        if found.group is shared and len(shared) == len(members):
            return
    for other in members:
        other.group = members if other.group <= members else other.group | members


class _Mark(Obj):
    """A backward call, as a fact of the state."""

    __slots__ = ("event",)

    def __init__(self, event: Backward | PlainBackward) -> None:
        self.event = event


def _backwards(value: Value) -> set[Backward]:
    return {obj.event for obj in value if isinstance(obj, _Mark) and isinstance(obj.event, Backward)}


def plain_backward(it: Interpreter, node: ast.Call, receivers: Value, args: list[Argument]) -> None:
    """`loss.backward()`, past Fabric; what steps on its gradients is noted while they last."""
    if not receivers or any(isinstance(obj, (FabricObj, StrategyView, External)) for obj in receivers):
        return
    key = (PlainBackward.__name__, node, it.frame)
    found = it.events.get(key)
    if found is None:
        found = it.events[key] = PlainBackward(node, it.stmt, it.frame, "backward", args=args, places=it.places())
        found.expected = it.expecting > 0
    else:
        widen(found, args, it.places())
    assert isinstance(found, PlainBackward)
    found.receivers = found.receivers | receivers
    found.deps = found.deps | (gradients(it, receivers) - {UNKNOWN})
    stepping = it.fact(None, "#plain stepping")
    stepped = bool(stepping) and all(isinstance(obj, Const) and obj.value is True for obj in stepping)
    kept = EMPTY if stepped else it.fact(None, "#plain")
    kept = frozenset(mark for mark in kept if isinstance(mark, _Mark) and mark.event.frame is it.frame)
    it.set_fact(None, "#plain", kept | {it.remember(("event", found), _Mark(found))})
    it.set_fact(None, "#plain stepping", it.const(False))


def drop_gradients(it: Interpreter, models: Value) -> None:
    """The gradients of some models (raw; of none in particular when empty) are dropped or made anew by Fabric."""
    pending = it.fact(None, "#plain")
    if pending:
        kept = (m for m in pending if isinstance(m, _Mark) and models and not models & raws(m.event.deps))
        it.set_fact(None, "#plain", frozenset(kept))


def zero_gradients(it: Interpreter, models: Value) -> None:
    """The gradients of some models (raw) are set to zero: what ran before accumulates nothing."""
    drop_gradients(it, models)
    if models:
        waiting = (m for m in it.fact(None, "#pending") if isinstance(m, _Mark) and not models & raws(m.event.deps))
        it.set_fact(None, "#pending", frozenset(waiting))


def optimizer_step(it: Interpreter, node: ast.Call, obj: Obj, args: list[Argument]) -> Value:
    """`optimizer.step()`; a closure given to it runs first."""
    from fabric_fix.analysis.calls import apply

    it.use(obj, "step", node)
    for argument in args:
        for callee in argument.value:
            apply(it, node, callee, [])
    key = ("Step", node, it.frame)
    found = it.events.get(key)
    if found is None:
        found = it.events[key] = Step(node, it.stmt, it.frame, "step")
        found.expected = it.expecting > 0
        found.args = args
    assert isinstance(found, Step)
    found.optimizers = found.optimizers | {obj}
    for pending in _backwards(it.fact(None, "#unstepped")):
        pending.first_steps = pending.first_steps | {obj}
    for pending in _backwards(it.fact(None, "#group")):
        pending.steps = pending.steps | {obj}
    for mark in it.fact(None, "#plain"):
        if isinstance(mark, _Mark) and isinstance(mark.event, PlainBackward):
            mark.event.steps = mark.event.steps | {obj}
    it.set_fact(None, "#plain stepping", it.const(True))
    models = models_of_optimizer(obj)
    kept = frozenset(m for m in it.fact(None, "#pending") if isinstance(m, _Mark) and not _covers(models, m.event))
    it.set_fact(None, "#pending", kept)
    it.set_fact(None, "#unstepped", EMPTY)
    it.set_fact(None, "#stepping", it.const(True))
    return frozenset((it.thing("op", node, "step"),))


def _covers(models: Value, pending: Backward | PlainBackward) -> bool:
    return not models or not pending.deps or bool(models & raws(pending.deps))


def models_of_optimizer(obj: Obj) -> Value:
    """The raw models whose parameters an optimizer (raw or wrapped) has, as far as the program shows."""
    inner = raw(obj)
    found: Value = EMPTY
    if isinstance(inner, (Thing, Instance)):
        found = raws(inner.deps)
    if isinstance(obj, Wrapped):
        found = found | raws(obj.partners)
    return found


def clip(it: Interpreter, node: ast.Call, args: list[Argument]) -> None:
    """`clip_gradients(module, optimizer, ...)`: a witness for the backward before it."""
    use_arguments(it, node, args, "clip")
    positional = [a for a in args if a.name in (None, "module")]
    if positional:
        for pending in _backwards(it.fact(None, "#unstepped")):
            pending.clips = pending.clips | positional[0].value
