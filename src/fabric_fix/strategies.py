"""The names that Lightning Fabric takes for `strategy=`, as `--strategy` takes them."""

from __future__ import annotations

NAMES: tuple[str, ...] = (
    "auto",
    "dp",
    "ddp",
    "ddp_spawn",
    "ddp_fork",
    "ddp_notebook",
    "ddp_find_unused_parameters_true",
    "fsdp",
    "fsdp_cpu_offload",
    "model_parallel",
    "deepspeed",
    "deepspeed_stage_1",
    "deepspeed_stage_1_offload",
    "deepspeed_stage_2",
    "deepspeed_stage_2_offload",
    "deepspeed_stage_3",
    "deepspeed_stage_3_offload",
    "deepspeed_stage_3_offload_nvme",
    "xla",
    "single_xla",
    "xla_fsdp",
)
"""Those that Lightning 2.6 registers (`STRATEGY_REGISTRY.available_strategies()`), and "auto"; and "model_parallel",
which Fabric takes as an object only, under the name that this tool gives it."""


def normal_name(word: str) -> str | None:
    """The name in the spelling of `NAMES`, or None when Lightning has none such; case does not count."""
    folded = word.strip().lower()
    return folded if folded in NAMES else None
