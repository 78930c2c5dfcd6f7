"""What the creation of an optimizer reads of the parameters, which a set-up shards, casts or moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis.objects import Instance
from fabric_fix.analysis.program import Program

_SHAPES = frozenset({"dim", "ndim", "shape", "size", "numel", "nelement", "stride", "norm", "data"})
_BY_SHAPE = ("Muon", "Shampoo", "SOAP")
"""Optimizers that ask for the shapes when they are made: `torch.optim.Muon` refuses parameters that are not 2-D."""
_OF_THE_DEVICE = frozenset({"state", "device", "clone", "detach", "zeros_like", "empty_like", "full_like", "ones_like"})
_HARMLESS = frozenset({"isinstance", "len"})


def shape_problem(program: Program, made: ast.expr) -> str | None:
    """Why an optimizer cannot be created on sharded parameters, or None.

    FSDP's parameters are pieces of one flat tensor, most of them empty (seen with two processes, torch 2.9), so groups
    that are chosen by `p.dim() >= 2` come out differently, and without an error.
    """
    constructor = _constructor(program, made)
    for node in (made, *([constructor] if constructor is not None else [])):
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in _SHAPES:
                return f"`{ast.unparse(part)}` on line {part.lineno} is another one for sharded parameters"
    for call in (part for part in ast.walk(made) if isinstance(part, ast.Call)):
        callee = ast.unparse(call.func)
        if callee.rpartition(".")[2].startswith(_BY_SHAPE):
            return f"`{callee}` depends on the shapes of the parameters, and sharded they have others"
        if callee not in _HARMLESS and any(
            isinstance(a, ast.Name) and a.id in set(_parameters(made)) for a in call.args
        ):
            return f"`{callee}` on line {call.lineno} is given the parameters one by one, and sharded they are others"
    return None


def device_problem(program: Program, made: ast.expr) -> str | None:
    """What makes an optimizer depend on the device that its parameters have when it is made, or None."""
    if isinstance(made, ast.Call) and ast.unparse(made.func).endswith("Adagrad"):
        return "Adagrad makes its state on the device that the parameters have when it is made"
    constructor = _constructor(program, made)
    for part in ast.walk(constructor) if constructor is not None else ():
        if isinstance(part, ast.Attribute) and part.attr in _OF_THE_DEVICE:
            return f"line {part.lineno} reads the parameters when the optimizer is made: before they are moved"
    return None


def _constructor(program: Program, made: ast.expr) -> ast.AST | None:
    """The `__init__` of an optimizer's class, when the program defines it."""
    for key, obj in program.interpreter.created():
        if key is made and isinstance(obj, Instance) and (method := obj.cls.method("__init__")) is not None:
            return method.node
    return None


def _parameters(made: ast.expr) -> Iterator[str]:
    """The names of single parameters in a comprehension or a lambda: not the names that `named_parameters` gives."""
    for part in ast.walk(made):
        if isinstance(part, ast.comprehension):
            pair = isinstance(part.target, ast.Tuple) and len(part.target.elts) == 2
            target = part.target.elts[1] if pair and isinstance(part.target, ast.Tuple) else part.target
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(part, ast.Lambda):
            yield from (argument.arg for argument in part.args.args)
