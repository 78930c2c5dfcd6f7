"""Random programs and edits: what is made means what it must, and only what must be refused is."""

from __future__ import annotations

import ast
import re
import warnings

import pytest

from fabric_fix.edits.rewrite import rewrite
from fabric_fix.edits.tree import apply_to_tree
from fabric_fix.edits.verify import comments
from fabric_fix.finding import Fix
from tests.edits.programs import Writer, random_edits

REFUSALS = (
    "cannot be assigned to",
    "an `elif` is no statement of its own",
    "could already hold the argument",
    "has too few arguments",
    "nothing may stand before a docstring",
    "put beside one that is moved away",
    "illegal expression for augmented assignment",
    "only single target .* can be annotated",
    "assignment expression cannot be used in a comprehension iterable expression",
    "the result would not compile",
    "two edits touch the same code",
    "targets of a statement would be set twice",
    "put into code that is replaced",
    "argument would be removed twice",
    "already has the argument",
    "is not the last positional one",
    "could already be given",
    "would be moved twice",
    "is needed above the imports",
)
"""Every reason that these edits may be refused for; any other is a fault of the editor."""


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_any_program(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 50):
            check_program(Writer(seed).text(), seed)


def check_program(text: str, seed: int) -> None:
    edits = random_edits(text, seed, 6)
    size = seed % 2 + 1
    fixes = [Fix(str(at), tuple(edits[at : at + size])) for at in range(0, len(edits), size)]
    result = rewrite(text, fixes)
    reasons = [reason for _, reason in result.failed]
    assert [reason for reason in reasons if not any(re.search(known, reason) for known in REFUSALS)] == []
    assert len(result.applied) + len(result.waiting) + len(result.failed) == len(fixes)
    edits = [edit for fix in result.applied for edit in fix.edits]
    assert ast.dump(ast.parse(result.text)) == ast.dump(apply_to_tree(ast.parse(text), edits))
    assert not comments(text) - comments(result.text)
    assert newlines(result.text) <= (newlines(text) or {"\n"})


def newlines(text: str) -> set[str]:
    return set(re.findall(r"\r\n|\r|\n", text))
