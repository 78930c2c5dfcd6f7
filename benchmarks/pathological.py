"""Figure: programs of awkward shapes, at sizes n, 2n and 4n: four times the program takes at most five times as long.

python -m benchmarks.pathological                 all shapes
python -m benchmarks.pathological --only split    those with a word in their names
python -m benchmarks.pathological --fix           with the fixes made, too: --diff in the place of --check

A shape is also done with when the tool gives up on it and says so ("not analysed completely"). The start of the
command is taken off, and a time under 0.2 s counts as 0.2 s. Processor time of the best of some runs is compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import (
    Figure,
    Timing,
    add_common_options,
    judge,
    print_table,
    run_once,
    warn_if_busy,
    without_cache,
)
from benchmarks.shapes import SHAPES, Shape

SIZES = (1, 2, 4)
FLOOR = 0.2
"""Seconds below which a time is mostly noise."""
MOST = 5.0
"""Times as long that four times the program may take."""


@dataclass(frozen=True)
class Measured:
    """What the tool needed for one shape."""

    shape: Shape
    seconds: list[float]
    """Processor seconds beyond the start of the command, at each of the sizes."""
    said: str
    """What it said of the largest: "" or that it gave up."""

    @property
    def ratio(self) -> float:
        """The largest against the smallest."""
        return max(self.seconds[-1], FLOOR) / max(self.seconds[0], FLOOR)


def main() -> int:
    """Run the benchmark; return its exit status."""
    options = parse_options()
    warn_if_busy()
    command = [*without_cache(options.fabric_fix), "--diff" if options.fix else "--check"]
    shapes = [shape for shape in SHAPES if options.only in shape.name]
    with tempfile.TemporaryDirectory(prefix="fabric-fix-shapes-") as scratch:
        folder = Path(scratch)
        (folder / "pyproject.toml").write_text('[project]\nname = "shapes"\nversion = "1"\n')
        start = start_of(command, folder, options.rounds)
        measured = [measure(shape, command, folder, start, options.rounds) for shape in shapes]
    print_table(["shape", "n", "s at n", "s at 2n", "s at 4n", "4n"], [row(one) for one in measured])
    return judge([Figure(one.shape.name, one.ratio, MOST, "times") for one in measured if not one.said])


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument("--only", default="", help="a word in the names of the shapes to measure")
    parser.add_argument("--fix", action="store_true", help="make the fixes as well")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def start_of(command: list[str], folder: Path, rounds: int) -> float:
    """Processor seconds for a program of a few lines that uses Fabric, as everything is then imported."""
    (folder / "small.py").write_text(SHAPES[0].make(1))
    return min(times([*command, "small.py"], folder, rounds))


def measure(shape: Shape, command: list[str], folder: Path, start: float, rounds: int) -> Measured:
    """The tool over one shape at all sizes."""
    seconds = []
    for times_larger in SIZES:
        (folder / "shape.py").write_text(shape.make(shape.size * times_larger))
        seconds.append(max(min(times([*command, "shape.py"], folder, rounds)) - start, 0.0))
    done = subprocess.run([*command, "shape.py"], cwd=folder, capture_output=True, text=True, errors="replace")
    gave_up = "not analysed completely: " in done.stderr
    if done.returncode == 2 and not gave_up:
        sys.exit(f"{shape.name}: {done.stderr}")
    return Measured(shape, seconds, "given up" if gave_up else "")


def times(command: list[str], folder: Path, rounds: int) -> list[float]:
    """Processor seconds of some runs."""
    timing = Timing("one")
    for _ in range(rounds):
        run_once(timing, command, folder, fine=(0, 1, 2))
    return timing.processor


def row(one: Measured) -> list[object]:
    """A line of the table."""
    return [one.shape.name, one.shape.size, *(f"{s:.2f}" for s in one.seconds), one.said or f"{one.ratio:.1f} times"]


if __name__ == "__main__":
    sys.exit(main())
