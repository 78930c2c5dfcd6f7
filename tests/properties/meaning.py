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
"""The text of each file of a program by its path."""


class _Parser(argparse.ArgumentParser):
    """A parser that sees no command line."""

    def parse_args(self, *_: Any, **__: Any) -> Any:
        """The defaults."""
        return super().parse_args([])


def meaning(files: Files, families: Iterable[str], program: str = "train.py") -> Meaning:
    """What a program does under each of these families of strategies."""
    return tuple(_trace(files, family, program) for family in families)


def errors(found: Meaning) -> list[object]:
    """The mistakes that a program makes under any strategy."""
    runs: Any = found
    return [event for events, _ in runs for event in events if event[0] in ("error", "raised", "raw backward")]


def _trace(files: Files, family: str, program: str) -> tuple[object, ...]:
    world = World(family)
    enter(world)
    try:
        _Importer(files, program).run()
    except Exception as error:  # a program that the fix breaks ends like this, and that is its meaning
        world.record("raised", type(error).__name__, str(error))
    return tuple(map(repr_event, world.events)), tuple(sorted(world.setups.items()))


def repr_event(event: tuple[object, ...]) -> tuple[object, ...]:
    """An event that can be compared and hashed."""
    return tuple(part if isinstance(part, (str, bool, type(None))) else repr(part) for part in event)


class _Importer:
    """Runs the files of a program with the stand-ins in the place of torch and Lightning."""

    def __init__(self, files: Files, program: str) -> None:
        self._files = files
        self._program = program
        folder = program.rpartition("/")[0]
        self._package = folder.replace("/", ".") if f"{folder}/__init__.py" in files else ""
        self._places = ["" if self._package or not folder else f"{folder}/", "", "src/"]
        self._loaded: dict[str, Any] = {
            **torch_modules(),
            **lightning_modules(),
            "argparse": types.SimpleNamespace(ArgumentParser=_Parser),
            "dataclasses": types.SimpleNamespace(dataclass=lambda cls: cls),  # all fields have defaults
        }
        self._own: set[str] = set()

    def run(self) -> None:
        """Execute the program: a file in a package as `python -m` does it."""
        if self._package:
            self._load(self._package)
        self._execute(types.ModuleType("__main__"), self._program, self._package)

    def _execute(self, module: types.ModuleType, path: str, package: str) -> None:
        own = {**vars(builtins), "__import__": self._import, "print": lambda *_: None}
        module.__dict__.update({"__builtins__": own, "__package__": package})
        exec(compile(self._files[path], path, "exec"), module.__dict__)  # a program that the generator wrote

    def _find(self, name: str) -> str | None:
        """The file of a module of the program, or the folder of a package without `__init__.py`."""
        for place in self._places:
            path = place + name.replace(".", "/")
            for file in (f"{path}/__init__.py", f"{path}.py"):
                if file in self._files:
                    return file
            if any(file.startswith(f"{path}/") for file in self._files):
                return f"{path}/"
        return None

    def _load(self, name: str) -> Any:
        if name in self._loaded:
            return self._loaded[name]
        parent, _, last = name.rpartition(".")
        above = self._load(parent) if parent else None
        if name in self._loaded:  # the package itself has imported it
            return self._loaded[name]
        path = self._find(name)
        if path is None:
            raise ModuleNotFoundError(name)
        module = self._loaded[name] = types.ModuleType(name)
        self._own.add(name)
        if above is not None:  # early, as an import in a cycle looks it up in `sys.modules`
            setattr(above, last, module)
        if not path.endswith("/"):
            self._execute(module, path, name if path.endswith("/__init__.py") else parent)
        return module

    def _import(self, name: str, own: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
        if level:
            base = ".".join(own["__package__"].split(".")[: len(own["__package__"].split(".")) - level + 1])
            name = f"{base}.{name}" if name else base
        top = name.partition(".")[0]
        if name in self._loaded and name not in self._own:
            return self._loaded[name if names else top]
        if top not in self._own and self._find(top) is None:
            return builtins.__import__(name, own, _locals, names or (), level)
        module = self._load(name)
        for wanted in names or ():
            if not hasattr(module, wanted) and self._find(f"{name}.{wanted}") is not None:
                self._load(f"{name}.{wanted}")
        return module if names else self._loaded[top]
