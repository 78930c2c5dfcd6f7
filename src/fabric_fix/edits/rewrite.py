"""Making fixes in a text: plan, one pass over the concrete syntax tree of what is touched, and proof of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabric_fix.edits.model import EditError
from fabric_fix.edits.plan import Regions, regions_of
from fabric_fix.edits.sources import Source, source_of
from fabric_fix.finding import Fix


@dataclass(frozen=True)
class Rewritten:
    """A text after its fixes, and what became of each of them."""

    text: str
    applied: tuple[Fix, ...]
    waiting: tuple[Fix, ...]
    """These touch an applied (or failed) one, and are to be looked for again in the new text."""
    failed: tuple[tuple[Fix, str], ...]
    """These cannot be made, with the reason."""


def rewrite(text: str, fixes: Sequence[Fix]) -> Rewritten:
    """Make fixes in a text (newlines as in the file, no byte order mark), earlier ones before later ones.

    Never raises for what is in the text or in the fixes: a fix that cannot be made, or whose result cannot be
    proved right, is in `failed` with its reason, and the others stand.
    """
    try:
        source = source_of(text)
    except EditError as error:
        return Rewritten(text, (), (), tuple((fix, str(error)) for fix in fixes))
    return _Session(source).run(fixes)


class _Session:
    """One call of `rewrite`: what was decided about each fix so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.chosen: list[Fix] = []
        self.made: list[Fix] = []
        self.waiting: list[Fix] = []
        self.failed: list[tuple[Fix, str]] = []

    def run(self, fixes: Sequence[Fix]) -> Rewritten:
        self._choose(fixes)
        self._make(self.chosen)
        return Rewritten(self.text, tuple(self.made), tuple(self.waiting), tuple(self.failed))

    def _choose(self, fixes: Sequence[Fix]) -> None:
        taken = Regions()
        for fix in fixes:
            try:
                regions = regions_of(self.source.tree, fix)
            except EditError as error:
                self.failed.append((fix, str(error)))
                continue
            if taken.overlap(regions):
                self.waiting.append(fix)
            else:
                self.chosen.append(fix)
                taken.add(regions)

    def _make(self, fixes: Sequence[Fix]) -> None:
        """Make fixes beside those made so far: all at once, or, where that fails, each half by itself."""
        edits = [edit for fix in (*self.made, *fixes) for edit in fix.edits]
        try:
            self.text = self.source.result(edits) if edits else self.source.text
        except EditError as error:
            if len(fixes) == 1:
                self.failed.append((fixes[0], str(error)))
                return
            middle = len(fixes) // 2
            self._make(fixes[:middle])
            self._make(fixes[middle:])
        else:
            self.made.extend(fixes)
