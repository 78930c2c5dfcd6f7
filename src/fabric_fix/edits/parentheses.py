"""Which parentheses an expression needs where it is put."""

from __future__ import annotations

import libcst as cst

ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.BaseString,
    cst.BaseNumber,
    cst.Ellipsis,
)
"""What binds tightest; every other expression is put into parentheses beside an operator."""

_OPEN_FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Expr: ("value",),
    cst.Assign: ("value",),
    cst.AnnAssign: ("value", "annotation"),
    cst.AugAssign: ("value",),
    cst.Annotation: ("annotation",),
    cst.Return: ("value",),
    cst.Arg: ("value",),
    cst.Index: ("value",),
    cst.Element: ("value",),
    cst.DictElement: ("key", "value"),
    cst.If: ("test",),
    cst.While: ("test",),
    cst.For: ("iter",),
    cst.Assert: ("test", "msg"),
    cst.Raise: ("exc",),
    cst.From: ("item",),
    cst.WithItem: ("item",),
    cst.Param: ("default",),
    cst.NamedExpr: ("value",),
    cst.Lambda: ("body",),
    cst.Match: ("subject",),
    cst.Decorator: ("decorator",),
}
"""Where an expression stands alone, so that no operator beside it can take a part of it."""

_TUPLE_FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Expr: ("value",),
    cst.Assign: ("value",),
    cst.AssignTarget: ("target",),
    cst.Return: ("value",),
    cst.For: ("target",),
}
"""Where a tuple may stand without parentheses."""


def fit(new: cst.BaseExpression, old: cst.BaseExpression, parent: cst.CSTNode, field: str) -> cst.BaseExpression:
    """An expression as it is to be written in the place of another: in the old one's parentheses, or in its own."""
    lpar, rpar = outer_parentheses(old)
    if not lpar and needs_parentheses(new, parent, field):
        lpar, rpar = [cst.LeftParen()], [cst.RightParen()]
    if lpar and isinstance(new, cst.GeneratorExp | cst.Tuple) and new.lpar:
        return new.with_changes(lpar=[*lpar, *new.lpar], rpar=[*new.rpar, *rpar])
    return new.with_changes(lpar=lpar, rpar=rpar) if lpar else new


def outer_parentheses(old: cst.BaseExpression) -> tuple[list[cst.LeftParen], list[cst.RightParen]]:
    """The parentheses around an expression, without those that a tuple or a generator is written with."""
    lpar, rpar = list(old.lpar), list(old.rpar)
    if isinstance(old, cst.Tuple | cst.GeneratorExp) and lpar:
        return lpar[:-1], rpar[1:]
    return lpar, rpar


def needs_parentheses(new: cst.BaseExpression, parent: cst.CSTNode, field: str) -> bool:
    """Whether an expression would be read differently, or not at all, in a place without parentheses."""
    if new.lpar:
        return False
    if isinstance(new, cst.Tuple):
        return field not in _TUPLE_FIELDS.get(type(parent), ())
    if isinstance(new, cst.NamedExpr | cst.Yield | cst.GeneratorExp):
        return True
    if isinstance(new, cst.BaseNumber):
        return isinstance(parent, cst.Attribute)
    if isinstance(new, ATOMS):
        return False
    if isinstance(parent, cst.Arg) and parent.star:
        return True
    return field not in _OPEN_FIELDS.get(type(parent), ())
