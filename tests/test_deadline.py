"""The time that a file and a run may take: what is said when it is used up, and that the rest is done."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fabric_fix import check
from fabric_fix.analysis.program import Program
from fabric_fix.analysis.project import Project
from fabric_fix.check import CheckResult
from fabric_fix.config import ConfigError, read_settings
from fabric_fix.deadline import NEVER, Deadline, UnfinishedError, end_of
from fabric_fix.engine import FileResult, Job, examine
from fabric_fix.registry import all_rules

FAULTY = (
    "from lightning.fabric import Fabric\n\nfabric = Fabric()\nmodel = Net()\nfabric.setup(model)\n"
    "fabric.backward(model(x).sum())\n"
)


def run(text: str, *, timeout: float = 0, ends: float | None = None) -> FileResult:
    rules = tuple(all_rules())
    return examine(Job("a.py", "a.py", text.encode(), rules, timeout=timeout, total_timeout=5, ends=ends))


def only_problem(result: FileResult) -> str:
    (problem,) = result.problems
    return str(problem)


def tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second go by with each look at the clock."""
    clock = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))


def test_file_out_of_time_is_left_as_it_was() -> None:
    result = run(FAULTY, timeout=1e-9)
    assert (result.new, result.outcomes) == (FAULTY.encode(), ())
    assert "takes more than 1e-09 s; split the file" in only_problem(result)
    assert "--timeout" in only_problem(result)


def test_file_that_comes_after_the_end_of_the_run_is_named() -> None:
    said = only_problem(run(FAULTY, timeout=20, ends=time.monotonic() - 1))
    assert said.startswith("a.py:1:1: not analysed: the 5 s for the whole run are used up; ")
    assert "--total-timeout" in said


def test_enough_time_changes_nothing() -> None:
    assert run(FAULTY, timeout=60, ends=time.monotonic() + 60) == run(FAULTY)


def test_steps_look_at_the_clock_and_say_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    text = FAULTY + "".join(f"x{n} = f(g({n}))\n" for n in range(4_000))
    tick(monkeypatch)
    with pytest.raises(UnfinishedError) as error:
        Program(text, "a.py", frozenset(), Project(None), deadline=Deadline(3.5))
    assert 100 < error.value.line < 4_006


def test_trials_share_the_time() -> None:
    program = Program(FAULTY, "a.py", frozenset(), Project(None), deadline=Deadline(60))
    assert program.simulate([]).deadline is program.deadline


def test_fixes_that_run_out_of_time_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at the fixed text is what proves the fixes: without it none is made."""
    tick(monkeypatch)
    late = [result for seconds in range(1, 40) if (result := run(FAULTY, timeout=seconds)).problems]
    assert len(late) >= 3
    assert all(result.new == FAULTY.encode() and "not analysed" in only_problem(result) for result in late)
    assert run(FAULTY, timeout=1_000).new != FAULTY.encode()


def test_fixed_text_that_is_too_much_to_analyse_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    look = check.check_text

    def given_up(text: str, path: str, **options: Any) -> CheckResult:
        return look(text, path, **options) if text == FAULTY else CheckResult((), "needs more")

    monkeypatch.setattr("fabric_fix.engine.check_text", given_up)
    result = run(FAULTY)
    assert result.new == FAULTY.encode()
    assert "not analysed completely: with its fixes made, it needs more; split" in only_problem(result)


def test_no_limit() -> None:
    NEVER.check()
    Deadline(0, 0, None).check()
    assert end_of(0) is None
    assert (end_of(10) or 0) > time.monotonic() + 5


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fabric_fix", *arguments], cwd=folder, capture_output=True, text=True)


def test_other_files_are_still_done(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.fabric-fix]\ntimeout = 0.000001\n")
    for name in ("a/one.py", "two.py"):
        (tmp_path / name).write_text(FAULTY)
    done = command(tmp_path, ".")
    assert done.returncode == 2
    assert "one.py:1:1: not analysed: takes more than 1e-06 s" in done.stderr
    assert "two.py:5:1: FF101 [fixed]" in done.stderr
    assert (tmp_path / "a" / "one.py").read_text() == FAULTY
    assert (tmp_path / "two.py").read_text() != FAULTY


def test_files_left_at_the_end_of_the_run_are_named(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(FAULTY)
    (tmp_path / "other.py").write_text("x = 1\n")
    done = command(tmp_path, "--total-timeout", "0.000001", "--check", ".")
    assert done.returncode == 2
    assert done.stderr.count("not analysed: the 1e-06 s for the whole run are used up") == 2
    assert "other.py" not in done.stderr


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
def test_option_wants_seconds(tmp_path: Path, value: str) -> None:
    done = command(tmp_path, f"--timeout={value}")
    assert done.returncode == 2
    assert "Invalid value for '--timeout'" in done.stderr


@pytest.mark.parametrize("value", ["-1", "nan", "'20'", "true"])
def test_setting_wants_seconds(tmp_path: Path, value: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.fabric-fix]\ntotal-timeout = {value}\n")
    with pytest.raises(ConfigError, match=r"tool\.fabric-fix\.total-timeout must be a number of seconds"):
        read_settings(str(tmp_path / "pyproject.toml"))
