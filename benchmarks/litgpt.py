"""Figure: over the source distribution of litgpt, at least 50 times faster than torchfix and than Fixit.

That is without a cache. With the one that a first run leaves, a second run takes less than 0.2 s of processor time.

python -m benchmarks.litgpt
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import (
    Figure,
    Timing,
    add_common_options,
    fetch_source,
    judge,
    measure_alternately,
    print_timings,
    run_once,
    tool_environment,
    warn_if_busy,
    without_cache,
)

PEERS = ["torchfix", "fixit"]
TIMES_FASTER = 50
SECOND_RUN = 0.2
"""Seconds of processor time."""


def main() -> int:
    """Run the benchmark; return its exit status."""
    options = parse_options()
    warn_if_busy()
    commands = options.peers or tool_environment("peers", [*PEERS, "setuptools<81"], options.cache)
    litgpt = fetch_source("litgpt", options.cache)
    print(f"{litgpt.name}: {sum(1 for _ in litgpt.rglob('*.py'))} Python files\n")
    ours, second = time_ours(options.fabric_fix, litgpt, options.rounds)
    peers = [
        time_peer("torchfix", [str(commands / "torchfix"), "."], litgpt, options.peer_rounds),
        time_peer("fixit lint", [str(commands / "fixit"), "lint", "."], litgpt, options.peer_rounds),
    ]
    print_timings([ours, second, *peers])
    processor = Figure("processor time of a second run", statistics.median(second.processor), SECOND_RUN, "s")
    return judge([*(ratio(ours, peer) for peer in peers), processor])


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument("--peers", type=Path, help="folder with the commands torchfix and fixit (default: made)")
    parser.add_argument("--rounds", type=int, default=10, help="runs of fabric-fix")
    parser.add_argument("--peer-rounds", type=int, default=2, help="runs of torchfix and of Fixit, half a minute each")
    return parser.parse_args()


def time_ours(fabric_fix: str, folder: Path, rounds: int) -> tuple[Timing, Timing]:
    """Time runs that keep nothing, and runs with what the first of them has left in a cache."""
    plain, second = "fabric-fix --check --no-cache", "fabric-fix --check, a second run"
    with tempfile.TemporaryDirectory() as cache:
        commands = {
            plain: [*without_cache(fabric_fix), "--check", "."],
            second: [fabric_fix, "--cache-dir", cache, "--check", "."],
        }
        timings = measure_alternately(commands, folder, rounds)
    return timings[plain], timings[second]


def time_peer(name: str, command: Sequence[str], folder: Path, rounds: int) -> Timing:
    """Time one of the slow tools; no warm-up, as the page cache is warm and its own start is a thousandth."""
    timing = Timing(name)
    for _ in range(rounds):
        run_once(timing, command, folder)
    return timing


def ratio(ours: Timing, peer: Timing) -> Figure:
    """Our median run as a part of the peer's best one, the reading that favours the peer."""
    return Figure(f"part of the time of {peer.name}", ours.median / peer.best, 1 / TIMES_FASTER, "ratio")


if __name__ == "__main__":
    sys.exit(main())
