"""Questions of rules about names and places: can this be assigned here, what else is this object called."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from fabric_fix.analysis.events import Call
from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.modules import SHIFT
from fabric_fix.analysis.objects import Obj, Value, Wrapped
from fabric_fix.analysis.places import root_name, spelled
from fabric_fix.analysis.program import Program
from fabric_fix.containers import item_problem


def binding_problem(program: Program, target: ast.expr, at: ast.AST) -> str | None:
    """Why a place cannot simply be assigned where `at` stands, or None when it can."""
    text = spelled(target)
    if text is None:
        return f"`{ast.unparse(target)}` is not a name that the result could be bound to: give it one, and pass that"
    if isinstance(program.syntax.parents.find(program.syntax.statement(at)), ast.ClassDef):
        return "it stands in the body of a class, where names are fields of all its objects: set it up in `__init__`"
    if isinstance(target, ast.Name):
        function = program.syntax.function(at)
        scope = program.source.scope(function if function is not None else program.tree)
        if target.id not in scope.locals and target.id not in scope.outer:
            here = "an assignment here would make another, local name"
            return f"`{target.id}` belongs to an enclosing scope, and {here}: set it up there, or return the result"
        return _loop_target(program, target.id, at)
    if isinstance(target, ast.Subscript):
        return item_problem(program, target)
    return _property_problem(program, target)


def _loop_target(program: Program, name: str, at: ast.AST) -> str | None:
    for loop in program.syntax.loops(at):
        target = getattr(loop, "target", None)
        if target is not None and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)):
            kept = "what the loop runs over would keep the raw objects"
            return f"`{name}` is the variable of a loop, and {kept}: collect the results in a list of their own"
    return None


def _property_problem(program: Program, target: ast.expr) -> str | None:
    """A property of the class around, when it has no setter."""
    if not isinstance(target, ast.Attribute) or root_name(target) != "self" or not isinstance(target.value, ast.Name):
        return None
    around = set(program.syntax.ancestors(target))
    for cls in program.interpreter.classes:
        if cls.node in around and cls.method(target.attr) and not cls.method(f"{target.attr}.setter"):
            return f"`{ast.unparse(target)}` is a property without a setter: bind the result to the field behind it"
    return None


def only(value: Value) -> Obj | None:
    """The one object of a value, or None when there are several or none."""
    return next(iter(value)) if len(value) == 1 else None


def place_of(
    events: Iterable[Call], obj_of: dict[Call, Value] | None = None, *, value: Value | None = None
) -> str | None:
    """The shortest name under which exactly `value` can be read at a call, in every context in which it was seen."""
    common: set[str] | None = None
    local: set[str] = set()
    for event in events:
        local |= event.frame.scope.locals
        wanted = value if value is not None else (obj_of or {}).get(event, frozenset())
        names = {name for name, held in event.places.items() if held == wanted and wanted}
        common = names if common is None else common & names
    if not common:
        return None
    return min(common, key=lambda name: (name.partition(".")[0] not in local, name.count("."), len(name), name))


def is_wrapped(value: Value, kind: str = "module") -> bool:
    """Whether a value surely is a wrapped object of that kind."""
    return bool(value) and all(isinstance(obj, Wrapped) and obj.kind == kind for obj in value)


def inside_fabric(program: Program, node: ast.AST) -> bool:
    """Whether a node stands in a subclass of Fabric, which may talk to its strategy as Fabric itself does."""
    around = set(program.syntax.ancestors(node))
    return any(cls.kind == "fabric" and cls.node in around for cls in program.interpreter.classes)


def statement_in(frame: Frame | None, statement: ast.stmt, wanted: Frame) -> ast.stmt | None:
    """The statement of a frame during which something in a called frame happens."""
    while frame is not None:
        if frame is wanted:
            return statement
        if frame.call_stmt is None:
            return None
        statement, frame = frame.call_stmt, frame.caller
    return None


def listed(names: Iterable[str]) -> str:
    """Names for a message: `a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def caller_line(event: Call) -> int | None:
    """The line of the call that leads to the function of an event; None where none is known."""
    caller = event.frame.call
    return None if caller is None else getattr(caller, "lineno", None)


def same_file(one: ast.AST, other: ast.AST) -> bool:
    """Whether two nodes stand in one file of the project."""
    return getattr(one, "lineno", 0) // SHIFT == getattr(other, "lineno", 0) // SHIFT


def has_node(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a node stands in another one (or is it)."""
    return any(part is inner for part in ast.walk(outer))
