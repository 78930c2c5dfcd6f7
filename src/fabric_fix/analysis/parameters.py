"""What a parameter can be when its function is called from where the analysis cannot see."""

from __future__ import annotations

import ast

from fabric_fix.analysis.assumptions import known_values, names_strategy
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import EMPTY, Class, Const, External, Function, Value


def outside_value(it: Interpreter, function: Function, parameter: ast.arg, default: ast.expr | None) -> Value:
    """A parameter's own object, with its default and what click, typer or choices say of it."""
    asked = it.part(function, "param", parameter.arg, parameter)
    made: Value = frozenset((asked,))
    if isinstance(function.node, ast.Lambda):
        return made
    chosen = _click_choices(it, function, parameter.arg)
    if chosen is not None:
        return known_values(it, asked, chosen) or made
    allowed = _allowed(it, parameter.annotation)
    if allowed:
        return known_values(it, asked, allowed)
    if default is None:
        return made
    if isinstance(default, ast.Call):
        return made | known_values(it, asked, _typer_default(it, default))
    return made | known_values(it, asked, quiet(it, default))


def _allowed(it: Interpreter, annotation: ast.expr | None) -> Value:
    """The strategies that an annotation allows: members of an enumeration, or a `Literal`; nothing for others."""
    found: Value = EMPTY
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).endswith("Literal"):
        items = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        for item in items:
            found = found | quiet(it, item)
    elif isinstance(annotation, (ast.Name, ast.Attribute)):
        for obj in quiet(it, annotation):
            if isinstance(obj, Class) and any(_is_enumeration(base) for base in obj.bases):
                found = found | frozenset().union(*it.state.table(obj).values())
    return found if all(isinstance(o, Const) and names_strategy(o.value) for o in found) else EMPTY


def _is_enumeration(base: object) -> bool:
    return isinstance(base, External) and base.path in ("enum.Enum", "enum.StrEnum")


def _click_choices(it: Interpreter, function: Function, name: str) -> Value | None:
    """The values that a `@click.option` decorator allows for a parameter, or None without such a decorator."""
    assert not isinstance(function.node, ast.Lambda)
    for decorator in function.node.decorator_list:
        if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute)):
            continue
        if decorator.func.attr not in ("option", "argument") or name not in _option_names(decorator):
            continue
        found: Value = EMPTY
        closed = False
        for keyword in decorator.keywords:
            if keyword.arg == "default":
                found = found | quiet(it, keyword.value)
            elif keyword.arg == "type" and isinstance(keyword.value, ast.Call) and keyword.value.args:
                closed = True
                for obj in evaluate(it, keyword.value.args[0]):
                    found = found | content(it, obj)
        return found if closed else found | frozenset((it.part(function, "param", name, None),))
    return None


def _option_names(decorator: ast.Call) -> set[str]:
    texts = [a.value for a in decorator.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return {text.lstrip("-").split("/")[0].replace("-", "_").lower() for text in texts}


def _typer_default(it: Interpreter, default: ast.Call) -> Value:
    name = last_name(default.func)
    if name not in ("Option", "Argument", "field", "Field"):
        return EMPTY
    given = [*default.args[:1], *(k.value for k in default.keywords if k.arg == "default")]
    return quiet(it, given[0]) if given else EMPTY
