"""A program that was looked at: what rules ask, and how a fix is tried out before it is offered."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
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
from fabric_fix.analysis.names import known_spellings
from fabric_fix.analysis.objects import Obj, raw
from fabric_fix.analysis.relevance import Relevance
from fabric_fix.analysis.syntax import Syntax
from fabric_fix.deadline import NEVER

if TYPE_CHECKING:
    from fabric_fix.analysis.project import Project
    from fabric_fix.deadline import Deadline
    from fabric_fix.edits.model import Edit

BUDGET = 200_000
"""Expressions and statements interpreted for one file before the analysis gives up on it."""

A = TypeVar("A")
C = TypeVar("C", bound=Call)


class Program:
    """One file of a project with everything that it does, as far as it can be seen."""

    def __init__(
        self, text: str, path: str, strategies: frozenset[str], project: Project, deadline: Deadline = NEVER
    ) -> None:
        self.text = text
        self.path = path
        self.strategies = strategies
        self.project = project
        self.deadline = deadline
        self.tree = ast.parse(text)
        self.gave_up: str | None = None
        self.gave_up_at = 1
        """The line that the analysis had come to when it gave up."""
        self.relevance = Relevance(self.tree, text)
        self.interpreter = Interpreter(self.tree, known_spellings(self.tree, text), strategies, BUDGET)
        self._syntax: Syntax | None = None
        self._answers: dict[Callable[[Program], Any], Any] = {}
        self._events: dict[type[Call], Any] = {}
        self._run()

    def _run(self) -> None:
        self.interpreter.deadline = self.deadline
        try:
            entry.walk(self.interpreter, self.relevance)
        except GaveUpError:
            self.gave_up = f"needs more than {BUDGET} steps of analysis"
            self.gave_up_at = self.interpreter.stmt.lineno

    @property
    def syntax(self) -> Syntax:
        """Where statements and expressions stand in the tree."""
        if self._syntax is None:
            self._syntax = Syntax(self.tree)
        return self._syntax

    # --- events -----------------------------------------------------------------------------------------------------

    def events(self, kind: type[C]) -> dict[ast.Call, list[C]]:
        """The calls of one kind in source order, each with what was seen of it in every context."""
        kept: dict[ast.Call, list[C]] | None = self._events.get(kind)
        if kept is not None:
            return kept
        found: dict[ast.Call, list[C]] = {}
        for event in self.interpreter.events.values():
            if type(event) is kind and not event.mixed:
                found.setdefault(event.node, []).append(event)
        found = dict(sorted(found.items(), key=lambda entry: (entry[0].lineno, entry[0].col_offset)))
        self._events[kind] = found
        return found

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

        twin = Program.__new__(Program)
        twin.text, twin.path, twin.strategies, twin.project = self.text, self.path, self.strategies, self.project
        twin.deadline = self.deadline
        twin.tree = apply_to_tree(ast.parse(self.text), edits)
        twin.gave_up, twin.gave_up_at = None, 1
        twin._syntax = None
        twin._answers = {}
        twin._events = {}
        twin.relevance = self.relevance
        twin.interpreter = Interpreter(twin.tree, self.interpreter.spellings, self.strategies, BUDGET)
        twin._run()
        return twin
