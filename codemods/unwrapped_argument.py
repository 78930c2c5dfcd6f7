"""Pass the wrapped model where what is inside it is passed.

What is wrong
    `model.module`, `model._forward_module` and `model._original_module` of a set-up model are not the set-up model.
    `fabric.no_backward_sync` refuses them ("You need to set up the model first ...") and `backward(loss, model=…)`
    dies with "object has no attribute '_forward_module'".

Fix
        with fabric.no_backward_sync(model.module):      ->      with fabric.no_backward_sync(model):

Safety
    Safe: only the wrapped model works there. Only reported when it has no name at the call, or when a submodule of the
    model is passed (Fabric synchronises whole models), or when only some of the programs that share the call pass it.

Read in `lightning/fabric/wrappers.py` (`_FabricModule`) and `fabric.py` (`no_backward_sync`, `backward`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabric_fix.analysis.events import Argument, Backward, Call
from fabric_fix.analysis.objects import Inside, Thing, Value, Wrapped
from fabric_fix.analysis.program import Program
from fabric_fix.certainty import wrapped_argument
from fabric_fix.edits.model import ReplaceExpression
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule
from fabric_fix.scopes import caller_line


class UnwrappedArgument(Rule):
    """What is inside a wrapped model is passed in its place."""

    code = "FF103"
    name = "unwrapped-argument"
    by_hand = "pass what `fabric.setup` returned"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `.module` and its kin in `no_backward_sync` and `backward(model=…)`."""
        groups: list[Sequence[Call]] = [e for e in program.own(program.no_syncs()).values() if e[0].via == "fabric"]
        groups += program.own(program.backwards()).values()
        for events in groups:
            finding = self._judge(program, events)
            if finding is not None:
                yield finding

    def _judge(self, program: Program, events: Sequence[Call]) -> Finding | None:
        argument = _module(events[0])
        values: dict[Call, Value] = {}
        for event in events:
            found = _module(event)
            values[event] = found.value if found is not None else frozenset()
        faulty = [event for event, value in values.items() if _inside(value)]
        if argument is None or not faulty:
            return None
        node = events[0].node
        message = f"`{events[0].method}` wants the model that `fabric.setup` returned, not what is inside it"
        if any(isinstance(obj, Thing) for event in faulty for obj in values[event]):
            return self.report(program, node, message, "a part of the model is passed: pass the whole set-up model")
        name = wrapped_argument(program, events, argument.node, values)
        giver = caller_line(faulty[0])
        if name is None and giver is not None and len(faulty) < len(events):
            return self.report(program, node, message, f"line {giver} passes it: pass the set-up model there")
        if name is None:
            return self.report(program, node, message, "the wrapped model has no name here: pass it to this function")
        return self.fixed(program, node, message, f"Pass `{name}`", [ReplaceExpression(Span.of(argument.node), name)])


def _module(event: Call) -> Argument | None:
    """The module of `no_backward_sync`, or the model of `backward`."""
    if isinstance(event, Backward):
        return next((argument for argument in event.args if argument.name == "model"), None)
    return event.argument("module", 0)


def _inside(value: Value) -> bool:
    return bool(value) and all(isinstance(obj, Inside) or _part_of_inside(obj) for obj in value)


def _part_of_inside(obj: object) -> bool:
    """A submodule of a wrapped model."""
    return isinstance(obj, Thing) and obj.kind == "attr" and isinstance(obj.base, Wrapped) and obj.base.kind == "module"
