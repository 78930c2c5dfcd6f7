"""The order in which the methods of a class are looked up is Python's own."""

from __future__ import annotations

import ast

import pytest

from fabric_fix.analysis.frames import Frame, Scope
from fabric_fix.analysis.modules import Modules
from fabric_fix.analysis.objects import Class, Function

HIERARCHIES = {
    "chain": "class A: ...\nclass B(A): ...\nclass C(B): ...",
    "mixin first": "class Base: ...\nclass M: ...\nclass C(M, Base): ...",
    "diamond": "class A: ...\nclass B(A): ...\nclass M(A): ...\nclass C(B, M): ...",
    "two of each": "class A: ...\nclass M(A): ...\nclass N(A): ...\nclass X(M, N): ...\nclass C(X, N): ...",
}


def _classes(text: str) -> dict[str, Class]:
    tree = ast.parse(text)
    frame = Frame(tree, Scope(tree), source=Modules("").made("", text, tree))
    made: dict[str, Class] = {}
    for stmt in tree.body:
        assert isinstance(stmt, ast.ClassDef)
        made[stmt.name] = cls = Class(stmt, frame)
        cls.bases = tuple(made[base.id] for base in stmt.bases if isinstance(base, ast.Name))
        cls.methods = {f.name: Function(f, frame, cls) for f in stmt.body if isinstance(f, ast.FunctionDef)}
    return made


@pytest.mark.parametrize("text", HIERARCHIES.values(), ids=HIERARCHIES)
def test_order_is_that_of_python(text: str) -> None:
    namespace: dict[str, type] = {}
    exec(text, namespace)
    expected = [cls.__name__ for cls in namespace["C"].__mro__ if cls is not object]
    assert [cls.node.name for cls in _classes(text)["C"].lineage()] == expected


def test_super_goes_to_the_sibling() -> None:
    made = _classes("class A:\n def f(self): ...\nclass M: ...\nclass C(M, A): ...")
    assert made["C"].method_after(made["M"], "f") is made["A"].methods["f"]
    assert made["M"].method_after(made["M"], "f") is None


def test_impossible_order_comes_to_an_end() -> None:
    made = _classes("class A: ...\nclass B(A): ...\nclass C(A, B): ...")
    assert {cls.node.name for cls in made["C"].lineage()} == {"A", "B", "C"}
