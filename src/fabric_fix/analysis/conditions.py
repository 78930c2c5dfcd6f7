"""Conditions: which branch can be taken, and what is known of a Fabric's strategy within it."""

from __future__ import annotations

import ast

from fabric_fix.analysis import known
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.objects import Class, Const, External, FabricObj, Obj, Sequence, StrategyView, Thing, Value


def truth(it: Interpreter, test: ast.expr) -> bool | None:
    """Evaluate a test: True or False when it can only be that, else None."""
    value = evaluate(it, test)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(it, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return _identity(it, test)
    if isinstance(test, ast.Call):
        return _isinstance(it, test)
    if isinstance(test, (ast.Name, ast.Attribute)) and value and all(isinstance(o, FabricObj) for o in value):
        return True
    return None


def _identity(it: Interpreter, test: ast.Compare) -> bool | None:
    """`x is None` for an `x` that surely is None, or surely a Fabric."""
    right = test.comparators[0]
    if not (isinstance(right, ast.Constant) and right.value is None):
        return None
    value = quiet(it, test.left)
    same: bool | None = None
    if value and all(isinstance(obj, FabricObj) for obj in value):
        same = False
    elif value and all(isinstance(obj, Const) and obj.value is None for obj in value):
        same = True
    if same is None:
        return None
    return same if isinstance(test.ops[0], ast.Is) else not same


def _isinstance(it: Interpreter, test: ast.Call) -> bool | None:
    """`isinstance(fabric.strategy, X)` when the strategies of the Fabric decide it."""
    asked = _strategy_test(it, test)
    if asked is None:
        return None
    fabric, families = asked
    possible = strategies(it, fabric)
    if "unknown" in possible or not possible:
        return None
    hits = {f for f in possible if _matches(f, families)}
    if not hits:
        return False
    return True if len(hits) == len(possible) else None


def strategies(it: Interpreter, fabric: FabricObj) -> frozenset[str]:
    """The families that a Fabric's strategy can be of at this point."""
    refined = it.state.get(fabric, "#strategies")
    if refined is None:
        return fabric.strategies
    return frozenset(str(obj.value) for obj in refined if isinstance(obj, Const))


def _matches(family: str, families: frozenset[str]) -> bool:
    return (
        family in families
        or (known.is_deepspeed(family) and "deepspeed" in families)
        or (family == "fsdp_original_params" and "fsdp" in families)
    )


def refine(it: Interpreter, test: ast.expr, branch: bool) -> None:
    """Narrow the strategies of Fabrics to those that a branch of a test allows."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        refine(it, test.operand, not branch)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if branch else ast.Or):
        for part in test.values:
            refine(it, part, branch)
    elif isinstance(test, ast.Call):
        asked = _strategy_test(it, test)
        if asked is not None:
            _narrow(it, asked[0], asked[1], branch)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _compare(it, test, branch)


def _narrow(it: Interpreter, fabric: FabricObj, families: frozenset[str], branch: bool) -> None:
    kept = [f for f in strategies(it, fabric) if f == "unknown" or _matches(f, families) is branch]
    value: Value = frozenset().union(*(it.const(f) for f in kept)) if kept else it.const("none")
    it.set_fact(fabric, "#strategies", value)


def _strategy_test(it: Interpreter, test: ast.Call) -> tuple[FabricObj, frozenset[str]] | None:
    if not (isinstance(test.func, ast.Name) and test.func.id == "isinstance" and len(test.args) == 2):
        return None
    views = quiet(it, test.args[0])
    if len(views) != 1:
        return None
    view = next(iter(views))
    if isinstance(view, StrategyView) and not view.control:
        return view.fabric, _families(quiet(it, test.args[1]))
    return None


def _families(value: Value) -> frozenset[str]:
    found: set[str] = set()
    for obj in value:
        if isinstance(obj, Sequence):
            for part in obj.items:
                found |= _families(part)
        elif isinstance(obj, External):
            name = obj.path.rpartition(".")[2]
            found |= known.SUBCLASSES.get(name, set())
            found.add(known.STRATEGY_CLASSES.get(name, name))
        elif isinstance(obj, Class):
            found.add(obj.node.name)
    return frozenset(found)


def _compare(it: Interpreter, test: ast.Compare, branch: bool) -> None:
    """`args.strategy == "deepspeed"` where the Fabric was made with that very value."""
    operator = test.ops[0]
    if not isinstance(operator, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return
    names = _strings(quiet(it, test.comparators[0]))
    if not names:
        return
    wanted = branch if isinstance(operator, (ast.Eq, ast.In)) else not branch
    value = quiet(it, test.left)
    for fabric in _fabrics_made_with(it, value):
        families: set[str] = set()
        for name in names:
            families |= known.strategy_families(name, None, None)
        _narrow(it, fabric, frozenset(families), wanted)


def _strings(value: Value) -> list[str]:
    found: list[str] = []
    for obj in value:
        if isinstance(obj, Const) and isinstance(obj.value, str):
            found.append(obj.value)
        elif isinstance(obj, Sequence):
            for part in obj.items:
                found.extend(_strings(part))
    return found


def _fabrics_made_with(it: Interpreter, value: Value) -> list[FabricObj]:
    if not value or (len(value) == 1 and isinstance(next(iter(value)), Const)):
        return []
    return [fabric for fabric in it.made_fabrics if fabric.strategy_value == value]


__all__ = ["Obj", "Thing", "refine", "strategies", "truth"]
