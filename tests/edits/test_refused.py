"""What is refused: a reason is given, nothing is written, and nothing is raised."""

from __future__ import annotations

import pytest

from fabric_fix.edits.model import InsertStatement, Where
from fabric_fix.edits.rewrite import rewrite
from fabric_fix.finding import Fix, Span
from tests.edits.support import Edits, check_case, reason_of

BAD_FILES = {
    "blank after tab": ("a\ndef go(xs):\n\t for x in xs:\n\t\t x.backward()\n", "no Python|LibCST"),
    "ends in a backslash": ("new\n\\\n", "no Python|LibCST"),
    "blank before a colon": ("try:\n    a\nexcept ValueError :\n    b\n", "would change line 3"),
    "backslash on a line of its own": ("if x:\n    a\n    \\\n    b\n", "would change line 3"),
    "not Python": ("def f(:\n", "no Python"),
    "null byte": ("a\n\x00\n", "no Python"),
    "lone surrogate": ("a = '\udc80'\n", "no Python"),
    "sum of 1500 strings": ("a\nx = " + " + ".join(["'a'"] * 1500) + "\n", "too deeply nested"),
    "sum of 900 strings": ("a\nx = " + " + ".join(["'a'"] * 900) + "\n", "too deeply nested"),
    "60000 terms of an and": ("a\nx = " + " and ".join(["a"] * 60_000) + "\n", "too deeply nested"),
    "300 brackets": ("a\nx = " + "(" * 300 + ")" * 300 + "\n", "no Python"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_file(name: str) -> None:
    text, reason = BAD_FILES[name]
    fix = Fix("Insert", (InsertStatement(Span(1, 0, 1, 1), Where.AFTER, "new"),))
    result = rewrite(text, [fix, fix])
    assert (result.text, result.applied) == (text, ())
    assert result.failed
    assert all(any(part in why for part in reason.split("|")) for _, why in result.failed)


GOOD_FILES = {
    "multi line case": "a\nmatch b:\n    case (\n        C()\n    ) if 'x' in s:\n        pass\n",
    "walrus without blanks": "a\nif x:=f():x.y()\n",
    "match without a blank": "a\nmatch(m):\n    case(1):\n        b = f(); b.c()\n",
    "carriage returns": "a\nb\n".replace("\n", "\r"),
    "carriage return among others": "a\r\nb = 'é'\rc\r\n",
    "no blank between keyword and string": "a\nif'x'in s:b\n",
    "only a comment after": "a\n# b",
    "escaped quote in a raw f-string": "a\nx = rf'\\'{b}'\n",
}


@pytest.mark.parametrize("name", GOOD_FILES)
def test_odd_file_is_edited(name: str) -> None:
    text = GOOD_FILES[name]
    newline = next(newline for newline in ("\r\n", "\r", "\n") if newline in text)
    check_case((text, lambda e: [e.after("a", "new")], text.replace(f"a{newline}", f"a{newline}new{newline}", 1)))


EDITS: dict[str, tuple[str, Edits, str]] = {
    "insert before an elif": (
        "if a:\n    b\nelif c:\n    d\n",
        lambda e: [e.before("elif c:\n    d", "new")],
        "`elif` is no statement",
    ),
    "remove an elif": (
        "if a:\n    b\nelif c:\n    d\n",
        lambda e: [e.remove("elif c:\n    d")],
        "`elif` is no statement",
    ),
    "insert before a docstring": ("'''doc'''\na\n", lambda e: [e.before("'''doc'''", "new")], "before a docstring"),
    "keyword that two stars could hold": ("f(**k)\n", lambda e: [e.keyword("f(**k)", "m", "model")], "`**` could"),
    "keyword that one star could hold": ("f(*k)\n", lambda e: [e.keyword("f(*k)", "m", "model")], "`*` could"),
    "positional after a star": ("f(*k)\n", lambda e: [e.positional("f(*k)", "m", 1)], "`*` could"),
    "positional with two stars": ("f(**k)\n", lambda e: [e.positional("f(**k)", "m", 0)], "`**` could"),
    "positional too far": ("f(a)\n", lambda e: [e.positional("f(a)", "m", 2)], "too few arguments"),
    "keyword twice": ("f(k=a)\n", lambda e: [e.keyword("f(k=a)", "m", "k")], "already has"),
    "name of the first of two": ("f(a, b)\n", lambda e: [e.name("f(a, b)", "a", "k")], "not the last positional"),
    "name of a keyword": ("f(k=a)\n", lambda e: [e.name("f(k=a)", "a", "m")], "not the last positional"),
    "name that is given": ("f(a, k=b)\n", lambda e: [e.name("f(a, k=b)", "a", "k")], "could already be given"),
    "name beside two stars": ("f(a, **b)\n", lambda e: [e.name("f(a, **b)", "a", "k")], "could already be given"),
    "call that is none": ("f[a]\n", lambda e: [e.keyword("f[a]", "m", "k")], "no call"),
    "argument of another call": ("f(a)\nb\n", lambda e: [e.drop("f(a)", "b")], "no such argument"),
    "bind an assignment": ("a = f()\n", lambda e: [e.bind("a = f()", "b")], "no bare expression"),
    "targets of an annotated assignment": ("a: b = c\n", lambda e: [e.targets("a: b = c", "d")], "no assignment"),
    "targets of a chain": ("a = b = c\n", lambda e: [e.targets("a = b = c", "d")], "no assignment"),
    "targets that are none": ("f()\n", lambda e: [e.bind("f()", "g()")], "no statement"),
    "two targets": ("f()\n", lambda e: [e.bind("f()", "a = b")], "no target"),
    "move out of a block": ("if a:\n    b\nc\n", lambda e: [e.move_after("b", "c")], "within its block"),
    "move beside itself": ("a\nb\n", lambda e: [e.move_after("a", "a")], "moved away"),
    "place that is none": ("a\nb\n", lambda e: [e.replace("a\nb", "c")], "no statement"),
    "two statements of code": ("a\n", lambda e: [e.after("a", "b\nc")], "not one statement"),
    "code that is none": ("a\n", lambda e: [e.after("a", "b c")], "no statement"),
    "expression that is none": ("a\n", lambda e: [e.expression("a", "b c")], "no expression"),
    "target that is none": ("a = b\n", lambda e: [e.expression("a", "c + d")], "cannot be assigned"),
    "edit in what is removed": ("f(a)\n", lambda e: [e.remove("f(a)"), e.expression("a", "b")], "same code"),
    "edit in what is replaced": ("x = f(a)\n", lambda e: [e.expression("f(a)", "b"), e.expression("a", "c")], "same"),
    "insert into what is removed": (
        "if a:\n    b\n",
        lambda e: [e.remove("if a:\n    b"), e.after("b", "c")],
        "code that is replaced",
    ),
    "statement moved twice": (
        "a\nb\nc\n",
        lambda e: [e.move_after("a", "b"), e.move_after("a", "c")],
        "moved twice",
    ),
    "bound twice": ("f()\n", lambda e: [e.bind("f()", "a"), e.bind("f()", "b")], "set twice"),
    "comment in a replaced expression": (
        "x = f(  # c\n    a)\n",
        lambda e: [e.expression("f(  # c\n    a)", "b")],
        "# c",
    ),
    "result that does not compile": ("def f():\n    a\n", lambda e: [e.after("a", "nonlocal b")], "would not compile"),
    "import of a name that is taken": (
        "Fabric = a\n",
        lambda e: [e.add_import("lightning", "Fabric")],
        "already means",
    ),
    "import into a file of comments": ("# a\n", lambda e: [e.add_import("l", "F")], "no statement"),
    "import into an empty file": ("", lambda e: [e.add_import("l", "F")], "no statement"),
    "import of a name that a pattern binds": (
        "match a:\n    case F:\n        b\n",
        lambda e: [e.add_import("l", "F")],
        "already means",
    ),
    "import of a name from elsewhere": (
        "try:\n    from a import F\nexcept E:\n    F = None\n",
        lambda e: [e.add_import("l", "F")],
        "already means",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_edit(name: str) -> None:
    text, edits, reason = EDITS[name]
    assert reason in reason_of(text, edits)
