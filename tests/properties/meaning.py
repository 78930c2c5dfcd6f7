"""What a program does with Fabric: a trace that does not depend on names, formatting, or where a set-up stands."""

from __future__ import annotations

import argparse
import builtins
import types
from collections.abc import Iterable, Mapping
from typing import Any

from tests.properties.fabric_double import lightning_modules
from tests.properties.torch_double import World, enter, torch_modules

Meaning = tuple[object, ...]
"""What happened under each strategy: events in order, and how often each object was set up."""

Files = Mapping[str, str]
"""The text of each file of a program by its path; `train.py` is the one that is run."""


class _Parser(argparse.ArgumentParser):
    """A parser that sees no command line."""

    def parse_args(self, *_: Any, **__: Any) -> Any:
        """The defaults."""
        return super().parse_args([])


def meaning(files: Files, families: Iterable[str]) -> Meaning:
    """What a program does under each of these families of strategies."""
    return tuple(_trace(files, family) for family in families)


def errors(found: Meaning) -> list[object]:
    """The mistakes that a program makes under any strategy."""
    runs: Any = found
    return [event for events, _ in runs for event in events if event[0] in ("error", "raised", "raw backward")]


def _trace(files: Files, family: str) -> tuple[object, ...]:
    world = World(family)
    enter(world)
    try:
        _Importer(files).run("train", "__main__")
    except Exception as error:  # a program that the fix breaks ends like this, and that is its meaning
        world.record("raised", type(error).__name__, str(error))
    return tuple(map(repr_event, world.events)), tuple(sorted(world.setups.items()))


def repr_event(event: tuple[object, ...]) -> tuple[object, ...]:
    """An event that can be compared and hashed."""
    return tuple(part if isinstance(part, (str, bool, type(None))) else repr(part) for part in event)


class _Importer:
    """Runs the files of a program with the stand-ins in the place of torch and Lightning."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._loaded: dict[str, Any] = {
            **torch_modules(),
            **lightning_modules(),
            "argparse": types.SimpleNamespace(ArgumentParser=_Parser),
        }

    def run(self, name: str, as_name: str) -> Any:
        """Execute a file as a module."""
        module = types.ModuleType(as_name)
        self._loaded[name] = module
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import, "print": lambda *_: None}
        path = f"{name.replace('.', '/')}.py"
        exec(compile(self._files[path], path, "exec"), module.__dict__)  # a program that the generator wrote
        return module

    def _import(self, name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
        if name not in self._loaded and f"{name.replace('.', '/')}.py" not in self._files:
            return builtins.__import__(name, _globals, _locals, names or (), level)
        wanted = name if names or "." not in name else name.partition(".")[0]
        if wanted not in self._loaded:
            self.run(wanted, wanted)
        return self._loaded[wanted]
