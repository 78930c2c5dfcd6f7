"""Test doubles: mocks, and the parts of a Fabric that a test replaces."""

from __future__ import annotations

import ast

from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import Bound, FabricObj, Function, Obj, StrategyView, Thing, Value

_MOCKS = frozenset(
    {
        "Mock",
        "MagicMock",
        "AsyncMock",
        "NonCallableMock",
        "NonCallableMagicMock",
        "create_autospec",
    }
)


def is_double(obj: Obj) -> bool:
    """Whether an object is a mock, or a part of one."""
    while isinstance(obj, Thing) and obj.kind in ("attr", "item") and obj.base is not None:
        obj = obj.base
    node = obj.node if isinstance(obj, Thing) else None
    return isinstance(node, ast.Call) and last_name(node.func) in _MOCKS


def replaces_strategy(owner: FabricObj | StrategyView, name: str, value: Value) -> bool:
    """Whether an assignment puts a mock in the place of a Fabric's strategy, or a function in that of what trains."""
    if isinstance(owner, FabricObj):
        return name in ("_strategy", "strategy") and any(is_double(obj) for obj in value)
    replaced = any(isinstance(obj, (Function, Bound)) or is_double(obj) for obj in value)
    return replaced and any(word in name for word in ("setup", "backward", "step"))
