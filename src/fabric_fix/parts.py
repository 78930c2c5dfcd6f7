"""The nodes of a function or a module, listed once for all the findings of a program that ask for them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program

Placed = ast.Name | ast.Attribute | ast.Subscript


class Parts:
    """All nodes of a tree in the order of `ast.walk`, and those that are places by what these are called."""

    def __init__(self, owner: ast.AST) -> None:
        self.nodes = list(ast.walk(owner))
        self._numbers = {node: number for number, node in enumerate(self.nodes)}
        self._places: dict[str, list[Placed]] = {}
        for node in self.nodes:
            if isinstance(node, Placed) and (text := spelled(node)) is not None:
                self._places.setdefault(text, []).append(node)

    def places(self, texts: Iterable[str]) -> list[Placed]:
        """The names, attributes and items that are written like one of these, read or stored."""
        found = [node for text in dict.fromkeys(texts) for node in self._places.get(text, ())]
        return sorted(found, key=self._numbers.__getitem__)

    def in_order(self, nodes: Iterable[ast.AST]) -> list[ast.AST]:
        """Some of the nodes in the order of all."""
        return sorted(nodes, key=self._numbers.__getitem__)


def parts_of(program: Program, owner: ast.AST | None) -> Parts:
    """The nodes of a function of a program; of all of it for None."""
    known = program.once(_known)
    node = program.tree if owner is None else owner
    if node not in known:
        known[node] = Parts(node)
    return known[node]


def _known(program: Program) -> dict[ast.AST, Parts]:
    return {}
