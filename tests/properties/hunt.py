"""Try many programs, make those that fail smaller, and print them by kind.

python -m tests.properties.hunt [--first 0] [--count 10000] [--files] [--show 1]
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter, defaultdict
from functools import partial

from tests.properties.judge import Trial, Verdict, describe, judge


def main() -> int:
    """Print the failures by kind, the most frequent first; returns 1 when there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--files", action="store_true", help="programs spread over the files of a project")
    parser.add_argument("--show", type=int, default=0, help="failures to make smaller and print")
    options = parser.parse_args()
    failed: dict[str, list[int]] = defaultdict(list)
    silent: dict[str, list[int]] = defaultdict(list)
    planted, left, ends = Counter[str](), Counter[str](), Counter[str]()
    seeds = range(options.first, options.first + options.count)
    with multiprocessing.Pool() as pool:
        for seed, verdict in pool.imap_unordered(partial(_try, several_files=options.files), seeds, chunksize=20):
            planted.update(fault.kind for fault in verdict.planted)
            left.update(fault.kind for fault in verdict.left)
            ends[verdict.end] += 1
            if verdict.kind:
                failed[verdict.sort].append(seed)
                print(f"seed {seed}: {verdict.sort}", flush=True)
            elif verdict.silent:
                silent[verdict.silent].append(seed)
    for kind, seeds_of in sorted([*failed.items(), *silent.items()], key=lambda item: -len(item[1])):
        print(f"##### {len(seeds_of)} x {kind} (seeds {sorted(seeds_of)[:5]})", flush=True)
    print(f"\n{options.count} programs: {', '.join(f'{number} {end}' for end, number in ends.most_common())}")
    for kind, number in planted.most_common():
        print(f"  {kind}: planted {number}, left {left[kind]}")
    for kind, seeds_of in _simplest(failed | silent)[: options.show]:
        print(f"\n##### {kind}\n{report(smaller(seeds_of[0], options.files))}", flush=True)
    return int(bool(failed))


def _simplest(failed: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
    """One kind of each failure with the fewest faults."""
    found: dict[str, tuple[str, list[int]]] = {}
    for kind in sorted(failed, key=lambda kind: (kind.count("+"), -len(failed[kind]))):
        found.setdefault(kind.partition(":")[0], (kind, sorted(failed[kind])))
    return list(found.values())


def _try(seed: int, several_files: bool) -> tuple[int, Verdict]:
    try:
        return seed, judge(Trial(seed, several_files=several_files))
    except Exception as error:  # a fault of the generator itself, to be seen beside the others
        return seed, Verdict(f"the test raises {type(error).__name__}: {error}")


def smaller(seed: int, several_files: bool = False) -> Trial:
    """The same failure with as many choices as possible set to the simplest option."""
    trial = Trial(seed, several_files=several_files)
    wanted = judge(trial)
    forced: dict[str, int] = {}
    for group in _groups(trial):
        attempt = Trial(seed, {**forced, **dict.fromkeys(group, 0)}, several_files)
        verdict = judge(attempt)
        if (verdict.kind, verdict.silent) == (wanted.kind, wanted.silent) and len(verdict.planted) <= len(
            wanted.planted
        ):
            forced, trial = {**forced, **dict.fromkeys(group, 0)}, attempt
    return trial


def _groups(trial: Trial) -> list[list[str]]:
    """The choices that are not the simplest: all comments, then all of a beginning, then each."""
    names = [name for name, index in trial.draw.chosen.items() if index]
    comments = [name for name in names if name.startswith("comment")]
    others = [name for name in names if not name.startswith("comment")]
    return [comments, *([name] for name in others)]


def report(trial: Trial) -> str:
    """A program with its seed, and all that is to be known about it."""
    verdict = judge(trial)
    lines = [f"=== seed {trial.seed}: {verdict.kind}", f"planted: {trial.planted}", verdict.told]
    lines.append(f"families {trial.plan.families}, options {trial.plan.options}, shape {trial.plan.shape}")
    for title, files in (("right", trial.right), ("faulty", trial.faulty)):
        lines += [
            f"--- {title} {path}\n{text}"
            for path, text in files.items()
            if title == "faulty" or text != trial.faulty.get(path)
        ]
    for path, result in trial.repaired(trial.faulty).items():
        lines += [f"--- repaired {path}", result.new_text if result.new_text != result.text else "(unchanged)"]
        lines += describe(result)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
