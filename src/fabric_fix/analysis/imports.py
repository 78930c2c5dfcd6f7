"""Imports of the project: what a name that comes from another of its files stands for.

A module is parsed and its top level walked when something of it is needed, in a state of its own: what a module does
when it is imported does not depend on who imports it. What cannot be found stays an `External`, known by its path.
"""

from __future__ import annotations

from collections.abc import Iterable

from fabric_fix.analysis.events import Argument
from fabric_fix.analysis.frames import Frame, State, differing
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.modules import Module
from fabric_fix.analysis.objects import (
    EMPTY,
    Collection,
    External,
    FabricObj,
    Instance,
    Lazy,
    ModuleObj,
    Obj,
    Sequence,
    StrategyView,
    Thing,
    Value,
    Wrapped,
)

MAX_MODULES = 300
"""Modules of the project that are walked for one question."""


def imported(it: Interpreter, module: str, level: int, name: str) -> Value:
    """What an import binds: something of the project, looked up when it is used, or something external."""
    importer = it.frame.module
    if it.modules.resolve(importer.source, module, level) is None:
        joint = "." if module and name else ""
        return it.external("." * level + module + joint + name)
    key = ("import", importer, module, level, name)
    found = it.remembered(key)
    return frozenset((found if found is not None else it.remember(key, Lazy(importer, module, level, name)),))


def opened(it: Interpreter, obj: Lazy, forced: bool = False) -> Value | None:
    """What an import gives; None for what is not looked into, as it cannot matter, or not found."""
    place = it.modules.resolve(obj.importer.source, obj.module, obj.level)
    if place is None:
        return None
    if not obj.name:
        return _module(it, place)
    found: Value | None = None
    file = it.modules.file_of(place)
    if file is not None and obj not in it.resolving and (forced or _is_open(it, file)):
        it.resolving.add(obj)  # `from . import part` in the package itself
        found = _member_of(it, file, obj.name, forced)
        it.resolving.discard(obj)
    below = it.modules.below(place, obj.name) if found is None else None
    return found if below is None else _module(it, below)


def star(it: Interpreter, package: Lazy, name: str) -> Value | None:
    """A name of a module that everything is imported from; None when that has none such."""
    place = it.modules.resolve(package.importer.source, package.module, package.level)
    file = None if place is None else it.modules.file_of(place)
    if file is None or name.startswith("_") or package in it.resolving or not _is_open(it, file):
        return None
    it.resolving.add(package)
    found = _member_of(it, file, name, forced=False)
    it.resolving.discard(package)
    return found


def member(it: Interpreter, obj: ModuleObj, name: str) -> Value:
    """An attribute of a module or package of the project."""
    file = it.modules.file_of(obj.path)
    if file is not None and _is_open(it, file):
        found = _member_of(it, file, name, forced=False)
        if found is not None:
            return found
    below = it.modules.below(obj.path, name)
    if below is not None:
        return _module(it, below)
    key = ("member", obj, name)
    made = it.remembered(key) or it.remember(key, Lazy(it.frame.module, it.modules.dotted(obj.path), 0, name))
    return frozenset((made,))


def open_call(it: Interpreter, obj: Lazy, args: list[Argument]) -> Value:
    """What to call in the place of an import that was not looked into; nothing when that is all there is to know."""
    if not matters(it, (part for argument in args for part in argument.value)):
        return EMPTY
    found = opened(it, obj, forced=True)
    return EMPTY if found is None or obj in found else found


def rebind(it: Interpreter, obj: ModuleObj, name: str, value: Value) -> None:
    """Give a name of another module another value, as `module.name = …` does."""
    file = it.modules.file_of(obj.path)
    frame = None if file is None else load_module(it, file)
    if frame is not None:
        it.state.put(frame, name, it.limit(value))


def load_module(it: Interpreter, file: str) -> Frame | None:
    """The frame of a module of the project; its top level is walked when it is first asked for."""
    frame = it.loaded.get(file)
    if frame is not None:
        return frame
    source = it.modules.module(file)
    if source is None or len(it.loaded) >= MAX_MODULES:
        return None
    frame = it.loaded[file] = new_frame(source)
    it.imported_modules.add(frame)
    kept = (it.state, it.frame, it.stmt, it.breaks, it.continues, it.sync)
    counters = (it.no_grad, it.meta, it.repeating, it.mixed, it.expecting)
    before = dict(it.state.tables)
    it.state, it.frame = State(it.state.base), frame
    it.state.take(before)  # it may import a module that is still being walked
    it.breaks, it.continues, it.sync = [], [], []
    it.no_grad = it.meta = it.repeating = it.expecting = 0
    it.mixed = False
    it.state.replace(frame, {})
    statements.run(it, source.tree.body)
    after = it.state.tables
    changed = (owner for owner in differing(after, before) if before.get(owner) is not after[owner])
    it.state.base.update((owner, after[owner]) for owner in changed)
    it.state, it.frame, it.stmt, it.breaks, it.continues, it.sync = kept
    it.no_grad, it.meta, it.repeating, it.mixed, it.expecting = counters
    return frame


def new_frame(source: Module) -> Frame:
    """A frame for the top level of a module."""
    return Frame(source.tree, source.scope(source.tree), source=source)


def _module(it: Interpreter, place: str) -> Value:
    return frozenset((it.remember(("module", place), ModuleObj(place)),))


def _is_open(it: Interpreter, file: str) -> bool:
    """Whether a file is looked into whatever is done with its names."""
    if it.deep or file in it.loaded or it.modules.can_matter(file):
        return True
    it.is_narrow = True
    return False


def _member_of(it: Interpreter, file: str, name: str, forced: bool) -> Value | None:
    frame = load_module(it, file)
    if frame is None:
        return None
    if not (name in frame.scope.locals or it.state.get(frame, name) is not None or frame in it.stars):
        return None
    saved, it.frame = it.frame, frame
    found = it.load(name, frame.node)
    it.frame = saved
    if any(isinstance(obj, External) and obj.path == f"builtins.{name}" for obj in found):
        return None
    only = next(iter(found)) if len(found) == 1 else None
    if forced and isinstance(only, Lazy) and only not in it.resolving:
        return opened(it, only, forced) or found
    return found or None


def matters(it: Interpreter, objs: Iterable[Obj]) -> bool:
    """Whether a Fabric, or what one has set up, is among some objects, or held by one."""
    return any(_matters(it, obj) for obj in objs)


def _matters(it: Interpreter, obj: Obj, depth: int = 2) -> bool:
    """Whether an object is a Fabric, was set up by one, or holds such a thing."""
    if isinstance(obj, (FabricObj, Wrapped, StrategyView)):
        return True
    if isinstance(obj, (Thing, Instance)):
        return bool(it.state.get(obj, "#setup"))
    if depth and isinstance(obj, Sequence):
        return any(_matters(it, part, depth - 1) for item in obj.items for part in item)
    if depth and isinstance(obj, Collection):
        return any(_matters(it, part, depth - 1) for item in it.state.table(obj).values() for part in item)
    return False


# last, because it imports this module itself
from fabric_fix.analysis import statements  # noqa: E402

__all__ = ["imported", "load_module", "matters", "member", "new_frame", "open_call", "opened", "rebind", "star"]
