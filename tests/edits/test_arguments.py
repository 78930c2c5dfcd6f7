"""Arguments put into and taken out of calls of every layout."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "keyword on one line": ("f(a)\n", lambda e: [e.keyword("f(a)", "m", "model")], "f(a, model=m)\n"),
    "keyword in spaces": ("f( a )\n", lambda e: [e.keyword("f( a )", "m", "model")], "f( a, model=m )\n"),
    "name on one line": ("f(a, m)\n", lambda e: [e.name("f(a, m)", "m", "model")], "f(a, model=m)\n"),
    "name before a keyword": ("f(m, b=1)\n", lambda e: [e.name("f(m, b=1)", "m", "model")], "f(model=m, b=1)\n"),
    "name with a comment behind": (
        "f(\n    a,  # a\n    m,   # model\n    # end\n)\n",
        lambda e: [e.name("f(\n    a,  # a\n    m,   # model\n    # end\n)", "m", "model")],
        "f(\n    a,  # a\n    model=m,   # model\n    # end\n)\n",
    ),
    "name without the argument before": (
        "f(a, b, m)\n",
        lambda e: [e.drop("f(a, b, m)", "b"), e.name("f(a, b, m)", "m", "model")],
        "f(a, model=m)\n",
    ),
    "keyword to nothing": ("f()\n", lambda e: [e.keyword("f()", "m", "model")], "f(model=m)\n"),
    "keyword after a trailing comma": ("f(a,)\n", lambda e: [e.keyword("f(a,)", "m", "model")], "f(a, model=m,)\n"),
    "keyword to a generator": (
        "f(x for x in y)\n",
        lambda e: [e.keyword("f(x for x in y)", "m", "model")],
        "f((x for x in y), model=m)\n",
    ),
    "keyword to brackets with a comment": (
        "f(\n    # nothing\n)\n",
        lambda e: [e.keyword("f(\n    # nothing\n)", "m", "model")],
        "f(\n    # nothing\n    model=m\n)\n",
    ),
    "keyword to broken empty brackets": (
        "if x:\n    f(\n    )\n",
        lambda e: [e.keyword("f(\n    )", "m", "model")],
        "if x:\n    f(\n        model=m\n    )\n",
    ),
    "keyword one a line": (
        "f(\n    a,  # a\n    b,  # b\n    # end\n)\n",
        lambda e: [e.keyword("f(\n    a,  # a\n    b,  # b\n    # end\n)", "m", "model")],
        "f(\n    a,  # a\n    b,  # b\n    # end\n    model=m,\n)\n",
    ),
    "keyword without trailing comma": (
        "f(\n    a,  # a\n    b  # b\n)\n",
        lambda e: [e.keyword("f(\n    a,  # a\n    b  # b\n)", "m", "model")],
        "f(\n    a,  # a\n    b,  # b\n    model=m\n)\n",
    ),
    "keyword closing behind": (
        "f(a,  # a\n  b)  # b\n",
        lambda e: [e.keyword("f(a,  # a\n  b)", "m", "model")],
        "f(a,  # a\n  b,\n  model=m)  # b\n",
    ),
    "keyword hanging line": (
        "f(\n    a, b\n)\n",
        lambda e: [e.keyword("f(\n    a, b\n)", "m", "model")],
        "f(\n    a, b, model=m\n)\n",
    ),
    "keyword tuple value": ("f(a)\n", lambda e: [e.keyword("f(a)", "m, n", "model")], "f(a, model=(m, n))\n"),
    "positional first": ("f(a)\n", lambda e: [e.positional("f(a)", "m", 0)], "f(m, a)\n"),
    "positional between": (
        "f(\n    # about a\n    a,\n    # about b\n    b,\n)\n",
        lambda e: [e.positional("f(\n    # about a\n    a,\n    # about b\n    b,\n)", "m", 1)],
        "f(\n    # about a\n    a,\n    m,\n    # about b\n    b,\n)\n",
    ),
    "positional before keywords": ("f(a, k=1)\n", lambda e: [e.positional("f(a, k=1)", "m", 1)], "f(a, m, k=1)\n"),
    "positional last": ("f(a)\n", lambda e: [e.positional("f(a)", "m", None)], "f(a, m)\n"),
    "drop first": ("f(a, b)\n", lambda e: [e.drop("f(a, b)", "a")], "f(b)\n"),
    "drop last": ("f(a, b)\n", lambda e: [e.drop("f(a, b)", "b")], "f(a)\n"),
    "drop only": ("f(a)\n", lambda e: [e.drop("f(a)", "a")], "f()\n"),
    "drop only with comma": ("f(a,)\n", lambda e: [e.drop("f(a,)", "a")], "f()\n"),
    "drop only multi line": ("f(\n    a,\n)\n", lambda e: [e.drop("f(\n    a,\n)", "a")], "f()\n"),
    "drop only with comments": (
        "f(  # open\n    # above\n    a,  # a\n    # below\n)\n",
        lambda e: [e.drop("f(  # open\n    # above\n    a,  # a\n    # below\n)", "a")],
        "f(  # open\n    # above\n    # a\n    # below\n)\n",
    ),
    "drop first line": (
        "f(\n    x1,  # a\n    b,\n)\n",
        lambda e: [e.drop("f(\n    x1,  # a\n    b,\n)", "x1")],
        "f(\n    # a\n    b,\n)\n",
    ),
    "drop middle line": (
        "f(\n    a,\n    x1,\n    b,\n)\n",
        lambda e: [e.drop("f(\n    a,\n    x1,\n    b,\n)", "x1")],
        "f(\n    a,\n    b,\n)\n",
    ),
    "drop last line": (
        "f(\n    a,  # a\n    # above\n    x1,  # x\n)\n",
        lambda e: [e.drop("f(\n    a,  # a\n    # above\n    x1,  # x\n)", "x1")],
        "f(\n    a,  # a\n    # above\n    # x\n)\n",
    ),
    "drop last line without comma": (
        "f(\n    a,\n    x1\n)\n",
        lambda e: [e.drop("f(\n    a,\n    x1\n)", "x1")],
        "f(\n    a\n)\n",
    ),
    "drop last aligned": ("f(a,\n  x1)\n", lambda e: [e.drop("f(a,\n  x1)", "x1")], "f(a)\n"),
    "drop keyword": ("f(a, k=x1, m=2)\n", lambda e: [e.drop("f(a, k=x1, m=2)", "x1")], "f(a, m=2)\n"),
    "drop starred": ("f(a, *x1)\n", lambda e: [e.drop("f(a, *x1)", "x1")], "f(a)\n"),
    "drop and add": (
        "f(a, x1)\n",
        lambda e: [e.drop("f(a, x1)", "x1"), e.keyword("f(a, x1)", "x1", "scheduler")],
        "f(a, scheduler=x1)\n",
    ),
    "drop with comments inside": (
        "f(a, (  # in\n  x1))\n",
        lambda e: [e.drop("f(a, (  # in\n  x1))", "x1")],
        "f(a\n    # in\n)\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)
