"""What a rule is: a class with a code and a check, in a module of its own under `codemods/`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from fabric_fix.analysis.modules import SHIFT
from fabric_fix.finding import Applicability, Finding, Fix, Span
from fabric_fix.records import replace

if TYPE_CHECKING:
    import ast

    from fabric_fix.analysis.program import Program
    from fabric_fix.edits.model import Edit
    from fabric_fix.trial import Hazard


_QUOTED = re.compile(r"`[^`]*`")
_KEY = re.compile(r"\['([^'\"\\\\]*)'\]")


class Rule:
    """Base of all rules; a fresh instance is made for each program, so a rule may keep state on itself."""

    code: ClassVar[str]
    """Stable code, such as "FF101"."""
    name: ClassVar[str]
    """Kebab-case name; the module's name with `-` for `_`, and the name of the folder under `fixtures/`."""
    anywhere: ClassVar[bool] = False
    """Whether it finds what is wrong in any file of the program, also where no event stands, and not in one file only.

    Its findings have the line of the file that they belong to. It tries nothing out but for the file that is asked
    about, and only if `program.deep`."""
    by_hand: ClassVar[str] = ""
    """What to do where there is no fix and the reason does not say it, in the imperative."""

    def check(self, program: Program) -> Iterator[Finding]:
        """Look at an analysed program and yield what is wrong with it."""
        raise NotImplementedError  # every rule has its own

    @classmethod
    def explanation(cls) -> str:
        """The rule's documentation: the docstring of its module."""
        from inspect import cleandoc

        return cleandoc(sys.modules[cls.__module__].__doc__ or "")

    # --- findings -----------------------------------------------------------------------------------------------------

    def report(self, program: Program, node: ast.expr, message: str, reason: str) -> Finding:
        """A finding without a fix; `reason` says why there is none and, behind a colon, what to do.

        Where it does not, `by_hand` does.
        """
        if self.by_hand and ": " not in _QUOTED.sub("", reason):
            reason += f": {self.by_hand}"
        return self._finding(program, node, message, None, reason)

    def fixed(
        self,
        program: Program,
        node: ast.expr,
        message: str,
        fix: str,
        edits: Sequence[Edit],
        hazards: Sequence[Hazard | str] = (),
    ) -> Finding:
        """A finding with a fix: safe without hazards, none with a fatal one, else unsafe with them as its reason."""
        other = next((edit for edit in edits if _line_of(edit) >= SHIFT), None)
        if other is not None:
            return self.report(program, node, message, f"the fix belongs on line {_line_of(other)}: {fix}")
        if node in program.interpreter.other_calls:
            other_use = "the same line also runs with something that is no Fabric: give that a line of its own"
            return self.report(program, node, message, other_use)
        fatal = [hazard for hazard in hazards if getattr(hazard, "fatal", False)]
        if fatal:
            return self.report(program, node, message, "; ".join(str(hazard) for hazard in fatal[:3]))
        edits = [_quoted(edit, program.text) for edit in edits]
        fix = _in_quotes_of(program.text, fix)
        applicability = Applicability.UNSAFE if hazards else Applicability.SAFE
        reason = "; ".join(str(hazard) for hazard in hazards[:3]) or None
        return self._finding(program, node, message, Fix(fix, tuple(edits), applicability), reason)

    def _finding(self, program: Program, node: ast.expr, message: str, fix: Fix | None, reason: str | None) -> Finding:
        statement = program.syntax.statement(node)
        return Finding(
            code=self.code,
            name=self.name,
            path=program.path,
            span=Span.of(node),
            message=program.placed(message),
            fix=fix,
            reason=program.placed(reason) if reason is not None else None,
            statement=_header(statement),
        )


def _line_of(edit: Edit) -> int:
    """The line that an edit is made on; that of an import is the file's own."""
    places = [getattr(edit, name, None) for name in ("span", "statement", "call", "anchor")]
    return max((place.line for place in places if isinstance(place, Span)), default=0)


def _quoted(edit: Edit, text: str) -> Edit:
    """An edit whose code has keys (`state["model"]`) in the quotes that the file has them in."""
    for name in ("code", "targets"):
        code = getattr(edit, name, None)
        if isinstance(code, str) and "['" in code:
            edit = replace(edit, **{name: _in_quotes_of(text, code)})
    return edit


def _in_quotes_of(text: str, code: str) -> str:
    def requote(match: re.Match[str]) -> str:
        double = f'["{match[1]}"]'
        return double if double in text and match[0] not in text else match[0]

    return _KEY.sub(requote, code)


def _header(statement: ast.stmt) -> Span:
    """The span of a statement; of a compound one, only its head: a comment in its body silences nothing above."""
    whole = Span.of(statement)
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body and body[0].lineno > whole.line:
        return Span(whole.line, whole.column, body[0].lineno - 1, 0)
    return whole
