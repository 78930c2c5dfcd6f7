"""Expressions: what each evaluates to."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from fabric_fix.analysis.assumptions import guarded, names_strategy
from fabric_fix.analysis.derive import derived, gradients
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import elements, item
from fabric_fix.analysis.objects import (
    EMPTY,
    Collection,
    Const,
    Instance,
    Sequence,
    Thing,
    Value,
    Wrapped,
)


def evaluate(it: Interpreter, node: ast.expr) -> Value:
    """The value of an expression; what it does on the way is recorded."""
    it.budget -= 1
    visit = _EXPRESSIONS.get(type(node))
    return visit(it, node) if visit is not None else _other(it, node)


def quiet(it: Interpreter, node: ast.expr) -> Value:
    """The value of a name, attribute, literal or tuple of them, without calls and events; nothing for other shapes."""
    if isinstance(node, (ast.Name, ast.Constant)):
        return evaluate(it, node)
    if isinstance(node, ast.Attribute):
        return attributes.attribute_of(it, quiet(it, node.value), node.attr, node, silent=True)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _sequence(it, node, quiet)
    return EMPTY


def _constant(it: Interpreter, node: ast.Constant) -> Value:
    """A literal; the name of a strategy, and a flag set in a branch, are objects of their own."""
    if names_strategy(node.value) or (it.state.assumed and isinstance(node.value, bool)):
        return guarded(it, (node, it.frame), node.value, it.state.assumed)
    return it.const(node.value)


def _name(it: Interpreter, node: ast.Name) -> Value:
    return it.load(node.id, node)


def _attribute(it: Interpreter, node: ast.Attribute) -> Value:
    return attributes.attribute_of(it, evaluate(it, node.value), node.attr, node)


def _call(it: Interpreter, node: ast.Call) -> Value:
    value = calls.call(it, node)
    special = texts.METHODS.get(node.func.attr) if isinstance(node.func, ast.Attribute) else None
    if special is None:
        return value
    found = special(it, node, value)
    return value if found is None else found


def _sequence(
    it: Interpreter, node: ast.Tuple | ast.List, visit: Callable[[Interpreter, ast.expr], Value] = evaluate
) -> Value:
    if any(isinstance(part, ast.Starred) for part in node.elts):
        return _collection(it, node)
    if isinstance(node, ast.List) and len(node.elts) == 0:
        return _collection(it, node)
    made = it.remember(("sequence", node, it.frame), Sequence(node))
    assert isinstance(made, Sequence)
    is_list = isinstance(node, ast.List) and visit is evaluate
    made.items = [_keeping(it, part) if is_list else visit(it, part) for part in node.elts]
    made.of = "list" if isinstance(node, ast.List) else "tuple"
    return frozenset((made,))


def _keeping(it: Interpreter, node: ast.expr) -> Value:
    """The value of an element of a list, set or dict, which keeps it."""
    value = evaluate(it, node)
    for obj in value:
        it.use(obj, "keep", node)
    return value


def collection(it: Interpreter, node: ast.AST) -> Collection:
    """The collection made at a place."""
    made = it.remember(("collection", node, it.frame), Collection(node, it.frame))
    assert isinstance(made, Collection)
    return made


def _collection(it: Interpreter, node: ast.Tuple | ast.List | ast.Set) -> Value:
    made = collection(it, node)
    found: Value = EMPTY
    for part in node.elts:
        if isinstance(part, ast.Starred):
            found = found | elements(it, evaluate(it, part.value), part.value)
        else:
            found = found | _keeping(it, part)
    it.set_field(made, "*", it.limit(found))
    return frozenset((made,))


def _dict(it: Interpreter, node: ast.Dict) -> Value:
    made = collection(it, node)
    for key, value in zip(node.keys, node.values, strict=True):
        got = _keeping(it, value)
        if isinstance(key, ast.Constant):
            it.set_field(made, f"'{key.value!s}", got)
        elif key is None and got and all(isinstance(obj, Collection) for obj in got):
            for obj in got:
                for name, stored in list(it.state.table(obj).items()):
                    it.set_field(made, name, stored, weak=len(got) > 1)
        else:
            if key is not None:
                told_apart(it, evaluate(it, key), key)
            else:
                _merge(it, made, got)
            it.set_field(made, "*", got, weak=True)
    return frozenset((made,))


def _merge(it: Interpreter, made: Collection, got: Value) -> None:
    """`{**other}`: what another dict holds."""
    for other in got:
        if isinstance(other, Collection):
            for name, value in list(it.state.table(other).items()):
                if not name.startswith("#"):
                    it.set_field(made, name, value, weak=True)


def told_apart(it: Interpreter, keys: Value, node: ast.expr) -> None:
    """Objects as keys of a dict, or looked up in a collection: each is only equal to itself."""
    for obj in keys:
        if isinstance(obj, (Thing, Instance, Wrapped)):
            it.use(obj, "identity", node)


def subscript_key(it: Interpreter, node: ast.expr) -> str | None:
    """The field that a subscript names (`'model` for `["model"]`), or None when it is not a known constant."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return f"'-{node.operand.value!s}"
    value = evaluate(it, node)
    told_apart(it, value, node)
    if len(value) == 1:
        obj = next(iter(value))
        if isinstance(obj, Const) and isinstance(obj.value, (str, int)):
            return f"'{obj.value}"
    return None


def _subscript(it: Interpreter, node: ast.Subscript) -> Value:
    value = evaluate(it, node.value)
    key = subscript_key(it, node.slice)
    found: Value = EMPTY
    for obj in value:
        it.use(obj, "index", node)
        stored = it.field(obj, key) if key is not None else None
        if stored is not None:
            found = found | stored
            if isinstance(obj, Collection):  # what was stored under a key that is not known can be under this one
                found = found | (it.field(obj, "*") or EMPTY)
        elif isinstance(obj, Sequence):
            index = int(key[1:]) if key is not None and key[1:].lstrip("-").isdigit() else None
            found = found | item(it, frozenset((obj,)), index, node)
        elif isinstance(obj, Collection):
            anything = it.field(obj, "*")
            found = found | (anything if anything else item(it, frozenset((obj,)), None, node))
        else:
            found = found | frozenset((it.part(obj, "item", key or "*", node),))
    if key is not None and isinstance(node.slice, ast.Constant) and str(node.slice.value) in it.spellings:
        return it.promote(found, str(node.slice.value), node)
    return it.limit(found)


def _if_exp(it: Interpreter, node: ast.IfExp) -> Value:
    truth = conditions.truth(it, node.test)
    if truth is not None:
        return evaluate(it, node.body if truth else node.orelse)
    before = it.state
    it.state = before.copy()
    conditions.refine(it, node.test, True)
    first = texts.marked(it, evaluate(it, node.body), (node, True, it.frame), it.state.assumed - before.assumed)
    taken = it.state
    it.state = before.copy()
    conditions.refine(it, node.test, False)
    second = texts.marked(it, evaluate(it, node.orelse), (node, False, it.frame), it.state.assumed - before.assumed)
    it.state = taken.join(it.state)
    return it.limit(first | second)


def _bool_op(it: Interpreter, node: ast.BoolOp) -> Value:
    found: Value = EMPTY
    for part in node.values:
        value = evaluate(it, part)
        if isinstance(node.op, ast.Or) and part is not node.values[-1]:
            value = frozenset(obj for obj in value if not isinstance(obj, Const) or obj.value)
        found = found | value
    if all(isinstance(part, (ast.Compare, ast.Call, ast.UnaryOp)) for part in node.values):
        return _verdict(it, node) or it.limit(found)
    return it.limit(found)


def _verdict(it: Interpreter, node: ast.expr) -> Value | None:
    return conditions.verdict(it, node)


def _bin_op(it: Interpreter, node: ast.BinOp) -> Value:
    values = _flat(it, node)
    for value in values:
        for obj in value:
            it.use(obj, "operator", node)
    if isinstance(node.op, ast.Add):
        text = texts.joined(it, node, values[::-1])
        if text is not None:
            return text
    constants = all(isinstance(obj, Const) for value in values for obj in value)
    if constants:
        made = it.thing("op", node)
        return frozenset((made,))
    parts: Value = EMPTY
    for value in values:
        parts = parts | gradients(it, value)
    return frozenset((derived(it, "op", node, "", parts),))


def _flat(it: Interpreter, node: ast.BinOp) -> list[Value]:
    """The operands of a chain of operators, without recursion on its left side (sums of thousands of terms)."""
    found: list[Value] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        found.append(evaluate(it, left.right))
        left = left.left
    found.append(evaluate(it, left))
    return found


def _unary(it: Interpreter, node: ast.UnaryOp) -> Value:
    value = evaluate(it, node.operand)
    if isinstance(node.op, ast.Not):
        return _verdict(it, node) or frozenset((it.thing("op", node),))
    if all(isinstance(obj, Const) for obj in value):
        return frozenset((it.thing("op", node),))
    return frozenset((derived(it, "op", node, "", gradients(it, value)),))


def _compare(it: Interpreter, node: ast.Compare) -> Value:
    values = [evaluate(it, part) for part in (node.left, *node.comparators)]
    asks = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
    if asks and not any(isinstance(part, ast.Constant) for part in (node.left, *node.comparators)):
        for obj in frozenset().union(*values):
            it.use(obj, "identity", node)
    return _verdict(it, node) or frozenset((it.thing("op", node, "bool"),))


def _named(it: Interpreter, node: ast.NamedExpr) -> Value:
    value = evaluate(it, node.value)
    assign.assign(it, node.target, value)
    return value


def _lambda(it: Interpreter, node: ast.Lambda) -> Value:
    return frozenset((definitions.make_function(it, node, None),))


def _comprehension(it: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    names = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    local = it.state.table(it.frame)
    shadowed = {name: local[name] for name in names if name in local}
    single = _is_single(it, node.generators[0].iter)
    for generator in node.generators:
        assign.assign(it, generator.target, elements(it, evaluate(it, generator.iter), generator.iter))
        for test in generator.ifs:
            evaluate(it, test)
    it.repeating += 0 if single else 1
    if isinstance(node, ast.DictComp):
        told_apart(it, evaluate(it, node.key), node.key)
        got = evaluate(it, node.value)
    else:
        got = evaluate(it, node.elt)
    it.repeating -= 0 if single else 1
    for name in names:
        if name in shadowed:
            it.state.put(it.frame, name, shadowed[name])
        else:
            it.state.drop(it.frame, name)
    made = collection(it, node)
    it.set_field(made, "*", got)
    return frozenset((made,))


def _is_single(it: Interpreter, node: ast.expr) -> bool:
    return isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 1


def _starred(it: Interpreter, node: ast.Starred) -> Value:
    return evaluate(it, node.value)


def _await(it: Interpreter, node: ast.Await) -> Value:
    return evaluate(it, node.value)


def _yield(it: Interpreter, node: ast.Yield | ast.YieldFrom) -> Value:
    if node.value is not None:
        evaluate(it, node.value)
    return frozenset((it.thing("name", node),))


def _text(it: Interpreter, node: ast.JoinedStr) -> Value:
    values: list[Value] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(it, part.value)
            values.append(value if part.format_spec is None else frozenset((it.thing("op", part),)))
        else:
            values.append(evaluate(it, part))
    return texts.joined(it, node, values) or frozenset((it.thing("op", node, "str"),))


def _slice(it: Interpreter, node: ast.Slice) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            evaluate(it, part)
    return EMPTY


def _set(it: Interpreter, node: ast.Set) -> Value:
    return _collection(it, node)


def _other(it: Interpreter, node: ast.expr) -> Value:
    return frozenset((it.thing("op", node),))


_EXPRESSIONS: dict[type[ast.expr], Callable[[Interpreter, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.IfExp: _if_exp,
    ast.BoolOp: _bool_op,
    ast.BinOp: _bin_op,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.NamedExpr: _named,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Starred: _starred,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.JoinedStr: _text,
    ast.Slice: _slice,
}

# last, because these import this module themselves
from fabric_fix.analysis import assign, attributes, calls, conditions, definitions, texts  # noqa: E402
