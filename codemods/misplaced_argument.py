"""Take schedulers and dataloaders out of the place of optimizers in `setup`.

What is wrong
    Every positional argument of `fabric.setup` after the model is an optimizer. A scheduler or a dataloader there is
    wrapped as one, mostly without an error: the learning rate is never changed, the loader never distributed. DeepSpeed
    says "Currently only one optimizer is supported".

Fix
        model, optimizer, scheduler = fabric.setup(model, optimizer, scheduler)
    ->  model, optimizer = fabric.setup(model, optimizer)

    where the project requires Lightning 2.6 or later: `fabric.setup(model, optimizer, scheduler=scheduler)`.
    A dataloader gets a call of its own: `loader = fabric.setup_dataloaders(loader)`.

Safety
    Safe when what is passed surely is a scheduler (of `torch.optim.lr_scheduler`, transformers, or a subclass) or a
    DataLoader, and the result is unpacked into one target for each argument, the misplaced one under its own name.
    Else it is reported, as behind `*`. The scheduler keeps working on the raw optimizer, whose `param_groups` the
    wrapped one shares.

Read in `lightning/fabric/fabric.py` (`setup`; `scheduler=` is in 2.6.0 and in no 2.5 release).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis.events import Argument, Setup
from fabric_fix.analysis.methods import is_loader, is_scheduler
from fabric_fix.analysis.places import spelled
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import (
    AddArgument,
    Edit,
    InsertStatement,
    NameArgument,
    RemoveArgument,
    ReplaceTargets,
    Where,
)
from fabric_fix.finding import Finding, Span
from fabric_fix.rule import Rule
from fabric_fix.setups import Place, place_of_setup
from fabric_fix.trial import Trial


class MisplacedArgument(Rule):
    """A scheduler or dataloader is passed to `setup` as if it were an optimizer."""

    code = "FF106"
    name = "misplaced-argument"
    by_hand = "take the argument out of the call"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find schedulers and loaders among the optimizers of `setup`."""
        for node, setups in program.own(program.setups()).items():
            if setups[0].method != "setup":
                continue
            optimizers = [argument for argument in setups[0].args if argument.name is None][1:]
            schedulers = [argument for argument in optimizers if _all(argument, is_scheduler)]
            loaders = [argument for argument in optimizers if _all(argument, is_loader)]
            if schedulers or loaders:
                yield self._judge(program, node, setups, schedulers, loaders)

    def _judge(
        self, program: Program, node: ast.Call, setups: list[Setup], schedulers: list[Argument], loaders: list[Argument]
    ) -> Finding:
        what = "scheduler" if not loaders else "dataloader" if not schedulers else "scheduler and dataloader"
        message = f"a {what} is passed to `setup` in the place of an optimizer"
        place = place_of_setup(program, node, setups)
        edits = place if isinstance(place, str) else _separating(program, place, schedulers, loaders)
        if isinstance(edits, str):
            return self.report(program, node, message, edits)
        trial = Trial(program, edits)
        failure = trial.failure()
        if failure is not None:
            return self.report(program, node, message, failure)
        return self.fixed(program, node, message, f"Take the {what} out of the optimizers", edits, trial.hazards())


def _all(argument: Argument, question: object) -> bool:
    assert callable(question)
    return bool(argument.value) and all(question(obj) for obj in argument.value)


def _separating(
    program: Program, place: Place, schedulers: list[Argument], loaders: list[Argument]
) -> list[Edit] | str:
    """The edits that take the misplaced arguments out; or why they cannot be."""
    args = [argument for argument in place.setups[0].args if argument.name is None]
    targets = list(place.target.elts) if isinstance(place.target, (ast.Tuple, ast.List)) else []
    if len(targets) != len(args) or any(isinstance(target, ast.Starred) for target in targets):
        return "the result is not unpacked into one target for each argument: take the arguments apart by hand"
    named = {id(argument): target for argument, target in zip(args, targets, strict=True)}
    for argument in (*schedulers, *loaders):
        if spelled(argument.node) is None or spelled(argument.node) != spelled(named[id(argument)]):
            name = ast.unparse(named[id(argument)])
            return f"`{name}` is another name for what is passed: rename it, and take it out of the call"
    if place.call.keywords and any(k.arg == "scheduler" for k in place.call.keywords) and schedulers:
        return "the call has a `scheduler=` already"
    if len(schedulers) > 1 and program.project.requires_lightning(2, 6):
        return "`setup` takes one `scheduler=`: leave the schedulers out of the call"
    keyword = bool(schedulers) and program.project.requires_lightning(2, 6)
    misplaced = {id(argument) for argument in (*schedulers, *loaders)}
    kept = [ast.unparse(named[id(argument)]) for argument in args if id(argument) not in misplaced]
    kept += [ast.unparse(named[id(argument)]) for argument in schedulers] if keyword else []
    call = Span.of(place.call)
    edits: list[Edit] = []
    if kept != [ast.unparse(target) for target in targets]:
        edits.append(ReplaceTargets(Span.of(place.statement), ", ".join(kept)))
    stays = keyword and args[-1] is schedulers[0]
    removed = (argument for argument in (*schedulers, *loaders) if not stays or argument is not args[-1])
    edits += [RemoveArgument(call, Span.of(argument.node)) for argument in removed]
    if stays:
        edits.append(NameArgument(call, Span.of(args[-1].node), "scheduler"))
    elif keyword:
        edits.append(AddArgument(call, ast.unparse(schedulers[0].node), keyword="scheduler"))
    if loaders:
        names = ", ".join(ast.unparse(argument.node) for argument in loaders)
        code = f"{names} = {place.receiver}.setup_dataloaders({names})"
        edits.append(InsertStatement(Span.of(place.statement), Where.AFTER, code))
    return edits
