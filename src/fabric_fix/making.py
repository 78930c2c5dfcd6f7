"""What the creation of an optimizer reads of the parameters, which a set-up shards, casts or moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from fabric_fix.analysis.events import Setup
from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.objects import EMPTY, Instance, Value, raw
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import Edit
from fabric_fix.finding import Finding
from fabric_fix.rule import Rule
from fabric_fix.setups import Place, created_at, families, makes_optimizer, readings, source_problem
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
    problem = source_problem(made.value, source, whole=bool(families(place.setups) & _FLAT))
    return problem or shape_problem(program, made.value)


def inline_problem(program: Program, made: ast.expr, place: Place, source: str) -> str | None:
    """Why an optimizer that is made inside a set-up call cannot be made from the wrapped model there.

    A function of the program that makes it is looked into, where it is followed.
    """
    whole = bool(families(place.setups) & _FLAT)
    called = program.once(_called)
    problem = shape_problem(program, made)
    if problem is not None or not any(part in called for part in ast.walk(made)):
        return problem or source_problem(made, source, whole)
    models = frozenset(raw(obj) for setup in place.setups for obj in _given(setup))
    frames = list(dict.fromkeys(frame for part in ast.walk(made) for frame in called.get(part, ())))
    for frame in frames:  # which grows: a function can pass the model on
        problem = problem or _helper_problem(program, frame, models, whole)
        inner = (other for part in ast.walk(frame.node) for other in called.get(part, ()))
        frames += [other for other in dict.fromkeys(inner) if other not in frames]
    return problem or _other_use(program, made, source, whole)


def _given(setup: Setup) -> Value:
    argument = setup.argument("module", 0)
    return EMPTY if argument is None else argument.value


def _called(program: Program) -> dict[ast.AST, list[Frame]]:
    """The functions of the program that calls lead to, in each of their contexts."""
    found: dict[ast.AST, dict[Frame, None]] = {}
    for frame in dict.fromkeys(use.frame for use in program.uses()):
        for outer in frame.chain():
            if outer.call is not None:
                found.setdefault(outer.call, {})[outer] = None
    return {call: list(frames) for call, frames in found.items()}


def _helper_problem(program: Program, frame: Frame, models: Value, whole: bool) -> str | None:
    """What a function does with a model that it is given, or with the parameters, that a wrapped model changes."""
    names = [name for name, value in frame.entry.items() if models & {raw(obj) for obj in value}]
    if frame.function is not None and names and whole and names[0] == "self" and frame.function.owner is not None:
        return f"`{frame.function.name}` is a method of the model, which only the wrapper has the sharded parameters of"
    problem = shape_problem(program, frame.node)
    for name in names:
        problem = problem or _other_use(program, frame.node, name, whole)
    return problem


def _other_use(program: Program, node: ast.AST, name: str, whole: bool) -> str | None:
    """A use of a model but for its parameters, or to pass it on to a function that is looked into as well."""
    called = program.once(_called)
    parents = {child: part for part in ast.walk(node) for child in ast.iter_child_nodes(part)}
    for part in readings(node, name):
        around = parents[part]
        call = parents[around] if isinstance(around, ast.keyword) else around
        if call in called and not (isinstance(call, ast.Call) and call.func is part):
            continue
        if isinstance(around, ast.Attribute) and (around.attr == "parameters" or not whole):
            continue
        if isinstance(call, ast.Call):
            return f"`{ast.unparse(call.func)}` on line {part.lineno} is given the model, and cannot be seen into here"
        return f"`{ast.unparse(around)}` on line {part.lineno} does not give the sharded parameters"
    return None


def shape_problem(program: Program, made: ast.AST) -> str | None:
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
        kept = callee.rpartition(".")[2] in ("append", "add")
        given = any(isinstance(argument, ast.Name) and argument.id in parameters for argument in call.args)
        if given and not kept and callee not in _HARMLESS:
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


def _constructor(program: Program, made: ast.AST) -> ast.AST | None:
    """The `__init__` of an optimizer's class, when the program defines it."""
    for obj in created_at(program, made):
        if isinstance(obj, Instance) and (method := obj.cls.method("__init__")) is not None:
            return method.node
    return None


def _parameters(made: ast.AST) -> Iterator[str]:
    """The names of single parameters in loops, comprehensions and lambdas: not those that `named_parameters` gives."""
    for part in ast.walk(made):
        if isinstance(part, ast.comprehension) or (isinstance(part, ast.For) and _gives_parameters(part.iter)):
            pair = isinstance(part.target, ast.Tuple) and len(part.target.elts) == 2
            target = part.target.elts[1] if pair and isinstance(part.target, ast.Tuple) else part.target
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(part, ast.Lambda):
            yield from (argument.arg for argument in part.args.args)


def _gives_parameters(iterated: ast.expr) -> bool:
    return "parameters(" in ast.unparse(iterated)
