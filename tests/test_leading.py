"""What the texts of a project show: what its files import, and which of their names lead to Fabric."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fabric_fix.analysis.modules import Modules
from fabric_fix.analysis.relevance import words_in
from fabric_fix.reading import content, read_file

STEPS = "def step(fabric, loss):\n    fabric.backward(loss)\n\n\ndef count(items):\n    return len(items)\n"


def project(root: Path, files: dict[str, str]) -> Modules:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return Modules(os.path.realpath(root))


def names(modules: Modules, name: str) -> set[str]:
    return set(modules.leading.names(os.path.join(modules.root, name)))


@pytest.mark.parametrize(
    ("statement", "leads"),
    [
        ("from steps import step", True),
        ("from steps import (  # of a step (one)\n    count,\n    step as go,\n)", True),
        ("from steps import count, \\\n    step", True),
        ("from steps import *", True),
        ("try: from steps import step\nexcept ImportError: step = None", True),
        ("x = 1; from steps import step", True),
        ("def late():\n    from steps import step\n    step()", True),
        ("import steps", True),
        ("from . import steps", True),
        ("from steps import count", False),
        ("# from steps import step", False),
        ("from elsewhere import step", False),
    ],
)
def test_an_import_leads_where_the_name_does(tmp_path: Path, statement: str, leads: bool) -> None:
    for end in ("\n", "\r\n", "\r"):
        text = f"{statement}\n".replace("\n", end)
        modules = project(tmp_path, {"__init__.py": "", "steps.py": STEPS, "main.py": text})
        assert modules.leading.acts(os.path.join(modules.root, "main.py")) is leads, end


def test_a_module_leads_beside_one_of_its_names_only(tmp_path: Path) -> None:
    text = "import steps\n\n\ndef go():\n    steps.step(1, 2)\n\n\ndef size(x):\n    return steps.count(x)\n"
    modules = project(tmp_path, {"steps.py": STEPS, "main.py": text})
    assert names(modules, "main.py") == {"steps", "go"}


@pytest.mark.parametrize("first", ["a.py", "b.py"])
def test_files_that_import_each_other_give_the_same_in_every_order(tmp_path: Path, first: str) -> None:
    a = "from b import two\n\n\ndef one():\n    two()\n\n\ndef four(fabric):\n    fabric.setup(1)\n"
    b = "from a import four, one\n\n\ndef two():\n    four(one)\n"
    modules = project(tmp_path, {"a.py": a, "b.py": b})
    names(modules, first)
    assert names(modules, "a.py") == {"one", "two", "four"}
    assert names(modules, "b.py") == {"four", "one", "two"}


def test_functions_in_blocks_and_methods_count_and_what_only_runs_as_a_program_does_not(tmp_path: Path) -> None:
    agent = (
        "class Agent:\n    def fit(self):\n        self.fabric.backward(1)\n\n    def size(self):\n        return 1\n"
    )
    early = "if True:\n    def early(fabric):\n        fabric.launch()\n\n\ndef last():\n    return 1\n"
    program = 'if __name__ == "__main__":\n    early(1)\n'
    modules = project(tmp_path, {"main.py": f"{agent}\n\n{early}\n\n{program}"})
    assert names(modules, "main.py") == {"Agent", "fit", "early"}


def test_a_heading_in_a_docstring_ends_no_function(tmp_path: Path) -> None:
    text = 'def outer(fabric):\n    """Say\n\ndef inner():\n    """\n    fabric.setup(1)\n'
    modules = project(tmp_path, {"main.py": text})
    assert names(modules, "main.py") >= {"outer"}


@pytest.mark.parametrize(
    ("source", "word", "found"),
    [
        ("run(fabric)  # then distribute it", "distribute", False),
        ('"""Then distribute it."""', "distribute", False),
        ("raise ValueError('call distribute first')", "distribute", False),
        ('print("a\\n" + distribute(x) + " b")', "distribute", True),
        ('print("#"); distribute(x)', "distribute", True),
        ('print(f"it is {distribute(x)} now")', "distribute", True),
        ('getattr(fabric, "distribute")(x)', "distribute", True),
        ("x = ''; distribute(x); y = ''", "distribute", True),
        ("fabric.setup(x)", "setup", True),
        ("setup = 1", "setup", False),
    ],
)
def test_words_are_those_of_the_code(source: str, word: str, found: bool) -> None:
    assert (word in words_in(source)) is found


@pytest.mark.parametrize("size", [0, 10, 65_535, 65_536, 65_537, 3_000_000])
def test_files_of_any_size_are_read_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    assert read_file(str(path)) == path.read_bytes()
    assert content(str(tmp_path / "absent")) is None
    assert content(str(tmp_path)) is None
