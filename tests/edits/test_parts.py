"""A large text is edited in parts, and comes out as it would as a whole."""

from __future__ import annotations

import ast
import time
import warnings
from pathlib import Path

import pytest

from fabric_fix.edits import parts, sources
from fabric_fix.edits.lines import LineTable
from fabric_fix.edits.model import BindResult, Edit, EditError
from fabric_fix.edits.parts import Parts
from fabric_fix.edits.rewrite import rewrite
from fabric_fix.edits.sources import Large, Source, Whole
from fabric_fix.finding import Fix, Span
from tests.edits.programs import Writer, random_edits
from tests.edits.support import Editing


def outcome(source: Source, edits: list[Edit]) -> str | None:
    """What comes out; None for a refusal, since of several reasons either may be met first."""
    try:
        return source.result(edits)
    except EditError:
        return None


def large(text: str) -> Large:
    return Large(text, ast.parse(text), LineTable(text).split())


@pytest.mark.parametrize("first", [*range(0, 600, 100), 3900, 6700, 7800])
def test_parts_give_what_the_whole_gives(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGE", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 100):
            text = Writer(seed).text()
            edits = random_edits(text, seed, 1 + seed % 4)
            assert outcome(large(text), edits) == outcome(Whole(text), edits), seed


def test_parts_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGE", 5)
    body = "".join(f"    x{number} = {number}\n" for number in range(20))
    text = f"import os\n\n\nclass A:\n{body}\n\ndef f():\n  '''doc'''\n{body.replace('    ', '  ')}\n\nf()\n"
    found = Parts(ast.parse(text), LineTable(text).split()).of([Editing(text).remove("x5 = 5")])
    assert [(part.first, part.last, part.above) for part in found] == [
        (9, 11, "if 1:\n    pass\nclass _:\n"),
    ]
    assert found[0].first_number == 6


def test_indentation_of_new_code_is_that_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGE", 0)
    for text in ("if a:\n  b\nc\nd\ne\nf\n", "c\nd\ne\nf\nif a:\n  b\n"):
        fix = Fix("Insert", (Editing(text).after("d", "if x:\n    y"),))
        assert rewrite(text, [fix]).text == text.replace("d\n", "d\nif x:\n  y\n")


def test_reasons_name_the_lines_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGE", 0)
    text = "a\n" * 50 + "f(*b)\n" + "a\n" * 50
    result = rewrite(text, [Fix("Add", (Editing(text).positional("f(*b)", "c", 2),))])
    assert result.failed[0][1] == "the call at line 51 has too few arguments"


def test_what_libcst_does_not_write_back_elsewhere_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGE", 0)
    text = "try:\n    x\nexcept ValueError :\n    y\nz\nw\na\n"
    assert rewrite(text, [Fix("Bind", (Editing(text).bind("a", "b"),))]).text == text.replace("\na\n", "\nb = a\n")


@pytest.mark.parametrize("is_nested", [False, True])
def test_time_is_that_of_what_is_touched(is_nested: bool) -> None:
    indent = "    " if is_nested else ""
    head, name = ("def f():\n" if is_nested else "a = 1\n"), "nobody_else"
    text = (
        head + "".join(f"{indent}x{number} = f({number}, 'a')  # c\n" for number in range(20_000)) + f"{indent}{name}\n"
    )
    start = time.process_time()
    result = rewrite(text, [Fix("Bind", (Editing(text).bind(name, "b"),))])
    assert result.text.endswith(f"{indent}b = {name}\n")
    assert time.process_time() - start < 8


def test_time_of_many_fixes_grows_with_their_number() -> None:
    times = [time_of_fixes(count) for count in (50, 400)]
    assert times[1] < times[0] * 8 * 3


def time_of_fixes(count: int) -> float:
    text = "".join(f"x{number} = 1\n" * 4 + f"f{number}(a)\n" + "y = 1\n" * 4 for number in range(count))
    spans = (Span(5 + 9 * number, 0, 5 + 9 * number, len(f"f{number}(a)")) for number in range(count))
    fixes = [Fix("Bind", (BindResult(span, "b"),)) for span in spans]
    start = time.process_time()
    assert len(rewrite(text, fixes).applied) == count
    return time.process_time() - start


def test_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGE", 5)
    for path in sorted(Path(ast.__file__).parent.glob("*.py"))[::15]:
        text = path.read_bytes().decode()
        if len(text) < 40_000:
            edits = random_edits(text, len(text), 3)
            assert outcome(large(text), edits) == outcome(Whole(text), edits), path
