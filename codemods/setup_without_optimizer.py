"""Report a model that is set up without an optimizer under DeepSpeed's ZeRO.

What is wrong
    Under ZeRO stage 1 and 2 (2 is the default of `strategy="deepspeed"`) the engine shards the state of an optimizer,
    so `fabric.setup(model)` and `setup_module(model)` without one die with "zero stage 2 requires an optimizer". Seen
    with DeepSpeed 0.19.8; stage 0 and stage 3 take a model alone.

Fix
    None: what is meant is the author's to say. A model that is trained is set up jointly with its optimizer. A frozen
    model (a teacher, a feature extractor) need not be set up at all: `fabric.to_device(model)` moves it.
    A program that only evaluates can use another strategy, or ZeRO stage 3.

Fires only when DeepSpeed can be in use. Where the optimizer is set up apart, `split-setup` (FF201) speaks instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup
from fabric_fix.analysis.fabric_calls import models_of_optimizer
from fabric_fix.analysis.objects import Obj, raw
from fabric_fix.analysis.program import Program
from fabric_fix.finding import Finding
from fabric_fix.rule import Rule
from fabric_fix.setups import families, optimizer_arguments

_TAKES_NONE = frozenset({"deepspeed_0", "deepspeed_3"})


class SetupWithoutOptimizer(Rule):
    """A model is set up without an optimizer under ZeRO."""

    code = "FF204"
    name = "setup-without-optimizer"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find models that are set up alone under ZeRO stage 1 or 2."""
        apart = _set_up_apart(program)
        for node, setups in program.own(program.setups()).items():
            if setups[0].method not in ("setup", "setup_module") or setups[0].starred or optimizer_arguments(setups):
                continue
            zero = {f for f in families(setups) if known.is_deepspeed(f)} - _TAKES_NONE
            if not zero or _models(setups) & apart or any(setup.rewrapped for setup in setups):
                continue
            message = "under DeepSpeed's ZeRO a model cannot be set up without an optimizer"
            reason = (
                "set a trained model up jointly with its optimizer; leave a frozen one out and move it with "
                "`fabric.to_device(model)`; or evaluate under another strategy or ZeRO stage 3"
            )
            yield self.report(program, node, message, reason)


def _models(setups: list[Setup]) -> set[Obj]:
    found: set[Obj] = set()
    for setup in setups:
        argument = setup.argument("module", 0)
        found.update(raw(obj) for obj in (argument.value if argument else ()))
    return found


def _set_up_apart(program: Program) -> set[Obj]:
    """Models whose optimizer is set up by `setup_optimizers`, or in a joint call elsewhere."""
    found: set[Obj] = set()
    for setups in program.setups().values():
        for setup in setups:
            if setup.method == "setup_optimizers":
                for argument in setup.args:
                    for obj in argument.value:
                        found |= models_of_optimizer(obj)
    return found
