"""Continued lines, and the comments and blank lines around statements."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "backslash inside": ("a = b + \\\n    c\nd\n", lambda e: [e.remove("a = b + \\\n    c")], "d\n"),
    "backslash before a semicolon": ("a \\\n; b\n", lambda e: [e.remove("b")], "a\n"),
    "backslash after a semicolon": ("a; \\\n  b\n", lambda e: [e.remove("b")], "a\n"),
    "backslash after a semicolon first goes": ("a; \\\n  b\n", lambda e: [e.remove("a")], "b\n"),
    "backslash insert between": ("a; \\\n  b\n", lambda e: [e.after("a", "new")], "a; \\\n  new; b\n"),
    "backslash and a block": ("a; \\\n  b\n", lambda e: [e.after("a", "with m:\n    new")], "a\nwith m:\n    new\nb\n"),
    "docstring and a backslash": (
        "def f():\n    '''doc'''; \\\n    a\n",
        lambda e: [e.remove("a")],
        "def f():\n    '''doc'''\n",
    ),
    "bind a backslash call": ("f \\\n  (a)\n", lambda e: [e.bind("f \\\n  (a)", "a")], "a = f \\\n  (a)\n"),
    "remove between groups": ("a\n\nb\n\nc\n", lambda e: [e.remove("b")], "a\n\nc\n"),
    "remove the head of a group": ("a\n\nb\nc\n", lambda e: [e.remove("b")], "a\n\nc\n"),
    "remove the tail of a group": ("a\nb\n\nc\n", lambda e: [e.remove("b")], "a\n\nc\n"),
    "remove the first of a function": ("def f():\n    a\n\n    b\n", lambda e: [e.remove("a")], "def f():\n    b\n"),
    "remove the last of a function": (
        "def f():\n    a\n\n    b\n\n\nc\n",
        lambda e: [e.remove("b")],
        "def f():\n    a\n\n\nc\n",
    ),
    "remove with comments": (
        "a\n\n# above\nb  # behind\n\n# next\nc\n",
        lambda e: [e.remove("b")],
        "a\n\n# above\n# behind\n\n# next\nc\n",
    ),
    "remove last with comments": (
        "def f():\n    a\n\n    # above\n    b  # behind\n    # below\n  # odd\nc\n",
        lambda e: [e.remove("b")],
        "def f():\n    a\n\n    # above\n    # behind\n    # below\n  # odd\nc\n",
    ),
    "remove with comments in brackets": (
        "a\nf(  # open\n    x,  # x\n    # free\n)  # behind\nb\n",
        lambda e: [e.remove("f(  # open\n    x,  # x\n    # free\n)")],
        "a\n# open\n# x\n# free\n# behind\nb\n",
    ),
    "comment at column 0": (
        "def f():\n    a\n# zero\n    b\n    c\n",
        lambda e: [e.remove("b")],
        "def f():\n    a\n# zero\n    c\n",
    ),
    "insert before keeps the comment": (
        "a\n\n# about b\nb\n",
        lambda e: [e.before("b", "new")],
        "a\nnew\n\n# about b\nb\n",
    ),
    "insert before the first of a function": (
        "def f():\n    # about a\n    a\n",
        lambda e: [e.before("a", "new")],
        "def f():\n    new\n    # about a\n    a\n",
    ),
    "insert after with comment": (
        "a  # a\n\n# about b\nb\n",
        lambda e: [e.after("a", "new")],
        "a  # a\nnew\n\n# about b\nb\n",
    ),
    "insert after the last with footer": (
        "def f():\n    a\n    # below\n\n# c\nc\n",
        lambda e: [e.after("a", "new")],
        "def f():\n    a\n    new\n    # below\n\n# c\nc\n",
    ),
    "insert after a docstring": (
        "def f():\n    '''doc'''\n\n    a\n",
        lambda e: [e.before("a", "new")],
        "def f():\n    '''doc'''\n\n    new\n    a\n",
    ),
    "insert after the docstring itself": (
        "def f():\n    '''doc'''\n    a\n",
        lambda e: [e.after("'''doc'''", "new")],
        "def f():\n    '''doc'''\n    new\n    a\n",
    ),
    "insert below a function": (
        "def f():\n    a\n\n\n# about b\nb\n",
        lambda e: [e.before("b", "new")],
        "def f():\n    a\n\n\nnew\n# about b\nb\n",
    ),
    "insert after a class": (
        "class C:\n    a\n\n\nb\n",
        lambda e: [e.after("class C:\n    a", "new")],
        "class C:\n    a\n\n\nnew\n\n\nb\n",
    ),
    "insert after the last class": (
        "class C:\n    a\n",
        lambda e: [e.after("class C:\n    a", "new")],
        "class C:\n    a\n\n\nnew\n",
    ),
    "insert below imports": ("import a\n\nb\n", lambda e: [e.before("b", "new")], "import a\n\nnew\nb\n"),
    "insert before a decorated function": (
        "x = 1\n\n\n@a\n# why\n@b\ndef f():\n    c\n",
        lambda e: [e.before("def f():\n    c", "new")],
        "x = 1\nnew\n\n\n@a\n# why\n@b\ndef f():\n    c\n",
    ),
    "remove a decorated function": (
        "x\n\n\n# about\n@a  # a\ndef f():\n    c  # c\n\n\ny\n",
        lambda e: [e.remove("def f():\n    c")],
        "x\n\n\n# about\n# a\n# c\n\n\ny\n",
    ),
    "two inserts after one": ("a\nb\n", lambda e: [e.after("a", "x"), e.after("a", "y")], "a\nx\ny\nb\n"),
    "two inserts before one": ("a\nb\n", lambda e: [e.before("b", "x"), e.before("b", "y")], "a\nx\ny\nb\n"),
    "insert and remove the anchor": (
        "# about\na  # behind\nb\n",
        lambda e: [e.remove("a"), e.after("a", "new")],
        "# about\n# behind\nnew\nb\n",
    ),
    "replace keeps comments": (
        "# above\na(  # in\n  x)  # behind\nb\n",
        lambda e: [e.replace("a(  # in\n  x)", "new")],
        "# above\n# in\nnew  # behind\nb\n",
    ),
    "replace by a block": (
        "# above\na  # behind\nb\n",
        lambda e: [e.replace("a", "with m:\n    if n:\n        new")],
        "# above\nwith m:  # behind\n    if n:\n        new\nb\n",
    ),
    "replace a block": (
        "# above\nwith m:  # head\n    a  # a\n    # foot\nb\n",
        lambda e: [e.replace("with m:  # head\n    a", "new")],
        "# above\n# head\n# a\n# foot\nnew\nb\n",
    ),
    "replace a block by a block": (
        "with m:  # head\n    a  # a\nb\n",
        lambda e: [e.replace("with m:  # head\n    a", "with n:\n    a  # a")],
        "# head\nwith n:\n    a  # a\nb\n",
    ),
    "move with comments": (
        "x\n\n# above\na  # behind\nb\n\nc\nd\n",
        lambda e: [e.move_after("a", "c")],
        "x\n\nb\n\nc\n# above\na  # behind\nd\n",
    ),
    "move up with comments": (
        "x\n\nb\n\n# above\na  # behind\n\n\nc\n",
        lambda e: [e.move_before("a", "b")],
        "x\n# above\na  # behind\n\nb\n\n\nc\n",
    ),
    "move a block": (
        "with m:\n    a  # a\n    # foot\nb\nc\n",
        lambda e: [e.move_after("with m:\n    a", "b")],
        "b\nwith m:\n    a  # a\n    # foot\nc\n",
    ),
    "move with a multi line string": (
        "def f():\n    a = '''\n  x\n'''\n    b\n",
        lambda e: [e.move_after("a = '''\n  x\n'''", "b")],
        "def f():\n    b\n    a = '''\n  x\n'''\n",
    ),
    "move and edit": (
        "a = f(x)\nb\n",
        lambda e: [e.move_after("a = f(x)", "b"), e.targets("a = f(x)", "a, b"), e.keyword("f(x)", "y", "k")],
        "b\na, b = f(x, k=y)\n",
    ),
    "new code with a comment above": ("a\nb\n", lambda e: [e.after("a", "# c\nnew")], "a\n# c\nnew\nb\n"),
    "new code with a comment above in a one line suite": (
        "if a: b; c\n",
        lambda e: [e.after("b", "# c\nnew")],
        "if a:\n    b\n    # c\n    new\n    c\n",
    ),
    "new block with a comment above": (
        "def f():\n    a  # b\n",
        lambda e: [e.replace("a", "# c\nif d:\n    # e\n    g")],
        "def f():\n    # c\n    if d:  # b\n        # e\n        g\n",
    ),
    "insert after an import": ("import a\nb\n", lambda e: [e.after("import a", "new")], "import a\n\nnew\nb\n"),
    "insert after an import in a function": (
        "def f():\n    import a\n    b\n",
        lambda e: [e.after("import a", "new")],
        "def f():\n    import a\n    new\n    b\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)
