"""What the benchmarks share: timing commands, finding the tools, fetching real code, printing tables."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The clone that the benchmarks are part of."""

SOURCE_DISTRIBUTIONS = {
    "litgpt": "0.5.13",
    "sheeprl": "0.8.4",
    "fusion-bench": "0.2.33",
    "lightly-train": "0.18.0",
    "alphafold3-pytorch": "0.8.3",
    "lightning": "2.6.6",
}
"""Projects that use Fabric, at the versions that the figures and docs/real-code.md were made with."""


@dataclass
class Timing:
    """How long a command took, run after run."""

    name: str
    seconds: list[float] = field(default_factory=list)
    """Wall-clock seconds of each run."""
    processor: list[float] = field(default_factory=list)
    """Processor seconds of each run, children included."""

    @property
    def best(self) -> float:
        """The shortest run, in seconds."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle run, in seconds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Figure:
    """A promise: `measured` has to be at most `limit`."""

    name: str
    measured: float
    limit: float
    unit: str

    @property
    def kept(self) -> bool:
        """Whether the promise holds."""
        return self.measured <= self.limit


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options that every benchmark has: where downloads are kept, which fabric-fix is run."""
    default = Path(tempfile.gettempdir()) / "fabric-fix-benchmarks"
    parser.add_argument("--cache", type=Path, default=default, help="folder for downloads (default: %(default)s)")
    parser.add_argument("--fabric-fix", default=beside_python("fabric-fix"), help="the command (default: %(default)s)")


def beside_python(name: str) -> str:
    """The command `name` of this Python's environment, else of the PATH, else the bare name."""
    own = Path(sys.executable).with_name(name)
    return str(own) if own.exists() else shutil.which(name) or name


def without_cache(fabric_fix: str) -> list[str]:
    """The start of a `fabric-fix` command line that keeps no cache between runs, whether or not it has one."""
    told = subprocess.run([fabric_fix, "--help"], capture_output=True, text=True, check=True)
    return [fabric_fix, "--no-cache"] if "--no-cache" in told.stdout else [fabric_fix]


def run_once(timing: Timing, command: Sequence[str], folder: Path, fine: Sequence[int] = (0, 1)) -> None:
    """Run `command` in `folder` with its output thrown away and add the run to `timing`.

    An exit status that is not `fine` (0 and 1: nothing found, something found) ends the benchmark.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in fine:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    timing.seconds.append(seconds)
    timing.processor.append(usage.ru_utime + usage.ru_stime)


def measure_alternately(commands: Mapping[str, Sequence[str]], folder: Path, rounds: int) -> dict[str, Timing]:
    """Run all commands once to warm the page cache, then `rounds` times in turn, so that they share disturbances."""
    timings = {name: Timing(name) for name in commands}
    for command in commands.values():
        run_once(Timing("warm-up"), command, folder)
    for _ in range(rounds):
        for name, command in commands.items():
            run_once(timings[name], command, folder)
    return timings


def peak_memory(command: Sequence[str], folder: Path) -> float:
    """The most memory in MB that `command` and all its children hold at one time, looked at every 10 ms.

    Proportional set size, so that pages which a pool of workers shares are counted once. Needs Linux.
    """
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(proportional_set_size, family(process.pid))))
        time.sleep(0.01)
    return peak * 1024 / 1e6


def family(pid: int) -> Iterator[int]:
    """`pid` and all processes started by it that still run."""
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))


def proportional_set_size(pid: int) -> int:
    """The memory of one process in KiB; 0 when it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def fetch_source(name: str, cache: Path) -> Path:
    """The unpacked source distribution of one of `SOURCE_DISTRIBUTIONS`, downloaded with pip where `cache` lacks it."""
    return fetch(name, SOURCE_DISTRIBUTIONS[name], cache, ["--no-binary", name])


def fetch_wheel(name: str, version: str, cache: Path) -> Path:
    """The unpacked wheel of a project, downloaded with pip where `cache` lacks it."""
    return fetch(name, version, cache, ["--only-binary", name])


def fetch(name: str, version: str, cache: Path, form: Sequence[str]) -> Path:
    """Download `name==version` in the given form (options of pip) to `cache` and unpack it; return the folder."""
    target = cache / f"{name}-{version}"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *form]
            subprocess.run([*pip, "--dest", f"{scratch}/got", f"{name}=={version}"], check=True)
            (archive,) = Path(scratch, "got").iterdir()
            unpack(archive, Path(scratch, "unpacked")).rename(target)
    return target


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a wheel or a source distribution to `target`; return the folder that holds the project."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target)
        return target
    with tarfile.open(archive) as source:
        # the filter keeps members inside the target; Pythons that lack it get the check by hand
        if hasattr(tarfile, "data_filter"):
            source.extractall(target, filter="data")
        else:
            source.extractall(target, [m for m in source if m.isreg() and ".." not in Path(m.name).parts])
    (top,) = target.iterdir()
    return top


def tool_environment(name: str, packages: Sequence[str], cache: Path) -> Path:
    """The folder of commands of a virtual environment in `cache` that has `packages`, made where it is missing."""
    home = cache / f"env-{name}"
    if not (home / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", *packages], check=True)
        (home / "complete").touch()
    return home / "bin"


def print_timings(timings: Iterable[Timing]) -> None:
    """Print best, median and processor time of each command as a table."""
    rows = [[t.name, f"{t.best:.3f}", f"{t.median:.3f}", f"{min(t.processor):.3f}", len(t.seconds)] for t in timings]
    print_table(["command", "best s", "median s", "processor s", "runs"], rows)


def warn_if_busy() -> None:
    """Say it when other programs use the processors: they slow the long runs of a peer more than our short ones."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"WARNING: the machine is busy (load {load:.1f}); these measurements prove nothing\n", flush=True)


def judge(figures: Sequence[Figure]) -> int:
    """Print the figures as a table; return the exit status, 1 when one is missed."""
    rows = [[f.name, f"{f.measured:.3f}", f"{f.limit:.3f}", f.unit, "kept" if f.kept else "MISSED"] for f in figures]
    print_table(["figure", "measured", "at most", "unit", ""], rows)
    return 0 if all(figure.kept for figure in figures) else 1


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table with its columns aligned, and an empty line after it."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print("\n".join(lines), end="\n\n", flush=True)
