"""The command as its user meets it: streams, exit statuses, options, bad input."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabric_fix.config import Settings
from fabric_fix.run import Mode, Run

FAULTY = (
    "from lightning.fabric import Fabric\n\nfabric = Fabric()\nmodel = Net()\nfabric.setup(model)\n"
    "fabric.backward(model(x).sum())\n"
)
FIXED = FAULTY.replace("\nfabric.setup", "\nmodel = fabric.setup")
CLEAN = FIXED
UNRELATED = "print('no fabric here')\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Done:
    """What a run gave."""

    def __init__(self, *arguments: str, stdin: bytes = b"") -> None:
        command = [sys.executable, "-m", "fabric_fix", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr.decode()
        assert "Traceback" not in self.err


def put(name: str, text: str | bytes) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_fix_in_place_says_what_it_did() -> None:
    path = put("a.py", FAULTY)
    done = Done()
    assert (done.status, done.out, path.read_text()) == (1, b"", FIXED)
    assert "a.py:5:1: FF101 [fixed]" in done.err
    assert "  5 | fabric.setup(model)\n    | ^^^^^^^^^^^^^^^^^^^\n" in done.err
    assert "Found 1 fault in 1 file: 1 fixed" in done.err
    again = Done()
    assert (again.status, again.out, path.read_text()) == (0, b"", FIXED)


@pytest.mark.parametrize("mode", ["--check", "--diff"])
def test_nothing_is_written_otherwise(mode: str) -> None:
    path = put("a.py", FAULTY)
    assert Done(mode).status == 1
    assert path.read_text() == FAULTY
    assert sorted(os.listdir()) == [".git", "a.py"]


@pytest.mark.parametrize(
    "data",
    [
        FAULTY.encode(),
        FAULTY.replace("\n", "\r\n").encode(),
        FAULTY.rstrip("\n").encode(),
        b"\xef\xbb\xbf" + FAULTY.encode(),
        b"# coding: cp1252\nprice = '5 \x80'\n" + FAULTY.encode(),
        FAULTY.replace("model = Net()", "\x0c\nmodel = Net()  # \u2028 \x85").encode(),
        FAULTY.replace("\n", "\r\n", 2).encode(),
    ],
)
def test_patch_gives_the_bytes_that_a_run_in_place_writes(data: bytes) -> None:
    path = put("sub dir/é.py", data)
    patch = Done("--diff").out
    assert b"@@ FF101 fix 1\n" in patch
    subprocess.run(["git", "apply", "--check", "-"], input=patch, check=True)
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    patched = path.read_bytes()
    path.write_bytes(data)
    assert Done().status == 1
    assert path.read_bytes() == patched != data


@pytest.mark.parametrize("paths", [("../a.py",), ("../a.py", "b.py"), ("..",)])
@pytest.mark.parametrize("in_repository", [True, False])
def test_patch_of_files_outside_of_the_working_directory(
    paths: tuple[str, ...], in_repository: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("pack age/a.py", FAULTY)
    put("pack age/sub/b.py", FAULTY)
    monkeypatch.chdir("pack age/sub")
    base = here if in_repository else here / "pack age"
    if not in_repository:
        shutil.rmtree(here / ".git")
    done = Done("--diff", *paths)
    assert b".." not in done.out
    command = f"git -C {shlex.quote(str(base))} apply"
    assert f"The patch is for {base}, as not all files are in this folder: {command}\n" in done.err
    assert Path("../a.py").read_text() == FAULTY
    subprocess.run(command, shell=True, input=done.out, check=True)
    assert Path("../a.py").read_text() == FIXED
    assert Path("b.py").read_text() == (FAULTY if paths == ("../a.py",) else FIXED)
    assert "The patch is for" not in Done("--diff", "b.py").err


def test_fixes_of_several_files_are_numbered_on() -> None:
    put("b.py", FAULTY)
    put("a.py", FAULTY)
    headers = [line for line in Done("--diff").out.splitlines() if line.startswith((b"@@", b"---"))]
    assert [header.split(b"@@")[-1] for header in headers] == [
        b"--- a/a.py",
        b" FF101 fix 1",
        b"--- a/b.py",
        b" FF101 fix 2",
    ]


@pytest.mark.parametrize(
    ("arguments", "out", "status"),
    [
        ((), FIXED, 1),
        (("--check",), "", 1),
        (("--output-format", "json"), FIXED, 1),
        (("--ignore", "FF101"), FAULTY, 0),
        (("--exclude", "x.py", "--stdin-filename", "x.py"), FAULTY, 0),
    ],
)
def test_standard_input(arguments: tuple[str, ...], out: str, status: int) -> None:
    done = Done("-", *arguments, stdin=FAULTY.encode())
    assert (done.out.decode(), done.status) == (out, status)


@pytest.mark.parametrize("text", [b"", b"print(1)\r\n", b"\xff\xfe not python", CLEAN.encode()])
def test_standard_input_without_fault_passes_through(text: bytes) -> None:
    done = Done("-", stdin=text)
    assert (done.out, done.status) == (text, 0)


def test_standard_input_that_is_no_python_passes_through_with_an_error() -> None:
    data = b"fabric.setup(\n"
    done = Done("-", "--stdin-filename", "a.py", stdin=data)
    assert (done.out, done.status) == (data, 2)
    assert done.err.startswith("error: a.py:1:")


def test_standard_input_that_was_rewritten_is_called_fixed() -> None:
    done = Done("-", stdin=FAULTY.encode())
    assert "<stdin>:5:1: FF101 [fixed]" in done.err
    assert "  5 | model = fabric.setup(model)" not in done.err  # what was wrong is shown as it was


def test_standard_input_as_a_patch() -> None:
    put("pkg/a.py", FAULTY)
    patch = Done("-", "--diff", "--stdin-filename", "pkg/a.py", stdin=FAULTY.encode()).out
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert Path("pkg/a.py").read_text() == FIXED


def test_json_has_the_shape_of_ruff() -> None:
    put(
        "a.py",
        FAULTY.replace("model = Net()", "x = 'ä'; model = Net()").replace("\nfabric.setup", "\nx = 'ä'; fabric.setup"),
    )
    done = Done("--check", "--output-format", "json")
    (found,) = json.loads(done.out)
    assert done.err == ""
    assert (found["code"], found["name"], found["filename"]) == ("FF101", "discarded-setup", "a.py")
    assert (found["location"], found["end_location"]) == ({"row": 5, "column": 10}, {"row": 5, "column": 29})
    assert (found["reason"], found["url"], found["fix"]["applicability"]) == (None, None, "safe")
    (edit,) = found["fix"]["edits"]
    assert edit["content"] == "x = 'ä'; model = fabric.setup(model)\n"
    assert (edit["location"], edit["end_location"]) == ({"row": 5, "column": 1}, {"row": 6, "column": 1})


def test_json_of_a_long_sum_has_the_fix() -> None:
    put("sum.py", FAULTY + "text = " + " + ".join(["'a'"] * 5_000) + "\n")
    done = Done("--check", "--output-format", "json")
    (found,) = json.loads(done.out)
    assert (done.status, [edit["content"] for edit in found["fix"]["edits"]]) == (1, ["model = fabric.setup(model)\n"])


def test_json_of_nothing_is_an_empty_list() -> None:
    put("a.py", UNRELATED)
    done = Done("--check", "--output-format", "json")
    assert (json.loads(done.out), done.status) == ([], 0)


def test_concise_is_a_line_for_each_finding() -> None:
    put("a.py", FAULTY)
    done = Done("--check", "--output-format", "concise")
    assert done.out.startswith(b"a.py:5:1: FF101 [fixable] ")
    assert done.out.count(b"\n") == 1


def test_quiet_says_nothing_but_errors() -> None:
    put("a.py", FAULTY)
    done = Done("--check", "--quiet", ".", "missing.py")
    assert (done.out, done.err, done.status) == (b"", "error: missing.py: no such file or folder\n", 2)


def test_verbose_says_what_was_left_out() -> None:
    put("a.py", FAULTY)
    put("old/b.py", FAULTY)
    put("env/pyvenv.cfg", "")
    done = Done("--check", "-v", "--exclude", "old")
    assert "env: a virtual environment\nold: excluded or ignored\n" in done.err
    assert "1 file, 1 of them analysed" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.py",), "missing.py: no such file or folder"),
        (("empty",), "empty: a folder without Python files"),
        (("broken.py",), "broken.py:1:13: cannot be parsed"),
        (("bytes.py",), "bytes.py:1:8: cannot be decoded as utf-8: byte 0xe9"),
        (("deep.py",), "deep.py:1:"),
        (("image.png",), "image.png:1:5: not Python source"),
        (("notes.txt",), "notes.txt: not Python source"),
        (("nulls.py",), "nulls.py:1:1: not Python source: it holds a null byte"),
        (("book.ipynb",), "book.ipynb: a notebook"),
    ],
)
def test_bad_input_is_named_and_the_rest_is_done(arguments: tuple[str, ...], words: str) -> None:
    good = put("good.py", FAULTY)
    Path("empty").mkdir()
    put("broken.py", "fabric.setup(\n")
    put("bytes.py", b"fabric \xe9.setup(m)\n")
    put("deep.py", f"fabric.setup({'(' * 5000})\n")
    put("image.png", b"\x89PNG\0")
    put("notes.txt", "These are notes.\n")
    put("book.ipynb", "{}")
    put("nulls.py", b"\0" * 100)
    done = Done(*arguments, "good.py")
    assert words in done.err
    assert (done.status, good.read_text()) == (2, FIXED)


def test_unreadable_file_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, really_open = put("good.py", FAULTY), put("bad.py", FAULTY), os.open

    def refuse(path: str, *arguments: Any, **options: Any) -> int:
        if str(path) == str(bad.resolve()):
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, *arguments, **options)

    monkeypatch.setattr("os.open", refuse)
    assert Run(Mode.FIX, Settings()).files(["bad.py", "good.py"]) == 2
    assert capsys.readouterr().err.endswith("error: bad.py: cannot be read: Permission denied\n")
    assert good.read_text() == FIXED


def test_unreadable_link_in_a_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, really = put("good.py", FAULTY), os.path.realpath
    Path("linked.py").symlink_to("good.py")

    def refuse(path: Any, **options: Any) -> str:
        if str(path).endswith("linked.py"):
            raise PermissionError(13, "Permission denied", path)
        return str(really(path, **options))

    monkeypatch.setattr("os.path.realpath", refuse)
    assert Run(Mode.FIX, Settings()).files(["."]) == 2
    assert capsys.readouterr().err.endswith("error: linked.py: cannot be read: Permission denied\n")
    assert good.read_text() == FIXED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--strategy", "deepsped"), "did you mean 'deepspeed'?"),
        (("--select", "FF999"), "no rule 'FF999'"),
        (("--ignore", "discarded-setups"), "did you mean 'discarded-setup'?"),
        (("--output-format", "xml"), "xml"),
        (("--explain", "FF999"), "no rule 'FF999'"),
        (("--explain", "FF4"), "no rule 'FF4'; there are FF401, FF402"),
        (("--select", ""), "names no rule"),
        (("--ignore", ","), "names no rule"),
        (("--strategy", ""), "names no strategy"),
        (("--exclude", "["), "has a bad pattern '[': it matches nothing"),
        (("--exclude", ""), "has a bad pattern '': it matches nothing"),
        (("--exclude", "!a"), "leaves nothing out that '!a' could take back in"),
        (("--check", "--diff"), "exclude each other"),
        (("--quiet", "--verbose"), "exclude each other"),
        (("-", "a.py"), "cannot be combined"),
        (("--stdin-filename", "a.py"), "standard input"),
        (("--frobnicate",), "--frobnicate"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], words: str) -> None:
    path = put("a.py", FAULTY)
    done = Done(*arguments)
    assert (done.status, done.out) == (2, b"")
    assert words in " ".join(done.err.split())
    assert path.read_text() == FAULTY


def test_bad_settings_write_nothing_under_them() -> None:
    path = put("a.py", FAULTY)
    put("pyproject.toml", "[tool.fabric-fix]\nstrategie = 'ddp'\n")
    done = Done()
    assert "pyproject.toml: unknown key tool.fabric-fix.strategie; did you mean 'strategy'?" in done.err
    assert done.err.count("unknown key") == 1
    assert (done.status, path.read_text()) == (2, FAULTY)


def test_settings_of_the_project_and_the_command_line_over_them() -> None:
    put("a.py", FAULTY)
    put("pyproject.toml", "[tool.fabric-fix]\nignore = ['FF101']\noutput-format = 'concise'\n")
    assert Done("--check").status == 0
    assert Done("--check", "--ignore", "FF201").out.startswith(b"a.py:5:1: FF101")


@pytest.mark.parametrize("word", ["FF101", "ff1", "discarded-setup", "FF"])
def test_rules_are_selected_by_code_beginning_and_name(word: str) -> None:
    put("a.py", FAULTY)
    assert Done("--check", "--select", word).status == 1
    assert Done("--check", "--ignore", word).status == 0


def test_suppressed_finding_is_no_finding() -> None:
    put("a.py", FAULTY.replace("setup(model)\n", "setup(model)  # noqa: FF101\n"))
    assert Done("--check").status == 0


def test_documentation_of_rules() -> None:
    listed = Done("--list-rules")
    assert listed.out.startswith(b"FF101  discarded-setup")
    assert Done("--explain", "ff101").out == Done("--explain", "discarded-setup").out
    assert Done("--explain", "FF101").out.startswith(b"FF101 discarded-setup\n\n")


def run_in_shell(line: str) -> tuple[int, str]:
    """The exit status of a line of `sh` with the command as `$TOOL`, and what it says on standard error."""
    tool = f"{sys.executable} -m fabric_fix"
    done = subprocess.run(["sh", "-c", line.replace("$TOOL", tool)], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$TOOL - <&-", "error: <stdin>: standard input cannot be read: it is closed"),
        ("$TOOL --diff . >&-", "error: the output cannot be written: standard output is closed"),
        ("$TOOL --diff . >/dev/full", "error: the output cannot be written: No space left on device"),
        ("$TOOL --list-rules >&-", "error: the output cannot be written: standard output is closed"),
        ("$TOOL --help >/dev/full", "error: the output cannot be written: No space left on device"),
        ("$TOOL --check . 2>/dev/full", ""),
        ("$TOOL --frobnicate 2>/dev/full", ""),
    ],
)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_stream_that_is_closed_or_full(line: str, words: str) -> None:
    put("a.py", FAULTY)
    status, said = run_in_shell(line)
    assert status == 2
    assert words in said


def test_closed_standard_error_costs_the_messages_only() -> None:
    path = put("a.py", FAULTY)
    assert run_in_shell("$TOOL . 2>&-") == (1, "")
    assert path.read_text() == FIXED


@pytest.mark.parametrize("options", ["--diff .", "--check --output-format json .", "--list-rules", "--help"])
def test_reader_that_has_gone(options: str) -> None:
    for number in range(60):
        put(f"a{number}.py", FAULTY)
    status, said = run_in_shell(f"{{ $TOOL {options}; echo $? >&2; }} | true")
    assert (status, said.splitlines()[-1:]) == (0, ["141"])


def test_file_of_several_names_is_one_file() -> None:
    path = put("b.py", FAULTY)
    os.link("b.py", "a.py")
    os.link("b.py", "c.py")
    done = Done("c.py", "b.py", ".")
    assert done.err.count("FF101") == 1
    assert "Found 1 fault in 1 file: 1 fixed" in done.err
    assert (path.read_text(), Path("c.py").read_text()) == (FIXED, FIXED)


def test_newline_in_a_name_breaks_no_line() -> None:
    put("a\nb.py", FAULTY)
    assert Done("--check", "--output-format", "concise").out.startswith(b"a\\nb.py:5:1: FF101")
    assert "\na\\nb.py:5:1: FF101" in "\n" + Done("--check").err
    assert Done("c\nd.py").err == "error: c\\nd.py: no such file or folder\n"


def test_fix_that_cannot_be_made_is_left_in_every_mode() -> None:
    put("a.py", FAULTY.replace("fabric.setup(model)\n", "(w  # c\n) = fabric.setup(model)\n") + "w(x)\n")
    statuses = []
    for mode in ("--check", "--diff"):
        done = Done(mode)
        statuses.append(sorted(part for part in ("[fixable]", "[left]") if part in done.err))
    assert statuses[0] == statuses[1]


def test_version_and_help_start_no_work() -> None:
    assert Done("--version").out.startswith(b"fabric-fix, version ")
    assert b"--strategy" in Done("--help").out
    assert b"141 whoever read the output closed it" in b" ".join(Done("--help").out.split())


def test_file_without_fabric_loads_nothing_that_costs() -> None:
    put("a.py", UNRELATED)
    put(".gitignore", "")
    code = (
        "import sys, fabric_fix.cli as cli\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "print(sorted({'libcst', 'unidiff', 'pathspec', 'multiprocessing', 'fabric_fix.engine', 'json'}"
        " & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "a.py"], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
