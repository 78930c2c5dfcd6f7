"""Statements that share a line."""

from __future__ import annotations

import pytest

from tests.edits.support import Case, check_case

CASES: dict[str, Case] = {
    "remove first of three": ("a; b; c  # all\n", lambda e: [e.remove("a")], "b; c  # all\n"),
    "remove middle of three": ("a; b; c  # all\n", lambda e: [e.remove("b")], "a; c  # all\n"),
    "remove last of three": ("a; b; c  # all\n", lambda e: [e.remove("c")], "a; b  # all\n"),
    "remove last before a trailing semicolon": ("a; b;\n", lambda e: [e.remove("b")], "a;\n"),
    "remove two of three": ("a; b; c\n", lambda e: [e.remove("a"), e.remove("c")], "b\n"),
    "insert before the first of three": (
        "x\n\n# about\na; b; c\n",
        lambda e: [e.before("a", "new")],
        "x\nnew\n\n# about\na; b; c\n",
    ),
    "insert before the middle one": ("a; b; c\n", lambda e: [e.before("b", "new")], "a; new; b; c\n"),
    "insert after the middle one": ("a; b; c\n", lambda e: [e.after("b", "new")], "a; b; new; c\n"),
    "insert after the last one": ("a; b; c  # all\nd\n", lambda e: [e.after("c", "new")], "a; b; c  # all\nnew\nd\n"),
    "insert a block after the middle one": (
        "a; b; c  # all\n",
        lambda e: [e.after("b", "with m:\n    new")],
        "a; b\nwith m:\n    new\nc  # all\n",
    ),
    "insert a block before the middle one": (
        "a; b; c\n",
        lambda e: [e.before("b", "with m:\n    new")],
        "a\nwith m:\n    new\nb; c\n",
    ),
    "replace the middle one": ("a; b; c\n", lambda e: [e.replace("b", "new")], "a; new; c\n"),
    "replace the middle one by a block": (
        "# above\na; b; c  # all\n",
        lambda e: [e.replace("b", "with m:\n    new")],
        "# above\na\nwith m:\n    new\nc  # all\n",
    ),
    "move first to the end": ("a; b; c  # all\n", lambda e: [e.move_after("a", "c")], "b; c  # all\na\n"),
    "move out of a line": ("a; b; c  # all\nd\n", lambda e: [e.move_after("b", "d")], "a; c  # all\nd\nb\n"),
    "move into a line": ("# about d\nd  # d\na; b\n", lambda e: [e.move_after("d", "a")], "# about d\na\nd  # d\nb\n"),
    "move plain into a line": ("d\na; b\n", lambda e: [e.move_after("d", "a")], "a; d; b\n"),
    "bind in the middle": ("a; f(x); c\n", lambda e: [e.bind("f(x)", "x")], "a; x = f(x); c\n"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_edit(case: Case) -> None:
    check_case(case)
