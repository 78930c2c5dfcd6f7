"""Run the backward of a set-up model through Fabric.

What is wrong
    `loss.backward()` goes past Fabric: no loss scaling in 16-bit precision, no engine under DeepSpeed. Where strategy
    or precision need it, Fabric refuses ("The current strategy and precision selection requires you to call
    `fabric.backward(loss)` instead of `loss.backward()`"); elsewhere it trains, until one of them is changed.

Fix
        loss.backward(retain_graph=True)     ->     fabric.backward(loss, retain_graph=True)

    With several models under DeepSpeed, FF301 then adds `model=`.

Safety
    Safe when the loss surely comes from a model that is set up, the optimizer that steps next is the wrapped one of
    that model, and Fabric has a name there. Unsafe when the loss is what a function returned that got the model and is
    not seen, or when the source does not show whose parameters the optimizer has. No fix when an optimizer that is not
    set up steps as well, when the same line also serves a raw model, when DeepSpeed can be in use and there are
    arguments that it does not take (all but `retain_graph`), or when Fabric has no name there.

Left alone: gradients that are only read (Fisher information: no wrapped optimizer steps on them), a raw optimizer
(with loss scaling, `fabric.backward` alone makes it worse), a raw model, `backward` of anything that is no loss, and
code that chooses between `loss.backward()` and `fabric.backward(loss)` itself.

Read in `lightning/fabric/wrappers.py` (`_backward_hook`) and `fabric.py` (`backward`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import PlainBackward
from fabric_fix.analysis.fabric_calls import is_optimizer, models_of_optimizer
from fabric_fix.analysis.objects import UNBOUND, Const, FabricObj, Obj, Thing, Value, Wrapped, raw, raws
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import AddArgument, Edit, ReplaceExpression
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule
from fabric_fix.scopes import place_of
from fabric_fix.segments import segment
from fabric_fix.trial import Trial


class RawBackward(Rule):
    """The loss of a set-up model goes backward past Fabric."""

    code = "FF302"
    name = "raw-backward"
    by_hand = "call `fabric.backward` where the loss is one of a set-up model"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `loss.backward()` on losses of set-up models."""
        for node, events in program.own(program.plain_backwards()).items():
            faulty = [event for event in events if _is_faulty(program, event)]
            if faulty and not _chosen(program, node, events):
                yield self._judge(program, node, events, faulty)

    def _judge(
        self, program: Program, node: ast.Call, events: list[PlainBackward], faulty: list[PlainBackward]
    ) -> Finding:
        message = "the loss of a set-up model goes backward past Fabric: use `fabric.backward(loss)`"
        problem = _problem(events, faulty)
        if problem is not None:
            return self.report(program, node, message, problem)
        fabric = place_of(events, {event: frozenset(_fabrics(event)) for event in events})
        if fabric is None:
            return self.report(program, node, message, "Fabric has no name here: pass it to this function")
        loss = _source(program, node)
        if loss is None:
            return self.report(program, node, message, "comments stand within the loss: give it a name of its own")
        edits: list[Edit] = [
            ReplaceExpression(Span.of(node.func), f"{fabric}.backward"),
            AddArgument(Span.of(node), loss, index=0),
        ]
        failure = Trial(program, edits).failure()
        if failure is not None:
            return self.report(program, node, message, failure)
        return self.fixed(program, node, message, f"Call `{fabric}.backward`", edits, _doubts(program, events))


def _losses(event: PlainBackward) -> list[Obj]:
    """The objects whose `backward` is called; literals (`loss = 0` before a sum) left aside."""
    return [obj for obj in event.receivers if obj is not UNBOUND and not isinstance(obj, Const)]


def _origin(obj: Obj) -> Obj | None:
    """What an object is an attribute, item or element of."""
    while isinstance(obj, Thing) and obj.kind in ("attr", "item", "iter"):
        if obj.base is None:
            return None
        obj = obj.base
    return obj


def _is_loss(obj: Obj) -> bool:
    """Whether an object is a result that was computed from set-up models, and from no other model known to be raw."""
    origin = _origin(obj)
    if not isinstance(origin, Thing) or origin.kind not in ("call", "op") or origin.label == "scale":
        return False  # `scaler.scale(loss)`: the program scales by itself, and steps through the scaler
    return bool(_modules(_deps(origin)))


def _deps(obj: Obj) -> Value:
    return obj.deps if isinstance(obj, Thing) else frozenset()


def _modules(value: Value) -> set[Wrapped]:
    return {obj for obj in value if isinstance(obj, Wrapped) and obj.kind == "module"}


def _fabrics(event: PlainBackward) -> set[FabricObj]:
    return {module.fabric for module in _modules(event.deps)}


def _is_faulty(program: Program, event: PlainBackward) -> bool:
    """Whether a wrapped optimizer steps on the gradients of a set-up model that this call made."""
    if not any(_is_loss(obj) for obj in _losses(event)) or _takes_a_loss(event):
        return False
    if _given_gradient(event) and not any(_is_output(obj) for obj in _losses(event)):
        return False
    if not any(_steps_on(obj, event) for obj in event.steps):
        return False
    return _steps_here(program, event) or not _reads_gradients(program, event)


def _takes_a_loss(event: PlainBackward) -> bool:
    """`engine.backward(loss)`: the method of an object that was made from the model."""
    return any(_deps(obj) for argument in event.args if argument.name is None for obj in argument.value)


def _given_gradient(event: PlainBackward) -> bool:
    """Whether a gradient is passed on (`features.backward(leaf.grad)`), which was scaled where it was made."""
    gradient = next((a for i, a in enumerate(event.args) if a.name == "gradient" or (a.name is None and i == 0)), None)
    return gradient is not None and not (isinstance(gradient.node, ast.Constant) and gradient.node.value is None)


def _is_output(obj: Obj) -> bool:
    """Whether an object is what a wrapped model itself returned, which refuses a plain `backward`."""
    origin = _origin(obj)
    return isinstance(origin, Thing) and isinstance(origin.base, Wrapped) and not origin.label


def _steps_on(optimizer: Obj, event: PlainBackward) -> bool:
    if not isinstance(optimizer, Wrapped) or optimizer.fabric not in _fabrics(event):
        return False
    models = models_of_optimizer(optimizer)
    return not models or bool(models & raws(event.deps))


def _steps_here(program: Program, event: PlainBackward) -> bool:
    """Whether one of the steps stands in the function of the backward, or is given that function as its closure."""
    closures = {frame.call for frame in event.frame.chain()}
    return any(
        (step.frame is event.frame or step.node in closures) and step.optimizers & event.steps
        for steps in program.steps().values()
        for step in steps
    )


def _reads_gradients(program: Program, event: PlainBackward) -> bool:
    """Whether the function of the backward reads gradients: then they are what it is after."""
    function = program.syntax.function(event.node)
    return function is not None and any(
        isinstance(part, ast.Attribute) and part.attr == "grad" and isinstance(part.ctx, ast.Load)
        for part in ast.walk(function)
    )


def _chosen(program: Program, node: ast.Call, events: list[PlainBackward]) -> bool:
    """Whether the code decides by itself between this call and Fabric's."""
    inner: ast.AST = node
    for outer in program.syntax.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        test = getattr(outer, "test", None)
        if isinstance(outer, (ast.If, ast.IfExp, ast.While)) and inner is not test and _asks_for_fabric(test, events):
            return True
        inner = outer
    return any(
        _is_alternative(program, node, other) for other in program.backwards() if _same_loss(program, node, other)
    )


def _asks_for_fabric(test: ast.expr | None, events: list[PlainBackward]) -> bool:
    for part in ast.walk(test) if test is not None else ():
        if isinstance(part, (ast.Name, ast.Attribute)):
            text = spelled(part) or ""
            held = frozenset().union(*(event.places.get(text, frozenset()) for event in events))
            if "fabric" in text.lower() or any(isinstance(obj, FabricObj) for obj in held):
                return not text.lower().endswith((".global_rank", ".is_global_zero", ".world_size"))
    return False


def _same_loss(program: Program, node: ast.Call, other: ast.Call) -> bool:
    """Whether a call of Fabric's `backward` in the same function is given the very loss."""
    if program.syntax.function(node) is not program.syntax.function(other) or not other.args:
        return False
    assert isinstance(node.func, ast.Attribute)
    return ast.unparse(node.func.value) == ast.unparse(other.args[0])


def _is_alternative(program: Program, node: ast.Call, other: ast.Call) -> bool:
    """Whether only one of two calls runs: the arms of one `if`, or one that leaves before the other."""
    mine = program.syntax.ancestors(node)
    inner: ast.AST = other
    for outer in program.syntax.ancestors(other):
        if isinstance(outer, (ast.If, ast.IfExp)):
            if outer in mine:
                return True
            if isinstance(outer, ast.If):
                arm = outer.body if inner in outer.body else outer.orelse
                if arm and isinstance(arm[-1], (ast.Return, ast.Continue, ast.Break, ast.Raise)):
                    return True
        if outer in mine:
            return False
        inner = outer
    return False


def _problem(events: list[PlainBackward], faulty: list[PlainBackward]) -> str | None:
    """Why no fix is certain, or None."""
    if len(faulty) < len(events):
        return "the same line also goes backward where no wrapped optimizer of a set-up model steps"
    for event in events:
        if event.starred:
            return "`*` hides the arguments"
        if _given_gradient(event):
            return "it is given a gradient, which Fabric would scale once more: go backward from a loss"
        if not all(_is_loss(obj) for obj in _losses(event)):
            return "the source does not show that it is always the loss of a set-up model"
        set_up = raws(frozenset(_modules(event.deps)))
        if any(not isinstance(obj, Wrapped) and raw(obj) in set_up for obj in event.deps):
            return "the model can also be one that Fabric did not set up"
        taken = any(known.is_deepspeed(f) for fabric in _fabrics(event) for f in fabric.strategies)
        refused = next((a for a in event.args if a.name != "retain_graph"), None)
        if taken and refused is not None:  # DeepSpeedEngine.backward(loss, retain_graph=False, scale_wrt_gas=True)
            return f"DeepSpeed's backward does not take `{refused.name or ast.unparse(refused.node)}`: leave it out"
        if any(is_optimizer(obj) and not isinstance(obj, Wrapped) for obj in event.steps):
            return "an optimizer that is not set up steps on these gradients, too: set it up with its model"
        if len(_fabrics(event)) > 1:
            return "the models of the loss are set up on different Fabrics"
    return None


def _doubts(program: Program, events: list[PlainBackward]) -> list[str]:
    """What the source does not show, although nothing speaks against it."""
    given = {use.node for use in program.uses() if use.kind == "pass" and _modules(frozenset((use.obj,)))}
    found: dict[str, None] = {}
    for event in events:
        for obj in _losses(event):
            origin = _origin(obj)
            if isinstance(origin, Thing) and origin.node in given:
                found[f"the source does not show what `{origin.label or 'the function'}` returns"] = None
        if not any(models_of_optimizer(obj) & raws(event.deps) for obj in event.steps):
            found["the source does not show which parameters the optimizer has"] = None
    return list(found)


def _source(program: Program, node: ast.Call) -> str | None:
    """The loss as written; None where comments stand within it."""
    assert isinstance(node.func, ast.Attribute)
    value = node.func.value
    text = segment(program, value)
    if "\n" not in text and "\r" not in text:
        return text or None
    return None if "#" in text else ast.unparse(value)
