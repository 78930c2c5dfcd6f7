"""Every case under `fixtures/`: what the command reports, writes, prints as a patch, and leaves alone."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fabric_fix.cli import command
from fabric_fix.registry import all_rules
from fabric_fix.rule import Rule
from tests.cases import Case, files_of, load_cases

CASES = load_cases()
FINDING = re.compile(r"(?P<code>FF\d{3}) (?P<file>\S+):(?P<line>\d+) (?:safe|unsafe|none)")

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture
def project(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the case's input, and the working directory of the test."""
    copy = tmp_path / "project"
    shutil.copytree(case.input, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(copy)
    return copy


def _fabric_fix(case: Case, *arguments: str) -> Result:
    result = CliRunner().invoke(command, [*case.options, *arguments, "."], catch_exceptions=False)
    assert result.exit_code in (0, 1), result.output
    return result


def _found(case: Case) -> list[str]:
    """What a look reports in the notation of `case.toml`, without what only other fixes would uncover."""
    entries = json.loads(_fabric_fix(case, "--check", "--output-format", "json").stdout)
    for entry in entries:
        assert entry["fix"] or entry["reason"], f"{entry['code']} has neither a fix nor a reason"
        assert entry["status"] != "left" or _says_what_to_do(entry), entry["reason"]
    return [_notation(entry) for entry in entries]


def _says_what_to_do(entry: dict[str, object]) -> bool:
    """Whether the reason of a finding without a fix goes on behind a colon; those of rules without fixes are advice."""
    return entry["code"] in ("FF204", "FF205", "FF206") or ": " in re.sub("`[^`]*`", "", str(entry["reason"]))


def _notation(entry: dict[str, object]) -> str:
    fix, location = entry["fix"], entry["location"]
    assert isinstance(location, dict)
    at_once = entry["note"] is None  # else what is fixable now is so after the fixes of others
    applicability = fix["applicability"] if isinstance(fix, dict) and at_once else "none"
    path = Path(os.path.relpath(str(entry["filename"]))).as_posix()
    return f"{entry['code']} {path}:{location['row']} {applicability}"


@each_case
def test_check_reports_exactly_the_findings_and_writes_nothing(case: Case, project: Path) -> None:
    assert sorted(_found(case)) == sorted(case.findings)
    assert files_of(project) == files_of(case.input)


@each_case
def test_every_way_to_run_tells_by_its_exit_status_whether_something_was_found(case: Case, project: Path) -> None:
    expected = int(bool(case.findings))
    statuses = {ways: _fabric_fix(case, *ways).exit_code for ways in (("--check",), ("--diff",), ())}
    assert set(statuses.values()) == {expected}, statuses


@each_case
def test_fix_writes_the_expected_bytes(case: Case, project: Path) -> None:
    _fabric_fix(case)
    assert files_of(project) == files_of(case.expected)


@each_case
def test_second_run_changes_nothing(case: Case, project: Path) -> None:
    _fabric_fix(case)
    first = files_of(project)
    _fabric_fix(case)
    assert files_of(project) == first
    assert _fabric_fix(case, "--diff").stdout_bytes == b""


@each_case
def test_patch_applied_by_git_gives_the_expected_bytes(case: Case, project: Path) -> None:
    patch = _fabric_fix(case, "--diff").stdout_bytes
    assert files_of(project) == files_of(case.input)
    assert bool(patch) == case.changes
    if patch:
        _git_apply(patch, project)
    assert files_of(project) == files_of(case.expected)


def _git_apply(patch: bytes, folder: Path) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    # a ceiling: were the temporary folder inside a repository, git would take the paths from its root
    environment["GIT_CEILING_DIRECTORIES"] = str(folder.parent)
    done = subprocess.run(["git", "apply", "-"], cwd=folder, input=patch, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode() + patch.decode("utf-8", "replace")


@each_case
def test_whatever_is_written_parses(case: Case, project: Path) -> None:
    _fabric_fix(case)
    for name, data in files_of(project).items():
        if name.endswith(".py"):
            ast.parse(data, name)


@each_case
def test_case_is_written_as_its_format_says(case: Case) -> None:
    inputs = files_of(case.input)
    for finding in case.findings:
        match = FINDING.fullmatch(finding)
        assert match, f"{finding!r} is no 'CODE file:line safe|unsafe|none'"
        assert int(match["line"]) <= inputs[match["file"]].count(b"\n") + 1
    assert not case.changes or (case.findings and files_of(case.expected) != inputs)
    assert case.run is None or case.run.is_fixed == case.changes
    assert files_of(case.expected).keys() == inputs.keys()


def test_at_least_half_of_the_cases_come_out_unchanged() -> None:
    unchanged = sum(not case.changes for case in CASES)
    assert unchanged >= len(CASES) / 2, f"{unchanged} of {len(CASES)} cases must not change"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_cases_that_it_reports_and_cases_that_it_leaves(rule: type[Rule]) -> None:
    cases = [case for case in CASES if case.rule == rule.__module__.rpartition(".")[2]]
    reported = [any(finding.startswith(rule.code) for finding in case.findings) for case in cases]
    assert Counter(reported)[True] > 0
    assert Counter(reported)[False] > 0


def test_every_folder_of_cases_belongs_to_a_rule() -> None:
    assert {case.rule for case in CASES} == {rule.__module__.rpartition(".")[2] for rule in all_rules()}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_name_of_a_rule_is_that_of_its_module(rule: type[Rule]) -> None:
    module = rule.__module__.rpartition(".")[2]
    assert rule.name == module.replace("_", "-")
