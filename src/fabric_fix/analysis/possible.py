"""The strategies that a Fabric can have at a point of the program."""

from __future__ import annotations

import ast

from fabric_fix.analysis import known
from fabric_fix.analysis.assumptions import (
    NEVER,
    Atoms,
    Test,
    guard_of,
    is_open,
    matches,
    origin_of_value,
    possible,
)
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.objects import Const, FabricObj, Obj, Value

_UNKNOWN = frozenset({"unknown"})
EXCLUDED = {
    "cpu": frozenset({"deepspeed", "xla", "single_xla", "xla_fsdp"}),
    "mps": frozenset({"deepspeed", "xla", "single_xla", "xla_fsdp", "ddp", "fsdp", "model_parallel"}),
    "cuda": frozenset({"xla", "single_xla", "xla_fsdp"}),
    "gpu": frozenset({"xla", "single_xla", "xla_fsdp"}),
    "tpu": frozenset({"deepspeed", "ddp", "dp", "fsdp", "model_parallel"}),
}
"""The families that Fabric refuses beside an accelerator (`connector.py`; `deepspeed.py`, `_setup_distributed`)."""


def strategies(it: Interpreter, fabric: FabricObj) -> frozenset[str]:
    """The families that a Fabric's strategy can be of at this point; "none" where control cannot come to."""
    if NEVER in it.state.assumed:
        return frozenset({"none"})
    found = _of_value(it, fabric) if it.state.assumed else fabric.strategies
    refused = _refused(it, fabric)
    found = frozenset(f for f in found if not matches(f, refused) or not _is_users(it, fabric, f))
    for origin, test, outcome in it.state.assumed:
        if origin is fabric and test.kind == "family":
            found = _that_pass(found, test, outcome)
    return found or frozenset({"none"})


def _that_pass(found: frozenset[str], test: Test, outcome: bool) -> frozenset[str]:
    """The families that a test of `fabric.strategy` leaves; an unknown one is what it was found to be."""
    asked = test.families()
    kept = frozenset(f for f in found if f in ("unknown", "own") or matches(f, asked) is outcome)
    if outcome and "unknown" in kept and asked and len(asked) <= 3 and asked <= set(known.STRATEGY_CLASSES.values()):
        return kept - _UNKNOWN | asked
    return kept


def _of_value(it: Interpreter, fabric: FabricObj) -> frozenset[str]:
    """The families of those alternatives of `strategy=` that are possible here."""
    value = fabric.strategy_value
    whole = origin_of_value(it, value)
    kept: set[str] = set()
    given: set[str] = set()
    for obj in value:
        found = of_open(it, obj) if is_open(obj) else it.families.get(obj, _UNKNOWN)
        given |= it.families.get(obj, _UNKNOWN) | found
        if possible(it, obj) and _stands(it, whole, obj):
            kept |= found
    rest = fabric.strategies - given | (fabric.strategies & it.strategies)
    sources = origins(it, value)
    return frozenset(kept) | {f for f in rest if _allowed(it, f, sources)}


def _stands(it: Interpreter, whole: Obj, obj: Obj) -> bool:
    """Whether no test of the value as a whole has ruled an alternative out."""
    return all(test.of(obj) is not (not outcome) for origin, test, outcome in it.state.assumed if origin is whole)


def of_open(it: Interpreter, obj: Obj) -> frozenset[str]:
    """The families of a strategy of unknown origin: those that the tests it passed name."""
    tests = [(test, outcome) for origin, test, outcome in it.state.assumed if origin is obj]
    names: list[str] = next((test.strategies() for test, outcome in tests if outcome and test.kind == "equal"), [])
    for test, outcome in tests:
        if outcome and not names and test.kind in ("prefix", "contains", "suffix"):
            names = test.strategies()
            if len({_base(name) for name in names}) != 1:
                names = []  # `"xla" in strategy` is no proof of one of them
    names = [name for name in names if all(test.of_constant(name) is outcome for test, outcome in tests)]
    found: frozenset[str] = frozenset()
    for name in names:
        found |= known.strategy_families(name, None, None)
    return frozenset({"deepspeed"}) if len(found) > 1 and all(map(known.is_deepspeed, found)) else found or _UNKNOWN


def _base(name: str) -> str:
    return next((word for word in ("deepspeed", "ddp", "fsdp") if name.startswith(word)), name)


def origins(it: Interpreter, value: Value) -> set[Obj]:
    """What tests of a value are tests of: the value as a whole, and where its alternatives come from."""
    found = {origin_of_value(it, value), *(obj for obj in value if is_open(obj))}
    for obj in value:
        for origin, test, outcome in guard_of(it, obj):
            if outcome and isinstance(obj, Const) and test == Test("equal", frozenset((obj.value,))):
                found.add(origin)
    return found


def _allowed(it: Interpreter, family: str, sources: set[Obj]) -> bool:
    """Whether a strategy that only the user named has passed the tests on the way here."""
    for origin, test, outcome in it.state.assumed:
        if origin not in sources or family == "unknown" or test.kind in ("true", "text"):
            continue
        named: frozenset[str] = frozenset()
        for name in test.strategies():
            named |= known.strategy_families(name, None, None)
        if matches(family, named) is not outcome:
            return False
    return True


def _is_users(it: Interpreter, fabric: FabricObj, family: str) -> bool:
    """Whether a family is one that only the user named."""
    given = frozenset().union(*(it.families.get(obj, _UNKNOWN) for obj in fabric.strategy_value))
    return family in it.strategies and family not in given


def _refused(it: Interpreter, fabric: FabricObj) -> frozenset[str]:
    """The families that the accelerator of a Fabric excludes."""
    if not (fabric.made and isinstance(fabric.node, ast.Call) and it.strategies):
        return frozenset()
    for keyword in fabric.node.keywords:
        names = it.accelerators.get(keyword.value, frozenset()) if keyword.arg == "accelerator" else frozenset()
        if names:
            return frozenset.intersection(*(EXCLUDED.get(name, frozenset()) for name in names))
    return frozenset()


__all__ = ["EXCLUDED", "Atoms", "of_open", "origins", "strategies"]
