"""What stands in for Lightning when a program is only traced: its checks are those that Fabric makes, and it goes on.

Checked against `fabric.py` and `wrappers.py` of Lightning 2.6 and the runs of `tests/runtime`.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from tests.properties.torch_double import DataLoader, Module, Optimizer, Scheduler, Tensor, world

JOINT_ONLY = ("deepspeed", "xla")
SEPARATE_ONLY = ("xla_fsdp", "model_parallel")
MODEL_FIRST = ("fsdp", "xla_fsdp", "model_parallel")


class WrappedModule(Module):
    """What `setup` returns for a module."""

    def __init__(self, inner: Module) -> None:
        super().__init__()
        self.module = self._forward_module = self._original_module = inner
        self.label = f"wrapped {inner.label}"

    @property
    def raw(self) -> Module:
        """The module inside."""
        return self.module

    def _run(self, *args: object, **kwargs: object) -> Tensor:
        return self.module._run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "module" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.module, name)


class WrappedOptimizer(Optimizer):
    """What `setup` returns for an optimizer."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.label = f"wrapped {inner.label}"
        self.param_groups = getattr(inner, "param_groups", [])

    @property
    def raw(self) -> Optimizer:
        """The optimizer inside."""
        inner: Optimizer = self._inner
        return inner


class WrappedLoader(DataLoader):
    """What `setup_dataloaders` returns for a loader."""

    def __init__(self, inner: DataLoader) -> None:
        self.label = f"wrapped {inner.label}"


class Strategy:
    """A strategy, with the methods that programs call past Fabric."""

    def __init__(self, *_: object, **__: object) -> None:
        self._backward_sync_control = self

    def setup_module(self, module: Module) -> Module:
        """Wrapped, but no module of Fabric's."""
        world().error(f"strategy.setup_module({module.label})")
        return module

    def setup_optimizer(self, optimizer: Optimizer) -> Optimizer:
        """The same for an optimizer."""
        world().error(f"strategy.setup_optimizer({optimizer.label})")
        return optimizer

    def backward(self, tensor: Tensor, module: Module | None = None, *_: object) -> None:
        """A backward without Fabric's precision."""
        world().error(f"strategy.backward({sorted(tensor.forwards)}, {module and module.label})")

    def no_backward_sync(self, module: Module, enabled: bool = True) -> contextlib.nullcontext[None]:
        """Not there in Lightning 2."""
        world().error(f"strategy.no_backward_sync({module.label}, {enabled})")
        return contextlib.nullcontext()


_CLASSES = {
    "auto": "SingleDeviceStrategy",
    "ddp": "DDPStrategy",
    "deepspeed": "DeepSpeedStrategy",
    "fsdp": "FSDPStrategy",
    "model_parallel": "ModelParallelStrategy",
    "xla": "XLAStrategy",
    "xla_fsdp": "XLAFSDPStrategy",
}
STRATEGIES: dict[str, type[Strategy]] = {name: type(name, (Strategy,), {}) for name in _CLASSES.values()}


class Fabric:
    """Fabric under the strategy that the run is for, whatever the program asks for."""

    def __init__(self, *_: object, **settings: object) -> None:
        self.strategy = STRATEGIES[_CLASSES[world().family]]()
        self.device = "cpu"
        self.is_global_zero, self.global_rank, self.world_size = True, 0, 1
        self._models: list[Module] = []
        self._is_launched = world().family == "auto"
        world().record("fabric", sorted(k for k in settings if k != "strategy"))

    def launch(self, function: Callable[..., object] | None = None, *args: object) -> object:
        """Call what is given with this Fabric."""
        self._is_launched = True
        return function(self, *args) if function is not None else None

    def setup(self, module: Module, *optimizers: Any, scheduler: Any = None, move_to_device: bool = True) -> Any:
        """Wrap a module and its optimizers jointly."""
        family = world().family
        if optimizers and family in SEPARATE_ONLY:
            world().error(f"joint set-up of {module.label}")
        if not optimizers and family == "deepspeed":
            world().error(f"set-up of {module.label} without an optimizer")
        if len(optimizers) > 1 and family == "deepspeed":
            world().error(f"several optimizers for {module.label}")
        made = self._wrap(module, move_to_device)
        wrapped = tuple(self._wrap_optimizer(optimizer) for optimizer in optimizers)
        return (made, *wrapped) if optimizers else made

    def setup_module(self, module: Module, move_to_device: bool = True) -> Module:
        """Wrap a module."""
        return self._wrap(module, move_to_device)

    def _wrap(self, module: Module, move_to_device: bool) -> Module:
        self._check_launched()
        if module.raw is not module:
            world().error(f"{module.label} is set up twice")
        world().setups[f"{module.label}, {move_to_device}"] += 1
        module.is_sharded = True
        self._models.append(module)
        return WrappedModule(module)

    def setup_optimizers(self, *optimizers: Any) -> Any:
        """Wrap optimizers."""
        for optimizer in optimizers:
            if world().family in JOINT_ONLY:
                world().error(f"{getattr(optimizer, 'label', optimizer)} is set up apart")
            if world().family in MODEL_FIRST and getattr(optimizer, "is_early", False):
                world().error(f"{optimizer.label} is created early")
        wrapped = tuple(self._wrap_optimizer(optimizer) for optimizer in optimizers)
        return wrapped if len(wrapped) > 1 else wrapped[0]

    def _wrap_optimizer(self, optimizer: Any) -> Any:
        self._check_launched()
        if isinstance(optimizer, (Scheduler, DataLoader)) or getattr(optimizer, "raw", None) is not optimizer:
            world().error(f"{optimizer.label} is no raw optimizer")
        world().setups[optimizer.label] += 1
        return WrappedOptimizer(optimizer)

    def setup_dataloaders(self, *loaders: Any, use_distributed_sampler: bool = True) -> Any:
        """Wrap loaders."""
        self._check_launched()
        for loader in loaders:
            world().setups[f"{loader.label}, {use_distributed_sampler}"] += 1
        wrapped = [WrappedLoader(loader) for loader in loaders]
        return wrapped if len(wrapped) > 1 else wrapped[0]

    def _check_launched(self) -> None:
        if not self._is_launched:
            world().error("set-up before launch")

    def backward(self, tensor: Tensor, *args: object, model: Any = None, **kwargs: object) -> None:
        """Remember which forwards the loss came from and, under DeepSpeed, whose engine runs the backward."""
        if model is not None and not isinstance(model, WrappedModule):
            world().error(f"backward with {model.label}")
        deepspeed = world().family == "deepspeed"
        if deepspeed and model is None and len(self._models) != 1:
            world().error("backward without model")
        engine = (model.label if model is not None else f"wrapped {self._models[0].label}") if self._models else None
        settings = (tensor.numbers, args, sorted(kwargs.items()))
        blocked = sorted(+world().blocked)
        world().record("backward", sorted(tensor.forwards), engine if deepspeed else None, blocked, settings)

    @contextlib.contextmanager
    def no_backward_sync(self, module: Module, enabled: bool = True) -> Iterator[None]:
        """Block the synchronisation of a module's gradients."""
        if not isinstance(module, WrappedModule):
            world().error(f"no_backward_sync with {module.label}")
        world().blocked[module.label] += bool(enabled)
        try:
            yield
        finally:
            world().blocked[module.label] -= bool(enabled)

    def clip_gradients(self, module: Module, optimizer: Optimizer, **settings: object) -> None:
        """Remember what is clipped."""
        world().record("clip", module.label, optimizer.raw.label, sorted(settings.items()))

    def save(self, path: object, state: dict[str, Any]) -> None:
        """Remember what is saved."""
        world().record("save", sorted((key, getattr(value, "label", str(value))) for key, value in state.items()))

    def print(self, *_: object) -> None:
        """Nothing that is traced."""

    def barrier(self) -> None:
        """Nothing that is traced."""

    def seed_everything(self, seed: int) -> None:
        """Nothing that is traced."""

    def to_device(self, value: Any) -> Any:
        """The value."""
        return value

    def init_module(self, **_: object) -> contextlib.nullcontext[None]:
        """A context that is not traced."""
        return contextlib.nullcontext()

    def autocast(self) -> contextlib.nullcontext[None]:
        """A context that is not traced."""
        return contextlib.nullcontext()

    def rank_zero_first(self) -> contextlib.nullcontext[None]:
        """A context that is not traced."""
        return contextlib.nullcontext()


def lightning_modules() -> dict[str, Any]:
    """The modules of Lightning by their dotted names."""
    strategies = types.SimpleNamespace(**STRATEGIES)
    fabric = types.SimpleNamespace(Fabric=Fabric, strategies=strategies, seed_everything=lambda *_: None)
    lightning = types.SimpleNamespace(Fabric=Fabric, fabric=fabric, seed_everything=lambda *_: None)
    return {"lightning": lightning, "lightning.fabric": fabric, "lightning.fabric.strategies": strategies}
