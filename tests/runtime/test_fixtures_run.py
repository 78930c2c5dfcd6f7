"""The cases of `fixtures/` that run: before the fix the runtime refuses them, after it they train as on one device."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cases import PROGRAM, Case, load_cases
from tests.runtime.runner import Outcome, Runner, RunResult

TOLERANCE = 1e-4
RUNS = [case for case in load_cases() if case.run]
XLA = ("xla", "xla_fsdp")


@dataclass(frozen=True)
class CaseRuns:
    """The runs of one case."""

    before: RunResult
    """`input/` under the strategy of the case."""
    after: RunResult | None
    """`expected/` under it; None where the rule only reports."""
    alone: RunResult | None
    """`expected/` on one device; None where nothing is to be compared with it."""


def is_xla(case: Case) -> bool:
    """Whether a case needs the environment of torch_xla."""
    return case.run is not None and case.run.strategy in XLA


def run_case(case: Case, runner: Runner, folder: Path) -> CaseRuns:
    """Run the programs of a case, on copies of them below `folder`."""
    assert case.run is not None
    strategy, is_fixed = case.run.strategy, case.run.is_fixed
    return CaseRuns(
        before=_run(runner, case.input, folder / "before", strategy),
        after=_run(runner, case.expected, folder / "after", strategy) if is_fixed else None,
        alone=_run(runner, case.expected, folder / "alone", "auto") if is_fixed or case.run.is_silent else None,
    )


def _check_case(case: Case, runner: Runner, folder: Path) -> None:
    assert case.run is not None
    runs = run_case(case, runner, folder)
    if runs.after and runs.alone:
        _check_trains(runs.after, runs.alone)
    if case.run.is_silent:
        _check_silent(runs.before, runs.after or runs.alone)
    else:
        assert runs.before.outcome is Outcome.ERROR, runs.before.describe()
        assert re.search(case.run.before, runs.before.message), runs.before.describe()


def _run(runner: Runner, source: Path, folder: Path, strategy: str) -> RunResult:
    shutil.copytree(source, folder)  # a program may write beside itself
    return runner.run(folder / PROGRAM, strategy)


def _check_trains(after: RunResult, alone: RunResult) -> None:
    """The fixed program trains, and learns what it learns on one device."""
    assert after.outcome is Outcome.OK, after.describe()
    assert alone.outcome is Outcome.OK, alone.describe()
    assert len(set(alone.losses)) > 1, f"the program prints no losses that move\n{alone.describe()}"
    assert after.losses == pytest.approx(alone.losses, abs=TOLERANCE)


def _check_silent(before: RunResult, right: RunResult | None) -> None:
    """The faulty program ends well, but learns something else, or leaves Fabric's wrappers aside.

    `right` is the fixed program's run or, where there is no fix, the same program's run on one device.
    """
    assert before.outcome is Outcome.OK, before.describe()
    assert right is not None
    same_losses = before.losses == pytest.approx(right.losses, abs=TOLERANCE)
    assert not same_losses or before.counts != right.counts, "a run does not show the fault"


@pytest.mark.runtime
@pytest.mark.parametrize("case", [case for case in RUNS if not is_xla(case)], ids=lambda case: case.name)
def test_case_fails_before_and_trains_after(case: Case, torch_runner: Runner, tmp_path: Path) -> None:
    _check_case(case, torch_runner, tmp_path)


@pytest.mark.xla
@pytest.mark.parametrize("case", [case for case in RUNS if is_xla(case)], ids=lambda case: case.name)
def test_case_fails_before_and_trains_after_on_xla(case: Case, xla_runner: Runner, tmp_path: Path) -> None:
    _check_case(case, xla_runner, tmp_path)


def test_the_suite_has_runs_for_both_runtimes() -> None:
    assert any(is_xla(case) for case in RUNS)
    assert any(not is_xla(case) for case in RUNS)
