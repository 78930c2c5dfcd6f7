"""What surely runs before something else, or in each turn of a loop."""

from __future__ import annotations

import ast

from fabric_fix.analysis.events import Setup
from fabric_fix.analysis.program import Program


def surely_before(program: Program, call: ast.Call, setup: Setup) -> bool:
    """Whether a set-up of the same function surely ran before: it stands above, in a block around, on no branch."""
    if call not in program.setups() or not any(s.frame is setup.frame for s in program.setups()[call]):
        return False
    first, second = program.syntax.statement(call), program.syntax.statement(setup.node)
    around = {second, *program.syntax.ancestors(second)}
    outer = first
    while not any(stmt in around for stmt in program.syntax.block(outer)):
        parent = program.syntax.parents[outer]
        if not isinstance(parent, (ast.With, ast.AsyncWith)):
            return False
        outer = parent
    block = program.syntax.block(outer)
    index = next(i for i, stmt in enumerate(block) if stmt in around)
    return block.index(outer) < index


def unconditional(program: Program, statement: ast.stmt, block: list[ast.stmt]) -> bool:
    """Whether a statement of a block, or of `with` blocks in it, runs whenever the block does."""
    node: ast.AST = statement
    while node not in block:
        node = program.syntax.parents[node]
        if not isinstance(node, (ast.With, ast.AsyncWith)):
            return False
    return True


def leaves_at_once(body: list[ast.stmt]) -> bool:
    """Whether a loop can end in its first turn as a rule: `break` or `return` stands in its own block."""
    return any(isinstance(stmt, (ast.Break, ast.Return, ast.Raise, ast.Try)) for stmt in body)


def unfrozen(program: Program, first: ast.Call, second: ast.Call) -> bool:
    """Whether `requires_grad` changes in between: DDP takes only what is trainable when it wraps, so it must again."""
    function = program.syntax.function(second)
    return any(
        isinstance(part, ast.Attribute)
        and part.attr in ("requires_grad", "requires_grad_")
        and first.lineno < part.lineno < second.lineno
        for part in ast.walk(function if function is not None else program.tree)
    )
