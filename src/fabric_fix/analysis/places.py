"""Places: names, attributes and constant subscripts that a value can be stored in and read from again."""

from __future__ import annotations

import ast


def spelled(node: ast.expr) -> str | None:
    """The source of a place (`model`, `self.model`, `state["model"]`), or None when it is not one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = spelled(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        inner = spelled(node.value)
        return None if inner is None else f"{inner}[{node.slice.value!r}]"
    return None


def root_name(node: ast.expr) -> str | None:
    """The name at the left end of a place, or None."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
