"""A result that is not the text with the edits made is refused, whatever went wrong on the way."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from fabric_fix.edits import transform
from fabric_fix.edits.lines import LineTable
from fabric_fix.edits.locate import Located
from fabric_fix.edits.model import Edit, EditError
from fabric_fix.edits.rewrite import rewrite
from fabric_fix.edits.verify import TouchedLines, check_result, comments
from fabric_fix.finding import Fix
from tests.edits.support import Editing

TEXT = "a\n\n# above\nb(c)  # behind\nd = '# no comment'\n"

WRONG = {
    "nothing is done": (TEXT, "mean something else"),
    "another meaning": (TEXT.replace("b(c)", "x = b(d)"), "mean something else"),
    "no Python": (TEXT.replace("b(c)", "x = b(c"), "no Python"),
    "the comment behind is lost": (TEXT.replace("b(c)  # behind", "x = b(c)"), "`# behind` would be lost"),
    "the comment above is lost": (TEXT.replace("# above\nb(c)", "x = b(c)"), "`# above` would be lost"),
    "another line is respaced": (TEXT.replace("b(c)", "x = b(c)").replace("d =", "d  ="), "line 5 would be changed"),
    "another newline is changed": (TEXT.replace("b(c)", "x = b(c)").replace("a\n", "a\r\n"), "line 1 would be changed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, reason = WRONG[name]

    def write_wrong(located: Located, edits: Sequence[Edit]) -> str:
        return wrong

    monkeypatch.setattr(transform, "transform", write_wrong)
    result = rewrite(TEXT, [Fix("Bind", (Editing(TEXT).bind("b(c)", "x"),))])
    assert (result.text, result.applied) == (TEXT, ())
    assert reason in result.failed[0][1]


def test_crash_of_the_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(located: Located, edits: Sequence[Edit]) -> str:
        raise TypeError("a node is missing")

    monkeypatch.setattr(transform, "transform", crash)
    result = rewrite(TEXT, [Fix("Bind", (Editing(TEXT).bind("b(c)", "x"),))])
    assert result.failed[0][1] == "the edit cannot be made: TypeError: a node is missing"


def test_text_that_does_not_compile_may_stay_so() -> None:
    text = "return\na\n"
    result = rewrite(text, [Fix("Insert", (Editing(text).after("a", "b"),))])
    assert result.text == "return\na\nb\n"


def test_equal_lines_in_another_order() -> None:
    with pytest.raises(EditError, match="line 2"):
        check_result(LineTable("a\nb = 1\n\nc\n"), "b = 1\na\n\nc\n", ast.parse("b = 1\na\nc\n"), [TouchedLines(4, 4)])


def test_comments_are_told_from_strings() -> None:
    assert comments("a = '# b'  # c\r# c\r\n'''\n# d\n'''\n") == {"# c": 2}
