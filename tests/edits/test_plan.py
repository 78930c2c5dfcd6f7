"""Several fixes of one text: which are made together, which wait, and which fail alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from fabric_fix.edits.model import AddImport, Edit
from fabric_fix.edits.rewrite import Rewritten, rewrite
from fabric_fix.finding import Fix
from tests.edits.support import Editing


def made(text: str, *edits: Sequence[Edit]) -> Rewritten:
    return rewrite(text, [Fix(str(number), tuple(some)) for number, some in enumerate(edits)])


def names(fixes: Sequence[Fix]) -> str:
    return "".join(fix.message for fix in fixes)


def test_no_fixes() -> None:
    assert rewrite("a\n", []) == Rewritten("a\n", (), (), ())


def test_fix_without_edits() -> None:
    result = made("a\n", [])
    assert (result.text, names(result.applied)) == ("a\n", "0")


def test_fixes_of_different_statements_are_made_together() -> None:
    e = Editing("f(a)\ng(b)\n")
    result = made(e.text, [e.bind("f(a)", "a")], [e.bind("g(b)", "b")])
    assert result.text == "a = f(a)\nb = g(b)\n"
    assert names(result.applied) == "01"


CLASHES = {
    "same statement": lambda e: ([e.bind("f(a)", "a")], [e.expression("a", "b")]),
    "same expression": lambda e: ([e.expression("a", "c")], [e.expression("a", "b")]),
    "same anchor": lambda e: ([e.after("f(a)", "x")], [e.after("f(a)", "y")]),
    "anchor that goes": lambda e: ([e.remove("f(a)")], [e.after("f(a)", "y")]),
    "inside what moves": lambda e: ([e.move_after("with m:\n    b", "d")], [e.remove("b")]),
}


@pytest.mark.parametrize("name", CLASHES)
def test_fixes_that_touch_wait(name: str) -> None:
    e = Editing("f(a)\nwith m:\n    b\n    c\nd\n")
    e = Editing(e.text.replace("    c\n", "")) if "moves" in name else e
    first, second = CLASHES[name](e)
    result = made(e.text, first, second)
    assert (names(result.applied), names(result.waiting), result.failed) == ("0", "1", ())
    assert result.text == made(e.text, first).text


def test_a_fix_in_the_header_leaves_the_body_to_others() -> None:
    e = Editing("with f(a):\n    b\n    c\n")
    result = made(e.text, [e.expression("f", "g")], [e.remove("b")], [e.after("c", "new")])
    assert result.text == "with g(a):\n    c\n    new\n"
    assert names(result.applied) == "012"


def test_a_fix_that_fails_costs_no_other() -> None:
    e = Editing("x = f(  # c\n    a)\nb\n")
    result = made(e.text, [e.remove("b")], [e.expression("f(  # c\n    a)", "g")], [AddImport("l", "F")])
    assert result.text == "from l import F\n\nx = f(  # c\n    a)\n"
    assert names(result.applied) == "02"
    assert [(fix.message, reason) for fix, reason in result.failed] == [
        ("1", "the comment `# c` would be lost: put it on a line of its own")
    ]


def test_failing_fixes_among_many() -> None:
    e = Editing("".join(f"f{number}(a)\n" for number in range(9)))
    edits = [[e.bind(f"f{number}(a)", "x" if number % 3 else "nonlocal x")] for number in range(9)]
    result = made(e.text, *edits)
    assert result.text == "".join(f"{'x = ' if number % 3 else ''}f{number}(a)\n" for number in range(9))
    assert names(result.applied) == "124578"
    assert names([fix for fix, _ in result.failed]) == "036"


def test_a_fix_is_made_whole_or_not_at_all() -> None:
    e = Editing("a\nb = c\n")
    result = made(e.text, [e.remove("a"), e.bind("b = c", "d")])
    assert result.text == e.text
    assert names([fix for fix, _ in result.failed]) == "0"


def test_the_same_import_of_two_fixes_is_made_once() -> None:
    e = Editing("import os\nf(a)\ng(b)\n")
    result = made(e.text, [e.bind("f(a)", "a"), AddImport("l", "F")], [e.bind("g(b)", "b"), AddImport("l", "F")])
    assert result.text == "import os\nfrom l import F\na = f(a)\nb = g(b)\n"
    assert names(result.applied) == "01"


def test_removing_all_statements_of_a_block_by_two_fixes() -> None:
    e = Editing("if a:\n    b\n    c\n")
    assert made(e.text, [e.remove("b")], [e.remove("c")]).text == "if a:\n    pass\n"


def test_libcst_is_loaded_only_for_edits() -> None:
    code = "import sys, fabric_fix.edits.rewrite, fabric_fix.edits.tree; print('libcst' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
