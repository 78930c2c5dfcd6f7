"""Random programs with random faults: each comes out right, or as it was with a reason that names the fault.

`FABRIC_FIX_PROGRAMS=20000 pytest tests/properties` tries more of them; `python -m tests.properties.hunt` sorts and
shrinks what fails.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.properties.hunt import report, smaller
from tests.properties.judge import Trial, judge
from tests.properties.meaning import errors, meaning
from tests.properties.plan import CODES
from tests.properties.spread import LAYOUTS
from tests.runtime.runner import Outcome, Runner

COUNT = int(os.environ.get("FABRIC_FIX_PROGRAMS", "192"))
BLOCK = max(COUNT // 12, 1)


@pytest.mark.parametrize("first", range(0, COUNT, BLOCK))
def test_a_faulty_program_becomes_the_right_one_or_is_left_with_its_fault_named(first: int) -> None:
    for seed in range(first, first + BLOCK):
        assert not judge(Trial(seed)).kind, report(smaller(seed))


@pytest.mark.parametrize("first", range(0, COUNT // 24, 4))
def test_a_project_becomes_the_right_one_or_stays_whatever_is_named(first: int) -> None:
    for seed in range(first, first + 4):
        assert not judge(Trial(seed, several_files=True)).kind, report(smaller(seed, several_files=True))


def test_the_projects_are_of_every_layout_and_right_before_faults_are_planted() -> None:
    trials = [Trial(seed, several_files=True) for seed in range(80)]
    spreads = [trial.spread for trial in trials if trial.spread is not None]
    assert {spread.layout for spread in spreads} == set(LAYOUTS)
    assert {spread.second for spread in spreads} == {"", "sharing", "of its own"}
    assert [trial.seed for trial in trials if errors(trial.meant)] == []
    counts = [sum(bool(text) for text in trial.right.values()) for trial in trials]
    assert sum(count > 2 for count in counts) > len(counts) * 0.6


def test_the_programs_have_faults_of_every_kind_and_most_are_repaired() -> None:
    planted = [Trial(seed) for seed in range(400)]
    assert {fault.kind for trial in planted for fault in trial.planted} == set(CODES) - {"stale_call"}
    single = [trial for trial in planted if len(trial.planted) == 1][:60]
    repaired = [trial for trial in single if not judge(trial).left]
    assert len(repaired) > len(single) * 0.6


@pytest.mark.parametrize(("family", "mistakes"), [("ddp", 0), ("fsdp", 0), ("deepspeed", 1), ("xla", 1)])
def test_the_trace_sees_a_split_set_up_where_the_runtime_refuses_it(family: str, mistakes: int) -> None:
    text = (
        "import torch, lightning as L\n"
        "fabric = L.Fabric()\n"
        "fabric.launch()\n"
        "model = fabric.setup_module(torch.nn.Linear(1, 1))\n"
        "optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters()))\n"
        "fabric.backward(model(torch.ones(1)).sum())\n"
    )
    assert len(errors(meaning({"train.py": text}, [family]))) == mistakes


@pytest.mark.runtime
@pytest.mark.parametrize("first", range(0, COUNT // 12, 5))
def test_a_repaired_program_trains_as_the_right_one(first: int, torch_runner: Runner, tmp_path: Path) -> None:
    for seed in range(first, first + 5):
        trial = Trial(seed)
        new = {path: result.new_text for path, result in trial.repaired(trial.faulty).items()}
        if not trial.planted or trial.remaining(new) != () or not _can_run(trial):
            continue
        right = _losses(torch_runner, tmp_path / "right" / str(seed), trial.right, "auto")
        made = _losses(torch_runner, tmp_path / "made" / str(seed), new, _strategy(trial))
        assert made == pytest.approx(right, abs=1e-4), report(trial)


def _can_run(trial: Trial) -> bool:
    """Whether the program can run here: without torch_xla, and without a checkpoint of a strategy that it lacks."""
    needs_xla = trial.plan.source == "object" and {"xla", "xla_fsdp"} & set(trial.plan.families)
    return not needs_xla and ".save(" not in trial.right["train.py"]


def _strategy(trial: Trial) -> str:
    """A strategy of the program that one process on a CPU can run; a GAN can stumble over ZeRO stage 2."""
    found = [family for family in trial.plan.families if family in ("ddp", "deepspeed")]
    return found[0] if found and trial.plan.task != "gan" else "auto"


def _losses(runner: Runner, folder: Path, files: dict[str, str], strategy: str) -> tuple[float, ...]:
    folder.mkdir(parents=True)
    for path, text in files.items():
        (folder / path).write_text(text, encoding="utf-8")
    result = runner.run(folder / "train.py", strategy)
    assert result.outcome is Outcome.OK, f"{files['train.py']}\n{result.describe()}"
    assert result.losses
    return result.losses
