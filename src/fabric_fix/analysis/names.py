"""Under which names a file knows a Fabric that it gets from elsewhere."""

from __future__ import annotations

import ast

from fabric_fix.analysis.known import UNIQUE_METHODS


def last_name(node: ast.expr) -> str:
    """The last name of `a`, `a.b` or `a.b.c`; '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def known_spellings(tree: ast.Module) -> frozenset[str]:
    """Names such as `fabric` on which this file calls a method that only a Fabric has.

    None, when the file defines such methods itself or imports the SSH library `fabric`: then a name proves nothing.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in UNIQUE_METHODS:
            name = last_name(node.func.value)
            if "fabric" in name.lower():
                found.add(name)
        elif isinstance(node, ast.ClassDef):
            if any(getattr(item, "name", "") in UNIQUE_METHODS for item in node.body) and not _fabric_base(node):
                return frozenset()
        elif _imports_ssh_fabric(node):
            return frozenset()
    return frozenset(found)


def _fabric_base(node: ast.ClassDef) -> bool:
    return any(last_name(base) in ("Fabric", "LightningLite") for base in node.bases)


def _imports_ssh_fabric(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in ("fabric", "fabric2") for alias in node.names)
    return (
        isinstance(node, ast.ImportFrom)
        and node.level == 0
        and (node.module or "").partition(".")[0] in ("fabric", "fabric2")
    )
