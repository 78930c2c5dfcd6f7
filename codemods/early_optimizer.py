"""Create the optimizer after its model was set up.

What is wrong
    Under FSDP, XLA FSDP and model parallel `setup_module` shards the parameters. With the separate set-up, an optimizer
    created before it holds parameters that are not trained any more: `setup_optimizers` raises "The optimizer does not
    seem to reference any FSDP parameters" (or, under model parallel, nothing is trained).

Fix
    The creation moves directly below `setup_module`, and takes the parameters of the wrapped model:

        optimizer = SGD(net.parameters())                     model = fabric.setup_module(net)
        model = fabric.setup_module(net)              ->      optimizer = SGD(model.parameters())
        optimizer = fabric.setup_optimizers(optimizer)        optimizer = fabric.setup_optimizers(optimizer)

    Of the programs that share a function with the set-up, each is judged by itself.

Safety
    Safe when the optimizer is made by a statement of its own in the same block, from the model's own parameters, and
    nothing on the way down uses it or changes what it is made from. Else it is reported. Where DeepSpeed or XLA can
    be in use as well, `split-setup` (FF201) speaks instead.

Read in `lightning/fabric/strategies/fsdp.py` (`_optimizer_has_flat_params`), `xla_fsdp.py` and `model_parallel.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup, Use
from fabric_fix.analysis.methods import is_optimizer
from fabric_fix.analysis.objects import Instance, Obj, Thing, Wrapped, raw, raws
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.between import acting_problem
from fabric_fix.edits.model import Edit, MoveStatement, Where
from fabric_fix.finding import Finding, Span
from fabric_fix.making import made_later, making_problem
from fabric_fix.rule import Rule
from fabric_fix.scopes import has_node, same_file
from fabric_fix.setups import (
    Place,
    argument_values,
    computing_problem,
    creation,
    families,
    models_of,
    module_argument,
    moving_problem,
    optimizer_arguments,
    owners,
    place_of_setup,
    renamed,
    setups_of_model,
    wants,
)
from fabric_fix.telling import is_module


class EarlyOptimizer(Rule):
    """An optimizer is created before the model that it belongs to is sharded."""

    code = "FF203"
    name = "early-optimizer"
    by_hand = "create it below the set-up by hand"
    anywhere = True

    def check(self, program: Program) -> Iterator[Finding]:
        """Find optimizers of sharded models that were created on the raw model."""
        for setups in program.setups().values():
            if setups[0].method != "setup_optimizers" or known.joint_only(families(setups)):
                continue
            concerned = [setup for setup in setups if setup.strategies & known.MODEL_FIRST]
            for position, optimizer in enumerate(optimizer_arguments(setups) if concerned else ()):
                yield from self._at(program, concerned, position, optimizer)

    def _at(self, program: Program, setups: list[Setup], position: int, optimizer: ast.expr) -> Iterator[Finding]:
        """What is wrong with one optimizer of a call; programs that share the call can have a fault each."""
        early: dict[ast.expr, tuple[list[Setup], Obj]] = {}
        for setup in setups:
            model = _early(program, setup, position)
            if model is not None:
                early.setdefault(_node(program, setup, position, optimizer, model), ([], model))[0].append(setup)
        for node, (faulty, model) in early.items():
            yield self._judge(program, node, optimizer, model, position, faulty)
        wanted = families(setups) & known.MODEL_FIRST
        if not early and any(_over_several(program, setup, position) for setup in setups):
            message = f"{wants(wanted, 'shard')} the parameters: create the optimizer after the set-ups"
            reason = "it has the parameters of several models: create it below the set-up of the last one"
            yield self.report(program, _creation_call(setups, position) or optimizer, message, reason)

    def _judge(
        self,
        program: Program,
        node: ast.expr,
        optimizer: ast.expr,
        model: Obj,
        position: int,
        setups: list[Setup],
    ) -> Finding:
        call, of_model = next(iter(setups_of_model(program, model).items()))
        made = _creation_call(setups, position)
        whose = f" of line {made.lineno}" if made is not None and node is optimizer else ""
        wanted = wants(families(setups) & known.MODEL_FIRST, "shard")
        message = f"{wanted} the parameters: create the optimizer{whose} after `{of_model[0].method}`"
        if not program.owns(node) or not program.deep:
            return self.report(program, node, message, self.by_hand)  # to be told, and not to be tried out
        place = place_of_setup(program, call, program.setups()[call])
        edits = place if isinstance(place, str) else _moving(program, place, optimizer, made)
        if isinstance(edits, str):
            return self.report(program, node, message, edits)
        return made_later(self, program, node, message, "Create the optimizer below the set-up of its model", edits)


def _node(program: Program, setup: Setup, position: int, optimizer: ast.expr, model: Obj) -> ast.expr:
    """What a finding is about: the creation where it stands in one file with a set-up, else the set-up."""
    call = next(iter(setups_of_model(program, model)))
    made = _creation_call([setup], position)
    if made is None:
        return call
    return made if same_file(made, optimizer) or same_file(made, call) else optimizer


def _over_several(program: Program, setup: Setup, position: int) -> bool:
    """Whether an optimizer was created on several models, all of which were set up only later."""
    models = models_of(program, [setup], position)
    if len(models) < 2 or not models <= program.set_up_models():
        return False
    return all(_raw_when_created(program, [setup], position, model) for model in models)


def _early(program: Program, setup: Setup, position: int) -> Obj | None:
    """The model that an optimizer was created on before its set-up; None when it was not, or is not known."""
    models = models_of(program, [setup], position)
    if not models or not _are_one(program, models):
        return None
    model = min(models, key=lambda obj: getattr(getattr(obj, "node", None), "lineno", 0))
    values = argument_values(setup)
    for obj in values[position] if position < len(values) else ():
        inner = raw(obj)
        if isinstance(inner, (Thing, Instance)) and any(isinstance(dep, Wrapped) for dep in inner.deps):
            return None
    return model if all(_raw_when_created(program, [setup], position, one) for one in models) else None


def _are_one(program: Program, models: Collection[Obj]) -> bool:
    """Whether it is one model that is set up, or what several branches make of it."""
    calls = [setups_of_model(program, model) for model in models]
    if any(set(found) != set(calls[0]) for found in calls) or not calls[0]:
        return False
    given = [raws(argument.value) for found in calls[0].values() for setup in found for argument in setup.args[:1]]
    return any(set(models) <= set(value) for value in given)


def _raw_when_created(program: Program, setups: list[Setup], position: int, model: Obj) -> bool:
    """Whether the raw model's parameters were taken before any set-up of it (and not through the raw name after it)."""
    taken = [
        use
        for use in program.uses()
        if model in owners(use.obj) and use.kind == "method" and use.detail in ("parameters", "named_parameters")
    ]
    node = _creation_call(setups, position)
    inside = [use for use in taken if node is not None and has_node(node, use.node)]
    wrapped = [use.node for use in program.uses() if _takes_wrapped(use)]
    if not inside and node is not None and any(has_node(node, other) for other in wrapped):
        return False
    return bool(taken) and not any(_set_up_before(program, use, model) for use in (inside or taken))


def _set_up_before(program: Program, use: Use, model: Obj) -> bool:
    """Whether a model was set up before a use; one that each turn of a loop makes anew was not in an earlier turn."""
    made, loops, line = getattr(model, "node", None), program.syntax.loops(use.node), use.stmt.lineno
    placed = made is not None and made in program.syntax.parents
    if made is None or not (placed and loops and program.syntax.loops(made) == loops) or made.lineno >= line:
        return bool(use.after)
    return any(getattr(obj.node, "lineno", 0) <= line for obj in use.after if isinstance(obj, Wrapped))


def _takes_wrapped(use: Use) -> bool:
    return isinstance(use.obj, Wrapped) and use.kind == "method" and use.detail in ("parameters", "named_parameters")


def _creation_call(setups: list[Setup], position: int) -> ast.Call | None:
    """The call that made the optimizer; what a function of unknown kind made counts where no optimizer is known."""
    positional = [[argument for argument in setup.args if argument.name is None] for setup in setups]
    found = [raw(obj) for arguments in positional for obj in arguments[position].value]
    made = [obj for obj in found if isinstance(obj, (Thing, Instance)) and not is_module(obj)]
    for obj in sorted(made, key=lambda obj: not is_optimizer(obj)):
        if isinstance(obj.node, ast.Call):
            return obj.node
    return None


def _moving(program: Program, place: Place, optimizer: ast.expr, call: ast.Call | None) -> list[Edit] | str:
    """The edits that move the creation, by a call, below the model's set-up; or why it stays."""
    is_near = program.syntax.function(optimizer) is program.syntax.function(place.statement)
    made = creation(program, optimizer, place) if is_near and same_file(optimizer, place.call) else _apart(place, call)
    if isinstance(made, str):
        return made
    model = module_argument(place.setups[0])
    source = None if model is None else spelled(model)
    problem = making_problem(program, made, place, source)
    if problem is not None or source is None:
        return problem or "the model has no name"
    target = ast.unparse(place.target)
    start = place.block.index(made)
    passed = place.block[start + 1 : place.index + 1]
    problem = computing_problem(made) or acting_problem(program, passed[:-1], source) if len(passed) > 1 else None
    problem = problem or moving_problem(made, passed, frozenset({source, target, f"{source}.parameters"}))
    if problem is not None:
        return f"the optimizer cannot be created later, as {problem}"
    edits = renamed([made.value], source, target) if source != target else []
    return [*edits, MoveStatement(Span.of(made), Span.of(place.statement), Where.AFTER)]


def _apart(place: Place, call: ast.Call | None) -> ast.Assign | str:
    """The statement beside a model's set-up that makes an optimizer which is set up in another function."""
    for statement in place.block[: place.index]:
        if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
            return statement
    return "the optimizer is set up in another function and not made beside the model's set-up, so it cannot be moved"
