"""`with` blocks: what entering one changes until it is left."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fabric_fix.analysis import assign, known
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import External, FabricObj, Function, Thing, Value


def enter(it: Interpreter, item: ast.withitem) -> Callable[[], None]:
    """Evaluate a context manager and enter it; gives what undoes it."""
    value = evaluate(it, item.context_expr)
    if item.optional_vars is not None:
        assign.assign(it, item.optional_vars, value)
    if expects_error(it, item.context_expr, value):
        return _counted(it, "expecting")
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return _nothing
    for callee in quiet(it, call.func):
        if isinstance(callee, External) and _stops_gradient(callee.path, call):
            return _counted(it, "no_grad")
    return _fabric_context(it, call)


_EXPECTING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
"""`pytest.raises` and the methods of `unittest.TestCase`: what runs within is there to fail."""


def expects_error(it: Interpreter, context: ast.expr, value: Value) -> bool:
    """Whether a `with` block expects an error: in every case, in some, or as the parameters of a test say."""
    if isinstance(context, ast.Call):
        return last_name(context.func) in _EXPECTING
    if isinstance(context, ast.IfExp):
        return any(expects_error(it, branch, value) for branch in (context.body, context.orelse))
    nodes = (obj.node for obj in value if isinstance(obj, Thing) and obj.kind == "call")
    if any(isinstance(node, ast.Call) and last_name(node.func) in _EXPECTING for node in nodes):
        return True
    return isinstance(context, ast.Name) and _is_given_errors(it, context.id)


def _is_given_errors(it: Interpreter, name: str) -> bool:
    """Whether a parameter of a test can be such a block: `@pytest.mark.parametrize("expected", [raises(…), …])`."""
    function = it.frame.function
    if function is None or isinstance(function.node, ast.Lambda) or name not in it.frame.entry:
        return False
    given = (part for decorator in function.node.decorator_list for part in ast.walk(decorator))
    return any(isinstance(part, ast.Call) and last_name(part.func) in _EXPECTING for part in given)


def is_there_to_fail(function: Function) -> bool:
    """Whether a test is marked to fail always, and not only where it is flaky: on some machines, or not strictly."""
    for decorator in getattr(function.node, "decorator_list", ()):
        call = decorator if isinstance(decorator, ast.Call) else None
        name = last_name(decorator if call is None else call.func)
        if name == "expectedFailure" or (name == "xfail" and (call is None or _is_always(call))):
            return True
    return False


def _is_always(mark: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in mark.keywords}
    strict = given.get("strict")
    if isinstance(strict, ast.Constant) and strict.value:
        return not mark.args and "condition" not in given
    return not mark.args and given.keys() <= {"reason", "run"}


def _stops_gradient(path: str, call: ast.Call) -> bool:
    if path in known.NO_GRAD:
        return not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False)
    if path in ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"):
        return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value is False
    return False


def _fabric_context(it: Interpreter, call: ast.Call) -> Callable[[], None]:
    if not isinstance(call.func, ast.Attribute):
        return _nothing
    receivers = quiet(it, call.func.value)
    if not any(isinstance(obj, FabricObj) for obj in receivers):
        return _nothing
    if call.func.attr == "no_backward_sync" and (call.args or call.keywords):
        module = call.args[0] if call.args else call.keywords[0].value
        return _synchronising(it, quiet(it, module))
    if call.func.attr == "init_module" and _asks_empty(call):
        return _counted(it, "meta")
    return _nothing


def _asks_empty(call: ast.Call) -> bool:
    """`empty_init=` that can be true: FSDP then makes the parameters on the meta device (`fsdp.py`)."""
    values = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("empty_init", None))]
    return any(not (isinstance(v, ast.Constant) and not v.value) for v in values)


def _nothing() -> None:
    """Undo nothing."""


def _counted(it: Interpreter, counter: str) -> Callable[[], None]:
    setattr(it, counter, getattr(it, counter) + 1)

    def undo() -> None:
        setattr(it, counter, getattr(it, counter) - 1)

    return undo


def _synchronising(it: Interpreter, modules: Value) -> Callable[[], None]:
    it.sync.append(modules)

    def undo() -> None:
        it.sync.pop()

    return undo
