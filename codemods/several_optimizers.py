"""Report several optimizers for one model under DeepSpeed.

What is wrong
    A DeepSpeed engine has exactly one optimizer: `fabric.setup(model, first, second)` raises "Currently only one
    optimizer is supported with DeepSpeed. Got 2 optimizers instead." (seen with DeepSpeed 0.19.8, on every stage).

Fix
    None: how the training is to be arranged is the author's to say. Parameters that want different settings can be
    groups of one optimizer (`Adam([{"params": a}, {"params": b, "lr": 1e-4}])`); parts that step at different times can
    be models of their own, each set up with its own optimizer.

Fires only when DeepSpeed can be in use.
Read in `lightning/fabric/strategies/deepspeed.py` (`setup_module_and_optimizers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Setup
from fabric_fix.analysis.fabric_calls import is_loader, is_scheduler
from fabric_fix.analysis.objects import Obj
from fabric_fix.analysis.program import Program
from fabric_fix.finding import Finding
from fabric_fix.rule import Rule
from fabric_fix.scopes import only
from fabric_fix.setups import families, models_of


class SeveralOptimizers(Rule):
    """One model has several optimizers under DeepSpeed."""

    code = "FF205"
    name = "several-optimizers"

    def check(self, program: Program) -> Iterator[Finding]:
        """Find joint and separate set-ups that give one model several optimizers."""
        for node, setups in program.own(program.setups()).items():
            if not any(known.is_deepspeed(f) for f in families(setups)):
                continue
            count = _most_for_one_model(program, setups)
            if count > 1:
                message = f"DeepSpeed takes exactly one optimizer for a model, and this call gives it {count}"
                reason = (
                    "make the parameters groups of one optimizer, or set parts of the model up as models of their own"
                )
                yield self.report(program, node, message, reason)


def _most_for_one_model(program: Program, setups: list[Setup]) -> int:
    if setups[0].method == "setup":
        positional = [argument for argument in setups[0].args if argument.name is None]
        skip = 0 if any(argument.name == "module" for argument in setups[0].args) else 1
        others = positional[skip:]
        if any(a.starred and len(a.value) != 1 for a in others) or _is_misplaced([a.value for a in others]):
            return 0
        return len(others)
    if setups[0].method == "setup_optimizers":
        count = sum(argument.name is None for argument in setups[0].args)
        models = Counter(only(models_of(program, setups, position)) for position in range(count))
        return max((n for model, n in models.items() if model is not None), default=0)
    return 0


def _is_misplaced(values: list[frozenset[Obj]]) -> bool:
    return any(is_scheduler(obj) or is_loader(obj) for value in values for obj in value)
