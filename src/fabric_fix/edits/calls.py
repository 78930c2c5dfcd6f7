"""Adding and removing arguments of calls, in the call's own layout and with all its comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst

from fabric_fix.edits.code import Maker, comments_in
from fabric_fix.edits.parentheses import needs_parentheses

Whitespace: TypeAlias = cst.BaseParenthesizableWhitespace
_NOTHING = cst.SimpleWhitespace("")
_BLANK = cst.SimpleWhitespace(" ")


def new_argument(value: cst.BaseExpression, keyword: str | None) -> cst.Arg:
    """An argument as it is usually written, without a comma."""
    arg = cst.Arg(
        value=value,
        keyword=None if keyword is None else cst.Name(keyword),
        equal=cst.MaybeSentinel.DEFAULT if keyword is None else cst.AssignEqual(_NOTHING, _NOTHING),
    )
    if needs_parentheses(value, arg, "value"):
        return arg.with_changes(value=_parenthesised(value))
    return arg


def positional_place(args: Sequence[cst.Arg], index: int | None) -> int:
    """Where in the text's order of arguments the positional argument with this index goes (None: the last)."""
    positionals = [at for at, arg in enumerate(args) if arg.keyword is None and arg.star != "**"]
    if index is not None and index < len(positionals):
        return positionals[index]
    return positionals[-1] + 1 if positionals else 0


def add_argument(call: cst.Call, arg: cst.Arg, at: int, make: Maker) -> cst.Call:
    """Put an argument before the one at `at`, or at the end, in the layout of its neighbours."""
    args = list(call.args)
    if not args:
        return _add_first(call, arg, make)
    if len(args) == 1 and isinstance(args[0].value, cst.GeneratorExp) and not args[0].value.lpar:
        args[0] = args[0].with_changes(value=_parenthesised(args[0].value))
        call = call.with_changes(args=args)
    return _append(call, arg, make) if at >= len(args) else _insert(call, arg, at, make)


def remove_argument(call: cst.Call, at: int, make: Maker) -> cst.Call:
    """Take an argument out; the comments in and beside it stay between the brackets."""
    args = list(call.args)
    removed = args.pop(at)
    before = _before(call, at)
    after = _after(removed)
    inside = comments_in([removed.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=_NOTHING)])
    lines = [make.comment_line(comment) for comment in inside]
    if not args:
        return call.with_changes(args=[], whitespace_before_args=_joined_around_nothing(before, lines, after, make))
    if at == len(args):
        joined = _join(before, lines, after, after if _is_broken(after) else before, make)
        args[-1] = _with_end(args[-1], joined if _has_comment(joined) else after, removed)
        return call.with_changes(args=args)
    return _with_before(call.with_changes(args=args), at, _gap(before, lines, after, at, make))


def name_argument(call: cst.Call, at: int, keyword: str) -> cst.Call:
    """Give an argument by keyword, with the comma and the comments that it has."""
    args = list(call.args)
    named = new_argument(args[at].value, keyword)
    args[at] = args[at].with_changes(value=named.value, keyword=named.keyword, equal=named.equal)
    return call.with_changes(args=args)


def _add_first(call: cst.Call, arg: cst.Arg, make: Maker) -> cst.Call:
    space = call.whitespace_before_args
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return call.with_changes(args=[arg])
    unit = cst.SimpleWhitespace(space.last_line.value + make.module.default_indent)
    own = next((line.whitespace for line in space.empty_lines if line.comment), unit)
    end = cst.ParenthesizedWhitespace(make.line_end(), [], space.indent, space.last_line)
    return call.with_changes(
        args=[arg.with_changes(whitespace_after_arg=end)],
        whitespace_before_args=space.with_changes(last_line=own),
    )


def _append(call: cst.Call, arg: cst.Arg, make: Maker) -> cst.Call:
    args = list(call.args)
    last, before = args[-1], _before(call, len(args) - 1)
    after = _after(last)
    if isinstance(before, cst.ParenthesizedWhitespace):
        gap: Whitespace = cst.ParenthesizedWhitespace(make.line_end(), [], before.indent, before.last_line)
        if isinstance(after, cst.ParenthesizedWhitespace):
            gap = after.with_changes(last_line=before.last_line, indent=before.indent)
            after = after.with_changes(first_line=make.line_end(), empty_lines=[])
    else:
        gap = _BLANK
    args[-1] = last.with_changes(comma=_comma(last, gap), whitespace_after_arg=_NOTHING)
    return call.with_changes(args=[*args, _with_end(arg, after, last)])


def _insert(call: cst.Call, arg: cst.Arg, at: int, make: Maker) -> cst.Call:
    before = _before(call, at)
    gap: Whitespace = _BLANK
    if isinstance(before, cst.ParenthesizedWhitespace):
        gap = before.with_changes(first_line=make.line_end())
        call = _with_before(call, at, before.with_changes(empty_lines=[]))
    args = list(call.args)
    args.insert(at, arg.with_changes(comma=cst.Comma(whitespace_after=gap)))
    return call.with_changes(args=args)


def _before(call: cst.Call, at: int) -> Whitespace:
    """The whitespace between the bracket or comma and the argument at `at`."""
    if at == 0:
        return call.whitespace_before_args
    comma = call.args[at - 1].comma
    return comma.whitespace_after if isinstance(comma, cst.Comma) else _BLANK


def _with_before(call: cst.Call, at: int, space: Whitespace) -> cst.Call:
    if at == 0:
        return call.with_changes(whitespace_before_args=space)
    args = list(call.args)
    args[at - 1] = args[at - 1].with_changes(comma=_comma(args[at - 1], space))
    return call.with_changes(args=args)


def _after(arg: cst.Arg) -> Whitespace:
    """The whitespace behind an argument and its comma."""
    if isinstance(arg.comma, cst.Comma):
        return arg.comma.whitespace_after
    return arg.whitespace_after_arg


def _comma(arg: cst.Arg, space: Whitespace) -> cst.Comma:
    if isinstance(arg.comma, cst.Comma):
        return arg.comma.with_changes(whitespace_after=space)
    return cst.Comma(whitespace_after=space)


def _with_end(arg: cst.Arg, space: Whitespace, like: cst.Arg) -> cst.Arg:
    """A last argument with the whitespace before the bracket, and a comma if `like` had one."""
    if isinstance(like.comma, cst.Comma):
        comma = arg.comma if isinstance(arg.comma, cst.Comma) else cst.Comma()
        return arg.with_changes(comma=comma.with_changes(whitespace_after=space))
    return arg.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=space)


def _gap(before: Whitespace, lines: Sequence[cst.EmptyLine], after: Whitespace, at: int, make: Maker) -> Whitespace:
    """What stands between the neighbours of a removed argument."""
    if not lines and not _has_comment(before) and not _has_comment(after):
        if _is_broken(before) or at == 0:
            return before
        return after
    return _join(before, lines, after, before if _is_broken(before) else after, make)


def _join(
    before: Whitespace, lines: Sequence[cst.EmptyLine], after: Whitespace, ending: Whitespace, make: Maker
) -> cst.ParenthesizedWhitespace:
    """All comments of two whitespaces and of what stood between, and then the indentation of `ending`."""
    first = before.first_line if isinstance(before, cst.ParenthesizedWhitespace) else make.line_end()
    kept = list(before.empty_lines) if isinstance(before, cst.ParenthesizedWhitespace) else []
    last_line = ending.last_line if isinstance(ending, cst.ParenthesizedWhitespace) else _NOTHING
    indent = ending.indent if isinstance(ending, cst.ParenthesizedWhitespace) else True
    own = last_line.with_changes(value=last_line.value + make.module.default_indent)
    if isinstance(before, cst.ParenthesizedWhitespace):
        own, indent = before.last_line, before.indent
    kept.extend(line.with_changes(whitespace=own, indent=indent) for line in lines)
    if isinstance(after, cst.ParenthesizedWhitespace):
        behind = after.first_line.comment
        if behind is not None:
            kept.append(make.comment_line(behind).with_changes(whitespace=own))
        kept.extend(after.empty_lines)
    return cst.ParenthesizedWhitespace(first, kept, indent, last_line)


def _joined_around_nothing(
    before: Whitespace, lines: Sequence[cst.EmptyLine], after: Whitespace, make: Maker
) -> Whitespace:
    joined = _join(before, lines, after, after, make)
    return joined if _has_comment(joined) else _NOTHING


def _is_broken(space: Whitespace) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace)


def _has_comment(space: Whitespace) -> bool:
    return bool(comments_in([space]))


def _parenthesised(value: cst.BaseExpression) -> cst.BaseExpression:
    return value.with_changes(lpar=[cst.LeftParen(), *value.lpar], rpar=[*value.rpar, cst.RightParen()])
