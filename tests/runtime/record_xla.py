"""Run the cases for XLA and print what happened as a page of Markdown.

    FABRIC_FIX_XLA_PYTHON=/path/to/python python -m tests.runtime.record_xla > docs/xla-results.md

The environment that these runs need is too large for every run of the test suite, so their result is kept.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.cases import Case, load_cases
from tests.runtime.runner import Outcome, Runner, RunResult
from tests.runtime.test_fixtures_run import TOLERANCE, is_xla, run_case

_VERSIONS = """
import importlib.metadata, json, platform
names = ("torch", "torch_xla", "lightning")
print(json.dumps({"Python": platform.python_version(), **{name: importlib.metadata.version(name) for name in names}}))
"""


def main() -> int:
    """Print the page; returns 1 when a case does not behave as it says, 2 when there is no interpreter to run it."""
    python = os.environ.get("FABRIC_FIX_XLA_PYTHON")
    if not python:
        print("error: FABRIC_FIX_XLA_PYTHON does not name a Python with torch_xla", file=sys.stderr)
        return 2
    with Runner(python, "xla") as runner, tempfile.TemporaryDirectory() as folder:
        rows = [_row(case, runner, Path(folder)) for case in load_cases() if is_xla(case)]
    print("\n".join(_page(_versions(python), rows)))
    return int(any(not row.endswith("| yes |") for row in rows))


def _versions(python: str) -> str:
    printed = subprocess.run([python, "-c", _VERSIONS], check=True, capture_output=True, text=True).stdout
    versions: dict[str, str] = json.loads(printed)
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _row(case: Case, runner: Runner, folder: Path) -> str:
    assert case.run is not None
    runs = run_case(case, runner, folder / case.rule / case.folder.name)
    passed = re.search(case.run.before, runs.before.message) and (
        not case.run.is_fixed or _same(runs.after, runs.alone)
    )
    cells = (case.name, case.run.strategy, _told(runs.before), _told(runs.after), _told(runs.alone))
    return f"| {' | '.join(cells)} | {'yes' if passed else 'NO'} |"


def _same(after: RunResult | None, alone: RunResult | None) -> bool:
    if not after or not alone or after.outcome is not Outcome.OK or len(after.losses) != len(alone.losses):
        return False
    return all(abs(a - b) <= TOLERANCE for a, b in zip(after.losses, alone.losses, strict=True))


def _told(result: RunResult | None) -> str:
    """A run in a cell of the table: its losses, or the exception that ended it."""
    if result is None:
        return "—"
    if result.outcome is not Outcome.OK:
        return f"{result.error_type or result.outcome.value}: {' '.join(result.message.split())}".replace("|", "\\|")
    return "losses " + " ".join(f"{loss:.4f}" for loss in result.losses)


def _page(versions: str, rows: Iterable[str]) -> Iterator[str]:
    yield "# The cases for XLA, run"
    yield ""
    yield f"Run on {datetime.date.today().isoformat()} on a CPU (PJRT), with {versions}:"
    yield ""
    yield "    FABRIC_FIX_XLA_PYTHON=/path/to/python python -m tests.runtime.record_xla > docs/xla-results.md"
    yield ""
    yield "The same runs as tests: `FABRIC_FIX_XLA_PYTHON=/path/to/python pytest -m xla`. Before is `input/`, after is"
    yield "`expected/`, both under the strategy; one device is `expected/` without XLA, whose losses must be the same."
    yield ""
    yield "| case | strategy | before | after | one device | as expected |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from rows


if __name__ == "__main__":
    sys.exit(main())
