"""Where things stand in a syntax tree: blocks, enclosing statements, functions and loops."""

from __future__ import annotations

import ast
from collections.abc import Callable

from fabric_fix.analysis.frames import push_children

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class _Parents(dict[ast.AST, ast.AST]):
    """The parent of each node; those of another file are added when one of its nodes is asked for."""

    def __init__(self, tree_at: Callable[[int], ast.Module | None]) -> None:
        super().__init__()
        self._tree_at = tree_at
        self._taken: set[ast.Module] = set()

    def take(self, tree: ast.Module) -> None:
        """Add all nodes of a tree."""
        self._taken.add(tree)
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            start = len(stack)
            push_children(node, stack)
            for child in stack[start:]:
                self[child] = node

    def __missing__(self, node: ast.AST) -> ast.AST:
        """The parent of a node of another file; KeyError when it is of none that is known."""
        tree = self._tree_at(getattr(node, "lineno", 0))
        if tree is None or tree in self._taken:
            raise KeyError(node)
        self.take(tree)
        return self[node]

    def __contains__(self, node: object) -> bool:
        """Whether a node has a parent, in any file."""
        if dict.__contains__(self, node):
            return True
        tree = self._tree_at(getattr(node, "lineno", 0))
        if tree is None or tree in self._taken:
            return False
        self.take(tree)
        return dict.__contains__(self, node)

    def find(self, node: ast.AST) -> ast.AST | None:
        """The parent of a node, or None for one that has none, or is of no file that is known."""
        known = node in self
        return self[node] if known else None


class Syntax:
    """Parents and blocks of one tree, and of the others that the program calls."""

    def __init__(self, tree: ast.Module, tree_at: Callable[[int], ast.Module | None] = lambda _line: None) -> None:
        """`tree_at` gives the tree of another file that a line number belongs to."""
        self.tree = tree
        self.parents = _Parents(tree_at)
        self.parents.take(tree)

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
