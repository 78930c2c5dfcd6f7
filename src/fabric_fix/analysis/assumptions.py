"""What a branch takes for granted: tests of objects of unknown origin, and the values that exist only under them.

An *atom* says how a test of one object came out (`args.deepspeed` is true, `strategy` is not "xla"). The atoms that
hold at a program point are in its state; a join keeps those that hold on both sides. An object that was made where
some atoms hold, or that is one of the outcomes of a test, is *guarded* by them: where an atom to the contrary holds,
it cannot be what a name stands for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from fabric_fix.analysis import known
from fabric_fix.analysis.objects import Const, FabricObj, Function, Instance, Marker, Obj, Thing, Value
from fabric_fix.strategies import NAMES

if TYPE_CHECKING:
    from fabric_fix.analysis.interp import Interpreter


class Test:
    """A test of an object: `equal` to one of some constants, `prefix`, `suffix`, `contains`, `true`, `text` (any
    string), or an object of one of some strategy families (`family`). Equal ones are one object."""

    __slots__ = ("kind", "names")
    kind: str
    names: frozenset[object]
    _made: ClassVar[dict[tuple[str, frozenset[tuple[type, object]]], Test]] = {}

    def __new__(cls, kind: str, names: frozenset[object] = frozenset()) -> Test:
        """The test of that kind for these names."""
        key = (kind, frozenset([(type(name), name) for name in names]))
        found = cls._made.get(key)
        if found is None:
            found = cls._made[key] = object.__new__(cls)
            found.kind, found.names = kind, names
        return found

    def of_constant(self, value: object) -> bool | None:
        """How the test of a constant comes out; None where that cannot be said."""
        if self.kind == "equal":
            return any(type(name) is type(value) and name == value for name in self.names)
        if self.kind == "true":
            return bool(value)
        if self.kind == "text":
            return isinstance(value, str)
        if self.kind == "family":
            return False
        if not isinstance(value, str):
            return None
        texts = [name for name in self.names if isinstance(name, str)]
        if self.kind == "prefix":
            return value.startswith(tuple(texts))
        if self.kind == "suffix":
            return value.endswith(tuple(texts))
        return any(text in value for text in texts)

    def of(self, obj: Obj) -> bool | None:
        """How the test of an object comes out; None where that cannot be said."""
        if isinstance(obj, Const):
            return self.of_constant(obj.value)
        family = known.strategy_class(obj.callee) if isinstance(obj, Thing) else None
        if family is not None:
            return matches(family, self.families()) if self.kind == "family" else self.kind == "true"
        if self.kind == "true" and isinstance(obj, (FabricObj, Function)):
            return True
        if self.kind in ("equal", "text") and isinstance(obj, (FabricObj, Instance, Function)):
            return False
        return None

    def families(self) -> frozenset[str]:
        """For a `family` test: the families it asks for."""
        return frozenset(name for name in self.names if isinstance(name, str))

    def strategies(self) -> list[str]:
        """Strategies of Lightning that pass the test; as they are written where it names them."""
        texts = [name for name in self.names if isinstance(name, str)]
        if self.kind == "equal":
            return texts
        return [name for name in NAMES if self.of_constant(name)] if self.kind not in ("true", "text") else []


Atom: TypeAlias = "tuple[Obj, Test, bool]"
Atoms: TypeAlias = "frozenset[Atom]"

NOTHING: Atoms = frozenset()
NEVER: Atom = (Marker("never"), Test("true"), True)
"""Holds where control cannot come to, as far as can be seen."""


def matches(family: str, families: frozenset[str]) -> bool:
    """Whether a family is among those that a test names; a stage of DeepSpeed is DeepSpeed."""
    return (
        family in families
        or (known.is_deepspeed(family) and "deepspeed" in families)
        or (family == "fsdp_original_params" and "fsdp" in families)
    )


def agrees(guard: Atoms, assumed: Atoms) -> bool:
    """Whether a guard can hold beside what is taken for granted, which itself is free of contradictions."""
    tests: dict[Obj, list[tuple[Test, bool]]] = {}
    for origin, test, outcome in guard:
        tests.setdefault(origin, []).append((test, outcome))
    if NEVER[0] in tests:
        return False
    for origin, test, outcome in assumed:
        if origin in tests:
            tests[origin].append((test, outcome))
    return all(len(found) == 1 or _consistent(found) for found in tests.values())


def _consistent(tests: list[tuple[Test, bool]]) -> bool:
    named = [test.names for test, outcome in tests if test.kind == "equal" and outcome]
    if named:
        return any(all(test.of_constant(name) is not (not outcome) for test, outcome in tests) for name in named[0])
    return not any((test, not outcome) in tests for test, outcome in tests)


def implies(guard: Atoms, atom: Atom) -> bool:
    """Whether an atom holds wherever a guard does."""
    if atom in guard:
        return True
    origin, test, outcome = atom
    for other, given, positive in guard:
        if other is origin and given.kind == "equal" and positive:
            return all(test.of_constant(name) is outcome for name in given.names)
    return False


def common(guards: list[Atoms]) -> Atoms:
    """What holds whichever of some guards does."""
    if len(guards) == 1:
        return guards[0]
    if not all(guards):
        return NOTHING
    candidates: set[Atom] = set().union(*guards)
    named: dict[Obj, frozenset[object]] = {}
    for origin, test, outcome in candidates:
        if test.kind == "equal" and outcome:
            named[origin] = named.get(origin, frozenset()) | test.names
    candidates.update((origin, Test("equal", names), True) for origin, names in named.items())
    return frozenset(atom for atom in candidates if all(implies(guard, atom) for guard in guards))


# --- guarded objects --------------------------------------------------------------------------------------------------


def guard_of(it: Interpreter, obj: Obj) -> Atoms:
    """What has to hold for an object to exist."""
    return it.guards.get(obj, NOTHING)


def possible(it: Interpreter, obj: Obj, more: Atoms = NOTHING) -> bool:
    """Whether an object can be what is meant here."""
    guard = guard_of(it, obj) | more
    return not guard or agrees(guard, it.state.assumed)


def guarded(it: Interpreter, key: tuple[object, ...], value: object, guard: Atoms) -> Value:
    """A constant of its own that exists only under a guard."""
    made = it.remember(("guarded", *key, type(value), value), Const(value))
    it.guards[made] = it.guards[made] & guard if made in it.guards else guard
    return frozenset((made,))


def known_as(it: Interpreter, origin: Obj, value: object) -> Value:
    """The constant that an object of unknown origin was found, or can be, equal to."""
    return guarded(it, ("known", origin), value, frozenset(((origin, Test("equal", frozenset((value,))), True),)))


def known_values(it: Interpreter, origin: Obj, value: Value) -> Value:
    """`known_as` for every string and flag, and for None, among the alternatives of a value."""
    found: set[Obj] = set()
    for obj in value:
        tested = isinstance(obj, Const) and (obj.value is None or isinstance(obj.value, (str, bool)))
        found |= known_as(it, origin, obj.value) if tested and isinstance(obj, Const) else {obj}
    return frozenset(found)


_NAMES = frozenset(NAMES)
_LONGEST = max(map(len, NAMES))


def names_strategy(value: object) -> bool:
    """Whether a constant is the name of a strategy."""
    return isinstance(value, str) and len(value) <= _LONGEST and value.lower() in _NAMES


def means_strategy(obj: Obj) -> bool:
    """Whether an object is the name of a strategy, or an instance of a strategy class."""
    if isinstance(obj, Const):
        return names_strategy(obj.value)
    return isinstance(obj, Thing) and known.strategy_class(obj.callee) is not None


def origin_of_value(it: Interpreter, value: Value) -> Obj:
    """An object that stands for whatever of a value's alternatives is meant, before any of them was ruled out."""
    value = it.narrowed.get(value, value)
    return it.remember(("value", value), Marker("value"))


def is_open(obj: Obj) -> bool:
    """Whether an object is of unknown origin, so that a test of it says something new."""
    return (
        isinstance(obj, Thing)
        and obj.kind in ("attr", "param", "name", "item", "iter", "call")
        and not (known.strategy_class(obj.callee))
    )
