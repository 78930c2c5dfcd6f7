"""Bound results, replaced targets and expressions, and the parentheses that they need."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "bind multi line": (
        "fabric.setup(\n  a,  # c\n  b,\n)\n",
        lambda e: [e.bind("fabric.setup(\n  a,  # c\n  b,\n)", "a, b")],
        "a, b = fabric.setup(\n  a,  # c\n  b,\n)\n",
    ),
    "bind parenthesised": (
        "(\n    f(x)  # c\n)\n",
        lambda e: [e.bind("(\n    f(x)  # c\n)", "x")],
        "x = (\n    f(x)  # c\n)\n",
    ),
    "bind await": (
        "async def g():\n    await f(x)\n",
        lambda e: [e.bind("await f(x)", "x")],
        "async def g():\n    x = await f(x)\n",
    ),
    "bind with edit": ("f.g(x)\n", lambda e: [e.bind("f.g(x)", "x"), e.expression("f.g", "h")], "x = h(x)\n"),
    "bind whole edit": ("f.g(x)\n", lambda e: [e.bind("f.g(x)", "x"), e.expression("f.g(x)", "h(x)")], "x = h(x)\n"),
    "targets keep the value": ("(a,\n b) = f()  # c\n", lambda e: [e.targets("(a,\n b) = f()", "m")], "m = f()  # c\n"),
    "keeps parentheses": ("x = (a)\n", lambda e: [e.expression("a", "b + c")], "x = (b + c)\n"),
    "keeps multi line parentheses": (
        "x = (\n    # why\n    a\n)\n",
        lambda e: [e.expression("a", "b")],
        "x = (\n    # why\n    b\n)\n",
    ),
    "sum before an attribute": ("a.x\n", lambda e: [e.expression("a", "b + c")], "(b + c).x\n"),
    "sum in a product": ("a * x\n", lambda e: [e.expression("a", "b + c")], "(b + c) * x\n"),
    "sum as an argument": ("f(a)\n", lambda e: [e.expression("a", "b + c")], "f(b + c)\n"),
    "sum as starred": ("f(*a)\n", lambda e: [e.expression("a", "b if c else d")], "f(*(b if c else d))\n"),
    "lambda as a callee": ("a()\n", lambda e: [e.expression("a", "lambda: b")], "(lambda: b)()\n"),
    "walrus": ("f(a)\n", lambda e: [e.expression("a", "b := c")], "f((b := c))\n"),
    "number attribute": ("a.x\n", lambda e: [e.expression("a", "1")], "(1).x\n"),
    "tuple argument": ("f(a)\n", lambda e: [e.expression("a", "b, c")], "f((b, c))\n"),
    "tuple of targets": ("a = f()\n", lambda e: [e.expression("a", "b, c")], "b, c = f()\n"),
    "tuple replaced": ("x = (a, b)\n", lambda e: [e.expression("(a, b)", "c")], "x = c\n"),
    "generator replaced": ("x = (a for a in b)\n", lambda e: [e.expression("(a for a in b)", "c")], "x = c\n"),
    "await in attribute": (
        "async def f():\n    a.x\n",
        lambda e: [e.expression("a", "await b")],
        "async def f():\n    (await b).x\n",
    ),
    "yield value": ("def f():\n    x = a\n", lambda e: [e.expression("a", "yield b")], "def f():\n    x = (yield b)\n"),
    "with item": (
        "with fabric.strategy.no_backward_sync(m):\n    a\n",
        lambda e: [e.expression("fabric.strategy.no_backward_sync", "fabric.no_backward_sync")],
        "with fabric.no_backward_sync(m):\n    a\n",
    ),
    "decorator call": (
        "@f(a)\ndef g():\n    b\n",
        lambda e: [e.keyword("f(a)", "c", "k")],
        "@f(a, k=c)\ndef g():\n    b\n",
    ),
    "subscript": ("x[a]\n", lambda e: [e.expression("a", "b + c")], "x[b + c]\n"),
    "in a lambda": ("x = lambda: a.b\n", lambda e: [e.expression("a.b", "c")], "x = lambda: c\n"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)
