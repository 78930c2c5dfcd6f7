"""Fixtures that all tests share."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.runner import Runner

_RUNTIME = ("torch", "lightning", "deepspeed")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the commands that a test runs: its own, and not in the folder that they look at."""
    folder = tmp_path_factory.mktemp("cache") / "of-fabric-fix"
    monkeypatch.setenv("FABRIC_FIX_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def torch_runner() -> Iterator[Runner]:
    """Runs programs under auto, ddp and deepspeed in this interpreter; skips where the `runtime` extra is missing."""
    missing = [name for name in _RUNTIME if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install -e '.[test,runtime]'")
    with Runner(sys.executable, "torch") as runner:
        yield runner


@pytest.fixture(scope="session")
def xla_runner() -> Iterator[Runner]:
    """Runs programs under xla and xla_fsdp in the interpreter that FABRIC_FIX_XLA_PYTHON names; else skips."""
    python = os.environ.get("FABRIC_FIX_XLA_PYTHON")
    if not python:
        pytest.skip("FABRIC_FIX_XLA_PYTHON does not name a Python with torch 2.9.1, torch_xla 2.9.0 and lightning 2.6")
    with Runner(python, "xla") as runner:
        yield runner
