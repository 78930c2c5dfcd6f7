"""What the creation of an optimizer reads of the parameters, which a set-up shards, casts or moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from fabric_fix.analysis.objects import Instance
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import Edit
from fabric_fix.finding import Finding
from fabric_fix.rule import Rule
from fabric_fix.setups import Place, created_at, families, makes_optimizer, source_problem
from fabric_fix.trial import Trial

_SHAPES = frozenset({"dim", "ndim", "shape", "size", "numel", "nelement", "stride", "norm", "data"})
_BY_SHAPE = ("Muon", "Shampoo", "SOAP")
"""Optimizers that ask for the shapes when they are made: `torch.optim.Muon` refuses parameters that are not 2-D."""
_OF_THE_DEVICE = frozenset({"state", "device", "clone", "detach", "zeros_like", "empty_like", "full_like", "ones_like"})
_HARMLESS = frozenset({"isinstance", "len"})
_FLAT = frozenset({"xla_fsdp", "fsdp_original_params"})
"""Families whose sharded parameters only the wrapper has."""


def made_later(rule: Rule, program: Program, node: ast.expr, message: str, fix: str, edits: Sequence[Edit]) -> Finding:
    """The finding of a rule whose edits create an optimizer below the set-up of its model, once they are tried out."""
    trial = Trial(program, edits)
    failure = trial.failure()
    if failure is not None:
        return rule.report(program, node, message, failure)
    hazards = trial.hazards()
    named = next((str(hazard) for hazard in hazards if hazard.kind == "names"), None)
    if named is not None:  # the optimizer would get other parameters than before
        return rule.report(program, node, message, named)
    return rule.fixed(program, node, message, fix, edits, hazards)


def making_problem(program: Program, made: ast.Assign, place: Place, source: str | None) -> str | None:
    """Why the statement that makes an optimizer cannot make it from the wrapped model, whose set-up is at a place."""
    if not makes_optimizer(program, made):
        return f"what line {made.lineno} makes is not surely an optimizer alone, so it cannot be moved"
    problem = source_problem(made, source, whole=bool(families(place.setups) & _FLAT))
    return problem or shape_problem(program, made.value)


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
    parameters = set(_parameters(made))
    for call in (part for part in ast.walk(made) if isinstance(part, ast.Call)):
        callee = ast.unparse(call.func)
        if callee.rpartition(".")[2].startswith(_BY_SHAPE):
            return f"`{callee}` depends on the shapes of the parameters, and sharded they have others"
        if callee not in _HARMLESS and any(isinstance(a, ast.Name) and a.id in parameters for a in call.args):
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


def made_too_soon(program: Program, statements: Sequence[ast.stmt]) -> str | None:
    """Why an optimizer that some statements make cannot be made before Fabric moves its parameters, or None."""
    refuses_fused = not program.project.requires("torch", 2, 4)
    for node in (part for statement in statements for part in ast.walk(statement) if isinstance(part, ast.Call)):
        if refuses_fused and any(_is_true(keyword) for keyword in node.keywords if keyword.arg == "fused"):
            return "`fused=True` refuses parameters that are not on the device yet, before torch 2.4"
        if problem := device_problem(program, node):
            return problem
    return None


def _is_true(keyword: ast.keyword) -> bool:
    return not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)


def _constructor(program: Program, made: ast.expr) -> ast.AST | None:
    """The `__init__` of an optimizer's class, when the program defines it."""
    for obj in created_at(program, made):
        if isinstance(obj, Instance) and (method := obj.cls.method("__init__")) is not None:
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
