"""Set up a model that is trained through Fabric without ever having been set up.

What is wrong
    `fabric.backward(loss)` with nothing set up raises "No models were set up for backward. Did you forget to call
    `fabric.setup()`?" under DeepSpeed, and trains without DDP, FSDP and precision on every other strategy, without an
    error. `fabric.no_backward_sync(model)` with a model that was not set up raises "You need to set up the model first
    before you can call `fabric.no_backward_sync()`" everywhere.

Fix
    The set-up is inserted once model and optimizer exist, after `launch()`, below the last statement before the
    first use that can tell a set-up model from a raw one, in the block where both are made:

        optimizer = SGD(model.parameters())                optimizer = SGD(model.parameters())
        for x in data:                               ->    model, optimizer = fabric.setup(model, optimizer)
            fabric.backward(model(x).sum())                for x in data:
                                                               fabric.backward(model(x).sum())

    Where several programs share the function that goes backward, each that forgets the set-up has a finding in the file
    that it belongs in, and the others have none.

Safety
    Safe when the model surely is raw, it and its optimizers have names there, and no later use could tell the
    wrapped objects. Unsafe when the model comes from a function that the file does not show. No fix when one optimizer
    has the parameters of several models, when the raw objects are also held elsewhere, or when the strategy wants more
    than a joint set-up (XLA FSDP, model parallel).

Read in `lightning/fabric/fabric.py` (`backward`, `no_backward_sync`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Backward, Call, NoSync
from fabric_fix.analysis.fabric_calls import is_optimizer, models_of_optimizer
from fabric_fix.analysis.objects import FabricObj, Obj, Thing, Wrapped, raw
from fabric_fix.analysis.program import Program
from fabric_fix.certainty import has_parameters, surely_raw
from fabric_fix.edits.model import Edit, InsertStatement
from fabric_fix.finding import Finding, Span
from fabric_fix.placing import Plan, no_place, plans
from fabric_fix.records import Record
from fabric_fix.rule import Rule
from fabric_fix.scopes import caller_line, same_file
from fabric_fix.setups import owners, wants
from fabric_fix.trial import Trial


class MissingSetup(Rule):
    """A model is trained through Fabric but was never set up."""

    code = "FF104"
    name = "missing-setup"
    by_hand = "set the model up where it is made, and use what that returns"
    anywhere = True

    def check(self, program: Program) -> Iterator[Finding]:
        """Find raw models behind `backward` and `no_backward_sync`, each in the file that can set it up."""
        seen: set[Obj] = set()
        reported: set[tuple[int, int, str | None]] = set()
        for missing in _missing(program):
            if seen.issuperset(missing.models):
                continue
            seen.update(missing.models)
            finding = self._judge(program, missing)
            place = (finding.span.line, finding.span.column, finding.reason)
            if finding.fix is not None or place not in reported:
                reported.add(place)
                yield finding

    def _judge(self, program: Program, missing: Missing) -> Finding:
        call, models = missing.calls[0], missing.models
        optimizers = list(dict.fromkeys(o for model in models for o in _optimizers_of(program, model)))
        problem = _problem(program, call, models, optimizers)
        candidates = plans(program, call, models, optimizers)
        plan = next(candidates, None)
        node = call.node if plan is None else _node_beside(program, call, plan)
        message = _message(program, missing, node)
        if problem is not None:
            return self.report(program, node, message, problem)
        reason = no_place(program, call, models, optimizers)
        if not program.owns(node) or not program.deep:  # to be told, and not to be tried out
            return self.report(program, node, message, reason)
        while plan is not None:
            edits: list[Edit] = [InsertStatement(Span.of(plan.anchor), plan.where, plan.code)]
            if not program.owns(plan.anchor):
                return self.fixed(program, node, message, f"Insert `{plan.code}`", edits)
            trial = Trial(program, edits)
            failure = trial.failure() or _ineffective(trial, missing.calls)
            if failure is None:
                return self.fixed(
                    program,
                    node,
                    message,
                    f"Insert `{plan.code}`",
                    edits,
                    [
                        *trial.hazards(),
                        *trial.captures(trial.inserted_setups()),
                        *_doubts(models),
                        *_initialising(program, plan),
                    ],
                )
            reason, plan = failure, next(candidates, None)
        return self.report(program, node, message, reason)


class Missing(Record):
    """Models that go by one name and that nothing sets up, with the calls that work on them."""

    models: list[Obj]
    calls: Sequence[Call]
    """Calls of one place, each in a context that is faulty; the first is the one to speak of."""
    everywhere: bool
    """Whether the place is faulty in every context that it runs in."""


def _missing(program: Program) -> list[Missing]:
    """The faults, in the order of the calls: programs that share a function have one each."""
    found: list[Missing] = []
    for kind in (program.backwards(), program.no_syncs()):
        for calls in kind.values():
            faulty = {call: models for call in calls if (models := _never_set_up(program, call))}
            for group in _alternatives(program, dict.fromkeys(m for models in faulty.values() for m in models)):
                concerned = [call for call, models in faulty.items() if not set(group).isdisjoint(models)]
                if not any(_averages_by_hand(program, call) for call in concerned):
                    found.append(Missing(group, concerned, len(faulty) == len(calls)))
    return sorted(found, key=lambda one: (one.calls[0].node.lineno, one.calls[0].node.col_offset))


def _averages_by_hand(program: Program, call: Call) -> bool:
    """Whether a program averages gradients or parameters itself, so that no strategy is wanted to."""
    known = program.once(_known_to_average)
    for source in {frame.source.path: frame.source for frame in call.frame.chain()}.values():
        if source.path not in known:
            known[source.path] = _averages(source.tree)
        if known[source.path]:
            return True
    return False


def _known_to_average(program: Program) -> dict[str, bool]:
    return {}


def _averages(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("all_reduce", "all_gather", "broadcast"):
            parts = [part for argument in node.args for part in ast.walk(argument)]
            if any(isinstance(part, ast.Attribute) and part.attr in ("grad", "data") for part in parts):
                return True
    return False


def _node_beside(program: Program, call: Call, plan: Plan) -> ast.expr:
    """What a finding is about, in the file that its set-up goes into: the call, or what leads to it from there."""
    if same_file(call.node, plan.anchor):
        return call.node
    for frame in call.frame.chain():
        if isinstance(frame.call, ast.expr) and same_file(frame.call, plan.anchor):
            return frame.call
    return next((part for part in ast.walk(plan.anchor) if isinstance(part, ast.expr)), call.node)


def _message(program: Program, missing: Missing, node: ast.expr) -> str:
    call = missing.calls[0]
    what = f"this `{call.method}`" if node is call.node else f"the `{call.method}` on line {call.node.lineno}"
    giver = caller_line(call)
    whose = "" if missing.everywhere or node is not call.node or giver is None else f" from line {giver}"
    far = _how_far(program, call, missing.models)
    return f"the model{whose} behind {what} is {far}: Fabric's strategy and precision do not reach it"


def _doubts(models: list[Obj]) -> list[str]:
    is_sure = all(surely_raw(model) for model in models)
    return [] if is_sure else ["the source does not show that the model is a raw one"]


def _initialising(program: Program, plan: Plan) -> list[str]:
    """What speaks against a set-up inside `init_module()`, which sets device and type for what is made in it."""
    for node in program.syntax.ancestors(plan.anchor):
        for item in node.items if isinstance(node, (ast.With, ast.AsyncWith)) else ():
            name = getattr(getattr(item.context_expr, "func", None), "attr", "")
            if name in ("init_module", "init_tensor", "sharded_model"):
                return [
                    f"it would be set up inside `{name}()` (line {item.context_expr.lineno}): move it below that block"
                ]
    return []


def _alternatives(program: Program, models: Iterable[Obj]) -> list[list[Obj]]:
    """The models in groups of those that go by one name: made in different branches, say."""
    groups: list[list[Obj]] = []
    for model in models:
        names = program.interpreter.bindings.get(model, {}).keys()
        for group in groups:
            if any(names & program.interpreter.bindings.get(other, {}).keys() for other in group):
                group.append(model)
                break
        else:
            groups.append([model])
    return groups


def _how_far(program: Program, call: Call, models: list[Obj]) -> str:
    """Whether the model is set up on no path, or not on all of them."""
    argument = call.argument("module", 0) if isinstance(call, NoSync) else None
    values = argument.value if argument is not None else getattr(call, "deps", frozenset())
    names = {name for model in models for name in program.interpreter.bindings.get(model, {})}
    for obj in values:
        if isinstance(obj, Wrapped) and names & program.interpreter.bindings.get(obj, {}).keys():
            return f"not set up on the path through line {_line(models[0])}"
    return "never set up"


def _never_set_up(program: Program, call: Call) -> list[Obj]:
    """The raw models that a call works on although nothing sets them up."""
    if isinstance(call, NoSync):
        if call.via not in ("fabric", "strategy"):
            return []
        argument = call.argument("module", 0)
        objs = list(argument.value) if argument is not None else []
        sure = objs and all(surely_raw(obj) or _maybe_raw(program, obj) for obj in objs)
        return [obj for obj in objs if not _is_set_up(program, obj)] if sure else []
    if isinstance(call, Backward):
        return _of_loss(program, call)
    return []


def _of_loss(program: Program, call: Backward) -> list[Obj]:
    named = next((argument.value for argument in call.args if argument.name == "model"), None)
    if named is not None:
        bare = bool(named) and all(surely_raw(obj) and not _is_set_up(program, obj) for obj in named)
        return sorted(named, key=_line) if bare else []
    candidates = [obj for obj in call.deps if not isinstance(obj, Wrapped) and not _is_set_up(program, obj)]
    candidates = sorted(filter(has_parameters, candidates), key=_line)
    trained = [
        obj for obj in candidates if _optimizers_of(program, obj) and (surely_raw(obj) or _maybe_raw(program, obj))
    ]
    if trained:
        return [obj for obj in trained if not _may_be_another(program, call, obj)]
    lonely = [obj for obj in candidates if surely_raw(obj)]
    if call.steps and not any(_trained_in_part(program, [obj], set(getattr(obj, "sources", ()))) for obj in lonely):
        return []  # what steps on this backward is something else: a latent, an image
    alone = len(call.deps) == len(lonely) == 1 and not program.set_up_models()
    return lonely if alone else []


def _may_be_another(program: Program, call: Backward, model: Obj) -> bool:
    """Whether a call of the model may be of another object: of what a dict was updated with from elsewhere."""
    others = {obj for obj in call.deps if isinstance(obj, Thing) and obj.kind == "item" and obj.label == "*"}
    if not others:
        return False
    calls = [use for use in program.uses() if use.kind == "call"]
    return not {use.node for use in calls if use.obj is model}.isdisjoint(u.node for u in calls if u.obj in others)


def _line(obj: Obj) -> int:
    return int(getattr(getattr(obj, "node", None), "lineno", 0))


def _maybe_raw(program: Program, obj: Obj) -> bool:
    """Whether an object made by an unknown function is a raw model as far as can be seen: no Fabric went into it."""
    if not isinstance(obj, Thing) or obj.kind != "call" or obj.sees_fabric or (program.deep and not obj.callee):
        return False  # a function of the project that was not followed, at first sight, may make a raw one
    if obj.callee.startswith("copy."):
        return False  # a copy is often one on purpose, to be adapted and thrown away
    return obj in program.once(_asked_for_parameters)


def _asked_for_parameters(program: Program) -> set[Obj]:
    return {use.obj for use in program.uses() if use.kind == "method" and use.detail == "parameters"}


def _is_set_up(program: Program, obj: Obj) -> bool:
    """Whether something sets an object up, a part of it, or (past Fabric) wraps it through the strategy."""
    return raw(obj) in program.once(_all_set_up)


def _all_set_up(program: Program) -> set[Obj]:
    found = {owner for wrapped in program.interpreter.wrapped() for owner in owners(wrapped.inner)}
    for use in program.uses():
        if use.kind in ("strategy", "setup") and isinstance(use.node, ast.Call):  # in a list, say, that is spread out
            found |= {raw(use.obj)} if getattr(use.node.func, "attr", "").startswith("setup") else set()
    return found


def _optimizers_of(program: Program, model: Obj) -> list[Obj]:
    """The optimizers that have the parameters of a model, in source order."""
    return program.once(_optimizers).get(model, [])


def _optimizers(program: Program) -> dict[Obj, list[Obj]]:
    """By model: the optimizers that have its parameters."""
    found: dict[Obj, list[Obj]] = {}
    for _, obj in program.interpreter.created():
        for model in models_of_optimizer(obj) if is_optimizer(obj) else ():
            found.setdefault(model, []).append(obj)
    return {model: sorted(optimizers, key=_line) for model, optimizers in found.items()}


def _problem(program: Program, call: Call, models: list[Obj], optimizers: list[Obj]) -> str | None:
    """Why no set-up can be inserted, whatever the place."""
    for optimizer in optimizers:
        others = models_of_optimizer(optimizer) - set(models)
        if any(has_parameters(other) and (surely_raw(other) or _optimizers_of(program, other)) for other in others):
            return "its optimizer has the parameters of several models: set each up with an optimizer of its own"
        if wrapped_optimizers(program, optimizer):
            return "its optimizer is set up alone: set both up with `fabric.setup(model, optimizer)`"
    sources = {part for model in models if isinstance(model, Thing) for part in model.sources}
    if not optimizers and _trained_in_part(program, models, sources):
        return "its optimizer has the parameters of a part of it, or of what it is wrapped in: set both up by hand"
    if any(wrapped.inner in sources for wrapped in program.interpreter.wrapped()):
        return "a part of it is set up alone, which would wrap the same parameters twice: set up the whole only"
    separate = call.strategies & known.SEPARATE_ONLY
    if separate:
        return f"{wants(separate)} `setup_module`, then the optimizer's creation, then `setup_optimizers`"
    if any(known.is_deepspeed(f) for f in call.strategies):
        if not optimizers:
            return "DeepSpeed sets a model up with its optimizer, and none is seen"
        places = {place for o in optimizers for (_, place) in program.interpreter.bindings.get(o, {})}
        if len(optimizers) > 1 and len(places) > 1:
            return "DeepSpeed takes exactly one optimizer for a model"
    return None


def _trained_in_part(program: Program, models: list[Obj], sources: set[Obj]) -> bool:
    """Whether some optimizer has parameters of a part of a model, or of something made from it."""
    for owner in program.once(_optimizers):
        made_from = owner.sources if isinstance(owner, Thing) else frozenset()
        if owner in sources or made_from & set(models) or set(owners(owner)) & set(models):
            return True
    return False


def wrapped_optimizers(program: Program, optimizer: Obj) -> bool:
    """Whether some call sets an optimizer up."""
    for setups in program.setups().values():
        for setup in setups:
            if any(raw(obj) is optimizer for argument in setup.args for obj in argument.value):
                return True
    return False


def _ineffective(trial: Trial, calls: Sequence[Call]) -> str | None:
    """Whether the raw objects go on being used elsewhere after the inserted set-up, or before it at the call itself."""
    inserted = trial.inserted_setups()
    left = trial.left_raw(inserted)
    if left:
        line = getattr(left[0].node, "lineno", left[0].stmt.lineno)
        return f"the raw object is also held elsewhere, and used on line {line}: set it up before it is passed on"
    if not trial.used_wrapped(inserted) or not all(map(trial.covers, calls)):
        return "a set-up once model and optimizer exist would not reach this call: set the model up before it"
    return None


__all__ = ["FabricObj", "MissingSetup"]
