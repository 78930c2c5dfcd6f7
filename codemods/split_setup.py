"""Join the set-up of a model with that of its optimizer.

What is wrong
    `DeepSpeedStrategy` and `XLAStrategy` build one engine from model and optimizer, so they take them in one call.
    Set up apart, `setup_optimizers` raises "The `DeepSpeedStrategy` requires the model and optimizer(s) to be set up
    jointly through `.setup(model, optimizer, ...)`" (and DeepSpeed's ZeRO dies before, at `setup_module`: "zero
    stage 2 requires an optimizer").

Fix
        model = fabric.setup_module(model)                    optimizer = Adam(model.parameters())
        optimizer = Adam(model.parameters())          ->      model, optimizer = fabric.setup(model, optimizer)
        optimizer = fabric.setup_optimizers(optimizer)

    Where the program can also run under XLA FSDP, model parallel or another strategy that wants the separate set-up,
    a branch on `isinstance(fabric.strategy, (DeepSpeedStrategy, XLAStrategy))` keeps both.

Safety
    Safe when nothing between the two calls can tell a raw model from a wrapped one: creating the optimizer,
    `.parameters()`, `.train()`, reading an attribute, `torch.compile` cannot; a forward, a checkpoint, an attribute
    set, a function that the file does not show can. No fix then, nor when the calls stand in different functions or
    branches, or when the optimizer has the parameters of several models.

Fires only when DeepSpeed or XLA can be in use: read from the source, or named with `--strategy`.
Read in `lightning/fabric/fabric.py` (`_validate_setup_optimizers`, which `setup_optimizers` begins with) and
`strategies/deepspeed.py` (`setup_optimizer`, `setup_module_and_optimizers`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup
from fabric_fix.analysis.objects import Obj
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.between import capture_problem, caught_problem, leaving_problem, parameters_problem
from fabric_fix.finding import Finding
from fabric_fix.joining import Pair, branching, joining
from fabric_fix.making import made_too_soon
from fabric_fix.rule import Rule
from fabric_fix.scopes import only
from fabric_fix.setups import (
    Place,
    families,
    is_meta,
    models_of,
    module_argument,
    owners,
    place_of_setup,
    setups_of_model,
    strategy_names,
    targets_of,
    wants,
)
from fabric_fix.telling import tells_raw
from fabric_fix.trial import Trial


class SplitSetup(Rule):
    """Model and optimizer are set up apart under a strategy that takes them jointly."""

    code = "FF201"
    name = "split-setup"
    by_hand = "set both up in one call by hand, and mind what stands between"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `setup_optimizers` under DeepSpeed or XLA."""
        for node, setups in program.own(program.setups()).items():
            if setups[0].method != "setup_optimizers":
                continue
            wanted = known.joint_only(families(setups))
            if wanted and not any(setup.rewrapped for setup in setups):
                yield self._judge(program, node, setups, wanted)

    def _judge(self, program: Program, node: ast.Call, setups: list[Setup], wanted: frozenset[str]) -> Finding:
        message = f"model and optimizer are set up apart, and {wants(wanted)} them in one `setup` call"
        optimizer = place_of_setup(program, node, setups)
        separate = families(setups) & known.SEPARATE_ONLY
        if isinstance(optimizer, str):
            reason = f"{optimizer}: write one `fabric.setup(model, optimizer)` by hand"
            return self.report(program, node, message, _advised(reason, separate))
        pairs = _pairs(program, optimizer, wanted)
        if isinstance(pairs, str):
            return self.report(program, node, message, _advised(pairs, separate))
        if any(is_meta(pair.module.setups) for pair in pairs) and families(setups) & {"fsdp"}:
            separate |= {"fsdp"}
        if separate:
            return self._branch(program, node, message, optimizer, pairs, separate)
        return self._join(program, node, message, optimizer, pairs)

    def _join(self, program: Program, node: ast.Call, message: str, optimizer: Place, pairs: list[Pair]) -> Finding:
        last = max(optimizer.index, *(pair.module.index for pair in pairs))
        first = min(optimizer.index, *(pair.module.index for pair in pairs))
        reason: str | None = None
        for end in _ends(program, optimizer, last):
            edits = joining(program, optimizer, pairs, first, last, end)
            if isinstance(edits, str):
                return self.report(program, node, message, edits)
            reason = _seen_between(program, optimizer, pairs, end)
            if reason is not None:
                continue
            trial = Trial(program, edits)
            hazards = trial.hazards()
            reason = trial.failure() or _told(trial, pairs) or next((str(h) for h in hazards if h.fatal), None)
            reason = reason or trial.refused_scheduler()
            if reason is None:
                fix = "Join the set-ups in one call"
                return self.fixed(program, node, message, fix, edits, _made_too_soon(program, optimizer, pairs))
        return self.report(program, node, message, reason or "nothing to join")

    def _branch(
        self,
        program: Program,
        node: ast.Call,
        message: str,
        optimizer: Place,
        pairs: list[Pair],
        separate: frozenset[str],
    ) -> Finding:
        reason: str | None = None
        for end in _ends(program, optimizer, optimizer.index):
            edits = branching(program, optimizer, pairs, end)
            if isinstance(edits, str):
                why = f"{strategy_names(separate)} can also be in use, with a separate set-up, and {edits}"
                return self.report(program, node, message, _advised(reason, separate) if reason else why)
            joint = joining(program, optimizer, pairs, pairs[0].module.index, optimizer.index, end)
            if isinstance(joint, str):
                return self.report(program, node, message, _advised(joint, separate))
            alone, trial = Trial(program, joint), Trial(program, edits)
            reason = (
                _seen_between(program, optimizer, pairs, end)
                or alone.failure()
                or _told(alone, pairs)
                or alone.refused_scheduler()
                or trial.failure()
            )
            if reason is None:
                return self.fixed(program, node, message, "Join the set-ups where the strategy wants it", edits)
        return self.report(program, node, message, _advised(reason or "nothing to join", separate))


def _advised(reason: str, separate: frozenset[str]) -> str:
    """A reason with what to do where other strategies that can be in use want the set-ups apart."""
    if not separate:
        return reason
    return f"{reason.partition(': ')[0]}: branch on the strategy by hand, as {wants(separate)} the set-ups apart"


def _pairs(program: Program, optimizer: Place, wanted: frozenset[str]) -> list[Pair] | str:
    """The models whose optimizers are set up by a call, in the order of their set-up; or why they cannot be joined."""
    pairs: dict[ast.Call, Pair] = {}
    count = sum(argument.name is None for argument in optimizer.setups[0].args)
    if not count:
        return "the call has no optimizer"
    for position in range(count):
        model = _model(program, optimizer.setups, position)
        found = _module_setup(program, optimizer, position, model)
        if isinstance(found, str):
            return found
        pair = pairs.setdefault(found.module.call, found)
        pair.optimizers.append(position)
    if any(known.is_deepspeed(f) for f in wanted) and any(len(pair.optimizers) > 1 for pair in pairs.values()):
        return "DeepSpeed takes one optimizer for a model: put the parameters into groups of one optimizer"
    return sorted(pairs.values(), key=lambda pair: pair.module.index)


def _model(program: Program, setups: list[Setup], position: int) -> Obj | None:
    """The model of an optimizer, one of them where each caller of the function has its own; None for several."""
    models = models_of(program, setups, position)
    one_each = all(len(models_of(program, [setup], position)) == 1 for setup in setups)
    calls = [set(setups_of_model(program, model)) for model in models]
    if len({setup.frame for setup in setups}) == len(setups) and one_each and all(c == calls[0] for c in calls):
        return min(models, key=lambda model: model.serial)
    if len(models) > 1 and _are_alternatives(program, calls):
        return min(models, key=lambda model: model.serial)
    return only(models)


def _are_alternatives(program: Program, calls: list[set[ast.Call]]) -> bool:
    """Whether all of some models go through one set-up that runs once: it can be of one of them only."""
    (call, *others) = set[ast.Call]().union(*calls)
    setups = program.setups()[call]
    return not others and len(setups) == 1 and not setups[0].repeated and all(calls)


def _module_setup(program: Program, optimizer: Place, position: int, model: Obj | None) -> Pair | str:
    models = models_of(program, optimizer.setups, position)
    if model is None:
        if len(models) > 1:
            return "the optimizer has, or can have, the parameters of several models: make one for each of them"
        return "the source does not show whose parameters the optimizer has"
    calls = setups_of_model(program, model)
    if len(calls) != 1:
        return _elsewhere(program, optimizer, model, sorted(calls, key=lambda call: (call.lineno, call.col_offset)))
    call, _ = next(iter(calls.items()))
    setups = program.setups()[call]
    module = place_of_setup(program, call, setups)
    if isinstance(module, str):
        return module
    if any(argument.name is None for argument in setups[0].args[1:]):
        return f"the model is set up on line {call.lineno} with another optimizer"
    arg = module_argument(setups[0])
    if module.block is not optimizer.block:
        return f"the model is set up on line {call.lineno}, in another branch or function: bring both together"
    if module.fabrics != optimizer.fabrics or arg is None or spelled(module.target) is None:
        return f"the set-up on line {call.lineno} is not of this Fabric alone"
    return Pair(module, arg)


def _elsewhere(program: Program, optimizer: Place, model: Obj, calls: list[ast.Call]) -> str:
    """Why a model that is set up in no place, or in several, cannot be joined with its optimizer."""
    if calls:
        lines = " and ".join(f"line {call.lineno}" for call in calls[:3])
        return f"the model is set up in several places, on {lines}: set it up jointly with its optimizer there"
    modules = [obj for obj in program.interpreter.wrapped() if obj.kind == "module"]
    parts = [obj.node.lineno for obj in modules if model in owners(obj.inner)]
    if parts:
        return f"only a part of the model is set up, on line {min(parts)}: set the whole up jointly with its optimizer"
    others = [obj.node.lineno for obj in modules if obj.fabric in optimizer.fabrics]
    if others:
        other = f"line {min(others)} sets up another, or a part of it"
        return f"the source does not show where this model is set up ({other}): set it up jointly with its optimizer"
    return "the source does not show where this model is set up: give both to one `setup` call"


def _ends(program: Program, optimizer: Place, last: int) -> list[int]:
    """Where a joint call can go: where the later of the two stood, or below a scheduler that needs a raw optimizer."""
    found = [last]
    for index in range(last + 1, min(last + 4, len(optimizer.block))):
        if "cheduler" in ast.dump(optimizer.block[index]) or "LR" in ast.unparse(optimizer.block[index]):
            found.append(index)
    return found


def _seen_between(program: Program, optimizer: Place, pairs: list[Pair], end: int) -> str | None:
    """What the statements between the two calls do that the syntax alone shows to be in the way."""
    problem = caught_problem(program, optimizer.statement)
    for pair in pairs:
        start, stop = sorted((pair.module.index, optimizer.index))
        others = {optimizer.statement, *(p.module.statement for p in pairs)}
        between = [statement for statement in optimizer.block[start + 1 : end + 1] if statement not in others]
        first = pair.module if pair.module.index < optimizer.index else optimizer
        places = [ast.unparse(target) for target in targets_of(first)]
        if stop - start == 1 and not between:
            return None
        problem = problem or leaving_problem(program, between)
        for place in places:
            problem = problem or capture_problem(program, between, place)
            problem = problem or parameters_problem(program, [*between, optimizer.statement], place)
    return problem


def _made_too_soon(program: Program, optimizer: Place, pairs: list[Pair]) -> list[str]:
    """Optimizers that look at the device of the parameters when they are made: now before Fabric moves them."""
    for pair in pairs:
        problem = made_too_soon(program, optimizer.block[pair.module.index + 1 : optimizer.index + 1])
        if problem is not None:
            return [problem]
    return []


def _told(trial: Trial, pairs: list[Pair]) -> str | None:
    """What stands between the two calls and can tell the raw model, which it would get now, from the wrapped one."""
    own = {pair.module.statement.lineno for pair in pairs}
    for use in trial.now_raw():
        if use.kind == "keep" and use.stmt.lineno in own:
            continue  # the set-up's own target
        if tells_raw(use):
            line = getattr(use.node, "lineno", use.stmt.lineno)
            named = ast.unparse(use.node.func) if isinstance(use.node, ast.Call) else use.detail
            what = {"call": "the forward", "keep": "what is kept"}.get(use.kind, f"`{named}`")
            return f"{what} on line {line} works on the wrapped object, and would get the raw one"
    return None
