"""Programs spread over the files of a project: modules, packages, imports in every form, a second program beside."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.properties.draw import Draw
from tests.properties.plan import Fault, Plan
from tests.properties.program import program_lines, with_comments
from tests.properties.sections import Lines, indented

ENTRY = 3
"""The rank of the file that is run; a file imports only from files of lower ranks, so that there are no cycles."""
BYSTANDERS = ("baseline.py", "scripts/baseline.py", "tests/test_parts.py")
"""Scripts that do not use Fabric."""
_MODULE_NAMES = (("parts", "steps", "core"), ("nets", "criteria", "loops"), ("models", "common", "training"))
_OWN = frozenset({"make_fabric", "parse", "Config", "STRATEGY", "OTHER_STRATEGY"})
"""What each program has for itself, as its strategy is there."""
_DRAWN_APART = ("strategies", "source", "style", "spelled", "faults", "kind of fault", "fault ", "strategy place")


@dataclass(frozen=True)
class Layout:
    """Where the files of a project are."""

    folder: str
    """Of the modules, with a slash at its end unless it is empty."""
    entry: str
    """The folder of the programs, in the same way."""
    package: str
    """What the modules are imported from; empty when they stand alone."""
    has_init: bool


LAYOUTS = (
    Layout("", "", "", False),
    Layout("app/", "", "app", True),
    Layout("app/", "app/", "app", True),
    Layout("src/app/", "", "app", True),
    Layout("app/", "", "app", False),
    Layout("app/", "scripts/", "app", True),
    Layout("app/modules/", "app/", "app.modules", True),
)


@dataclass
class Unit:
    """A function, a class or a constant of a program."""

    name: str
    lines: Lines
    needs: frozenset[str]
    """All names in it."""


@dataclass
class Split:
    """A program as units and the statements between them."""

    head: Lines = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    rest: Lines = field(default_factory=list)


@dataclass
class Spread:
    """What is drawn for a project but its wording."""

    draw: Draw

    def __post_init__(self) -> None:
        self.layout = self.draw.one("layout", *LAYOUTS)
        self.modules = self.draw.one("module names", *_MODULE_NAMES)
        self.plans = [Plan(self.draw, several_files=True)]
        self.second = self.draw.one("second program", "", "", "sharing", "sharing", "of its own")
        if self.second:
            self.plans.append(self._second_plan())

    def _second_plan(self) -> Plan:
        first = self.plans[0]
        if self.second == "of its own":
            return Plan(self.draw.apart("second"), True, 1)
        choices: tuple[tuple[str, ...], ...] = (("ddp",), first.families)
        if first.shape == "launch" and not {"xla", "xla_fsdp"}.isdisjoint(first.families):
            choices = (first.families,)
        made = Plan(self.draw.apart("second", _DRAWN_APART), True, 1, choices)
        made.accumulates, made.style = first.accumulates, first.style
        return made

    @property
    def programs(self) -> dict[str, tuple[str, ...]]:
        """The files that are run, each with the families of its strategies."""
        names = [f"{self.layout.entry}{name}.py" for name in ("train", "tune")]
        return {name: plan.families for name, plan in zip(names, self.plans, strict=False)}

    def files(self, faults: Iterable[Fault] = ()) -> dict[str, str]:
        """The files of the project by their paths."""
        return _Project(self, list(faults)).files()


def split(lines: Lines) -> Split:
    """The parts of a program that is one file."""
    made, last = Split(), 0
    for node in ast.parse("\n".join(lines)).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        text = lines[first - 1 : node.end_lineno]
        name = _unit_name(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            made.head += text
        elif name:
            made.units.append(Unit(name, text, _names_in(text)))
        elif first > last:  # not the second statement of a line
            made.rest += text
        last = node.end_lineno or first
    return made


def _unit_name(node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
        return node.targets[0].id
    return ""


def _names_in(lines: Lines) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", "\n".join(lines)))


class _Project:
    """Writes one project with some faults."""

    def __init__(self, spread: Spread, faults: list[Fault]) -> None:
        self._spread, self._draw, self._layout = spread, spread.draw, spread.layout
        self._programs = [split(program_lines(plan, faults)) for plan in spread.plans]
        self._ranks = self._ranked(self._programs[0].units)
        self._reexports = [self._form_of_reexport(rank) for rank in range(ENTRY)]
        self._inits: list[str] = []

    def _ranked(self, units: list[Unit]) -> dict[str, int]:
        """The file of each unit, by its rank."""
        found: dict[str, int] = {}
        for unit in units:
            drawn = self._draw.one(f"module of {unit.name}", ENTRY, 0, 1, 2, 0, 1, 2)
            found[unit.name] = max([drawn, *(found[name] for name in unit.needs if name in found)])
        return found

    def _form_of_reexport(self, rank: int) -> str:
        if not self._layout.has_init:
            return ""
        return self._draw.one(f"re-export {rank}", "", "relative", "absolute", "star")

    def files(self) -> dict[str, str]:
        first = self._programs[0]
        found: dict[str, str] = {}
        for rank in range(ENTRY):
            units = [unit for unit in first.units if self._ranks[unit.name] == rank]
            if units:
                path = f"{self._layout.folder}{self._module(rank)}.py"
                found[path] = self._file(path, rank, first.head, units, [])
        for number, path in enumerate(self._spread.programs):
            program = self._programs[number]
            units = [unit for unit in program.units if not self._is_shared(number, unit)]
            found[path] = self._file(path, ENTRY, program.head, units, program.rest)
        found |= self._bystander()
        return found | self._init_files(found)

    def _is_shared(self, number: int, unit: Unit) -> bool:
        """Whether a program takes a unit from the modules."""
        if self._ranks.get(unit.name, ENTRY) == ENTRY:
            return False
        if not number:
            return True
        of_first = next(one for one in self._programs[0].units if one.name == unit.name)
        if self._spread.second != "sharing" or unit.name in _OWN:
            return of_first.lines == unit.lines and unit.name not in _OWN and not _OWN & unit.needs
        return unit.name != "main" or self._spread.plans[0].shape == "launch"

    def _module(self, rank: int) -> str:
        return self._spread.modules[rank]

    def _dotted(self, rank: int) -> str:
        return ".".join(part for part in (self._layout.package, self._module(rank)) if part)

    # --- one file -----------------------------------------------------------------------------------------------------

    def _file(self, path: str, rank: int, head: Lines, units: list[Unit], rest: Lines) -> str:
        names = _names_in(rest).union(*(unit.needs for unit in units))
        own = {unit.name for unit in units}
        wanted: dict[int, list[str]] = {}
        for name, place in self._ranks.items():
            if name in names and name not in own and place < rank:
                wanted.setdefault(place, []).append(name)
        imports: Lines = []
        for place, some in sorted(wanted.items()):
            imports += self._import(path, place, some, units, rest)
        exported = self._exported(rank, own) if rank < ENTRY else []
        kept = head if rank == ENTRY else [line for line in head if _bound(line) & names]
        body = [line for unit in units for line in [*unit.lines, "", ""]]
        return with_comments(self._draw, [*kept, *imports, "", *exported, *body, *rest])

    def _exported(self, rank: int, names: Iterable[str]) -> Lines:
        if not self._draw.chance(f"all of {rank}", 40):
            return []
        return [f"__all__ = [{', '.join(repr(name) for name in sorted(names))}]", ""]

    def _import(self, path: str, rank: int, names: list[str], units: list[Unit], rest: Lines) -> Lines:
        """The import of some names from a module; changes the units and the rest to what it calls them by."""
        draw, module, dotted, package = self._draw, self._module(rank), self._dotted(rank), self._layout.package
        form = draw.one(f"import of {rank} in {path}", *self._forms(path, rank))
        listed = ", ".join(names)
        up = "." if os.path.dirname(path) + "/" == self._layout.folder else f".{package.rpartition('.')[2]}"
        lines, prefix = {
            "from": ([f"from {dotted} import {listed}"], ""),
            "alias": ([f"from {dotted} import {', '.join(f'{name} as {name}_here' for name in names)}"], ""),
            "star": ([f"from {dotted} import *"], ""),
            "module": ([f"import {dotted}"], dotted),
            "module as": ([f"import {dotted} as the_{module}"], f"the_{module}"),
            "package": ([f"from {package} import {module}"], module),
            "re-export": ([f"from {package} import {listed}"], ""),
            "relative": ([f"from {up if up == '.' else up + '.'}{module} import {listed}"], ""),
            "relative module": ([f"from {up} import {module}"], module),
            "try": (
                ["try:", f"    from {dotted} import {listed}", "except ImportError:", "    raise"],
                "",
            ),
        }[form]
        if prefix:
            _rename(names, lambda name: f"{prefix}.{name}", units, rest)
        elif form == "alias":
            _rename(names, lambda name: f"{name}_here", units, rest)
        inside = draw.chance(f"import of {rank} within functions of {path}", 20) and form not in ("star", "try")
        users = [unit for unit in units if _names_in(unit.lines) & _bound(lines[0])]
        if not inside or _bound(lines[0]) & _names_in(rest) or not all(u.lines[0].startswith("def ") for u in users):
            return lines
        for unit in users:
            unit.lines = [unit.lines[0], *indented(lines), *unit.lines[1:]]
        return []

    def _forms(self, path: str, rank: int) -> list[str]:
        forms = ["from", "from", "alias", "module", "module as", "star", "try"]
        if self._layout.package:
            forms.append("package")
            if self._reexports[rank]:
                forms += ["re-export", "re-export"]
        if self._layout.has_init and os.path.dirname(path).startswith("app"):
            forms += ["relative", "relative module"] * 2
        return forms

    # --- other files --------------------------------------------------------------------------------------------------

    def _bystander(self) -> dict[str, str]:
        """A script without Fabric, which uses what is in the modules."""
        form = self._draw.one("bystander", "", "script", "test")
        names = [name for name in ("make_model", "compute_loss") if self._ranks[name] < ENTRY]
        if not form or not names:
            return {}
        lines = [f"from {self._dotted(self._ranks[name])} import {name}" for name in names]
        made = "make_model(4, 1)" if "make_model" in names else "torch.nn.Linear(4, 1)"
        inputs = "torch.ones(2, 4), torch.ones(2, 1)"
        loss = f"compute_loss(net, {inputs})" if "compute_loss" in names else "net(torch.ones(2, 4)).mean()"
        work = [f"net = {made}", "sgd = torch.optim.SGD(net.parameters(), lr=0.1)"]
        work += [
            "for _ in range(3):",
            "    sgd.zero_grad()",
            f"    loss = {loss}",
            "    loss.backward()",
            "    sgd.step()",
        ]
        head = ["import torch", *lines, "", ""]
        if form == "test":
            return {BYSTANDERS[2]: "\n".join([*head, "def test_training():", *indented(work), ""])}
        path = BYSTANDERS[self._layout.entry == "scripts/"]
        return {path: "\n".join([*head, "def main():", *indented(work), "", "", "main()", ""])}

    def _init_files(self, files: dict[str, str]) -> dict[str, str]:
        layout = self._layout
        if not layout.has_init:
            return {}
        found = {"app/__init__.py": ""} if layout.package != "app" else {}
        lines: Lines = []
        for rank in range(ENTRY):
            names = [name for name, place in self._ranks.items() if place == rank]
            form = self._reexports[rank]
            if form and f"{layout.folder}{self._module(rank)}.py" in files:
                source = self._dotted(rank) if form == "absolute" else f".{self._module(rank)}"
                lines.append(f"from {source} import {'*' if form == 'star' else ', '.join(names)}")
        return found | {f"{layout.folder}__init__.py": "".join(line + "\n" for line in lines)}


def _bound(line: str) -> set[str]:
    """The names that an import binds."""
    node = ast.parse(line if line != "try:" else "import os").body[0]
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return set()
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}


def _rename(names: list[str], new: Callable[[str], str], units: list[Unit], rest: Lines) -> None:
    pattern = re.compile(rf"(?<![\w.\"'])({'|'.join(names)})\b")
    for unit in units:
        unit.lines = [pattern.sub(lambda match: new(match[1]), line) for line in unit.lines]
    rest[:] = [pattern.sub(lambda match: new(match[1]), line) for line in rest]
