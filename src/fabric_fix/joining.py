"""How set-ups that stand apart become one joint call, or both in a branch on the strategy: the edits of FF201."""

from __future__ import annotations

import ast

from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.conflicts import contains
from fabric_fix.edits.model import (
    AddArgument,
    AddImport,
    Edit,
    InsertStatement,
    MoveStatement,
    RemoveStatement,
    ReplaceExpression,
    ReplaceStatement,
    ReplaceTargets,
    Where,
)
from fabric_fix.finding import Span
from fabric_fix.segments import segment
from fabric_fix.setups import Place, renamed, stored_places, targets_of

MOST_DUPLICATED = 4
"""Statements between the two calls that are written into both branches; with more the fix is left to the user."""


class Pair:
    """A model with its optimizers, set up apart."""

    def __init__(self, module: Place, arg: ast.expr) -> None:
        self.module = module
        self.arg = arg
        self.optimizers: list[int] = []
        """Positions in the `setup_optimizers` call."""


def joining(program: Program, optimizer: Place, pairs: list[Pair], first: int, last: int, end: int) -> list[Edit] | str:
    """The edits that make one joint call for each pair."""
    problem = _comments_problem(program, optimizer, pairs)
    if problem is not None:
        return problem
    targets = targets_of(optimizer)
    if len(targets) != sum(argument.name is None for argument in optimizer.setups[0].args):
        return "the result of `setup_optimizers` is not unpacked into its optimizers"
    if len(pairs) == 1:
        return _one_call(program, optimizer, pairs[0], targets, last, end)
    return _many_calls(program, optimizer, pairs, targets, last, end)


def _comments_problem(program: Program, optimizer: Place, pairs: list[Pair]) -> str | None:
    removed = [pair.module.statement for pair in pairs]
    removed += [optimizer.statement] if len(pairs) > 1 or pairs[0].module.index > optimizer.index else []
    for statement in removed:
        code = segment(program, statement)
        if "#" in code and "\n" in code:
            return f"there are comments within the statement on line {statement.lineno}, which would be lost"
    return None


def _one_call(
    program: Program, optimizer: Place, pair: Pair, targets: list[ast.expr], last: int, end: int
) -> list[Edit] | str:
    """Change the later of the two statements into the joint call, and take the earlier one away."""
    module = pair.module
    names = [ast.unparse(target) for target in targets]
    whole = ", ".join([ast.unparse(module.target), *names])
    optimizers = [argument.node for argument in optimizer.setups[0].args if argument.name is None]
    edits: list[Edit] = []
    if module.index < optimizer.index:
        kept, call = optimizer.statement, optimizer.call
        between = optimizer.block[module.index + 1 : end + 1]
        arg = _raw_name(edits, pair, between)
        if arg is None:
            both = f"`{ast.unparse(module.target)}` and `{ast.unparse(pair.arg)}`"
            return f"{both} are both used or assigned between the calls"
        edits.append(AddArgument(Span.of(call), arg, index=0))
        edits += [
            AddArgument(Span.of(call), ast.unparse(k.value), keyword=k.arg) for k in keywords_of(module, "module")
        ]
    else:
        kept, call = module.statement, module.call
        between = optimizer.block[optimizer.index + 1 : end + 1]
        args = _raw_optimizers(edits, optimizer, targets, optimizers, between)
        if args is None:
            return "the optimizers are used under two names between the calls"
        for position, arg in enumerate(args, 1):
            edits.append(AddArgument(Span.of(call), arg, index=position))
    edits.append(ReplaceTargets(Span.of(kept), whole))
    edits.append(_callee(call))
    if end > last:
        edits.append(MoveStatement(Span.of(kept), Span.of(optimizer.block[end]), Where.AFTER))
    return edits


def _callee(call: ast.Call) -> Edit:
    assert isinstance(call.func, ast.Attribute)
    return ReplaceExpression(Span.of(call.func), f"{ast.unparse(call.func.value)}.setup")


def keywords_of(place: Place, first: str) -> list[ast.keyword]:
    """The keywords of a set-up call but its module."""
    return [keyword for keyword in place.call.keywords if keyword.arg not in (None, first)]


def _raw_name(edits: list[Edit], pair: Pair, between: list[ast.stmt]) -> str | None:
    """Take the module's own set-up away; the name of the raw model between and in the joint call, None when unclear."""
    target, arg = ast.unparse(pair.module.target), spelled(pair.arg)
    if arg is None:
        edits.append(ReplaceExpression(Span.of(pair.module.call), _source(pair.arg)))
        return target
    stored = set().union(*(stored_places(statement) for statement in between[:-1])) if between else set()
    if arg in stored or target in stored:
        return None
    edits.append(RemoveStatement(Span.of(pair.module.statement)))
    if arg != target:
        edits += renamed(between, target, arg)
    return arg


def _source(node: ast.expr) -> str:
    return ast.unparse(node)


def _raw_optimizers(
    edits: list[Edit], optimizer: Place, targets: list[ast.expr], args: list[ast.expr], between: list[ast.stmt]
) -> list[str] | None:
    """Take the optimizers' own set-up away; the names of the raw optimizers between and in the joint call."""
    found: list[str] = []
    if len(args) == 1 and spelled(args[0]) is None:
        edits.append(ReplaceExpression(Span.of(optimizer.call), _source(args[0])))
        return [ast.unparse(targets[0])]
    stored = set().union(*(stored_places(statement) for statement in between[:-1])) if between else set()
    for target, arg in zip(targets, args, strict=True):
        name, new = ast.unparse(target), spelled(arg)
        if new is None or new in stored or name in stored:
            return None
        if new != name:
            edits += renamed(between, name, new)
        found.append(new)
    edits.append(RemoveStatement(Span.of(optimizer.statement)))
    return found


def _many_calls(
    program: Program, optimizer: Place, pairs: list[Pair], targets: list[ast.expr], last: int, end: int
) -> list[Edit] | str:
    """Several models in one `setup_optimizers`: a joint call for each, where the later statement stood."""
    edits: list[Edit] = []
    if any(pair.module.index > optimizer.index for pair in pairs):
        return "a model is set up below its optimizer: set each up jointly"
    args = [argument.node for argument in optimizer.setups[0].args if argument.name is None]
    codes: list[str] = []
    for pair in pairs:
        between = optimizer.block[pair.module.index + 1 : end + 1]
        arg = _raw_name(edits, pair, between)
        if arg is None:
            return "a model is used under two names between the calls"
        keywords = [f"{k.arg}={ast.unparse(k.value)}" for k in keywords_of(pair.module, "module")]
        inner = [arg, *(ast.unparse(args[i]) for i in pair.optimizers), *keywords]
        outer = [ast.unparse(pair.module.target), *(ast.unparse(targets[i]) for i in pair.optimizers)]
        codes.append(f"{', '.join(outer)} = {optimizer.receiver}.setup({', '.join(inner)})")
    anchor = Span.of(optimizer.statement)
    inside = optimizer.statement
    edits = [e for e in edits if not (isinstance(e, ReplaceExpression) and contains(Span.of(inside), e.span))]
    edits.append(ReplaceStatement(anchor, codes[-1]))
    edits += [InsertStatement(anchor, Where.BEFORE, code) for code in codes[:-1]]
    return edits


def branching(program: Program, optimizer: Place, pairs: list[Pair], end: int) -> list[Edit] | str:
    """Both set-ups, with the statements between them and down to `end`, in a branch on the strategy."""
    if len(pairs) != 1 or pairs[0].module.index > optimizer.index:
        return "the set-ups are of several models, or in the other order: branch on the strategy by hand"
    module = pairs[0].module
    between = optimizer.block[module.index + 1 : optimizer.index]
    below = optimizer.block[optimizer.index + 1 : end + 1]
    copied = [*between, *below]
    if len(copied) > MOST_DUPLICATED or any(not isinstance(s, (ast.Assign, ast.Expr)) for s in copied):
        return "too much stands between the calls to write it into two branches: branch on the strategy by hand"
    whole = [module.statement, *between, optimizer.statement, *below]
    segments = [_segment(program, s) for s in whole]
    if any("\n" in code and ("#" in code or '"""' in code) for code in segments):
        return "comments or long strings stand between the calls: branch on the strategy by hand"
    separate = segments
    at = len(between) + 1
    joint = _joint_lines(optimizer, pairs[0], separate[1:at] + separate[at + 1 :])
    if joint is None:
        return "a name is used for both the raw and the wrapped model: branch on the strategy by hand"
    condition = f"isinstance({optimizer.receiver}.strategy, (DeepSpeedStrategy, XLAStrategy))"
    code = "\n".join([f"if {condition}:", *map(_indented, joint), "else:", *map(_indented, separate)])
    edits: list[Edit] = [RemoveStatement(Span.of(s)) for s in whole if s is not optimizer.statement]
    edits.append(ReplaceStatement(Span.of(optimizer.statement), code))
    home = "lightning.fabric.strategies"
    return [*edits, AddImport(home, "DeepSpeedStrategy"), AddImport(home, "XLAStrategy")]


def _joint_lines(optimizer: Place, pair: Pair, between: list[str]) -> list[str] | None:
    target, arg = ast.unparse(pair.module.target), spelled(pair.arg)
    args = [ast.unparse(argument.node) for argument in optimizer.setups[0].args if argument.name is None]
    lines = list(between)
    if arg is None:
        lines.insert(0, f"{target} = {ast.unparse(pair.arg)}")
        arg = target
    elif arg != target:
        return None
    keywords = [f"{k.arg}={ast.unparse(k.value)}" for k in keywords_of(pair.module, "module")]
    inner = ", ".join([arg, *args, *keywords])
    outer = ", ".join([target, *(ast.unparse(t) for t in targets_of(optimizer))])
    return [*lines, f"{outer} = {optimizer.receiver}.setup({inner})"]


def _segment(program: Program, statement: ast.stmt) -> str:
    """The source of a statement, its later lines without the indentation of the first."""
    first, *others = segment(program, statement).split("\n")
    width = statement.col_offset
    return "\n".join([first, *(line[width:] if not line[:width].strip() else line for line in others)])


def _indented(line: str) -> str:
    return "\n".join(f"    {part}" for part in line.split("\n"))
