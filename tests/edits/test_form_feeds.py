"""Form feeds before code, as in sources in the style of GNU, stay where they are."""

from __future__ import annotations

import pytest

from fabric_fix.edits.rewrite import rewrite
from fabric_fix.finding import Fix
from tests.edits.support import Case, Editing, check_case, reason_of

CASES: dict[str, Case] = {
    "elsewhere": ("import x\n\fy\nf(a)\n", lambda e: [e.bind("f(a)", "a")], "import x\n\fy\na = f(a)\n"),
    "before the statement": ("x\n\ff(a)\n", lambda e: [e.bind("f(a)", "a")], "x\n\fa = f(a)\n"),
    "before the first statement": ("\ff(a)\n", lambda e: [e.bind("f(a)", "a")], "\fa = f(a)\n"),
    "before an expression": ("x\n\fé = f(a); g(b)\n", lambda e: [e.expression("b", "c")], "x\n\fé = f(a); g(c)\n"),
    "before a definition": (
        "x\n\f@d\ndef f():\n    g(a)\n\f\ny\n",
        lambda e: [e.bind("g(a)", "a")],
        "x\n\f@d\ndef f():\n    a = g(a)\n\f\ny\n",
    ),
    "before else": (
        "if x:\n    f(a)\n\felse:\n    y\n",
        lambda e: [e.bind("f(a)", "b")],
        "if x:\n    b = f(a)\n\felse:\n    y\n",
    ),
    "with CRLF": ("x\r\n\ff(a)\r\n", lambda e: [e.bind("f(a)", "a")], "x\r\n\fa = f(a)\r\n"),
    "in a string": ("x = '''\n\fy'''\n\ff(a)\n", lambda e: [e.bind("f(a)", "a")], "x = '''\n\fy'''\n\fa = f(a)\n"),
    "with an insertion below": ("x\n\fy\nz\n", lambda e: [e.after("y", "new")], "x\n\fy\nnew\nz\n"),
    "without a last newline": ("x\n\ff(a)", lambda e: [e.bind("f(a)", "a")], "x\n\fa = f(a)"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)


def test_form_feed_goes_with_its_statement_or_the_fix_is_refused() -> None:
    text = "x\n\fy\nz\n"
    assert rewrite(text, [Fix("Remove", (Editing(text).remove("y"),))]).text in ("x\nz\n", text)
    for edit in (Editing(text).before("y", "new"), Editing(text).after("x", "new")):
        assert rewrite(text, [Fix("Insert", (edit,))]).text in ("x\nnew\n\fy\nz\n", text)


def test_other_differences_name_their_line() -> None:
    reason = reason_of("try:\n    x\nexcept E :\n    y\na\n", lambda e: [e.bind("a", "b")])
    assert reason == "LibCST, which edits the file, would change line 3; write that line in the usual way"
