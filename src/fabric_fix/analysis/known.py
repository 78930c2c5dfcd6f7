"""What is known of libraries by their dotted names: Fabric, its strategies, torch's optimizers, schedulers and loaders.

Names of Fabric and of its strategies were read from `lightning/fabric/__init__.py` and
`lightning/fabric/strategies/__init__.py` of Lightning 2.6; older homes (`lightning_fabric`, `lightning.lite`) from
their last releases.
"""

from __future__ import annotations

import re

FABRIC_ROOTS = ("lightning", "lightning_fabric", "pytorch_lightning", "lightning_lite")
"""Packages that Fabric is imported from. The SSH library `fabric` is none of them."""

_FABRIC = re.compile(
    r"(lightning(\.fabric(\.fabric)?)?|lightning_fabric(\.fabric)?)\.Fabric"
    r"|(lightning(\.lite(\.lite)?)?|lightning_lite(\.lite)?|pytorch_lightning\.lite(\.lite)?)\.LightningLite"
)

LIBRARIES = frozenset(
    {"lightning", "lightning_fabric", "pytorch_lightning", "lightning_lite", "torch", "numpy", "deepspeed", "torch_xla"}
)
"""Packages known by their names: a project's own folder of such a name is not looked into."""

UNIQUE_METHODS = frozenset({"setup_module", "setup_optimizers", "setup_dataloaders", "no_backward_sync", "init_module"})
"""Methods of a Fabric that nothing else has: a parameter called `fabric` is known by them."""

SETUP_METHODS = frozenset({"setup", "setup_module", "setup_optimizers", "setup_dataloaders"})

STRATEGY_CLASSES = {
    "DDPStrategy": "ddp",
    "DataParallelStrategy": "dp",
    "DeepSpeedStrategy": "deepspeed",
    "FSDPStrategy": "fsdp",
    "ModelParallelStrategy": "model_parallel",
    "SingleDeviceStrategy": "single",
    "SingleDeviceXLAStrategy": "single_xla",
    "XLAFSDPStrategy": "xla_fsdp",
    "XLAStrategy": "xla",
}
"""Classes of `lightning.fabric.strategies`, with the family that fabric-fix knows them by."""

SUBCLASSES = {
    "DataParallelStrategy": {"dp"},
    "ParallelStrategy": set(STRATEGY_CLASSES.values()) - {"single", "single_xla"},
}
"""Base classes that a test with `isinstance` may name, with the families below them."""

JOINT_ONLY = frozenset({"deepspeed", "xla"})
"""Families that take model and optimizer jointly (`_validate_setup_optimizers`, `fabric.py`)."""
SEPARATE_ONLY = frozenset({"xla_fsdp", "model_parallel", "fsdp_original_params"})
"""Families where a joint set-up raises or trains nothing."""
MODEL_FIRST = frozenset({"fsdp", "xla_fsdp", "model_parallel", "fsdp_original_params"})
"""Families under which a separately set-up optimizer must be created after `setup_module`."""

_PARAMETER_METHODS = ("parameters", "named_parameters")
KEEPS_IDENTITY = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "train",
        "eval",
        "requires_grad_",
        "share_memory",
        "apply",
        "contiguous",
        "clone",
        "compile",
    ]
) - {"clone", "compile", "apply"}
"""Methods that return the object that they are called on, or one with the same gradient path."""
CUTS_GRADIENT = frozenset(
    [
        "detach",
        "detach_",
        "item",
        "numpy",
        "tolist",
        "argmax",
        "argmin",
        "size",
        "dim",
        "numel",
        "nelement",
        "long",
        "int",
        "bool",
        "byte",
        "eq",
        "ne",
        "lt",
        "gt",
        "le",
        "ge",
        "any",
        "all",
    ]
)
"""Methods of a tensor whose result has no gradient path to it."""

HARMLESS_METHODS = frozenset(
    [
        "parameters",
        "buffers",
        "state_dict",
        "load_state_dict",
        "train",
        "eval",
        "zero_grad",
        "requires_grad_",
        "to",
        "cuda",
        "cpu",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "mark_forward_method",
        "modules",
        "get_parameter",
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "share_memory",
        "training_step",
        "validation_step",
        "test_step",
        "predict_step",
    ]
)
"""Methods that do the same on a raw model and on its wrapper: `_FabricModule` (`wrappers.py`) is an `nn.Module` itself,
forwards the state, and sends the steps of a LightningModule through the strategy. `named_parameters()` and the like
give other names there, so they are not among these."""

NAMES_PARTS = frozenset(
    [
        "named_parameters",
        "named_modules",
        "named_children",
        "named_buffers",
        "children",
        "get_submodule",
        "get_buffer",
        "add_module",
        "register_buffer",
        "register_module",
        "register_parameter",
        "apply",
    ]
)
"""Methods of `nn.Module` that give or take the parts of a module by name: the wrapper has other parts, and prefixes."""

CONTAINERS = frozenset({"ModuleList", "ModuleDict", "Sequential"})
"""Modules of torch whose items are their parts."""

HARMLESS_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in [
        "len",
        "print",
        "id",
        "hasattr",
        "getattr",
        "setattr",
        "repr",
        "str",
        "callable",
        "bool",
        "list",
        "tuple",
        "set",
        "dict",
    ]
)

NO_GRAD = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
)

SAVES = re.compile(
    r"(torch\.save|pickle\.dumps?|joblib\.dump|cloudpickle\.dumps?|dill\.dumps?|torch\.jit\.\w+|torch\.onnx\.export|copy\.(deep)?copy)"
)
"""Functions that store or copy a whole object: they can tell a wrapped model from a raw one."""

_SCHEDULER = re.compile(
    r"(torch\.optim\.lr_scheduler\.[A-Z]\w*|(transformers|diffusers)(\.\w+)*\.get_\w*(schedule|scheduler)\w*)"
)
_OPTIMIZER = re.compile(
    r"torch\.optim\.(?!lr_scheduler)(\w+\.)?[A-Z]\w*|(bitsandbytes|bnb)\.optim\.\w+|deepspeed\.ops\.\w+\.\w+"
)
_LOADER = re.compile(r"torch\.utils\.data(\.dataloader)?\.DataLoader|torch_geometric\.loader\.\w*Loader")
_MODULE = re.compile(
    r"torch\.nn(\.modules(\.\w+)?)?\.[A-Z]\w*|torchvision\.models\.\w+(\.\w+)?|timm\.create_model|torch\.hub\.load|transformers\.\w+\.from_pretrained"
)
_OPTIMIZER_NAME = re.compile(
    r"(Adam\w*|SGD\w*|Adagrad|Adadelta|RMSprop|LBFGS|Lion|Adafactor|Muon|\w*Optimizer|NAdam|RAdam|LAMB|Lamb)$"
)


def is_fabric_class(path: str) -> bool:
    """Whether a dotted path names `Fabric` (or its ancestor `LightningLite`)."""
    return _FABRIC.fullmatch(path) is not None


def strategy_class(path: str) -> str | None:
    """The family of a strategy class of Lightning, or None."""
    root, _, name = path.rpartition(".")
    if not root.startswith(("lightning.fabric", "lightning_fabric", "lightning.pytorch", "pytorch_lightning")):
        return None
    return STRATEGY_CLASSES.get(name)


def is_optimizer_class(path: str) -> bool:
    """Whether calling it makes an optimizer, going by its dotted path or, for other libraries, its telling name."""
    return bool(_OPTIMIZER.fullmatch(path)) or bool(_OPTIMIZER_NAME.fullmatch(path.rpartition(".")[2]))


def is_scheduler_class(path: str) -> bool:
    """Whether calling it makes a learning-rate scheduler of torch or of transformers."""
    return _SCHEDULER.fullmatch(path) is not None


def is_loader_class(path: str) -> bool:
    """Whether calling it makes a DataLoader."""
    return _LOADER.fullmatch(path) is not None


def is_module_class(path: str) -> bool:
    """Whether calling it surely makes a raw `nn.Module`."""
    return _MODULE.fullmatch(path) is not None and not path.endswith((".Parameter", ".Buffer", ".ParameterList"))


def class_kind(path: str) -> str:
    """The kind of a subclass of an imported class: fabric, module, optimizer, scheduler, strategy, loader or ''."""
    if is_fabric_class(path):
        return "fabric"
    if path in ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"):
        return "module"
    if re.fullmatch(r"(lightning|pytorch_lightning|lightning\.pytorch)(\.\w+)*\.LightningModule", path):
        return "module"
    if strategy_class(path) or path.endswith(".strategies.Strategy"):
        return "strategy"
    if is_scheduler_class(path) or path.endswith(("lr_scheduler.LRScheduler", "lr_scheduler._LRScheduler")):
        return "scheduler"
    if path.startswith("torch.optim.") and is_optimizer_class(path):
        return "optimizer"
    if is_loader_class(path):
        return "loader"
    return "module" if is_module_class(path) else ""


def strategy_families(name: str, accelerator: str | None, devices: object) -> frozenset[str]:
    """The families that a strategy string can mean.

    `name` is case-insensitive, as in `connector.py` (`_check_config_and_set_final_flags` lower-cases it);
    `accelerator` and `devices` are the arguments beside it where they are literals, else None.
    """
    name = name.lower()
    tpu = (accelerator or "").lower() == "tpu"
    if name == "auto":
        if not tpu:
            return frozenset({"auto"})
        return frozenset({"single_xla"}) if devices in (1, "1") else frozenset({"xla"})
    if name.startswith("fsdp"):
        return frozenset({"xla_fsdp" if tpu else "fsdp"})
    for prefix in ("deepspeed", "ddp"):
        if name.startswith(prefix):
            stage = name.removeprefix("deepspeed_stage_")[:1] if prefix == "deepspeed" else ""
            return frozenset({f"deepspeed_{stage}" if stage in ("1", "2", "3") and stage else prefix})
    known = {"xla", "xla_fsdp", "single_xla", "dp", "model_parallel"}
    return frozenset({name}) if name in known else frozenset({"unknown"})


def is_deepspeed(family: str) -> bool:
    """Whether a family is DeepSpeed's (`deepspeed`, or `deepspeed_0` … `deepspeed_3` where the stage is known)."""
    return family.startswith("deepspeed")


def joint_only(families: frozenset[str]) -> frozenset[str]:
    """Those of the families that want one joint set-up."""
    return frozenset(f for f in families if f in JOINT_ONLY or is_deepspeed(f))
