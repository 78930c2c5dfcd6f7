"""Join the set-up of a model with that of its optimizer.

What is wrong
    `DeepSpeedStrategy` and `XLAStrategy` build one engine from model and optimizer, so they take them in one call.
    Set up apart, `setup_optimizers` raises "The `DeepSpeedStrategy` requires the model and optimizer(s) to be set up
    jointly through `.setup(model, optimizer, ...)`" (and DeepSpeed's ZeRO dies before, at `setup_module`: "zero
    stage 2 requires an optimizer").

Fix
        model = fabric.setup_module(model)                    optimizer = Adam(model.parameters())
        optimizer = Adam(model.parameters())          ->      model, optimizer = fabric.setup(model, optimizer)
        optimizer = fabric.setup_optimizers(optimizer)

    Where the program can also run under XLA FSDP, model parallel or another strategy that wants the separate set-up,
    a branch on `isinstance(fabric.strategy, (DeepSpeedStrategy, XLAStrategy))` keeps both.

Safety
    Safe when nothing between the two calls can tell a raw model from a wrapped one: creating the optimizer,
    `.parameters()`, `.train()`, reading an attribute, `torch.compile` cannot; a forward, a checkpoint, an attribute
    set, a function that the file does not show can. No fix then, nor when the calls stand in different functions or
    branches, or when the optimizer has the parameters of several models.

Fires only when DeepSpeed or XLA can be in use: read from the source, or named with `--strategy`.
Read in `lightning/fabric/fabric.py`, `_validate_setup_optimizers`-like check at the top of `setup_optimizers`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup, Use
from fabric_fix.analysis.objects import Inside, Obj
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.between import capture_problem, caught_problem, leaving_problem, parameters_problem
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
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule
from fabric_fix.scopes import only
from fabric_fix.setups import (
    Place,
    families,
    is_meta,
    models_of,
    module_argument,
    place_of_setup,
    renamed,
    setups_of_model,
    stored_places,
    strategy_names,
    wants,
)
from fabric_fix.trial import Trial

MOST_DUPLICATED = 4
"""Statements between the two calls that are written into both branches; with more the fix is left to the user."""

_OF_THE_WRAPPER = ("device", "dtype", "forward")
"""Attributes that the wrapper has and a raw module need not have (`_DeviceDtypeModuleMixin`), or has as another."""
_ALLOWED_METHODS = {
    "parameters",
    "buffers",
    "train",
    "eval",
    "requires_grad_",
    "modules",
    "load_state_dict",
    "zero_grad",
}
_ALLOWED_METHODS |= {"step", "add_param_group"}


@dataclass
class Pair:
    """A model with its optimizers, set up apart."""

    module: Place
    arg: ast.expr
    optimizers: list[int] = field(default_factory=list)
    """Positions in the `setup_optimizers` call."""


class SplitSetup(Rule):
    """Model and optimizer are set up apart under a strategy that takes them jointly."""

    code = "FF201"
    name = "split-setup"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `setup_optimizers` under DeepSpeed or XLA."""
        for node, setups in program.setups().items():
            if setups[0].method != "setup_optimizers":
                continue
            wanted = known.joint_only(families(setups))
            if wanted and not any(setup.rewrapped for setup in setups):
                yield self._judge(program, node, setups, wanted)

    def _judge(self, program: Program, node: ast.Call, setups: list[Setup], wanted: frozenset[str]) -> Finding:
        message = f"model and optimizer are set up apart, and {wants(wanted)} them in one `setup` call"
        optimizer = place_of_setup(program, node, setups)
        if isinstance(optimizer, str):
            return self.report(
                program, node, message, f"{optimizer}: write one `fabric.setup(model, optimizer)` by hand"
            )
        pairs = _pairs(program, optimizer, wanted)
        if isinstance(pairs, str):
            return self.report(program, node, message, pairs)
        separate = families(setups) & known.SEPARATE_ONLY
        if any(is_meta(pair.module.setups) for pair in pairs) and families(setups) & {"fsdp"}:
            separate |= {"fsdp"}
        if separate:
            return self._branch(program, node, message, optimizer, pairs, separate)
        return self._join(program, node, message, optimizer, pairs)

    def _join(self, program: Program, node: ast.Call, message: str, optimizer: Place, pairs: list[Pair]) -> Finding:
        last = max(optimizer.index, *(pair.module.index for pair in pairs))
        first = min(optimizer.index, *(pair.module.index for pair in pairs))
        reason: str | None = None
        for end in _ends(program, optimizer, last):
            edits = _joining(program, optimizer, pairs, first, last, end)
            if isinstance(edits, str):
                return self.report(program, node, message, edits)
            reason = _seen_between(program, optimizer, pairs, end)
            if reason is not None:
                continue
            trial = Trial(program, edits)
            hazards = trial.hazards()
            reason = trial.failure() or _told(trial, pairs) or next((str(h) for h in hazards if h.fatal), None)
            reason = reason or trial.refused_scheduler()
            if reason is None:
                fix = "Join the set-ups in one call"
                return self.fixed(program, node, message, fix, edits, _made_too_soon(program, optimizer, pairs))
        return self.report(program, node, message, reason or "nothing to join")

    def _branch(
        self,
        program: Program,
        node: ast.Call,
        message: str,
        optimizer: Place,
        pairs: list[Pair],
        separate: frozenset[str],
    ) -> Finding:
        reason: str | None = None
        for end in _ends(program, optimizer, optimizer.index):
            edits = _branching(program, optimizer, pairs, end)
            if isinstance(edits, str):
                why = f"{strategy_names(separate)} can also be in use, with a separate set-up, and {edits}"
                return self.report(program, node, message, reason or why)
            joint = _joining(program, optimizer, pairs, pairs[0].module.index, optimizer.index, end)
            if isinstance(joint, str):
                return self.report(program, node, message, joint)
            alone, trial = Trial(program, joint), Trial(program, edits)
            reason = (
                _seen_between(program, optimizer, pairs, end)
                or alone.failure()
                or _told(alone, pairs)
                or alone.refused_scheduler()
                or trial.failure()
            )
            if reason is None:
                return self.fixed(program, node, message, "Join the set-ups where the strategy wants it", edits)
        return self.report(program, node, message, reason or "nothing to join")


def _pairs(program: Program, optimizer: Place, wanted: frozenset[str]) -> list[Pair] | str:
    """The models whose optimizers are set up by a call, in the order of their set-up; or why they cannot be joined."""
    pairs: dict[ast.Call, Pair] = {}
    count = sum(argument.name is None for argument in optimizer.setups[0].args)
    if not count:
        return "the call has no optimizer"
    for position in range(count):
        model = only(models_of(program, optimizer.setups, position))
        found = _module_setup(program, optimizer, position, model)
        if isinstance(found, str):
            return found
        pair = pairs.setdefault(found.module.call, found)
        pair.optimizers.append(position)
    if any(known.is_deepspeed(f) for f in wanted) and any(len(pair.optimizers) > 1 for pair in pairs.values()):
        return "DeepSpeed takes one optimizer for a model: put the parameters into groups of one optimizer"
    return sorted(pairs.values(), key=lambda pair: pair.module.index)


def _module_setup(program: Program, optimizer: Place, position: int, model: Obj | None) -> Pair | str:
    models = models_of(program, optimizer.setups, position)
    if model is None:
        if len(models) > 1:
            return f"the optimizer has the parameters of {len(models)} models, and can be set up with one only"
        return "the source does not show whose parameters the optimizer has"
    calls = setups_of_model(program, model)
    if len(calls) != 1:
        where = "in several places" if calls else "where this file does not show it"
        return f"the model is set up {where}: set it up jointly with its optimizer there"
    call, setups = next(iter(calls.items()))
    module = place_of_setup(program, call, setups)
    if isinstance(module, str):
        return module
    if any(argument.name is None for argument in setups[0].args[1:]):
        return f"the model is set up on line {call.lineno} with another optimizer"
    arg = module_argument(setups[0])
    if module.block is not optimizer.block:
        return f"the model is set up on line {call.lineno}, in another branch or function: bring both together"
    if module.fabrics != optimizer.fabrics or arg is None or spelled(module.target) is None:
        return f"the set-up on line {call.lineno} is not of this Fabric alone"
    return Pair(module, arg)


def _ends(program: Program, optimizer: Place, last: int) -> list[int]:
    """Where a joint call can go: where the later of the two stood, or below a scheduler that needs a raw optimizer."""
    found = [last]
    for index in range(last + 1, min(last + 4, len(optimizer.block))):
        if "cheduler" in ast.dump(optimizer.block[index]) or "LR" in ast.unparse(optimizer.block[index]):
            found.append(index)
    return found


def _joining(
    program: Program, optimizer: Place, pairs: list[Pair], first: int, last: int, end: int
) -> list[Edit] | str:
    """The edits that make one joint call for each pair."""
    problem = _comments_problem(program, optimizer, pairs)
    if problem is not None:
        return problem
    targets = _targets(optimizer)
    if len(targets) != sum(argument.name is None for argument in optimizer.setups[0].args):
        return "the result of `setup_optimizers` is not unpacked into its optimizers"
    if len(pairs) == 1:
        return _one_call(program, optimizer, pairs[0], targets, last, end)
    return _many_calls(program, optimizer, pairs, targets, last, end)


def _comments_problem(program: Program, optimizer: Place, pairs: list[Pair]) -> str | None:
    removed = [pair.module.statement for pair in pairs]
    removed += [optimizer.statement] if len(pairs) > 1 or pairs[0].module.index > optimizer.index else []
    for statement in removed:
        segment = ast.get_source_segment(program.text, statement) or ""
        if "#" in segment and "\n" in segment:
            return f"there are comments within the statement on line {statement.lineno}, which would be lost"
    return None


def _targets(place: Place) -> list[ast.expr]:
    return list(place.target.elts) if isinstance(place.target, (ast.Tuple, ast.List)) else [place.target]


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
        edits += [AddArgument(Span.of(call), ast.unparse(k.value), keyword=k.arg) for k in _keywords(module, "module")]
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


def _keywords(place: Place, first: str) -> list[ast.keyword]:
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
        keywords = [f"{k.arg}={ast.unparse(k.value)}" for k in _keywords(pair.module, "module")]
        inner = [arg, *(ast.unparse(args[i]) for i in pair.optimizers), *keywords]
        outer = [ast.unparse(pair.module.target), *(ast.unparse(targets[i]) for i in pair.optimizers)]
        codes.append(f"{', '.join(outer)} = {optimizer.receiver}.setup({', '.join(inner)})")
    anchor = Span.of(optimizer.statement)
    inside = optimizer.statement
    edits = [e for e in edits if not (isinstance(e, ReplaceExpression) and _within(e.span, Span.of(inside)))]
    edits.append(ReplaceStatement(anchor, codes[-1]))
    edits += [InsertStatement(anchor, Where.BEFORE, code) for code in codes[:-1]]
    return edits


def _within(inner: Span, outer: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= (
        outer.end_line,
        outer.end_column,
    )


def _branching(program: Program, optimizer: Place, pairs: list[Pair], end: int) -> list[Edit] | str:
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
    segments = [_segment(program.text, s) for s in whole]
    if any("\n" in segment and ("#" in segment or '"""' in segment) for segment in segments):
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
    keywords = [f"{k.arg}={ast.unparse(k.value)}" for k in _keywords(pair.module, "module")]
    inner = ", ".join([arg, *args, *keywords])
    outer = ", ".join([target, *(ast.unparse(t) for t in _targets(optimizer))])
    return [*lines, f"{outer} = {optimizer.receiver}.setup({inner})"]


def _segment(text: str, statement: ast.stmt) -> str:
    """The source of a statement, its later lines without the indentation of the first."""
    first, *others = (ast.get_source_segment(text, statement) or "").split("\n")
    width = statement.col_offset
    return "\n".join([first, *(line[width:] if not line[:width].strip() else line for line in others)])


def _indented(line: str) -> str:
    return "\n".join(f"    {part}" for part in line.split("\n"))


def _seen_between(program: Program, optimizer: Place, pairs: list[Pair], end: int) -> str | None:
    """What the statements between the two calls do that the syntax alone shows to be in the way."""
    problem = caught_problem(program, optimizer.statement)
    for pair in pairs:
        start, stop = sorted((pair.module.index, optimizer.index))
        others = {optimizer.statement, *(p.module.statement for p in pairs)}
        between = [statement for statement in optimizer.block[start + 1 : end + 1] if statement not in others]
        first = pair.module if pair.module.index < optimizer.index else optimizer
        places = [ast.unparse(target) for target in _targets(first)]
        if stop - start == 1 and not between:
            return None
        problem = problem or leaving_problem(program, between)
        for place in places:
            problem = problem or capture_problem(program, between, place)
            problem = problem or parameters_problem(program, [*between, optimizer.statement], place)
    return problem


def _made_too_soon(program: Program, optimizer: Place, pairs: list[Pair]) -> list[str]:
    """Optimizers that look at the device of the parameters when they are made: now before Fabric moves them."""
    if program.project.requires("torch", 2, 4):
        return []
    for pair in pairs:
        for statement in optimizer.block[pair.module.index + 1 : optimizer.index + 1]:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and any(_is_true(k) for k in node.keywords if k.arg == "fused"):
                    return ["`fused=True` refuses parameters that are not on the device yet, before torch 2.4"]
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Adagrad"):
                    return ["Adagrad makes its state on the device that the parameters have when it is made"]
    return []


def _is_true(keyword: ast.keyword) -> bool:
    return not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)


def _told(trial: Trial, pairs: list[Pair]) -> str | None:
    """What stands between the two calls and can tell the raw model, which it would get now, from the wrapped one."""
    own = {pair.module.statement.lineno for pair in pairs}
    for use in trial.now_raw():
        if use.kind == "keep" and use.stmt.lineno in own:
            continue  # the set-up's own target
        if _tells(use):
            line = getattr(use.node, "lineno", use.stmt.lineno)
            named = ast.unparse(use.node.func) if isinstance(use.node, ast.Call) else use.detail
            what = {"call": "the forward", "keep": "what is kept"}.get(use.kind, f"`{named}`")
            return f"{what} on line {line} works on the wrapped object, and would get the raw one"
    return None


def _tells(use: Use) -> bool:
    if isinstance(use.obj, Inside):
        return True
    if use.kind == "attr":
        return use.detail in _OF_THE_WRAPPER
    if use.kind == "method":
        return use.detail not in _ALLOWED_METHODS
    return use.kind != "input"
