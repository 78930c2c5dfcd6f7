"""Random small programs in every layout that Python allows, and random edits of them."""

from __future__ import annotations

import ast
import random

from fabric_fix.edits.model import (
    AddArgument,
    AddImport,
    BindResult,
    Edit,
    InsertStatement,
    MoveStatement,
    NameArgument,
    RemoveArgument,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
    ReplaceTargets,
    Where,
)
from fabric_fix.edits.places import blocks_of
from fabric_fix.finding import Span

SIMPLE = (
    "a",
    "a = b",
    "f(a)",
    "x.y.f(a, b, k=c)",
    "(f(a))",
    "a, b = g.h(c)",
    "(a, b) = c",
    "x[a, f(b)] = c if d else e",
    "f(*a, **b)",
    "f(c for c in d)",
    "a = '''s\n  t # no comment\n'''",
    "b = 'é😀' + f(a)",
    "f(\n  a,  # {}\n  b,\n  # {}\n)",
    "f(  # {}\n    a,\n    k=b  # {}\n)",
    "f(\n    # {}\n)",
    "f(a,\n  b)",
    "a = b + \\\n  c",
    "del a",
    "assert a, b",
    "a: int = b",
    "a += f(b)",
    "print(f'{a} {b.c}')",
    "x = lambda a: f(a)",
    "f(a)(b).c(d, )",
)
HEADS = (
    "if a:",
    "while f(a):",
    "for a in f(b):",
    "with f(a) as b:",
    "class C(a):",
    "def f(a, b=c):",
    "@f(a)\ndef g():",
)
NEW = (
    "new",
    "new = f(a)",
    "with m:\n    new",
    "for i in n:\n    if i:\n        new(i)",
    "s = '''t\n  u'''",
    "g(\n    h,\n)",
)
EXPRESSIONS = ("n", "n.o", "n + o", "n, o", "lambda: n", "n if o else p", "(n)", "not n", "f(n)", "n := o", "-n")


class Writer:
    """Writes one program; `text` is what comes out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.unit = self.random.choice(("    ", "  ", "\t"))
        self.comments = 0

    def text(self) -> str:
        lines = ["#!/bin/sh", "# header", ""] if self.chance(0.3) else []
        lines += ["'''doc'''"] if self.chance(0.3) else []
        lines += ["import os"] if self.chance(0.5) else []
        lines += self.block("", 0)
        kinds = self.random.choice((("\n",), ("\n",), ("\r\n",), ("\r",), ("\n", "\r\n")))
        text = "".join(line + self.random.choice(kinds) for line in "\n".join(lines).split("\n"))
        if self.chance(0.2) or text.endswith("\r"):
            text = text.rstrip("\r\n")
        return text

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def comment(self) -> str:
        self.comments += 1
        return f"# c{self.comments}"

    def block(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            lines += [""] * self.random.choice((0, 0, 0, 1, 2))
            if self.chance(0.2):
                lines.append(indent + self.comment())
            lines += self.statement(indent, depth)
        if self.chance(0.15):
            lines += [""] * self.random.choice((0, 1)) + [indent + self.comment()]
        return lines

    def statement(self, indent: str, depth: int) -> list[str]:
        if depth < 3 and self.chance(0.35):
            return self.compound(indent, depth)
        return [indent + self.line()]

    def line(self) -> str:
        parts = [self.small() for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        joined = self.random.choice(("; ", ";", " ; ", "; \\\n ")).join(parts)
        return joined + self.random.choice(("", "", "", ";")) + (f"  {self.comment()}" if self.chance(0.2) else "")

    def small(self) -> str:
        code = self.random.choice(SIMPLE)
        while "{}" in code:
            code = code.replace("{}", self.comment()[2:], 1)
        return code

    def compound(self, indent: str, depth: int) -> list[str]:
        kind = self.random.randrange(5)
        if kind == 0:
            return [*self.suite("try:", indent, depth), *self.suite(self._handler(), indent, depth)]
        if kind == 1:
            middle = self.suite("elif f(b):", indent, depth) if self.chance(0.5) else []
            return [*self.suite("if a:", indent, depth), *middle, *self.suite("else:", indent, depth)]
        if kind == 2:
            deeper = indent + self.unit
            cases = [line for case in ("1", "_") for line in self.suite(f"case {case}:", deeper, depth + 1)]
            return [f"{indent}match f(a):", *cases]
        return self.suite(self.random.choice(HEADS), indent, depth)

    def _handler(self) -> str:
        return self.random.choice(("except E as e:", "finally:"))

    def suite(self, head: str, indent: str, depth: int) -> list[str]:
        lines = [indent + line for line in head.split("\n")]
        if self.chance(0.3):
            lines[-1] += " " + self.line()
            return lines
        if self.chance(0.2):
            lines[-1] += "  " + self.comment()
        return [*lines, *self.block(indent + self.unit, depth + 1)]


def random_edits(text: str, seed: int, count: int) -> list[Edit]:
    """Some edits of random places; some of them contradict each other or must be refused."""
    chooser = random.Random(seed)
    tree = ast.parse(text)
    return [edit for _ in range(count) if (edit := _random_edit(tree, chooser)) is not None]


def _random_edit(tree: ast.Module, chooser: random.Random) -> Edit | None:
    nodes = list(ast.walk(tree))
    if chooser.random() < 0.4:
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        names = [node for node in nodes if isinstance(node, ast.Name | ast.Attribute)]
        return _expression_edit(calls, names, chooser)
    blocks = [block for node in nodes for owner, block in blocks_of(node) if owner is node]
    block = chooser.choice(blocks)
    return _statement_edit(block, chooser)


def _statement_edit(block: list[ast.stmt], chooser: random.Random) -> Edit:
    statement, anchor = chooser.choice(block), Span.of(chooser.choice(block))
    span, where, code = Span.of(statement), chooser.choice(list(Where)), chooser.choice(NEW)
    edits: list[Edit] = [RemoveStatement(span), InsertStatement(anchor, where, code), ReplaceStatement(span, code)]
    if anchor != span:
        edits.append(MoveStatement(span, anchor, where))
    if isinstance(statement, ast.Expr):
        edits += [BindResult(span, "r"), BindResult(span, "r, s")]
    if isinstance(statement, ast.Assign):
        edits += [ReplaceTargets(span, "r"), ReplaceTargets(span, "r, s.t")]
    if chooser.random() < 0.1:
        return AddImport("os.path", chooser.choice(("join", "split")))
    return chooser.choice(edits)


def _expression_edit(
    calls: list[ast.Call], names: list[ast.Name | ast.Attribute], chooser: random.Random
) -> Edit | None:
    if names and (not calls or chooser.random() < 0.4):
        return ReplaceExpression(Span.of(chooser.choice(names)), chooser.choice(EXPRESSIONS))
    if not calls:
        return None
    call = chooser.choice(calls)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if call.args and chooser.random() < 0.2:
        return NameArgument(Span.of(call), Span.of(call.args[-1]), "new")
    if values and chooser.random() < 0.4:
        return RemoveArgument(Span.of(call), Span.of(chooser.choice(values)))
    if chooser.random() < 0.5:
        return AddArgument(Span.of(call), chooser.choice(EXPRESSIONS), keyword="new")
    return AddArgument(Span.of(call), chooser.choice(EXPRESSIONS), index=chooser.choice((None, 0, 1)))
