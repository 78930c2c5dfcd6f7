"""Where imports lead within a project, and which programs lead to a file."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from fabric_fix.analysis.modules import SHIFT, Modules, is_test

FILES = {
    "pyproject.toml": "",
    "train.py": "import tool.steps as s\nfrom tool import agent\n",
    "twin.py": "",
    "tool/__init__.py": "from .agent import Agent as Agent\n",
    "tool/agent.py": "from . import steps\nfrom .deep.inner import (\n    thing,  # a comment\n    other,\n)\n",
    "tool/steps.py": "x = 1\n",
    "tool/twin.py": "",
    "tool/deep/inner.py": "from ..steps import x\nfrom ... import twin\n",
    "src/lib/__init__.py": "",
    "src/lib/core.py": "import lib\nimport numpy\n",
    "scripts/run.py": "from helper import go\nimport lib.core\n",
    "scripts/helper.py": "def go():\n    import tool.agent\n",
    "lightning/__init__.py": "class Fabric: ...\n",
    "tests/test_agent.py": "import tool.agent\n",
    "broken.py": "def f(:\n",
    "loop_a.py": "import loop_b\n",
    "loop_b.py": "import loop_a\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def resolved(root: Path, importer: str, name: str, level: int = 0) -> str | None:
    modules = Modules(os.path.realpath(root))
    module = modules.module(os.path.realpath(root / importer))
    assert module is not None
    place = modules.resolve(module, name, level)
    return None if place is None else os.path.relpath(place, root)


@pytest.mark.parametrize(
    ("importer", "name", "level", "place"),
    [
        ("train.py", "tool", 0, "tool"),
        ("train.py", "tool.steps", 0, "tool/steps.py"),
        ("train.py", "tool.deep", 0, "tool/deep"),
        ("tool/agent.py", "steps", 1, "tool/steps.py"),
        ("tool/agent.py", "", 1, "tool"),
        ("tool/deep/inner.py", "steps", 2, "tool/steps.py"),
        ("tool/agent.py", "tool.steps", 0, "tool/steps.py"),
        ("scripts/run.py", "helper", 0, "scripts/helper.py"),
        ("scripts/run.py", "lib.core", 0, "src/lib/core.py"),
        ("src/lib/core.py", "lib", 0, "src/lib"),
        ("train.py", "twin", 0, "twin.py"),
        ("train.py", "lightning", 0, None),
        ("train.py", "numpy", 0, None),
        ("train.py", "tool.nothing", 0, None),
        ("train.py", "", 3, None),
    ],
)
def test_imports_lead_to_files_and_packages_of_the_project(
    root: Path, importer: str, name: str, level: int, place: str | None
) -> None:
    assert resolved(root, importer, name, level) == place


def test_programs_lead_to_what_they_import_at_any_distance(root: Path) -> None:
    modules = Modules(os.path.realpath(root))
    paths = {name: os.path.realpath(root / name) for name in FILES if name.endswith(".py")}
    leading = {
        name: [os.path.relpath(path, root) for path in modules.importers(paths[name], paths.values())]
        for name in ("tool/steps.py", "scripts/helper.py", "src/lib/core.py", "loop_a.py", "twin.py")
    }
    assert leading["tool/steps.py"] == [
        "scripts/helper.py",
        "scripts/run.py",
        "tool/__init__.py",
        "tool/agent.py",
        "tool/deep/inner.py",
        "train.py",
    ]
    assert leading["scripts/helper.py"] == ["scripts/run.py"]
    assert leading["src/lib/core.py"] == ["scripts/run.py"]
    assert leading["loop_a.py"] == ["loop_b.py"]


def test_lines_of_files_do_not_meet_and_say_where_they_are(root: Path) -> None:
    modules = Modules(os.path.realpath(root))
    found = [modules.module(os.path.realpath(root / name)) for name in ("train.py", "tool/agent.py", "tool/steps.py")]
    lines = [node.lineno for module in found if module for node in ast.walk(module.tree) if isinstance(node, ast.stmt)]
    assert len({line // SHIFT for line in lines}) == 3
    assert all(line > SHIFT for line in lines)
    assert {modules.path_of(line) for line in lines} == {"train.py", "tool/agent.py", "tool/steps.py"}
    again = Modules(os.path.realpath(root)).module(os.path.realpath(root / "tool/steps.py"))
    assert again is not None
    assert found[2] is not None
    assert again.number == found[2].number


def test_what_cannot_be_parsed_is_unknown(root: Path) -> None:
    modules = Modules(os.path.realpath(root))
    assert modules.module(os.path.realpath(root / "broken.py")) is None
    assert modules.module(os.path.realpath(root / "absent.py")) is None
    assert modules.consulted()[os.path.realpath(root / "absent.py")] == ""


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("tests/helpers.py", True),
        ("pkg/test_x.py", True),
        ("x_test.py", True),
        ("conftest.py", True),
        ("testbed.py", False),
        ("latest/run.py", False),
        ("contest.py", False),
    ],
)
def test_tests_are_known_by_their_names(path: str, is_one: bool) -> None:
    assert is_test(f"/clone/{path}", "/clone") is is_one


@pytest.mark.parametrize(("name", "is_one"), [("train.py", False), ("test_train.py", True)])
def test_a_folder_above_the_project_makes_no_test(name: str, is_one: bool) -> None:
    assert is_test(f"/work/tests/clone/{name}", "/work/tests/clone") is is_one
    assert is_test(f"/work/tests/{name}", "") is is_one
