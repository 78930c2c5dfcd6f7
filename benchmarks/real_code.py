"""Figure: no wrong fix in real code: six projects that use Fabric are fixed, and fixed again; others must be clean.

python -m benchmarks.real_code                 tables: findings per project and rule, stability, code without Fabric
python -m benchmarks.real_code --list          every finding, one a line
python -m benchmarks.real_code --diff          every patch, to be read
python -m benchmarks.real_code --only litgpt   one project
python -m benchmarks.real_code --folder CLONE  any folder, as one project: a clone of Lightning or of older code, say

Exit status 1 when a fix breaks a file, a second run finds something more to fix, or code without Fabric has a finding.
Whether a finding is right only a reader can say: docs/real-code.md does.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import (
    SOURCE_DISTRIBUTIONS,
    add_common_options,
    fetch_source,
    fetch_wheel,
    print_table,
    without_cache,
)

STRATEGIES: tuple[tuple[str, ...], ...] = ((), ("deepspeed",))
"""What each project is looked at with: as it is, and as if it had to run on DeepSpeed."""

WITHOUT_FABRIC = {
    "fabric": "3.2.2",  # the SSH library, with its own `fabric`, `Connection` and `setup`
    "invoke": "2.2.0",
    "accelerate": "1.0.1",  # the nearest relative of Fabric: `prepare`, `backward(loss)`, `no_sync(model)`
    "transformers": "4.46.3",
    "peft": "0.13.2",
    "timm": "1.0.11",
    "pytorch-ignite": "0.5.1",
    "django": "5.1.3",
    "sqlalchemy": "2.0.36",
    "networkx": "3.4.2",
    "rich": "13.9.4",
}


@dataclass(frozen=True)
class Look:
    """What fabric-fix says about a project."""

    project: str
    folder: Path
    strategies: tuple[str, ...]
    findings: list[dict[str, Any]]
    """As `--output-format json` gives them."""
    errors: str
    """What it could not handle, as it says it."""

    @property
    def title(self) -> str:
        """The project and the options it was looked at with."""
        return " ".join([self.project, *strategy_options(self.strategies)])


def main() -> int:
    """Look at all the code; return the exit status."""
    options = parse_options()
    command = without_cache(options.fabric_fix)
    looks = [look(command, name, folder, s) for name, folder in projects(options).items() for s in STRATEGIES]
    print_counts(looks)
    faults = [fault for seen in looks for fault in check_fixes(command, seen, show=options.diff)]
    if options.list:
        print("\n".join(line for seen in looks for line in describe(seen)), end="\n\n")
    if options.only is None and not options.folder:
        faults += check_unrelated(command, options.cache)
    print("\n".join(faults) or "no broken file, no second fix, nothing found in code without Fabric")
    return 1 if faults else 0


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument("--only", choices=list(SOURCE_DISTRIBUTIONS), help="look at this project alone")
    parser.add_argument("--folder", type=Path, action="append", help="look at this folder instead; may be repeated")
    parser.add_argument("--list", action="store_true", help="print every finding")
    parser.add_argument("--diff", action="store_true", help="print every patch")
    return parser.parse_args()


def projects(options: argparse.Namespace) -> dict[str, Path]:
    """The projects to look at, with their folders."""
    if options.folder:
        return {folder.name: folder for folder in (path.resolve() for path in options.folder)}
    names = [name for name in SOURCE_DISTRIBUTIONS if options.only in (None, name)]
    return {name: fetch_source(name, options.cache) for name in names}


def strategy_options(strategies: Sequence[str]) -> list[str]:
    """The command line options that name these strategies."""
    return [word for name in strategies for word in ("--strategy", name)]


def look(command: Sequence[str], project: str, folder: Path, strategies: tuple[str, ...] = ()) -> Look:
    """Run `fabric-fix --check` over a folder; a crash or wrong usage ends the benchmark."""
    arguments = ["--check", "--output-format", "json", *strategy_options(strategies), "."]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1, 2) or not done.stdout:
        sys.exit(f"{project}: exit status {done.returncode}\n{done.stderr}")
    return Look(project, folder, strategies, json.loads(done.stdout), done.stderr if done.returncode == 2 else "")


def print_counts(looks: Sequence[Look]) -> None:
    """Print a table of the findings of each project, by rule and by whether they can be fixed."""
    rows = []
    for seen in looks:
        counts = Counter((finding["code"], applicability(finding)) for finding in seen.findings)
        for code in sorted({code for code, _ in counts}):
            rows.append([seen.title, code, *(counts[code, kind] for kind in ("safe", "unsafe", "none"))])
        if not counts:
            rows.append([seen.title, "nothing", 0, 0, 0])
    print_table(["project", "rule", "safe fix", "unsafe fix", "no fix"], rows)


def applicability(finding: dict[str, Any]) -> str:
    """Whether a finding has a "safe" fix, an "unsafe" one, or "none"."""
    return finding["fix"]["applicability"] if finding["fix"] else "none"


def describe(seen: Look) -> Iterator[str]:
    """One line for each finding, with its place, its fix and its reason; then what could not be handled."""
    yield f"## {seen.title}"
    for finding in seen.findings:
        path = Path(finding["filename"])
        place = path.relative_to(seen.folder) if path.is_absolute() else path
        line = (
            f"{place}:{finding['location']['row']}: {finding['code']} [{applicability(finding)}] {finding['message']}"
        )
        yield f"{line} ({finding['reason']})" if finding.get("reason") else line
    yield from seen.errors.splitlines()


def check_fixes(command: Sequence[str], seen: Look, *, show: bool) -> Iterator[str]:
    """Fix copies of the project, without and with the unsafe fixes; yield what is wrong then."""
    for unsafe in ([], ["--unsafe-fixes"]):
        options = [*strategy_options(seen.strategies), *unsafe]
        title = " ".join([seen.project, *options])
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch, seen.project)
            shutil.copytree(seen.folder, copy, symlinks=True)
            patch = run(command, [*options, "--diff", "."], copy)
            if show:
                print(f"## {title}\n\n{patch.decode(errors='replace')}")
            yield from (f"{title}: {fault}" for fault in check_fixed(command, options, copy, patch))


def check_fixed(command: Sequence[str], options: Sequence[str], copy: Path, patch: bytes) -> Iterator[str]:
    """Fix `copy` twice, and a copy of it with the patch; yield where they differ, and what no longer parses."""
    before = contents(copy)
    patched = patched_contents(copy, patch)
    run(command, [*options, "."], copy)
    fixed = contents(copy)
    run(command, [*options, "."], copy)
    yield from broken_files(before, fixed)
    yield from (f"{path}: changed by a second run" for path in changed(fixed, contents(copy)))
    yield from (f"{path}: the patch makes another file than the fix" for path in changed(fixed, patched))


def patched_contents(folder: Path, patch: bytes) -> dict[str, bytes]:
    """The Python files of a folder as `git apply` makes them with the patch."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, folder.name)
        shutil.copytree(folder, copy, symlinks=True)
        if patch:
            subprocess.run(["git", "apply"], input=patch, cwd=copy, check=True)
        return contents(copy)


def run(command: Sequence[str], arguments: Sequence[str], folder: Path) -> bytes:
    """Run fabric-fix and return its standard output; ends the benchmark when it crashes."""
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True)
    if done.returncode not in (0, 1, 2):
        sys.exit(f"{' '.join(arguments)} in {folder.name}: exit status {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def contents(folder: Path) -> dict[str, bytes]:
    """All Python files of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """The files that differ."""
    return [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]


def broken_files(before: dict[str, bytes], fixed: dict[str, bytes]) -> Iterator[str]:
    """Yield the files that a fix changed and that no longer parse."""
    for path in changed(before, fixed):
        try:
            ast.parse(fixed.get(path, b""))
        except SyntaxError as error:
            yield f"{path}: broken by a fix: {error}"


def check_unrelated(command: Sequence[str], cache: Path) -> Iterator[str]:
    """Look at code without Fabric, as if it had to run on DeepSpeed; print a table, yield what was found."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch, "library")
        ignored = shutil.ignore_patterns("site-packages", "dist-packages", "__pycache__")
        shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=ignored, ignore_dangling_symlinks=True)
        folders = {"standard library": library}
        folders |= {name: fetch_wheel(name, version, cache) for name, version in WITHOUT_FABRIC.items()}
        for name, folder in folders.items():
            seen = look(command, name, folder, ("deepspeed",))
            rows.append([name, len(contents(folder)), len(seen.findings), seen.errors.count("\n")])
            yield from (f"{name}: {line}" for line in list(describe(seen))[1:])
    print_table(["code without Fabric", "files", "findings", "errors"], rows)


if __name__ == "__main__":
    sys.exit(main())
