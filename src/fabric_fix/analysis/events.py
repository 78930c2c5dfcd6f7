"""What happened in a program: the calls that rules ask about, with the values and states they met."""

from __future__ import annotations

import ast

from fabric_fix.analysis.frames import Frame
from fabric_fix.analysis.objects import EMPTY, FabricObj, Obj, Value


class Argument:
    """An argument as written, with its value."""

    __slots__ = ("name", "node", "starred", "value")

    def __init__(self, node: ast.expr, value: Value, name: str | None = None, starred: bool = False) -> None:
        self.node = node
        self.value = value
        self.name = name
        self.starred = starred


class Call:
    """A call at one place in one calling context; values are joined over all the times it runs there."""

    fabrics: frozenset[FabricObj] = frozenset()
    strategies: frozenset[str] = frozenset()
    mixed: bool = False
    """It can also be a method of something that is no Fabric: then nothing is said of it."""
    expected: bool = False
    """What is wrong with it is what a test expects: nothing is said of it either."""

    def __init__(
        self,
        node: ast.Call,
        stmt: ast.stmt,
        frame: Frame,
        method: str,
        args: list[Argument] | None = None,
        places: dict[str, Value] | None = None,
    ) -> None:
        self.node = node
        self.stmt = stmt
        self.frame = frame
        self.method = method
        self.args: list[Argument] = [] if args is None else args
        self.places: dict[str, Value] = {} if places is None else places
        """The names (and attributes of names) that can be used at this point, with their values."""

    def argument(self, name: str, position: int) -> Argument | None:
        """The argument given by that keyword, or at that position."""
        positional = [argument for argument in self.args if argument.name is None]
        for argument in self.args:
            if argument.name == name:
                return argument
        if position < len(positional) and not any(a.starred for a in positional[: position + 1]):
            return positional[position]
        return None

    @property
    def starred(self) -> bool:
        """Whether a `*` or `**` argument hides what is passed."""
        return any(argument.starred or argument.name == "**" for argument in self.args)


class Setup(Call):
    """`setup`, `setup_module`, `setup_optimizers` or `setup_dataloaders`."""

    before: Value = EMPTY
    """The wrapped modules that this Fabric had set up before."""
    rewrapped: Value = EMPTY
    """Arguments that are wrapped already: Fabric raises (message 6 and 7)."""
    result: Value = EMPTY
    repeated: bool = False
    """It runs again for the same Fabric: in a loop, or a comprehension."""


class Backward(Call):
    """`fabric.backward(...)`."""

    loss: Value = EMPTY
    deps: Value = EMPTY
    """The models that the loss was computed from, wrapped or raw."""
    models: Value = EMPTY
    """The wrapped modules that this Fabric has set up when it runs."""
    count: int = 0
    """How many modules, at the most, were set up before it on one path (3 stands for more)."""
    many: bool = False
    """One of them stands for several (set up in a loop)."""
    first_steps: Value = EMPTY
    """The optimizers whose `step()` can come first after it."""
    steps: Value = EMPTY
    """The optimizers that step after it, before the next group of backward calls."""
    sync: Value = EMPTY
    """The modules of the `no_backward_sync` blocks that it stands in."""
    clips: Value = EMPTY
    """The modules whose gradients are clipped after it, before a step."""
    uncertain: bool = False
    """Something that the analysis does not know went into the loss."""

    def __init__(
        self,
        node: ast.Call,
        stmt: ast.stmt,
        frame: Frame,
        method: str,
        args: list[Argument] | None = None,
        places: dict[str, Value] | None = None,
    ) -> None:
        super().__init__(node, stmt, frame, method, args, places)
        self.group: set[Backward] = set()
        """The backward calls, this one included, that run before the next step."""
        self.repeats: set[Backward] = set()
        """Backward calls on the same model that can have run before it with no step between."""


class PlainBackward(Call):
    """`something.backward(...)`, of what is no Fabric: a loss, as a rule."""

    receivers: Value = EMPTY
    deps: Value = EMPTY
    """The models that the receiver was computed from, wrapped or raw."""
    steps: Value = EMPTY
    """The optimizers that step on its gradients, before they are dropped (`zero_grad`) or Fabric's backward runs."""


class NoSync(Call):
    """`no_backward_sync` of a Fabric ('fabric'), of its strategy ('strategy') or of its control ('control')."""

    via: str = "fabric"


class StrategyCall(Call):
    """Another method of `fabric.strategy`."""


class Step(Call):
    """`optimizer.step()`."""

    optimizers: Value = EMPTY


class Iteration:
    """A `for` loop (or comprehension) over a loader."""

    loader: Value = EMPTY

    def __init__(self, node: ast.expr, stmt: ast.stmt, frame: Frame) -> None:
        self.node = node
        self.stmt = stmt
        self.frame = frame


class Use:
    """Something that was done with an object, at one place in one context."""

    __slots__ = ("after", "detail", "frame", "grad", "kind", "node", "obj", "stmt")

    def __init__(self, obj: Obj, kind: str, node: ast.AST, stmt: ast.stmt, frame: Frame, detail: str = "") -> None:
        self.obj = obj
        self.kind = kind
        """call, method, attr, index, setattr, isinstance, type, save, pass, input, iterate, step, setup, sync,
        backward, clip, load, store, strategy, return, keep, identity, operator, compile, bind, setmodule, setitem,
        delattr."""
        self.node = node
        self.stmt = stmt
        self.frame = frame
        self.detail = detail
        self.after: Value = EMPTY
        """For a raw object: the wrapped ones that set-ups had made of it before."""
        self.grad = False
        """Whether gradients were recorded."""
