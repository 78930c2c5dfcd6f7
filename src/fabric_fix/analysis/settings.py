"""Settings: command lines, namespaces and environments, which say what a strategy or a flag can be."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fabric_fix.analysis.assumptions import known_values
from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.expressions import collection, evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.objects import EMPTY, Collection, Const, Obj, Sequence, Thing, Value


def _namespace(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    """`SimpleNamespace(strategy="ddp")`, `OmegaConf.create({"strategy": "ddp"})`: an object with these attributes."""
    made = it.thing("call", node, "namespace")
    for argument in args:
        if argument.name and argument.name != "**":
            it.set_field(made, argument.name, argument.value)
            continue
        for obj in argument.value:
            for name, value in list(it.state.table(obj).items()) if isinstance(obj, Collection) else ():
                if name.startswith("'"):
                    it.set_field(made, name, value)
                    it.set_field(made, name[1:], value)
    return frozenset((made,))


def _vars(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    """`vars(args)`: the attributes of an object, by name."""
    if not args or len(args[0].value) != 1:
        return None
    owner = next(iter(args[0].value))
    made = collection(it, node)
    source = owner.base if isinstance(owner, Thing) and owner.kind == "args" and owner.base is not None else owner
    for table in (it.state.table(source), it.state.table(owner)):
        for name, value in list(table.items()):
            if not name.startswith(("#", "*", "'")):
                it.set_field(made, f"'{name}", value)
    it.set_field(made, "*", frozenset((it.part(made, "item", "*", node),)))
    return frozenset((made,))


def _environ(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    """`os.environ.get("STRATEGY", "deepspeed")`: the variable, or the default."""
    names = [obj.value for obj in (args[0].value if args else EMPTY) if isinstance(obj, Const)]
    if len(names) != 1 or len(args) > 2:
        return None
    environment = next(iter(it.external("os.environ")))
    asked = it.part(environment, "item", f"'{names[0]}", node)
    default = args[1].value if len(args) == 2 else EMPTY
    return frozenset((asked,)) | known_values(it, asked, default)


def _parser(it: Interpreter, node: ast.Call, args: list[Argument]) -> Value | None:
    made = it.thing("call", node, "parser")
    made.callee, made.kind = "argparse.ArgumentParser", "parser"
    return frozenset((made,))


def argument_parser(it: Interpreter, node: ast.Call, obj: Thing, name: str, args: list[Argument]) -> Value | None:
    """Methods of an `argparse` parser; what `add_argument` says of defaults and choices is kept on the parser."""
    parser: Obj = obj
    while isinstance(parser, Thing) and parser.label == "group" and parser.base is not None:
        parser = parser.base
    if not isinstance(parser, Thing) or not parser.callee.endswith("ArgumentParser"):
        return None
    if name == "add_argument":
        _add_argument(it, parser, args)
        return it.const(None)
    if name.startswith("add_"):
        made = it.thing("op", node, "group")
        made.base = parser
        return frozenset((made,))
    given = it.part(parser, "args", "args", node)
    if name == "parse_args":
        return frozenset((given,))
    pair = it.remember(("pair", node, it.frame), Sequence(node))
    assert isinstance(pair, Sequence)
    pair.items = [frozenset((given,)), frozenset((it.thing("op", node),))]
    return frozenset((pair,))


def _add_argument(it: Interpreter, parser: Thing, args: list[Argument]) -> None:
    names = [
        o.value for a in args if a.name is None for o in a.value if isinstance(o, Const) and isinstance(o.value, str)
    ]
    if not names:
        return
    long = next((n for n in names if n.startswith("--")), names[0])
    field = long.lstrip("-").replace("-", "_")
    default: Value = EMPTY
    choices: Value = EMPTY
    for argument in args:
        if argument.name == "default":
            default = argument.value
        elif argument.name == "choices":
            choices = frozenset().union(*(content(it, obj) for obj in argument.value))
        elif argument.name == "dest":
            field = next((str(o.value) for o in argument.value if isinstance(o, Const)), field)
    asked = it.part(parser, "attr", field, None)
    closed = any(argument.name == "choices" for argument in args)
    choices = known_values(it, asked, choices) if closed else frozenset((asked,))
    if not any(argument.name == "default" for argument in args):
        default = it.field(parser, field) or EMPTY  # from `set_defaults`
    it.set_field(parser, f"#open {field}", choices)
    it.set_field(parser, field, choices | known_values(it, asked, default))


def set_defaults(it: Interpreter, node: ast.Call, value: Value) -> Value | None:
    """`parser.set_defaults(strategy="deepspeed")`: in place of the defaults that `add_argument` gave."""
    owners = quiet(it, node.func.value) if isinstance(node.func, ast.Attribute) else EMPTY
    for owner in owners:
        if isinstance(owner, Thing) and owner.callee.endswith("ArgumentParser"):
            for keyword in node.keywords:
                if keyword.arg is not None:
                    _default(it, owner, keyword.arg, evaluate(it, keyword.value))
    return None


def _default(it: Interpreter, parser: Thing, name: str, value: Value) -> None:
    asked = it.part(parser, "attr", name, None)
    open_part = it.field(parser, f"#open {name}")
    choices = open_part if open_part is not None else frozenset((asked,))
    it.set_field(parser, name, choices | known_values(it, asked, value))


CALLS: dict[str, Callable[[Interpreter, ast.Call, list[Argument]], Value | None]] = {
    "builtins.vars": _vars,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "omegaconf.OmegaConf.create": _namespace,
    "easydict.EasyDict": _namespace,
    "os.environ.get": _environ,
    "os.getenv": _environ,
    "argparse.ArgumentParser": _parser,
    "jsonargparse.ArgumentParser": _parser,
}
"""What these give; None where it cannot be said."""
