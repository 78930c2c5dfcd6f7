"""What stands in for the hardware: the arguments of `Fabric` that run a strategy on this machine's CPU.

Only what ties a strategy to its hardware is bypassed. The checks that judge how a program uses Fabric are Lightning's
own, and DeepSpeed, DDP and torch_xla do the real work.

This module runs in the interpreter that has the runtime, which need not have pytest or fabric_fix. The heavy packages
are loaded by name: a type checker would need minutes to read them.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

ForcedArguments = dict[str, Any]
"""Keyword arguments that replace the program's own in `Fabric(...)`."""


def warm_up(flavour: str) -> None:
    """Import what the programs of a flavour ("torch" or "xla") need, once, so that forked children have it."""
    for name in ("torch", "torch.utils.data", "lightning", "lightning.fabric"):
        importlib.import_module(name)
    if flavour == "xla":
        os.environ["PJRT_DEVICE"] = "CPU"
        importlib.import_module("torch_xla")
    else:
        _warm_up_deepspeed()


def _warm_up_deepspeed() -> None:
    os.environ["DS_ACCELERATOR"] = "cpu"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of workers: threads do not survive a fork
    operations: Any = importlib.import_module("deepspeed.ops")
    # one process has nothing to share; the operation would be compiled, which needs ninja and a C++ compiler
    operations.__compatible_ops__["deepspeed_shm_comm"] = False
    # the first engine of a process imports it, and torch's inductor with it: a second for each run
    importlib.import_module("deepspeed.runtime.zero.muon.muon_optimizer")


def forced_arguments(strategy: str) -> ForcedArguments:
    """The arguments that make `Fabric` run `strategy` on one CPU device.

    `strategy` is one of auto, ddp, deepspeed, xla and xla_fsdp; the last two want the "xla" flavour.
    """
    return _MAKERS[strategy](strategy)


def _plain(strategy: str) -> ForcedArguments:
    return {"accelerator": "cpu", "devices": 1, "strategy": strategy}


def _deepspeed(_: str) -> ForcedArguments:
    # ZeRO stage 1 trains any torch optimizer on a CPU and, unlike stage 2, lets one loss flow through two engines;
    # DeepSpeed would clip gradients to a norm of 1.0 unless told otherwise.
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 0.0,
    }
    return {"accelerator": "cpu", "devices": 1, "strategy": _deepspeed_on_cpu()(config=config)}


def _deepspeed_on_cpu() -> Callable[..., Any]:
    """A subclass of `DeepSpeedStrategy`, under the same name, without its checks for a CUDA device."""
    torch = importlib.import_module("torch")
    strategies = importlib.import_module("lightning.fabric.strategies")
    base = strategies.DeepSpeedStrategy

    def setup_environment(self: Any) -> None:
        super(base, self).setup_environment()  # past the one that refuses what is no CUDA accelerator

    def setup_distributed(self: Any) -> None:
        self._set_world_ranks()
        self._init_deepspeed_distributed()
        if not self._config_initialized:
            self._format_config()
            self._config_initialized = True

    members = {
        "setup_environment": setup_environment,
        "_setup_distributed": setup_distributed,
        "root_device": property(lambda self: torch.device("cpu", 0)),
    }
    return type(base.__name__, (base,), members)


def _xla(strategy: str) -> ForcedArguments:
    tpu: Any = importlib.import_module("torch_xla._internal.tpu")
    strategies = importlib.import_module("lightning.fabric.strategies")
    tpu.num_available_devices = lambda: 2  # Fabric asks whether there are TPUs; one process runs all the same
    made = strategies.XLAStrategy() if strategy == "xla" else strategies.XLAFSDPStrategy()
    return {"accelerator": "tpu", "devices": 2, "strategy": made}


_MAKERS: dict[str, Callable[[str], ForcedArguments]] = {
    "auto": _plain,
    "ddp": _plain,
    "deepspeed": _deepspeed,
    "xla": _xla,
    "xla_fsdp": _xla,
}
