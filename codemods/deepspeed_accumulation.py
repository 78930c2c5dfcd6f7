"""Report gradients that are accumulated by hand under DeepSpeed.

What is wrong
    Under ZeRO stage 1 and 2 (2 is the default) several `fabric.backward(...)` calls before one `optimizer.step()`
    keep only the last one's gradients: the program trains on a part of its batch and says nothing (seen with DeepSpeed
    0.19.8). `no_backward_sync` does nothing there.

Fix
    None: what is meant is the author's to say. Add up the losses of the micro batches for one `backward`, or use ZeRO
    stage 0 or 3, which accumulate. `gradient_accumulation_steps` in the strategy's `config` does not help: Fabric steps
    the optimizer itself, and the engine never counts.

Fires only when DeepSpeed can be in use and the source shows the accumulation: two backward calls of one model in a row,
or a `step()` that only some turns of the loop reach. A step that is skipped for a loss that is not finite is no
accumulation, nor are gradients that a backward for another optimizer, which has stepped since, left in the model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Backward
from fabric_fix.analysis.fabric_calls import models_of_optimizer
from fabric_fix.analysis.objects import Const, raws
from fabric_fix.analysis.program import Program
from fabric_fix.finding import Finding
from fabric_fix.rule import Rule
from fabric_fix.scopes import has_node

_ACCUMULATES = frozenset({"deepspeed_0", "deepspeed_3"})
_SKIPS = ("isfinite", "isnan", "isinf", "nan", "inf", "skip")


class DeepspeedAccumulation(Rule):
    """Several backward calls come before one step under DeepSpeed."""

    code = "FF206"
    name = "deepspeed-accumulation"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find backward calls that run again before their optimizer steps."""
        for node, events in program.own(program.backwards()).items():
            if any(_accumulates(program, event) for event in events):
                message = (
                    "under DeepSpeed only the last `backward` before `step()` counts: gradients are not accumulated"
                )
                reason = (
                    "add the losses up before one `backward`, or use ZeRO stage 0 or 3, which accumulate "
                    "(`gradient_accumulation_steps` does not help: Fabric steps the optimizer itself)"
                )
                yield self.report(program, node, message, reason)


def _accumulates(program: Program, event: Backward) -> bool:
    if not any(known.is_deepspeed(f) and f not in _ACCUMULATES for f in event.strategies):
        return False
    for earlier in event.repeats:
        if earlier.node is not event.node:
            if earlier in event.group and _one_model(event, earlier) and _same_turn(program, event, earlier):
                return True
        elif _step_is_chosen(program, event):
            return True
    return False


def _one_model(event: Backward, earlier: Backward) -> bool:
    """Whether both losses are of one model, and of that alone."""
    mine, other = raws(event.deps & event.models), raws(earlier.deps & earlier.models)
    return len(mine) == 1 and mine == other


def _same_turn(program: Program, event: Backward, earlier: Backward) -> bool:
    """Whether the earlier call is above this one in the source, so that they run one after the other."""
    if any(isinstance(around, ast.ExceptHandler) for around in program.syntax.ancestors(event.node)):
        return False  # it takes the place of one that failed
    return earlier.frame is not event.frame or earlier.node.lineno < event.node.lineno


def _step_is_chosen(program: Program, event: Backward) -> bool:
    """Whether the step that follows stands in a branch, or outside the loop, that some turns do not reach."""
    steps = _steps_of(program, event)
    if not steps:
        return False
    loops = set(program.syntax.loops(event.node))
    for step in steps:
        around = program.syntax.ancestors(step)
        if loops and not loops & set(around) and program.syntax.function(step) is program.syntax.function(event.node):
            continue
        if _every_turn(event, around):
            return False
        if _waits_by_continue(program, event, step):
            continue
        branches = [a for a in around if isinstance(a, ast.If) and not has_node(a, event.node)]
        if loops <= set(around) and not branches:
            return False
        if any(word in ast.unparse(branch.test).lower() for branch in branches for word in _SKIPS):
            return False
        if any(_first_turn_only(program, branch) for branch in branches):
            return False
    return True


def _waits_by_continue(program: Program, event: Backward, step: ast.Call) -> bool:
    """`if (i + 1) % n != 0: continue` between the backward and the step."""
    for node in ast.walk(program.tree):
        if isinstance(node, ast.If) and event.node.lineno <= node.lineno <= step.lineno:
            counts = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in ast.walk(node.test))
            if counts and isinstance(node.body[-1], ast.Continue) and not _every_turn(event, [node]):
                return True
    return False


def _first_turn_only(program: Program, branch: ast.If) -> bool:
    """`if i:` or `if i > 0:` in a loop over `i`: only the first turn is left out."""
    test = branch.test
    name = test.left if isinstance(test, ast.Compare) else test
    zero = not isinstance(test, ast.Compare) or (
        isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == 0
    )
    if not isinstance(name, ast.Name) or not zero:
        return False
    targets = [getattr(loop, "target", None) for loop in program.syntax.loops(branch)]
    names = {n.id for target in targets if target is not None for n in ast.walk(target) if isinstance(n, ast.Name)}
    return name.id in names


def _every_turn(event: Backward, around: list[ast.AST]) -> bool:
    """Whether the step waits for `% n` turns where `n` is surely 1."""
    for branch in around:
        for node in ast.walk(branch.test) if isinstance(branch, ast.If) else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                number = node.right
                value = event.places.get(ast.unparse(number), frozenset())
                known_one = value and all(isinstance(obj, Const) and obj.value == 1 for obj in value)
                if known_one or (isinstance(number, ast.Constant) and number.value == 1):
                    return True
    return False


def _steps_of(program: Program, event: Backward) -> list[ast.Call]:
    models = raws(event.deps)
    found: list[ast.Call] = []
    for node, steps in program.steps().items():
        for step in steps:
            if any(models_of_optimizer(obj) & models for obj in step.optimizers):
                found.append(node)
                break
    return found
