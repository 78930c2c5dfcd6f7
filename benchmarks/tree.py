"""Figure: 8,800 Python files of 150 MB, 1 in 100 using Fabric, in at most half of ruff's time and under 200 MB.

python -m benchmarks.tree

The tree is made of the standard library, of the packages of this Python's environment (Lightning apart), of litgpt's
source distribution as it is, and of the programs under fixtures/.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import (
    ROOT,
    Figure,
    add_common_options,
    beside_python,
    fetch_source,
    judge,
    measure_alternately,
    peak_memory,
    print_timings,
    warn_if_busy,
    without_cache,
)

FILES = 8_800
MEGABYTES = 150
USING_FABRIC = FILES // 100
OF_LIGHTNING = {"lightning", "lightning_fabric", "pytorch_lightning", "fabric_fix"}


def main() -> int:
    """Run the benchmark; return its exit status."""
    options = parse_options()
    warn_if_busy()
    with tempfile.TemporaryDirectory(prefix="fabric-fix-tree-") as scratch:
        tree = Path(scratch)
        print(make_tree(tree, fetch_source("litgpt", options.cache)), end="\n\n", flush=True)
        return measure(tree, options.ruff, options.fabric_fix, options.rounds)


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument("--ruff", default=beside_python("ruff"), help="the command (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def measure(tree: Path, ruff: str, fabric_fix: str, rounds: int) -> int:
    """Time both tools on `tree` in turn, print what was seen, return the exit status."""
    ours = [*without_cache(fabric_fix), "--check", "."]
    theirs = [ruff, "check", "--select", "F", "--no-cache", "."]
    commands = {
        "fabric-fix --check": ours,
        "ruff check --select F --no-cache": theirs,
        # not judged: what ruff needs when it prints nothing of what it finds
        "the same, --quiet --exit-zero --statistics": [*theirs, "--quiet", "--exit-zero", "--statistics"],
    }
    timings = list(measure_alternately(commands, tree, rounds).values())
    print_timings(timings)
    memory = peak_memory(ours, tree)
    return judge(
        [
            Figure("part of ruff's time, best of each", timings[0].best / timings[1].best, 0.5, "ratio"),
            Figure("part of ruff's time, median of each", timings[0].median / timings[1].median, 0.5, "ratio"),
            Figure("memory of all processes", memory, 200, "MB"),
        ]
    )


def make_tree(tree: Path, litgpt: Path) -> str:
    """Fill `tree`; the same for the same Python environment. Returns a line that describes it."""
    (tree / "pyproject.toml").write_text('[project]\nname = "tree"\nversion = "1"\n')
    shutil.copytree(litgpt, tree / "litgpt")
    of_litgpt = python_files(tree / "litgpt")
    using = [path for path in of_litgpt if b"fabric" in path.read_bytes()]
    spread_programs(tree, USING_FABRIC - len(using))
    fill(tree, FILES - len(of_litgpt) - (USING_FABRIC - len(using)))
    made = python_files(tree)
    size = sum(path.stat().st_size for path in made) / 1e6
    return f"{len(made)} files, {size:.0f} MB, {USING_FABRIC} using Fabric ({len(using)} of them litgpt's)"


def spread_programs(tree: Path, count: int) -> None:
    """Write `count` copies of the programs under fixtures/, each into a folder among the others."""
    programs = sorted(ROOT.glob("fixtures/**/input/**/*.py"))
    if not programs:
        sys.exit("no programs under fixtures/*/*/input")
    for number in range(count):
        place(programs[number % len(programs)], tree, number * FILES // count, number)


def fill(tree: Path, count: int) -> None:
    """Write `count` copies of files that have nothing to do with Fabric, of the wanted size together."""
    chosen = random.Random(1)
    mean = MEGABYTES * 1e6 / FILES
    sized = [(path, path.stat().st_size) for path in unrelated_files()]
    small = [(path, size) for path, size in sized if size <= mean]
    large = [(path, size) for path, size in sized if size > mean]
    written = 0
    for number in range(count):
        # from the side that brings the mean back to what it should be
        path, size = chosen.choice(large if written <= mean * number else small)
        place(path, tree, number, FILES + number)
        written += size


def place(source: Path, tree: Path, position: int, number: int) -> None:
    """Copy `source` under a name of its own into the folder for `position`, 25 files a folder, 8 folders a package."""
    folder = tree / f"package_{position // 200:02}" / f"part_{position // 25 % 8}"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / f"{source.stem}_{number}.py")


def unrelated_files() -> Iterator[Path]:
    """Files of the standard library and of installed packages other than Lightning."""
    for home in ("stdlib", "purelib"):
        root = Path(sysconfig.get_path(home))
        for path in python_files(root):
            first = path.relative_to(root).parts[0]
            if first not in OF_LIGHTNING and first != "site-packages" and path.is_file():
                yield path


def python_files(folder: Path) -> list[Path]:
    """All Python files under `folder`, sorted."""
    return sorted(folder.rglob("*.py"))


if __name__ == "__main__":
    sys.exit(main())
