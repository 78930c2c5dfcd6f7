"""Go on with the wrapped object, not with the raw one under its old name.

What is wrong
    `wrapped = fabric.setup(model)` leaves `model` as it was. Where only the wrapped object does its work, the raw one
    is refused (`fabric.no_backward_sync(model)`: "You need to set up the model first ..."; `backward(loss,
    model=model)`: no attribute '_forward_module') or, worse, accepted: a forward in training without the strategy, a
    loop over a loader that is not distributed.

Fix
    The original name is shadowed, and the other name goes:

        wrapped = fabric.setup(model)                      model = fabric.setup(model)
        with fabric.no_backward_sync(model):         ->    with fabric.no_backward_sync(model):
            loss = wrapped(x).sum()                            loss = model(x).sum()

    Where the raw object is also used on purpose, the wrapped one is a field, or other files may use the names of the
    module, only the faulty uses are replaced.

Safety
    Safe when every use of both names is seen and none could tell the wrapped object from the raw one, else unsafe or
    none. An evaluation with the raw model (`no_grad`), reading its parameters or its state, and a copy made before the
    set-up are left alone.

Read in `lightning/fabric/fabric.py` and `wrappers.py`: no set-up changes the object that is passed in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Use
from fabric_fix.analysis.objects import Obj, Wrapped
from fabric_fix.analysis.places import root_name, spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import Edit, ReplaceExpression, ReplaceTargets
from fabric_fix.finding import Finding, Span
from fabric_fix.others import importer_of, user_of
from fabric_fix.parts import Parts, parts_of
from fabric_fix.rule import Rule
from fabric_fix.setups import Place, place_of_setup, targets_of, trains
from fabric_fix.trial import Trial

_MESSAGES = {
    "sync": "`no_backward_sync` is given the raw model",
    "backward": "`backward` is given the raw model",
    "call": "the raw model is trained",
    "iterate": "the raw dataloader is iterated",
    "step": "the raw optimizer steps",
}


class StaleReference(Rule):
    """The raw object is used after it was set up under another name."""

    code = "FF102"
    name = "stale-reference"
    by_hand = "use what the set-up returned"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find raw objects at work after their set-up."""
        for wrapped, uses in _faulty(program).items():
            first = uses[0]
            yield self._judge(program, wrapped, uses, first)

    def _judge(self, program: Program, wrapped: Wrapped, uses: list[Use], first: Use) -> Finding:
        message = f"{_MESSAGES[first.kind]}, although line {wrapped.node.lineno} set it up"
        node = first.node if isinstance(first.node, ast.expr) else wrapped.node
        compiled = next((use for use in program.once(_compiled) if _is_compiled(use, wrapped)), None)
        if compiled is not None:
            reason = f"line {compiled.stmt.lineno} compiles the raw model: compile what the set-up returned"
            return self.report(program, node, message, reason)
        setups = program.setups()[wrapped.node]
        place = place_of_setup(program, wrapped.node, setups)
        if isinstance(place, str):
            return self.report(program, node, message, f"{place}: use what the set-up returns")
        reasons: list[str] = []
        for plan in (_shadow, _replace):
            edits = plan(program, place, wrapped, uses)
            if isinstance(edits, str):
                reasons.append(edits)
                continue
            trial = Trial(program, edits)
            failure = trial.failure() or _still_raw(trial, wrapped)
            if failure is None:
                fix = "Use the wrapped object" if plan is _replace else "Shadow the original name"
                hazards = [*trial.hazards(), *trial.captures([wrapped.node])]
                return self.fixed(program, node, message, fix, edits, hazards)
            reasons.append(failure)
        return self.report(program, node, message, reasons[-1])


def _faulty(program: Program) -> dict[Wrapped, list[Use]]:
    """Working uses of raw objects after their one set-up, where the wrapped object is not what is used there."""
    trained = {obj for events in program.backwards().values() for event in events for obj in event.deps}
    also_wrapped = {(use.node, use.kind, use.frame) for use in program.uses() if isinstance(use.obj, Wrapped)}
    found: dict[Wrapped, list[Use]] = {}
    by_setup: dict[tuple[ast.Call, str], Wrapped] = {}
    for use in program.uses():
        if (
            not program.owns(use.node)
            or use.kind not in _MESSAGES
            or not use.after
            or (use.node, use.kind, use.frame) in also_wrapped
        ):
            continue
        if isinstance(use.obj, Wrapped) or not _works(use, trained) or _through_strategy(use):
            continue
        if use.kind == "iterate" and not (use.grad and trains(program, use)):
            continue  # evaluation on the whole loader, or statistics, on purpose
        makers = {obj for obj in use.after if isinstance(obj, Wrapped)}
        bound = [obj for obj in makers if _is_bound_elsewhere(program, obj)]
        if len({obj.node for obj in makers}) == 1 and bound:
            # of a model that is made in two branches, the one set-up makes two objects under one name
            first = by_setup.setdefault((bound[0].node, bound[0].kind), bound[0])
            found.setdefault(first, []).append(use)
    for uses in found.values():
        uses.sort(key=lambda use: (getattr(use.node, "lineno", 0), getattr(use.node, "col_offset", 0)))
    return found


def _compiled(program: Program) -> list[Use]:
    return [use for use in program.uses() if use.kind == "compile"]


def _is_compiled(use: Use, wrapped: Wrapped) -> bool:
    """`torch.compile(raw)` after the set-up; a progress bar around a loader is no compilation."""
    return use.kind == "compile" and use.obj is wrapped.inner and wrapped in use.after and wrapped.kind == "module"


def _works(use: Use, trained: set[Obj]) -> bool:
    """Whether the use is one that needs the wrapped object; a forward only when its result is trained on."""
    if use.kind == "call":
        return use.grad and use.obj in trained
    if use.kind == "iterate":
        return any(isinstance(obj, Wrapped) and obj.kind == "loader" for obj in use.after)
    return True


def _through_strategy(use: Use) -> bool:
    """`fabric.strategy.no_backward_sync(raw)` is another rule's (FF401)."""
    if use.kind != "sync" or not isinstance(use.node, ast.Call) or not isinstance(use.node.func, ast.Attribute):
        return False
    return "strategy" in (spelled(use.node.func.value) or "strategy")


def _is_bound_elsewhere(program: Program, wrapped: Wrapped) -> bool:
    """Whether the result of the set-up is kept (a result that is thrown away is another rule's, FF101)."""
    if wrapped.node not in program.setups():
        return False  # it is there to fail, or may be of something that is no Fabric
    statement = program.syntax.statement(wrapped.node)
    if isinstance(statement, ast.Expr):
        return False
    return not (isinstance(statement, ast.Assign) and [spelled(t) for t in statement.targets] == ["_"])


def _pair(place: Place, wrapped: Wrapped) -> tuple[ast.expr, ast.expr, int] | None:
    """The argument and the target of one object in a set-up call, and its position."""
    args = [argument for argument in place.setups[0].args if argument.name in (None, "module")]
    targets = list(place.target.elts) if isinstance(place.target, (ast.Tuple, ast.List)) else [place.target]
    if len(args) != len(targets):
        return None
    for index, argument in enumerate(args):
        values = frozenset().union(*(s.args[index].value for s in place.setups if index < len(s.args)))
        if wrapped.inner in values or wrapped.inner in argument.value:
            return argument.node, targets[index], index
    return None


def _shadow(program: Program, place: Place, wrapped: Wrapped, uses: list[Use]) -> list[Edit] | str:
    """Bind the result to the original name, and rename the uses of the other one."""
    pair = _pair(place, wrapped)
    if pair is None:
        return "the result is not unpacked into one target for each argument"
    arg, target, index = pair
    if not isinstance(arg, ast.Name) or not isinstance(target, ast.Name) or arg.id == target.id:
        return "the wrapped object is not under a plain name of the same function"
    function = program.syntax.function(place.statement)
    owner: ast.AST = function if function is not None else program.tree
    problem = _name_problem(program, owner, place, arg.id, target.id) or _kept_on_purpose(program, wrapped, uses)
    if problem is not None:
        return problem
    targets = list(place.target.elts) if isinstance(place.target, (ast.Tuple, ast.List)) else [place.target]
    names = [arg.id if i == index else ast.unparse(t) for i, t in enumerate(targets)]
    edits: list[Edit] = [ReplaceTargets(Span.of(place.statement), ", ".join(names))]
    read = (part for part in parts_of(program, owner).places([target.id]) if isinstance(part.ctx, ast.Load))
    return edits + [ReplaceExpression(Span.of(part), arg.id) for part in read]


def _name_problem(program: Program, owner: ast.AST, place: Place, raw_name: str, name: str) -> str | None:
    """Why one name cannot take the place of another in a function."""
    scope = program.source.scope(owner)
    if raw_name not in scope.locals or name not in scope.locals:
        return f"`{raw_name}` or `{name}` belongs to another scope"
    parts = parts_of(program, owner)
    telling = program.once(_tellings).get(owner)
    if telling is None:
        telling = program.once(_tellings)[owner] = [node for node in parts.nodes if _can_tell(node)]
    for node in parts.in_order([*telling, *parts.places([name])]):
        stored = isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        if stored and program.syntax.statement(node) is not place.statement:
            return f"`{name}` is assigned in several places"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and node is not owner:
            inner = program.source.scope(node)
            bound = name in inner.locals or raw_name in inner.locals or name in inner.outer
            if bound and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)):
                return f"`{name}` is also a name of an inner function"
        if isinstance(node, (ast.Global, ast.Nonlocal)) and {name, raw_name} & set(node.names):
            return f"`{name}` or `{raw_name}` is shared with another scope"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
            return f"names are read through `{node.func.id}`"
    if _assigned_after(parts, place, raw_name):
        return f"`{raw_name}` is assigned again after the set-up"
    if not isinstance(owner, ast.Module):
        return None
    if name in program.once(_exported):
        return f"`{name}` is exported by the module"
    return _used_elsewhere(program, raw_name, name)


def _used_elsewhere(program: Program, raw_name: str, name: str) -> str | None:
    """Why other files may use the names of a module: then neither can go, nor stand for something else."""
    path = program.source.path
    user = user_of(program.project, path, name)
    if user is not None:
        return f"`{name}` may be what `{user}` uses of this module"
    user = importer_of(program.project, path, raw_name)
    return None if user is None else f"`{raw_name}` may be what `{user}` uses of this module"


def _can_tell(node: ast.AST) -> bool:
    """Whether a node, other than a name itself, can keep it from taking the place of another."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _BY_NAME
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Global, ast.Nonlocal))


_BY_NAME = ("locals", "vars", "exec", "eval")
"""Builtins through which names are read."""


def _tellings(program: Program) -> dict[ast.AST, list[ast.AST]]:
    return {}


def _assigned_after(parts: Parts, place: Place, raw_name: str) -> bool:
    last = place.statement.end_lineno or place.statement.lineno
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno > last
        for node in parts.places([raw_name])
    )


def _exported(program: Program) -> str:
    """What the module says that it exports, as written."""
    for statement in program.tree.body:
        if isinstance(statement, ast.Assign) and any(spelled(t) == "__all__" for t in statement.targets):
            return ast.unparse(statement.value)
    return ""


def _kept_on_purpose(program: Program, wrapped: Wrapped, faulty: list[Use]) -> str | None:
    """A use of the raw object after its set-up that means the raw one."""
    known_faulty = {(use.node, use.kind) for use in faulty}
    for use in program.once(_raw_uses).get((wrapped.node, wrapped.kind), ()):
        if (use.node, use.kind) in known_faulty:
            continue
        if use.kind in ("setup", "attr", "setattr", "clip", "load", "store", "input"):
            continue
        if use.kind == "method" and use.detail in known.HARMLESS_METHODS:
            continue
        return f"the raw object is also used on purpose on line {getattr(use.node, 'lineno', use.stmt.lineno)}"
    return None


def _raw_uses(program: Program) -> dict[tuple[ast.Call, str], list[Use]]:
    """By set-up and kind: the uses of objects that are raw although it had wrapped them."""
    found: dict[tuple[ast.Call, str], list[Use]] = {}
    for use in program.uses():
        makers = () if isinstance(use.obj, Wrapped) else use.after
        for key in {(obj.node, obj.kind) for obj in makers if isinstance(obj, Wrapped)}:
            found.setdefault(key, []).append(use)
    return found


def _kept_inside(program: Program, place: Place, use: Use) -> str | None:
    """What a function has to return that keeps what its set-up gave, while its caller goes on with the raw one."""
    frame = place.setups[0].frame
    names = [spelled(target) for target in targets_of(place)]
    if frame.function is None or use.frame is not frame.caller or any(n is None or "." in n for n in names):
        return None
    line = frame.call_stmt.lineno if frame.call_stmt is not None else use.stmt.lineno
    returned = ", ".join(str(name) for name in names)
    what = f"`{frame.function.name}` keeps what the set-up returns to itself"
    return f"{what}: let it return `{returned}`, and bind that on line {line}, where it is called"


def _replace(program: Program, place: Place, wrapped: Wrapped, uses: list[Use]) -> list[Edit] | str:
    """Put the wrapped object's name in the place of the raw one where it is at work."""
    pair = _pair(place, wrapped)
    if pair is None or spelled(pair[1]) is None or spelled(pair[0]) is None:
        return "the wrapped object has no name of its own"
    target, source = pair[1], pair[0]
    edits: dict[Span, Edit] = {}
    for use in uses:
        if root_name(target) != "self" and not _sees(program, place, use, (source, target)):
            kept = _kept_inside(program, place, use)
            if kept is not None:
                return kept
            line = getattr(use.node, "lineno", use.stmt.lineno)
            used = f"the raw object goes on being used on line {line}, in another function"
            return f"{used}: pass it what the set-up returned"
        operand = _operand(program, use, spelled(source) or "")
        if operand is None:
            return "the raw object is used under another name: use what the set-up returned"
        edits[Span.of(operand)] = ReplaceExpression(Span.of(operand), ast.unparse(target))
    return list(edits.values())


def _sees(program: Program, place: Place, use: Use, names: Sequence[ast.expr]) -> bool:
    """Whether names of the function that a set-up is in, or of its module, stand for the same where a use is."""
    at, home = program.syntax.function(use.node), program.syntax.function(place.statement)
    if at is None or at is home:
        return at is home
    if home is not None or use.frame.source is not program.interpreter.source:
        return False
    roots = {root_name(name) or "" for name in names}
    around = [at, *(part for part in program.syntax.ancestors(at) if isinstance(part, _FUNCTIONS))]
    if any(roots & (scope.locals | scope.outer.keys()) for scope in map(program.source.scope, around)):
        return False
    if any(_assigned_after(parts_of(program, program.tree), place, root) for root in roots):
        return False
    alike = (other for other in program.uses() if other.node is use.node and other.kind == use.kind)
    return all(other.after for other in alike if other.obj is use.obj)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _operand(program: Program, use: Use, source: str) -> ast.expr | None:
    """The expression in a use that reads the raw object."""
    node = use.node
    if use.kind in ("call", "step") and isinstance(node, ast.Call):
        func = node.func.value if use.kind == "step" and isinstance(node.func, ast.Attribute) else node.func
        return func if spelled(func) == source else None
    parts: list[ast.expr] = []
    if isinstance(node, ast.Call):
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.expr):
        parts = [node]
    for part in parts:
        if spelled(part) == source:
            return part
    return None


def _still_raw(trial: Trial, wrapped: Wrapped) -> str | None:
    left = [use for use in trial.left_raw([wrapped.node]) if use.kind != "call" or use.grad]
    trained = {obj for events in trial.after.backwards().values() for event in events for obj in event.deps}
    left = [use for use in left if use.kind != "call" or use.obj in trained]
    if left:
        line = getattr(left[0].node, "lineno", left[0].stmt.lineno)
        return f"the raw object goes on being used on line {line} under another name: pass on what the set-up returned"
    return None
