"""Figure: 100,000 Python files, 1 in 100 using Fabric: time and memory grow in step with the number of files.

python -m benchmarks.scale                  10,000 and 100,000 files, about 1 GB on disk while it runs
python -m benchmarks.scale --files 20000    2,000 and 20,000

The files are made: modules of functions, classes, tables and tests without Fabric, of 1 to 40 kB, and training programs
with it, right ones and wrong ones. What a file costs may be 1.3 times as much in the large tree as in one of a tenth;
memory may be 1.3 times as much beyond what each file takes that is there at all (2 kB).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import (
    Figure,
    Timing,
    add_common_options,
    judge,
    peak_memory,
    print_table,
    run_once,
    warn_if_busy,
    without_cache,
)
from benchmarks.shapes import training_program

FILES = 100_000
ONE_USING_FABRIC_IN = 100
MOST = 1.3
"""Times as much for a file in the large tree as in the small one."""
PER_FILE = 0.002
"""MB for each file that is there at all: its path twice, its settings, and what is found in one of 100."""
WORDS = ("batch", "cache", "node", "index", "report", "token", "layer", "frame", "client", "order", "buffer", "signal")


@dataclass(frozen=True)
class Size:
    """What a tree of some files took."""

    files: int
    wall: float
    processor: float
    memory: float
    """Peak of all processes, in MB."""


def main() -> int:
    """Run the benchmark; return its exit status."""
    options = parse_options()
    warn_if_busy()
    command = [*without_cache(options.fabric_fix), "--check", "--quiet", "."]
    small, large = (measure(command, files, options.rounds) for files in (options.files // 10, options.files))
    rows = [[s.files, f"{s.wall:.2f}", f"{s.processor:.2f}", f"{s.memory:.0f}"] for s in (small, large)]
    print_table(["files", "wall s", "processor s", "memory MB"], rows)
    times = large.files / small.files
    return judge(
        [
            Figure("wall time of a file", large.wall / small.wall / times, MOST, "times"),
            Figure("processor time of a file", large.processor / small.processor / times, MOST, "times"),
            Figure("memory", large.memory, small.memory * MOST + (large.files - small.files) * PER_FILE, "MB"),
        ]
    )


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument("--files", type=int, default=FILES, help="files of the larger tree (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def measure(command: Sequence[str], files: int, rounds: int) -> Size:
    """The best of some runs over a tree of that many files, and the memory of one more."""
    with tempfile.TemporaryDirectory(prefix="fabric-fix-scale-") as scratch:
        tree = Path(scratch)
        make_tree(tree, files)
        timing = Timing("check")
        run_once(Timing("warm-up"), command, tree)
        for _ in range(rounds):
            run_once(timing, command, tree)
        return Size(files, timing.best, min(timing.processor), peak_memory(command, tree))


def make_tree(tree: Path, files: int) -> None:
    """Fill a folder with files, the same for the same number: 25 a folder, 8 folders a package."""
    (tree / "pyproject.toml").write_text('[project]\nname = "scale"\nversion = "1"\n')
    for number in range(files):
        chosen = random.Random(number)
        folder = tree / f"package_{number // 200:03}" / f"part_{number // 25 % 8}"
        folder.mkdir(parents=True, exist_ok=True)
        uses_fabric = number % ONE_USING_FABRIC_IN == 0
        text = training_program(chosen) if uses_fabric else unrelated(chosen)
        (folder / f"{chosen.choice(WORDS)}_{number}.py").write_text(text)


def unrelated(chosen: random.Random) -> str:
    """A module without Fabric, of some parts."""
    parts = [f'"""Code of {chosen.choice(WORDS)}."""\n\nimport os\nimport sys\n']
    for number in range(min(int(chosen.paretovariate(0.9)) + 1, 60)):
        parts.append(chosen.choice(_PARTS)(chosen, f"{chosen.choice(WORDS)}_{number}"))
    return "\n\n".join(parts)


def _function(chosen: random.Random, name: str) -> str:
    lines = [f"def {name}(first, second=None, *rest, **options):", f'    """Handle {name}."""', "    total = 0"]
    for number in range(chosen.randint(2, 12)):
        word = chosen.choice(WORDS)
        lines += [
            f"    if first > {number} and second is not None:",
            f"        total += len(options.get('{word}', ()))",
        ]
        lines += [f"    for {word} in rest[{number}:]:", f"        print({word}, total, file=sys.stderr)"]
    return "\n".join([*lines, "    return total", ""])


def _class(chosen: random.Random, name: str) -> str:
    lines = [f"class {name.title().replace('_', '')}:", f'    """A {name}."""', ""]
    for number in range(chosen.randint(1, 6)):
        word = chosen.choice(WORDS)
        lines += [
            f"    def {word}_{number}(self, value):",
            f"        self.{word} = [value * {number} for _ in range(3)]",
        ]
        lines += [f"        return os.path.join('{word}', str(self.{word}))", ""]
    return "\n".join(lines)


def _table(chosen: random.Random, name: str) -> str:
    rows = [f"    '{chosen.choice(WORDS)}_{n}': ({n}, {chosen.random():.4f})," for n in range(chosen.randint(3, 60))]
    return "\n".join([f"{name.upper()} = {{", *rows, "}", ""])


_PARTS: tuple[Callable[[random.Random, str], str], ...] = (_function, _function, _class, _table)


if __name__ == "__main__":
    sys.exit(main())
