"""A program that was looked at: what rules ask, and how a fix is tried out before it is offered."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from fabric_fix.analysis import entry
from fabric_fix.analysis.events import (
    Backward,
    Call,
    Iteration,
    NoSync,
    PlainBackward,
    Setup,
    Step,
    StrategyCall,
    Use,
)
from fabric_fix.analysis.interp import GaveUpError, Interpreter
from fabric_fix.analysis.modules import SHIFT, Module, Modules, is_test
from fabric_fix.analysis.objects import Obj, raw
from fabric_fix.analysis.syntax import Syntax
from fabric_fix.deadline import NEVER, UnfinishedError

if TYPE_CHECKING:
    from fabric_fix.analysis.project import Project
    from fabric_fix.deadline import Deadline
    from fabric_fix.edits.model import Edit

BUDGET = 200_000
"""Expressions and statements interpreted for one file, and for each program that uses it, before it is given up on."""
MOST_IMPORTERS = 4
"""Programs beyond which more of them get no more steps."""

_FAR_LINE = re.compile(r"line (\d{8,})")
A = TypeVar("A")
E = TypeVar("E")
C = TypeVar("C", bound=Call)


class TrialNeededError(Exception):
    """A question can only be answered by trying a fix out, in a program that is not to try any."""


class Program:
    """One file of a project with everything that it does, as far as it and the files around it show."""

    def __init__(
        self,
        text: str,
        path: str,
        strategies: frozenset[str],
        project: Project,
        real: str = "",
        *,
        importers: Sequence[str] = (),
        deep: bool = True,
        hinted: Mapping[str, frozenset[str]] | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        """Analyse a file.

        `real` is its real path, '' for what is in no file. `importers` are the real paths of the programs that use it.
        Without `deep`, of the files around it only those are looked into that can matter to Fabric at first sight, and
        no fix is tried out.
        """
        self.text = text
        self.path = path
        self.strategies = strategies
        self.project = project
        self.deep = deep
        self.closed = False
        """No other file is looked into."""
        self.importers = tuple(importers)
        self.hinted = hinted
        self.deadline = deadline
        self.source = project.modules.made(real, text, ast.parse(text))
        self._interpret()

    def _interpret(self) -> None:
        self.tree = self.source.tree
        self.gave_up: str | None = None
        self.gave_up_at = 1
        """The line that the analysis had come to when it gave up."""
        self._syntax: Syntax | None = None
        self._answers: dict[Callable[[Program], Any], Any] = {}
        self._events: dict[type[Call], Any] = {}
        modules = Modules("") if self.closed or self.is_test else self.project.modules
        users = [module for module in map(modules.module, self.importers) if module is not None]
        budget = BUDGET * (1 + min(len(users), MOST_IMPORTERS))
        self.interpreter = Interpreter(self.source, modules, self.strategies, budget, self.deep, self.hinted)
        self.interpreter.deadline = self.deadline
        try:
            entry.walk(self.interpreter, users)
        except GaveUpError:
            self.gave_up = f"needs more than {budget} steps of analysis"
            self.gave_up_at = self.interpreter.stmt.lineno if self.owns(self.interpreter.stmt) else 1
        except UnfinishedError as error:
            error.line = error.line if error.line < SHIFT else 1  # of another file that this one leads to
            raise

    # --- files --------------------------------------------------------------------------------------------------------

    def owns(self, node: ast.AST) -> bool:
        """Whether a node is of this file, and not of another of the project."""
        return getattr(node, "lineno", 0) // SHIFT == self.source.number

    def placed(self, text: str) -> str:
        """A message in which `line 12` of another file says of which."""
        return _FAR_LINE.sub(lambda match: self._far(int(match[1])), text)

    def _far(self, line: int) -> str:
        return f"line {line % SHIFT} of {self.project.modules.path_of(line)}"

    def with_hints(self, families: frozenset[str], hinted: Mapping[str, frozenset[str]]) -> Program:
        """The same program when hints name strategies for it."""
        twin = copy(self)
        twin.strategies, twin.hinted = families, hinted
        twin._interpret()
        return twin

    def deepened(self) -> Program:
        """The same program with all that there is to look into, where fixes can be tried out."""
        if self.interpreter.is_narrow or (self.interpreter.modules.root == "") != (self.project.modules.root == ""):
            twin = copy(self)
            twin.deep = True
            twin._interpret()
            return twin
        self.deep = True
        return self

    def alone(self) -> Program:
        """The same program with no look into other files."""
        twin = copy(self)
        twin.closed, twin.importers = True, ()
        twin._interpret()
        return twin

    def _tree_at(self, line: int) -> ast.Module | None:
        """The tree of the file that a shifted line is of."""
        return self.interpreter.source.tree if line < SHIFT else self.project.modules.tree_at(line)

    def seen_in(self, module: Module) -> Program:
        """The same program as a look at another of its files; only to see whether something may be found there."""
        twin = copy(self)
        twin.source, twin.tree, twin.text, twin.path = module, module.tree, module.text, module.path
        twin._syntax, twin._answers, twin._events = None, {}, {}
        twin.deep = False
        return twin

    @property
    def is_test(self) -> bool:
        """Whether the file is a test, by its place in the project."""
        return is_test(self.source.path, self.project.modules.root)

    @property
    def is_aside(self) -> bool:
        """Whether this is a look at another file of the program, whose lines are shifted."""
        return self.source is not self.interpreter.source

    def visited(self) -> list[Module]:
        """The other modules whose functions were called, in the order of their paths."""
        number = self.source.number
        numbers = {getattr(node, "lineno", 0) // SHIFT for node in self.interpreter.reached}
        modules = {frame.source for frame in self.interpreter.loaded.values()}
        found = [module for module in modules if module.number != number and module.number in numbers]
        return sorted(found, key=lambda module: module.path)

    @property
    def syntax(self) -> Syntax:
        """Where statements and expressions stand in the tree."""
        if self._syntax is None:
            self._syntax = Syntax(self.tree, self._tree_at)
        return self._syntax

    # --- events -----------------------------------------------------------------------------------------------------

    def events(self, kind: type[C]) -> dict[ast.Call, list[C]]:
        """The calls of one kind in source order, each with what was seen of it in every context.

        Those of all files of the project that the program runs through; `own` gives those of this one. Those that a
        test expects to fail, and those of test doubles, are not among them.
        """
        kept: dict[ast.Call, list[C]] | None = self._events.get(kind)
        if kept is not None:
            return kept
        found: dict[ast.Call, list[C]] = {}
        for event in self.interpreter.events.values():
            if type(event) is kind and not event.mixed and not event.expected:
                found.setdefault(event.node, []).append(event)
        found = dict(sorted(found.items(), key=lambda entry: (entry[0].lineno, entry[0].col_offset)))
        self._events[kind] = found
        return found

    def own(self, events: Mapping[ast.Call, E]) -> dict[ast.Call, E]:
        """Those of some calls that stand in this file, and not in another of the project."""
        return {node: found for node, found in events.items() if self.owns(node)}

    def setups(self) -> dict[ast.Call, list[Setup]]:
        """Calls of `setup` and its kin."""
        return self.events(Setup)

    def backwards(self) -> dict[ast.Call, list[Backward]]:
        """Calls of `fabric.backward`."""
        return self.events(Backward)

    def plain_backwards(self) -> dict[ast.Call, list[PlainBackward]]:
        """Calls of `loss.backward()` and of other `backward` methods that are not Fabric's."""
        return self.events(PlainBackward)

    def no_syncs(self) -> dict[ast.Call, list[NoSync]]:
        """Calls of `no_backward_sync` and `no_sync`."""
        return self.events(NoSync)

    def strategy_calls(self) -> dict[ast.Call, list[StrategyCall]]:
        """Calls of other methods of `fabric.strategy`."""
        return self.events(StrategyCall)

    def steps(self) -> dict[ast.Call, list[Step]]:
        """Calls of `optimizer.step()`."""
        return self.events(Step)

    def iterations(self) -> Iterator[Iteration]:
        """Loops over loaders."""
        yield from self.interpreter.iterations.values()

    def uses(self) -> Iterator[Use]:
        """Everything that was done with objects."""
        yield from self.interpreter.uses.values()

    def set_up_models(self) -> frozenset[Obj]:
        """The raw objects that some call sets up as a module."""
        found: set[Obj] = set()
        for setups in self.setups().values():
            for setup in setups:
                argument = setup.argument("module", 0) if setup.method in ("setup", "setup_module") else None
                found.update(raw(obj) for obj in (argument.value if argument else ()))
        return frozenset(found)

    def once(self, question: Callable[[Program], A]) -> A:
        """The answer to a question about the program, which is asked once."""
        if question not in self._answers:
            self._answers[question] = question(self)
        answer: A = self._answers[question]
        return answer

    # --- trying out ---------------------------------------------------------------------------------------------------

    def simulate(self, edits: Sequence[Edit]) -> Program:
        """The program as it would be after some edits; raises `EditError` when they cannot be made."""
        from fabric_fix.edits.tree import apply_to_tree

        if not self.deep:
            raise TrialNeededError
        twin = copy(self)
        twin.source = self.source.twin(apply_to_tree(ast.parse(self.text), edits))
        twin._interpret()
        return twin
