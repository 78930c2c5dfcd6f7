"""Fabric's own methods: what they do to the state, and the events they leave.

Read from `lightning/fabric/fabric.py` and `wrappers.py` of Lightning 2.6.
"""

from __future__ import annotations

import ast

from fabric_fix.analysis import families, known
from fabric_fix.analysis.derive import derived, gradients
from fabric_fix.analysis.events import Argument, Backward, Call, NoSync, PlainBackward, Setup, Step, StrategyCall
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.methods import is_loader, is_optimizer, is_scheduler
from fabric_fix.analysis.objects import (
    EMPTY,
    UNKNOWN,
    Class,
    Const,
    External,
    FabricObj,
    Inside,
    Instance,
    Obj,
    Sequence,
    StrategyView,
    Thing,
    Value,
    Wrapped,
    raw,
    raws,
)


def make(it: Interpreter, node: ast.Call, args: list[Argument], cls: Class | None) -> FabricObj:
    """A Fabric is constructed."""
    made = it.remember(("fabric", node, it.frame), FabricObj(node, it.frame))
    assert isinstance(made, FabricObj)
    made.made, made.cls = True, cls
    if made not in it.made_fabrics:
        it.made_fabrics.append(made)
    it.set_fact(made, "#models", EMPTY)
    it.set_fact(made, "#count", it.const(0))
    it.set_fact(made, "#many", EMPTY)
    configure(it, made, args)
    return made


def configure(it: Interpreter, fabric: FabricObj, args: list[Argument]) -> None:
    """The arguments of a Fabric's construction decide its strategies."""
    value, found = families.of_arguments(it, args)
    fabric.strategy_value = value
    single = bool(found) and found <= {"single", "single_xla"}  # a second Fabric, for one device on purpose
    fabric.strategies = found if single else found | it.strategies
    for obj in value:
        if isinstance(obj, (Thing, Instance)):
            it.remember(("strategy_of", obj), fabric)


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
        _widen(found, args, {} if kind is Setup else it.places())
    found.mixed = found.mixed or it.mixed
    found.fabrics = found.fabrics | {fabric}
    found.strategies = found.strategies | strategies(it, fabric)
    return found


def _widen(found: Call, args: list[Argument], places: dict[str, Value]) -> None:
    for old, new in zip(found.args, args, strict=False):
        old.value = old.value | new.value
    found.places = {name: found.places[name] | places[name] for name in found.places if name in places}


def method(it: Interpreter, node: ast.Call, fabric: FabricObj, name: str, args: list[Argument]) -> Value:
    """A method of a Fabric is called."""
    if name in known.SETUP_METHODS:
        return setup(it, node, fabric, name, args)
    if name == "backward":
        return backward(it, node, fabric, args)
    if name == "no_backward_sync":
        found = event(it, NoSync, node, name, fabric, args)
        _use_arguments(it, node, args, "sync")
        return frozenset((it.thing("op", found.node, name),))
    if name == "launch":
        return _launch(it, node, fabric, args)
    if name == "clip_gradients":
        _clip(it, node, args)
    elif name in ("load", "load_raw"):
        _use_arguments(it, node, args, "load")
    elif name == "save":
        _use_arguments(it, node, args, "store")
    elif name in ("print", "log", "log_dict", "call", "seed_everything", "barrier"):
        pass
    elif name in ("to_device", "all_gather", "all_reduce", "broadcast", "autocast"):
        parts = frozenset().union(*(gradients(it, a.value) for a in args)) if args else EMPTY
        if name == "to_device" and args:
            return args[0].value
        return frozenset((derived(it, "op", node, name, parts),))
    return frozenset((it.thing("op", node, name),))


def _use_arguments(it: Interpreter, node: ast.Call, args: list[Argument], kind: str) -> None:
    for argument in args:
        for obj in argument.value:
            for part in (obj, *content(it, obj)):
                it.use(part, kind, node)


# --- set-up -------------------------------------------------------------------------------------------------------


def setup(it: Interpreter, node: ast.Call, fabric: FabricObj, name: str, args: list[Argument]) -> Value:
    """`setup`, `setup_module`, `setup_optimizers` and `setup_dataloaders`."""
    found = event(it, Setup, node, name, fabric, args)
    assert isinstance(found, Setup)
    found.before = found.before | it.fact(fabric, "#models")
    _use_arguments(it, node, args, "setup")
    positional = [a for a in args if a.name is None]
    named = {a.name: a for a in args}
    kind = {"setup_optimizers": "optimizer", "setup_dataloaders": "loader"}.get(name, "module")
    if kind == "module" and "module" in named:
        positional.insert(0, named["module"])
    results = [_wrap(it, node, fabric, kind if not i else _other(kind), a, found) for i, a in enumerate(positional)]
    if kind == "module" and "scheduler" in named:
        results.append(named["scheduler"].value)
    if kind == "module" and results:
        _note_models(it, fabric, results, found)
    found.result = found.result | _shape(it, node, results, starred=any(a.starred for a in positional), name=name)
    return _shape(it, node, results, starred=any(a.starred for a in positional), name=name)


def _other(kind: str) -> str:
    return "optimizer" if kind == "module" else kind


def _wrap(it: Interpreter, node: ast.Call, fabric: FabricObj, kind: str, argument: Argument, found: Setup) -> Value:
    wrapped: set[Obj] = set()
    for obj in argument.value:
        if isinstance(obj, Wrapped) and obj.kind == kind:
            found.rewrapped = found.rewrapped | {obj}
            wrapped.add(obj)
            continue
        if isinstance(obj, Const):
            wrapped.add(obj)
            continue
        made = it.remember(("wrapped", obj, node, it.frame, kind), Wrapped(kind, obj, node, fabric))
        it.set_fact(obj, "#setup", it.fact(obj, "#setup") | {made})
        wrapped.add(made)
    return frozenset(wrapped)


def _note_models(it: Interpreter, fabric: FabricObj, results: list[Value], found: Setup) -> None:
    modules = frozenset(o for o in results[0] if isinstance(o, Wrapped))
    before = it.fact(fabric, "#models")
    again = bool(modules & before) or it.repeating > 0
    if again:
        found.repeated = True
        it.set_fact(fabric, "#many", it.const(True))
    it.set_fact(fabric, "#models", before | modules)
    counts = {obj.value for obj in it.fact(fabric, "#count") if isinstance(obj, Const)} or {0}
    more = {min(int(count) + 1, 3) for count in counts if isinstance(count, int)}
    it.set_fact(fabric, "#count", frozenset().union(*(it.const(count) for count in more)))
    for result in results[1:]:
        for obj in result:
            if isinstance(obj, Wrapped) and obj.kind == "optimizer":
                obj.partners = obj.partners | modules


def _shape(it: Interpreter, node: ast.Call, results: list[Value], *, starred: bool, name: str) -> Value:
    if starred and name != "setup_module" and len(results) < 2:
        return _unknown_tuple(it, node, results)
    if len(results) == 1:
        return results[0]
    if not results:
        return frozenset((it.thing("op", node),))
    made = it.remember(("results", node, it.frame), Sequence(node))
    assert isinstance(made, Sequence)
    made.items = list(results)
    return frozenset((made,))


def _unknown_tuple(it: Interpreter, node: ast.Call, results: list[Value]) -> Value:
    """`fabric.setup(*build())`: a tuple of unknown length whose parts are wrapped."""
    return frozenset((it.thing("call", node, "setup"),))


# --- backward and step ----------------------------------------------------------------------------------------------


def backward(it: Interpreter, node: ast.Call, fabric: FabricObj, args: list[Argument]) -> Value:
    """`fabric.backward(loss, model=...)`."""
    found = event(it, Backward, node, "backward", fabric, args)
    assert isinstance(found, Backward)
    _use_arguments(it, node, [a for a in args if a.name == "model"], "backward")
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
    found.repeats |= {other for other in pending if raws(other.deps) & targets}
    stepping = it.fact(None, "#stepping")
    marker = it.remember(("event", found), _Mark(found))
    if stepping and not any(isinstance(o, Const) and o.value is False for o in stepping):
        group: Value = frozenset((marker,))
    else:
        group = it.fact(None, "#group") | {marker}
    members = _backwards(group)
    for other in members:
        other.group |= members
    it.set_fact(None, "#group", group)
    it.set_fact(None, "#pending", it.fact(None, "#pending") | {marker})
    it.set_fact(None, "#unstepped", it.fact(None, "#unstepped") | {marker})
    it.set_fact(None, "#stepping", it.const(False))


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
    else:
        _widen(found, args, it.places())
    assert isinstance(found, PlainBackward)
    found.receivers = found.receivers | receivers
    found.deps = found.deps | (gradients(it, receivers) - {UNKNOWN})
    kept = EMPTY if it.fact(None, "#plain stepping") else it.fact(None, "#plain")
    kept = frozenset(mark for mark in kept if isinstance(mark, _Mark) and mark.event.frame is it.frame)
    it.set_fact(None, "#plain", kept | {it.remember(("event", found), _Mark(found))})
    it.set_fact(None, "#plain stepping", EMPTY)


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


def _clip(it: Interpreter, node: ast.Call, args: list[Argument]) -> None:
    _use_arguments(it, node, args, "clip")
    positional = [a for a in args if a.name in (None, "module")]
    if positional:
        for pending in _backwards(it.fact(None, "#unstepped")):
            pending.clips = pending.clips | positional[0].value


# --- launch, strategy, no_sync ---------------------------------------------------------------------------------------


def _launch(it: Interpreter, node: ast.Call, fabric: FabricObj, args: list[Argument]) -> Value:
    """`launch(function, *args)` calls `function(fabric, *args)`."""
    from fabric_fix.analysis.calls import apply

    event(it, Call, node, "launch", fabric, args)
    positional = [a for a in args if a.name is None]
    if not positional:
        return it.const(None)
    rest = [Argument(node, frozenset((fabric,))), *positional[1:], *(a for a in args if a.name)]
    found: Value = EMPTY
    for callee in positional[0].value:
        found = found | apply(it, node, callee, rest)
    return found


def strategy_method(it: Interpreter, node: ast.Call, view: StrategyView, name: str, args: list[Argument]) -> Value:
    """A method of `fabric.strategy` is called past Fabric."""
    if name == "no_backward_sync":
        found = event(it, NoSync, node, name, view.fabric, args)
        assert isinstance(found, NoSync)
        found.via = "control" if view.control else "strategy"
        _use_arguments(it, node, args, "sync")
        return frozenset((it.thing("op", node, name),))
    event(it, StrategyCall, node, name, view.fabric, args)
    _use_arguments(it, node, args, "strategy")
    parts = frozenset().union(*(gradients(it, a.value) for a in args)) if args else EMPTY
    return frozenset((derived(it, "call", node, name, parts),))


def model_no_sync(it: Interpreter, node: ast.Call, obj: Wrapped | Inside, args: list[Argument]) -> None:
    """`wrapped.no_sync()`."""
    wrapped = obj.wrapped if isinstance(obj, Inside) else obj
    if wrapped.kind != "module":
        return
    found = event(it, NoSync, node, "no_sync", wrapped.fabric, args)
    assert isinstance(found, NoSync)
    found.via = "inside" if isinstance(obj, Inside) else "model"
    found.args = [Argument(node.func.value if isinstance(node.func, ast.Attribute) else node, frozenset((wrapped,)))]


def raw_no_sync(it: Interpreter, node: ast.Call, obj: Obj) -> None:
    """`raw.no_sync()` after the raw model was set up under another name."""
    for wrapped in it.fact(obj, "#setup"):
        if isinstance(wrapped, Wrapped) and wrapped.kind == "module":
            found = event(it, NoSync, node, "no_sync", wrapped.fabric, [])
            assert isinstance(found, NoSync)
            found.via = "raw"
            found.args = [Argument(node, frozenset((wrapped,)))]


__all__ = ["is_loader", "is_optimizer", "is_scheduler", "make", "method", "models_of_optimizer"]
