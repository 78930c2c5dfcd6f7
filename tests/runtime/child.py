"""One run of a program, in a process of its own that was forked for it."""

from __future__ import annotations

import functools
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from tests.runtime.strategies import forced_arguments

_LAUNCHERS = ("MASTER_", "RANK", "WORLD_SIZE", "LOCAL_", "NODE_RANK", "SLURM_", "TORCHELASTIC_", "LT_")


def run_program(program: Path, strategy: str, result: Path, output: Path) -> None:
    """Run a program as `__main__` under a strategy and end this process.

    What it prints goes to the file `output`. The file `result` gets a JSON object with `type` and `message` of the
    exception (null when there was none) and `counts`, what went through Fabric's wrappers (see `_count_wrapped`).
    """
    os.setsid()  # a process group, so that a time limit ends what the program starts as well
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _send_output_to(output)
    rendezvous = _isolate(program)
    counts = _count_wrapped()
    error = _execute(program, strategy)
    report = {"type": error and type(error).__name__, "message": str(error or ""), "counts": counts}
    sys.stdout.flush()
    result.write_text(json.dumps(report), encoding="utf-8")
    rendezvous.close()
    # process groups of DeepSpeed and XLA can stall an ordinary exit of the interpreter
    os._exit(0)


def _execute(program: Path, strategy: str) -> BaseException | None:
    try:
        _force(forced_arguments(strategy))
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as error:
        return error if error.code else None
    except Exception as error:  # whatever the program raises is the result of its run
        return error
    return None


def _force(arguments: dict[str, Any]) -> None:
    """Replace the accelerator, devices and strategy that the program asks of `Fabric`."""
    fabric: Any = importlib.import_module("lightning.fabric.fabric").Fabric
    original = fabric.__init__
    names = ("accelerator", "strategy", "devices")  # the order in which `Fabric` takes them

    @functools.wraps(original)
    def __init__(self: Any, *positional: Any, **keywords: Any) -> None:
        original(self, **{**keywords, **dict(zip(names, positional, strict=False)), **arguments})

    fabric.__init__ = __init__


def _count_wrapped() -> dict[str, int]:
    """Count what goes through the wrappers that `setup` returns: it shows which faults a silent program has.

    Keys: `forward`, `synchronised forward` (a backward after it would synchronise gradients), `step`, `iteration`.
    """
    counts = {"forward": 0, "synchronised forward": 0, "step": 0, "iteration": 0}
    wrappers: Any = importlib.import_module("lightning.fabric.wrappers")

    def forward(module: Any) -> None:
        counts["forward"] += 1
        counts["synchronised forward"] += bool(getattr(module._forward_module, "require_backward_grad_sync", True))

    def step(_: Any) -> None:
        counts["step"] += 1

    def iteration(_: Any) -> None:
        counts["iteration"] += 1

    _before(wrappers._FabricModule, "forward", forward)
    _before(wrappers._FabricOptimizer, "step", step)
    _before(wrappers._FabricDataLoader, "__iter__", iteration)
    return counts


def _before(cls: Any, name: str, observe: Any) -> None:
    original = getattr(cls, name)

    @functools.wraps(original)
    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        observe(self)
        return original(self, *args, **kwargs)

    setattr(cls, name, observed)


def _isolate(program: Path) -> socket.socket:
    """Make the process's settings those of a fresh `python program`; returns the socket that keeps its port.

    The port is held for as long as the run lasts, by a socket that does not listen: with SO_REUSEADDR on both sides the
    program's own rendezvous can listen on it, and no other run is given it.
    """
    for name in [name for name in os.environ if name.startswith(_LAUNCHERS)]:
        del os.environ[name]
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(holder.getsockname()[1])
    os.chdir(program.parent)
    sys.argv = [str(program)]
    sys.path[0] = str(program.parent)
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)  # several runs share few cores
    torch.manual_seed(0)
    return holder


def _send_output_to(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
