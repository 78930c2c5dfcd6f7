"""Where things stand in a syntax tree: blocks, enclosing statements, functions and loops."""

from __future__ import annotations

import ast

from fabric_fix.analysis.frames import push_children

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Syntax:
    """Parents and blocks of one tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            start = len(stack)
            push_children(node, stack)
            for child in stack[start:]:
                self.parents[child] = node

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node stands in."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def block(self, stmt: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement stands in."""
        parent = self.parents[stmt]
        for name in _BLOCKS:
            block = getattr(parent, name, None)
            if isinstance(block, list) and stmt in block:
                return block
        raise ValueError("a statement outside any block")

    def ancestors(self, node: ast.AST) -> list[ast.AST]:
        """The nodes around a node, innermost first."""
        found: list[ast.AST] = []
        while node in self.parents:
            node = self.parents[node]
            found.append(node)
        return found

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The function that a node stands in, or None at module level."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return ancestor
        return None

    def loops(self, node: ast.AST) -> list[ast.AST]:
        """The loops around a node within its function, innermost first."""
        found: list[ast.AST] = []
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                break
            if isinstance(
                ancestor, (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
            ):
                found.append(ancestor)
        return found

    def in_block(self, node: ast.AST, block: list[ast.stmt]) -> int | None:
        """The index of the statement of a block that a node stands in, or None."""
        chain = {node, *self.ancestors(node)}
        for index, stmt in enumerate(block):
            if stmt in chain:
                return index
        return None
