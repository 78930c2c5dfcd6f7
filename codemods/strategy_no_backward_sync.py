"""Call `no_backward_sync` on Fabric, not on its strategy.

What is wrong
    `fabric.strategy.no_backward_sync` does not exist in Lightning 2 (`AttributeError`), and the one of
    `fabric.strategy._backward_sync_control` wants the module inside Fabric's wrapper ("Blocking backward sync is only
    possible if the module passed to ... is wrapped in ...") and is not there at all on a single device.

Fix
    Fabric's own method with the wrapped model:

        with fabric.strategy.no_backward_sync(net, enabled=waiting):
    ->  with fabric.no_backward_sync(model, enabled=waiting):

Safety
    Safe when the argument surely is the wrapped model, or the raw one or what is inside the wrapper and the wrapped one
    has a name there; or when it surely was never set up (then `missing-setup`, FF104, adds the set-up). No fix when the
    source does not show what is passed, or Fabric has no name in the function. A strategy class of the user's own is
    left alone.

Read in `lightning/fabric/fabric.py` (`no_backward_sync`) and `strategies/ddp.py` (`_DDPBackwardSyncControl`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis.events import Call, NoSync
from fabric_fix.analysis.objects import Value
from fabric_fix.analysis.program import Program
from fabric_fix.certainty import fabric_of_strategy, fabric_place, module_argument_of, surely_raw, wrapped_argument
from fabric_fix.edits.model import Edit, ReplaceExpression
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule
from fabric_fix.scopes import inside_fabric, is_wrapped
from fabric_fix.setups import wrapped_of


class StrategyNoBackwardSync(Rule):
    """`no_backward_sync` of the strategy is called by hand."""

    code = "FF401"
    name = "strategy-no-backward-sync"
    by_hand = "call `fabric.no_backward_sync` with what the set-up returned"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `no_backward_sync` called on a strategy or on its control."""
        for node, events in program.own(program.no_syncs()).items():
            past = [event for event in events if event.via in ("strategy", "control")]
            if past and not any("own" in event.strategies for event in past) and not inside_fabric(program, node):
                yield self._judge(program, node, past)

    def _judge(self, program: Program, node: ast.Call, events: list[NoSync]) -> Finding:
        message = "`no_backward_sync` is Fabric's method: `fabric.no_backward_sync(model, enabled=…)`"
        fabric = fabric_of_strategy(node) or fabric_place(events)
        if fabric is None:
            return self.report(program, node, message, "Fabric has no name here: pass it to this function")
        argument = module_argument_of(events)
        if argument is None or argument.starred:
            return self.report(program, node, message, "the source does not show which module is passed")
        edits: list[Edit] = [ReplaceExpression(Span.of(node.func), f"{fabric}.no_backward_sync")]
        values: dict[Call, Value] = {event: _module(event) for event in events}
        problem = _make_wrapped(program, events, argument.node, values, edits)
        if problem is not None:
            return self.report(program, node, message, problem)
        return self.fixed(program, node, message, f"Call `{fabric}.no_backward_sync`", edits)


def _module(event: NoSync) -> Value:
    found = event.argument("module", 0)
    return found.value if found is not None else frozenset()


def _make_wrapped(
    program: Program, events: list[NoSync], node: ast.expr, values: dict[Call, Value], edits: list[Edit]
) -> str | None:
    """Add the edit that passes the wrapped model, where that is needed; or say why it cannot be named."""
    if all(is_wrapped(value) for value in values.values()):
        return None
    whole: Value = frozenset().union(*values.values())
    if whole and all(surely_raw(obj) and not wrapped_of(program, obj) for obj in whole):
        return None
    name = wrapped_argument(program, events, node, values)
    if name is None:
        return "the source does not show that a wrapped model is passed: pass the object that `fabric.setup` returned"
    if name != ast.unparse(node):
        edits.append(ReplaceExpression(Span.of(node), name))
    return None
