"""The strategies that a Fabric can have, from the arguments it is made with."""

from __future__ import annotations

import ast

from fabric_fix.analysis import known
from fabric_fix.analysis.assumptions import is_open, possible
from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.objects import EMPTY, Collection, Const, Instance, Obj, Thing, Value
from fabric_fix.analysis.possible import of_open
from fabric_fix.analysis.questions import class_families

_POSITIONS = ("accelerator", "strategy", "devices")
"""The first parameters of `Fabric.__init__` (keyword-only from Lightning 2.0 on, positional before)."""


def of_arguments(it: Interpreter, args: list[Argument]) -> tuple[Value, frozenset[str]]:
    """The value of `strategy=` (empty when absent) and the families it can mean."""
    given: dict[str, Value] = {}
    positional = [a for a in args if a.name is None]
    for name, argument in zip(_POSITIONS, positional, strict=False):
        given[name] = argument.value
    hidden = False
    for argument in args:
        if argument.name == "**":
            hidden = not _spread(it, argument, given)
        elif argument.name:
            given[argument.name] = argument.value
    _note_accelerator(it, args)
    value = given.get("strategy", EMPTY)
    if not value:
        value_families = frozenset({"unknown"}) if hidden else _auto(it, given)
        return value, value_families
    found: frozenset[str] = frozenset()
    for obj in value:
        here = of_open(it, obj) if is_open(obj) else _of_object(it, obj, given)
        it.families[obj] = it.families.get(obj, frozenset()) | here
        found |= here if possible(it, obj) else frozenset()
    return value, found


def _note_accelerator(it: Interpreter, args: list[Argument]) -> None:
    for argument in args:
        if argument.name == "accelerator":
            names = frozenset(str(literal).lower() for literal in _literals(argument.value))
            it.accelerators[argument.node] = names if len(names) == len(argument.value) else frozenset()


def _spread(it: Interpreter, argument: Argument, given: dict[str, Value]) -> bool:
    """Keywords from `**options`; whether all of them are known."""
    known_all = True
    for obj in argument.value:
        if not isinstance(obj, Collection):
            known_all = False
            continue
        known_all = known_all and it.field(obj, "*") is None
        for name in _POSITIONS:
            stored = it.field(obj, f"'{name}")
            if stored is not None:
                given[name] = given.get(name, EMPTY) | stored
    return known_all


def _auto(it: Interpreter, given: dict[str, Value]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for accelerator in _literals(given.get("accelerator", EMPTY)) or [None]:
        for devices in _literals(given.get("devices", EMPTY)) or [None]:
            found |= known.strategy_families("auto", str(accelerator), devices)
    return found


def _literals(value: Value) -> list[object]:
    return [obj.value for obj in value if isinstance(obj, Const)]


def _of_object(it: Interpreter, obj: Obj, given: dict[str, Value]) -> frozenset[str]:
    if isinstance(obj, Const) and isinstance(obj.value, str):
        if obj.value.lower() == "auto":
            return _auto(it, given)
        found: frozenset[str] = frozenset()
        for accelerator in _literals(given.get("accelerator", EMPTY)) or [None]:
            found |= known.strategy_families(obj.value, str(accelerator), None)
        return found
    if isinstance(obj, Thing):
        if obj.label == "str" and obj in it.families:
            return it.families[obj]
        family = known.strategy_class(obj.callee)
        return frozenset({_detailed(it, family, obj)}) if family else frozenset({"unknown"})
    if isinstance(obj, Instance) and obj.cls.kind == "strategy":
        return _subclass(it, obj)
    return frozenset({"unknown"})


def _subclass(it: Interpreter, obj: Instance) -> frozenset[str]:
    """The family of a strategy class of the program: that of its base too, as far as Fabric asks with `isinstance`.

    What a base takes besides, such as the order of the set-up, a class that sets up in its own way need not.
    """
    found = class_families(obj.cls)
    if len(found) != 1 or any(obj.cls.method(name) for name in ("setup_module_and_optimizers", "setup_module")):
        found &= known.JOINT_ONLY
    if found == {"deepspeed"} and isinstance(obj.node, ast.Call):
        stages = [k.value.value for k in obj.node.keywords if k.arg == "stage" and isinstance(k.value, ast.Constant)]
        found = {f"deepspeed_{stage}" for stage in stages if stage in (0, 1, 2, 3)} or found
    return frozenset(found | {"own"})


def _detailed(it: Interpreter, family: str, obj: Thing) -> str:
    if family == "deepspeed":
        stage = _stage(it, obj)
        return family if stage is None else f"deepspeed_{stage}"
    if family == "fsdp" and _is_false(obj.keywords.get("use_orig_params", EMPTY)):
        return "fsdp_original_params"
    return family


def _is_false(value: Value) -> bool:
    return any(isinstance(obj, Const) and obj.value is False for obj in value)


def _stage(it: Interpreter, obj: Thing) -> int | None:
    """The ZeRO stage of a `DeepSpeedStrategy(...)`: from `stage=`, or from a `config=` written out as a dict."""
    for literal in _literals(obj.keywords.get("stage", EMPTY)):
        if isinstance(literal, int) and 0 <= literal <= 3:
            return literal
    for config in obj.keywords.get("config", EMPTY):
        for zero in it.field(config, "'zero_optimization") or EMPTY:
            stages = _literals(it.field(zero, "'stage") or EMPTY)
            if len(stages) == 1 and isinstance(stages[0], int):
                return stages[0]
        if isinstance(config, Collection) and it.field(config, "'zero_optimization") is None:
            return 0
    return None


__all__ = ["of_arguments"]
