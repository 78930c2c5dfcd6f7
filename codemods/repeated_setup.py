"""Set a model, an optimizer or a dataloader up once.

What is wrong
    What a set-up returned is given to a set-up again: "A model should be passed only once to the `setup` method", and
    the same for optimizers and dataloaders. The raw model given a second time is accepted: it gets a second wrapper,
    with DDP's or FSDP's hooks twice on the same parameters, and DeepSpeed then counts two models and refuses
    `fabric.backward(loss)`.

Fix
    The second call goes, where its result has the names that it was given:

        model = fabric.setup(model)                        model = fabric.setup(model)
        ...                                        ->      ...
        model = fabric.setup(model)

    Where the second one sets up the optimizer as well, it stays, and the first goes:

        model = fabric.setup(model)                        optimizer = SGD(model.parameters())
        optimizer = SGD(model.parameters())        ->      model, optimizer = fabric.setup(model, optimizer)
        model, optimizer = fabric.setup(model, optimizer)

Safety
    Safe when everything that the second call is given is wrapped already (or, for a raw model, set up by a call that
    surely ran before, under the same names), and nothing between the calls can tell the difference. Unsafe in a
    function whose parameter is set up again: others may call it with a raw one. No fix when the result has another name
    (another object may be meant), when only some of the arguments are wrapped and the first call cannot go, or when a
    set-up stands in a loop and sets up its own result.

Left alone: exclusive branches, fresh objects under an old name (k-fold), a copy, a raw model for another Fabric, a raw
dataloader that is set up for two purposes, code that asks whether its object is wrapped, and tests that expect the
error.

Read in `lightning/fabric/fabric.py` (`_validate_setup`, `_validate_setup_module`, `_validate_setup_optimizers`,
`_validate_setup_dataloaders`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Argument, Setup
from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import UNBOUND, Const, Instance, Obj, Thing, Value, Wrapped
from fabric_fix.analysis.places import root_name, spelled
from fabric_fix.analysis.program import Program
from fabric_fix.between import parameters_problem
from fabric_fix.edits.model import RemoveStatement
from fabric_fix.finding import Finding, Span
from fabric_fix.making import made_too_soon
from fabric_fix.order import leaves_at_once, surely_before, unconditional, unfrozen
from fabric_fix.parts import parts_of
from fabric_fix.rule import Rule
from fabric_fix.scopes import only
from fabric_fix.setups import Place, families, place_of_setup, strategy_names
from fabric_fix.telling import tells_raw
from fabric_fix.trial import Trial
from fabric_fix.untrained import only_tested

_EXPECTING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "suppress"})
_ASKING = frozenset({"isinstance", "is_wrapped", "type", "hasattr", "compile"})
"""Calls that ask for the wrapper, or hide it: Fabric takes `torch.compile(wrapped)`, and wraps the wrapper."""
_MODULES = frozenset({"setup", "setup_module"})
_KINDS = {"setup_optimizers": "optimizer", "setup_dataloaders": "loader"}
_WORDS = {"module": "model", "optimizer": "optimizer", "loader": "dataloader"}


class RepeatedSetup(Rule):
    """Something is set up twice."""

    code = "FF105"
    name = "repeated-setup"
    by_hand = "set it up once, and use what that returns"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find set-ups of what is set up already."""
        for node, setups in program.own(program.setups()).items():
            finding = None if any(setup.starred for setup in setups) else self._judge(program, node, setups)
            if finding is not None and not _on_purpose(program, node, setups[0]):
                yield finding

    def _judge(self, program: Program, node: ast.Call, setups: list[Setup]) -> Finding | None:
        again = [setup for setup in setups if any(_is_wrapped(a, kind) for a, kind in _objects(setup))]
        if again:
            return self._wrapped(program, node, setups, again)
        if any(_own_result(program, setup) for setup in setups):
            return self._each_turn(program, node, setups[0])
        earlier = _earlier(program, node, setups)
        if earlier is None or unfrozen(program, earlier, node) or only_tested(program, setups):
            return None
        return self._raw(program, node, setups, earlier)

    # --- what is wrapped is given again -------------------------------------------------------------------------------

    def _wrapped(self, program: Program, node: ast.Call, setups: list[Setup], again: list[Setup]) -> Finding:
        kind = next(kind for argument, kind in _objects(again[0]) if _is_wrapped(argument, kind))
        message = f"the {_WORDS[kind]} is set up already: Fabric refuses to set it up again"
        if len(again) < len(setups):
            return self.report(program, node, message, "the function is also called with one that is not set up")
        if not all(_same_fabric(setup) for setup in setups):
            reason = "the source does not show that one Fabric does both: give another one the raw object"
            return self.report(program, node, message, reason)
        if all(_is_wrapped(argument, kind) for setup in setups for argument, kind in _objects(setup)):
            return self._remove(program, node, message, setups)
        return self._keep(program, node, message, setups)

    def _remove(self, program: Program, node: ast.Call, message: str, setups: list[Setup]) -> Finding:
        statement = program.syntax.statement(node)
        if not (isinstance(statement, ast.Expr) and statement.value is node):
            problem = _other_names(program, node, setups)
            if problem is not None:
                return self.report(program, node, message, problem)
        edit = RemoveStatement(Span.of(statement))
        failure = Trial(program, [edit]).failure()
        if failure is not None:
            return self.report(program, node, message, failure)
        return self.fixed(program, node, message, "Remove the second set-up", [edit], _callers(program, setups))

    def _keep(self, program: Program, node: ast.Call, message: str, setups: list[Setup]) -> Finding:
        """Remove the first set-up, of the model alone, and keep this one, which has the optimizer as well."""
        first = _first_place(program, setups)
        problem = first if isinstance(first, str) else _joint_problem(program, node, first, setups)
        if problem is not None or isinstance(first, str):
            return self.report(program, node, message, str(problem))
        edit = RemoveStatement(Span.of(first.statement))
        trial = Trial(program, [edit])
        failure = trial.failure() or _told(program, node, first, trial)
        if failure is not None:
            return self.report(program, node, message, failure)
        return self.fixed(program, node, message, "Remove the first set-up, of the model alone", [edit])

    def _each_turn(self, program: Program, node: ast.Call, setup: Setup) -> Finding:
        kind = next(kind for argument, kind in _objects(setup) if _held(argument, kind))
        message = f"the {_WORDS[kind]} is set up again in each turn of the loop: Fabric refuses the second one"
        return self.report(program, node, message, "only the first turn may do it: set it up before the loop")

    # --- the raw model is given again ---------------------------------------------------------------------------------

    def _raw(self, program: Program, node: ast.Call, setups: list[Setup], earlier: ast.Call) -> Finding:
        message = f"the model was set up on line {earlier.lineno}: a second wrapper breaks DeepSpeed's backward"
        first = program.syntax.statement(earlier)
        second = program.syntax.statement(node)
        if not _same_statement(first, second):
            return self.report(
                program,
                node,
                message,
                f"one set-up is enough: use what line {earlier.lineno} returned, in place of this one",
            )
        names = {text for part in ast.walk(second) if isinstance(part, ast.expr) and (text := spelled(part))}
        problem = _changed(program, first, second, names)
        if problem is not None:
            return self.report(program, node, message, problem)
        edit = RemoveStatement(Span.of(second))
        failure = Trial(program, [edit]).failure()
        if failure is not None:
            return self.report(program, node, message, failure)
        return self.fixed(program, node, message, "Remove the second set-up", [edit])


def _on_purpose(program: Program, node: ast.Call, setup: Setup) -> bool:
    """Whether the function asks whether the object is wrapped, or hides that it is, or a test expects the error."""
    around = program.syntax.ancestors(node)
    for outer in around:
        for item in outer.items if isinstance(outer, (ast.With, ast.AsyncWith)) else []:
            if _called(item.context_expr) in _EXPECTING:
                return True
    names = {spelled(argument.node) for argument, _ in _objects(setup)} - {None}
    tests = {test for outer in around if (test := getattr(outer, "test", None)) is not None}
    read = {spelled(part) for test in tests for part in ast.walk(test) if isinstance(part, ast.expr)}
    return bool(names & (read | _asked_for(program, program.syntax.function(node))))


def _asked_for(program: Program, function: ast.AST | None) -> set[str | None]:
    """What the calls in a function that ask for an object's kind are given."""
    known = program.once(_asked)
    if function not in known:
        nodes = parts_of(program, function).nodes
        asking = (part for part in nodes if isinstance(part, ast.Call) and _called(part) in _ASKING)
        tests = [part for part in asking if not _holds_for_both(part)]
        known[function] = {spelled(part) for test in tests for part in ast.walk(test) if isinstance(part, ast.expr)}
    return known[function]


def _asked(program: Program) -> dict[ast.AST | None, set[str | None]]:
    return {}


def _holds_for_both(call: ast.Call) -> bool:
    """`isinstance(model, nn.Module)`, which a wrapped model passes as well: it asks nothing of the set-up."""
    return _called(call) == "isinstance" and len(call.args) == 2 and ast.unparse(call.args[1]).endswith("Module")


def _called(node: ast.expr) -> str:
    """The last name of what is called, or ''."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def _objects(setup: Setup) -> list[tuple[Argument, str]]:
    """What a call sets up, with the kind of each; a scheduler is none of these."""
    positional = [argument for argument in setup.args if argument.name is None]
    named = [argument for argument in setup.args if argument.name == "module"]
    if setup.method not in _MODULES:
        return [(argument, _KINDS[setup.method]) for argument in positional]
    kinds = ["module", *["optimizer"] * len(positional)]
    return list(zip([*named, *positional], kinds, strict=False))


def _held(argument: Argument, kind: str) -> set[Wrapped]:
    return {obj for obj in argument.value if isinstance(obj, Wrapped) and obj.kind == kind}


def _is_wrapped(argument: Argument, kind: str) -> bool:
    """Whether an argument surely is wrapped already: whatever it can be is."""
    objs = [o for o in argument.value if o is not UNBOUND and not (isinstance(o, Const) and o.value is None)]
    return bool(objs) and len(objs) == len(_held(argument, kind))


def _same_fabric(setup: Setup) -> bool:
    """Whether what is wrapped was wrapped by the Fabric that is to do it again."""
    return all(obj.fabric in setup.fabrics for argument, kind in _objects(setup) for obj in _held(argument, kind))


def _targets(program: Program, node: ast.Call) -> list[str | None] | None:
    statement = program.syntax.statement(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or statement.value is not node:
        return None
    target = statement.targets[0]
    return [spelled(part) for part in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])]


def _other_names(program: Program, node: ast.Call, setups: list[Setup]) -> str | None:
    """Why a set-up that gives its objects back under the names that they came under is not what stands here."""
    given = [spelled(argument.node) for argument, _ in _objects(setups[0])]
    targets = _targets(program, node)
    if targets is None:
        return "the call is part of a larger statement: use the object itself there"
    if any(argument.name not in (None, "module") for argument in setups[0].args if argument.name == "scheduler"):
        return "a scheduler is passed as well: pass it to the first set-up"
    if None in given or given != targets:
        return "the result has another name: use the object that is set up already, or pass the one that was meant"
    return None


def _callers(program: Program, setups: list[Setup]) -> list[str]:
    """A doubt where what a caller set up is set up again: others may call the function with a raw object."""
    for setup in setups:
        home = program.syntax.function(setup.node)
        for argument, kind in _objects(setup):
            name = root_name(argument.node) or ""
            elsewhere = any(program.syntax.function(obj.node) is not home for obj in _held(argument, kind))
            if name != "self" and name in setup.frame.entry and elsewhere and setup.frame.function is not None:
                return [f"`{setup.frame.function.name}` may be called with a raw `{name}` from elsewhere"]
    return []


# --- keeping the joint one --------------------------------------------------------------------------------------------


def _first_place(program: Program, setups: list[Setup]) -> Place | str:
    """Where the model alone was set up, when the rest of the arguments is raw; or why that one cannot go."""
    reason = "only some of its arguments are wrapped: set up model and optimizers once, in one call"
    (module, kind), *rest = _objects(setups[0])
    wrapped = _held(module, kind)
    if len(setups) > 1 or setups[0].method != "setup" or len(wrapped) != 1 or any(_held(a, k) for a, k in rest):
        return reason
    call = next(iter(wrapped)).node
    first = program.setups().get(call, [])
    if len(first) != 1 or len(_objects(first[0])) != 1 or first[0].frame is not setups[0].frame:
        return reason
    place = place_of_setup(program, call, first)
    if isinstance(place, str) or spelled(place.target) != spelled(_objects(first[0])[0][0].node):
        return reason
    return place


def _joint_problem(program: Program, node: ast.Call, first: Place, setups: list[Setup]) -> str | None:
    """Why the joint set-up cannot stay alone: its strategy, its place, or its names."""
    separate = families(setups) & known.MODEL_FIRST
    if separate:
        return f"{strategy_names(separate)} sets the model up first: use `setup_optimizers` here, for the optimizer"
    if len(first.setups[0].args) > 1:
        return "the first set-up has arguments of its own: bring both together in one call"
    if program.syntax.statement(node) not in first.block or program.syntax.loops(node) != program.syntax.loops(
        first.call
    ):
        return "the two set-ups stand in different blocks: set up model and optimizers once, in one call"
    module = _objects(setups[0])[0][0]
    targets = _targets(program, node)
    if targets is None or spelled(module.node) != spelled(first.target) or targets[0] != spelled(first.target):
        return "the model has another name in the second set-up: set up model and optimizers once, in one call"
    return None


def _told(program: Program, node: ast.Call, first: Place, trial: Trial) -> str | None:
    """What stands between the two set-ups and can tell that it would get the raw model, not yet on its device."""
    for use in trial.now_raw():
        if use.kind != "setup" and tells_raw(use):
            line = getattr(use.node, "lineno", use.stmt.lineno)
            what = "uses what the first set-up returned"
            return f"line {line} {what}: make the optimizer above it, and set both up there, in one call"
    between = first.block[first.index + 1 : first.block.index(program.syntax.statement(node))]
    problem = parameters_problem(program, between, spelled(first.target) or "") or made_too_soon(program, between)
    return None if problem is None else f"the first set-up cannot go: {problem}"


# --- loops, and the raw model again -----------------------------------------------------------------------------------


def _own_result(program: Program, setup: Setup) -> bool:
    """Whether a call in a loop surely gets in the second turn what it returned in the first."""
    if not any(obj.node is setup.node for argument, kind in _objects(setup) for obj in _held(argument, kind)):
        return False
    loops = program.syntax.loops(setup.node)
    if not loops or not isinstance(loops[0], (ast.For, ast.While)) or leaves_at_once(loops[0].body):
        return False
    statement = program.syntax.statement(setup.node)
    if not unconditional(program, statement, loops[0].body):
        return False
    targets = _targets(program, setup.node) or []
    for argument, kind in _objects(setup):
        name = spelled(argument.node)
        own = {obj for obj in _held(argument, kind) if obj.node is setup.node and obj.inner in argument.value}
        made_here = any(_within(obj.inner, loops[0]) for obj in own)
        if name is not None and name in targets and len(own) == 1 and len(argument.value) == 2 and not made_here:
            root = root_name(argument.node)
            another = root is not None and root != name and any(_stores(loops[0], root))  # each turn's own holder
            return not another and len(list(_stores(loops[0], name))) == 1
    return False


def _within(obj: Obj, loop: ast.AST) -> bool:
    node = getattr(obj, "node", None)
    return node is None or any(part is node for part in ast.walk(loop))


def _stores(node: ast.AST, text: str) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        place = isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load)
        if place and isinstance(part, ast.expr) and spelled(part) == text:
            yield part


def _earlier(program: Program, node: ast.Call, setups: list[Setup]) -> ast.Call | None:
    """A set-up of the same raw model that surely ran before, on the same Fabric."""
    found: set[ast.Call] = set()
    for setup in setups:
        if setup.method not in _MODULES or not setup.args:
            return None
        module = only(_objects(setup)[0][0].value)
        makers = {obj for obj in _made_of(program, module, setup) if obj.node is not node} if module else set()
        if module is None or not makers or not _is_one(program, module):
            return None
        calls = {obj.node for obj in makers if obj.fabric in setup.fabrics and len(setup.fabrics) == 1}
        sure = {call for call in calls if surely_before(program, call, setup)}
        if not sure:
            return None
        found |= sure
    return min(found, key=lambda call: (call.lineno, call.col_offset)) if found else None


def _made_of(program: Program, module: Obj, setup: Setup) -> list[Wrapped]:
    """The wrappers that set-ups had made of a raw model before a call."""
    use = program.interpreter.uses.get((module, "setup", setup.node, setup.frame))
    found: Value = frozenset() if use is None else use.after
    return [obj for obj in found if isinstance(obj, Wrapped) and obj.kind == "module"]


def _is_one(program: Program, obj: Obj) -> bool:
    """Whether an object stands for one model only, not for those of a loop or of a list."""
    if isinstance(obj, Instance):
        node = None if obj.root else obj.node
    else:
        node = obj.node if isinstance(obj, Thing) and obj.kind in ("call", "param") else None
    if node is None:
        return False
    frame: Frame | None = getattr(obj, "frame", None)
    spots = [node, *(f.call for f in (frame.chain() if frame is not None else []) if f.call is not None)]
    return not any(program.syntax.loops(spot) for spot in spots if spot in program.syntax.parents)


def _same_statement(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two assignments are the same text, so that the second changes nothing but makes new wrappers."""
    return isinstance(first, ast.Assign) and isinstance(second, ast.Assign) and ast.dump(first) == ast.dump(second)


def _changed(program: Program, first: ast.stmt, second: ast.stmt, names: set[str]) -> str | None:
    """A statement between two set-ups that gives one of their names another object."""
    for part in parts_of(program, program.syntax.function(first)).places(names):
        line = part.lineno
        if not isinstance(part.ctx, ast.Load) and (first.end_lineno or 0) < line < second.lineno:
            return f"`{spelled(part)}` is assigned on line {line}, between the two set-ups"
    return None
