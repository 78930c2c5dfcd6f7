"""One-line suites, blocks with one statement, and the clauses of compound statements."""

from __future__ import annotations

import sys

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "remove the only one of a one line if": ("if x: y  # why\n", lambda e: [e.remove("y")], "if x: pass  # why\n"),
    "remove first in a one line if": ("if x: a; b  # why\n", lambda e: [e.remove("a")], "if x: b  # why\n"),
    "insert before in a one line if": ("if x: a\n", lambda e: [e.before("a", "new")], "if x: new; a\n"),
    "insert after in a one line if": ("if x: a;  # why\n", lambda e: [e.after("a", "new")], "if x: a; new;  # why\n"),
    "insert a block in a one line if": (
        "if x:\n\tif y: a; b  # why\n",
        lambda e: [e.after("a", "for i in j:\n    new")],
        "if x:\n\tif y:\n\t\ta\n\t\tfor i in j:\n\t\t\tnew\n\t\tb  # why\n",
    ),
    "insert a block before in a one line for": (
        "for x in y: a\nz\n",
        lambda e: [e.before("a", "with m:\n    new")],
        "for x in y:\n    with m:\n        new\n    a\nz\n",
    ),
    "insert a block after in a one line while": (
        "while x: a  # why\n",
        lambda e: [e.after("a", "with m:\n    new")],
        "while x:\n    a  # why\n    with m:\n        new\n",
    ),
    "one line with": (
        "with x: a\n",
        lambda e: [e.replace("a", "for i in j:\n    new")],
        "with x:\n    for i in j:\n        new\n",
    ),
    "one line class": ("class C: x = 1\n", lambda e: [e.after("x = 1", "y = 2")], "class C: x = 1; y = 2\n"),
    "one line try": (
        "try: a\nexcept E: b\nelse: c\nfinally: d\n",
        lambda e: [e.remove("a"), e.after("b", "new"), e.before("c", "new"), e.replace("d", "if e:\n    new")],
        "try: pass\nexcept E: b; new\nelse: new; c\nfinally:\n    if e:\n        new\n",
    ),
    "one line else": (
        "if x: a\nelse: b\n",
        lambda e: [e.after("b", "with m:\n    new")],
        "if x: a\nelse:\n    b\n    with m:\n        new\n",
    ),
    "one line def": ("def f(): return 1\n", lambda e: [e.before("return 1", "x = 2")], "def f(): x = 2; return 1\n"),
    "move in a one line if": ("if x: a; b; c\n", lambda e: [e.move_before("c", "a")], "if x: c; a; b\n"),
    "the only statement of a block": (
        "def f():\n    # above\n    a  # behind\n    # below\nb\n",
        lambda e: [e.remove("a")],
        "def f():\n    # above\n    pass  # behind\n    # below\nb\n",
    ),
    "both statements of a block": (
        "def f():\n    a\n    b\nc\n",
        lambda e: [e.remove("a"), e.remove("b")],
        "def f():\n    pass\nc\n",
    ),
    "the only compound of a block": (
        "def f():\n    with m:  # why\n        a  # what\nb\n",
        lambda e: [e.remove("with m:  # why\n        a")],
        "def f():\n    # why\n    # what\n    pass\nb\n",
    ),
    "the only statement of a file": (
        "# licence\n\na  # behind\n",
        lambda e: [e.remove("a")],
        "# licence\n\n# behind\n",
    ),
    "before an if with elif": (
        "x\nif a:\n    b\nelif c:\n    d\nelse:\n    e\n",
        lambda e: [e.before("if a:\n    b\nelif c:\n    d\nelse:\n    e", "new")],
        "x\nnew\nif a:\n    b\nelif c:\n    d\nelse:\n    e\n",
    ),
    "in an elif": (
        "if a:\n    b\nelif c:\n    d\nelse:\n    e\n",
        lambda e: [e.before("d", "new"), e.remove("e")],
        "if a:\n    b\nelif c:\n    new\n    d\nelse:\n    pass\n",
    ),
    "in try clauses": (
        "try:\n    a\nexcept E:\n    b\nelse:\n    c\nfinally:\n    d\n",
        lambda e: [e.remove("a"), e.after("b", "new"), e.before("c", "new"), e.remove("d")],
        "try:\n    pass\nexcept E:\n    b\n    new\nelse:\n    new\n    c\nfinally:\n    pass\n",
    ),
    "in match cases": (
        "match m:\n    case 1:\n        a\n    case 2: b\n",
        lambda e: [e.remove("a"), e.after("b", "new")],
        "match m:\n    case 1:\n        pass\n    case 2: b; new\n",
    ),
    "in a loop else": (
        "for i in j:\n    a\nelse:\n    b\n",
        lambda e: [e.before("b", "new")],
        "for i in j:\n    a\nelse:\n    new\n    b\n",
    ),
    "remove a with": (
        "x\n\n# above\nwith m:  # head\n    # in\n    a  # what\n    # foot\n\ny\n",
        lambda e: [e.remove("with m:  # head\n    # in\n    a")],
        "x\n\n# above\n# head\n# in\n# what\n# foot\n\ny\n",
    ),
    "from a raw line to a block of its own": (
        "if x: a; b\n",
        lambda e: [e.replace("b", "with m:\n    new")],
        "if x:\n    a\n    with m:\n        new\n",
    ),
    "nested one line suites keep apart": (
        "class C:\n  def f(self): a\n  def g(self): b\n",
        lambda e: [e.after("a", "with m:\n    new"), e.before("b", "new")],
        "class C:\n  def f(self):\n    a\n    with m:\n      new\n  def g(self): new; b\n",
    ),
    "async suites": (
        "async def f():\n    async with a: b\n    async for c in d: e\n",
        lambda e: [e.remove("b"), e.after("e", "new")],
        "async def f():\n    async with a: pass\n    async for c in d: e; new\n",
    ),
    "while else": (
        "while x: a\nelse: b\n",
        lambda e: [e.remove("a"), e.after("b", "new")],
        "while x: pass\nelse: b; new\n",
    ),
    "deep else if": (
        "if a:\n    b\nelse:\n    if c:\n        d\n",
        lambda e: [e.before("if c:\n        d", "new")],
        "if a:\n    b\nelse:\n    new\n    if c:\n        d\n",
    ),
    "multi line string into a block": (
        "if x: a = '''\n  s\n'''; b\n",
        lambda e: [e.before("b", "with m:\n    new")],
        "if x:\n    a = '''\n  s\n'''\n    with m:\n        new\n    b\n",
    ),
    "multi line string in new code": (
        "def f():\n\ta\n",
        lambda e: [e.after("a", "with m:\n    b = '''\n  s\n'''")],
        "def f():\n\ta\n\twith m:\n\t\tb = '''\n  s\n'''\n",
    ),
    "multi line call in new code": (
        "def f():\n    a\n",
        lambda e: [e.after("a", "b = g(\n    c,  # c\n)")],
        "def f():\n    a\n    b = g(\n        c,  # c\n    )\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="`except*` is new in Python 3.11")
def test_except_star() -> None:
    text = "try:\n    a\nexcept* E:\n    b\n"
    check_case((text, lambda e: [e.before("b", "new")], "try:\n    a\nexcept* E:\n    new\n    b\n"))
