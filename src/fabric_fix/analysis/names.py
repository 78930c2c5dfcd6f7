"""Under which names a file knows a Fabric that it gets from elsewhere."""

from __future__ import annotations

import ast
import re

from fabric_fix.analysis.frames import push_children
from fabric_fix.analysis.known import UNIQUE_METHODS


def last_name(node: ast.expr) -> str:
    """The last name of `a`, `a.b` or `a.b.c`; '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


_CALLED = re.compile(rf"\.(?:{'|'.join(sorted(UNIQUE_METHODS))})\(")
_NAME_BEFORE = re.compile(r"\w+\Z")
_LONG_STRING = re.compile(r"(\"\"\"|''')[\s\S]*?\1")


def known_spellings(tree: ast.Module, text: str) -> frozenset[str]:
    """Names such as `fabric` on which this file calls a method that only a Fabric has.

    None, when the file defines such methods itself or imports the SSH library `fabric`: then a name proves nothing.
    The text answers for nearly every file; only where it could be misread (a quote or a `#` before the call, such a
    definition) is the tree walked.
    """
    if any(f"def {method}" in text for method in UNIQUE_METHODS) or "import fabric" in text or "from fabric" in text:
        return _spellings_of(tree)
    if _CALLED.search(text) is None:
        return frozenset()
    code = _LONG_STRING.sub("", text) if '"""' in text or "'''" in text else text
    found: set[str] = set()
    for match in _CALLED.finditer(code):
        line = code[code.rfind("\n", 0, match.start()) + 1 : match.start()]
        name = _NAME_BEFORE.search(line)
        if name is None or "fabric" not in name[0].lower():
            continue
        if set(line) & set("#'\""):
            return _spellings_of(tree)
        found.add(name[0])
    return frozenset(found)


def _spellings_of(tree: ast.Module) -> frozenset[str]:
    found: set[str] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        push_children(node, stack)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in UNIQUE_METHODS:
            name = last_name(node.func.value)
            if "fabric" in name.lower():
                found.add(name)
        elif isinstance(node, ast.ClassDef):
            if any(getattr(item, "name", "") in UNIQUE_METHODS for item in node.body) and not _fabric_base(node):
                return frozenset()
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and _imports_ssh_fabric(node):
            return frozenset()
    return frozenset(found)


def _fabric_base(node: ast.ClassDef) -> bool:
    return any(last_name(base) in ("Fabric", "LightningLite") for base in node.bases)


def _imports_ssh_fabric(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in ("fabric", "fabric2") for alias in node.names)
    return node.level == 0 and (node.module or "").partition(".")[0] in ("fabric", "fabric2")
