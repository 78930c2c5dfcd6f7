"""That what many fixes share is what each gets alone, and that nothing grows with the square of a program."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from benchmarks import shapes
from fabric_fix import trial
from fabric_fix.analysis.program import Program
from fabric_fix.analysis.project import Project
from fabric_fix.check import check_text
from fabric_fix.finding import Finding
from fabric_fix.registry import all_rules
from fabric_fix.segments import segment
from fabric_fix.tracking import changed_blocks

Make = Callable[[int], str]

FAULTS = [
    shapes.discarded_setups,
    shapes.discarded_in_functions,
    shapes.split_setups,
    shapes.split_in_functions,
    shapes.raw_backwards,
    shapes.backwards_without_model,
    shapes.forwards_outside,
    shapes.missing_setups,
    shapes.repeated_setups,
    shapes.stale_references,
    shapes.early_optimizers,
]


def findings(text: str) -> tuple[Finding, ...]:
    return check_text(text, "a.py", rules=tuple(all_rules())).findings


def name_of(make: Make) -> str:
    return make.__name__


def separate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MOST_ALONE", 1_000)


@pytest.mark.parametrize("make", FAULTS, ids=name_of)
def test_trials_together_say_what_they_say_alone(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    text = make(12)
    together = findings(text)
    separate(monkeypatch)
    assert together == findings(text)
    assert len(together) >= 12


def mixed(size: int) -> str:
    """Discarded set-ups, of which one in three is tested by `isinstance` and one in three is saved."""
    lines: list[str] = []
    for number in range(size):
        name = f"model_{number}"
        lines += [f"{name} = Net()", f"fabric.setup({name})", f"fabric.backward({name}(x).sum())"]
        others: list[list[str]] = [[], [f"assert isinstance({name}, Net)"], [f"torch.save({name}, path)"]]
        lines += others[number % 3]
    return shapes.HEAD.format(strategy="ddp") + "".join(f"{line}\n" for line in lines)


def between(size: int) -> str:
    """Split set-ups, every other of which has a forward between, so that no fix is right."""
    lines: list[str] = []
    for number in range(size):
        model, optimizer = f"model_{number}", f"optimizer_{number}"
        lines += [f"{model} = torch.nn.Linear(2, 2)", f"{model} = fabric.setup_module({model})"]
        lines += [f"{model}(torch.rand(2))"] if number % 2 else []
        lines += [f"{optimizer} = torch.optim.SGD({model}.parameters())"]
        lines += [f"{optimizer} = fabric.setup_optimizers({optimizer})"]
    return shapes.HEAD.format(strategy="deepspeed") + "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("make", [mixed, between], ids=name_of)
def test_each_is_told_what_is_its_own(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    text = make(12)
    together = findings(text)
    separate(monkeypatch)
    assert together == findings(text)
    assert len({(finding.fix is None, finding.reason) for finding in together}) > 2


def test_trials_have_a_limit_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    separate(monkeypatch)
    monkeypatch.setattr(trial, "ALL_TRIALS", 1)
    first, second, *_ = findings(shapes.discarded_setups(4))
    assert first.fix is not None
    assert second.fix is None
    assert "too many fixes to try them all out" in str(second.reason)


def calls(text: str) -> int:
    """How many functions are called for a program: as many on every machine."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        findings(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (shapes.long_function, 100),
        (shapes.methods, 20),
        (shapes.one_helper, 20),
        (shapes.chain, 120),
        (shapes.right_setups, 10),
        (shapes.discarded_setups, 12),
        (shapes.split_setups, 12),
        (shapes.forwards_outside, 12),
        (shapes.stale_references, 12),
        (shapes.repeated_setups, 12),
        (shapes.missing_setups, 12),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_four_times_the_program_takes_five_times_the_calls_at_most(make: Make, size: int) -> None:
    findings(make(1))  # what is imported and made ready once
    assert calls(make(4 * size)) <= 5 * calls(make(size))


@pytest.mark.parametrize(("make", "size"), [(shapes.doubling_chain, 20), (shapes.literal, 250_000)])
def test_what_is_too_much_is_given_up(make: Make, size: int) -> None:
    result = check_text(make(size), "a.py", rules=tuple(all_rules()))
    assert "steps of analysis" in str(result.gave_up)
    assert result.gave_up_at > 1


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_segments_are_those_of_ast(newline: str) -> None:
    lines = ["s = 'é'; t = 'ü' + f(", "  'ä',\f g)", "if s:", "    x = {'→': 'b'} # c", '\fy = """a', 'b"""', ""]
    text = newline.join(lines)
    program = Program(text, "a.py", frozenset(), Project(None))
    nodes = [node for node in ast.walk(program.tree) if isinstance(node, (ast.expr, ast.stmt))]
    assert len(nodes) > 15
    for node in nodes:
        assert segment(program, node) == ast.get_source_segment(text, node)


def test_blocks_between_lines_that_are_there_once() -> None:
    chosen = random.Random(3)
    old = [f"{chosen.randint(0, 900)}\n" for _ in range(1_500)]
    new = [line for line in old if chosen.random() > 0.2] + ["end\n"]
    new[700:700] = [f"new {number}\n" for number in range(300)]
    made: list[str | bytes] = []
    position = 0
    for tag, i1, i2, j1, j2 in changed_blocks(old, new):
        assert i1 == position
        position = i2
        made += old[i1:i2] if tag == "equal" else new[j1:j2]
    assert position == len(old)
    assert made == new
