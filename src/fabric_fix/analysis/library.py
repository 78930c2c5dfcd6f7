"""Calls into libraries: what is known of torch, argparse, functools and the builtins; and how parameters are bound."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from fabric_fix.analysis import attributes, calls, conditions, fabric_calls, known, settings
from fabric_fix.analysis.assumptions import is_open, known_values, means_strategy, names_strategy
from fabric_fix.analysis.derive import argument_gradients, derived, gradients
from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.expressions import collection, evaluate, quiet
from fabric_fix.analysis.frames import Frame, all_arguments
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content, elements, item
from fabric_fix.analysis.objects import (
    EMPTY,
    Class,
    Collection,
    Const,
    External,
    FabricObj,
    Function,
    Obj,
    Partial,
    Sequence,
    StrategyView,
    Thing,
    Value,
)
from fabric_fix.analysis.parameters import outside_value
from fabric_fix.analysis.settings import argument_parser


def call_external(it: Interpreter, node: ast.Call, path: str, args: list[Argument]) -> Value:
    """Call something imported."""
    if known.is_fabric_class(path):
        return frozenset((fabric_calls.make(it, node, args, None),))
    special = _SPECIAL.get(path)
    if special is not None:
        found = special(it, node, args)
        if found is not None:
            return found
    return _opaque(it, node, path, args)


def _opaque(it: Interpreter, node: ast.Call, path: str, args: list[Argument]) -> Value:
    facts = _facts(path)
    if facts.saves:
        _saved(it, node, args, path)
    elif path == "builtins.id":
        for obj in args[0].value if args else ():
            it.use(obj, "identity", node, "id")
    elif path == "builtins.len":
        for obj in args[0].value if args else ():
            it.use(obj, "index", node, "len")
    elif path not in known.HARMLESS_BUILTINS:
        calls.pass_arguments(it, node, args, follow=not facts.harmless, detail=path)
    _call_functions_given(it, node, path, args)
    made = derived(it, "call", node, facts.last, argument_gradients(it, args), cut=facts.cut)
    made.callee = path
    if facts.strategy:
        it.guards[made] = it.guards.get(made, it.state.assumed) & it.state.assumed
    it.state.drop(made, "#setup")  # made anew, in a loop say
    by_settings = path == "hydra.utils.instantiate"  # of `cfg.fabric`, which is no Fabric but how to make one
    made.sees_fabric = not by_settings and any(isinstance(obj, FabricObj) for a in args for obj in a.value)
    given = _parameters_given(path, args)
    if given:
        made.deps = argument_gradients(it, given)
    elif facts.makes:
        made.deps = EMPTY  # an object of a class stands for itself, not for what it was made from
    if facts.tensor:
        made.kind = "op"  # a tensor, not a model
    for argument in args:
        if argument.name and argument.name != "**":
            made.keywords[argument.name] = argument.value
    if args and args[0].name is None:
        made.base = next(iter(args[0].value), None) if len(args[0].value) == 1 else None
    if it.repeating:
        it.set_fact(made, "#many", it.const(True))
    return frozenset((made,))


class _Facts(NamedTuple):
    """What the path of a callable says of what it does."""

    last: str
    saves: bool
    harmless: bool
    """Keeps nothing of its arguments."""
    cut: bool
    """No gradient flows through it."""
    strategy: bool
    makes: bool
    """Makes an object of a class, which stands for itself."""
    tensor: bool
    """Gives a tensor."""


@lru_cache(maxsize=4096)
def _facts(path: str) -> _Facts:
    last = path.rpartition(".")[2]
    scheduler = known.is_scheduler_class(path)
    return _Facts(
        last,
        saves=known.SAVES.fullmatch(path) is not None,
        harmless=path.startswith(("torch.nn.functional.", "torch.optim.", "builtins.")) or scheduler,
        cut=path == "torch.autograd.grad"
        or path.startswith("copy.")
        or last in ("argmax", "detach", "len", "int", "float", "bool", "str"),
        strategy=known.strategy_class(path) is not None,
        makes=last[:1].isupper() and not scheduler,
        tensor=path.startswith(("torch.", "numpy.", "math."))
        and last[:1].islower()
        and not known.is_module_class(path),
    )


def _parameters_given(path: str, args: list[Argument]) -> list[Argument]:
    """The arguments of an optimizer's class, or of a factory, that carry the parameters to train."""
    if known.is_optimizer_class(path):
        return [a for a in args if a.name in (None, "params")][:1]
    named = [a for a in args if a.name == "params"]
    taken = [
        a for a in args if any(isinstance(o, Thing) and o.label in ("parameters", "named_parameters") for o in a.value)
    ]
    return named or taken


def _call_functions_given(it: Interpreter, node: ast.Call, path: str, args: list[Argument]) -> None:
    """Map-like builtins call the function that they are given."""
    if path not in ("builtins.map", "builtins.filter") or len(args) < 2:
        return
    for callee in args[0].value:
        element = elements(it, args[1].value, args[1].node)
        calls.apply(it, node, callee, [Argument(args[1].node, element)])


def _saved(it: Interpreter, node: ast.Call, args: list[Argument], path: str) -> None:
    for argument in args:
        for obj in argument.value:
            for part in (obj, *content(it, obj)):
                it.use(part, "save", node, path)


def _isinstance(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    for obj in args[0].value if args else EMPTY:
        shown = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
        it.use(obj, "isinstance", node, shown)
    if args and any(isinstance(obj, StrategyView) or means_strategy(obj) for obj in args[0].value):
        return conditions.verdict(it, node) or frozenset((it.thing("op", node, "bool"),))
    return frozenset((it.thing("op", node, "bool"),))


def _type(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    for obj in args[0].value if args else EMPTY:
        it.use(obj, "type", node)
    if args and args[0].value and all(isinstance(obj, StrategyView) for obj in args[0].value):
        return frozenset(it.part(obj, "attr", "__class__", node) for obj in args[0].value)
    return frozenset((it.thing("op", node, "type"),))


def _same(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    """`torch.compile(model)`, `tqdm(loader)`: the same object for the purposes of Fabric."""
    for obj in args[0].value if args else EMPTY:
        it.use(obj, "compile", node)
    positional = [a for a in args if a.name is None or a.name == "model"]
    return positional[0].value if positional else None


def _cast(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    return args[1].value if len(args) > 1 else None


def _copy(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    _saved(it, node, args, "copy.deepcopy")
    made = it.thing("call", node, "copy")
    made.callee = "copy.deepcopy"
    return frozenset((made,))


def _partial(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    positional = [a.value for a in args if a.name is None]
    if not positional:
        return None
    made = it.remember(("partial", node, it.frame), Partial(EMPTY, [], {}))
    assert isinstance(made, Partial)
    made.function, made.args = positional[0], positional[1:]
    made.keywords = {a.name: a.value for a in args if a.name and a.name != "**"}
    return frozenset((made,))


def _enumerate(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    if not args or len(args[0].value) != 1:
        return None
    obj = next(iter(args[0].value))
    for loader in args[0].value:
        it.use(loader, "iterate", node)
    elements(it, args[0].value, args[0].node)
    made = it.thing("op", node, "enumerate")
    made.base = obj
    return frozenset((made,))


def _transparent(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    """`list(x)`, `sorted(x)`, `reversed(x)`, `tuple(x)`, `iter(x)`: a collection of the same elements."""
    if not args:
        return frozenset((collection(it, node),)) if node.func else None
    made = collection(it, node)
    it.set_field(made, "*", elements(it, args[0].value, args[0].node))
    return frozenset((made,))


def _zip(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    made = collection(it, node)
    pair = it.remember(("pair", node, it.frame), Sequence(node))
    assert isinstance(pair, Sequence)
    pair.items = [elements(it, a.value, a.node) for a in args if a.name is None]
    it.set_field(made, "*", frozenset((pair,)))
    return frozenset((made,))


def _dict(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    made = collection(it, node)
    for argument in args:
        if argument.name and argument.name != "**":
            it.set_field(made, f"'{argument.name}", argument.value)
        else:
            for obj in argument.value:
                for name, value in list(it.state.table(obj).items()) if isinstance(obj, Collection) else ():
                    it.set_field(made, name, value, weak=len(argument.value) > 1)
    return frozenset((made,))


def _getattr(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    if len(args) < 2:
        return None
    found: Value = EMPTY
    for name in args[1].value:
        if isinstance(name, Const) and isinstance(name.value, str):
            found = found | attributes.attribute_of(it, args[0].value, name.value, node)
    if len(args) == 3 and len(found) == 1:
        for obj in found:
            default = frozenset(o for o in args[2].value if isinstance(o, Const) and names_strategy(o.value))
            if is_open(obj):
                found = found | known_values(it, obj, default)
    return found or None


def _setattr(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    if len(args) == 3:
        for name in args[1].value:
            if isinstance(name, Const) and isinstance(name.value, str):
                for obj in args[0].value:
                    it.use(obj, "setattr", node, name.value)
                    it.set_field(obj, name.value, args[2].value, weak=True)
    return it.const(None)


def _next(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    return elements(it, args[0].value, args[0].node) if args else None


def _chain(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    parts: Value = EMPTY
    for argument in args:
        parts = parts | gradients(it, argument.value)
    return frozenset((derived(it, "op", node, "parameters", parts),)) if parts else None


_SPECIAL: dict[str, Callable[[Interpreter, ast.Call, list[Argument]], Value | None]] = {
    "builtins.isinstance": _isinstance,
    "builtins.type": _type,
    "torch.compile": _same,
    "typing.cast": _cast,
    "copy.deepcopy": _copy,
    "copy.copy": _copy,
    "functools.partial": _partial,
    "builtins.enumerate": _enumerate,
    "tqdm.tqdm": _same,
    "tqdm.auto.tqdm": _same,
    "builtins.list": _transparent,
    "builtins.tuple": _transparent,
    "builtins.sorted": _transparent,
    "builtins.reversed": _transparent,
    "builtins.iter": _transparent,
    "builtins.set": _transparent,
    "builtins.zip": _zip,
    "builtins.dict": _dict,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.next": _next,
    "itertools.chain": _chain,
    **settings.CALLS,
}


def mentions_fabric(it: Interpreter, cls: Class) -> bool:
    """Whether a class's source speaks of a Fabric, so that its methods are worth following."""
    found = it.remembered(("mentions", cls))
    if found is None:
        yes = any("fabric" in (getattr(n, "id", "") or getattr(n, "attr", "")).lower() for n in ast.walk(cls.node))
        found = it.remember(("mentions", cls), Const(yes))
    return isinstance(found, Const) and bool(found.value)


def bind(
    it: Interpreter, function: Function, frame: Frame, args: list[Argument], receiver: Obj | None
) -> dict[str, Value]:
    """The parameters of a function with the values that a call gives them."""
    arguments = function.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    positional = [a.value for a in args if a.name is None]
    if receiver is not None and "staticmethod" not in function.decorators:
        positional.insert(0, frozenset((receiver,)))
    bound: dict[str, Value] = dict(zip(names, positional, strict=False))
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = _rest(it, arguments.vararg, frame, positional[len(names) :])
    allowed = {*names, *(a.arg for a in arguments.kwonlyargs)}
    extra: dict[str, Value] = {}
    for argument in args:
        if argument.name in allowed:
            bound[str(argument.name)] = argument.value
        elif argument.name == "**":
            _spread_keywords(it, argument, allowed, bound)
            extra.update(_others(it, argument, allowed))
        elif argument.name:
            extra[argument.name] = argument.value
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = _keywords(it, arguments.kwarg, frame, extra)
    return _complete(it, function, frame, bound)


def _is_choice(obj: Obj) -> bool:
    """Whether a default is one of several ways to go: a strategy, a flag."""
    return isinstance(obj, Const) and (isinstance(obj.value, bool) or names_strategy(obj.value))


def _rest(it: Interpreter, parameter: ast.arg, frame: Frame, values: list[Value]) -> Value:
    made = it.remember(("rest", parameter, frame), Sequence(parameter))
    assert isinstance(made, Sequence)
    made.items = list(values)
    return frozenset((made,))


def _keywords(it: Interpreter, parameter: ast.arg, frame: Frame, extra: dict[str, Value]) -> Value:
    made = it.remember(("keywords", parameter, frame), Collection(parameter, frame))
    for name, value in extra.items():
        it.set_field(made, f"'{name}", value)
    return frozenset((made,))


def _others(it: Interpreter, argument: Argument, allowed: set[str]) -> dict[str, Value]:
    """What `**known` gives to a function's own `**` parameter."""
    found: dict[str, Value] = {}
    for obj in argument.value:
        if isinstance(obj, Collection):
            fields = it.state.table(obj).items()
            found.update({n[1:]: v for n, v in fields if n.startswith("'") and n[1:] not in allowed})
    return found


def _spread_keywords(it: Interpreter, argument: Argument, allowed: set[str], bound: dict[str, Value]) -> None:
    for obj in argument.value:
        for name in allowed:
            stored = it.field(obj, f"'{name}")
            if stored is not None and name not in bound:
                bound[name] = stored


def _complete(it: Interpreter, function: Function, frame: Frame, bound: dict[str, Value]) -> dict[str, Value]:
    """Parameters that the call leaves out have their defaults; annotated ones of unknown origin are Fabrics."""
    arguments = function.node.args
    defaults = dict(
        zip([a.arg for a in (*arguments.posonlyargs, *arguments.args)][::-1], arguments.defaults[::-1], strict=False)
    )
    defaults.update(
        {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    )
    outer, it.frame = it.frame, frame.closure or frame.module
    for parameter in all_arguments(arguments):
        name = parameter.arg
        if name not in bound:
            default = defaults.get(name)
            if default is not None and not isinstance(default, ast.Call):
                asked = it.part(function, "param", name, parameter)
                value = known_values(it, asked, quiet(it, default)) or frozenset((asked,))
                if any(_is_choice(obj) for obj in value):
                    value = value | {asked}  # a parameter is there to be given another one
                bound[name] = value
            else:
                bound[name] = outside_value(it, function, parameter, default)
        if parameter.annotation is not None and it.annotated(parameter.annotation, it.frame) == "fabric":
            bound[name] = it.promote(bound[name], name, parameter)
    it.frame = outer
    return bound


__all__ = ["External", "argument_parser", "bind", "call_external", "evaluate", "item", "mentions_fabric"]
