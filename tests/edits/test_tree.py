"""The meaning of edits on `ast`: old nodes stay the nodes that they were, new ones are marked."""

from __future__ import annotations

import ast

import pytest

from fabric_fix.edits.model import EditError
from fabric_fix.edits.tree import apply_to_tree
from tests.edits.support import Editing, check_case


def test_old_nodes_stay() -> None:
    e = Editing("a\nf(b)\nc\n")
    tree = ast.parse(e.text)
    call, moved = tree.body[1], tree.body[2]
    assert isinstance(call, ast.Expr)
    result = apply_to_tree(tree, [e.bind("f(b)", "b"), e.move_before("c", "a"), e.keyword("f(b)", "m", "k")])
    assert result is tree
    assert ast.unparse(result) == "c\na\nb = f(b, k=m)"
    assign = result.body[2]
    assert isinstance(assign, ast.Assign)
    assert assign.value is call.value
    assert result.body[0] is moved
    assert not hasattr(moved, "_fabric_fix_new")
    assert not hasattr(call.value, "_fabric_fix_new")


def test_new_nodes_are_marked_and_placed() -> None:
    e = Editing("a\nf(b)\n")
    tree = apply_to_tree(ast.parse(e.text), [e.after("f(b)", "with m:\n    n")])
    for node in ast.walk(tree.body[2]):
        assert node._fabric_fix_new  # type: ignore[attr-defined]
        assert getattr(node, "lineno", 2) == 2
        assert getattr(node, "end_col_offset", 4) == 4


def test_replaced_target_is_stored() -> None:
    e = Editing("a = b\n")
    tree = apply_to_tree(ast.parse(e.text), [e.expression("a", "(c, *d)")])
    assert ast.dump(tree) == ast.dump(ast.parse("(c, *d) = b\n"))


def test_order_of_edits_does_not_matter_for_places() -> None:
    e = Editing("a\nb\n")
    edits = [e.remove("a"), e.after("a", "x"), e.before("a", "w"), e.after("a", "y")]
    assert ast.unparse(apply_to_tree(ast.parse(e.text), edits)) == "w\nx\ny\nb"


def test_arguments_that_come_and_go_beside_one_that_is_replaced() -> None:
    e = Editing("f(a, b, c)\n")
    call = "f(a, b, c)"
    edits = [e.positional(call, "n", 0), e.expression("b", "m"), e.drop(call, "a"), e.expression("c", "o")]
    assert ast.unparse(apply_to_tree(ast.parse(e.text), edits)) == "f(n, m, o)"
    check_case((e.text, lambda _: edits, "f(n, m, o)\n"))


def test_place_in_no_statement() -> None:
    e = Editing("a\n\n# b\nc\n")
    with pytest.raises(EditError, match="no such expression at line 4"):
        apply_to_tree(ast.parse(e.text.replace("c", "(c + d)")), [e.expression("c", "d")])
