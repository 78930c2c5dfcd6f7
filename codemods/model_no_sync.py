"""Call Fabric's `no_backward_sync` instead of the model's `no_sync`.

What is wrong
    `no_sync()` is a method of `DistributedDataParallel` and of FSDP. Fabric's wrapper passes the call on to the user's
    module, which has none: "'Net' object has no attribute 'no_sync'", on every strategy.

Fix
        with model.no_sync():                ->        with fabric.no_backward_sync(model):

Safety
    Safe when the model surely was set up and its class surely has no `no_sync` of its own. Unsafe when its class is
    not known. No fix where Fabric has no name, or the method is taken in one place and called in another. A raw
    `DistributedDataParallel` is left alone.

Read in `lightning/fabric/wrappers.py` (`_FabricModule.__getattr__`) and `fabric.py` (`no_backward_sync`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Call, NoSync
from fabric_fix.analysis.objects import Inside, Instance, Obj, Thing, Wrapped, raw
from fabric_fix.analysis.program import Program
from fabric_fix.certainty import fabric_place, wrapped_name
from fabric_fix.edits.model import AddArgument, Edit, ReplaceExpression
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule


class ModelNoSync(Rule):
    """`no_sync()` is called on a set-up model."""

    code = "FF402"
    name = "model-no-sync"
    by_hand = "call `fabric.no_backward_sync` where the model is set up"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `no_sync()` of wrapped modules."""
        for node, events in program.own(program.no_syncs()).items():
            of_model = [event for event in events if event.via in ("model", "raw") or _of_raw(node, event)]
            models = {raw(obj) for event in of_model for obj in event.args[0].value}
            if _asks_for_it(program, node) or any(_has_own(model) for model in models):
                continue
            if of_model and len(of_model) == len(events):
                yield self._judge(program, node, of_model, models)

    def _judge(self, program: Program, node: ast.Call, events: list[NoSync], models: set[Obj]) -> Finding:
        message = "`no_sync()` is not there on a set-up model: use `fabric.no_backward_sync(model)`"
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "no_sync"):
            return self.report(program, node, message, "it is taken before it is called: write both branches out")
        fabric = fabric_place(events)
        name = None
        if events[0].via == "raw":
            wanted: dict[Call, Wrapped] = {
                event: obj for event in events for obj in event.args[0].value if isinstance(obj, Wrapped)
            }
            name = wrapped_name(events, wanted) if len(wanted) == len(events) else None
            if name is None:
                return self.report(
                    program, node, message, "the set-up model has no name here: pass it to this function"
                )
        receivers = {use.obj for use in program.uses() if use.node is node and use.kind == "method"}
        if name is None and not all(isinstance(obj, (Wrapped, Inside)) for obj in receivers):
            return self.report(program, node, message, "the model can also be one that Fabric did not set up")
        model = node.func.value if events[0].via == "model" else getattr(node.func.value, "value", node.func.value)
        if fabric is None:
            return self.report(program, node, message, "Fabric has no name here: pass it to this function")
        if node.args or node.keywords:
            return self.report(
                program, node, message, "the call has arguments, which `no_sync()` of a module does not take"
            )
        edits: list[Edit] = [
            ReplaceExpression(Span.of(node.func), f"{fabric}.no_backward_sync"),
            AddArgument(Span.of(node), name or ast.unparse(model), index=0),
        ]
        hazards = [] if all(_surely_none(model) for model in models) else ["the class of the model is not known here"]
        return self.fixed(program, node, message, f"Call `{fabric}.no_backward_sync`", edits, hazards)


def _of_raw(node: ast.Call, event: NoSync) -> bool:
    """`model.module.no_sync()`: the raw module inside has none either (`_forward_module` has one under DDP)."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return event.via == "inside" and isinstance(inner, ast.Attribute) and inner.attr in ("module", "_original_module")


def _asks_for_it(program: Program, node: ast.Call) -> bool:
    """Whether the call stands behind `hasattr(model, "no_sync")`."""
    for around in program.syntax.ancestors(node):
        test = getattr(around, "test", None)
        if isinstance(test, ast.expr) and "hasattr" in ast.unparse(test) and "no_sync" in ast.unparse(test):
            return True
    return False


def _has_own(model: Obj) -> bool:
    if isinstance(model, Instance):
        return model.cls.method("no_sync") is not None
    return isinstance(model, Thing) and "DataParallel" in model.callee


def _surely_none(model: Obj) -> bool:
    if isinstance(model, Instance):
        return model.cls.kind == "module"
    return isinstance(model, Thing) and model.callee.startswith("torch.nn.") and known.is_module_class(model.callee)
