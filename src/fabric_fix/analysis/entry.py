"""Where a look at a module starts: its top level, then every function and class that nothing reached from there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from fabric_fix.analysis.calls import run_function
from fabric_fix.analysis.frames import Frame, State, all_arguments
from fabric_fix.analysis.imports import new_frame
from fabric_fix.analysis.interp import Interpreter
from fabric_fix.analysis.modules import Module
from fabric_fix.analysis.objects import EMPTY, Class, FabricObj, Function, Instance, Obj, Value
from fabric_fix.analysis.parameters import outside_value
from fabric_fix.analysis.relevance import Relevance
from fabric_fix.analysis.statements import run


def walk(it: Interpreter, importers: Sequence[Module]) -> None:
    """Interpret a module: its top level, the programs that use it, and what none of them reached."""
    it.state.replace(it.module, {})
    run(it, it.source.tree.body)
    for source in importers:
        _alone(it, partial(_walk_importer, it, source))
    _walk_rest(it, it.source)


def _walk_importer(it: Interpreter, source: Module) -> None:
    """Interpret a program that uses the module: it calls it with arguments of its own."""
    frame = new_frame(source)
    outer, it.frame, it.walked = it.frame, frame, source
    known = it.loaded.get(source.path)
    it.loaded[source.path] = frame  # for modules that import their importer
    it.state.replace(frame, {})
    run(it, source.tree.body)
    _walk_rest(it, source)
    it.frame, it.walked = outer, it.source
    del it.loaded[source.path]  # its state goes with it
    if known is not None:
        it.loaded[source.path] = known


def _walk_rest(it: Interpreter, source: Module) -> None:
    """The functions and classes of a module that nothing reached so far."""
    relevance = source.relevance
    _walk_functions(it, source, first=True)  # what these call, launch or make is then seen with their arguments
    rooted: set[ast.AST] = set()  # a class defined in a function that is called often is one class
    made = {base for cls in it.instantiated for base in _bases(cls)}
    for cls in it.classes:
        if cls in made or cls.node in rooted or cls.closure.source is not source:
            continue
        if relevance.of_class(cls.node):
            rooted.add(cls.node)
            _walk_class(it, cls)
    _walk_functions(it, source, first=False)
    for cls in it.classes:
        if cls.closure.source is source and relevance.of_class(cls.node):
            if _is_known_elsewhere(it, cls, relevance):
                _walk_class(it, cls)
            _walk_unreached_methods(it, cls, relevance)


def _walk_functions(it: Interpreter, source: Module, *, first: bool) -> None:
    """The functions of a module that nothing reached so far; `first` those that none of the others names."""
    index = 0
    while index < len(it.functions):  # walking one can define others
        function = it.functions[index]
        index += 1
        unreached = function.node not in it.reached and function.owner is None
        if not unreached or function.closure.source is not source or not source.relevance.of(function.node):
            continue
        if not first or function.name not in source.relevance.named:
            _alone(it, partial(_walk_function, it, function, None))


def _bases(cls: Class) -> set[Class]:
    """A class and those that it inherits from: made with it."""
    found = {cls}
    for base in cls.bases:
        if isinstance(base, Class) and base not in found:
            found |= _bases(base)
    return found


def _alone(it: Interpreter, visit: Callable[[], None]) -> None:
    """Do something on a copy of the state, which is then dropped: what one root does, another does not see."""
    saved = it.state
    it.state = saved.copy()
    visit()
    it.state = saved


def _walk_function(it: Interpreter, function: Function, receiver: Obj | None) -> None:
    frame, bound = _outside_frame(it, function, receiver)
    run_function(it, function, frame, bound, function.node)


def _outside_frame(it: Interpreter, function: Function, receiver: Obj | None) -> tuple[Frame, dict[str, Value]]:
    """The frame of a function that is called from somewhere unknown."""
    node = function.node
    assert not isinstance(node, ast.Lambda)
    outer, it.frame = it.frame, function.closure
    frame = it.frame_for(function, None)
    frame.depth, frame.caller, frame.call = 0, None, None
    defaults = dict(
        zip([a.arg for a in (*node.args.posonlyargs, *node.args.args)][::-1], node.args.defaults[::-1], strict=False)
    )
    defaults.update(
        {a.arg: d for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None}
    )
    bound: dict[str, Value] = {}
    for index, parameter in enumerate(all_arguments(node.args)):
        if index == 0 and receiver is not None:
            bound[parameter.arg] = frozenset((receiver,))
            continue
        value = outside_value(it, function, parameter, defaults.get(parameter.arg))
        if it.annotated(parameter.annotation, it.frame) == "fabric":
            value = it.promote(value, parameter.arg, parameter)
        bound[parameter.arg] = value
    it.frame = outer
    return frame, bound


def _self_of(it: Interpreter, cls: Class) -> Obj:
    """An object that stands for any instance of a class."""
    if cls.kind == "fabric":
        made = it.remember(("any", cls), FabricObj(cls.node, None))
        assert isinstance(made, FabricObj)
        made.cls = cls
        made.strategies = made.strategies | it.named_beside(made.strategies)
        return made
    instance = it.remember(("any", cls), Instance(cls, cls.node, None))
    assert isinstance(instance, Instance)
    instance.root = True
    return instance


def _methods(cls: Class) -> list[Function]:
    """The methods of a class, inherited ones from the program too."""
    found: dict[str, Function] = {}
    for base in cls.bases:
        if isinstance(base, Class) and base is not cls:
            found.update({f.name: f for f in _methods(base)})
    found.update(dict(cls.methods.items()))
    return list(found.values())


def _walk_class(it: Interpreter, cls: Class) -> None:
    """Interpret a class that is instantiated elsewhere: `__init__`, then each method that no other one calls.

    Methods are called in an order that is not known, so each starts with the fields that `__init__` and all the
    others leave. What they do to Fabrics (`#` facts) is taken over from the others only, not from the method itself.
    """
    saved = it.state
    it.state = saved.copy()
    receiver = _self_of(it, cls)
    init = cls.method("__init__")
    if init is not None:
        _walk_function(it, init, receiver)
    start = it.state
    methods = [m for m in _methods(cls) if m.name != "__init__" and "staticmethod" not in m.decorators]
    methods = [m for m in methods if "classmethod" not in m.decorators]
    called = _called_by_siblings([*methods, *([init] if init is not None else [])])
    entries = [m for m in methods if m.name not in called and not (it.is_plain and not it.is_relevant(m))]
    ends: dict[Function, State] = {}
    for method in entries:
        it.state = start.copy()
        _walk_function(it, method, receiver)
        ends[method] = it.state
    if len(entries) > 1 and any(_changed(start, end, receiver) for end in ends.values()):
        starts = _Starts(start, ends)
        for method in entries:
            it.state = starts.of(method)
            _walk_function(it, method, receiver)
    it.state = saved


def _called_by_siblings(methods: list[Function]) -> set[str]:
    names = {m.name for m in methods}
    found: set[str] = set()
    for method in methods:
        for node in ast.walk(method.node):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in ("self", "cls")
                and node.func.attr in names
                and node.func.attr != method.name
            ):
                found.add(node.func.attr)
    return found


def _changed(start: State, end: State, receiver: Obj) -> bool:
    return start.table(receiver) != end.table(receiver)


class _Starts:
    """The states that the methods of a class start with: what all of them leave, but for each method's own facts.

    All but these are joined once, or a class would take the square of its methods.
    """

    def __init__(self, start: State, ends: dict[Function, State]) -> None:
        self._start = start
        self._common = start.copy()
        self._facts: dict[tuple[Obj, str], dict[Obj, Function | None]] = {}
        """By owner and name of a fact: its objects, each with the one method that leaves it, None for several."""
        self._makers: dict[tuple[Obj, str], set[Function]] = {}
        """By owner and name of a fact: the methods that leave it."""
        self._own: dict[Function, set[tuple[Obj, str]]] = {}
        """The facts that would be others without a method."""
        for method, end in ends.items():
            self._add(method, end)
        for key, makers in self._makers.items():
            sole = {maker for maker in self._facts[key].values() if maker is not None}
            for maker in sole | (makers if len(makers) == 1 else set()):
                self._own.setdefault(maker, set()).add(key)

    def _add(self, method: Function, end: State) -> None:
        for owner, table in end.tables.items():
            if owner is None or isinstance(owner, Frame) or self._start.table(owner) is table:
                continue
            for name, value in table.items():
                self._common.put(owner, name, value | (self._common.get(owner, name) or EMPTY))
                if name.startswith("#"):
                    self._makers.setdefault((owner, name), set()).add(method)
                    left = self._facts.setdefault((owner, name), {})
                    left.update({obj: None if obj in left else method for obj in value})

    def of(self, method: Function) -> State:
        """The state that a method starts with."""
        state = self._common.copy()
        for owner, name in self._own.get(method, ()):
            before = self._start.get(owner, name)
            if before is None and self._makers[owner, name] == {method}:
                state.drop(owner, name)
                continue
            others = frozenset(obj for obj, maker in self._facts[owner, name].items() if maker is not method)
            state.put(owner, name, others | (before or EMPTY))
        return state


def _is_known_elsewhere(it: Interpreter, cls: Class, relevance: Relevance) -> bool:
    """Whether only a program whose state is gone made an instance, and left methods that need its fields."""
    if it.remembered(("any", cls)) is not None or cls not in it.instantiated or len(_known_instances(it, cls)) == 1:
        return False
    return any(method.node not in it.reached and relevance.of(method.node) for method in cls.methods.values())


def _walk_unreached_methods(it: Interpreter, cls: Class, relevance: Relevance) -> None:
    """Methods that no followed call reached, on an object that stands for any instance."""
    for method in list(cls.methods.values()):
        if method.node in it.reached or not relevance.of(method.node):
            continue
        plain = "staticmethod" in method.decorators or "classmethod" in method.decorators
        receiver = None if plain else it.remembered(("any", cls)) or _instance_of(it, cls)
        _alone(it, partial(_walk_function, it, method, receiver))


def _instance_of(it: Interpreter, cls: Class) -> Obj:
    """The one known instance of a class, so that its fields are known; else one that stands for any."""
    known = _known_instances(it, cls)
    return next(iter(known)) if len(known) == 1 else _self_of(it, cls)


def _known_instances(it: Interpreter, cls: Class) -> set[Obj]:
    owners = (*it.state.tables, *it.state.base)
    return {obj for obj in owners if isinstance(obj, (Instance, FabricObj)) and obj.cls is cls}
