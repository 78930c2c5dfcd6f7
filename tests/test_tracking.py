"""Which lines became which: quickly in large texts, and right in small ones."""

from __future__ import annotations

import random
import time

from fabric_fix import tracking
from fabric_fix.finding import Finding, Span
from fabric_fix.records import replace
from fabric_fix.shortest import Block, shortest_script
from fabric_fix.tracking import LineMap, Tracked, carry_over, changed_blocks


def check_script(old: list[str], new: list[str], blocks: list[Block]) -> None:
    places = [(i2, j2) for _, _, i2, _, j2 in blocks]
    assert [(i1, j1) for _, i1, _, j1, _ in blocks] == [(0, 0), *places][: len(blocks)]
    assert places[-1:] in ([(len(old), len(new))], [])
    for tag, i1, i2, j1, j2 in blocks:
        assert (tag == "equal") <= (old[i1:i2] == new[j1:j2])
        assert (tag == "insert") == (i1 == i2)
        assert (tag == "delete") == (j1 == j2)


def test_shortest_script_of_random_lines() -> None:
    for seed in range(500):
        chooser = random.Random(seed)
        old = chooser.choices("abc", k=seed % 15)
        new = [chooser.choice("abx") if chooser.random() < 0.2 else line for line in old if chooser.random() < 0.8]
        blocks = shortest_script(old, new)
        assert blocks is not None
        check_script(old, new, blocks)
        assert bool(blocks) == bool(old or new)


def test_script_with_too_many_changes_is_given_up() -> None:
    assert shortest_script(["a"] * 2_000, ["b"] * 2_000) is None


def test_changes_at_both_ends_of_many_equal_lines() -> None:
    old = ["x = 1\n"] * 40_000
    new = ["import a\n", *old[:20_000], "b\n", *old[20_000:], "c\n"]
    start = time.process_time()
    assert sum(block[0] == "insert" for block in changed_blocks(old, new)) == 3
    assert time.process_time() - start < 5


def test_origin_of_lines() -> None:
    lines = LineMap("a\nb\nc\nd\n", "a\nx\ny\nd\ne\n")
    assert [lines.origin(line) for line in range(1, 7)] == [
        (1, True),
        (2, False),
        (3, False),
        (4, True),
        (4, False),
        (6, False),
    ]
    assert [lines.was_changed(line) for line in range(6)] == [False, False, True, True, False, False]


def test_both_ways_to_compare_agree_on_what_is_equal() -> None:
    old = [f"{number}\n" for number in range(2_000)]
    new = [line for number, line in enumerate(old) if number % 100]
    assert len(old) * len(new) > tracking.QUADRATIC
    check_script(old, new, changed_blocks(old, new))
    assert sum(block[0] == "delete" for block in changed_blocks(old, new)) == 20


def test_a_finding_on_a_changed_line_is_the_nearest_of_those_that_are_alike() -> None:
    old = "a\nb\nc\nd\n"
    finding = Finding("FF202", "joint-setup", "train.py", Span(1, 0, 1, 1), "apart")
    live = [Tracked(made, later=False, now=made) for made in (finding, replace(finding, span=Span(4, 0, 4, 1)))]
    found = replace(finding, span=Span(3, 4, 3, 5))
    new = "b\nc\nx = d\n"
    left = carry_over(live, [found], LineMap(old, new), LineMap(old, new))
    assert left == [live[1]]
    assert live[1].now is found
    assert live[0].now is None
