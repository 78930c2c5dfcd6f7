"""A fix tried out: what the program would do after its edits, as far as these edits are to blame.

Where a rule has many fixes in one file, a trial of each by itself would make the work quadratic. `check_rule` then lets
the rule look twice: first at sketches, which only note the edits and have nothing against them, then at trials that
share a program in which all the fixes are made that do not touch each other. What such a program shows is told to
those findings whose statements it is about; where one of the fixes fails, the halves are tried, and so on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from fabric_fix.analysis.events import Call, Use
from fabric_fix.analysis.objects import Inside, Wrapped
from fabric_fix.analysis.program import BUDGET, Program
from fabric_fix.edits.model import EditError
from fabric_fix.outlook import Hazard, Outlook, call_position, maker, spot_of

if TYPE_CHECKING:
    from fabric_fix.edits.model import Edit
    from fabric_fix.edits.plan import Region
    from fabric_fix.finding import Finding
    from fabric_fix.rule import Rule

MOST_ALONE = 8
"""Trials of one rule over one file up to which each is made by itself."""
MOST_GROUPS = 8
"""Groups of fixes that do not touch each other; what fits into none is tried by itself."""
ALL_TRIALS = 5 * BUDGET
"""Steps that all trials over one text may take together."""

Edits = tuple["Edit", ...]


class Trial:
    """The program before and after the edits of a fix."""

    def __init__(self, before: Program, edits: Sequence[Edit]) -> None:
        self.before = before
        self.edits = tuple(edits)
        self._group, self._outlook = before.once(_Trials).of(self.edits)
        self.after = before if self._outlook is None else self._outlook.after

    def failure(self) -> str | None:
        """Why the fix cannot be offered at all: it cannot be made, or an object would be set up twice."""
        return None if self._outlook is None else self._outlook.failure

    def hazards(self, calls: Iterable[ast.Call] | None = None) -> list[Hazard]:
        """Places that see a wrapped object after the fix where they saw a raw one, and can tell, in source order.

        With `calls`, only what these set-ups wrap counts.
        """
        if self._outlook is None:
            return []
        if calls is not None:
            spots = {spot_of(call) for call in calls}
            mine = [hazard for spot in spots for hazard in self._outlook.hazards_by_setup.get(spot, ())]
        else:
            mine = [hazard for use, hazard in self._outlook.hazards if self.concerns(use)]
        return sorted(dict.fromkeys(mine), key=lambda hazard: hazard.line)

    def refused_scheduler(self) -> str | None:
        """A scheduler that the program after the fix makes on an optimizer that DeepSpeed wrapped, as a reason."""
        for use in self._outlook.refused_schedulers if self._outlook is not None else ():
            if self.concerns(use):
                line = getattr(use.node, "lineno", use.stmt.lineno)
                return f"the scheduler on line {line} would be made on DeepSpeed's wrapped optimizer, which it refuses"
        return None

    def left_raw(self, wrapped_at: Iterable[ast.Call]) -> list[Use]:
        """Working uses of an object that still see it raw after the fix although it is set up by one of the calls."""
        if self._outlook is None:
            return []
        left = self._outlook.left_raw
        found = dict(pair for call in wrapped_at for pair in left.get(spot_of(call), ()))
        return sorted((found[number] for number in sorted(found)), key=lambda use: getattr(use.node, "lineno", 0))

    def captures(self, calls: Iterable[ast.Call]) -> list[Hazard]:
        """Places that take hold of a raw object before one of the calls sets it up, out of the analysis' sight."""
        if self._outlook is None:
            return []
        found = self._outlook.captures({spot_of(call) for call in calls})
        found += [hazard for use, hazard in self._outlook.owners if self.concerns(use)]
        return sorted(found, key=lambda hazard: hazard.line)

    def covers(self, call: Call) -> bool:
        """Whether a `backward` or `no_backward_sync` works on wrapped models only, after the fix, in its context."""
        return self._outlook is None or call_position(call) not in self._outlook.uncovered

    def used_wrapped(self, calls: Iterable[ast.Call]) -> bool:
        """Whether something after the fix uses what one of the set-up calls returned."""
        return self._outlook is None or any(spot_of(call) in self._outlook.used_wrapped for call in calls)

    def now_raw(self) -> list[Use]:
        """Uses, as they were, that saw a wrapped object (or its inside) and see only a raw one after the fix."""
        return [] if self._outlook is None else [use for use in self._outlook.now_raw if self.concerns(use)]

    def inserted_setups(self) -> list[ast.Call]:
        """The set-up calls that the fix puts in."""
        new = [call for call in self.after.setups() if getattr(call, "_fabric_fix_new", False)]
        return [call for call in new if self._is_mine([call])]

    def concerns(self, use: Use) -> bool:
        """Whether a use has to do with this fix, and not with one that is tried out together with it."""
        made = [maker(use)] if isinstance(use.obj, (Wrapped, Inside)) else []
        return self._is_mine([*made, use.node])

    def _is_mine(self, nodes: Sequence[ast.AST]) -> bool:
        return self._group is None or self._group.is_of(self.edits, nodes)


class _Group:
    """Fixes whose edits do not touch each other, with the statements that each of them touches."""

    def __init__(self) -> None:
        from fabric_fix.edits.plan import Regions

        self.members: list[Edits] = []
        self._taken = Regions()
        self._owners: dict[int, list[tuple[Region, Edits]]] = {}

    def takes(self, edits: Edits, regions: Sequence[Region]) -> bool:
        """Whether edits can be made beside the others; they are then one of them."""
        if self._taken.overlap(regions):
            return False
        self._taken.add(regions)
        self.members.append(edits)
        for region in regions:
            for line in range(region.start[0], region.end[0] + 1):
                self._owners.setdefault(line, []).append((region, edits))
        return True

    def is_of(self, edits: Edits, nodes: Sequence[ast.AST]) -> bool:
        """Whether nodes stand in the statements of a fix, or of none: then it may be any one's."""
        owners = [owner for node in nodes for owner in self._owners_of(node)]
        return not owners or edits in owners

    def _owners_of(self, node: ast.AST) -> list[Edits]:
        place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        around = self._owners.get(place[0], ())
        return [edits for region, edits in around if region.start <= place < max(region.end, (place[0], place[1] + 1))]


class _Trials:
    """The trials over one program: those of the rule that is asked, and the steps that all have taken."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._steps = 0
        self._count = 0
        self._sketched: list[Edits] | None = None
        self._together = False
        self._shared: dict[Edits, tuple[_Group | None, Outlook]] = {}

    def begin(self) -> None:
        """Another rule is asked."""
        self._count, self._sketched, self._together, self._shared = 0, None, False, {}

    def of(self, edits: Edits) -> tuple[_Group | None, Outlook | None]:
        """What edits lead to, and the group that they are tried out in; no outlook for a sketch."""
        if self._sketched is not None:
            self._sketched.append(edits)
            return None, None
        if edits in self._shared:
            return self._shared[edits]
        self._count += 1
        if self._count > MOST_ALONE and not self._together:
            raise ManyTrialsError
        return None, self.outlook(edits)

    def sketch(self, look: Callable[[], object]) -> None:
        """Note the edits that a rule comes to, and try them out together."""
        sketched = self._sketched = list[Edits]()
        look()
        self._sketched, self._together = None, True
        for group in self._grouped(dict.fromkeys(sketched)):
            self._share(group, group.members)

    def _grouped(self, sketched: Iterable[Edits]) -> list[_Group]:
        from fabric_fix.edits.plan import regions_of
        from fabric_fix.finding import Fix

        groups: list[_Group] = []
        for edits in sketched:
            try:
                regions = regions_of(self._program.tree, Fix("", edits))
            except EditError:
                continue  # which the trial by itself will say
            if any(group.takes(edits, regions) for group in groups) or len(groups) == MOST_GROUPS:
                continue
            groups.append(_Group())
            groups[-1].takes(edits, regions)
        return groups

    def _share(self, group: _Group, members: Sequence[Edits]) -> None:
        """Try edits out together, or, where something fails, each half of them."""
        outlook = self.outlook([edit for edits in members for edit in edits])
        if outlook.failure is None or len(members) == 1:
            self._shared.update({edits: (group if len(members) > 1 else None, outlook) for edits in members})
            return
        middle = len(members) // 2
        self._share(group, members[:middle])
        self._share(group, members[middle:])

    def outlook(self, edits: Sequence[Edit]) -> Outlook:
        """The program after some edits."""
        program = self._program
        program.deadline.check()
        if self._steps >= ALL_TRIALS:
            return Outlook(program, program, "the file has too many fixes to try them all out: repair it step by step")
        try:
            after = program.simulate(edits)
        except EditError as error:
            return Outlook(program, program, str(error))
        self._steps += BUDGET - after.interpreter.budget
        return Outlook(program, after, f"the program after the fix {after.gave_up}" if after.gave_up else None)


class ManyTrialsError(Exception):
    """A rule has so many fixes that they are to be tried out together."""


def check_rule(rule: type[Rule], program: Program) -> list[Finding]:
    """What a rule finds in a program."""
    trials = program.once(_Trials)
    trials.begin()
    try:
        return _look(rule, program)
    except ManyTrialsError:
        trials.sketch(lambda: _look(rule, program))
        return _look(rule, program)


def _look(rule: type[Rule], program: Program) -> list[Finding]:
    found: list[Finding] = []
    for finding in rule().check(program):
        found.append(finding)
        program.deadline.check(finding.span.line)
    return found


__all__ = ["Hazard", "ManyTrialsError", "Trial", "check_rule"]
