"""Every statement and expression of the standard library is found in the concrete syntax tree."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest

from fabric_fix.edits.locate import Located
from fabric_fix.finding import Span

LIBRARY = Path(ast.__file__).parent
FILES = sorted(
    path for path in LIBRARY.glob("*/*.py") if "site-packages" not in path.parts and "test" not in path.parts
)
SAMPLE = [path for path in FILES if path.stat().st_size < 60_000][::25]
ODD = "x = (\n  'é', f(a), (b), ((c)),\n)\n@d(e)\nclass F: g = h; i = 'ü' + j\nk(l for l in m)\n"
ODD += "(n\n)(o)\n\x0c\np\r\nq.r\rs\n"


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_standard_library(path: Path) -> None:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        pytest.skip("not in UTF-8")
    check_all_found(text.lstrip("\ufeff"))


def test_odd_places() -> None:
    check_all_found(ODD)


def check_all_found(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    located = Located(cst.parse_module(text), text)
    assert located.code == text
    for node in nodes_outside_strings(tree):
        if isinstance(node, ast.stmt):
            check_statement(node, located)
        elif isinstance(node, ast.Call | ast.Name | ast.Attribute):
            found = located.expression(Span.of(node))
            assert type(found).__name__ == type(node).__name__
            assert located.range_of(found) == located.range_of_span(Span.of(node))


def check_statement(node: ast.stmt, located: Located) -> None:
    kind = type(located.statement(Span.of(node))).__name__
    assert kind in type(node).__name__.replace("Async", "").replace("Delete", "Del")


def nodes_outside_strings(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those in f-strings, which old Pythons give wrong positions."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):
            stack.extend(ast.iter_child_nodes(node))
