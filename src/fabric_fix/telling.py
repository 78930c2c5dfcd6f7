"""What can tell a wrapped object from the raw one: questions about classes, methods and tests."""

from __future__ import annotations

import ast
from collections.abc import Container

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Use
from fabric_fix.analysis.objects import Inside, Instance, Obj, Thing, Wrapped

_OF_THE_WRAPPER = frozenset({"device", "dtype", "forward"})
"""Attributes that the wrapper has and a raw module need not have (`_DeviceDtypeModuleMixin`), or has as another."""
_ALIKE = frozenset(
    {
        "parameters",
        "buffers",
        "train",
        "eval",
        "requires_grad_",
        "modules",
        "load_state_dict",
        "zero_grad",
        "step",
        "add_param_group",
    }
)
"""Methods that do the same on what a set-up was given as on what it returns, before anything is trained."""


def tells_raw(use: Use) -> bool:
    """Whether a use of a wrapped object can tell that it would get the raw one."""
    if isinstance(use.obj, Inside):
        return True
    if use.kind == "attr":
        return use.detail in _OF_THE_WRAPPER
    if use.kind == "method":
        return use.detail not in _ALIKE
    return use.kind != "input"


def may_keep(callee: str) -> bool:
    """Whether something that is given an object can keep it: a class, a default, a decorator, a `register`."""
    last = callee.rpartition(".")[2]
    return last[:1].isupper() or " " in callee or last.startswith(("register", "attach", "add", "set_"))


def refuses_assignment(owner: Instance) -> bool:
    """A frozen dataclass, a named tuple, or a class with a `__setattr__` of its own."""
    node = owner.cls.node
    frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
    named = any("NamedTuple" in ast.unparse(base) for base in node.bases)
    return frozen or named or owner.cls.method("__setattr__") is not None


def used_in_init(owner: Instance, name: str, setups: Container[ast.AST]) -> bool:
    """Whether the `__init__` of a module puts a part into another one: gives it to a call that is no set-up."""
    init = owner.cls.method("__init__")
    for node in ast.walk(init.node) if init is not None else ():
        for part in node.args if isinstance(node, ast.Call) and node not in setups else ():
            if isinstance(part, ast.Attribute) and part.attr == name and ast.unparse(part.value) == "self":
                return True
    return False


def is_module(obj: Obj) -> bool:
    """Whether an object surely is an `nn.Module`."""
    if isinstance(obj, Instance):
        return obj.cls.kind == "module"
    return isinstance(obj, Thing) and known.is_module_class(obj.callee)


def passes_isinstance(use: Use) -> bool:
    """`isinstance(wrapped, nn.Module)` holds; so do tests of optimizers, whose wrapper takes over their class."""
    assert isinstance(use.obj, Wrapped)
    if use.obj.kind == "optimizer":
        return True
    names = [part.strip(" ()") for part in use.detail.split(",")]
    return any(name.rpartition(".")[2] in ("Module", "_FabricModule", "_FabricDataLoader", "object") for name in names)


def runs_no_submodule(inner: Obj, name: str) -> bool:
    """Whether a method of a class of the program surely calls no submodule."""
    method = inner.cls.method(name) if isinstance(inner, Instance) else None
    if method is None:
        return False
    return all(not (isinstance(node, ast.Call) and _through_self(node.func)) for node in ast.walk(method.node))


def _through_self(func: ast.expr) -> bool:
    while isinstance(func, (ast.Attribute, ast.Subscript, ast.Call)):
        func = func.func if isinstance(func, ast.Call) else func.value
    return isinstance(func, ast.Name) and func.id == "self"
