"""Name the model of a backward where several are set up under DeepSpeed.

What is wrong
    With two or more models set up on one Fabric, DeepSpeed has to be told whose engine runs the backward: "When using
    multiple models + deepspeed, please provide the model used to perform the optimization:
    `self.backward(loss, model=model)`". One set-up call in a loop over folds makes several models, too.

Fix
    `model=` with the model whose optimizer steps next:

        fabric.backward(loss_d)                      fabric.backward(loss_d, model=discriminator)
        opt_d.step()                          ->     opt_d.step()

Safety
    Safe when the loss depends on that model (`detach()` and `no_grad` cut the path) and every other witness agrees: the
    `no_backward_sync` around the call, `clip_gradients` after it. On other strategies `model=` changes nothing.
    Unsafe when no step is seen. No fix when the witnesses disagree, when one loss runs through several models that all
    step, or when the wrapped model has no name there. An item (`models[i]`) is taken where it was set up in place, or
    called, in the same turn; unsafe when the source does not show that every item is set up.

A loss that flows through two engines trains on ZeRO stage 1; on stage 2 the other model may have to be frozen with
`requires_grad_(False)` meanwhile. Fires only when DeepSpeed can be in use.
Read in `lightning/fabric/fabric.py` (`backward`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Backward, Call
from fabric_fix.analysis.fabric_calls import models_of_optimizer
from fabric_fix.analysis.objects import Obj, Value, Wrapped, raws
from fabric_fix.analysis.program import Program
from fabric_fix.certainty import wrapped_name
from fabric_fix.edits.model import AddArgument
from fabric_fix.finding import Finding, Span
from fabric_fix.items import half_wrapped_name, wrapped_item
from fabric_fix.rule import Rule

_BY_HAND = "name the one that is meant with `model=`"


class BackwardWithoutModel(Rule):
    """A backward does not say which of several models it is for."""

    code = "FF301"
    name = "backward-without-model"
    by_hand = "add `model=` with the model that this loss is to train"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find `backward` calls without `model=` where DeepSpeed has several models."""
        for node, events in program.own(program.backwards()).items():
            faulty = [event for event in events if _needs_model(event)]
            if faulty:
                yield self._judge(program, node, faulty)

    def _judge(self, program: Program, node: ast.Call, events: list[Backward]) -> Finding:
        message = "several models are set up on this Fabric: DeepSpeed needs `backward(loss, model=…)`"
        if any(event.starred for event in events):
            return self.report(
                program, node, message, "`**` in the call can hold `model=` already: write the arguments out"
            )
        wanted: dict[Call, Wrapped] = {}
        for event in events:
            found = _target(event)
            if isinstance(found, str):
                return self.report(program, node, message, found)
            wanted[event] = found
        name = wrapped_name(events, wanted)
        unseen: list[str] = []
        if name is None:
            found_item = wrapped_item(program, node, wanted)
            if found_item is None and (half := half_wrapped_name(wanted)) is not None:
                found_item = (
                    half,
                    [f"`{half}` is one of several, and it is not sure here that all are set up by then"],
                )
            if found_item is None:
                return self.report(program, node, message, _nameless(program, wanted))
            name, unseen = found_item
        if any(len(_candidates(event)) > 1 for event in events):
            message += "; this loss flows through several engines, so on ZeRO stage 2 freeze the others meanwhile"
        problem = _other_contexts(program, node, name, frozenset(wanted.values()) if unseen else frozenset())
        if any(not event.steps for event in events):
            unseen.append("no `step()` of an optimizer is seen after it")
        if problem is not None:
            return self.report(program, node, message, problem)
        edit = AddArgument(Span.of(node), name, keyword="model")
        return self.fixed(program, node, message, f"Add `model={name}`", [edit], unseen)


def _nameless(program: Program, wanted: dict[Call, Wrapped]) -> str:
    """What to do where the wrapped model has no name at the call."""
    called = {(use.obj, use.frame) for use in program.uses() if use.kind == "call"}
    if any((wrapped, event.frame) in called for event, wrapped in wanted.items()):
        return "no name here surely stands for the wrapped model: give it one where it is called, and pass that"
    return "the wrapped model has no name here: pass it to this function"


def _other_contexts(program: Program, node: ast.Call, name: str, half: Value) -> str | None:
    """Why another use of the same line would not take `model=`; where `half` is read, the raw ones are known of."""
    if node in program.interpreter.other_calls:
        return "the same call is also of a `backward` that is no Fabric's, and takes no `model`: tell them apart"
    for event in program.backwards()[node]:
        held = event.places.get(name, frozenset())
        is_half = bool(held & half) and held <= half | raws(half)
        if not is_half and not all(isinstance(obj, Wrapped) for obj in held):
            return f"the same line also runs with a `{name}` that is not set up: tell them apart"
    return None


def _needs_model(event: Backward) -> bool:
    if not any(known.is_deepspeed(f) for f in event.strategies) or any(a.name == "model" for a in event.args):
        return False
    return event.many or (event.count > 1 and len(raws(event.models)) > 1)


def _candidates(event: Backward) -> set[Wrapped]:
    """The wrapped models of this Fabric that the loss depends on."""
    return {obj for obj in event.deps if isinstance(obj, Wrapped) and obj in event.models}


def _target(event: Backward) -> Wrapped | str:
    """The model that the witnesses agree on; or why they do not."""
    candidates = _candidates(event)
    if not candidates:
        return "the source does not show which set-up model the loss depends on"
    found = _stepping(event, candidates)
    if isinstance(found, str):
        return found
    for witness, what in ((event.sync, "`no_backward_sync` around it"), (event.clips, "`clip_gradients` after it")):
        modules = {obj for obj in witness if isinstance(obj, Wrapped)}
        if modules and found not in modules:
            return f"the optimizer that steps next and the {what} are of different models"
    return found


def _stepping(event: Backward, candidates: set[Wrapped]) -> Wrapped | str:
    """The candidate whose optimizer steps next."""
    if not event.steps:
        if len(candidates) == 1 and not event.uncertain:
            return next(iter(candidates))
        return "no `step()` follows here, and the loss depends on several models"
    group = [member for member in event.group if member.steps]
    options = {member: _options(member) for member in group}
    mine = options.get(event, frozenset())
    if len(group) > 1 and len(mine) != 1:
        matched = _matched(event, options)
        if matched is None:
            return "several backwards come before several steps, and the source does not show which is for which"
        return _wrapped_for(candidates, matched)
    if not mine:
        return "the optimizer that steps next is not of a model that the loss depends on"
    if len(mine) > 1:
        return f"the loss can run through several models whose optimizers step after it: {_BY_HAND}"
    first = frozenset().union(*(models_of_optimizer(obj) for obj in event.first_steps)) if event.first_steps else mine
    if len(group) < 2 and not first & mine:
        return "the optimizer that steps next is not of a model that the loss depends on"
    return _wrapped_for(candidates, next(iter(mine)))


def _options(event: Backward) -> Value:
    """The raw models that an optimizer steps after a backward and that its loss depends on."""
    stepped: Value = frozenset().union(*(models_of_optimizer(obj) for obj in event.steps))
    return stepped & raws(frozenset(_candidates(event)))


def _matched(event: Backward, options: dict[Backward, Value]) -> Obj | None:
    """The model of a backward in the only way to give each backward of a group a model; None if there are several."""
    members = list(options)
    if len(members) > 6:
        return None
    found: list[dict[Backward, Obj]] = []

    def place(index: int, taken: dict[Backward, Obj]) -> None:
        if index == len(members):
            found.append(dict(taken))
            return
        for model in options[members[index]]:
            if model not in taken.values():
                taken[members[index]] = model
                place(index + 1, taken)
                del taken[members[index]]

    place(0, {})
    models = {match[event] for match in found if event in match}
    return next(iter(models)) if len(models) == 1 else None


def _wrapped_for(candidates: set[Wrapped], model: Obj) -> Wrapped | str:
    found = [wrapped for wrapped in candidates if model in raws(frozenset((wrapped,)))]
    if len(found) != 1:
        return "the model is set up more than once"
    return found[0]
