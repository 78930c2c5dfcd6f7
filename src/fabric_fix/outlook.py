"""A program before and after some edits, compared: what can tell the difference is listed, once for all who ask.

FABRIC facts behind the lists: a wrapped module forwards attributes, `parameters()`, `state_dict()`, `train()`, `eval()`
to the raw one; `isinstance`, `type`, storing the whole object and methods that run submodules tell them apart
(`lightning/fabric/wrappers.py`, `_FabricModule`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Backward, Call, Use
from fabric_fix.analysis.names import last_name
from fabric_fix.analysis.objects import Inside, Instance, Obj, Wrapped, raw
from fabric_fix.analysis.program import Program
from fabric_fix.records import Record
from fabric_fix.telling import (
    is_module,
    may_keep,
    passes_isinstance,
    refuses_assignment,
    runs_no_submodule,
    used_in_init,
)

Spot = tuple[int, int, int, int, bool]
Chain = tuple[tuple[int, int], ...]
"""The places of the calls through which something is reached."""
Position = tuple[int, int, int, int, str, str, Chain]

WORKING = frozenset({"call", "sync", "backward", "iterate", "step", "clip", "store", "load"})
"""Uses that only do their work on the wrapped object."""
_TABLES = frozenset({"_modules", "_parameters", "_buffers", "__dict__"})
_OWN = frozenset({"forward", "__call__", "__init__", "__doc__", "__module__", "__dir__"})
"""What the wrapper's class has of its own, so that it is not looked up in the module."""
_USEFUL = WORKING | {"method", "attr", "return", "pass", "input", "store", "setup", "save", "load"}
_OPTIMIZER_METHODS = frozenset({"step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"})


class Hazard(Record):
    """A place that could tell a wrapped object from a raw one."""

    line: int
    what: str
    fatal: bool = False
    """Whether the program surely fails there, so that no fix is offered; else the fix is unsafe."""
    kind: str = ""
    """The kind of use."""

    def __str__(self) -> str:
        return f"{self.what} (line {self.line})"


class Outlook:
    """The program before and after some edits; every list is made once, in the order of the source."""

    def __init__(self, before: Program, after: Program, error: str | None = None) -> None:
        """`error` says why there is no program after the edits; `after` is then the one before."""
        self.before = before
        self.after = after
        self._error = error

    @cached_property
    def failure(self) -> str | None:
        """Why the edits cannot be offered at all: they cannot be made, or an object would be set up twice."""
        if self._error:
            return self._error
        old = {spot_of(node) for node, setups in self.before.setups().items() if any(s.rewrapped for s in setups)}
        for node, setups in self.after.setups().items():
            if any(s.rewrapped for s in setups) and (spot_of(node) not in old or _is_new(node)):
                return f"an object would be set up a second time on line {node.lineno}"
        return None

    @cached_property
    def hazards(self) -> list[tuple[Use, Hazard]]:
        """Places that see a wrapped object after the fix where they saw a raw one, and can tell."""
        return sorted(self._hazards(), key=lambda pair: pair[1].line)

    @cached_property
    def hazards_by_setup(self) -> dict[Spot, list[Hazard]]:
        """The same by the set-up that wraps the object."""
        found: dict[Spot, list[Hazard]] = {}
        for use, hazard in self.hazards:
            found.setdefault(spot_of(maker(use)), []).append(hazard)
        return found

    def _hazards(self) -> Iterator[tuple[Use, Hazard]]:
        before = self.before.once(_wrapped_positions)
        for place, uses in _by_position(self.after.uses()).items():
            wrapped = [use for use in uses if isinstance(use.obj, Wrapped)]
            if not wrapped or place in before:
                continue
            if _is_new(wrapped[0].node):
                continue
            for use in wrapped:
                hazard = self._tells_wrapped(use)
                if hazard is not None:
                    yield use, hazard

    def _tells_wrapped(self, use: Use) -> Hazard | None:
        assert isinstance(use.obj, Wrapped)
        line = getattr(use.node, "lineno", use.stmt.lineno)
        if use.kind == "isinstance" and not passes_isinstance(use):
            what = f"`isinstance(…, {use.detail})` is false for the wrapped object"
            return Hazard(line, what, fatal=self._raises_without(use.node), kind="isinstance")
        if use.kind == "type":
            return Hazard(line, "`type(…)` gives the wrapper's class", kind="type")
        if use.kind in ("index", "iterate") and use.obj.kind == "module":
            return Hazard(line, "the wrapped module cannot be indexed, counted or iterated", fatal=True)
        if use.kind == "operator" and use.obj.kind == "module":
            return Hazard(line, "the wrapped module takes no operator", fatal=True)
        if use.kind == "identity":
            return Hazard(line, "the wrapped object is another object than the raw one", kind="identity")
        if use.kind in ("setmodule", "delattr") and use.obj.kind == "module":
            return Hazard(line, f"`{use.detail}` is changed through the wrapper, after the strategy took the module")
        if use.kind == "attr" and use.detail == "__class__":
            return Hazard(line, "`__class__` is the wrapper's class", kind="type")
        if use.kind == "attr" and use.obj.kind == "module" and use.detail in _TABLES:
            return Hazard(line, f"`{use.detail}` of the wrapped module is the wrapper's own", kind="names")
        if use.kind == "attr" and use.obj.kind == "module" and use.detail in _OWN:
            return Hazard(line, f"`{use.detail}` of the wrapped module is the wrapper's own", kind="type")
        if use.obj.kind == "loader" and use.kind in ("attr", "method") and _is_replaced(use.detail):
            return Hazard(line, f"`{use.detail}` of the wrapped dataloader is another one in several processes")
        if use.kind == "save":
            return Hazard(line, f"`{use.detail}` would take the wrapper, not the raw object")
        if use.kind == "pass":
            return Hazard(line, f"the object goes to `{use.detail or 'a function'}`, which cannot be seen into here")
        if use.kind == "input" and use.obj.kind == "optimizer" and self._refuses_scheduler(use):
            return Hazard(line, "DeepSpeed's wrapped optimizer is refused by a scheduler", fatal=True)
        if use.kind == "method":
            return self._method(use, line)
        return None

    @cached_property
    def refused_schedulers(self) -> list[Use]:
        """Schedulers that the program after the fix makes on an optimizer that DeepSpeed wrapped."""
        return [
            use
            for use in self.after.uses()
            if use.kind == "input"
            and isinstance(use.obj, Wrapped)
            and use.obj.kind == "optimizer"
            and self._refuses_scheduler(use)
        ]

    def _raises_without(self, test: ast.AST) -> bool:
        """Whether the program raises where a test is false."""
        if test not in self.after.syntax.parents:
            return False
        parent = self.after.syntax.parents[test]
        if isinstance(parent, ast.Assert):
            return True
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            around = self.after.syntax.parents[parent]
            return isinstance(around, ast.If) and around.test is parent and isinstance(around.body[-1], ast.Raise)
        while isinstance(parent, ast.If):
            if not parent.orelse:
                return False
            if isinstance(parent.orelse[-1], ast.Raise):
                return True
            parent = parent.orelse[0]
        return False

    def _refuses_scheduler(self, use: Use) -> bool:
        """StepLR(wrapped) raises under ZeRO 1 to 3: "... is not an Optimizer" (seen with DeepSpeed 0.19.8)."""
        if not known.is_scheduler_class(use.detail):
            return False
        return any(known.is_deepspeed(f) and f != "deepspeed_0" for f in self.strategies_of(use.obj))

    def strategies_of(self, obj: Obj) -> frozenset[str]:
        """The families of the Fabric that wrapped an object."""
        return obj.fabric.strategies if isinstance(obj, Wrapped) else frozenset()

    def _method(self, use: Use, line: int) -> Hazard | None:
        assert isinstance(use.obj, Wrapped)
        if use.obj.kind == "optimizer":
            return (
                None
                if use.detail in _OPTIMIZER_METHODS
                else Hazard(line, f"`.{use.detail}()` on the wrapped optimizer")
            )
        if use.detail == "modules" and self._inside_call(use.node, ("zip", "enumerate", "list", "tuple", "next")):
            return Hazard(line, "`.modules()` is counted through, and the wrapped module has more", kind="names")
        if use.obj.kind != "module" or use.detail in known.HARMLESS_METHODS or self._marked(use):
            return None
        if runs_no_submodule(use.obj.inner, use.detail):
            return None
        if use.detail in known.NAMES_PARTS:
            return Hazard(line, f"`.{use.detail}()` gives other parts and names on the wrapped module", kind="names")
        what = f"`.{use.detail}()` on the wrapped module raises under DDP, FSDP and DeepSpeed when it runs a submodule"
        return Hazard(line, f"{what}, unless marked with `mark_forward_method`")

    def _marked(self, use: Use) -> bool:
        return (raw(use.obj), use.detail) in self._marks

    @cached_property
    def _marks(self) -> set[tuple[Obj, object]]:
        """The raw modules with the methods that `mark_forward_method` names."""
        return {
            (raw(use.obj), name.value)
            for use in self.after.uses()
            if use.kind == "method" and use.detail == "mark_forward_method" and isinstance(use.node, ast.Call)
            for name in use.node.args[:1]
            if isinstance(name, ast.Constant)
        }

    @cached_property
    def left_raw(self) -> dict[Spot, list[tuple[int, Use]]]:
        """By set-up: working uses of an object that still see it raw after the fix, numbered in their order."""
        found: dict[Spot, list[tuple[int, Use]]] = {}
        number = 0
        for uses in _by_position(self.after.uses()).values():
            if any(isinstance(use.obj, Wrapped) for use in uses):
                continue
            for use in uses:
                number += 1
                if use.kind in WORKING:
                    for spot in {spot_of(wrapped.node) for wrapped in use.after if isinstance(wrapped, Wrapped)}:
                        found.setdefault(spot, []).append((number, use))
        return found

    def captures(self, spots: set[Spot]) -> list[Hazard]:
        """Places that take hold of a raw object before a set-up of it, out of the analysis' sight."""
        numbered = sorted((pair for spot in spots for pair in self._wrapped_at.get(spot, ())), key=lambda pair: pair[0])
        raws = {wrapped.inner: wrapped for _, wrapped in numbered}
        found: dict[Hazard, None] = {}
        for _, use in sorted((pair for obj in raws for pair in self._uses_of.get(obj, ())), key=lambda pair: pair[0]):
            wrapped = raws[use.obj]
            hazard = None if wrapped in use.after else self._captures(use, wrapped)
            if hazard is not None:
                found[hazard] = None
        return list(found)

    @cached_property
    def _wrapped_at(self) -> dict[Spot, list[tuple[int, Wrapped]]]:
        found: dict[Spot, list[tuple[int, Wrapped]]] = {}
        for number, wrapped in enumerate(self.after.interpreter.wrapped()):
            found.setdefault(spot_of(wrapped.node), []).append((number, wrapped))
        return found

    @cached_property
    def _uses_of(self) -> dict[Obj, list[tuple[int, Use]]]:
        found: dict[Obj, list[tuple[int, Use]]] = {}
        for number, use in enumerate(self.after.uses()):
            found.setdefault(use.obj, []).append((number, use))
        return found

    def _captures(self, use: Use, wrapped: Wrapped) -> Hazard | None:
        line = getattr(use.node, "lineno", use.stmt.lineno)
        if use.kind == "pass" and may_keep(use.detail):
            keeps = " " in use.detail or use.detail.startswith("torch.nn.")
            what = (
                f"`{use.detail}` is given the raw object before it is set up, and {'keeps' if keeps else 'may keep'} it"
            )
            return Hazard(line, what, fatal=keeps, kind="kept")
        if use.kind == "bind":
            return Hazard(line, f"`{use.detail}` of the raw object is kept before it is set up", fatal=True)
        if use.kind == "iterate" and wrapped.kind == "loader" and self._inside_call(use.node, ("iter", "cycle")):
            return Hazard(line, "an iterator over the raw dataloader is taken before it is set up", fatal=True)
        if use.kind in ("index", "iterate") and wrapped.kind == "module" and not self._only_read(use.node):
            return Hazard(line, "a part of the raw module is taken before it is set up", kind="kept")
        return None

    def _inside_call(self, node: ast.AST, names: tuple[str, ...]) -> bool:
        parent = self.after.syntax.parents.find(node)
        if not isinstance(parent, ast.Call):
            return False
        name = last_name(parent.func)
        return name in names

    def _only_read(self, node: ast.AST) -> bool:
        """Whether a part is only asked for an attribute (`model[0].parameters()`) or counted."""
        return isinstance(self.after.syntax.parents.find(node), ast.Attribute) or isinstance(node, ast.Call)

    @cached_property
    def owners(self) -> list[tuple[Use, Hazard]]:
        """What a fix binds that goes to fields that take no assignment, or to fields of modules that are reloaded."""
        return [(use, hazard) for use in self.after.uses() for hazard in self._owner(use)]

    def _owner(self, use: Use) -> Iterator[Hazard]:
        """What speaks against the binding of a field or an item, if a use is one."""
        if use.kind not in ("setattr", "setmodule", "setitem") or not _is_new(use.node):
            return
        line = getattr(use.node, "lineno", use.stmt.lineno)
        place = use.detail or ast.unparse(use.node)
        if isinstance(use.obj, Instance) and use.kind != "setitem":
            if refuses_assignment(use.obj):
                yield Hazard(line, f"`{place}` of a `{use.obj.cls.node.name}` takes no assignment", fatal=True)
                return
            if is_module(use.obj) and used_in_init(use.obj, place, self.after.setups()):
                yield Hazard(line, f"the module keeps `{place}` in another of its parts as well", fatal=True)
                return
        if is_module(use.obj) and self._takes_module(use) and self._names_parts(use.obj):
            what = f"`{place}` would be a wrapped part of a module, whose state then has other names"
            yield Hazard(line, what, kind="names")

    def _takes_module(self, use: Use) -> bool:
        """Whether what an attribute or an item is given may be a module, which then is a part, and not an optimizer."""
        kept = self._kept_at.get(use.node, ())
        return not kept or any(not isinstance(obj, Wrapped) or obj.kind == "module" for obj in kept)

    @cached_property
    def _kept_at(self) -> dict[ast.AST, set[Obj]]:
        """What attributes and items are given, and what calls are, by the places in the source."""
        kept: dict[ast.AST, set[Obj]] = {}
        for use in self.after.uses():
            if use.kind in ("keep", "pass"):
                kept.setdefault(use.node, set()).add(use.obj)
        return kept

    def _names_parts(self, owner: Obj) -> bool:
        """Whether the program asks a module, or one that it is a part of, for its state or its parts by name."""
        return bool(self._named & {owner, *self._modules_around(owner)})

    @cached_property
    def _named(self) -> set[Obj]:
        """What the program asks for its state or its parts by name, or stores."""
        named = (known.NAMES_PARTS - {"register_buffer"}) | {"state_dict", "load_state_dict"}
        return {
            raw(use.obj)
            for use in self.after.uses()
            if use.kind == "save" or (use.kind == "method" and use.detail in named)
        }

    def _modules_around(self, part: Obj) -> set[Obj]:
        """The objects that have a module as a part, or as a part of a part."""
        found: set[Obj] = set()
        new = {part}
        while new:
            new = {owner for obj in new for owner in self._owners_of.get(obj, ())} - found
            found |= new
        return found

    @cached_property
    def _owners_of(self) -> dict[Obj, set[Obj]]:
        """For what is assigned to an attribute or an item, or given to a module: the objects whose it is."""
        owners: dict[ast.AST, set[Obj]] = {}
        for node, obj in self.after.interpreter.created():
            if node is not None and is_module(obj):
                owners.setdefault(node, set()).add(obj)
        for use in self.after.uses():
            if use.kind in ("setattr", "setmodule", "setitem"):
                owners.setdefault(use.node, set()).add(raw(use.obj))
        found: dict[Obj, set[Obj]] = {}
        for node, objs in owners.items():
            for part in self._kept_at.get(node, ()):
                found.setdefault(raw(part), set()).update(objs)
        return found

    @cached_property
    def uncovered(self) -> set[tuple[Spot, Chain]]:
        """The `backward` and `no_backward_sync` calls that do not work on wrapped models only, each in its context."""
        calls: list[Call] = [call for seen in self.after.backwards().values() for call in seen]
        calls += [call for seen in self.after.no_syncs().values() for call in seen]
        return {call_position(call) for call in calls if _has_raw(call)}

    @cached_property
    def used_wrapped(self) -> set[Spot]:
        """The set-up calls after the fix whose results something uses."""
        uses = (use for use in self.after.uses() if use.kind in _USEFUL)
        return {spot_of(use.obj.node) for use in uses if isinstance(use.obj, Wrapped)}

    @cached_property
    def now_raw(self) -> list[Use]:
        """Uses, as they were, that saw a wrapped object (or its inside) and see only a raw one after the fix."""
        after = _wrapped_positions(self.after)
        found: list[Use] = []
        for place, uses in _by_position(self.before.uses()).items():
            if place not in after and any(isinstance(use.obj, (Wrapped, Inside)) for use in uses):
                found.extend(uses)
        there = {position(use) for use in self.after.uses()} if found else set()
        return sorted((use for use in found if position(use) in there), key=lambda use: getattr(use.node, "lineno", 0))


def maker(use: Use) -> ast.Call:
    """The set-up call that made the wrapped object of a use (or what the object is inside of)."""
    obj = use.obj.wrapped if isinstance(use.obj, Inside) else use.obj
    assert isinstance(obj, Wrapped)
    return obj.node


def _is_replaced(name: str) -> bool:
    """Whether an attribute of a dataloader is made anew by Fabric (`_process_dataloader`), or private to PyTorch."""
    return name in ("sampler", "batch_sampler") or (name.startswith("_") and not name.startswith("__"))


def _has_raw(event: Call) -> bool:
    """Whether an event still works on a raw module that others of the same call see wrapped, or on raw ones alone."""
    if isinstance(event, Backward):
        wrapped = {raw(obj) for obj in event.deps if isinstance(obj, Wrapped)}
        return not wrapped or any(obj in wrapped for obj in event.deps)
    argument = event.argument("module", 0)
    return argument is None or not all(isinstance(obj, Wrapped) for obj in argument.value)


def spot_of(node: ast.AST) -> Spot:
    """Where a node stands, and whether a fix put it in."""
    return (
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "end_col_offset", 0) or 0,
        _is_new(node),
    )


def _is_new(node: ast.AST) -> bool:
    return bool(getattr(node, "_fabric_fix_new", False))


def _by_position(uses: Iterable[Use]) -> dict[Position, list[Use]]:
    """The uses of objects that are wrapped, or were set up under another name, by place and context."""
    found: dict[Position, list[Use]] = {}
    for use in uses:
        if not use.after and not isinstance(use.obj, (Wrapped, Inside)):
            continue
        place = position(use)
        if place is not None:
            found.setdefault(place, []).append(use)
    return found


def _wrapped_positions(program: Program) -> set[Position | None]:
    """The places that see a wrapped object or what is inside one."""
    return {position(use) for use in program.uses() if isinstance(use.obj, (Wrapped, Inside))}


def position(use: Use) -> Position | None:
    """Where a use stands and how it is reached; the same before and after a fix. None for what a fix puts in."""
    line, column, end_line, end_column, new = spot_of(use.node)
    return None if new else (line, column, end_line, end_column, use.kind, use.detail, _context(use))


def call_position(call: Call) -> tuple[Spot, Chain]:
    """Where a call stands and how it is reached."""
    return spot_of(call.node), _context(call)


def _context(use: Use | Call) -> Chain:
    """The calls through which something is reached, by their places: the same before and after a fix."""
    calls = [frame.call for frame in use.frame.chain() if frame.call is not None]
    return tuple((getattr(call, "lineno", 0), getattr(call, "col_offset", 0)) for call in calls)
