"""Questions of rules about set-up statements: which model, which optimizer, made where, and what stands between."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup, Use
from fabric_fix.analysis.fabric_calls import models_of_optimizer
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import FabricObj, Instance, Obj, Thing, Value, Wrapped, raw, raws
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import Edit, ReplaceExpression
from fabric_fix.finding import Span
from fabric_fix.records import Record
from fabric_fix.scopes import statement_in


class Place(Record):
    """A set-up call that is the whole right side of an assignment, in its block."""

    call: ast.Call
    setups: list[Setup]
    statement: ast.Assign
    block: list[ast.stmt]
    index: int

    @property
    def target(self) -> ast.expr:
        """What the result is assigned to."""
        return self.statement.targets[0]

    @property
    def receiver(self) -> str:
        """The Fabric, as written."""
        assert isinstance(self.call.func, ast.Attribute)
        return ast.unparse(self.call.func.value)

    @property
    def fabrics(self) -> frozenset[FabricObj]:
        """The Fabrics that it is called on."""
        return frozenset().union(*(setup.fabrics for setup in self.setups))


def place_of_setup(program: Program, call: ast.Call, setups: list[Setup]) -> Place | str:
    """Where a set-up call stands; a reason when it is not a plain assignment of its result."""
    statement = program.syntax.statement(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or statement.value is not call:
        return f"the result of `{setups[0].method}` on line {call.lineno} is not simply assigned"
    if not isinstance(call.func, ast.Attribute) or setups[0].starred:
        return f"the arguments of `{setups[0].method}` on line {call.lineno} are not written out"
    block = program.syntax.block(statement)
    return Place(call, setups, statement, block, block.index(statement))


def families(setups: Iterable[Setup]) -> frozenset[str]:
    """The strategies that can be in use at a set-up, over all its contexts."""
    return frozenset().union(*(setup.strategies for setup in setups))


def strategy_names(found: frozenset[str]) -> str:
    """Families for a message."""
    names = {
        "xla": "XLA",
        "xla_fsdp": "XLA FSDP",
        "model_parallel": "model parallel",
        "fsdp": "FSDP",
        "fsdp_original_params": "FSDP with `use_orig_params=False`",
    }
    shown = sorted({"DeepSpeed" if known.is_deepspeed(f) else names.get(f, f) for f in found})
    return " and ".join(shown)


def wants(found: frozenset[str], verb: str = "want") -> str:
    """Families and what they do, for a message: `XLA FSDP wants`, `DeepSpeed and XLA want`."""
    names = strategy_names(found)
    return f"{names} {verb}" if " and " in names else f"{names} {verb}s"


def argument_values(setup: Setup, first: int = 0) -> list[Value]:
    """The values of the positional arguments from one on."""
    return [argument.value for argument in setup.args if argument.name is None][first:]


def optimizer_arguments(setups: list[Setup]) -> list[ast.expr]:
    """The optimizers of a `setup` or `setup_optimizers` call, as written."""
    skip = 0 if setups[0].method == "setup_optimizers" else 1
    if any(argument.name == "module" for argument in setups[0].args):
        skip = 0
    return [argument.node for argument in setups[0].args if argument.name is None][skip:]


def module_argument(setup: Setup) -> ast.expr | None:
    """The module of a `setup` or `setup_module` call, as written."""
    found = setup.argument("module", 0)
    return None if found is None else found.node


def models_of(program: Program, setups: list[Setup], position: int) -> frozenset[Obj]:
    """The raw models that the optimizer at a position of `setup_optimizers` has parameters of."""
    found: set[Obj] = set()
    for setup in setups:
        values = argument_values(setup)
        if position < len(values):
            for obj in values[position]:
                found |= models_of_optimizer(obj)
    if len(found) > 1:  # configuration objects and the like may have gone into a factory beside the model
        known_models = found & program.once(Program.set_up_models)
        if known_models and not any(_has_parameters_of_its_own(obj) for obj in found - known_models):
            found = known_models
    return frozenset(found)


def _has_parameters_of_its_own(obj: Obj) -> bool:
    """Whether an object beside the models surely is a model or a parameter as well."""
    if isinstance(obj, Instance):
        return obj.cls.kind == "module"
    return isinstance(obj, Thing) and (known.is_module_class(obj.callee) or obj.callee.endswith(".Parameter"))


def setups_of_model(program: Program, model: Obj) -> dict[ast.Call, list[Setup]]:
    """The calls that set a raw model up."""
    return program.once(_setups_by_model).get(model, {})


def _setups_by_model(program: Program) -> dict[Obj, dict[ast.Call, list[Setup]]]:
    found: dict[Obj, dict[ast.Call, list[Setup]]] = {}
    for call, setups in program.setups().items():
        for setup in setups:
            argument = setup.argument("module", 0) if setup.method in ("setup", "setup_module") else None
            for model in raws(argument.value) if argument is not None else ():
                found.setdefault(model, {}).setdefault(call, []).append(setup)
    return found


def is_meta(setups: Iterable[Setup]) -> bool:
    """Whether a model of a set-up was made under `init_module(empty_init=True)`."""
    for setup in setups:
        argument = setup.argument("module", 0)
        for obj in argument.value if argument else ():
            if isinstance(obj, (Thing, Instance)) and obj.meta:
                return True
    return False


def creation(program: Program, optimizer: ast.expr, place: Place) -> ast.Assign | str:
    """The statement of the same block that makes an optimizer, above its set-up; or why there is none."""
    text = spelled(optimizer)
    if text is None:
        return f"`{ast.unparse(optimizer)}` is made inside the call"
    for statement in reversed(place.block[: place.index]):
        if isinstance(statement, ast.Assign) and any(spelled(target) == text for target in statement.targets):
            if len(statement.targets) == 1 and isinstance(statement.value, ast.Call):
                return statement
            break
        if any(_stores(node, text) for node in ast.walk(statement)):
            break
    return f"`{text}` is not made by a statement of its own beside its set-up, so its creation cannot be moved"


def _stores(node: ast.AST, text: str) -> bool:
    return (
        isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
        and isinstance(node.ctx, ast.Store)
        and spelled(node) == text
    )


def makes_optimizer(program: Program, statement: ast.Assign) -> bool:
    """Whether a statement's value is made by calling an optimizer's class, with nothing else behind it."""
    for obj in created_at(program, statement.value)[:1]:
        return known.is_optimizer_class(obj.callee) if isinstance(obj, Thing) else obj.cls.kind == "optimizer"
    return False


def created_at(program: Program, node: ast.AST) -> list[Thing | Instance]:
    """The call results and instances that were made at a place."""
    return program.once(_created).get(node, [])


def _created(program: Program) -> dict[ast.AST | None, list[Thing | Instance]]:
    found: dict[ast.AST | None, list[Thing | Instance]] = {}
    for node, obj in program.interpreter.created():
        if isinstance(obj, (Thing, Instance)):
            found.setdefault(node, []).append(obj)
    return found


def reads(node: ast.AST, text: str) -> bool:
    """Whether a place is read anywhere in a node."""
    return any(True for _ in readings(node, text))


def readings(node: ast.AST, text: str) -> Iterable[ast.expr]:
    """The expressions in a node that read a place."""
    for part in ast.walk(node):
        if (
            isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))
            and isinstance(part.ctx, ast.Load)
            and spelled(part) == text
        ):
            yield part


def stored_places(node: ast.AST) -> set[str]:
    """The places that a statement assigns, and the names of their owners."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, (ast.Store, ast.Del)):
            text = spelled(part)
            if text:
                found.add(text)
        elif isinstance(part, ast.NamedExpr):
            found.add(part.target.id)
    return found


def moving_problem(moved: ast.stmt, passed: Sequence[ast.stmt], allowed: frozenset[str] = frozenset()) -> str | None:
    """Why a statement cannot move down past others: one of them uses what it makes, or changes what it reads."""
    made = stored_places(moved)
    read = {text for part in ast.walk(moved) if isinstance(part, ast.expr) and (text := spelled(part))} - made - allowed
    for statement in passed:
        line = statement.lineno
        for text in sorted(made):
            if reads(statement, text) or text in stored_places(statement):
                return f"`{text}` is used on line {line}, before its new place"
        changed = stored_places(statement) & read
        if changed:
            return f"`{min(changed)}` is assigned on line {line}, before its new place"
        if any(
            isinstance(part, (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Yield))
            for part in ast.walk(statement)
        ):
            return f"control can leave on line {line}, before its new place"
    return None


def source_problem(made: ast.expr, source: str | None, whole: bool) -> str | None:
    """Why an optimizer is not made from the parameters of a model in a way that its wrapper can give as well.

    With `whole`, only `model.parameters()` of the model itself counts: under XLA FSDP, and FSDP with flat parameters,
    only the wrapper has the sharded ones.
    """
    parts = [] if source is None else list(readings(made, source))
    if not parts:
        return (
            f"the optimizer on line {made.lineno} is not made from the parameters of `{source or 'the model'}` directly"
        )
    of_all = ("parameters", "named_parameters")
    attributes = [node for node in ast.walk(made) if isinstance(node, ast.Attribute)]
    owned = {id(node.value) for node in attributes if not whole or node.attr in of_all}
    if any(id(part) not in owned for part in parts):
        part = next(part for part in parts if id(part) not in owned)
        around = next(n for n in ast.walk(made) if part in ast.iter_child_nodes(n))
        used = ast.unparse(around)
        return f"line {made.lineno} uses `{used}`, which the wrapped model does not give: pass `{source}.parameters()`"
    return None


def computing_problem(made: ast.Assign) -> str | None:
    """Why an optimizer's creation cannot move past other statements: its arguments are computed by calls."""
    assert isinstance(made.value, ast.Call)
    for node in ast.walk(made.value):
        if isinstance(node, ast.Call) and node is not made.value:
            name = last_name(node.func)
            if name not in (
                "parameters",
                "named_parameters",
                "list",
                "tuple",
                "dict",
                "filter",
                "chain",
                "float",
                "int",
            ):
                return f"an argument is computed by `{name or 'a call'}`, which would run later"
    return None


def renamed(nodes: Iterable[ast.AST], old: str, new: str) -> list[Edit]:
    """Edits that read another place wherever the nodes read one."""
    return [ReplaceExpression(Span.of(part), new) for node in nodes for part in readings(node, old)]


def wrapped_of(program: Program, model: Obj) -> list[Wrapped]:
    """The wrapped modules that set-ups make of a raw model."""
    return [obj for obj in program.interpreter.wrapped() if obj.kind == "module" and obj.inner is model]


def owners(obj: Obj) -> list[Obj]:
    """An object, what it is an attribute or item of, and so on."""
    found = [obj]
    while isinstance(obj, Thing) and obj.kind in ("attr", "item") and obj.base is not None:
        obj = obj.base
        found.append(raw(obj))
    return found


def targets_of(place: Place) -> list[ast.expr]:
    """The targets of an assignment, one by one."""
    return list(place.target.elts) if isinstance(place.target, (ast.Tuple, ast.List)) else [place.target]


def trains(program: Program, use: Use) -> bool:
    """Whether a loop over a loader trains: a backward runs in it."""
    for events in program.backwards().values():
        for event in events:
            statement = statement_in(event.frame, event.stmt, use.frame)
            if statement is not None and (statement is use.stmt or use.stmt in program.syntax.ancestors(statement)):
                return True
    return False
