"""The package as it is shipped: nothing left out of it, no rule without its cases, no command of README untested."""

from __future__ import annotations

import fnmatch
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import fabric_fix
from fabric_fix import registry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LEFTOVERS = ("__pycache__", "*.py[cod]", ".*_cache", "*.egg-info")
"""What tools leave in any folder of a clone."""
LEFT_AT_THE_TOP = (".git", ".venv*", "build", "dist", ".hypothesis")
NO_RULE = {"demo"}
"""Folders under fixtures/ that belong to no rule."""


def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def rule_modules() -> set[str]:
    """The modules under codemods/ that are rules, not helpers of rules."""
    return {path.stem for path in (ROOT / "codemods").glob("*.py") if not path.stem.startswith("_")}


def files_under(folder: str) -> set[str]:
    """Every file of a folder of the clone that is to be shipped, relative to the clone."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file() or path.is_symlink())
    relative = (path.relative_to(ROOT) for path in paths)
    return {path.as_posix() for path in relative if not any(map(is_leftover, path.parts))}


def is_leftover(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in LEFTOVERS)


def copy_clone(target: Path) -> None:
    """Copy what a clean clone holds, with what is not committed yet."""
    top = shutil.ignore_patterns(*LEFT_AT_THE_TOP)
    everywhere = shutil.ignore_patterns(*LEFTOVERS)

    def ignored(folder: str, names: list[str]) -> set[str]:
        return everywhere(folder, names) | (top(folder, names) if Path(folder) == ROOT else set())

    shutil.copytree(ROOT, target, ignore=ignored, symlinks=True)


# nothing is left out of the packages


@pytest.mark.parametrize(("folder", "package"), [("codemods", "fabric_fix.codemods"), ("src/fabric_fix", "fabric_fix")])
def test_no_folder_with_code_is_missing_from_the_declared_packages(folder: str, package: str) -> None:
    home = ROOT / folder
    with_code = {path.parent.relative_to(home).parts for path in home.rglob("*.py")}
    found = {".".join((package, *parts)) for parts in with_code}
    assert found, f"no code under {folder}"
    assert found <= set(settings()["tool"]["setuptools"]["packages"])


def test_no_declared_package_is_missing_from_disk() -> None:
    setuptools = settings()["tool"]["setuptools"]
    for package in setuptools["packages"]:
        parts = package.removeprefix("fabric_fix").strip(".").split(".")
        home = ROOT / "codemods" if parts[0] == "codemods" else ROOT / "src" / "fabric_fix" / Path(*parts)
        assert list(home.glob("*.py")), package


# every rule is found, and has its cases


def test_no_rule_on_disk_is_missing_from_the_installed_rules() -> None:
    installed = [rule.__module__.removeprefix("fabric_fix.codemods.") for rule in registry.all_rules()]
    assert installed, "no rule is installed"
    assert sorted(installed) == sorted(rule_modules())


def test_no_rule_has_another_name_than_its_module() -> None:
    names = {rule.__module__.rpartition(".")[2]: rule.name for rule in registry.all_rules()}
    assert names == {module: module.replace("_", "-") for module in names}


def test_no_rule_is_without_documentation() -> None:
    assert [rule.code for rule in registry.all_rules() if len(rule.explanation().split()) < 20] == []


def test_no_rule_is_without_fixtures_and_no_fixtures_without_a_rule() -> None:
    folders = {path.name for path in (ROOT / "fixtures").iterdir() if path.is_dir()}
    assert folders - NO_RULE == rule_modules()


def test_no_row_of_the_readme_names_a_rule_that_is_none() -> None:
    rows = re.findall(r"^\| (FF\d{3}) \| `([a-z-]+)` \|", readme(), re.MULTILINE)
    assert len(rows) >= 15
    assert set(rows) <= {(rule.code, rule.name) for rule in registry.all_rules()}


# what is built holds what is here


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A source distribution of the clone, and the wheel built from that one as pip does; paths of the two archives."""
    scratch = tmp_path_factory.mktemp("distributions")
    copy_clone(scratch / "clone")
    sdist = build("sdist", scratch / "clone", scratch)
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "unpacked")
    (source,) = (scratch / "unpacked").iterdir()
    return sdist, build("wheel", source, scratch)


def build(kind: str, source: Path, scratch: Path) -> Path:
    """Build an "sdist" or a "wheel" of the project in `source`; return the archive."""
    target = scratch / kind
    target.mkdir()
    backend = f"import setuptools.build_meta as b, sys; b.build_{kind}(sys.argv[1])"
    command = [sys.executable, "-c", backend, str(target)]
    done = subprocess.run(command, cwd=source, env=build_environment(scratch), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (archive,) = target.iterdir()
    return archive


def build_environment(scratch: Path) -> dict[str, str]:
    """Environment variables under which Python has what the build needs: as it is, or with pip's download of it."""
    needed = settings()["build-system"]["requires"]
    if all(map(is_installed, needed)):
        return dict(os.environ)
    folder = scratch / "backend"
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), *needed]
        subprocess.run(pip, check=True)
    return {**os.environ, "PYTHONPATH": str(folder)}


def is_installed(needed: str) -> bool:
    requirement = Requirement(needed)
    try:
        return requirement.specifier.contains(importlib.metadata.version(requirement.name))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("folder", ["codemods", "fixtures", "tests", "benchmarks", "src/fabric_fix"])
def test_no_file_is_missing_from_the_source_distribution(distributions: tuple[Path, Path], folder: str) -> None:
    with tarfile.open(distributions[0]) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    assert files_under(folder) - shipped == set()


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", ".ci/run"])
def test_no_page_is_missing_from_the_source_distribution(distributions: tuple[Path, Path], name: str) -> None:
    with tarfile.open(distributions[0]) as archive:
        assert name in {member.partition("/")[2] for member in archive.getnames()}


def test_the_wheel_holds_the_package_and_the_rules_and_nothing_else(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {path.removeprefix("src/") for path in files_under("src/fabric_fix")}
    assert shipped == package | {f"fabric_fix/{path}" for path in files_under("codemods") if path.endswith(".py")}


def test_the_wheel_has_the_command(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert "fabric-fix = fabric_fix.__main__:main" in archive.read(name).decode()


# one version, one set of commands


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in settings()["project"]
    assert settings()["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "fabric_fix.__version__"}


def test_the_built_version_is_that_of_the_module(distributions: tuple[Path, Path]) -> None:
    assert distributions[1].name.split("-")[1] == fabric_fix.__version__


def test_the_changelog_begins_with_the_version() -> None:
    headings = re.findall(r"^## \[(.+?)\](.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0][0] == fabric_fix.__version__


@pytest.mark.parametrize(
    ("section", "last"), [("Install", "fabric-fix --diff fixtures/demo/input"), ("Tests", "pytest")]
)
def test_no_command_line_of_the_readme_is_missing_from_ci(section: str, last: str) -> None:
    line = first_command(section)
    assert line.endswith(f".venv/bin/{last}")
    assert line in [written.strip() for written in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()]


def test_the_ci_script_can_be_executed() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_pre_commit_hook_runs_the_command() -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^  entry: (.+)$", hooks, re.MULTILINE) == list(settings()["project"]["scripts"])


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def first_command(section: str) -> str:
    """The first line of the first block of commands under a heading of the README."""
    found = re.search(rf"^## {section}$.*?^```sh\n(.+?)$", readme(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"README has no commands under {section}"
    return found[1]


def test_no_option_of_the_command_is_missing_from_the_readme() -> None:
    done = subprocess.run([sys.executable, "-m", "fabric_fix", "--help"], capture_output=True, text=True, check=True)
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", done.stdout, re.MULTILINE)) - {"--help"}
    rows = "\n".join(re.findall(r"^\| (`--.+?) \|", readme(), re.MULTILINE))
    assert set(re.findall(r"--[a-z-]+", rows)) == options
