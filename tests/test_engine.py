"""Rounds of fixes over one file, with rules that look for words, so that each way a fix can go wrong is seen."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from json import loads

import pytest

from fabric_fix.check import CheckResult, Surroundings
from fabric_fix.deadline import Deadline
from fabric_fix.deep import run_deep
from fabric_fix.edits.model import Edit, InsertStatement, RemoveStatement, ReplaceStatement, Where
from fabric_fix.engine import MAX_ROUNDS, FileResult, Job, Status, examine
from fabric_fix.finding import Applicability, Finding, Fix, Span
from fabric_fix.newer import needed_python
from fabric_fix.records import replace
from fabric_fix.report import entries_of, json, mark_written, text
from fabric_fix.rule import Rule
from fabric_fix.tracking import split_lines

Look = Callable[[int, str], "Finding | None"]


def finding(
    line: int, text: str, new: str | None, *, code: str = "FF101", safe: bool = True, reason: str | None = None
) -> Finding:
    """A finding over a whole line, whose fix puts another statement in its place."""
    span = Span(line, 0, line, len(text.encode()))
    edits: tuple[Edit, ...] = (ReplaceStatement(span, new),) if new is not None else ()
    sure = Applicability.SAFE if safe else Applicability.UNSAFE
    fix = Fix(f"Write {new}", edits, sure) if new is not None else None
    return Finding(code, "some-rule", "a.py", span, f"{text} is wrong", fix, reason)


@pytest.fixture
def look_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[Look], None]:
    """Put a look at each line in the place of the analysis."""

    def install(look: Look) -> None:
        def check_text(
            text: str,
            path: str,
            *,
            rules: Sequence[type[Rule]],
            strategies: tuple[str, ...],
            real: str,
            around: Surroundings,
            deadline: Deadline,
        ) -> CheckResult:
            compile(text, path, "exec")
            lines = [line.rstrip("\r\n") for line in split_lines(text)]
            return CheckResult(tuple(found for n, line in enumerate(lines, 1) if (found := look(n, line))))

        monkeypatch.setattr("fabric_fix.engine.check_text", check_text)

    return install


def run(text: str | bytes, *, unsafe: bool = False, look_only: bool = False) -> FileResult:
    data = text.encode() if isinstance(text, str) else text
    return examine(Job("a.py", "a.py", data, (), unsafe=unsafe, look_only=look_only))


def states(result: FileResult) -> list[tuple[int, Status]]:
    return [(outcome.finding.span.line, outcome.status) for outcome in result.outcomes]


def messages(result: FileResult) -> str:
    return "\n".join(map(str, result.problems))


def replacing(**pairs: str) -> Look:
    return lambda n, line: finding(n, line, pairs[line]) if line in pairs else None


def test_fixes_of_one_round(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b", c="d"))
    result = run("a\nx\nc\n")
    assert result.new == b"b\nx\nd\n"
    assert states(result) == [(1, Status.FIXABLE), (3, Status.FIXABLE)]
    assert [(fix.number, fix.regions) for fix in result.fixes] == [(1, ((1, 1),)), (2, ((3, 3),))]


def test_result_is_picklable(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b"))
    result = run("a\n")
    assert pickle.loads(pickle.dumps(result)) == result


def test_look_only_changes_nothing(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b"))
    result = run("a\n", look_only=True)
    assert result.new == result.original
    assert states(result) == [(1, Status.FIXABLE)]


def test_look_only_tells_what_cannot_be_made(look_for: Callable[[Look], None]) -> None:
    look_for(lambda n, s: finding(n, s, "b = (") if s == "a" else replacing(c="d", d="e")(n, s))
    looked, made = run("a\nc\n", look_only=True), run("a\nc\n")
    assert states(looked) == [(1, Status.LEFT), (2, Status.FIXABLE)]
    assert [one.reason for one in looked.outcomes] == [one.reason for one in made.outcomes if not one.later]
    assert (looked.new, looked.new_text, looked.fixes) == (looked.original, looked.text, ())


def test_fix_that_another_uncovers_is_made_in_the_next_round(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b", b="c"))
    result = run("x\na\n")
    assert result.new == b"x\nc\n"
    assert [(outcome.later, outcome.number) for outcome in result.outcomes] == [(False, 1), (True, 2)]


def test_look_only_counts_what_fixes_uncover(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b", b="c"))
    looked = run("x\na\n", look_only=True)
    assert (states(looked), looked.uncovered) == ([(2, Status.FIXABLE)], 1)
    assert run("x\na\n").uncovered == 0


def after_another(then: Callable[[int, str], Finding | None]) -> Look:
    """Replaces `a` with two lines; `u` is wrong, and once that is done, `then` says what is found on its line."""
    seen: list[str] = []

    def look(n: int, line: str) -> Finding | None:
        seen[n - 1 :] = [line]
        if line == "u":
            return then(n, line) if "    b" in seen else finding(n, line, None, reason="what line 1 holds is unknown")
        return replacing(a="if a:\n    b")(n, line)

    return look


@pytest.mark.parametrize("look_only", [True, False])
def test_finding_that_only_other_fixes_make_fixable(look_for: Callable[[Look], None], look_only: bool) -> None:
    look_for(after_another(lambda n, line: finding(n, line, "v")))
    result = run("a\nu\n", look_only=look_only)
    assert result.new == (b"a\nu\n" if look_only else b"if a:\n    b\nv\n")
    lines = list(text(entries_of(result, written=False)))
    assert lines[-4:] == ["    | ^", "  fix: Write v", "  fixable once the other fixes are made", ""]
    shown = loads(json(entries_of(result, written=False)))[1]
    assert shown["fix"] == {"applicability": "safe", "message": "Write v", "edits": []}
    assert (shown["status"], shown["note"]) == ("fixable", "fixable once the other fixes are made")


def test_finding_that_goes_with_other_fixes(look_for: Callable[[Look], None]) -> None:
    look_for(after_another(lambda n, line: None))
    entries = entries_of(run("a\nu\n"), written=False)
    assert list(text(entries))[-3:] == ["    | ^", "  goes with the other fixes", ""]
    shown = loads(json(entries))
    assert [(one["status"], one["fix"] is None, one["note"]) for one in shown] == [
        ("fixable", False, None),
        ("fixable", True, "goes with the other fixes"),
    ]


def test_finding_that_other_fixes_make_unsafely_fixable(look_for: Callable[[Look], None]) -> None:
    look_for(after_another(lambda n, line: finding(n, line, "v", safe=False, reason="line 3 may hide it")))
    result = run("a\nu\n")
    before, after = (list(text(entries_of(result, written)))[-4:-1] for written in (False, True))
    made = "  unsafe fix: Write v"
    assert before == [made, "  fixable once the other fixes are made", "  not made by default: line 2 may hide it"]
    assert after[1:] == [made, "  not made by default: line 3 may hide it"]


def test_lines_in_words_are_those_of_the_text_that_the_finding_is_in(look_for: Callable[[Look], None]) -> None:
    def look(n: int, line: str) -> Finding | None:
        words = f"line {n + 1} is beside `line {n + 1}`, not line {n + 1} of b.py or what b.sh has, line {n + 1}"
        found = finding(n, line, {"a": "if a:\n    b", "u": None, "v": "w"}.get(line), reason=words)
        return replace(found, message=words) if line in ("a", "u", "v", "    b") else None

    look_for(look)
    result = run("a\nu\nv\nx\n")
    left = next(one for one in result.outcomes if one.finding.span.line == 2)
    words = "line 3 is beside `line 4`, not line 4 of b.py or what b.sh has, line 4"
    assert (left.reason, left.finding.message) == (words, words.replace("4", "3"))
    assert left.reason_now == words.replace("line 3", "line 4")
    assert [one.finding.message[:6] for one in result.outcomes] == ["line 2", "line 2", "line 3", "line 4"]
    assert [one.later for one in result.outcomes] == [False, True, False, False]
    assert all(entry.finding.span.line <= 4 for entry in entries_of(result, written=False))


def test_unsafe_fix_is_made_on_demand_only(look_for: Callable[[Look], None]) -> None:
    look_for(lambda n, line: finding(n, line, "b", safe=False, reason="a guess") if line == "a" else None)
    kept = run("a\n")
    assert (kept.new, states(kept), kept.outcomes[0].reason) == (b"a\n", [(1, Status.UNSAFE)], "a guess")
    assert run("a\n", unsafe=True).new == b"b\n"


def test_finding_without_fix_is_left_and_follows_its_line(look_for: Callable[[Look], None]) -> None:
    look_for(lambda n, s: finding(n, s, None, reason="unknown") if s == "u" else replacing(a="if a:\n    b")(n, s))
    result = run("a\nu\n")
    left = result.outcomes[1]
    assert (left.status, left.reason, left.finding.span.line) == (Status.LEFT, "unknown", 2)
    assert left.now is not None
    assert left.now.span.line == 3


def test_lines_in_a_reason_are_of_the_text_that_is_shown(look_for: Callable[[Look], None]) -> None:
    def look(line: int, text: str) -> Finding | None:
        if text == "long":
            return finding(line, text, "if long:\n    pass")
        reason = f"line {line - 1} of b.py, after line {line - 1}"
        return finding(line, text, None, reason=reason) if text == "left" else None

    look_for(look)
    result = run("long\nplain\nleft\n")
    _, left = entries_of(result, written=False)
    _, moved = entries_of(mark_written(result), written=True)
    assert result.new == b"if long:\n    pass\nplain\nleft\n"
    assert (left.finding.span.line, left.outcome.reason) == (3, "line 3 of b.py, after line 2")
    assert (moved.finding.span.line, moved.outcome.reason) == (4, "line 3 of b.py, after line 3")


def test_fix_that_does_not_remove_its_finding_is_dropped(look_for: Callable[[Look], None]) -> None:
    bad = {"a": "a2", "a2": "a3"}
    look_for(
        lambda n, s: (
            Finding(
                "FF101",
                "some-rule",
                "a.py",
                Span(n, 0, n, len(s)),
                "same",
                Fix("f", (ReplaceStatement(Span(n, 0, n, len(s)), bad[s]),)),
            )
            if s in bad
            else replacing(c="d")(n, s)
        )
    )
    result = run("a\nc\n")
    assert result.new == b"a\nd\n"
    assert states(result) == [(1, Status.LEFT), (2, Status.FIXABLE)]
    assert "a.py:1:1: the fix of FF101 does not remove what it is for" in messages(result)
    assert "bug in the rule some-rule" in messages(result)


def test_fix_that_only_moves_the_line_that_its_finding_names_is_dropped(look_for: Callable[[Look], None]) -> None:
    def look(n: int, line: str) -> Finding | None:
        new = {"a": "if a:\n    b", "    b": "c"}.get(line)
        found = finding(n, line.strip(), new)
        span = found.span._replace(column=4, end_column=5) if n > 1 else found.span
        return replace(found, span=span, message=f"same (line {n + 3})") if new else None

    look_for(look)
    result = run("a\nx\n")
    assert (result.new, states(result)) == (b"a\nx\n", [(1, Status.LEFT)])
    assert "does not remove what it is for" in messages(result)


def test_fixes_that_never_settle_change_nothing(look_for: Callable[[Look], None]) -> None:
    look_for(lambda n, s: finding(n, s, f"a{int(s[1:]) + 1}") if s.startswith("a") else None)
    result = run("a0\n")
    assert result.new == b"a0\n"
    assert f"did not settle in {MAX_ROUNDS} rounds" in messages(result)
    assert (states(result), result.fixes) == ([(1, Status.LEFT)], ())


def test_fixes_that_touch_each_other_wait_for_the_next_round(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(**{"if a: b": "if a: c", "if a: c": "if a: d"}))
    assert run("if a: b\n").new == b"if a: d\n"


def test_fix_that_cannot_be_made_is_left_with_the_reason(look_for: Callable[[Look], None]) -> None:
    look_for(lambda n, s: finding(n, s, "b = (") if s == "a" else replacing(c="d")(n, s))
    result = run("a\nc\n")
    assert result.new == b"a\nd\n"
    assert states(result) == [(1, Status.LEFT), (2, Status.FIXABLE)]
    assert result.outcomes[0].reason


def test_file_that_libcst_does_not_write_back_is_left(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b"))
    result = run("try:\n    x\nexcept ValueError :\n    y\na\n")
    assert result.new == result.original
    assert (states(result), result.problems) == ([(5, Status.LEFT)], ())
    assert "LibCST" in (result.outcomes[0].reason or "")


def test_silenced_finding_is_neither_fixed_nor_told(look_for: Callable[[Look], None]) -> None:
    look_for(lambda n, s: finding(n, s, "b") if s.startswith("a") else None)
    result = run("a  # noqa: FF101\na\n")
    assert result.new == b"a  # noqa: FF101\nb\n"
    assert states(result) == [(2, Status.FIXABLE)]


@pytest.mark.parametrize(
    ("comment", "is_left"),
    [
        ("# noqa: FF101", True),
        ("# noqa", True),
        ("# fabric-fix: ignore[some-rule]", True),
        ("# noqa: FF201", False),
        ("# fabric-fix: ignore[FF201]", False),
    ],
)
def test_fix_that_would_change_a_silenced_statement(
    look_for: Callable[[Look], None], comment: str, is_left: bool
) -> None:
    moves = Fix("Move b", (RemoveStatement(Span(2, 0, 4, 2)), InsertStatement(Span(1, 0, 1, 1), Where.BEFORE, "f(b)")))
    found = Finding("FF101", "some-rule", "a.py", Span(1, 0, 1, 1), "a is wrong", moves)
    look_for(lambda n, s: found if s == "a" and n == 1 else None)
    result = run(f"a\nf(\n  b  {comment}\n )\n")
    assert (result.outcomes[0].status is Status.LEFT) is is_left
    if is_left:
        assert result.new == result.original
        reason = "its fix would change line 2, where a comment says to leave FF101 alone: repair it by hand"
        assert result.outcomes[0].reason == reason


@pytest.mark.parametrize(
    ("data", "new"),
    [
        (b"x\r\na\r\ny", b"x\r\nb\r\ny"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
        (b"# coding: cp1252\na\nx = '\x80'\n", b"# coding: cp1252\nb\nx = '\x80'\n"),
        (b"x = '\xe2\x80\xa8'\n\x0c\na", b"x = '\xe2\x80\xa8'\n\x0c\nb"),
        (b"x\na\r\ny\r\n", b"x\nb\r\ny\r\n"),
    ],
)
def test_only_the_fix_changes_bytes(look_for: Callable[[Look], None], data: bytes, new: bytes) -> None:
    look_for(replacing(a="b"))
    assert run(data).new == new


def test_fix_that_the_encoding_cannot_hold_changes_nothing(look_for: Callable[[Look], None]) -> None:
    look_for(replacing(a="b = '→'"))
    result = run(b"# coding: cp1252\na\n")
    assert result.new == result.original
    assert "cp1252" in messages(result)


def test_crash_of_a_rule_costs_one_file_and_names_the_place(look_for: Callable[[Look], None]) -> None:
    def crash(_n: int, _line: str) -> Finding | None:
        raise KeyError("oops")

    look_for(crash)
    result = run("a\n")
    assert result.new == b"a\n"
    assert "internal error, please report it: KeyError at test_engine.py:" in messages(result)


def test_incomplete_analysis_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabric_fix.engine.check_text", lambda *_args, **_options: CheckResult((), "too many branches"))
    assert "not analysed completely: too many branches; split the file" in messages(run("a\n"))


def test_file_that_cannot_be_parsed_has_a_place() -> None:
    assert messages(run("x = 1\ndef f(:\n")).startswith("a.py:2:7: cannot be parsed: ")


def test_newer_syntax_names_the_python_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> CheckResult:
        raise SyntaxError("invalid syntax", ("a.py", 1, 6, "type X = int\n"))

    monkeypatch.setattr("fabric_fix.engine.check_text", refuse)
    assert "run fabric-fix under Python 3." in messages(run("type X = int\n"))
    assert "3.14" in messages(run("try:\n    x\nexcept A, B:\n    y\n"))
    assert "run fabric-fix" not in messages(run("def f(:\n"))


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("x = f'{'a'}'\n", "3.12"),
        ("x = f'{'''a\nb'''}'\n", "3.12"),
        ('x = f"{d["a"]}"\n', "3.12"),
        ("x = f'{a:{b}}'\ntype X = int\n", "3.12"),
        ("try:\n    x\nexcept* E:\n    y\n", "3.11"),
        ("def f[T = int](): pass\nx = f'{'a'}'\n", "3.13"),
    ],
)
def test_python_that_a_source_needs(text: str, needed: str) -> None:
    assert needed_python(text, 10) == needed


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 500 + ")" * 500,
        "-" * 50_000 + "1",
        " + ".join(["'a'"] * 100_000),
        "a" + ".b" * 30_000,
        "[" * 300 + "]" * 300,
    ],
    ids=["brackets", "signs", "sum", "attributes", "lists"],
)
def test_too_deeply_nested_is_an_error_and_not_the_end(expression: str) -> None:
    results: list[FileResult] = []
    source = f"from lightning import Fabric\nfabric = Fabric()\nx = {expression}\n"
    run_deep(lambda: results.append(run(source)))
    assert "nested" in messages(results[0])
    assert results[0].new == results[0].original


def test_long_sum_is_not_too_deep() -> None:
    results: list[FileResult] = []
    run_deep(lambda: results.append(run("x = " + " + ".join(["'a'"] * 1500) + "\n")))
    assert results[0].problems == ()


def test_system_that_refuses_a_deep_stack_gets_a_shallow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused, done = threading.Thread.start, list[int](), list[int]()

    def refuse_deep(thread: threading.Thread) -> None:
        if threading.stack_size() > 100_000_000:
            refused.append(1)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_deep)
    run_deep(lambda: done.append(1))
    assert (refused, done) == ([1], [1])


def test_exceptions_come_out_of_the_deep_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        run_deep(lambda: [][1 // 0])
