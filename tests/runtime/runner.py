"""Run training programs under real strategies on a CPU and tell how they ended."""

from __future__ import annotations

import enum
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
_LOSSES = re.compile(r"^losses:(.*)$", re.MULTILINE)


class Outcome(enum.Enum):
    """How a run ended."""

    OK = "ok"
    ERROR = "error"
    """The program raised an exception."""
    TIMEOUT = "timeout"
    CRASH = "crash"
    """The process died without a Python exception."""


@dataclass(frozen=True)
class RunResult:
    """What is known about a run that is over."""

    outcome: Outcome
    error_type: str | None = None
    message: str = ""
    losses: tuple[float, ...] = ()
    """What the program printed on its last line `losses: ...`; empty when there is none."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often Fabric's wrappers were used: `forward`, `synchronised forward`, `step`, `iteration`."""
    output: str = ""

    def describe(self) -> str:
        """One line for a failed assertion, and all that the program printed below it."""
        return f"{self.outcome.value} {self.error_type or ''}: {self.message}\n{self.output}"


class RuntimeFailure(Exception):
    """The runtime itself could not be started, or ended by itself."""


class Runner:
    """Runs programs one after another, each in a fork of one process that has the runtime loaded.

    `python` is the interpreter that has the runtime, `flavour` what is loaded there: "torch" for the strategies auto,
    ddp and deepspeed, "xla" for xla, xla_fsdp and auto. Raises `RuntimeFailure` when the interpreter cannot load it.
    """

    def __init__(self, python: str, flavour: str = "torch") -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._server = subprocess.Popen(
            [python, "-m", "tests.runtime.server", flavour],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._receive()

    def run(self, program: Path, strategy: str, limit: float = 60.0) -> RunResult:
        """Run a program to its end, for at most `limit` seconds, in the folder that it is in."""
        with tempfile.TemporaryDirectory() as folder:
            request = {"program": str(program), "strategy": strategy, "limit": limit, "folder": folder}
            ended = self._ask(json.dumps(request))
            return _read_result(Path(folder), ended)

    def _ask(self, request: str) -> str:
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(request + "\n")
            self._server.stdin.flush()
        except BrokenPipeError as error:
            raise RuntimeFailure(self._what_it_said()) from error
        return str(self._receive()["ended"])

    def _receive(self) -> dict[str, object]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeFailure(self._what_it_said())
        answer: dict[str, object] = json.loads(line)
        return answer

    def _what_it_said(self) -> str:
        self._server.kill()
        self._server.communicate()
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def close(self) -> None:
        """End the server."""
        self._server.communicate()
        self._log.close()

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_result(folder: Path, ended: str) -> RunResult:
    printed = folder / "output.txt"
    output = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
    result = folder / "result.json"
    if ended == "timed out":
        return RunResult(Outcome.TIMEOUT, output=output)
    if not result.exists():
        return RunResult(Outcome.CRASH, message=ended, output=output)
    report = json.loads(result.read_text(encoding="utf-8"))
    return RunResult(
        outcome=Outcome.ERROR if report["type"] else Outcome.OK,
        error_type=report["type"],
        message=report["message"],
        losses=parse_losses(output),
        counts=report["counts"],
        output=output,
    )


def parse_losses(output: str) -> tuple[float, ...]:
    """The numbers of the last line `losses: 0.1234 0.1200 ...` of a program's output."""
    lines = _LOSSES.findall(output)
    return tuple(float(number) for number in lines[-1].split()) if lines else ()
