"""What a rule is: a class with a code and a check, in a module of its own under `codemods/`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from fabric_fix.analysis.program import Program
    from fabric_fix.finding import Finding


class Rule:
    """Base of all rules; a fresh instance is made for each program, so a rule may keep state on itself."""

    code: ClassVar[str]
    """Stable code, such as "FF101"."""
    name: ClassVar[str]
    """Kebab-case name; the module's name with `-` for `_`, and the name of the folder under `fixtures/`."""

    def check(self, program: Program) -> Iterator[Finding]:
        """Look at an analysed program and yield what is wrong with it."""
        raise NotImplementedError  # every rule has its own

    @classmethod
    def explanation(cls) -> str:
        """The rule's documentation: the docstring of its module."""
        return inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "")
