"""Tests that set objects up and train nothing: there the set-up is what is tested."""

from __future__ import annotations

from fabric_fix.analysis.events import Call, Setup
from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.program import Program


def only_tested(program: Program, setups: list[Setup]) -> bool:
    """Whether a set-up is there to be tested: it stands in tests, and none of these trains anything."""
    if not program.is_test:
        return False
    roots = {_root(setup.frame) for setup in setups}
    named = all(root.function is not None and root.function.name.startswith("test") for root in roots)
    return named and not roots & program.once(_training)


def _root(frame: Frame) -> Frame:
    return frame.chain()[-1]


def _training(program: Program) -> set[Frame]:
    """The functions, called from nowhere in the program, in which something trains or draws batches."""
    kinds = (program.backwards(), program.plain_backwards(), program.steps())
    calls: list[Call] = [event for events in kinds for found in events.values() for event in found]
    return {_root(call.frame) for call in calls} | {_root(loop.frame) for loop in program.iterations() if loop.loader}
