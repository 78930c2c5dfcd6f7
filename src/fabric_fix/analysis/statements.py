"""Statements: how each changes the state. `run` returns whether the end of the block is reached."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from fabric_fix.analysis import assign, conditions, contexts, definitions, imports, questions, texts
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.frames import State, differing
from fabric_fix.analysis.interp import MAX_LOOPS, Interpreter
from fabric_fix.analysis.iterate import elements
from fabric_fix.analysis.objects import EMPTY, External, FabricObj, Lazy, Thing, Value


def run(it: Interpreter, body: list[ast.stmt]) -> bool:
    """Walk statements in order; False when control never comes out below them."""
    for stmt in body:
        outer, it.stmt = it.stmt, stmt
        it.step()
        alive = _STATEMENTS[type(stmt)](it, stmt)
        it.stmt = outer
        if not alive:
            return False
    return True


_EXITS = frozenset({"sys.exit", "os._exit", "os.abort", "builtins.exit", "builtins.quit"})

_EXIT_NAMES = frozenset(path.rpartition(".")[2] for path in _EXITS)


def _expr(it: Interpreter, stmt: ast.Expr) -> bool:
    evaluate(it, stmt.value)
    return not (isinstance(stmt.value, ast.Call) and _ends_program(it, stmt.value.func))


def _ends_program(it: Interpreter, func: ast.expr) -> bool:
    """Whether a call ends the program: `sys.exit(...)` and its kin, `parser.error(...)`."""
    if not isinstance(func, (ast.Name, ast.Attribute)):
        return False
    if isinstance(func, ast.Attribute) and func.attr in ("error", "exit"):
        owners = quiet(it, func.value)
        if owners and all(isinstance(o, Thing) and o.callee.endswith("ArgumentParser") for o in owners):
            return True
    if isinstance(func, ast.Attribute) and func.attr not in _EXIT_NAMES:
        return False
    called = quiet(it, func)
    return bool(called) and all(isinstance(obj, External) and obj.path in _EXITS for obj in called)


def _assign(it: Interpreter, stmt: ast.Assign) -> bool:
    value = evaluate(it, stmt.value)
    for target in stmt.targets:
        assign.assign(it, target, value)
    return True


def _ann_assign(it: Interpreter, stmt: ast.AnnAssign) -> bool:
    if stmt.value is not None:
        value = evaluate(it, stmt.value)
        if it.annotated(stmt.annotation, it.frame) == "fabric":
            value = it.promote(value, "", stmt.value)
        assign.assign(it, stmt.target, value)
    return True


def _aug_assign(it: Interpreter, stmt: ast.AugAssign) -> bool:
    assign.augment(it, stmt)
    return True


def _return(it: Interpreter, stmt: ast.Return) -> bool:
    value = evaluate(it, stmt.value) if stmt.value is not None else it.const(None)
    for obj in value:
        it.use(obj, "return", stmt)
    it.frame.returns.append((value, it.state))
    return False


def _raise(it: Interpreter, stmt: ast.Raise) -> bool:
    for part in (stmt.exc, stmt.cause):
        if part is not None:
            evaluate(it, part)
    return False


def _assert(it: Interpreter, stmt: ast.Assert) -> bool:
    conditions.truth(it, stmt.test)
    conditions.refine(it, stmt.test, True)
    return True


def _delete(it: Interpreter, stmt: ast.Delete) -> bool:
    for target in stmt.targets:
        if isinstance(target, ast.Name):
            it.state.drop(it.frame, target.id)
        elif isinstance(target, ast.Attribute):
            for obj in evaluate(it, target.value):
                it.use(obj, "delattr", target, target.attr)
    return True


def _nothing(it: Interpreter, stmt: ast.stmt) -> bool:
    return True


def _if(it: Interpreter, stmt: ast.If) -> bool:
    truth = conditions.truth(it, stmt.test)
    before = it.state
    after: list[State] = []
    for branch, body in ((True, stmt.body), (False, stmt.orelse)):
        if truth is (not branch):
            continue
        it.state = before.copy()
        conditions.refine(it, stmt.test, branch)
        if run(it, body):
            after.append(it.state)
    if len(after) == 2:
        _mark_flags(it, stmt, before, after)
    return _merge(it, after, before)


def _mark_flags(it: Interpreter, stmt: ast.stmt, before: State, ends: list[State]) -> None:
    """Flags and names of strategies that are others after one branch than after the other stand for its test too."""
    first, second = ends
    atoms = [end.assumed - before.assumed - other.assumed for end, other in ((first, second), (second, first))]
    if not any(atoms):
        return
    for owner in differing(first.tables, second.tables):
        mine, theirs = first.table(owner), second.table(owner)
        if owner is None or mine is theirs or owner not in second.tables:
            continue
        for name in [n for n, value in mine.items() if not n.startswith("#") and theirs.get(n, value) != value]:
            for index, end in enumerate(ends):
                key = (stmt, index, it.frame)
                end.put(owner, name, texts.marked(it, end.table(owner)[name], key, atoms[index]))


def _merge(it: Interpreter, states: list[State], fallback: State) -> bool:
    if not states:
        it.state = fallback
        return False
    it.state = states[0]
    for other in states[1:]:
        it.state.join(other)
    return True


def _for(it: Interpreter, stmt: ast.For | ast.AsyncFor) -> bool:
    iterated = evaluate(it, stmt.iter)
    element = elements(it, iterated, stmt.iter)

    def bind() -> None:
        assign.assign(it, stmt.target, element)

    return _loop(it, stmt.body, stmt.orelse, bind, endless=False)


def _while(it: Interpreter, stmt: ast.While) -> bool:
    endless = isinstance(stmt.test, ast.Constant) and bool(stmt.test.value)

    def test() -> None:
        evaluate(it, stmt.test)

    return _loop(it, stmt.body, stmt.orelse, test, endless=endless)


def _loop(
    it: Interpreter, body: list[ast.stmt], orelse: list[ast.stmt], head: Callable[[], None], *, endless: bool
) -> bool:
    """Walk a loop's body until its state settles; the body is looked at twice at least, so that it meets itself."""
    entry = it.state.copy()
    exits: list[State] = []
    for turn in range(MAX_LOOPS):
        it.breaks.append([])
        it.continues.append([])
        it.state = entry.copy()
        head()
        alive = run(it, body)
        ends = it.continues.pop() + ([it.state] if alive else [])
        exits.extend(it.breaks.pop())
        settled = entry.copy()
        for end in ends:
            settled.join(end)
        if turn and settled.same(entry):
            break
        entry = settled
        if not ends:
            break
    it.state = entry
    alive = True
    if endless:
        alive = False
    elif orelse:
        alive = run(it, orelse)
    return _merge(it, exits + ([it.state] if alive else []), entry)


def _break(it: Interpreter, stmt: ast.Break) -> bool:
    if it.breaks:
        it.breaks[-1].append(it.state)
    return False


def _continue(it: Interpreter, stmt: ast.Continue) -> bool:
    if it.continues:
        it.continues[-1].append(it.state)
    return False


def _with(it: Interpreter, stmt: ast.With | ast.AsyncWith) -> bool:
    expecting = it.expecting
    entered = [contexts.enter(it, item) for item in stmt.items]
    alive = run(it, stmt.body) if it.expecting == expecting else _run_until_error(it, stmt.body)
    for undo in reversed(entered):
        undo()
    return alive


def _run_until_error(it: Interpreter, body: list[ast.stmt]) -> bool:
    """Walk a block that is left by an error, which is caught: what its last statement does is not done."""
    if run(it, body[:-1]):
        before = it.state.copy()
        run(it, body[-1:])
        it.state = before if _is_of_fabric(it, body[-1]) else before.join(it.state)
    return True


def _is_of_fabric(it: Interpreter, stmt: ast.stmt) -> bool:
    """Whether a statement is one call of a Fabric's method, which has done nothing when it fails."""
    call = stmt.value if isinstance(stmt, (ast.Expr, ast.Assign)) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return False
    return any(isinstance(obj, FabricObj) for obj in quiet(it, call.func.value))


def _try(it: Interpreter, stmt: ast.Try) -> bool:
    before = it.state.copy()
    alive = run(it, stmt.body)
    broken = before.join(it.state)
    ends: list[State] = []
    if alive and (not stmt.orelse or run(it, stmt.orelse)):
        ends.append(it.state)
    for handler in stmt.handlers:
        it.state = broken.copy()
        if handler.name:
            it.store(handler.name, frozenset((it.thing("name", handler, handler.name),)))
        if run(it, handler.body):
            ends.append(it.state)
    reached = _merge(it, ends, broken)
    if stmt.finalbody:
        reached = run(it, stmt.finalbody) and reached
    return reached


def _match(it: Interpreter, stmt: ast.Match) -> bool:
    subject = evaluate(it, stmt.subject)
    before = it.state
    rest = before.copy()
    ends: list[State] = []
    total = False
    for case in stmt.cases:
        it.state = rest.copy()
        asked = questions.of_pattern(it, stmt.subject, case.pattern)
        if asked is not None and conditions.decided(it, asked) is False:
            continue
        if asked is not None:
            conditions.settle(it, asked, True)
        _capture(it, case.pattern, subject)
        if any(isinstance(part, ast.MatchClass) for part in ast.walk(case.pattern)):
            for obj in subject:
                it.use(obj, "isinstance", stmt.subject, ast.unparse(case.pattern))
        if case.guard is not None:
            conditions.truth(it, case.guard)
            conditions.refine(it, case.guard, True)
        if run(it, case.body):
            ends.append(it.state)
        it.state = rest
        always = case.guard is None and (
            conditions.decided(it, asked) is True if asked is not None else _takes_all(case.pattern)
        )
        if always:
            total = True
            break
        if asked is not None and case.guard is None:
            conditions.settle(it, asked, False)
        elif case.guard is not None and _takes_all(case.pattern):
            _capture(it, case.pattern, subject)
            conditions.refine(it, case.guard, False)
    if not total:
        ends.append(rest)
    return _merge(it, ends, before)


def _takes_all(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _capture(it: Interpreter, pattern: ast.pattern, subject: Value) -> None:
    for node in ast.walk(pattern):
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            whole = node is pattern
            it.store(name, subject if whole else frozenset((it.thing("item", node, name),)))


def _import(it: Interpreter, stmt: ast.Import) -> bool:
    for alias in stmt.names:
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        it.store(alias.asname or name, imports.imported(it, name, 0, ""))
    return True


def _import_from(it: Interpreter, stmt: ast.ImportFrom) -> bool:
    module = stmt.module or ""
    for alias in stmt.names:
        if alias.name == "*":
            it.stars.setdefault(it.frame.module, []).append(Lazy(it.frame.module, module, stmt.level, ""))
            continue
        it.store(alias.asname or alias.name, imports.imported(it, module, stmt.level, alias.name))
    return True


_STATEMENTS: dict[type[ast.stmt], Callable[[Interpreter, Any], bool]] = {
    ast.Expr: _expr,
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Pass: _nothing,
    ast.Global: _nothing,
    ast.Nonlocal: _nothing,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.FunctionDef: definitions.function,
    ast.AsyncFunctionDef: definitions.function,
    ast.ClassDef: definitions.klass,
}
for _newer in ("TryStar", "TypeAlias"):
    if hasattr(ast, _newer):
        _STATEMENTS[getattr(ast, _newer)] = _try if _newer == "TryStar" else _nothing

__all__ = ["EMPTY", "run"]
