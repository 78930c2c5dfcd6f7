"""The strategies that YAML says: of hydra, OmegaConf, plain configurations, and the steps of GitHub workflows.

A mapping counts whose `_target_` is Fabric, or that has `strategy` beside `accelerator`, `devices`, `num_nodes` or
`precision`, at the top or under `fabric`; and one whose `_target_` is a strategy class of Fabric. (Under `trainer` and
the like it is a Trainer's.)

hydra composes a configuration of files: the main one names, in `defaults`, which file of each group it takes. Only
what the main configuration ends up with counts. The other files of a group are there for `group=other` on a command
line that nobody has written yet: to take them for strategies of the program would find faults in any project that ships
hydra groups for everything, and experiments (`experiment/*.yaml`) are such files as well. Where a configuration does
not say with `_self_` whether it or its defaults come last, only what holds either way counts, as versions of hydra
differ.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from fabric_fix.analysis import known
from fabric_fix.analysis.hint_commands import Command, Shell, joined
from fabric_fix.strategies import normal_name

MATTERS = re.compile(r"trateg")
"""YAML without this says no strategy."""
HAS_DEFAULTS = re.compile(r"(?m)^defaults\s*:")
_BESIDE = frozenset({"accelerator", "devices", "num_nodes", "precision"})
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool"))
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*(?:\.\w+)*)\}")
_ENVIRONMENT = re.compile(r"\$\{oc\.env:\w+,\s*[\"']?(\w+)[\"']?\s*\}")
HAS_PACKAGE = re.compile(r"(?m)\A(?:\s*#.*\n)*?\s*#\s*@package\s+(\S+)")
_NODES = 20_000
"""Nodes looked at in one file, with those that aliases repeat."""
_DEEP = 10
"""Configurations that include one another, and references to references."""


class Leaf(NamedTuple):
    """A scalar (None for a null, or with a tag of somebody's own) and its place."""

    value: str | None
    path: str
    line: int


Tree: TypeAlias = "dict[str, Tree] | list[Tree] | Leaf"
Read = Callable[[str], "str | None"]
"""Gives the text of a file, or None."""


class Stated(NamedTuple):
    """A strategy that a configuration says, in the spelling of `strategies.NAMES`, and where."""

    strategy: str
    accelerator: str | None
    path: str
    line: int


# --- reading ----------------------------------------------------------------------------------------------------------


def documents(text: str, path: str) -> list[Tree]:
    """The documents of a YAML text, without making anything of its tags; none when it is broken."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [_Builder(path).tree(node) for node in yaml.compose_all(text, Loader=loader) if node is not None]
    except (yaml.YAMLError, ValueError, RecursionError):
        return []


class _Builder:
    """Makes trees of nodes, within a budget: aliases can repeat one another without end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = _NODES

    def tree(self, node: Any) -> Tree:
        self._left -= 1
        if self._left < 0:
            raise ValueError("too many nodes")
        plain = node.tag.startswith("tag:yaml.org,2002:")
        if plain and node.id == "mapping":
            return self._mapping(node)
        if plain and node.id == "sequence":
            return [self.tree(item) for item in node.value]
        value = node.value if node.tag in _PLAIN_TAGS and isinstance(node.value, str) else None
        return Leaf(value, self._path, node.start_mark.line + 1)

    def _mapping(self, node: Any) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        merged: dict[str, Tree] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                tree = self.tree(value)
                for part in reversed(tree if isinstance(tree, list) else [tree]):
                    merged.update(part if isinstance(part, dict) else {})
            elif isinstance(key.value, str):
                found[key.value] = self.tree(value)
        return {**merged, **found}


# --- what it says -----------------------------------------------------------------------------------------------------


def stated(tree: Tree) -> list[Stated]:
    """The strategies that a whole configuration says for Fabric."""
    return list(_visit(tree, tree, ""))


def _visit(tree: Tree, whole: Tree, key: str) -> Iterator[Stated]:
    if isinstance(tree, list):
        for item in tree:
            yield from _visit(item, whole, "*")
    if not isinstance(tree, dict):
        return
    skipped = None
    if _is_fabric(tree, key):
        skipped = "strategy"
        yield from _of(tree["strategy"], tree, whole)
    elif _class_of(tree):
        yield from _of(tree, {}, whole)
    for name, part in tree.items():
        if name != skipped:
            yield from _visit(part, whole, name)


def _is_fabric(tree: dict[str, Tree], key: str) -> bool:
    if "strategy" not in tree:
        return False
    target = _text(tree.get("_target_"))
    if target is not None:
        return known.is_fabric_class(target)
    return "_target_" not in tree and key in ("", "fabric") and not _BESIDE.isdisjoint(tree)


def _of(node: Tree, beside: dict[str, Tree], whole: Tree) -> Iterator[Stated]:
    accelerator, devices = (_text(_resolved(beside.get(name), whole)) for name in ("accelerator", "devices"))
    found = _resolved(node, whole)
    name = _named(found)
    if name is not None and (accelerator or "").lower() == "tpu":
        families = known.strategy_families(name, accelerator, devices)
        name = normal_name(min(families)) if families != {"auto"} else name
    place = node if isinstance(node, Leaf) else _first(found)
    if name is not None and place is not None:
        yield Stated(name, accelerator, place.path, place.line)


def _named(node: Tree | None) -> str | None:
    """The name of a strategy that is written as a text or as a `_target_`."""
    if isinstance(node, Leaf):
        return normal_name(node.value or "")
    family = _class_of(node) if isinstance(node, dict) else None
    stage = _text(node.get("stage")) if isinstance(node, dict) else None
    return normal_name(f"deepspeed_stage_{stage}" if family == "deepspeed" and stage else family or "")


def _class_of(tree: dict[str, Tree]) -> str | None:
    target = _text(tree.get("_target_")) or ""
    return known.strategy_class(target) if target.startswith(("lightning.fabric.", "lightning_fabric.")) else None


def _text(node: Tree | None) -> str | None:
    return node.value if isinstance(node, Leaf) else None


def _first(node: Tree | None) -> Leaf | None:
    """The place of a mapping: that of its `_target_`."""
    target = node.get("_target_") if isinstance(node, dict) else node
    return target if isinstance(target, Leaf) else None


def _resolved(node: Tree | None, whole: Tree, depth: int = 0) -> Tree | None:
    """A node with what its `${…}` stand for; a text that still has one is no name of anything."""
    if not isinstance(node, Leaf) or node.value is None or depth > _DEEP:
        return node
    text = _ENVIRONMENT.sub(r"\1", node.value)
    if match := _REFERENCE.fullmatch(text):
        return _resolved(_looked_up(whole, match[1]), whole, depth + 1)

    def value(match: re.Match[str]) -> str:
        return _text(_resolved(_looked_up(whole, match[1]), whole, depth + 1)) or match[0]

    return node._replace(value=_REFERENCE.sub(value, text))


def _looked_up(tree: Tree | None, path: str) -> Tree | None:
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


# --- hydra ------------------------------------------------------------------------------------------------------------


def of_main(path: str, read: Read, top: str) -> list[Stated]:
    """What the main configuration of a hydra program says, with what it takes from its groups below `top`."""
    first, last = (stated(_Composer(read, top, self_last).whole(path)) for self_last in (False, True))
    return [one for one in first if one.strategy in {other.strategy for other in last}]


class _Composer:
    """Composes a configuration of its files."""

    def __init__(self, read: Read, top: str, self_last: bool) -> None:
        self._read, self._top, self._self_last = read, top, self_last
        self._files = 100
        self._taken: dict[str, Tree] = {}

    def whole(self, path: str) -> Tree:
        return self._config(path, 0)[0]

    def _config(self, path: str, depth: int) -> tuple[dict[str, Tree], str | None]:
        """A configuration with its defaults, and the `@package` that its head asks for."""
        self._files -= 1
        text = self._read(path) if depth <= _DEEP and self._files > 0 else None
        found = documents(text, path) if text is not None else []
        own = found[0] if found and isinstance(found[0], dict) else {}
        package = HAS_PACKAGE.match(text or "")
        defaults = own.pop("defaults", [])
        parts = self._parts(path, defaults if isinstance(defaults, list) else [], own, depth)
        merged: dict[str, Tree] = {}
        for part in parts:
            merged = _merged(merged, part)
        return merged, package[1] if package else None

    def _parts(self, path: str, defaults: list[Tree], own: dict[str, Tree], depth: int) -> Iterator[dict[str, Tree]]:
        has_self = any(isinstance(entry, Leaf) and entry.value == "_self_" for entry in defaults)
        if not has_self and not self._self_last:
            yield own
        entries = [entry for entry in defaults if isinstance(entry, dict) and len(entry) == 1]
        for entry in entries:
            ((key, option),) = entry.items()
            if key.startswith("override "):
                self._taken.setdefault(_group(key).lstrip("/"), option)
        for default in defaults:
            if isinstance(default, Leaf) and default.value == "_self_":
                yield own
            elif isinstance(default, Leaf) and default.value:
                name, _, package = default.value.partition("@")
                yield from self._chosen(path, "", name, package or os.path.dirname(name).strip("/"), depth)
            elif isinstance(default, dict) and len(default) == 1:
                yield from self._of_group(path, default, depth)
        if not has_self and self._self_last:
            yield own

    def _of_group(self, path: str, entry: dict[str, Tree], depth: int) -> Iterator[dict[str, Tree]]:
        ((key, option),) = entry.items()
        if key.startswith("override "):
            return
        group = _group(key)
        option = self._taken.get(group.lstrip("/"), option)
        package = key.partition("@")[2] or group.lstrip("/")
        for one in option if isinstance(option, list) else [option]:
            if name := _text(one):
                yield from self._chosen(path, group, name, package, depth)

    def _chosen(self, path: str, group: str, name: str, package: str, depth: int) -> Iterator[dict[str, Tree]]:
        """The file of a group, or beside a configuration, put where its package says."""
        relative = os.path.join(group.lstrip("/"), name.lstrip("/"))
        relative += "" if relative.endswith((".yaml", ".yml")) else ".yaml"
        folder = os.path.dirname(path)
        folders = [folder] if not (group or name).startswith("/") else list(_upwards(folder, self._top))
        for place in folders:
            file = os.path.normpath(os.path.join(place, relative))
            if file != path and self._read(file) is not None:
                tree, asked = self._config(file, depth + 1)
                yield _placed(tree, asked or package)
                return


def _group(key: str) -> str:
    return key.removeprefix("override ").removeprefix("optional ").partition("@")[0].strip()


def _upwards(folder: str, top: str) -> Iterator[str]:
    while folder.startswith(top):
        yield folder
        if folder in (top, os.path.dirname(folder)):
            return
        folder = os.path.dirname(folder)


def _placed(tree: dict[str, Tree], package: str) -> dict[str, Tree]:
    names = [] if package in ("_global_", "_here_", ".") else re.split(r"[./]", package.removeprefix("_global_."))
    for name in reversed([name for name in names if name]):
        tree = {name: tree}
    return tree


def _merged(under: dict[str, Tree], over: dict[str, Tree]) -> dict[str, Tree]:
    found = dict(under)
    for name, value in over.items():
        below = found.get(name)
        found[name] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return found


# --- workflows --------------------------------------------------------------------------------------------------------


def of_workflow(text: str, path: str) -> Iterator[Command]:
    """The commands in the steps of a GitHub workflow, which see the `env` of step, job and workflow."""
    for whole in documents(text, path):
        jobs = whole.get("jobs") if isinstance(whole, dict) else None
        for job in jobs.values() if isinstance(jobs, dict) else ():
            steps = job.get("steps") if isinstance(job, dict) else None
            for step in steps if isinstance(steps, list) else ():
                yield from _step([whole, job, step], text.splitlines())


def _step(levels: list[Tree], lines: list[str]) -> Iterator[Command]:
    variables: dict[str, Tree] = {}
    for level in levels:
        env = level.get("env") if isinstance(level, dict) else None
        variables.update(env if isinstance(env, dict) else {})
    step = levels[-1]
    run = step.get("run") if isinstance(step, dict) else None
    if not isinstance(run, Leaf) or run.value is None:
        return
    shell = Shell()
    for name, value in variables.items():
        if text := _text(value):
            shell.export(name, text)
    shell.folder = _text(step.get("working-directory")) or "" if isinstance(step, dict) else ""
    start = run.line + bool(re.search(r"[|>][-+\d]*\s*(#.*)?$", lines[run.line - 1]))
    for number, line in joined(enumerate(run.value.splitlines(), start)):
        yield from shell.run(number, line)
