"""Derived values: what a result depends on."""

from __future__ import annotations

import ast

from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.iterate import content
from fabric_fix.analysis.objects import (
    EMPTY,
    UNKNOWN,
    Collection,
    Const,
    External,
    Inside,
    Obj,
    Sequence,
    Thing,
    Value,
    raw,
)


def gradient(it: Interpreter, obj: Obj, depth: int = 3) -> Value:
    """The models whose gradient flows through an object, through what it holds too."""
    if isinstance(obj, (Sequence, Collection)):
        found: Value = EMPTY
        if depth:
            for part in content(it, obj):
                found = found | gradient(it, part, depth - 1)
        return found
    if isinstance(obj, Inside):
        return frozenset((obj.wrapped,))
    if obj is UNKNOWN:
        return frozenset((UNKNOWN,))
    return it.roots_of(obj)


def gradients(it: Interpreter, value: Value) -> Value:
    """`gradient` over a value."""
    found: Value = EMPTY
    for obj in value:
        if not isinstance(obj, (Const, External)):
            found = found | gradient(it, obj)
    return found


def derived(it: Interpreter, kind: str, node: ast.AST, label: str, parts: Value, cut: bool = False) -> Thing:
    """The result of an operation on `parts`; with `cut`, or under `no_grad`, no gradient flows through it."""
    made = it.thing(kind, node, label)
    made.sources = made.sources | parts
    if not cut and not it.no_grad:
        made.deps = it.limit(made.deps | parts)
    return made


__all__ = ["derived", "gradient", "gradients", "raw"]


def argument_gradients(it: Interpreter, args: list[Argument]) -> Value:
    """The models whose gradient flows through any argument."""
    found: Value = EMPTY
    for argument in args:
        found = found | gradients(it, argument.value)
    return found
