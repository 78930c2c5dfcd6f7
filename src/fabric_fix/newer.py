"""Which Python a source needs that this one cannot parse and LibCST can."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst


def needed_python(text: str, minor: int = sys.version_info.minor) -> str | None:
    """The version that would parse a text, such as "3.12"; None when LibCST does not read it either.

    `minor` is the version of Python 3 that does not.
    """
    import libcst

    try:
        module = libcst.parse_module(text)
    except Exception:  # its parser raises more than ParserSyntaxError on what is not Python
        return None
    needed = max(_versions(module), default=(3, 12))
    return ".".join(map(str, max(needed, (3, minor + 1))))


def _versions(module: libcst.Module) -> list[tuple[int, int]]:
    """The versions in which the constructs of a module came, as far as they are later than Python 3.10."""
    pending: list[libcst.CSTNode] = [module]
    found = []
    while pending:
        node = pending.pop()
        found.append(_since(node))
        pending += node.children
    return found


def _since(node: libcst.CSTNode) -> tuple[int, int]:
    kind = type(node).__name__
    if kind == "TemplatedString":
        return 3, 14
    if kind in ("ExceptHandler", "ExceptStarHandler") and _is_bare_tuple(node):
        return 3, 14
    if kind == "FormattedString" and _is_nested(node):
        return 3, 12
    if kind == "TypeParam" and getattr(node, "default", None) is not None:
        return 3, 13
    if kind in ("TypeParam", "TypeAlias"):
        return 3, 12
    return (3, 11) if kind == "TryStar" else (3, 10)


def _is_nested(string: libcst.CSTNode) -> bool:
    """Whether an expression in an f-string holds what only PEP 701 allows there."""
    import libcst

    assert isinstance(string, libcst.FormattedString)
    quote, module = string.end, libcst.Module([])
    forbidden = (quote, "\\", "#") if len(quote) == 3 else (quote, "\\", "#", "\n")
    inside = [part.expression for part in string.parts if isinstance(part, libcst.FormattedStringExpression)]
    codes = [module.code_for_node(expression) for expression in inside]
    return any(sign in code for code in codes for sign in forbidden)


def _is_bare_tuple(handler: libcst.CSTNode) -> bool:
    caught = getattr(handler, "type", None)
    return type(caught).__name__ == "Tuple" and not caught.lpar  # type: ignore[union-attr]  # it is a Tuple
