"""What an annotation says of a parameter or field."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from fabric_fix.analysis import known
from fabric_fix.analysis.objects import Class, External

if TYPE_CHECKING:
    from fabric_fix.analysis.frames import Frame
    from fabric_fix.analysis.interp import Interpreter


def kind_of(it: Interpreter, node: ast.expr, frame: Frame) -> str:
    """'fabric' for `Fabric`, `L.Fabric`, a subclass, in quotes, `Optional[...]`, `Union[...]`, `X | None`; else ''."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return kind_of(it, node.left, frame) or kind_of(it, node.right, frame)
    if isinstance(node, ast.Subscript):
        return _inside(it, node, frame)
    if isinstance(node, (ast.Name, ast.Attribute)):
        outer, it.frame = it.frame, frame
        found = _named(it, node)
        it.frame = outer
        return found
    return ""


def _inside(it: Interpreter, node: ast.Subscript, frame: Frame) -> str:
    name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    if name not in ("Optional", "Union", "Annotated", "Final", "ClassVar"):
        return ""
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for item in items:
        found = kind_of(it, item, frame)
        if found:
            return found
    return ""


def _named(it: Interpreter, node: ast.expr) -> str:
    from fabric_fix.analysis.expressions import quiet

    for obj in quiet(it, node):
        if isinstance(obj, External) and known.is_fabric_class(obj.path):
            return "fabric"
        if isinstance(obj, Class) and obj.kind == "fabric":
            return "fabric"
    return ""
