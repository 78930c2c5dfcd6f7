"""A fix tried out: the program is analysed again as it would be, and what can tell the difference is listed.

FABRIC facts behind the lists: a wrapped module forwards attributes, `parameters()`, `state_dict()`, `train()`, `eval()`
to the raw one; `isinstance`, `type`, storing the whole object and methods that run submodules tell them apart
(`lightning/fabric/wrappers.py`, `_FabricModule`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Use
from fabric_fix.analysis.objects import Inside, Instance, Obj, Wrapped, raw
from fabric_fix.analysis.program import Program
from fabric_fix.edits.model import EditError

if TYPE_CHECKING:
    from fabric_fix.edits.model import Edit

Position = tuple[int, int, int, int, str, str]

WORKING = frozenset({"call", "sync", "backward", "iterate", "step", "clip"})
"""Uses that only do their work on the wrapped object."""
_USEFUL = WORKING | {"method", "attr", "return", "pass", "input", "store", "setup", "save", "load"}
_OPTIMIZER_METHODS = frozenset({"step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"})


@dataclass(frozen=True)
class Hazard:
    """A place that could tell a wrapped object from a raw one."""

    line: int
    what: str
    fatal: bool = False
    """Whether the program surely fails there, so that no fix is offered; else the fix is unsafe."""
    kind: str = ""
    """The kind of use."""

    def __str__(self) -> str:
        return f"{self.what} (line {self.line})"


class Trial:
    """The program before and after some edits."""

    def __init__(self, before: Program, edits: Sequence[Edit]) -> None:
        self.before = before
        self.edits = tuple(edits)
        self.error: str | None = None
        self.after = before
        try:
            self.after = before.simulate(edits)
        except EditError as error:
            self.error = str(error)
        if self.after.gave_up:
            self.error = f"the program after the fix {self.after.gave_up}"

    def failure(self) -> str | None:
        """Why the fix cannot be offered at all: it cannot be made, or an object would be set up twice."""
        if self.error:
            return self.error
        old = {_spot(node) for node, setups in self.before.setups().items() if any(s.rewrapped for s in setups)}
        for node, setups in self.after.setups().items():
            if any(s.rewrapped for s in setups) and (_spot(node) not in old or _is_new(node)):
                return f"an object would be set up a second time on line {node.lineno}"
        return None

    def hazards(self) -> list[Hazard]:
        """Places that see a wrapped object after the fix where they saw a raw one, and can tell, in source order."""
        found = dict.fromkeys(self._hazards())
        return sorted(found, key=lambda hazard: hazard.line)

    def _hazards(self) -> Iterator[Hazard]:
        before = _by_position(self.before.uses())
        for position, uses in _by_position(self.after.uses()).items():
            wrapped = [use for use in uses if isinstance(use.obj, Wrapped)]
            if not wrapped or any(isinstance(use.obj, (Wrapped, Inside)) for use in before.get(position, [])):
                continue
            if _is_new(wrapped[0].node):
                continue
            for use in wrapped:
                hazard = self._tells_wrapped(use)
                if hazard is not None:
                    yield hazard

    def _tells_wrapped(self, use: Use) -> Hazard | None:
        assert isinstance(use.obj, Wrapped)
        line = getattr(use.node, "lineno", use.stmt.lineno)
        if use.kind == "isinstance" and not _passes_isinstance(use):
            what = f"`isinstance(…, {use.detail})` is false for the wrapped object"
            return Hazard(line, what, fatal=self._raises_without(use.node), kind="isinstance")
        if use.kind == "type":
            return Hazard(line, "`type(…)` gives the wrapper's class", kind="type")
        if use.kind in ("index", "iterate") and use.obj.kind == "module":
            return Hazard(line, "the wrapped module cannot be indexed, counted or iterated", fatal=True)
        if use.kind == "save":
            return Hazard(line, f"`{use.detail}` would take the wrapper, not the raw object")
        if use.kind == "pass":
            return Hazard(line, f"the object goes to `{use.detail or 'a function'}`, which cannot be seen into here")
        if use.kind == "input" and use.obj.kind == "optimizer" and self._refuses_scheduler(use):
            return Hazard(line, "DeepSpeed's wrapped optimizer is refused by a scheduler", fatal=True)
        if use.kind == "method":
            return self._method(use, line)
        return None

    def refused_scheduler(self) -> str | None:
        """A scheduler that the program after the fix makes on an optimizer that DeepSpeed wrapped, as a reason."""
        for use in self.after.uses():
            if (
                use.kind == "input"
                and isinstance(use.obj, Wrapped)
                and use.obj.kind == "optimizer"
                and self._refuses_scheduler(use)
            ):
                line = getattr(use.node, "lineno", use.stmt.lineno)
                return f"the scheduler on line {line} would be made on DeepSpeed's wrapped optimizer, which it refuses"
        return None

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
        if use.obj.kind != "module" or use.detail in known.HARMLESS_METHODS or self._marked(use):
            return None
        if _runs_no_submodule(use.obj.inner, use.detail):
            return None
        if use.detail in known.NAMES_PARTS:
            return Hazard(line, f"`.{use.detail}()` gives other parts and names on the wrapped module", kind="names")
        what = f"`.{use.detail}()` on the wrapped module raises under DDP, FSDP and DeepSpeed when it runs a submodule"
        return Hazard(line, f"{what}, unless marked with `mark_forward_method`")

    def _marked(self, use: Use) -> bool:
        for other in self.after.uses():
            if other.kind == "method" and other.detail == "mark_forward_method" and raw(other.obj) is raw(use.obj):
                names = other.node.args[:1] if isinstance(other.node, ast.Call) else []
                if any(isinstance(name, ast.Constant) and name.value == use.detail for name in names):
                    return True
        return False

    def left_raw(self, wrapped_at: Iterable[ast.Call]) -> list[Use]:
        """Working uses of an object that still see it raw after the fix although it is set up by one of the calls."""
        spots = {_spot(node) for node in wrapped_at}
        by_position = _by_position(self.after.uses())
        found: list[Use] = []
        for uses in by_position.values():
            if any(isinstance(use.obj, Wrapped) for use in uses):
                continue
            for use in uses:
                if use.kind in WORKING and any(isinstance(w, Wrapped) and _spot(w.node) in spots for w in use.after):
                    found.append(use)
        return sorted(found, key=lambda use: getattr(use.node, "lineno", 0))

    def used_wrapped(self, call: ast.Call) -> bool:
        """Whether something after the fix uses what a set-up call returned."""
        spot = _spot(call)
        for use in self.after.uses():
            if isinstance(use.obj, Wrapped) and _spot(use.obj.node) == spot and use.kind in _USEFUL:
                return True
        return False

    def now_raw(self) -> list[Use]:
        """Uses, as they were, that saw a wrapped object (or its inside) and see only a raw one after the fix."""
        before = _by_position(self.before.uses())
        found: list[Use] = []
        for position, uses in _by_position(self.after.uses()).items():
            olds = before.get(position, [])
            was_wrapped = any(isinstance(u.obj, (Wrapped, Inside)) for u in olds)
            if was_wrapped and not any(isinstance(u.obj, (Wrapped, Inside)) for u in uses):
                found.extend(olds)
        return sorted(found, key=lambda use: getattr(use.node, "lineno", 0))


def _spot(node: ast.AST) -> tuple[int, int, int, int, bool]:
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
    found: dict[Position, list[Use]] = {}
    for use in uses:
        line, column, end_line, end_column, new = _spot(use.node)
        if not new:
            found.setdefault((line, column, end_line, end_column, use.kind, use.detail), []).append(use)
    return found


def _passes_isinstance(use: Use) -> bool:
    """`isinstance(wrapped, nn.Module)` holds; so do tests of optimizers, whose wrapper takes over their class."""
    assert isinstance(use.obj, Wrapped)
    if use.obj.kind == "optimizer":
        return True
    names = [part.strip(" ()") for part in use.detail.split(",")]
    return any(name.rpartition(".")[2] in ("Module", "_FabricModule", "_FabricDataLoader", "object") for name in names)


def _runs_no_submodule(inner: Obj, name: str) -> bool:
    """Whether a method of a class of the program surely calls no submodule."""
    method = inner.cls.method(name) if isinstance(inner, Instance) else None
    if method is None:
        return False
    return all(not (isinstance(node, ast.Call) and _through_self(node.func)) for node in ast.walk(method.node))


def _through_self(func: ast.expr) -> bool:
    while isinstance(func, (ast.Attribute, ast.Subscript, ast.Call)):
        func = func.func if isinstance(func, ast.Call) else func.value
    return isinstance(func, ast.Name) and func.id == "self"
