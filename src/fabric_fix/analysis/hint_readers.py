"""Which configurations a Python file names, and which files of the project it imports."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

_MAIN = re.compile(r"hydra\.main\(([\s\S]{0,1000}?)(?:\n(?:async )?def |\n@|\Z)")
_KEYWORD = re.compile(r"\b(config_path|config_name)\s*=\s*([\"'])([^\"']*)\2")
_LITERAL = re.compile(r"[\"']([\w./-]+\.ya?ml)[\"']")
_IMPORT = re.compile(r"(?m)^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]+))")
READS_CONFIGS = re.compile(
    r"hydra|omegaconf|OmegaConf|yaml|jsonargparse|pyrallis|draccus|\bcfg\b|config", re.IGNORECASE
)
"""A file without this takes nothing from a configuration, as far as its text shows."""
_FILES = 300
"""Files followed from one program."""

Read = Callable[[str], "str | None"]


def hydra_mains(text: str, path: str) -> Iterator[tuple[str | None, str]]:
    """The folder and the name of each main configuration that `hydra.main` is given; None for a computed folder."""
    for match in _MAIN.finditer(text):
        given = {name: value for name, _, value in _KEYWORD.findall(match[1])}
        if "config_name" in given:
            folder: str | None = None
            if "config_path" in given or "config_path" not in match[1]:
                folder = os.path.normpath(os.path.join(os.path.dirname(path), given.get("config_path", ".")))
            yield folder, given["config_name"].removesuffix(".yaml")


def literal_configs(text: str) -> list[str]:
    """The paths of YAML files that a program names."""
    return _LITERAL.findall(text)


def names_a_config(text: str) -> bool:
    """Whether a file says which configuration is its own."""
    return bool(_LITERAL.search(text)) or any(True for _ in hydra_mains(text, ""))


def imported(path: str, top: str, read: Read) -> frozenset[str]:
    """The files of a project that a program imports, directly or through others, and itself."""
    found = {path}
    pending = [path]
    while pending and len(found) < _FILES:
        file = pending.pop()
        for other in _imports(read(file) or "", file, os.path.dirname(path), top):
            if other not in found and read(other) is not None:
                found.add(other)
                pending.append(other)
    return frozenset(found)


def _imports(text: str, file: str, beside: str, top: str) -> Iterator[str]:
    """The files that the imports of a file can mean."""
    for match in _IMPORT.finditer(text):
        module = match[1]
        if module is None:
            for name in match[3].split(","):
                yield from _files([beside, top, os.path.join(top, "src")], name.split()[0] if name.split() else "")
            continue
        level = len(module) - len(module.lstrip("."))
        homes = [beside, top, os.path.join(top, "src")]
        if level:
            homes = [os.path.normpath(os.path.join(os.path.dirname(file), *[".."] * (level - 1)))]
        names = [name.split()[0] for name in match[2].strip("()").split(",") if name.split()]
        yield from _files(homes, module[level:])
        for name in names:
            yield from _files(homes, f"{module[level:]}.{name}".strip("."))


def _files(homes: list[str], module: str) -> Iterator[str]:
    if not re.fullmatch(r"\w+(\.\w+)*", module):
        return
    relative = module.replace(".", os.sep)
    for home in homes:
        yield os.path.join(home, relative + ".py")
        yield os.path.join(home, relative, "__init__.py")
