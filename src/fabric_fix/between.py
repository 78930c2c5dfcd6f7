"""What stands between two statements, and could tell that one of them moves past it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import External
from fabric_fix.analysis.places import root_name, spelled
from fabric_fix.analysis.program import Program

_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_OF_PARAMETERS = frozenset(
    {"device", "dtype", "is_cuda", "data", "grad", "clone", "detach", "storage", "data_ptr", "to", "cpu"}
)
"""What a set-up changes of parameters: it moves them, casts them, shards them."""
_QUIET_CALLS = frozenset(
    {"print", "info", "debug", "warning", "log", "len", "sum", "str", "int", "float", "bool", "format", "numel"}
)
_QUIET_METHODS = frozenset({"parameters", "train", "eval"})


def leaving_problem(program: Program, statements: Iterable[ast.stmt]) -> str | None:
    """Control that can leave between two statements, so that the second is not reached; or None."""
    for statement in statements:
        for node in _own_nodes(statement):
            if isinstance(node, _LEAVING) or (
                isinstance(node, (ast.Break, ast.Continue)) and not _loop_inside(program, node, statement)
            ):
                return f"control can leave between the calls, on line {getattr(node, 'lineno', statement.lineno)}"
            if isinstance(node, ast.ExceptHandler) and not _ends_raising(node.body):
                return f"an exception can be caught between the calls, on line {node.lineno}"
    return None


def caught_problem(program: Program, statement: ast.stmt) -> str | None:
    """A handler that goes on when something fails in the block of a statement; or None."""
    for around in program.syntax.ancestors(statement):
        if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if isinstance(around, ast.Try) and not all(_ends_raising(handler.body) for handler in around.handlers):
            line = around.handlers[0].lineno
            return f"an exception between the calls is caught on line {line}, and the program goes on"
    return None


def _ends_raising(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Raise):
        return True
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and "exit" in ast.unparse(last.value.func)


def _own_nodes(statement: ast.AST) -> Iterable[ast.AST]:
    """The nodes of a statement that run when it runs: not those of functions and classes defined in it."""
    stack = [statement]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(node))


def _loop_inside(program: Program, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether a `break` or `continue` is of a loop within the statement."""
    for around in [*program.syntax.ancestors(node)]:
        if isinstance(around, (ast.For, ast.AsyncFor, ast.While)):
            return True
        if around is statement:
            return False
    return False


def capture_problem(program: Program, statements: Sequence[ast.stmt], place: str) -> str | None:
    """A use of a place that keeps the object under another name, or could: a default, a container, an alias."""
    for statement in statements:
        for node in ast.walk(statement):
            if spelled_read(node) != place:
                continue
            assert isinstance(node, ast.expr)
            parent = program.syntax.parents[node]
            if not _looks_only(node, parent):
                return f"`{place}` is kept under another name on line {node.lineno}, before it would be set up"
    return None


def spelled_read(node: ast.AST) -> str | None:
    """The place that a node reads, or None."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
        return spelled(node)
    return None


def _looks_only(node: ast.expr, parent: ast.AST) -> bool:
    """Whether a use goes on to an attribute, a call (judged by what is seen of it) or a test, and keeps nothing."""
    if isinstance(parent, ast.Attribute):
        return parent.attr != "forward"
    if isinstance(parent, ast.keyword):
        return True
    if isinstance(parent, ast.Call):
        return node is not parent.func or True
    if isinstance(parent, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops)
    if isinstance(parent, ast.Assign) and parent.value is node:
        return all(spelled(target) == spelled(node) for target in parent.targets)
    return isinstance(parent, (ast.FormattedValue, ast.UnaryOp, ast.If, ast.Assert))


def parameters_problem(program: Program, statements: Sequence[ast.stmt], place: str) -> str | None:
    """A use of a model's parameters that sees what a set-up does to them; creating an optimizer and counting do not."""
    tainted: set[str] = set()
    for statement in statements:
        reads = any(_takes_parameters(node, place) for node in ast.walk(statement))
        uses = any(isinstance(node, ast.Name) and node.id in tainted for node in ast.walk(statement))
        if not reads and not uses:
            continue
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in _OF_PARAMETERS
                and not _is_fabric(program, root_name(node))
            ):
                return f"on line {node.lineno} `.{node.attr}` of the parameters is used, which the set-up changes"
        tainted |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return None


def _takes_parameters(node: ast.AST, place: str) -> bool:
    """`model.parameters()`, `model.part.parameters()`, `model.state_dict()`."""
    if not (isinstance(node, ast.Attribute) and node.attr in ("parameters", "buffers", "state_dict")):
        return False
    owner = spelled(node.value)
    return owner is not None and (owner == place or owner.startswith((f"{place}.", f"{place}[")))


def acting_problem(program: Program, statements: Sequence[ast.stmt], model: str | None) -> str | None:
    """A call that could use or change what a statement moves past it reads: of the program's own functions, say."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and not _is_quiet(program, node, model):
                called = ast.unparse(node.func)
                return f"`{called}` is called on line {node.lineno}, and could use or change what it needs"
            target = spelled(node) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else None
            if target is not None and model is not None and target.startswith(f"{model}."):
                return f"`{target}` is set on line {getattr(node, 'lineno', statement.lineno)}"
    return None


def _is_quiet(program: Program, call: ast.Call, model: str | None) -> bool:
    name = last_name(call.func)
    if name in _QUIET_CALLS or name in ("parameters", "named_parameters"):
        return True
    owner = spelled(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if owner is not None and owner == model:
        return name in _QUIET_METHODS
    root = root_name(call.func)
    return root is not None and _is_library(program, root, call)


def _is_library(program: Program, name: str, at: ast.AST) -> bool:
    """Whether a name is of an imported library (a loss class, `torch.…`), or a Fabric."""
    it = program.interpreter
    if _is_fabric(program, name):
        return True
    value = it.state.get(it.module, name)
    function = program.syntax.function(at)
    local = function is not None and name in program.source.scope(function).locals
    return not local and bool(value) and all(isinstance(obj, External) for obj in value or ())


def _is_fabric(program: Program, name: str | None) -> bool:
    """Whether a name is that of a Fabric: something is set up, or goes backward, through it."""
    return name in program.once(_fabric_names)


def _fabric_names(program: Program) -> frozenset[str | None]:
    calls = (*program.setups(), *program.backwards(), *program.no_syncs())
    return frozenset(spelled(call.func.value) for call in calls if isinstance(call.func, ast.Attribute))
