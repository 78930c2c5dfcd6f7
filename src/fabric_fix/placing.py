"""Where a set-up can be inserted: once model and optimizer exist, before the first use that can tell. For FF104."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Call, Use
from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.objects import UNBOUND, Obj
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import Where
from fabric_fix.records import Record
from fabric_fix.scopes import statement_in

_TELLING = frozenset(
    {
        "call",
        "sync",
        "backward",
        "pass",
        "step",
        "save",
        "isinstance",
        "type",
        "clip",
        "load",
        "store",
        "strategy",
        "return",
        "keep",
        "bind",
        "identity",
    }
)


class Plan(Record):
    """Where a set-up would go, and under which names."""

    model: str
    optimizers: tuple[str, ...]
    fabric: str
    anchor: ast.stmt
    where: Where

    @property
    def code(self) -> str:
        """The statement to insert."""
        names = ", ".join((self.model, *self.optimizers))
        return f"{names} = {self.fabric}.setup({names})"


def plans(program: Program, call: Call, models: list[Obj], optimizers: list[Obj]) -> Iterator[Plan]:
    """The places where a set-up could go: for each function that names the model, its optimizers and Fabric."""
    bindings = program.interpreter.bindings
    shared = set.intersection(*(set(bindings.get(model, {})) for model in models))
    frames = list(dict.fromkeys(frame for frame, _ in shared))
    for frame in sorted(frames, key=lambda frame: frame.depth):
        fabric = _fabric_name(program, frame, call)
        if fabric is None:
            continue
        names = [place for other, place in shared if other is frame]
        choices = [[place for other, place in bindings.get(o, {}) if other is frame] for o in optimizers]
        if not all(choices):
            continue
        for name, *chosen in product(sorted(names, key=_rank), *[sorted(c, key=_rank) for c in choices]):
            plan = _plan(program, frame, call, models, optimizers, name, tuple(dict.fromkeys(chosen)), fabric)
            if plan is not None:
                yield plan


def no_place(program: Program, call: Call, models: list[Obj], optimizers: list[Obj]) -> str:
    """Why there is no plan, and what to do."""
    bindings = program.interpreter.bindings
    named = [(frame, name, made) for model in models for (frame, name), made in bindings.get(model, {}).items()]
    for frame, name, made in sorted(named, key=lambda place: (place[0].depth, *_rank(place[1]))):
        others = [s for o in optimizers for (other, _), s in bindings.get(o, {}).items() if other is frame]
        block = program.syntax.block(made)
        apart = any(program.syntax.in_block(statement, block) is None for statement in others)
        if apart and any(_names_of(program, frame, fabric) for fabric in call.fabrics):
            below = f"line {max(statement.lineno for statement in (made, *others))}"
            return f"`{name}` and its optimizer are made in different blocks: set both up below {below}, in one call"
        if optimizers and not others and any(_names_of(program, frame, fabric) for fabric in call.fabrics):
            return f"the optimizer of `{name}` has no name beside it: give it one, and set both up in one call"
    return "model and optimizer have no names in one function with Fabric: set them up where they are made"


def _rank(place: str) -> tuple[int, str]:
    return (0 if place.startswith("self.") else 1, place)


def _fabric_name(program: Program, frame: Frame, call: Call) -> str | None:
    wanted = frozenset(call.fabrics)
    if len(wanted) != 1:
        return None
    fabric = next(iter(wanted))
    known = program.once(_known_names)
    if (frame, fabric) not in known:
        known[frame, fabric] = _names_of(program, frame, fabric)
    return known[frame, fabric]


def _known_names(program: Program) -> dict[tuple[Frame, Obj], str | None]:
    return {}


def _names_of(program: Program, frame: Frame, fabric: Obj) -> str | None:
    wanted = frozenset((fabric,))
    found = [place for (other, place) in program.interpreter.bindings.get(fabric, {}) if other is frame]
    found += [name for name, value in frame.entry.items() if value == wanted]
    for event in program.interpreter.events.values():
        if event.frame is frame:
            found += [name for name, value in event.places.items() if value == wanted]
    return min(found, key=lambda name: (name.count("."), len(name), name)) if found else None


def _plan(
    program: Program,
    frame: Frame,
    call: Call,
    models: list[Obj],
    optimizers: list[Obj],
    name: str,
    chosen: tuple[str, ...],
    fabric: str,
) -> Plan | None:
    """The statement beside which the set-up goes in one function, or None."""
    bindings = program.interpreter.bindings
    made = [bindings[model][(frame, name)] for model in models]
    block = _common_block(program, made)
    if block is None:
        return None
    statements = [*made, *(s for o in optimizers for (f, p), s in bindings[o].items() if f is frame and p in chosen)]
    statements += _conditions(program, frame, call, fabric)
    indices = [program.syntax.in_block(statement, block) for statement in statements]
    known_indices = list(indices[: len(made) + len(optimizers)])
    if any(index is None for index in known_indices) or _unbound(call, frame, (name, *chosen)):
        return None
    last = max(index for index in indices if index is not None)
    first = _first_telling(program, frame, block, {*models, *optimizers}, last)
    last = max(last, _last_scheduler(program, frame, block, set(optimizers), last, first))
    if first is None:
        return Plan(name, chosen, fabric, block[last], Where.AFTER)
    anchor = block[first]
    if isinstance(anchor, ast.If) and "__name__" in ast.unparse(anchor.test):
        return None
    return Plan(name, chosen, fabric, anchor, Where.BEFORE)


def _common_block(program: Program, statements: list[ast.stmt]) -> list[ast.stmt] | None:
    """The innermost block that all the statements stand in, directly or deeper."""
    block = program.syntax.block(statements[0])
    while any(program.syntax.in_block(statement, block) is None for statement in statements):
        around = next((a for a in program.syntax.ancestors(block[0]) if isinstance(a, ast.stmt)), None)
        if around is None or isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return None
        block = program.syntax.block(around)
    return block


def _conditions(program: Program, frame: Frame, call: Call, fabric: str) -> list[ast.stmt]:
    """What must have run before: the Fabric's own making, and its launch."""
    found = [
        s
        for f in call.fabrics
        for (other, p), s in program.interpreter.bindings.get(f, {}).items()
        if other is frame and p == fabric
    ]
    for event in program.once(_launches):
        if event.fabrics & call.fabrics:
            statement = statement_in(event.frame, event.stmt, frame)
            if statement is not None and not any(argument.name is None for argument in event.args):
                found.append(statement)
    return found


def _launches(program: Program) -> list[Call]:
    return [event for event in program.interpreter.events.values() if type(event) is Call and event.method == "launch"]


def _unbound(call: Call, frame: Frame, names: tuple[str, ...]) -> bool:
    if call.frame is not frame:
        return False
    return any(UNBOUND in call.places.get(name, frozenset()) for name in names)


def _first_telling(program: Program, frame: Frame, block: list[ast.stmt], objs: set[Obj], last: int) -> int | None:
    found: list[int] = []
    telling = program.once(_telling)
    for obj in objs:
        for use in telling.get(obj, ()):
            statement = statement_in(use.frame, use.stmt, frame)
            index = program.syntax.in_block(statement, block) if statement is not None else None
            if index is not None and index > last:
                found.append(index)
    return min(found) if found else None


def _telling(program: Program) -> dict[Obj, list[Use]]:
    """By object: the uses that can tell a set-up one from a raw one."""
    found: dict[Obj, list[Use]] = {}
    for use in program.uses():
        if _tells(use):
            found.setdefault(use.obj, []).append(use)
    return found


def _tells(use: Use) -> bool:
    if use.kind == "method":
        return use.detail not in known.HARMLESS_METHODS
    return use.kind in _TELLING


def _last_scheduler(
    program: Program, frame: Frame, block: list[ast.stmt], optimizers: set[Obj], last: int, first: int | None
) -> int:
    """The last statement that makes a scheduler on the raw optimizer: DeepSpeed's wrapped one is refused there."""
    for use in program.once(_schedulers):
        if use.obj in optimizers:
            statement = statement_in(use.frame, use.stmt, frame)
            index = program.syntax.in_block(statement, block) if statement is not None else None
            if index is not None and index > last and (first is None or index < first):
                last = index
    return last


def _schedulers(program: Program) -> list[Use]:
    """The uses that make schedulers."""
    return [use for use in program.uses() if use.kind == "input" and known.is_scheduler_class(use.detail)]
