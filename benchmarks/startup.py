"""Figure: one file without Fabric, as pre-commit gives it, is done within 0.1 s of an empty Python.

python -m benchmarks.startup

Judged by the best run of each: what else the machine does adds to a start of 0.05 s more than it measures.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.common import (
    Figure,
    add_common_options,
    judge,
    measure_alternately,
    print_timings,
    warn_if_busy,
)

SMALL = "import sys\n\nprint(sys.argv)\n"


def main() -> int:
    """Run the benchmark; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    warn_if_busy()
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_project(Path(scratch))
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "fabric-fix small.py": [options.fabric_fix, "small.py"],
            "fabric-fix argparse.py": [options.fabric_fix, "argparse.py"],
        }
        timings = measure_alternately(commands, folder, options.rounds)
    print_timings(timings.values())
    empty, *tools = timings.values()
    return judge(
        [Figure(f"{tool.name}, beyond python -c pass", tool.median - empty.median, 0.1, "s") for tool in tools]
    )


def make_project(folder: Path) -> Path:
    """A project of a three-line file and a large one of the standard library."""
    (folder / "pyproject.toml").write_text('[project]\nname = "small"\nversion = "1"\n')
    (folder / "small.py").write_text(SMALL)
    shutil.copy(Path(sysconfig.get_path("stdlib"), "argparse.py"), folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
