"""Definitions: functions and classes become objects; their bodies are walked when they are called."""

from __future__ import annotations

import ast

from fabric_fix.analysis import imports, known
from fabric_fix.analysis.expressions import evaluate, quiet
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import EMPTY, Class, External, Function, Instance, Lazy, Obj, Value

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def function(it: Interpreter, stmt: FunctionNode) -> bool:
    """A `def` statement."""
    made = make_function(it, stmt, None)
    it.store(stmt.name, frozenset((made,)))
    return True


def make_function(it: Interpreter, node: FunctionNode | ast.Lambda, owner: Class | None) -> Function:
    """The function object of a definition in the current frame."""
    made = it.remember(("function", node, it.frame), Function(node, it.frame, owner))
    assert isinstance(made, Function)
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
        for obj in quiet(it, default):
            it.use(obj, "pass", default, "a default of a parameter")
    for decorator in getattr(node, "decorator_list", []):
        for argument in decorator.args if isinstance(decorator, ast.Call) else ():
            for obj in quiet(it, argument):
                it.use(obj, "pass", argument, f"the decorator {ast.unparse(decorator.func)}")
    if not made.decorators and not isinstance(node, ast.Lambda):
        made.decorators = tuple(_decorator(d) for d in node.decorator_list)
        if made not in it.functions:
            it.functions.append(made)
    return made


def _decorator(node: ast.expr) -> str:
    call = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(call) if isinstance(call, (ast.Name, ast.Attribute)) else ""


def klass(it: Interpreter, stmt: ast.ClassDef) -> bool:
    """A `class` statement: bases, methods, class attributes and annotations."""
    made = it.remember(("class", stmt, it.frame), Class(stmt, it.frame))
    assert isinstance(made, Class)
    if made not in it.classes:
        it.classes.append(made)
    bases: list[Obj] = []
    for base in stmt.bases:
        found = evaluate(it, base)
        if it.frame.source.relevance.of_class(stmt):
            found = frozenset().union(*(_opened(it, obj) for obj in found))
        bases.extend(obj for obj in found if isinstance(obj, (Class, External)) and obj is not made)
    made.bases = tuple(bases)
    made.kind = _kind(bases)
    it.store(stmt.name, frozenset((made,)))
    if any(map(_sets_up, stmt.body)):
        _run_body(it, made, stmt.body)
    else:
        _body(it, made, stmt.body)
    return True


def _opened(it: Interpreter, obj: Obj) -> Value:
    """What a class inherits from another file of the project, whatever that file has to do with Fabric."""
    found = imports.opened(it, obj, forced=True) if isinstance(obj, Lazy) else None
    return frozenset((obj,)) if found is None else found


def _kind(bases: list[Obj]) -> str:
    for base in bases:
        kind = (
            base.kind if isinstance(base, Class) else known.class_kind(base.path) if isinstance(base, External) else ""
        )
        if kind:
            return kind
    return ""


def _sets_up(stmt: ast.stmt) -> bool:
    """Whether a statement in the body of a class sets something up, which is done when the class is made."""
    call = stmt.value if isinstance(stmt, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
    func = call.func if isinstance(call, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in known.SETUP_METHODS


def _run_body(it: Interpreter, made: Class, body: list[ast.stmt]) -> None:
    """The body of a class as code that is run, with names of its own that the methods do not see."""
    from fabric_fix.analysis.statements import run

    outer, inner = it.frame, it.frame_of_class(made.node)
    it.state.replace(inner, {})
    for stmt in body:
        if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _method(it, made, stmt)
            continue
        it.frame = inner
        run(it, [stmt])
        it.frame = outer
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            made.annotations[stmt.target.id] = stmt.annotation
    for name, value in it.state.table(inner).items():
        it.set_field(made, name, value)
    it.state.replace(inner, None)


def _body(it: Interpreter, made: Class, body: list[ast.stmt]) -> None:
    for stmt in body:
        if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _method(it, made, stmt)
        elif isinstance(stmt, ast.Assign):
            for target in stmt.targets:
                if isinstance(target, ast.Name):
                    it.set_field(made, target.id, quiet(it, stmt.value))
        elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            made.annotations[stmt.target.id] = stmt.annotation
            if stmt.value is not None:
                it.set_field(made, stmt.target.id, _default(it, stmt.value))
        elif isinstance(stmt, (ast.If, ast.Try)):
            _body(it, made, stmt.body)


def _default(it: Interpreter, value: ast.expr) -> Value:
    """The default of a field: as written, or what `field(default=…)` or `field(default_factory=…)` says."""
    if not (isinstance(value, ast.Call) and last_name(value.func) in ("field", "Field")):
        return quiet(it, value)
    for keyword in value.keywords:
        if keyword.arg == "default":
            return quiet(it, keyword.value)
        if keyword.arg == "default_factory":
            return frozenset().union(*(_made_by(it, obj, value) for obj in quiet(it, keyword.value)))
    return quiet(it, value.args[0]) if value.args else EMPTY


def _made_by(it: Interpreter, factory: Obj, node: ast.expr) -> Value:
    """The object that a factory of the program makes, whose own fields have their defaults."""
    if not isinstance(factory, Class):
        return EMPTY
    return frozenset((it.remember(("instance", factory, node, it.frame), Instance(factory, node, it.frame)),))


def _method(it: Interpreter, made: Class, stmt: FunctionNode) -> None:
    found = make_function(it, stmt, made)
    name = stmt.name
    for decorator in found.decorators:
        if decorator.endswith((".setter", ".deleter", ".getter")) and decorator.startswith(f"{name}."):
            name = decorator
    made.methods[name] = found
