"""Set model and optimizer up apart where the strategy wants it.

What is wrong
    Some strategies replace or shard the parameters in `setup_module`, so an optimizer made before has the wrong ones:
    `xla_fsdp` raises `NotImplementedError` for a joint `fabric.setup(model, optimizer)`; `ModelParallelStrategy`
    raises nothing and trains nothing; `FSDPStrategy(use_orig_params=False)` and FSDP with a model made under
    `fabric.init_module(empty_init=True)` leave the optimizer with parameters that are not the sharded ones.

Fix
        optimizer = Adam(model.parameters())                  model = fabric.setup_module(model)
        model, optimizer = fabric.setup(model, optimizer) ->  optimizer = Adam(model.parameters())
                                                              optimizer = fabric.setup_optimizers(optimizer)

Safety
    Safe when the optimizer is made by a statement of its own in the same block, or inside the call, and nothing between
    uses it. No fix when a scheduler is made on it in between, when it comes from a function (but for one that is called
    inside the set-up, and uses nothing of the model but `parameters()`), when it is made by the shapes of the
    parameters, or when DeepSpeed or XLA, which want the joint call, can be in use as well.

Read in `lightning/fabric/strategies/xla_fsdp.py`, `model_parallel.py` and `fsdp.py` (`setup_module_and_optimizers`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.between import acting_problem
from fabric_fix.edits.model import (
    Edit,
    InsertStatement,
    MoveStatement,
    RemoveArgument,
    ReplaceExpression,
    ReplaceTargets,
    Where,
)
from fabric_fix.finding import Finding, Span
from fabric_fix.making import inline_problem, made_later, making_problem
from fabric_fix.rule import Rule
from fabric_fix.setups import (
    Place,
    computing_problem,
    creation,
    families,
    is_meta,
    module_argument,
    moving_problem,
    optimizer_arguments,
    place_of_setup,
    renamed,
    strategy_names,
    wants,
)


class JointSetup(Rule):
    """Model and optimizer are set up jointly under a strategy that takes them apart."""

    code = "FF202"
    name = "joint-setup"
    by_hand = "set model and optimizer up apart by hand"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find joint set-ups under XLA FSDP, model parallel, and FSDP that shards late."""
        for node, setups in program.own(program.setups()).items():
            if setups[0].method != "setup" or not optimizer_arguments(setups):
                continue
            wanted = families(setups) & known.SEPARATE_ONLY
            if is_meta(setups) and "fsdp" in families(setups):
                wanted |= {"fsdp"}
            if wanted:
                yield self._judge(program, node, setups, wanted)

    def _judge(self, program: Program, node: ast.Call, setups: list[Setup], wanted: frozenset[str]) -> Finding:
        message = f"{wants(wanted)} the model set up first, then its optimizer created and set up"
        joint = known.joint_only(families(setups))
        if joint:
            why = f"{strategy_names(joint)} can also be in use, with a joint call: branch on the strategy"
            return self.report(program, node, message, why)
        place = place_of_setup(program, node, setups)
        edits = place if isinstance(place, str) else _separating(program, place)
        if isinstance(edits, str):
            return self.report(program, node, message, edits)
        return made_later(self, program, node, message, "Set the model up first, then its optimizer", edits)


def _separating(program: Program, place: Place) -> list[Edit] | str:
    """The edits that take a joint call apart; or why it cannot be."""
    optimizers = optimizer_arguments(place.setups)
    targets = list(place.target.elts) if isinstance(place.target, ast.Tuple) else []
    model = module_argument(place.setups[0])
    if any(a.name == "scheduler" for a in place.setups[0].args):
        return "the call has a `scheduler=`: take it apart by hand"
    if len(optimizers) != 1 or model is None:
        return "the call has several optimizers: take it apart by hand"
    if len(targets) != 2:
        return "the result is not unpacked into model and optimizer: take the call apart by hand"
    source, target = ast.unparse(model), ast.unparse(targets[0])
    module_call = ", ".join(
        [source, *(f"{k.arg}={ast.unparse(k.value)}" for k in place.call.keywords if k.arg != "module")]
    )
    setup_module = f"{target} = {place.receiver}.setup_module({module_call})"
    edits: list[Edit] = []
    anchor: ast.stmt = place.statement
    if spelled(optimizers[0]) is None:
        problem = inline_problem(program, optimizers[0], place, source)
        if problem is not None:
            return problem
        edits += renamed([optimizers[0]], source, target) if source != target else []
    else:
        made = creation(program, optimizers[0], place)
        if isinstance(made, str):
            return made
        moved = _moving(program, place, made, source, target)
        if isinstance(moved, str):
            return moved
        edits += moved
        anchor = made if not any(isinstance(edit, MoveStatement) for edit in moved) else place.statement
    edits.append(InsertStatement(Span.of(anchor), Where.BEFORE, setup_module))
    return [*edits, *_second_half(place, model, targets[1])]


def _moving(program: Program, place: Place, made: ast.Assign, source: str, target: str) -> list[Edit] | str:
    """Bring the optimizer's creation below the model's set-up."""
    start = place.block.index(made)
    problem = making_problem(program, made, place, source)
    if problem is not None:
        return problem
    passed = place.block[start + 1 : place.index]
    problem = moving_problem(made, passed)
    problem = problem or (computing_problem(made) or acting_problem(program, passed, source) if passed else None)
    if problem is not None:
        return f"the optimizer cannot be made below the set-up, as {problem}"
    edits = renamed([made.value], source, target) if source != target else []
    if start + 1 < place.index:
        edits.append(MoveStatement(Span.of(made), Span.of(place.statement), Where.BEFORE))
    return edits


def _second_half(place: Place, model: ast.expr, target: ast.expr) -> list[Edit]:
    """What remains of the joint call: the set-up of the optimizer."""
    assert isinstance(place.call.func, ast.Attribute)
    callee = f"{ast.unparse(place.call.func.value)}.setup_optimizers"
    edits: list[Edit] = [
        ReplaceTargets(Span.of(place.statement), ast.unparse(target)),
        ReplaceExpression(Span.of(place.call.func), callee),
        RemoveArgument(Span.of(place.call), Span.of(model)),
    ]
    others = [k for k in place.call.keywords if k.arg != "module"]
    return edits + [RemoveArgument(Span.of(place.call), Span.of(k.value)) for k in others]
