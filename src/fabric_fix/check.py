"""One file is looked at: parse, analyse, ask the rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from fabric_fix.analysis import known
from fabric_fix.analysis.events import Backward, Call, NoSync, Setup
from fabric_fix.analysis.modules import SHIFT
from fabric_fix.analysis.objects import Obj, Thing, raw
from fabric_fix.analysis.program import Program, TrialNeededError
from fabric_fix.analysis.project import Project
from fabric_fix.deadline import NEVER, Deadline
from fabric_fix.finding import Finding
from fabric_fix.records import Record, replace
from fabric_fix.rule import Rule
from fabric_fix.setups import owners

_FABRIC = re.compile("abric|LightningLite")
_METHOD = re.compile("setup|backward|no_sync")
_STRING = re.compile(r"""(?<!["'])"[^"'\\]+"(?!")|(?<!["'])'[^"'\\]+'(?!')""")


class CheckResult(Record):
    """What was found in one file; `gave_up` says why the look at it is incomplete."""

    findings: tuple[Finding, ...]
    gave_up: str | None = None
    visited: tuple[tuple[str, bool], ...] = ()
    """The real paths of the other files whose functions it calls, and whether that may show faults in them."""
    consulted: tuple[tuple[str, str], ...] = ()
    """Path and digest of the other files that this depends on."""
    gave_up_at: int = 1
    """The line that it had come to then."""
    is_open: bool = False
    """Whether models or optimizers come to it from callers that were not seen, or it only makes a Fabric for others."""


class Surroundings(Record):
    """What there is around a file."""

    root: str | None = None
    """The folder of its project, if it is in one."""
    importers: tuple[str, ...] = ()
    """The real paths of the programs that use it."""
    is_shown: bool = False
    """Something may be found in it, as a look at what it calls has shown, whatever words it has."""
    targets: frozenset[str] = frozenset()
    """For a program that is only looked at for what it calls: the real paths of the files that are asked about."""
    is_kept: bool = False
    """The result is kept for other runs, so that it has to say what it depends on."""
    beside: tuple[tuple[str, bytes], ...] = ()
    """Files, by their real paths, that are to be read as other bytes than are on disk."""


TOO_LARGE = "the program that this is a part of is too large to be analysed, so that no fix is sure: repair it by hand"
NOTHING_AROUND = Surroundings()
_projects: dict[tuple[str | None, tuple[tuple[str, bytes], ...]], Project] = {}


def project_of(around: Surroundings) -> Project:
    """The project that a file is in; one for all files of a run, so that each file around them is parsed once."""
    key = (around.root, around.beside)
    if key not in _projects:
        _projects[key] = Project(around.root, dict(around.beside))
    return _projects[key]


def forget() -> None:
    """Drop what is known of projects, whose files may have changed since."""
    _projects.clear()


def check_text(
    text: str,
    path: str,
    *,
    rules: Sequence[type[Rule]],
    strategies: tuple[str, ...] = (),
    real: str = "",
    around: Surroundings = NOTHING_AROUND,
    deadline: Deadline = NEVER,
) -> CheckResult:
    """Find what the rules have to say of one file, whose real path is `real` ('' for what is in no file).

    `strategies` are names as `Fabric(strategy=...)` takes them, which the program must run on beside its own.
    Raises what `ast.parse` raises (`SyntaxError`, `ValueError`, `RecursionError`), and `UnfinishedError`.
    """
    if not _names_fabric(text) and not around.importers and not around.is_shown:
        ast.parse(text)
        return CheckResult(())
    families, project = _families(strategies), project_of(around)
    visited: tuple[tuple[str, bool], ...] = ()
    if not around.importers:
        shallow = Program(text, path, families, project, real, deep=False, deadline=deadline)
        visited = _visited(shallow, rules)
        may_find = shallow.source.number in _homes(shallow, rules) or _may_find(shallow, rules)
        if not shallow.gave_up and not (may_find or (not strategies and _has_hints(shallow))):
            found_out = _dependencies(project, around)
            is_open = _is_open(shallow) or (not visited and not _METHOD.search(text))
            return CheckResult((), shallow.gave_up, visited, found_out, shallow.gave_up_at, is_open)
        program = shallow.deepened()
    else:
        program = Program(text, path, families, project, real, importers=around.importers, deadline=deadline)
    too_large = program.gave_up is not None
    if too_large:
        program = program.alone()
    if program.gave_up:
        return CheckResult((), program.gave_up, visited, _dependencies(project, around), program.gave_up_at)
    from fabric_fix.trial import check_rule

    found = [finding for rule in rules for finding in check_rule(rule, program)]
    if not strategies and (shown := undecided(program)):
        from fabric_fix.hinted import with_hints

        found = with_hints(program, found, rules, shown)
    own = [finding for finding in found if finding.span.line < SHIFT]
    broken = next((path for path in around.importers if project.modules.module(path) is None), None)
    if broken is not None:
        reason = f"`{project.modules.shown(broken)}` uses this file and cannot be parsed: repair it first"
        own = [replace(finding, fix=None, reason=reason) if finding.fix else finding for finding in own]
    if too_large:
        own = [replace(finding, fix=None, reason=TOO_LARGE) for finding in own]
    in_order = sorted(own, key=lambda finding: finding.sort_key)
    return CheckResult(tuple(in_order), None, visited, _dependencies(project, around))


def visited_by(
    text: str, path: str, rules: Sequence[type[Rule]], strategies: tuple[str, ...], real: str, around: Surroundings
) -> CheckResult:
    """Which files a program calls, and whether that may show faults in them; itself, when it shows one there."""
    project = project_of(around)
    program = Program(text, path, _families(strategies), project, real, deep=False)
    visited = _visited(program, rules)
    own = ((real, True),) if program.source.number in _homes(program, rules) else ()
    return CheckResult((), None, (*visited, *own), _dependencies(project, around))


def _dependencies(project: Project, around: Surroundings) -> tuple[tuple[str, str], ...]:
    return project.dependencies() if around.is_kept else ()


def _visited(program: Program, rules: Sequence[type[Rule]]) -> tuple[tuple[str, bool], ...]:
    modules, homes = program.visited(), _homes(program, rules)
    found = {one.path: one.number in homes or _may_find(program.seen_in(one), rules) for one in modules}
    if program.gave_up:  # what it would have come to as well
        for path in program.project.modules.reach(program.source.path):
            found.setdefault(path, False)
    return tuple(sorted(found.items()))


def _homes(program: Program, rules: Sequence[type[Rule]]) -> frozenset[int]:
    """The numbers of the files that those rules may have something to say of which look at all files at once."""
    if not program.interpreter.events:
        return frozenset()
    asked = program.once(_asked)
    for rule in rules:
        if rule.anywhere and rule not in asked:
            asked[rule] = {finding.span.line // SHIFT for finding in rule().check(program)}
    return frozenset().union(*asked.values())


def _asked(program: Program) -> dict[type[Rule], set[int]]:
    return {}


def _is_open(program: Program) -> bool:
    """Whether a model or an optimizer that is set up or trained is one that a caller or a subclass gives, not seen."""
    events = (event for event in program.interpreter.events.values() if program.owns(event.node))
    return any(_is_given(program, obj) for event in events for obj in _given(program, event))


def _given(program: Program, event: Call) -> Iterator[Obj]:
    """The models and optimizers that an event is about."""
    if isinstance(event, Backward) and any(_is_given(program, obj) for obj in event.deps):
        yield from event.deps & program.once(_called)  # a loss depends on numbers of a configuration, too
    if isinstance(event, (Backward, NoSync, Setup)):
        for argument in event.args:
            yield from argument.value


def _called(program: Program) -> frozenset[Obj]:
    return frozenset(use.obj for use in program.uses() if use.kind == "call")


def _is_given(program: Program, obj: Obj) -> bool:
    last = owners(raw(obj))[-1]
    return isinstance(last, Thing) and (last.kind == "param" or last in program.interpreter.left_open)


def _families(strategies: Sequence[str]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for name in strategies:
        found |= known.strategy_families(name, None, None)
    return found


def _may_find(program: Program, rules: Sequence[type[Rule]]) -> bool:
    """Whether a rule may have something to say of a file, as far as can be seen without trying a fix out."""
    if not any(program.owns(event.node) for event in program.interpreter.events.values()):
        return False  # nothing that a rule could ask about
    try:
        return any(True for rule in rules if not rule.anywhere for _ in rule().check(program))
    except TrialNeededError:
        return True
    except (LookupError, ValueError):  # a rule that reads the text, in a file that is only looked at from aside
        if program.is_aside:
            return True
        raise


def _has_hints(program: Program) -> bool:
    """Whether files of the project name a strategy for a Fabric whose source leaves it open."""
    return bool(undecided(program)) and bool(program.project.hints(program.source.path, program.text))


def undecided(program: Program) -> frozenset[str]:
    """Whether Fabrics are used whose strategy the source does not show ("unknown"), or leaves to Fabric ("auto")."""
    events = program.interpreter.events.values()
    found = frozenset[str]().union(*(fabric.strategies for event in events for fabric in event.fabrics))
    return found & {"unknown", "auto"}


def _names_fabric(text: str) -> bool:
    """Whether Fabric is named outside of comments, or so that a comment cannot be told from a string at once."""
    for match in _FABRIC.finditer(text):
        start = max(text.rfind("\n", 0, match.start()), text.rfind("\r", 0, match.start())) + 1
        line = text[start : match.start()]
        before, hash_sign, comment = _STRING.sub("", line).partition("#")
        if not hash_sign or "'" in before or '"' in before or "'''" in comment or '"""' in comment:
            return True
    return False
