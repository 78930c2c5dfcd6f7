"""Call Fabric's methods instead of its strategy's.

What is wrong
    `fabric.strategy.setup_module(net)`, `setup_optimizer` and `backward` do a part of what Fabric's methods do: the
    result is no Fabric module, so `no_backward_sync`, `backward(loss, model=…)`, precision and `fabric.save` do not
    know it; under DeepSpeed `strategy.backward` with Fabric's wrapper fails.

Fix
        fabric.strategy.setup_module(net)             ->   fabric.setup_module(net)
        fabric.strategy.setup_optimizer(optimizer)    ->   fabric.setup_optimizers(optimizer)
        fabric.strategy.backward(loss, model)         ->   fabric.backward(loss, model=model)

Safety
    Safe when nothing later can tell the result apart, and the module given to `backward` is the wrapped one, or can be
    named as it. `setup_module_and_optimizers` returns another shape than `fabric.setup` and is only reported.
    Methods of the strategy that Fabric does not have are left alone, and so are strategies of the user's own.

Read in `lightning/fabric/strategies/strategy.py` and `fabric.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis.events import Call, StrategyCall
from fabric_fix.analysis.objects import Const, Value, Wrapped
from fabric_fix.analysis.program import Program
from fabric_fix.certainty import fabric_of_strategy, fabric_place, wrapped_argument
from fabric_fix.edits.model import AddArgument, Edit, RemoveArgument, ReplaceExpression
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule
from fabric_fix.scopes import inside_fabric, is_wrapped
from fabric_fix.trial import Trial

_METHODS = {"setup_module": "setup_module", "setup_optimizer": "setup_optimizers", "backward": "backward"}
_UNWRAPPED = frozenset({"optimizer_step", "clip_gradients_norm", "clip_gradients_value", "save_checkpoint"})
"""Methods to which Fabric gives what is inside its wrappers (`fabric.py`, `wrappers.py`)."""


class BypassedFabric(Rule):
    """A method of the strategy is called that Fabric has itself."""

    code = "FF404"
    name = "bypassed-fabric"
    by_hand = "call Fabric's own method by hand"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find set-up and backward calls on a strategy."""
        for node, events in program.own(program.strategy_calls()).items():
            method = events[0].method
            if any("own" in event.strategies for event in events) or inside_fabric(program, node):
                continue
            if method in _METHODS or method == "setup_module_and_optimizers":
                yield self._judge(program, node, events, method)

    def _judge(self, program: Program, node: ast.Call, events: list[StrategyCall], method: str) -> Finding:
        message = f"`{method}` of the strategy bypasses Fabric"
        if method not in _METHODS:
            return self.report(
                program,
                node,
                message,
                "Fabric does this in `setup`: use `model, optimizer = fabric.setup(model, optimizer)`",
            )
        fabric = fabric_of_strategy(node) or fabric_place(events)
        if fabric is None:
            return self.report(program, node, message, "Fabric has no name here: pass it to this function")
        if events[0].starred:
            return self.report(program, node, message, "`*` hides the arguments")
        other = _left_behind(program)
        if other is not None:
            reason = f"`{other.method}` of the strategy on line {other.node.lineno} takes what the strategy returned"
            return self.report(program, node, message, f"{reason}: replace both by hand")
        new = _METHODS[method]
        edits: list[Edit] = [ReplaceExpression(Span.of(node.func), f"{fabric}.{new}")]
        if method == "backward":
            problem = _backward_arguments(program, node, events, edits)
            if problem is not None:
                return self.report(program, node, message, problem)
        named = next((argument for argument in events[0].args if argument.name == "optimizer"), None)
        if method == "setup_optimizer" and named is not None:  # Fabric takes optimizers by position only
            edits.append(RemoveArgument(Span.of(node), Span.of(named.node)))
            edits.append(AddArgument(Span.of(node), ast.unparse(named.node), index=0))
        trial = Trial(program, edits)
        hazards = trial.hazards()
        told = next((str(hazard) for hazard in hazards if hazard.kind in ("isinstance", "type")), None)
        failure = trial.failure() or told or _attribute_set(trial)
        if failure is not None:
            return self.report(program, node, message, failure)
        return self.fixed(program, node, message, f"Call `{fabric}.{new}`", edits, hazards)


def _left_behind(program: Program) -> StrategyCall | None:
    """A call for which Fabric has no method that takes the same: it would get Fabric's wrappers."""
    return next((e for events in program.strategy_calls().values() for e in events if e.method in _UNWRAPPED), None)


def _attribute_set(trial: Trial) -> str | None:
    """An attribute that is set on what the strategy returned: through Fabric's wrapper it reaches another module."""
    before = {use.stmt.lineno for use in trial.before.uses() if use.kind == "setattr" and isinstance(use.obj, Wrapped)}
    for use in trial.after.uses():
        if use.kind != "setattr" or not isinstance(use.obj, Wrapped) or use.stmt.lineno in before:
            continue
        if trial.concerns(use):
            return f"`{use.detail}` is set on the result on line {use.stmt.lineno}, and would be set on another module"
    return None


def _backward_arguments(program: Program, node: ast.Call, events: list[StrategyCall], edits: list[Edit]) -> str | None:
    """`backward(tensor, module)` becomes `backward(tensor, model=module)` with the wrapped module."""
    argument = events[0].argument("module", 1)
    if argument is None:
        return None
    edits.append(RemoveArgument(Span.of(node), Span.of(argument.node)))
    values: dict[Call, Value] = {}
    for event in events:
        found = event.argument("module", 1)
        values[event] = found.value if found is not None else frozenset()
    whole: Value = frozenset().union(*values.values())
    if whole and all(isinstance(obj, Const) and obj.value is None for obj in whole):
        return None
    name = ast.unparse(argument.node)
    if not all(is_wrapped(value) for value in values.values()):
        found_name = wrapped_argument(program, events, argument.node, values)
        if found_name is None:
            return "the source does not show that the module is one that `fabric.setup` returned"
        name = found_name
    if argument.name is not None:
        edits[-1] = RemoveArgument(Span.of(node), Span.of(argument.node))
    edits.append(AddArgument(Span.of(node), name, keyword="model"))
    return None
