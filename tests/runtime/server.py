"""The process that the runs are forked from: it has torch, Lightning and DeepSpeed (or torch_xla) loaded.

    python -m tests.runtime.server torch|xla

Loading them costs seconds, a fork some milliseconds. Requests come on standard input, one JSON object a line, with
`program`, `strategy`, `limit` (seconds) and `folder` (where the run's files go); each is answered on standard output
by `{"ended": "exited" | "killed" | "timed out"}` when its run is over. The first line of all says `{"ready": true}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from tests.runtime.child import run_program
from tests.runtime.strategies import warm_up

_POLL_SECONDS = 0.01


def main(flavour: str) -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the imports print must not be taken for an answer
    warnings.filterwarnings("ignore")
    warm_up(flavour)
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        _answer(answers, {"ended": _serve(json.loads(line))})


def _answer(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _serve(request: dict[str, Any]) -> str:
    folder = Path(request["folder"])
    child = os.fork()
    if child == 0:
        try:
            run_program(Path(request["program"]), request["strategy"], folder / "result.json", folder / "output.txt")
        finally:
            os._exit(70)  # never back into the server's loop
    return _wait(child, time.monotonic() + request["limit"])


def _wait(child: int, deadline: float) -> str:
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            time.sleep(_POLL_SECONDS)
    _end_group(child)
    if ended:
        return "exited" if os.WIFEXITED(status) else "killed"
    os.kill(child, signal.SIGKILL)  # it may not have made a group of its own yet
    os.waitpid(child, 0)
    return "timed out"


def _end_group(leader: int) -> None:
    """End what a run left behind, such as the manager process of a launcher: it would keep our pipes open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
