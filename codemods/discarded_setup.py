"""Bind the result of a set-up that is thrown away.

What is wrong
    `fabric.setup(model, optimizer)`, `setup_module`, `setup_optimizers` and `setup_dataloaders` return new, wrapped
    objects and leave what was passed in as it was. With the result thrown away the program goes on with the raw
    objects: no DDP, FSDP or DeepSpeed, no precision, no sampler for the rank; and on most strategies no error.

Fix
    The result is bound to the very places that were passed in:

        fabric.setup(model, optimizer)      ->      model, optimizer = fabric.setup(model, optimizer)

Safety
    Safe when every later use of the places works the same, or better, with the wrapped object. Unsafe when one of them
    could tell it from the raw object: a function that the file does not show, a method that runs submodules,
    `torch.save(model)`. No fix when one surely behaves differently (`isinstance(model, Net)`), when an argument is
    no place (`fabric.setup(Net())`, `*args`), when the name belongs to another scope, or when the raw object goes on
    being used under another name: then the message says which. Nor is there one for a dataloader that is set up after
    the loop that trains on it, and not used any more: the set-up belongs above that loop.

Left alone: a set-up in a test that expects an error (`pytest.raises`), or that trains nothing and so tests the set-up.

Read in `lightning/fabric/fabric.py` (`setup`, `setup_module`, `setup_optimizers`, `setup_dataloaders`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis.events import Setup, Use
from fabric_fix.analysis.objects import Wrapped
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import BindResult, Edit, ReplaceTargets
from fabric_fix.finding import Finding, Span
from fabric_fix.parts import parts_of
from fabric_fix.rule import Rule
from fabric_fix.scopes import binding_problem, listed
from fabric_fix.setups import trains
from fabric_fix.trial import Hazard, Trial
from fabric_fix.untrained import only_tested


class DiscardedSetup(Rule):
    """The result of a set-up is thrown away."""

    code = "FF101"
    name = "discarded-setup"
    by_hand = "change that, then bind the result to a name and use it"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find set-up calls whose result goes nowhere."""
        own = program.own(program.setups())
        found = [(node, setups) for node, setups in own.items() if _is_lost(program, node, setups)]
        for node, setups in found:
            if only_tested(program, setups):
                continue
            yield self._judge(program, node, program.syntax.statement(node), setups)
        for node, setups in own.items():
            loop = _trained_before(program, node, setups)
            if loop is not None:
                message = "the dataloader is set up after the loop that trains on it, and what that gives is not used"
                yield self.report(
                    program, node, message, f"set it up before line {loop.stmt.lineno}, and loop over that"
                )

    def _judge(self, program: Program, node: ast.Call, statement: ast.stmt, setups: list[Setup]) -> Finding:
        method = setups[0].method
        message = f"the result of `{method}` is thrown away: the program goes on without Fabric's wrapper"
        problem = _problem(program, node, statement, setups)
        if problem is not None:
            return self.report(program, node, message, problem)
        targets = _targets(setups[0])
        edit = _binding(statement, setups)
        trial = Trial(program, [edit])
        failure = trial.failure() or _unused(program, trial, node, targets)
        if failure is not None:
            return self.report(program, node, message, failure)
        hazards: list[Hazard | str] = [*trial.hazards([node]), *trial.captures([node])]
        if method == "setup_dataloaders" and program.once(_shards_by_hand):
            hazards.append("the program shares its data out between the processes by hand, which Fabric would do again")
        names = listed(spelled(target) or "" for target in targets)
        return self.fixed(program, node, message, f"Bind the result to {names}", [edit], hazards)


def _trained_before(program: Program, node: ast.Call, setups: list[Setup]) -> Use | None:
    """A loop that trained on a raw dataloader before its set-up, of which nothing is used."""
    if setups[0].method != "setup_dataloaders" or not isinstance(setups[0].stmt, ast.Assign):
        return None
    wrapped = {obj for obj in program.interpreter.wrapped() if obj.node is node}
    raws = {obj.inner for obj in wrapped}
    if not wrapped or any(use.obj in wrapped for use in program.uses()):
        return None
    loops = (use for use in program.uses() if use.kind == "iterate" and use.obj in raws and not use.after & wrapped)
    return next((use for use in loops if trains(program, use)), None)


def _shards_by_hand(program: Program) -> bool:
    """Whether a loop asks for the rank or the number of processes, or the program makes a distributed sampler."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Name) and node.id == "DistributedSampler":
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("global_rank", "world_size", "DistributedSampler"):
            compared = any(
                isinstance(a, (ast.BinOp, ast.Subscript, ast.Slice)) for a in program.syntax.ancestors(node)[:4]
            )
            if compared and program.syntax.loops(node):
                return True
    return False


def _binding(statement: ast.stmt, setups: list[Setup]) -> Edit:
    """The edit that binds the result of a set-up to its arguments."""
    code = ", ".join(spelled(target) or "" for target in _targets(setups[0]))
    span = Span.of(statement)
    return BindResult(span, code) if isinstance(statement, ast.Expr) else ReplaceTargets(span, code)


def _problem(program: Program, node: ast.Call, statement: ast.stmt, setups: list[Setup]) -> str | None:
    """Why the result of a call cannot simply be bound to its arguments."""
    if getattr(statement, "value", None) is not node:
        return "the call is part of a larger expression: give it a statement of its own and bind its result"
    if setups[0].starred:
        return "`*` hides what is set up: unpack the arguments first, then bind the result to them"
    again = next((setup for setup in setups if setup.rewrapped), None)
    if again is not None:
        lines = [f"on line {obj.node.lineno}" for obj in again.rewrapped if isinstance(obj, Wrapped)]
        return f"it may be set up already, {min(lines)}: set it up once, and use what that returned"
    for target in _targets(setups[0]):
        problem = binding_problem(program, target, node)
        if problem is not None:
            return problem
    return None


def _is_lost(program: Program, node: ast.Call, setups: list[Setup]) -> bool:
    """Whether the result of a set-up is thrown away (and the object was not set up before: that is FF105's)."""
    if all(_is_wrapped_already(setup) for setup in setups) or not setups[0].args:
        return False
    return _is_discarded(program, node, setups[0].stmt)


def _is_wrapped_already(setup: Setup) -> bool:
    values = [argument.value for argument in setup.args if argument.name in (None, "module")]
    return bool(values) and all(value and all(isinstance(obj, Wrapped) for obj in value) for value in values)


def _is_discarded(program: Program, node: ast.Call, statement: ast.stmt) -> bool:
    """Whether the value of a call ends in an expression statement, or in `_`."""
    if isinstance(statement, ast.Assign):
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        return statement.value is node and names == ["_"] and len(statement.targets) == 1
    if not isinstance(statement, ast.Expr):
        return False
    child: ast.AST = node
    for parent in program.syntax.ancestors(node):
        if parent is statement:
            return True
        passes = isinstance(parent, (ast.Tuple, ast.List, ast.IfExp, ast.BoolOp, ast.Await))
        element = isinstance(parent, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and parent.elt is child
        if not passes and not element:
            return False
        child = parent
    return False


def _targets(setup: Setup) -> list[ast.expr]:
    """The arguments that the result has an item for, in its order."""
    found = [argument.node for argument in setup.args if argument.name is None]
    module = [argument.node for argument in setup.args if argument.name == "module"]
    scheduler = [argument.node for argument in setup.args if argument.name == "scheduler"]
    return [*module, *found, *scheduler]


def _unused(program: Program, trial: Trial, node: ast.Call, targets: list[ast.expr]) -> str | None:
    """Why binding the result would not repair the program, or None."""
    left = trial.left_raw([node])
    if left:
        line = getattr(left[0].node, "lineno", left[0].stmt.lineno)
        return f"the raw object goes on being used on line {line}: pass on what the set-up returns, or use it there"
    if trial.used_wrapped([node]):
        return None
    owner = _owner_read_below(program, node, targets)
    if owner is not None:
        target, line = owner
        return f"the source does not show whether line {line} uses `{target}`: if it does, bind the result to that"
    names = listed(spelled(target) or "" for target in targets)
    return f"nothing here uses {names} afterwards: return what the set-up gives to where the object is used"


def _owner_read_below(program: Program, node: ast.Call, targets: list[ast.expr]) -> tuple[str, int] | None:
    """A place that something set up is an attribute or an item of, and a line below its set-up that reads the owner."""
    function = program.syntax.function(node)
    last = node.end_lineno or node.lineno
    for target in targets:
        owner = spelled(target.value) if isinstance(target, (ast.Attribute, ast.Subscript)) else None
        parts = parts_of(program, function).places([owner]) if owner is not None else ()
        below = [part.lineno for part in parts if part.lineno > last and isinstance(part.ctx, ast.Load)]
        if below:
            return spelled(target) or "", min(below)
    return None
