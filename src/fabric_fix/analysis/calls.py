"""Calls: arguments are evaluated, the callee is found, and functions of the program are followed."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fabric_fix.analysis import attributes, contexts, fabric_calls, imports, library, methods
from fabric_fix.analysis.derive import argument_gradients, derived
from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.expressions import collection, evaluate
from fabric_fix.analysis.frames import Frame, State
from fabric_fix.analysis.interp import MAX_ASIDE, MAX_DEPTH, Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.objects import (
    EMPTY,
    Bound,
    Class,
    Collection,
    Const,
    External,
    FabricObj,
    Function,
    Inside,
    Instance,
    Lazy,
    Obj,
    Partial,
    Sequence,
    StrategyView,
    Thing,
    Value,
    Wrapped,
    raws,
)

SHORT = 12
"""Lines of a function of another file that is followed with a model even where only little is looked into."""


def call(it: Interpreter, node: ast.Call) -> Value:
    """Evaluate a call expression."""
    func = node.func
    if isinstance(func, ast.Attribute):
        parent = _super(it, func)
        receivers = evaluate(it, func.value) if parent is None else EMPTY
        args = arguments(it, node)
        if parent is not None:
            return _call_parent(it, node, func.attr, args, parent)
        _note_gradients(it, node, func.attr, receivers, args)
        if len(receivers) > 1 and _is_called_fabric(func.value):
            receivers = frozenset(obj for obj in receivers if isinstance(obj, FabricObj)) or receivers
        mixed, it.mixed = it.mixed, len(receivers) > 1 and _is_mixed(receivers)
        found = _each(it, receivers, lambda obj: call_method(it, node, obj, func.attr, args))
        it.mixed = mixed
        if func.attr in it.spellings:
            found = it.promote(found, func.attr, node)
        return it.limit(found)
    callees = evaluate(it, func)
    args = arguments(it, node)
    return it.limit(_each(it, callees, lambda obj: apply(it, node, obj, args)))


def _note_gradients(it: Interpreter, node: ast.Call, name: str, receivers: Value, args: list[Argument]) -> None:
    """What a method does to gradients, whatever it is a method of."""
    if name == "backward":
        fabric_calls.plain_backward(it, node, receivers, args)
    elif name == "zero_grad":
        owned = frozenset().union(*(fabric_calls.models_of_optimizer(obj) for obj in receivers))
        fabric_calls.zero_gradients(it, owned | raws(receivers))
    elif name == "zero_" and isinstance(node.func, ast.Attribute) and getattr(node.func.value, "attr", "") == "grad":
        fabric_calls.drop_gradients(it, EMPTY)


def _each(it: Interpreter, objs: Value, call_it: Callable[[Obj], Value]) -> Value:
    """Call each of the objects that a callee can be: one of them runs, not one after the other."""
    if len(objs) == 1:
        return call_it(next(iter(objs)))
    found: Value = EMPTY
    before = it.state
    ends: list[State] = []
    for obj in objs:
        it.state = before.copy()
        found = found | call_it(obj)
        ends.append(it.state)
    if ends:
        it.state = ends[0]
        for end in ends[1:]:
            it.state.join(end)
    return found


def _is_mixed(receivers: Value) -> bool:
    """Whether a call can be of a Fabric or of something else that is no Fabric."""
    others = [obj for obj in receivers if not isinstance(obj, (FabricObj, StrategyView))]
    others = [obj for obj in others if not (isinstance(obj, Const) and obj.value is None)]
    others = [obj for obj in others if not (isinstance(obj, Thing) and "fabric" in obj.label.lower())]
    return bool(others) and len(others) < len(receivers)


def _is_called_fabric(node: ast.expr) -> bool:
    """Whether what a method is called on has the name of a Fabric: what is unknown beside a Fabric is then one, too."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "fabric" in name.lower()


def arguments(it: Interpreter, node: ast.Call) -> list[Argument]:
    """The arguments of a call with their values; `*known` is spread out."""
    found: list[Argument] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            found.extend(_spread(evaluate(it, arg.value), arg))
        else:
            found.append(Argument(arg, evaluate(it, arg)))
    for keyword in node.keywords:
        value = evaluate(it, keyword.value)
        found.append(Argument(keyword.value, value, keyword.arg or "**"))
        if keyword.arg is None:
            found.extend(_spread_keys(it, value, keyword.value))
    return found


def _spread_keys(it: Interpreter, value: Value, node: ast.expr) -> list[Argument]:
    """The arguments that `**known` surely holds."""
    if len(value) != 1:
        return []
    fields = it.state.table(next(iter(value))).items()
    return [Argument(node, held, name[1:], starred=True) for name, held in fields if name.startswith("'")]


def _spread(value: Value, node: ast.Starred) -> list[Argument]:
    if len(value) == 1:
        obj = next(iter(value))
        if isinstance(obj, Sequence):
            return [Argument(node, part, starred=True) for part in obj.items]
    return [Argument(node, value, starred=True)]


def apply(it: Interpreter, node: ast.Call, obj: Obj, args: list[Argument]) -> Value:
    """Call an object."""
    if isinstance(obj, Function):
        return call_function(it, obj, node, args, None)
    if isinstance(obj, Class):
        return instantiate(it, obj, node, args)
    if isinstance(obj, Bound):
        if obj.function is not None and not isinstance(obj.receiver, Wrapped):
            return call_function(it, obj.function, node, args, obj.receiver)
        return call_method(it, node, obj.receiver, obj.name, args)
    if isinstance(obj, External):
        inside = imports.open_call(it, obj, args) if isinstance(obj, Lazy) else EMPTY
        if inside:
            return _each(it, inside, lambda found: apply(it, node, found, args))
        return library.call_external(it, node, obj.path, args)
    if isinstance(obj, Partial):
        return _call_partial(it, node, obj, args)
    if isinstance(obj, (Wrapped, Inside, Instance, Thing)):
        return _forward(it, node, obj, args)
    return frozenset((derived(it, "call", node, "", argument_gradients(it, args)),))


def _call_partial(it: Interpreter, node: ast.Call, obj: Partial, args: list[Argument]) -> Value:
    whole = [Argument(node, value) for value in obj.args]
    whole += [a for a in args if a.name is None]
    given = {a.name for a in args if a.name}
    whole += [Argument(node, value, name) for name, value in obj.keywords.items() if name not in given]
    whole += [a for a in args if a.name]
    found: Value = EMPTY
    for callee in obj.function:
        found = found | apply(it, node, callee, whole)
    return found


def _forward(it: Interpreter, node: ast.Call, obj: Wrapped | Inside | Instance | Thing, args: list[Argument]) -> Value:
    """Call something that may be a model."""
    it.use(obj, "call", node)
    if isinstance(obj, Instance) and obj.cls.kind != "module":
        own = obj.cls.method("__call__")
        if own is not None:
            return call_function(it, own, node, args, obj)
    pass_arguments(it, node, args, detail=ast.unparse(node.func) if len(args) < 8 else "a function")
    itself: Value = frozenset((obj.wrapped if isinstance(obj, Inside) else obj,))
    if isinstance(obj, Thing) and obj.kind not in ("call", "param", "attr", "item", "iter", "name"):
        itself = EMPTY
    parts = itself | held_modules(it, obj) | argument_gradients(it, args)
    made = derived(it, "call", node, "", parts)
    made.base = obj
    return frozenset((made,))


def held_modules(it: Interpreter, obj: Obj) -> Value:
    """The wrapped modules that the fields of a model hold."""
    inner = obj.inner if isinstance(obj, Wrapped) else obj
    found: set[Obj] = set()
    for name, value in it.state.table(inner).items():
        if not name.startswith("#"):
            found.update(part for part in value if isinstance(part, Wrapped) and part.kind == "module")
    return frozenset(found)


def pass_arguments(
    it: Interpreter, node: ast.Call, args: list[Argument], follow: bool = True, detail: str = ""
) -> None:
    """Objects given to something that the analysis does not see into."""
    for argument in args:
        for obj in argument.value:
            if isinstance(obj, (Const, External)):
                continue
            for part in (obj, *content(it, obj)):
                if isinstance(part, (Thing, Instance, Wrapped, Inside)):
                    it.use(part, "pass" if follow else "input", node, detail)


def call_method(it: Interpreter, node: ast.Call, obj: Obj, name: str, args: list[Argument]) -> Value:
    """Call `obj.name(...)`."""
    if isinstance(obj, FabricObj):
        own = obj.cls.method(name) if obj.cls else None
        stored = it.field(obj, name)
        if own is None and stored is None:
            return fabric_calls.method(it, node, obj, name, args)
    elif isinstance(obj, StrategyView):
        return fabric_calls.strategy_method(it, node, obj, name, args)
    elif isinstance(obj, External):
        return library.call_external(it, node, f"{obj.path}.{name}", args)
    elif isinstance(obj, (Sequence, Collection)):
        return methods.of_container(it, node, obj, name, args)
    elif isinstance(obj, (Wrapped, Inside)):
        return methods.of_wrapped(it, node, obj, name, args)
    elif isinstance(obj, Thing):
        view = attributes.strategy_view(it, obj)
        if view is not None:
            return fabric_calls.strategy_method(it, node, view, name, args)
        if it.field(obj, name) is None:
            return methods.of_thing(it, node, obj, name, args)
    elif isinstance(obj, Instance):
        if obj.cls.method(name) is None and it.field(obj, name) is None:
            it.other_calls.add(node)
            unseen = methods.of_instance(it, node, obj, name, args)
            return _left_open(it, unseen) if obj.root and not obj.cls.kind else unseen
        if obj.cls.kind in ("module", "optimizer", "scheduler", "loader"):
            it.use(obj, "method", node, name)
            if obj.cls.kind == "module" and not _worth_following(it, obj, args):
                return methods.unseen(it, node, obj, name, args)
    found: Value = EMPTY
    for callee in attributes.attribute_of(it, frozenset((obj,)), name, node.func, silent=True):
        if not (isinstance(callee, Bound) and isinstance(callee.receiver, (FabricObj, StrategyView))):
            it.other_calls.add(node)
        found = found | apply(it, node, callee, args)
    return found


def _worth_following(it: Interpreter, obj: Instance, args: list[Argument]) -> bool:
    if any(isinstance(part, (FabricObj, Wrapped, StrategyView)) for a in args for part in a.value):
        return True
    return library.mentions_fabric(it, obj.cls)


def _super(it: Interpreter, func: ast.Attribute) -> Obj | None:
    """`super().name`: the current `self`, where the class is known."""
    inner = func.value
    if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "super"):
        return None
    function = it.frame.function
    if function is None or function.owner is None or isinstance(function.node, ast.Lambda):
        return None
    parameters = [*function.node.args.posonlyargs, *function.node.args.args]
    if not parameters:
        return None
    value = it.state.get(it.frame, parameters[0].arg) or EMPTY
    return next(iter(value)) if len(value) == 1 else None


def _call_parent(it: Interpreter, node: ast.Call, name: str, args: list[Argument], receiver: Obj) -> Value:
    assert it.frame.function is not None
    owner = it.frame.function.owner
    cls = receiver if isinstance(receiver, Class) else getattr(receiver, "cls", None)
    found = (cls or owner).method_after(owner, name) if owner is not None else None
    if found is not None:
        return call_function(it, found, node, args, receiver)
    if isinstance(receiver, FabricObj):
        if name == "__init__":
            fabric_calls.configure(it, receiver, args)
            return it.const(None)
        return fabric_calls.method(it, node, receiver, name, args)
    pass_arguments(it, node, args)
    return frozenset((derived(it, "call", node, name, argument_gradients(it, args)),))


def instantiate(it: Interpreter, cls: Class, node: ast.Call, args: list[Argument]) -> Value:
    """Make an instance of a class of the program."""
    it.instantiated.add(cls)
    obj: Obj
    if cls.kind == "fabric":
        obj = fabric_calls.make(it, node, args, cls)
    else:
        obj = it.remember(("instance", cls, node, it.frame), Instance(cls, node, it.frame))
        assert isinstance(obj, Instance)
        obj.meta = it.meta > 0
        it.state.drop(obj, "#setup")  # made anew, in a loop say
        if cls.kind in ("optimizer", "scheduler"):
            obj.deps = obj.deps | argument_gradients(it, args[:1])
        if it.repeating:
            it.set_fact(obj, "#many", it.const(True))
    initialise(it, cls, node, args, obj)
    return frozenset((obj,))


def initialise(it: Interpreter, cls: Class, node: ast.Call, args: list[Argument], obj: Obj) -> None:
    """Run `__init__`, or fill the fields of a dataclass."""
    own = cls.method("__init__")
    if own is not None:
        if cls.kind == "module" and isinstance(obj, Instance) and not _worth_following(it, obj, args):
            pass_arguments(it, node, args, detail=cls.node.name)
            return
        call_function(it, own, node, args, obj)
        return
    if cls.kind in ("module", "optimizer", "scheduler", "loader"):
        pass_arguments(it, node, args, follow=cls.kind == "module", detail=cls.node.name)
    positional = [a for a in args if a.name is None]
    for name, argument in zip(cls.annotations, positional, strict=False):
        it.set_field(obj, name, argument.value)
    for argument in args:
        if argument.name in cls.annotations:
            it.set_field(obj, str(argument.name), argument.value)


def call_function(
    it: Interpreter, function: Function, node: ast.AST, args: list[Argument], receiver: Obj | None
) -> Value:
    """Follow a call into a function of the program, with its arguments' values."""
    it.step()
    if _is_abstract(function):
        if isinstance(node, ast.Call):
            pass_arguments(it, node, args, detail=function.name)
        return _left_open(it, frozenset((derived(it, "call", node, function.name, argument_gradients(it, args)),)))
    chain = it.frame.chain()
    deep = len(chain) > MAX_DEPTH or any(frame.function is function for frame in chain)
    if deep or _is_replaced(function) or _aside(it, function, chain, args, receiver):
        if isinstance(node, ast.Call):
            pass_arguments(it, node, args, detail=function.name)
        return frozenset((derived(it, "call", node, function.name, argument_gradients(it, args)),))
    frame = (
        it.frame_of_property(function, receiver) if isinstance(node, ast.Attribute) else it.frame_for(function, node)
    )
    bound = library.bind(it, function, frame, args, receiver)
    return run_function(it, function, frame, bound, node)


def _aside(it: Interpreter, function: Function, chain: list[Frame], args: list[Argument], receiver: Obj | None) -> bool:
    """Whether a call leads too deep into functions that have nothing to do with Fabric.

    In another file these are followed to see what they do with a model that is set up, or what they make, and there
    no further but for what a short one makes.
    """
    source = function.closure.source
    if it.is_relevant(function) and (it.deep or source is it.walked or source.relevance.acts(function.node)):
        return False
    if it.is_plain and not it.is_relevant(function) and not _is_given_fabric(it, args, receiver):
        it.is_narrow = True
        return True
    aside = [frame for frame in chain if frame.function is not None and not it.is_relevant(frame.function)]
    if source is it.walked or source.relevance.says_strategy(function.node):
        return len(aside) >= MAX_ASIDE
    if not (it.deep or _is_short(function)):
        it.is_narrow = True
        return True
    matters = _is_given_fabric(it, args, receiver)
    if len(aside) >= MAX_ASIDE:
        return True
    away = sum(frame.source is not it.walked for frame in aside)
    if matters or not away:
        return False
    it.is_narrow = it.is_narrow or not it.deep
    return not it.deep or away > 1 or not _is_short(function)


def _left_open(it: Interpreter, value: Value) -> Value:
    """What a method gives that only subclasses have."""
    it.left_open |= value
    return value


def _is_given_fabric(it: Interpreter, args: list[Argument], receiver: Obj | None) -> bool:
    """Whether a call is given a Fabric, or what one has set up."""
    given = (receiver,) if receiver is not None else ()
    return imports.matters(it, (*given, *(obj for argument in args for obj in argument.value)))


def _is_replaced(function: Function) -> bool:
    """Whether a decorator of the project acts on a Fabric, so that the function is not given what its callers give."""
    names = function.closure.source.relevance.names if function.decorators else ()
    return any(decorator.rpartition(".")[2] in names for decorator in function.decorators)


def _is_short(function: Function) -> bool:
    """Whether a function is a few lines that are worth a look at first sight."""
    return (function.node.end_lineno or 0) - function.node.lineno < SHORT


def _is_abstract(function: Function) -> bool:
    """Whether a method only says that subclasses have it: what they do is not known here."""
    if isinstance(function.node, ast.Lambda):
        return False
    if any(decorator.rpartition(".")[2].startswith("abstract") for decorator in function.decorators):
        return True
    body = [
        stmt for stmt in function.node.body if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))
    ]
    if len(body) == 1 and isinstance(body[0], ast.Raise) and function.owner is not None:
        return "NotImplemented" in ast.unparse(body[0])
    return False


def run_function(it: Interpreter, function: Function, frame: Frame, bound: dict[str, Value], node: ast.AST) -> Value:
    """Walk a function's body in its frame; its states at all returns are joined."""
    from fabric_fix.analysis.statements import run

    it.reached.add(function.node)
    saved = (it.frame, it.stmt, it.breaks, it.continues)
    it.breaks, it.continues = [], []
    quiet = any(d.rpartition(".")[2] in ("no_grad", "inference_mode") for d in function.decorators)
    it.no_grad += quiet
    fails = bool(function.decorators) and contexts.is_there_to_fail(function)
    it.expecting += fails
    it.frame = frame
    frame.returns = []
    it.state.replace(frame, bound)
    frame.entry = dict(bound)
    if isinstance(function.node, ast.Lambda):
        frame.returns.append((evaluate(it, function.node.body), it.state))
    elif run(it, function.node.body):
        frame.returns.append((it.const(None), it.state))
    it.no_grad -= quiet
    it.expecting -= fails
    it.frame, it.stmt, it.breaks, it.continues = saved
    result = _leave(it, frame, node)
    if not isinstance(function.node, ast.Lambda) and it.annotated(function.node.returns, function.closure) == "fabric":
        return it.promote(result, function.node.name, node)
    return result


def _leave(it: Interpreter, frame: Frame, node: ast.AST) -> Value:
    returns, frame.returns = frame.returns, []
    result: Value = EMPTY
    merged: State | None = None
    for value, state in returns:
        result = result | value
        merged = state if merged is None else merged.join(state)
    if merged is not None:
        it.state = merged
    if not frame.scope.has_inner:
        it.state.replace(frame, None)
    if len(result) > 1 and any(isinstance(obj, Sequence) for obj in result):
        result = _join_sequences(it, result, node)
    return it.limit(result)


def _join_sequences(it: Interpreter, value: Value, node: ast.AST) -> Value:
    """Tuples of one length, returned at several places, become one tuple of joined items."""
    tuples = [obj for obj in value if isinstance(obj, Sequence)]
    if len({len(obj.items) for obj in tuples}) != 1 or len(tuples) != len(value):
        return value
    joined = it.remember(("joined", node, it.frame), Sequence(node))
    assert isinstance(joined, Sequence)
    joined.items = [frozenset().union(*parts) for parts in zip(*(obj.items for obj in tuples), strict=True)]
    return frozenset((joined,))


__all__ = ["apply", "arguments", "call", "call_function", "collection", "initialise", "instantiate", "run_function"]
