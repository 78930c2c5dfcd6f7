"""What a test asks, and of what: read from its syntax."""

from __future__ import annotations

import ast

from fabric_fix.analysis import known
from fabric_fix.analysis.assumptions import Test
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import EMPTY, Class, Collection, Const, External, Sequence, Value
from fabric_fix.records import Record

SAME_TEXT = ("lower", "strip", "casefold")
"""Methods that leave the name of a strategy what it is."""


class Question(Record):
    """A test of a value."""

    place: ast.expr | None
    """Where the value stands, if it has a place."""
    value: Value
    test: Test
    positive: bool = True
    """False when the expression is true where the test fails (`!=`, `not in`)."""


def value_of(it: Interpreter, node: ast.expr) -> Value:
    """The value of a place, also with `.lower()` and the like behind it, and of a setting that is asked for by name;
    nothing for other expressions."""
    node = _place(node)
    asks = isinstance(node, ast.Call) and last_name(node.func) in ("get", "getenv", "getattr")
    return evaluate(it, node) if asks or isinstance(node, ast.Subscript) else quiet(it, node)


def _place(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in SAME_TEXT and not node.args:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    return node.target if isinstance(node, ast.NamedExpr) else node


def question(it: Interpreter, test: ast.expr) -> Question | None:
    """What a test asks, or None where nothing follows from it."""
    found: Question | None = None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(it, test.left, test.ops[0], test.comparators[0])
    if isinstance(test, ast.Call):
        found = _called(it, test)
        if found is None and test in it.tested:
            found = Question(None, it.tested[test], Test("true"))
    elif isinstance(test, (ast.Name, ast.Attribute, ast.Subscript, ast.NamedExpr)):
        found = Question(_place(test), value_of(it, test), Test("true"))
    return found if found is not None and found.value else None


def _compared(it: Interpreter, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Question | None:
    positive = isinstance(operator, (ast.Eq, ast.In, ast.Is))
    if isinstance(operator, (ast.In, ast.NotIn)):
        text = _constants(quiet(it, left))
        if len(text) == 1 and all(isinstance(part, str) for part in text) and not isinstance(right, _DISPLAYS):
            asked = value_of(it, right)
            if any(isinstance(obj, (Sequence, Collection)) for obj in asked):
                return None
            return _ask(it, right, Test("contains", text), positive)
        return _ask(it, left, _equal(_members(it, right)), positive)
    if not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return None
    for place, other in ((left, right), (right, left)):
        if isinstance(other, ast.Constant) and not (other.value is None or isinstance(other.value, (str, bool))):
            return None
        wanted = quiet(it, other)
        if len(wanted) != 1 or isinstance(place, ast.Constant):
            continue
        if isinstance(other, (ast.Name, ast.Attribute)) and _family_test(wanted) is not None:
            return _ask(it, place, _family_test(wanted), positive)
        if len(_constants(wanted)) == 1:
            return _ask(it, place, _equal(_constants(wanted)), positive)
    return None


_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)


def _ask(it: Interpreter, node: ast.expr, test: Test | None, positive: bool) -> Question | None:
    value = _class_of_strategy(it, node) or value_of(it, node)
    return Question(_place(node), value, test, positive) if test is not None and value else None


def _class_of_strategy(it: Interpreter, node: ast.expr) -> Value:
    """`type(x)`, and `type(x).__name__`."""
    if isinstance(node, ast.Attribute):
        owner = _class_of_strategy(it, node.value)
        return frozenset(it.part(obj, "attr", node.attr, node) for obj in owner)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type" and node.args:
        return evaluate(it, node)
    return EMPTY


def _equal(names: frozenset[object]) -> Test | None:
    """A comparison with strings, None or a flag; numbers are left alone (they are compared with tensors too)."""
    fits = names and all(name is None or isinstance(name, (str, bool)) for name in names)
    return Test("equal", names) if fits else None


def _constants(value: Value) -> frozenset[object]:
    if not all(isinstance(obj, Const) for obj in value):
        return frozenset()
    return frozenset(obj.value for obj in value if isinstance(obj, Const))


def _members(it: Interpreter, node: ast.expr) -> frozenset[object]:
    """The constants in a tuple, list, set or dict, written here or elsewhere."""
    holder = evaluate(it, node) if isinstance(node, _DISPLAYS) else value_of(it, node)
    if len(holder) != 1:
        return frozenset()
    owner = next(iter(holder))
    if isinstance(owner, Collection) and it.field(owner, "*") is None:
        return frozenset(name[1:] for name in it.state.table(owner) if name.startswith("'"))
    return _constants(content(it, owner))


def _called(it: Interpreter, test: ast.Call) -> Question | None:
    """`isinstance(x, X)`, `text.startswith("...")` and `endswith`."""
    if isinstance(test.func, ast.Name) and test.func.id == "isinstance" and len(test.args) == 2:
        return _ask(it, test.args[0], _family_test(quiet(it, test.args[1])), True)
    if not (isinstance(test.func, ast.Attribute) and test.func.attr in ("startswith", "endswith") and test.args):
        return None
    texts = quiet(it, test.args[0])
    names = _constants(frozenset().union(*(content(it, obj) for obj in texts)) or texts)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    kind = "prefix" if test.func.attr == "startswith" else "suffix"
    return _ask(it, test.func.value, Test(kind, names), True)


def of_pattern(it: Interpreter, subject: ast.expr, pattern: ast.pattern) -> Question | None:
    """What a `case` asks of the subject: `"ddp"`, `"ddp" | "fsdp"`, `None`, `DDPStrategy()`."""
    test = _pattern_test(it, pattern)
    return None if test is None else _ask(it, subject, test, True)


def _pattern_test(it: Interpreter, pattern: ast.pattern) -> Test | None:
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _pattern_test(it, pattern.pattern)
    if isinstance(pattern, ast.MatchValue):
        return _equal(_constants(quiet(it, pattern.value)))
    if isinstance(pattern, ast.MatchSingleton):
        return _equal(frozenset((pattern.value,)))
    if isinstance(pattern, ast.MatchClass) and not pattern.patterns and not pattern.kwd_patterns:
        return _family_test(quiet(it, pattern.cls))
    if isinstance(pattern, ast.MatchOr):
        tests = [_pattern_test(it, part) for part in pattern.patterns]
        kinds = {test.kind for test in tests if test is not None}
        if None not in tests and len(kinds) == 1:
            return Test(kinds.pop(), frozenset().union(*(test.names for test in tests if test is not None)))
    return None


def _family_test(value: Value) -> Test | None:
    """A test for strategy classes, or for a text; None when anything else is among them."""
    if len(value) == 1 and all(isinstance(obj, External) and obj.path == "builtins.str" for obj in value):
        return Test("text")
    found: set[object] = set()
    for obj in value:
        names = class_families(obj)
        if isinstance(obj, Sequence):
            for part in obj.items:
                inner = _family_test(part)
                if inner is None or inner.kind != "family":
                    return None
                found |= inner.names
        elif names:
            found |= names
        else:
            return None
    return Test("family", frozenset(found)) if found else None


def class_families(obj: object) -> set[str]:
    """The families of a strategy class of Lightning, or of the program."""
    if isinstance(obj, External):
        name = obj.path.rpartition(".")[2]
        if name in known.SUBCLASSES:
            return set(known.SUBCLASSES[name])
        return {known.STRATEGY_CLASSES[name]} if name in known.STRATEGY_CLASSES else set()
    if isinstance(obj, Class) and obj.kind == "strategy":
        return set().union(*(class_families(base) for base in obj.bases if base is not obj))
    return set()


__all__ = ["Question", "class_families", "question", "value_of"]
