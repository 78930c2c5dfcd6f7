"""What a file is written with: tabs, form feeds, newlines, headers, wide characters."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "tabs": (
        "def f():\n\tif a:\n\t\tb\n",
        lambda e: [e.after("b", "with m:\n    if n:\n        new")],
        "def f():\n\tif a:\n\t\tb\n\t\twith m:\n\t\t\tif n:\n\t\t\t\tnew\n",
    ),
    "two blanks": ("if a:\n  b\n", lambda e: [e.before("b", "with m:\n    new")], "if a:\n  with m:\n    new\n  b\n"),
    "indent of the neighbour": (
        "if a:\n    b\nif c:\n  d\n",
        lambda e: [e.before("d", "with m:\n    new")],
        "if a:\n    b\nif c:\n  with m:\n    new\n  d\n",
    ),
    "form feed line": ("a\n\x0c\nb\nc\n", lambda e: [e.remove("b")], "a\n\x0c\nc\n"),
    "crlf": (
        "def f():\r\n    a\r\n    b\r\n",
        lambda e: [e.after("a", "with m:\n    new"), e.remove("b")],
        "def f():\r\n    a\r\n    with m:\r\n        new\r\n",
    ),
    "cr": ("a\rb\rc\n", lambda e: [e.after("b", "new")], "a\rb\rnew\rc\n"),
    "mixed newlines": (
        "a\nb\r\nc\n",
        lambda e: [e.after("b", "with m:\n    new")],
        "a\nb\r\nwith m:\r\n    new\r\nc\n",
    ),
    "mixed newlines other": ("a\r\nb\nc\r\n", lambda e: [e.after("b", "new")], "a\r\nb\nnew\nc\r\n"),
    "no final newline": ("a\r\nb", lambda e: [e.after("b", "new")], "a\r\nb\r\nnew"),
    "no final newline removed": ("a\nb", lambda e: [e.remove("b")], "a"),
    "no final newline comment": ("a\nb  # b", lambda e: [e.remove("b")], "a\n# b"),
    "no final newline in a block": (
        "if x:\r\n\ta",
        lambda e: [e.after("a", "with m:\n    new")],
        "if x:\r\n\ta\r\n\twith m:\r\n\t\tnew",
    ),
    "header": (
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# licence\n\na\n",
        lambda e: [e.before("a", "new")],
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# licence\n\nnew\na\n",
    ),
    "header glued": (
        "# -*- coding: utf-8 -*-\nxx\n",
        lambda e: [e.before("xx", "new")],
        "# -*- coding: utf-8 -*-\nnew\nxx\n",
    ),
    "footer": ("a\n\n# the end\n", lambda e: [e.after("a", "new")], "a\nnew\n\n# the end\n"),
    "footer removed": ("a\nb  # b\n\n# the end\n", lambda e: [e.remove("b")], "a\n# b\n\n# the end\n"),
    "wide characters": (
        "é = '😀'; f('ü', x)  # é\n",
        lambda e: [e.bind("f('ü', x)", "y"), e.expression("x", "ö")],
        "é = '😀'; y = f('ü', ö)  # é\n",
    ),
    "new code with other newlines": (
        "a\nb\r\n",
        lambda e: [e.after("a", "if c:\r\n    d\r    e"), e.after("b", "x = (\n    y,\n)")],
        "a\nif c:\n    d\n    e\nb\r\nx = (\r\n    y,\r\n)\r\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)


def test_blank_before_tab() -> None:
    text = "def f(a):\n \t for b in a:\n \t \t b.c()\n"
    check_case((text, lambda e: [e.after("b.c()", "with m:\n    new")], f"{text} \t \t with m:\n \t \t \t new\n"))
