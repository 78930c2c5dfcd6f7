"""Conditions: which branch can be taken, and what is known of values and of a Fabric's strategy within it."""

from __future__ import annotations

import ast

from fabric_fix.analysis import known
from fabric_fix.analysis.assumptions import (
    NEVER,
    NOTHING,
    Atom,
    Atoms,
    Test,
    agrees,
    common,
    guard_of,
    guarded,
    is_open,
    known_as,
    means_strategy,
    names_strategy,
    origin_of_value,
    possible,
)
from fabric_fix.analysis.expressions import evaluate
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.objects import (
    EMPTY,
    UNBOUND,
    Class,
    Collection,
    Const,
    FabricObj,
    Instance,
    Marker,
    Obj,
    StrategyView,
    Thing,
    Value,
)
from fabric_fix.analysis.possible import origins, strategies
from fabric_fix.analysis.questions import Question, question, value_of


def truth(it: Interpreter, test: ast.expr) -> bool | None:
    """Evaluate a test: True or False when it can only be that, else None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(it, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
        return False if it.frame in it.imported_modules and isinstance(test.ops[0], ast.Eq) else None
    value = it.tested[test] = _look(it, test)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        same = _identity(it, test)
        if same is not None:
            return same
    if isinstance(test, (ast.Name, ast.Attribute)) and value and all(isinstance(o, FabricObj) for o in value):
        return True
    asked = question(it, test)
    it.asked[test] = (it.state.assumed, asked)
    return decided(it, asked) if asked is not None else None


def _look(it: Interpreter, test: ast.expr) -> Value:
    """Evaluate a test for what it does on the way; what a comparison gives is asked for elsewhere."""
    if isinstance(test, ast.Compare):
        for part in (test.left, *test.comparators):
            evaluate(it, part)
        return EMPTY
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            it.tested[part] = _look(it, part)
        return EMPTY
    return evaluate(it, test)


def _identity(it: Interpreter, test: ast.Compare) -> bool | None:
    """`x is None` for an `x` that surely is None, or surely a Fabric."""
    right = test.comparators[0]
    if not (isinstance(right, ast.Constant) and right.value is None):
        return None
    value = value_of(it, test.left)
    same: bool | None = None
    if value and all(isinstance(obj, FabricObj) for obj in value):
        same = False
    elif value and all(isinstance(obj, Const) and obj.value is None for obj in value):
        same = True
    if same is None:
        return None
    return same if isinstance(test.ops[0], ast.Is) else not same


def decided(it: Interpreter, asked: Question) -> bool | None:
    """The only way in which a test of a strategy can come out.

    A flag decides nothing, for it may be set where the analysis does not look; nor does the name of a strategy where
    the user named others that the program must run on.
    """
    if asked.test.kind == "true" and not all(obj in it.guards for obj in asked.value):
        return None
    if asked.test.kind == "equal" and not all(isinstance(name, str) for name in asked.test.names):
        return None
    if it.strategies and not any(isinstance(obj, StrategyView) for obj in asked.value):
        return None
    ways = [way for way in (True, False) if _outcome(it, asked, way)[1] is not None]
    return ways[0] if len(ways) == 1 else None


# --- what a branch takes for granted --------------------------------------------------------------------------------


def refine(it: Interpreter, test: ast.expr, branch: bool) -> None:
    """Narrow what is tested, and the strategies of Fabrics, to what a branch of a test allows."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        refine(it, test.operand, not branch)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if branch else ast.Or):
        for part in test.values:
            refine(it, part, branch)
    elif isinstance(test, ast.BoolOp):
        it.state.assumed |= assume(it, test, branch) or NOTHING
    else:
        assumed, asked = it.asked.get(test, (None, None))
        if assumed is not it.state.assumed:
            asked = question(it, test)
        if asked is not None:
            settle(it, asked, branch)


def settle(it: Interpreter, asked: Question, branch: bool) -> bool:
    """Go on with one outcome of a question; False when it cannot come out so."""
    kept, atoms = _outcome(it, asked, branch)
    if atoms is None:
        if not it.strategies:
            it.state.assumed |= {NEVER}
        return False
    _narrow(it, asked, kept, branch is asked.positive)
    it.state.assumed |= atoms
    return True


def assume(it: Interpreter, test: ast.expr, branch: bool) -> Atoms | None:
    """What holds where a test came out one way; None where it cannot."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return assume(it, test.operand, not branch)
    if isinstance(test, ast.BoolOp):
        parts = [assume(it, part, branch) for part in test.values]
        can = [part for part in parts if part is not None]
        if isinstance(test.op, ast.And if branch else ast.Or):
            return frozenset().union(*can) if len(can) == len(parts) else None
        return common(can) if can else None
    asked = question(it, test)
    return NOTHING if asked is None else _outcome(it, asked, branch)[1]


def verdict(it: Interpreter, test: ast.expr) -> Value | None:
    """The value of a test of a strategy, of a flag and the like: True and False, each under what then holds."""
    ways = {way: assume(it, test, way) for way in (True, False)}
    if not any(ways.values()) or (it.strategies and None in ways.values()):
        return None
    found: Value = EMPTY
    for way, atoms in ways.items():
        if atoms is not None:
            found = found | guarded(it, ("verdict", test, it.frame), way, atoms)
    return found


def _outcome(it: Interpreter, asked: Question, branch: bool) -> tuple[Value, Atoms | None]:
    """The alternatives of a value for which a test comes out one way, and what then holds; None for never."""
    wanted = branch is asked.positive
    kept: set[Obj] = set()
    guards: list[Atoms] = []
    for obj in asked.value:
        guard = _guard(it, obj, asked.test, wanted)
        if guard is not None:
            kept.add(obj)
            guards.append(guard)
    if not kept and it.strategies:
        return asked.value, frozenset((origin, asked.test, wanted) for origin in origins(it, asked.value))
    if not kept:
        return EMPTY, None if asked.value else NOTHING
    atoms = common(guards)
    if asked.test.kind != "true" and any(means_strategy(obj) for obj in asked.value):
        atoms |= {(origin_of_value(it, asked.value), asked.test, wanted)}
    return frozenset(kept), atoms


def _guard(it: Interpreter, obj: Obj, test: Test, wanted: bool) -> Atoms | None:
    """What holds when an object passes a test (fails it, for `wanted` False); None when it cannot."""
    if not possible(it, obj):
        return None
    atom = _strategy_atom(obj, test, wanted)
    if atom is not None:
        return _guard_of_strategy(it, atom)
    how = test.of(obj)
    if how is (not wanted):
        return None
    guard = guard_of(it, obj)
    if how is None and is_open(obj):
        guard = guard | {(obj, test, wanted)}
        if not agrees(guard, it.state.assumed):
            return None
    return guard


def _strategy_atom(obj: Obj, test: Test, wanted: bool) -> Atom | None:
    """For a test of `fabric.strategy`, of its class or of that class's name: what it says of the Fabric."""
    if isinstance(obj, StrategyView) and not obj.control:
        return (obj.fabric, test, wanted) if test.kind == "family" else None
    if not isinstance(obj, Thing):
        return None
    if obj.label == "__class__" and isinstance(obj.base, StrategyView) and test.kind == "family":
        return (obj.base.fabric, test, wanted)
    owner = obj.base if obj.label in ("__name__", "__qualname__") else None
    if isinstance(owner, Thing) and owner.label == "__class__" and isinstance(owner.base, StrategyView):
        families = {family for name, family in known.STRATEGY_CLASSES.items() if test.of_constant(name)}
        return (owner.base.fabric, Test("family", frozenset(families)), wanted)
    return None


def _guard_of_strategy(it: Interpreter, atom: Atom) -> Atoms | None:
    fabric = atom[0]
    assert isinstance(fabric, FabricObj)
    if NEVER not in it.state.assumed:
        saved = it.state.assumed
        it.state.assumed = saved | {atom}
        left = strategies(it, fabric)
        it.state.assumed = saved
        if left <= {"none", "own"} and strategies(it, fabric) != left:
            return None
    return frozenset((atom,))


# --- the place that is tested ---------------------------------------------------------------------------------------


def _narrow(it: Interpreter, asked: Question, kept: Value, wanted: bool) -> None:
    """Let the tested place stand for what is left of its value."""
    if asked.place is None or not all(isinstance(obj, (Const, Thing, Marker)) for obj in asked.value):
        return
    left = kept
    if wanted and asked.test.kind == "equal" and all(names_strategy(name) for name in asked.test.names):
        left = frozenset(obj for obj in kept if not is_open(obj))
        for obj in kept - left:
            for name in asked.test.names:
                left = left | known_as(it, obj, name)
    if left != asked.value and left:
        it.narrowed.setdefault(left, it.narrowed.get(asked.value, asked.value))
        _put(it, asked.place, left)


def _put(it: Interpreter, place: ast.expr, value: Value) -> None:
    if isinstance(place, ast.Name):
        home = it.home(place.id)
        old = None if home is None else it.state.get(home, place.id)
        if home is not None and old is not None:
            it.state.put(home, place.id, value | (old & {UNBOUND}))
    elif isinstance(place, ast.Attribute):
        owners = value_of(it, place.value)
        for owner in owners if len(owners) == 1 else ():
            if isinstance(owner, (Thing, Class)) or (isinstance(owner, Instance) and not owner.cls.method(place.attr)):
                it.set_field(owner, place.attr, value)
    elif isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Constant):
        owners = value_of(it, place.value)
        for owner in owners if len(owners) == 1 else ():
            if isinstance(owner, (Collection, Thing)):
                it.set_field(owner, f"'{place.slice.value!s}", value)


__all__ = ["Question", "assume", "decided", "refine", "settle", "strategies", "truth", "verdict"]
