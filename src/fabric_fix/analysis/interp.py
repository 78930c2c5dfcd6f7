"""The abstract interpreter: its memory, and how one module of a program is walked.

Statements are in `statements`, expressions in `expressions`, calls in `calls` and `library`, Fabric's own methods in
`fabric_calls`. All of them work on the `Interpreter` made here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fabric_fix.analysis.annotations import kind_of
from fabric_fix.analysis.doubles import is_double
from fabric_fix.analysis.events import Argument, Backward, Call, Iteration, NoSync, Setup, Step, StrategyCall, Use
from fabric_fix.analysis.frames import Frame, State, Table
from fabric_fix.analysis.objects import (
    EMPTY,
    UNBOUND,
    UNKNOWN,
    Class,
    Const,
    External,
    FabricObj,
    Function,
    Instance,
    Lazy,
    ModuleObj,
    Obj,
    Thing,
    Value,
    Wrapped,
    raw,
    restart_numbers,
)
from fabric_fix.deadline import NEVER

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fabric_fix.analysis.assumptions import Atoms
    from fabric_fix.analysis.modules import Module, Modules
    from fabric_fix.analysis.questions import Question

MAX_DEPTH = 14
"""Calls followed inside one another; deeper ones are unknown."""
MAX_ASIDE = 4
"""Calls followed inside one another in functions whose source never leads to Fabric."""
MAX_VALUES = 12
"""Objects kept apart in one value; more become `UNKNOWN` beside the Fabrics and wrapped objects among them."""
FABRIC_PACKAGES = ("lightning", "lightning_fabric")
MAX_LOOPS = 3
"""Looks at a loop's body before its state is taken as settled."""


_Fields = tuple["dict[str, Value]", "dict[str, Value]", "list[str]"]
"""The table of an object, its fields by what they are called, and which of these names are spelled like a Fabric's."""


class GaveUpError(Exception):
    """The program needs more steps than the budget allows."""


class Known(NamedTuple):
    """What a property of an object gave."""

    fields: Table
    """The fields that have to be as they were for it to give the same."""
    gives_field: bool
    assumed: Atoms
    value: Value


class Interpreter:
    """Walks one module and everything it calls, and keeps the events that rules ask about."""

    def __init__(
        self,
        source: Module,
        modules: Modules,
        strategies: frozenset[str],
        budget: int,
        deep: bool,
        hinted: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.source = source
        self.walked = source
        """The module whose functions are walked for their own sake: this one, or for a while one that uses it."""
        self.modules = modules
        self.deep = deep
        """Every import of the project is looked into, not only what can matter to Fabric."""
        self.is_plain = not deep and not modules.trains(source)
        """Nothing trains, so that only functions that lead to Fabric are looked into at first sight."""
        self.is_narrow = False
        """Something was not looked into that `deep` would look into."""
        self.strategies = strategies
        """Families that the user named: every Fabric can have them beside its own. Without such, those of hints."""
        self.hinted = hinted
        """The families of hints, for a Fabric with "unknown" among its own and for one with "auto"; None without."""
        self.budget = budget
        self.deadline = NEVER
        self._next_look = budget - 256
        restart_numbers()
        self.state = State({})
        tree = source.tree
        self.module = Frame(tree, source.scope(tree), source=source)
        self.loaded: dict[str, Frame] = {source.path: self.module} if source.path else {}
        """The frames of the modules that are walked, by their files."""
        self.imported_modules: set[Frame] = set()
        """Those that are walked because another one imports them, so that they are not `__main__`."""
        self.resolving: set[Lazy] = set()
        self.frame = self.module
        self.stmt: ast.stmt = tree.body[0] if tree.body else ast.Pass()
        self.no_grad = 0
        self.meta = 0
        self.mixed = False
        """The method being called is of a Fabric or, as far as can be seen, of something else."""
        self.expecting = 0
        """Inside a block that expects an error, or a test that is expected to fail."""
        self.repeating = 0
        """Inside a comprehension: what is made here stands for several objects."""
        self.sync: list[Value] = []
        self.events: dict[tuple[str, ast.AST, Frame], Call] = {}
        self.iterations: dict[tuple[ast.AST, Frame], Iteration] = {}
        self.uses: dict[tuple[Obj, str, ast.AST, Frame], Use] = {}
        self.bindings: dict[Obj, dict[tuple[Frame, str], ast.stmt]] = {}
        """Where an object is given a name: the frame, the place as written, and the statement."""
        self.reached: set[ast.AST] = set()
        self.instantiated: set[Class] = set()
        self.classes: list[Class] = []
        self.functions: list[Function] = []
        self.stars: dict[Frame, list[Lazy]] = {}
        """For each module the modules that it imports everything from."""
        self.made_fabrics: list[FabricObj] = []
        self.guards: dict[Obj, Atoms] = {}
        """What has to hold for an object to exist, where that is known."""
        self.narrowed: dict[Value, Value] = {}
        """For what a branch left of a value: that value."""
        self.tested: dict[ast.expr, Value] = {}
        """What a test evaluated to when it was last looked at."""
        self.asked: dict[ast.expr, tuple[Atoms, Question | None]] = {}
        """What a test asked when it was last looked at, and what held then."""
        self.families: dict[Obj, frozenset[str]] = {}
        """The families that a value of `strategy=` means."""
        self.accelerators: dict[ast.expr, frozenset[str]] = {}
        """What `accelerator=` can be, where all that it can be is known."""
        self.properties: dict[tuple[Obj, Function], Known] = {}
        """What properties of objects gave when they were last asked for."""
        self.other_calls: set[ast.Call] = set()
        """Calls of something that an object holds, and that is no method of a Fabric."""
        self.left_open: Value = EMPTY
        """What methods gave that subclasses are to define."""
        self.breaks: list[list[State]] = []
        self.continues: list[list[State]] = []
        self._made: dict[Hashable, Obj] = {}
        self._constants: dict[tuple[type, object], Value] = {}
        self._externals: dict[str, Value] = {}
        self._frames: dict[Hashable, Frame] = {}
        self._known_fields: dict[str, _Fields] = {}

    # --- making objects -------------------------------------------------------------------------------------------

    def const(self, value: object) -> Value:
        """The value of a literal."""
        key = (type(value), value)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = frozenset((Const(value),))
        return found

    def external(self, path: str) -> Value:
        """The value of something imported."""
        found = self._externals.get(path)
        if found is None:
            found = self._externals[path] = frozenset((External(path),))
        return found

    def thing(self, kind: str, node: ast.AST | None, label: str = "", base: Obj | None = None) -> Thing:
        """The object of that kind made at this place in this context."""
        key = (kind, node, self.frame, base, label)
        found = self._made.get(key)
        if found is None:
            made = Thing(kind, node, self.frame, label)
            made.base = base
            made.meta = self.meta > 0 and kind == "call"
            self._made[key] = made
            return made
        assert isinstance(found, Thing)
        return found

    def part(self, base: Obj, kind: str, label: str, node: ast.AST | None) -> Thing:
        """An attribute, item or element of an object, one and the same wherever it is read."""
        key = ("part", base, kind, label)
        found = self._made.get(key)
        if found is None:
            made = Thing(kind, node, None, label)
            made.base = base
            if kind in ("attr", "item"):
                made.deps = self.roots_of(base)
            made.sources = made.deps
            self._made[key] = made
            return made
        assert isinstance(found, Thing)
        return found

    def remember(self, key: Hashable, make: Obj) -> Obj:
        """The object kept under a key, `make` when there is none yet."""
        return self._made.setdefault(key, make)

    def remembered(self, key: Hashable) -> Obj | None:
        """The object kept under a key, or None."""
        return self._made.get(key)

    def fabric_for(self, obj: Obj, node: ast.AST | None, name: str = "fabric") -> FabricObj:
        """The Fabric that an object of unknown origin is known to be.

        The strategies that the user named are those of the program's Fabric, not of one that is made from it or that
        has a name of its own (`fabric_player`, on one device).
        """
        key = ("fabric", obj)
        found = self._made.get(key)
        if found is None:
            found = FabricObj(node, self.frame)
            if not (isinstance(obj, Thing) and obj.sees_fabric) and not _is_secondary(name):
                found.strategies = found.strategies | self.named_beside(found.strategies)
            self._made[key] = found
        assert isinstance(found, FabricObj)
        return found

    def named_beside(self, families: frozenset[str]) -> frozenset[str]:
        """The families that a Fabric with those that its source shows can have besides: the user's, or of hints."""
        if self.hinted is None:
            return self.strategies
        return frozenset().union(*(self.hinted.get(family, frozenset()) for family in families))

    # --- values -----------------------------------------------------------------------------------------------------

    def limit(self, value: Value) -> Value:
        """A value of bearable size."""
        if len(value) <= MAX_VALUES:
            return value
        kept = frozenset(obj for obj in value if isinstance(obj, (FabricObj, Wrapped, Const, Function, Class)))
        return kept | frozenset((UNKNOWN,)) if len(kept) <= 4 * MAX_VALUES else frozenset((UNKNOWN,))

    def roots_of(self, obj: Obj) -> Value:
        """The models that an object carries the gradient of; the object itself where it may be a model."""
        if isinstance(obj, Thing):
            if obj.deps:
                return obj.deps
            return frozenset((obj,)) if obj.kind in ("call", "param", "attr") else EMPTY
        if isinstance(obj, (Wrapped, Instance)):
            return frozenset((obj,))
        return EMPTY

    def field(self, obj: Obj, name: str) -> Value | None:
        """What is stored in a field of an object, or None."""
        return self.state.get(obj, name)

    def set_field(self, obj: Obj, name: str, value: Value, weak: bool = False) -> None:
        """Store into a field; `weak` when the object stands for several."""
        if weak:
            value = self.limit((self.state.get(obj, name) or EMPTY) | value)
        self.state.put(obj, name, value)

    def fact(self, obj: Obj | None, name: str) -> Value:
        """A fact of the state (`#models` of a Fabric, …)."""
        return self.state.get(obj, name) or EMPTY

    def set_fact(self, obj: Obj | None, name: str, value: Value) -> None:
        """Set a fact of the state."""
        self.state.put(obj, name, value)

    # --- names ------------------------------------------------------------------------------------------------------

    def home(self, name: str) -> Frame | None:
        """The frame that a name is looked up in, from the current one outwards; None for a builtin or unknown one."""
        frame: Frame | None = self.frame
        top = self.frame.module
        if name in self.frame.scope.outer:
            if self.frame.scope.outer[name] == "global":
                return top
            frame = self.frame.closure
        while frame is not None:
            if name in frame.scope.locals:
                return frame
            frame = frame.closure
        return top if self.state.get(top, name) is not None else None

    def load(self, name: str, node: ast.AST) -> Value:
        """What a name stands for here."""
        home = self.frame if name in self.frame.scope.locals else self.home(name)
        if home is None:
            return self._builtin(name)
        state = self.state
        table = state.tables.get(home) or state.base.get(home)
        value = None if table is None else table.get(name)
        if value is None:
            return frozenset((self.part(_Slot.of(self, home), "name", name, node),))
        if UNBOUND in value:
            value = value - {UNBOUND}
        if any(map(_is_lazy, value)):
            value = self._look_up(home, name, value)
        return self.promote(value, name, node) if name in self.frame.spellings else value

    def _builtin(self, name: str) -> Value:
        stars = self.stars.get(self.frame.module, ())
        if stars:
            from fabric_fix.analysis import imports
        for package in stars:
            if name == "Fabric" and not package.level and package.path.startswith(FABRIC_PACKAGES):
                return self.external(f"{package.path}.Fabric")
            found = imports.star(self, package, name)
            if found is not None:
                return found
        return self.external(f"builtins.{name}")

    def _look_up(self, home: Frame, name: str, value: Value) -> Value:
        """Replace an import of the project by what it gives, and keep it, if that can matter."""
        from fabric_fix.analysis import imports

        found: Value = EMPTY
        for obj in value:
            inside = imports.opened(self, obj) if isinstance(obj, Lazy) else None
            found = found | (frozenset((obj,)) if inside is None else inside)
        if found != value:
            self.state.put(home, name, found)
            self._note_fabric(home, name, found)
        return found

    def _note_fabric(self, home: Frame, name: str, value: Value) -> None:
        """Keep under which name a Fabric is imported, as an assignment does."""
        for obj in value if len(value) == 1 else ():
            statement = _import_of(home.node, name) if isinstance(obj, FabricObj) else None
            if statement is not None:
                self.bindings.setdefault(obj, {})[(home, name)] = statement

    def promote(self, value: Value, name: str, node: ast.AST) -> Value:
        """Objects of unknown origin behind a name that is known to be a Fabric's become Fabrics."""
        found: list[Obj] = []
        for obj in value:
            unknown = isinstance(obj, Thing) and obj.kind in ("call", "param", "attr", "name", "item")
            found.append(self.fabric_for(obj, node, name) if unknown and not is_double(obj) else obj)
        return frozenset(found)

    def store(self, name: str, value: Value) -> None:
        """Bind a name in the current frame (or where it is declared to live)."""
        home = self.frame
        if name in self.frame.scope.outer:
            home = self.home(name) or self.frame
        self.state.put(home, name, self.limit(value))

    def places(self) -> dict[str, Value]:
        """The names that can be used here, and one level of their attributes, with their values."""
        found: dict[str, Value] = {}
        frame: Frame | None = self.frame
        while frame is not None:
            found = {**found, **self.state.table(frame), **found}  # the innermost first, in order and in value
            frame = frame.closure
        fields = [self._fields(obj, name) for obj, name in self._sorted_out(found).items()]
        spelled = [*(self.spellings & found.keys())]
        for _, values, names in fields:
            found.update(values)
            spelled += names
        for name in spelled:
            found[name] = frozenset(self._made.get(("fabric", obj), obj) for obj in found[name])
        return found

    def _sorted_out(self, found: dict[str, Value]) -> dict[Obj, str]:
        """Drop the names of functions and imports, of which there are many and no rule asks; what has fields."""
        tables, dropped = self.state.tables, []
        owners: dict[Obj, str] = {}
        for name, value in found.items():  # the names of the innermost scope come first
            if len(value) == 1:
                (obj,) = value
                if obj.__class__ in _NO_MATTER:
                    dropped.append(name)
                if obj in tables or obj in self.state.base:
                    owners.setdefault(obj, name)
        for name in dropped:
            del found[name]
        return owners

    def _fields(self, obj: Obj, owner: str) -> _Fields:
        """The fields of an object by what they are called, and which of these names are known to be a Fabric's."""
        table = self.state.table(obj)
        known = self._known_fields.get(owner)
        if known is not None and known[0] is table:
            return known
        values = {f"{owner}.{name}": value for name, value in table.items() if not name.startswith(("#", "*", "'"))}
        found = table, values, [name for name in values if name.rpartition(".")[2] in self.spellings]
        if self.state.is_shared(obj):  # a table that nobody writes to any more
            self._known_fields[owner] = found
        return found

    # --- events -----------------------------------------------------------------------------------------------------

    def use(self, obj: Obj, kind: str, node: ast.AST, detail: str = "") -> None:
        """Record that something was done with an object; nothing is asked of literals."""
        if obj.__class__ is Const:
            return
        key = (obj, kind, node, self.frame)
        found = self.uses.get(key)
        if found is None:
            found = self.uses[key] = Use(obj, kind, node, self.stmt, self.frame, detail)
        table = self.state.tables.get(obj)
        after = None if table is None else table.get("#setup")
        if after:
            found.after = found.after | after
        if not self.no_grad:
            found.grad = True

    def step(self) -> None:
        """Spend one unit of the budget."""
        self.budget -= 1
        if self.budget < 0:
            raise GaveUpError
        if self.budget < self._next_look:  # seldom enough to cost nothing
            self._next_look = self.budget - 256
            self.deadline.check(self.stmt.lineno)

    def is_relevant(self, function: Function) -> bool:
        """Whether a function's source can lead to Fabric."""
        return function.closure.source.relevance.of(function.node)

    @property
    def spellings(self) -> frozenset[str]:
        """Names that the current module is known to have for a Fabric."""
        return self.frame.spellings

    def annotated(self, node: ast.expr | None, frame: Frame) -> str:
        """'fabric' when an annotation says that a value is a Fabric, else ''."""
        if node is None:
            return ""
        return kind_of(self, node, frame)

    def frame_of_property(self, function: Function, receiver: Obj | None) -> Frame:
        """The frame of a property, one for each object, wherever it is asked for: most give the same each time."""
        key = (function, receiver, None)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = self.frame_for(function, None)
        found.caller, found.call_stmt, found.depth = self.frame, self.stmt, self.frame.depth + 1
        return found

    def frame_for(self, function: Function, call: ast.AST | None) -> Frame:
        """The frame of a function called here; the same one each time this call is interpreted in this context."""
        key = (function, call, self.frame)
        found = self._frames.get(key)
        if found is None:
            found = Frame(
                function.node,
                function.closure.source.scope(function.node),
                function=function,
                call=call,
                caller=self.frame,
                call_stmt=self.stmt,
            )
            self._frames[key] = found
        return found

    def frame_of_class(self, node: ast.ClassDef) -> Frame:
        """The frame of the body of a class that is made here."""
        key = (node, self.frame)
        found = self._frames.get(key)
        if found is None:
            source = self.frame.source
            found = Frame(node, source.scope(node), caller=self.frame, call_stmt=self.stmt, source=source)
            found.closure, found.module = self.frame, self.frame.module
            self._frames[key] = found
        return found

    # --- what rules read ----------------------------------------------------------------------------------------------

    def wrapped(self) -> Iterable[Wrapped]:
        """Every object that a set-up returned."""
        return [obj for obj in self._made.values() if isinstance(obj, Wrapped)]

    def created(self) -> Iterable[tuple[ast.AST | None, Obj]]:
        """Every call result and instance that was made, with its place."""
        for obj in self._made.values():
            if (isinstance(obj, Thing) and obj.kind == "call") or isinstance(obj, Instance):
                yield obj.node, obj


def _is_secondary(name: str) -> bool:
    """Whether a name says that its Fabric is one beside the program's own."""
    words = name.lower().strip("_").split("_")
    return any(word in ("player", "single", "cpu", "eval", "inference", "local") for word in words)


_NO_MATTER = frozenset({Function, External, Lazy, ModuleObj})
"""What names stand for that no rule asks for."""


def _import_of(node: ast.AST, name: str) -> ast.stmt | None:
    """The statement of a module or function that imports a name."""
    imports = (part for part in ast.walk(node) if isinstance(part, (ast.Import, ast.ImportFrom)))
    return next((part for part in imports if any((one.asname or one.name) == name for one in part.names)), None)


def _is_lazy(obj: Obj) -> bool:
    return obj.__class__ is Lazy


class _Slot(Obj):
    """A name that is used but never bound where the analysis looked."""

    __slots__ = ()

    @staticmethod
    def of(interpreter: Interpreter, frame: Frame) -> Obj:
        """The slot of a frame."""
        return interpreter.remember(("slot", frame), _Slot())


__all__ = [
    "MAX_DEPTH",
    "MAX_LOOPS",
    "Argument",
    "Backward",
    "Call",
    "GaveUpError",
    "Interpreter",
    "Iteration",
    "NoSync",
    "Setup",
    "Step",
    "StrategyCall",
    "raw",
]
