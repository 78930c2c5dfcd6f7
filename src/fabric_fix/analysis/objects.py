"""Abstract objects: what a name in a Fabric program can stand for.

A value (`Value`) is the set of objects that an expression can evaluate to. Objects are compared by identity; the
interpreter makes one object for each allocation site and calling context, so a loop gives the same one each time.
"""

from __future__ import annotations

import ast
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fabric_fix.analysis.frames import Frame


_serials = count()


def restart_numbers() -> None:
    """Number objects from the start again: each program has the same numbers in every run."""
    global _serials
    _serials = count(16)


class Obj:
    """Anything that a name can stand for; compared by identity.

    Its hash is a running number, not its address, so that sets of objects are walked in the same order in every run.
    """

    __slots__ = ("serial",)
    serial: int

    def __new__(cls, *args: object, **keywords: object) -> Obj:
        """Make an object with the next number."""
        made = object.__new__(cls)
        made.serial = next(_serials)
        return made

    def __hash__(self) -> int:
        return self.serial


Value: TypeAlias = "frozenset[Obj]"
EMPTY: Value = frozenset()


class Marker(Obj):
    """`UNBOUND` (a name that may have no value) and `UNKNOWN` (more than the analysis keeps apart)."""

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label


UNBOUND = Marker("unbound")
UNKNOWN = Marker("unknown")


class Const(Obj):
    """A literal: a string, a number, a bool or None."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class External(Obj):
    """A thing that is imported: a module, class or function, known by its dotted path."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Lazy(External):
    """An import of the project that is looked up when it matters: a module, or a name of one."""

    __slots__ = ("importer", "level", "module", "name")

    def __init__(self, importer: Frame, module: str, level: int, name: str) -> None:
        super().__init__("." * level + module + ("." if module and name else "") + name)
        self.importer = importer
        self.module = module
        self.level = level
        self.name = name
        """The imported name; '' for the module itself."""


class ModuleObj(Obj):
    """A module or package of the project."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Thing(Obj):
    """An object of which only the origin is known: what a call returned, a parameter, an attribute, an item."""

    __slots__ = (
        "base",
        "callee",
        "deps",
        "frame",
        "keywords",
        "kind",
        "label",
        "meta",
        "node",
        "sees_fabric",
        "sources",
    )

    def __init__(self, kind: str, node: ast.AST | None, frame: Frame | None, label: str = "") -> None:
        self.kind = kind
        """One of call, param, attr, item, iter, op, name, args."""
        self.node = node
        self.frame = frame
        self.label = label
        """The name it goes by in the source: the parameter, the attribute, the callee's last name."""
        self.callee = ""
        """For a call: the dotted path of what was called, or ''."""
        self.base: Obj | None = None
        """For an attribute, item or iteration: of what."""
        self.deps: Value = EMPTY
        """The models that it was computed from, with gradient; for an optimizer, the models it has parameters of."""
        self.sources: Value = EMPTY
        """Everything that went into it, gradient or not."""
        self.keywords: dict[str, Value] = {}
        self.meta = False
        """Made under `init_module(empty_init=True)`."""
        self.sees_fabric = False
        """For a call: a Fabric is among the arguments, so that it may have set something up."""


class Sequence(Obj):
    """A tuple or list whose items are known one by one."""

    __slots__ = ("items", "node", "of")

    def __init__(self, node: ast.AST | None) -> None:
        self.node = node
        self.items: list[Value] = []
        self.of = "tuple"


class Collection(Obj):
    """A list, set or dict; its content is kept in the state: `*` for any element, a key for a known one."""

    __slots__ = ("frame", "node")

    def __init__(self, node: ast.AST, frame: Frame) -> None:
        self.node = node
        self.frame = frame


class Function(Obj):
    """A function or lambda of the program, with the frame that it closes over."""

    __slots__ = ("closure", "decorators", "node", "owner")

    def __init__(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, closure: Frame, owner: Class | None
    ) -> None:
        self.node = node
        self.closure = closure
        self.owner = owner
        self.decorators: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name, or '<lambda>'."""
        return getattr(self.node, "name", "<lambda>")


class Class(Obj):
    """A class of the program."""

    __slots__ = ("annotations", "bases", "closure", "kind", "methods", "node", "sets")

    def __init__(self, node: ast.ClassDef, closure: Frame) -> None:
        self.node = node
        self.closure = closure
        self.bases: tuple[Obj, ...] = ()
        self.methods: dict[str, Function] = {}
        self.annotations: dict[str, ast.expr] = {}
        self.kind = ""
        """'fabric', 'module', 'optimizer', 'scheduler', 'strategy', 'loader' for a subclass of one; else ''."""
        self.sets: frozenset[str] = frozenset()

    def method(self, name: str) -> Function | None:
        """The method of that name, from this class or from its bases in the program."""
        found = self.methods.get(name)
        if found is not None:
            return found
        parents = self._parents()
        if len(parents) < 2:
            return parents[0].method(name) if parents else None
        return next((cls.methods[name] for cls in self.lineage() if name in cls.methods), None)

    def method_after(self, owner: Class, name: str) -> Function | None:
        """The method that `super()` gives in a method of `owner`, when the object is one of this class."""
        order = self.lineage()
        start = order.index(owner) + 1 if owner in order else 0
        rest = order[start:] if start else owner.lineage()[1:]
        return next((cls.methods[name] for cls in rest if name in cls.methods), None)

    def lineage(self) -> list[Class]:
        """This class and those of the program that it inherits from, in the order in which Python asks them."""
        parents = self._parents()
        found = [self]
        left = [*(parent.lineage() for parent in parents), parents]
        while left := [order for order in left if order]:
            behind = {cls for order in left for cls in order[1:]}
            firsts = [order[0] for order in left]
            chosen = next((cls for cls in firsts if cls not in behind), firsts[0])  # without one, Python refuses it
            found.append(chosen)
            left = [[cls for cls in order if cls is not chosen] for order in left]
        return found

    def _parents(self) -> list[Class]:
        return [base for base in self.bases if isinstance(base, Class) and base is not self]


class Instance(Obj):
    """An object of a class of the program."""

    __slots__ = ("cls", "deps", "frame", "meta", "node", "root")

    def __init__(self, cls: Class, node: ast.AST | None, frame: Frame | None) -> None:
        self.cls = cls
        self.node = node
        self.frame = frame
        self.deps: Value = EMPTY
        self.meta = False
        self.root = False
        """Stands for any instance: its class is not instantiated where the analysis can see it."""


class Bound(Obj):
    """A method taken from an object but not (yet) called."""

    __slots__ = ("function", "name", "receiver")

    def __init__(self, receiver: Obj, name: str, function: Function | None) -> None:
        self.receiver = receiver
        self.name = name
        self.function = function


class Partial(Obj):
    """`functools.partial(function, ...)`."""

    __slots__ = ("args", "function", "keywords")

    def __init__(self, function: Value, args: list[Value], keywords: dict[str, Value]) -> None:
        self.function = function
        self.args = args
        self.keywords = keywords


class FabricObj(Obj):
    """A Fabric: made here, given as an argument, or a subclass's `self`."""

    __slots__ = ("cls", "frame", "made", "node", "strategies", "strategy_value")

    def __init__(self, node: ast.AST | None, frame: Frame | None) -> None:
        self.node = node
        self.frame = frame
        self.made = False
        """True when its construction is in the program, so its strategy can be read there."""
        self.cls: Class | None = None
        self.strategies: frozenset[str] = frozenset({"unknown"})
        self.strategy_value: Value = EMPTY


class StrategyView(Obj):
    """`fabric.strategy` (`control` False) or its `_backward_sync_control` (`control` True)."""

    __slots__ = ("control", "fabric")

    def __init__(self, fabric: FabricObj, control: bool) -> None:
        self.fabric = fabric
        self.control = control


class Wrapped(Obj):
    """What Fabric returned for an object that was set up."""

    __slots__ = ("fabric", "inner", "kind", "node", "partners")

    def __init__(self, kind: str, inner: Obj, node: ast.Call, fabric: FabricObj) -> None:
        self.kind = kind
        """'module', 'optimizer', 'loader' or 'scheduler'."""
        self.inner = inner
        self.node = node
        """The set-up call."""
        self.fabric = fabric
        self.partners: Value = EMPTY
        """For an optimizer: the wrapped modules of the same joint call."""


class Inside(Obj):
    """`wrapped.module`, `wrapped._forward_module` and the like: what is inside a wrapped module."""

    __slots__ = ("attribute", "wrapped")

    def __init__(self, wrapped: Wrapped, attribute: str) -> None:
        self.wrapped = wrapped
        self.attribute = attribute


def raw(obj: Obj) -> Obj:
    """The object that was first set up, for a wrapped one or for what is inside one; else the object itself."""
    while True:
        if isinstance(obj, Wrapped):
            obj = obj.inner
        elif isinstance(obj, Inside):
            obj = obj.wrapped
        else:
            return obj


def raws(value: Value) -> Value:
    """`raw` of every object of a value."""
    return frozenset(raw(obj) for obj in value)
