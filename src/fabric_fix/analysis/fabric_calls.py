"""Fabric's own methods: what they do to the state, and the events they leave.

Read from `lightning/fabric/fabric.py` and `wrappers.py` of Lightning 2.6.
"""

from __future__ import annotations

import ast

from fabric_fix.analysis import families, known
from fabric_fix.analysis.derive import derived, gradients
from fabric_fix.analysis.events import Argument, Call, NoSync, Setup, StrategyCall
from fabric_fix.analysis.gradient_calls import (
    backward,
    clip,
    drop_gradients,
    event,
    models_of_optimizer,
    optimizer_step,
    plain_backward,
    use_arguments,
    zero_gradients,
)
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.methods import is_loader, is_optimizer, is_scheduler
from fabric_fix.analysis.objects import (
    EMPTY,
    Class,
    Const,
    FabricObj,
    Inside,
    Instance,
    Obj,
    Sequence,
    StrategyView,
    Thing,
    Value,
    Wrapped,
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
    fabric.strategies = found if single else found | it.named_beside(found)
    for obj in value:
        if isinstance(obj, (Thing, Instance)):
            it.remember(("strategy_of", obj), fabric)


def method(it: Interpreter, node: ast.Call, fabric: FabricObj, name: str, args: list[Argument]) -> Value:
    """A method of a Fabric is called."""
    if name in known.SETUP_METHODS:
        return setup(it, node, fabric, name, args)
    if name == "backward":
        return backward(it, node, fabric, args)
    if name == "no_backward_sync":
        found = event(it, NoSync, node, name, fabric, args)
        use_arguments(it, node, args, "sync")
        return frozenset((it.thing("op", found.node, name),))
    if name == "launch":
        return _launch(it, node, fabric, args)
    if name == "clip_gradients":
        clip(it, node, args)
    elif name in ("load", "load_raw"):
        use_arguments(it, node, args, "load")
    elif name == "save":
        use_arguments(it, node, args, "store")
    elif name in ("print", "log", "log_dict", "call", "seed_everything", "barrier"):
        pass
    elif name in ("to_device", "all_gather", "all_reduce", "broadcast", "autocast"):
        parts = frozenset().union(*(gradients(it, a.value) for a in args)) if args else EMPTY
        if name == "to_device" and args:
            return args[0].value
        return frozenset((derived(it, "op", node, name, parts),))
    return frozenset((it.thing("op", node, name),))


# --- set-up -------------------------------------------------------------------------------------------------------


def setup(it: Interpreter, node: ast.Call, fabric: FabricObj, name: str, args: list[Argument]) -> Value:
    """`setup`, `setup_module`, `setup_optimizers` and `setup_dataloaders`."""
    found = event(it, Setup, node, name, fabric, args)
    assert isinstance(found, Setup)
    found.before = found.before | it.fact(fabric, "#models")
    use_arguments(it, node, args, "setup")
    positional = [a for a in args if a.name is None]
    named = {a.name: a for a in args}
    kind = {"setup_optimizers": "optimizer", "setup_dataloaders": "loader"}.get(name, "module")
    if kind == "module" and "module" in named:
        positional.insert(0, named["module"])
    results = [_wrap(it, node, fabric, kind if not i else _other(kind), a, found) for i, a in enumerate(positional)]
    if kind == "module" and "scheduler" in named:
        results.append(named["scheduler"].value)
    if kind == "module" and results and not all(is_optimizer(obj) for obj in positional[0].value):
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
        use_arguments(it, node, args, "sync")
        return frozenset((it.thing("op", node, name),))
    event(it, StrategyCall, node, name, view.fabric, args)
    use_arguments(it, node, args, "strategy")
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


__all__ = [
    "backward",
    "drop_gradients",
    "is_loader",
    "is_optimizer",
    "is_scheduler",
    "make",
    "method",
    "models_of_optimizer",
    "optimizer_step",
    "plain_backward",
    "zero_gradients",
]
