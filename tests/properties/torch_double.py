"""What stands in for torch when a program is only traced: it computes nothing and remembers what met what.

Models, optimizers, schedulers and loaders are known by labels that do not depend on the names in the program.
"""

from __future__ import annotations

import contextlib
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class World:
    """The trace of one run."""

    def __init__(self, family: str) -> None:
        self.family = family
        """The family of the strategy that the program is run under: ddp, deepspeed, xla_fsdp, ..."""
        self.events: list[tuple[object, ...]] = []
        self.setups: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        """The wrapped models whose gradients are not synchronised at the moment."""
        self.depth = 0
        self.grad = True
        self.made: Counter[str] = Counter()

    def record(self, *event: object) -> None:
        """Remember that something happened."""
        self.events.append(event)

    def error(self, what: str) -> None:
        """Remember a mistake that the runtime refuses, or takes and then trains wrongly; the run goes on."""
        self.events.append(("error", what))

    def number(self, name: str) -> str:
        """A label for one more object of a class."""
        self.made[name] += 1
        return f"{name}{self.made[name]}"


class _Now:
    world = World("auto")


def world() -> World:
    """The trace that is being recorded."""
    return _Now.world


def enter(new: World) -> None:
    """Record into another trace from now on."""
    _Now.world = new


class Tensor:
    """A value that knows which forwards it came from."""

    def __init__(self, sources: Iterable[object] = ()) -> None:
        parts = list(_parts(sources))
        tensors = [part for part in parts if isinstance(part, Tensor)]
        self.forwards: frozenset[str] = frozenset().union(*(tensor.forwards for tensor in tensors))
        numbers = [number for tensor in tensors for number in tensor.numbers]
        self.numbers: tuple[float, ...] = tuple(
            sorted([*numbers, *(float(part) for part in parts if isinstance(part, (int, float)))])
        )
        """The constants that it was computed with: they tell a scaled loss from one that is not."""

    def item(self) -> float:
        """A number, always the same."""
        return 0.5

    def detach(self) -> Tensor:
        """The value without where it came from."""
        return Tensor()

    def backward(self, **_: object) -> None:
        """The backward that goes past Fabric."""
        world().record("raw backward", sorted(self.forwards), self.numbers)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: Tensor([self, *args, *kwargs.values()])

    def __len__(self) -> int:
        return 8

    def _with(self, *others: object) -> Tensor:
        return Tensor([self, *others])

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = __getitem__ = _with
    __neg__ = _with


def _parts(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _parts(value)
        else:
            yield value


def combine(*args: object, **kwargs: object) -> Tensor:
    """Any function of torch that makes a tensor of tensors."""
    return Tensor([*args, *kwargs.values()])


class Parameter:
    """The parameters of a module, as one."""

    def __init__(self, owner: Module) -> None:
        self.owner = owner
        self.requires_grad = True

    def numel(self) -> int:
        """A count, always the same."""
        return 3

    def requires_grad_(self, flag: bool = True) -> Parameter:
        """Nothing that is traced."""
        return self


class Module:
    """`nn.Module`: known by its class and how many of it were made before."""

    label: str
    is_sharded: bool

    def __new__(cls, *_: object, **__: object) -> Any:
        """Give every module a label, whatever its `__init__` does."""
        made = super().__new__(cls)
        made.label = world().number(cls.__name__)
        made.is_sharded = False
        return made

    def __init__(self, *_: object, **__: object) -> None:
        self.training = True

    def __call__(self, *args: object, **kwargs: object) -> Tensor:
        now = world()
        if now.depth:
            return self._run(*args, **kwargs)
        if now.grad:  # without gradients it makes no difference whether the wrapper is passed by
            now.record("forward", self.label, sorted(+now.blocked))
        else:
            now.record("evaluation", self.raw.label)
        now.depth += 1
        try:
            result = self._run(*args, **kwargs)
        finally:
            now.depth -= 1
        made = Tensor()
        made.forwards = result.forwards | {self.label} if now.grad else frozenset()
        return made

    def _run(self, *args: object, **kwargs: object) -> Tensor:
        return self.forward(*args, **kwargs)

    forward: Callable[..., Tensor] = lambda self, *args, **kwargs: Tensor([*args, *kwargs.values()])

    @property
    def raw(self) -> Module:
        """The module itself, or what is inside Fabric's wrapper."""
        return self

    def parameters(self) -> Iterator[Parameter]:
        """The parameters, which know their module."""
        yield Parameter(self.raw)

    def state_dict(self) -> dict[str, str]:
        """The state, which tells its module."""
        return {"of": self.raw.label}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """Remember what is loaded."""
        world().record("load", self.raw.label, str(state))

    def train(self, mode: bool = True) -> Module:
        """Remember the mode."""
        world().record("train", self.raw.label, mode)
        return self

    def eval(self) -> Module:
        """Remember the mode."""
        return self.train(False)

    def to(self, *_: object) -> Module:
        """Nothing that is traced."""
        return self

    def requires_grad_(self, flag: bool = True) -> Module:
        """Remember that a model is frozen or not."""
        world().record("requires_grad", self.raw.label, flag)
        return self

    def no_sync(self) -> contextlib.nullcontext[None]:
        """Remember that it is called: no module of the programs has it."""
        world().error(f"no_sync of {self.label}")
        return contextlib.nullcontext()


class Optimizer:
    """An optimizer: known by its class, its settings, and the models whose parameters it has."""

    def __init__(self, params: Iterable[Any], *args: object, **settings: object) -> None:
        owners = [parameter.owner for parameter in _flat(params)]
        names = ", ".join(sorted({owner.label for owner in owners}))
        self.label = f"{type(self).__name__}({names}; {args} {sorted(settings.items())})"
        self.is_early = any(not owner.is_sharded for owner in owners)
        """Whether it was made while one of its models was not sharded yet."""
        self.param_groups = [{"lr": 0.1}]

    @property
    def raw(self) -> Optimizer:
        """The optimizer itself, or what is inside Fabric's wrapper."""
        return self

    def step(self, closure: Callable[[], object] | None = None) -> None:
        """Remember the step."""
        if closure is not None:
            closure()
        world().record("step", self.label)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remember that gradients are dropped."""
        world().record("zero_grad", self.raw.label)

    def state_dict(self) -> dict[str, str]:
        """The state, which tells its optimizer."""
        return {"of": self.raw.label}


def _flat(params: Iterable[Any]) -> Iterator[Parameter]:
    for parameter in params:
        if isinstance(parameter, dict):
            yield from _flat(parameter["params"])
        else:
            yield parameter


class Scheduler:
    """A learning-rate scheduler."""

    def __init__(self, optimizer: Optimizer, *args: object, **settings: object) -> None:
        if optimizer.raw is not optimizer and world().family == "deepspeed":
            world().error(f"scheduler on the wrapped {optimizer.raw.label}")
        self.label = f"{type(self).__name__}({optimizer.raw.label})"

    def step(self, *_: object) -> None:
        """Remember the step."""
        world().record("schedule", self.label)


class DataLoader:
    """A loader of three batches."""

    def __init__(self, dataset: object, *args: object, **settings: object) -> None:
        self.label = world().number(f"DataLoader({args} {sorted((k, str(v)) for k, v in settings.items())})")

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        world().record("iterate", self.label)
        return iter([(Tensor(), Tensor())] * 3)

    def __len__(self) -> int:
        return 3


class Functions:
    """A module of torch in which every other name is a function of tensors."""

    def __init__(self, **names: object) -> None:
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return combine


class _Grad(contextlib.ContextDecorator):
    def __enter__(self) -> None:
        self._before = world().grad
        world().grad = False

    def __exit__(self, *_: object) -> None:
        world().grad = self._before


def _classes(base: type, *names: str) -> dict[str, type]:
    return {name: type(name, (base,), {}) for name in names}


def torch_modules() -> dict[str, Any]:
    """The modules of torch by their dotted names."""
    functional = Functions()
    criteria = {name: lambda *_, **__: combine for name in ("MSELoss", "BCEWithLogitsLoss", "L1Loss")}
    layers = _classes(Module, "Linear", "Sequential", "ReLU", "Tanh", "LeakyReLU", "Dropout")
    nn = types.SimpleNamespace(Module=Module, functional=functional, **layers, **criteria)
    schedulers = types.SimpleNamespace(**_classes(Scheduler, "StepLR", "ExponentialLR", "CosineAnnealingLR"))
    optim = types.SimpleNamespace(**_classes(Optimizer, "SGD", "Adam", "AdamW"), lr_scheduler=schedulers)
    data = types.SimpleNamespace(DataLoader=DataLoader, TensorDataset=lambda *_: None)
    torch = Functions(
        nn=nn,
        optim=optim,
        utils=types.SimpleNamespace(data=data),
        cuda=types.SimpleNamespace(is_available=lambda: False),
        no_grad=_Grad,
        inference_mode=_Grad,
        device=contextlib.nullcontext,
        Tensor=Tensor,
        float32="float32",
    )
    names = {
        "torch": torch,
        "torch.nn": nn,
        "torch.nn.functional": functional,
        "torch.optim": optim,
        "torch.optim.lr_scheduler": schedulers,
        "torch.utils": torch.utils,
        "torch.utils.data": data,
    }
    return names
