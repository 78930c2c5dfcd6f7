"""What is kept between runs: the same is said with it as without it, and nothing that happens to it is an error."""

from __future__ import annotations

import errno
import marshal
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fabric_fix import cache, recall
from fabric_fix.cache import Cache
from fabric_fix.check import Surroundings
from fabric_fix.config import Settings
from fabric_fix.digests import ABSENT, FileDigests, digest
from fabric_fix.discovery import Discovery
from fabric_fix.engine import FileResult, Job, examine
from fabric_fix.problem import Problem
from fabric_fix.reading import read_file
from fabric_fix.registry import all_rules
from fabric_fix.run import Mode, Run

HEAD = "from lightning.fabric import Fabric\n\nfabric = Fabric()\nmodel = Net()\n"
FAULTY = HEAD + "fabric.setup(model)\nfabric.backward(model(x).sum())\n"
CLEAN = HEAD + "model = fabric.setup(model)\nfabric.backward(model(x).sum())\n"
LEFT = HEAD + "other = model\nfabric.setup(model)\nfabric.backward(other(x).sum())\n"
BROKEN = FAULTY + "def f(:\n"
UNRELATED = "print('nothing of it here')\n"
FUSED = (
    "import torch\nfrom lightning.fabric import Fabric\n\nfabric = Fabric(strategy='deepspeed')\nmodel = Net()\n"
    "model = fabric.setup_module(model)\noptimizer = torch.optim.Adam(model.parameters(), fused=True)\n"
    "optimizer = fabric.setup_optimizers(optimizer)\nfabric.backward(model(x).sum())\n"
)
"""How sure its fix is depends on the torch that the project requires."""


class Ran(NamedTuple):
    """What a run gave, and how many results it analysed and had from earlier ones."""

    status: int
    out: bytes
    err: bytes
    analysed: int
    known: int

    @property
    def said(self) -> tuple[int, bytes, bytes]:
        return self.status, self.out, self.err


Start = Callable[..., Ran]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a file of each kind."""
    texts = {"a": FAULTY, "b": CLEAN, "c": LEFT, "d": BROKEN, "e": UNRELATED, "f": FUSED}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start(project: Path, cache_folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Start:
    """Runs the tool here over the project, with a cache of its own unless another one is named."""

    def run(mode: Mode = Mode.CHECK, **options: Any) -> Ran:
        options = {"cache_dir": str(cache_folder), **options}
        capfdbinary.readouterr()
        one = Run(mode, Settings(**options))
        status = one.files(["."])
        out, err = capfdbinary.readouterr()
        return Ran(status, out, err, one._analysed, one._recall.known if one._recall else 0)

    return run


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.result"))


# with it as without it


@pytest.mark.parametrize("form", ["text", "concise", "json"])
@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.DIFF])
def test_what_is_known_is_said_as_if_it_were_not(start: Start, mode: Mode, form: str) -> None:
    without = start(mode, output_format=form, no_cache=True)
    first, second = start(mode, output_format=form), start(mode, output_format=form)
    assert without.said == first.said == second.said
    assert b"FF101" in without.out + without.err
    assert (without.analysed, without.known) == (first.analysed, first.known) == (5, 0)
    assert (second.analysed, second.known) == (0, 5)


@pytest.mark.parametrize("form", ["text", "json"])
def test_files_are_fixed_in_place_from_what_is_known(start: Start, project: Path, form: str) -> None:
    originals = {path: path.read_bytes() for path in project.glob("*.py")}
    without = start(Mode.FIX, output_format=form, no_cache=True)
    fixed = {path: path.read_bytes() for path in originals}
    assert fixed != originals

    def restore() -> None:
        for path, data in originals.items():
            path.write_bytes(data)

    restore()
    assert start(Mode.DIFF).analysed == 5  # the same fixes, so a run in place can use them
    assert start(Mode.FIX, output_format=form)._replace(analysed=0, known=0) == without._replace(analysed=0)
    assert {path: path.read_bytes() for path in originals} == fixed
    restore()
    assert start(Mode.FIX, output_format=form).known == 5
    again = start(Mode.FIX)
    assert again.known + again.analysed == 5
    assert again.analysed > 0, "a file that was rewritten has another content"
    assert {path: path.read_bytes() for path in originals} == fixed


def test_known_and_unknown_results_keep_their_order(start: Start, project: Path) -> None:
    start()
    for name in ("a", "c"):
        path = project / f"{name}.py"
        path.write_text("# new\n" + path.read_text())
    mixed = start(output_format="concise")
    assert (mixed.analysed, mixed.known) == (3, 2)  # the two, and the one with a finding, which any file may use
    assert mixed.said == start(output_format="concise", no_cache=True).said


def test_nothing_is_loaded_for_an_analysis_that_is_not_needed(project: Path) -> None:
    (project / "d.py").unlink()
    for name in ("a", "c", "f"):
        (project / f"{name}.py").write_text(CLEAN)
    script = (
        "import sys\nfrom fabric_fix.cli import command\nstatus = command.main(['--check'], standalone_mode=False)\n"
        "print(status, [name for name in ('fabric_fix.engine', 'ast', 'pickle', 'tempfile') if name in sys.modules])\n"
    )
    outputs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout
        for _ in range(2)
    ]
    assert "fabric_fix.engine" in outputs[0]
    assert outputs[1].startswith("0 [")
    assert "fabric_fix.engine" not in outputs[1]


# what renews a result


@pytest.mark.parametrize(
    "options",
    [
        {"select": ("FF101",)},
        {"ignore": ("FF102",)},
        {"strategy": ("deepspeed",)},
        {"unsafe_fixes": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_settings_have_other_results(start: Start, options: dict[str, object]) -> None:
    start()
    assert start(**options).known == 0
    assert start(**options).known == 5
    assert start(**options).said == start(no_cache=True, **options).said
    assert start().known == 5


def test_looking_only_and_fixing_have_other_results(start: Start) -> None:
    start(Mode.CHECK)
    assert start(Mode.DIFF).known == 0


def test_another_place_is_another_file(start: Start, project: Path) -> None:
    start()
    (project / "a.py").rename(project / "z.py")
    renamed = start(output_format="concise")
    assert (renamed.analysed, renamed.known) == (4, 1)  # the new one, and those with findings
    assert b"z.py:5:1: FF101" in renamed.out


def test_another_tool_knows_nothing(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    monkeypatch.setattr(recall, "tool", lambda: "another one")
    assert start().known == 0


def test_a_change_to_the_tool_makes_it_another_one(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for place in (tmp_path / "a.py", tmp_path / "inner" / "b.py"):
        place.write_text("")
    before = recall._sources(str(tmp_path), deep=True)
    os.utime(tmp_path / "inner" / "b.py", (1, 1))
    changed = recall._sources(str(tmp_path), deep=True)
    assert len(before) == len(changed) == 2
    assert before != changed
    assert recall._sources(str(tmp_path / "none"), deep=True) != []


def test_requirements_of_the_project_renew_what_depends_on_them(start: Start, project: Path) -> None:
    unsure = start(output_format="concise")
    assert b"f.py:8:13: FF201 [unsafe]" in unsure.out
    (project / "requirements.txt").write_text("torch>=2.5\n")
    sure = start(output_format="concise")
    assert b"f.py:8:13: FF201 [fixable]" in sure.out
    assert sure.analysed + sure.known == 5
    assert sure.analysed > 0
    (project / "requirements.txt").write_text("torch>=2.0\n")
    assert start(output_format="concise").said == unsure.said
    (project / "requirements.txt").unlink()
    assert start(output_format="concise").said == unsure.said
    assert start().known == 5


def test_a_result_says_which_files_it_depends_on(project: Path) -> None:
    (project / "setup.py").write_bytes(b"torch\r\n")
    job = Job(
        "f.py", str(project / "f.py"), FUSED.encode(), all_rules(), around=Surroundings(str(project), is_kept=True)
    )
    consulted = dict(examine(job).consulted)
    assert consulted[str(project / "setup.py")] == digest(b"torch\r\n")
    assert consulted[str(project / "requirements.txt")] == ABSENT
    assert str(project / "pyproject.toml") in consulted


def test_a_dependency_that_changed_makes_a_miss(tmp_path: Path) -> None:
    other, absent = tmp_path / "other.py", tmp_path / "absent.py"
    other.write_bytes(b"1")
    for said in (b"x", b"y"):
        result = FileResult("a.py", "/a.py", b"x", said, consulted=((str(other), digest(b"1")), (str(absent), ABSENT)))
        store = Cache(str(tmp_path / "cache"))
        store.put("key", result)
        assert store.get("key", FileDigests()) == (() if said == b"x" else (result,))
        other.write_bytes(b"2")
        assert store.get("key", FileDigests()) is None
        other.write_bytes(b"1")
        absent.touch()
        assert store.get("key", FileDigests()) is None
        absent.unlink()
        assert store.get("key", FileDigests()) is not None


def test_a_dependency_is_read_once_in_a_run(tmp_path: Path) -> None:
    path, files = tmp_path / "a", FileDigests()
    path.write_bytes(b"1")
    assert files.of(str(path)) == digest(b"1")
    path.write_bytes(b"2")
    assert files.of(str(path)) == digest(b"1")


def test_what_may_be_another_time_different_is_not_kept(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("fabric_fix.engine.check_text", fail)
        assert b"nested too deeply" in start().err
    ran = start()
    assert ran.known == 0
    assert b"nested too deeply" not in ran.err


# whatever stands there


def spoil_content(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def put_foreign(path: Path) -> None:
    path.write_bytes(b"\x80\x04K\x01.")


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    "spoil", [spoil_content, cut, empty, put_foreign, put_folder, put_pipe, put_dangling_link], ids=lambda f: f.__name__
)
def test_a_spoilt_file_is_as_good_as_none(start: Start, cache_folder: Path, spoil: Callable[[Path], None]) -> None:
    good = start()
    for path in entries(cache_folder):
        spoil(path)
    again = start()
    assert again == good
    third = start()
    assert third.said == good.said
    assert third.known == (0 if spoil is put_folder else 5)


def test_entries_under_other_names_are_no_entries(start: Start, cache_folder: Path) -> None:
    good = start()
    paths = entries(cache_folder)
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)
    assert start() == good


class Evil:
    """What a pickle could do."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("done",)


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps(Evil()),
        b"\x80\x04\x8c\x0efabric_fix.run\x8c\x08os.mkdir\x93\x8c\x04done\x85R.",
        b"\x80\x04\x8c\x14fabric_fix.prefilter\x8c\x0bis_relevant\x93.",
        pickle.dumps(Problem("a", "b")),
        b"no pickle",
    ],
)
def test_what_is_no_result_is_neither_run_nor_taken(project: Path, cache_folder: Path, pickled: bytes) -> None:
    store = Cache(str(cache_folder))
    store.write("key.result", marshal.dumps(((), pickled)))
    assert store.get("key", FileDigests()) is None
    assert not (project / "done").exists()


@pytest.mark.parametrize("content", [b"", b"?", marshal.dumps(1), marshal.dumps(((), b"", 1))])
def test_what_is_no_entry_is_not_taken(tmp_path: Path, content: bytes) -> None:
    store = Cache(str(tmp_path / "cache"))
    store.write("key.result", content)
    store.write("key.index", content)
    assert store.get("key", FileDigests()) is None
    assert store.get_index("key") == {}


def test_the_folder_can_be_deleted_while_it_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    store = Cache(str(folder))
    for _ in range(3):
        store.put("key", FileResult("a.py", "/a.py", b"x", b"y"))
        assert store.get("key", FileDigests()) is not None
        shutil.rmtree(folder)
        assert store.get("key", FileDigests()) is None
    assert store.trouble is None


def test_several_processes_share_it(start: Start, project: Path, cache_folder: Path) -> None:
    for number in range(30):
        (project / f"n{number}.py").write_text(FAULTY + f"# {number}\n")
    expected = start(no_cache=True, output_format="concise")
    command = [sys.executable, "-m", "fabric_fix", "--check", "--output-format", "concise"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for process in running:
        out, err = process.communicate()
        assert (process.returncode, out, err) == expected.said
    assert start(output_format="concise").known == 35
    assert {path.suffix for path in cache_folder.iterdir()} <= {".result", ".TAG", ""}


# where nothing can be kept


@pytest.mark.parametrize(("call", "code"), [("open", errno.EROFS), ("replace", errno.ENOSPC), ("mkdir", errno.EACCES)])
def test_where_nothing_can_be_written_nothing_is_kept(
    start: Start, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    good, real = start(no_cache=True), getattr(os, call)

    def refuse(path: str, *arguments: object, **options: object) -> object:
        if str(path).startswith(str(cache_folder)):
            raise OSError(code, os.strerror(code))
        return real(path, *arguments, **options)

    monkeypatch.setattr(f"fabric_fix.cache.os.{call}", refuse)
    assert start() == good
    assert start() == good
    assert entries(cache_folder) == []
    assert not list(cache_folder.glob("*.tmp"))
    told = start(verbose=True)
    assert f"{cache_folder}: nothing is kept: {os.strerror(code)}".encode() in told.err


def test_a_folder_that_cannot_be_written_is_still_read(
    start: Start, project: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    (project / "a.py").write_text(CLEAN)
    monkeypatch.setattr(Cache, "_write", lambda *_: (_ for _ in ()).throw(OSError(errno.EROFS, "Read-only")))
    for _ in range(2):
        ran = start()
        assert (ran.analysed, ran.known) == (3, 2)  # the one, and those with findings


def test_a_folder_of_another_user_is_not_used(
    start: Start, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    before = entries(cache_folder)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert start().known == 0
    assert start(verbose=True).err.count(b"nothing is kept: it belongs to another user") == 1
    assert entries(cache_folder) == before


def test_a_file_of_another_user_is_not_used(start: Start, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    monkeypatch.setattr(Cache, "_refuse_anothers", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert start().known == 0


def test_a_file_in_the_place_of_the_folder(start: Start, cache_folder: Path) -> None:
    good = start(no_cache=True)
    cache_folder.write_text("mine")
    assert start() == good
    assert cache_folder.read_text() == "mine"


def test_without_a_cache_nothing_is_read_or_written(start: Start, project: Path, cache_folder: Path) -> None:
    before = sorted(os.listdir(project))
    start(no_cache=True)
    start(no_cache=True, cache_dir=None)
    assert not cache_folder.exists()
    assert sorted(os.listdir(project)) == before
    start()
    assert start(no_cache=True).known == 0


# the folder


def test_the_folder_is_private_and_says_what_it_is(start: Start, cache_folder: Path) -> None:
    start()
    assert cache_folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in entries(cache_folder)} == {0o600}
    assert (cache_folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert (cache_folder / ".gitignore").read_text().endswith("\n*\n")


def test_a_folder_that_holds_something_else_is_not_hidden_from_git(start: Start, project: Path) -> None:
    start(cache_dir=str(project))
    assert not (project / ".gitignore").exists()
    start(cache_dir=str(project))  # the first run puts a folder where files are looked for
    assert start(cache_dir=str(project)).known == 5


def test_it_is_in_the_root_of_the_project(start: Start, project: Path) -> None:
    inner = project / "inner"
    inner.mkdir()
    (inner / "a.py").write_text(FAULTY)
    start(cache_dir=None)
    assert start(cache_dir=None).known == 6
    assert len(entries(project / ".fabric_fix_cache")) == 6
    assert os.listdir(inner) == ["a.py"]


def test_one_repository_has_one_cache(project: Path) -> None:
    (project / "inner").mkdir()
    (project / "inner" / "pyproject.toml").touch()
    assert recall.home_of(str(project / "inner")) == str(project / "inner")
    (project / ".git").mkdir()
    assert recall.home_of(str(project / "inner")) == str(project)


def test_without_a_project_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    assert recall.home_of(str(tmp_path / "inner")) == str(tmp_path)


def test_the_setting_is_relative_to_its_file(
    project: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    (project / "pyproject.toml").write_text("[tool.fabric-fix]\ncache-dir = 'kept/here'\n")
    (project / "inner").mkdir()
    (project / "a.py").rename(project / "inner" / "a.py")
    monkeypatch.chdir(project / "inner")
    command = [sys.executable, "-m", "fabric_fix", "--check"]
    subprocess.run(command, capture_output=True, check=False)
    assert len(entries(cache_folder)) == 1, "the environment comes before the settings"
    monkeypatch.delenv("FABRIC_FIX_CACHE_DIR")
    subprocess.run(command, capture_output=True, check=False)
    assert len(entries(project / "kept" / "here")) == 1
    subprocess.run([*command, "--cache-dir", "option"], capture_output=True, check=False)
    assert len(entries(project / "inner" / "option")) == 1


@pytest.mark.parametrize("value", ["''", "1", "[]"])
def test_a_bad_setting_is_told(start: Start, project: Path, value: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.fabric-fix]\ncache-dir = {value}\n")
    ran = start()
    assert ran.status == 2
    assert b"tool.fabric-fix.cache-dir must be the path of a folder" in ran.err


def test_standard_input_uses_no_cache(project: Path, cache_folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "fabric_fix", "-"], input=FAULTY.encode(), capture_output=True)
    assert done.returncode == 1
    assert not cache_folder.exists()
    assert not (project / ".fabric_fix_cache").exists()


@pytest.mark.parametrize("name", [".fabric_fix_cache", "named"])
def test_nobody_looks_for_files_in_it(start: Start, project: Path, name: str) -> None:
    start(cache_dir=str(project / name))
    (project / name / "stray.py").write_text(FAULTY)
    one = Run(Mode.CHECK, Settings())
    found = [candidate.path for candidate in Discovery(one._configs).find(["."])]
    assert found == ["a.py", "b.py", "c.py", "d.py", "e.py", "f.py"]


def test_caches_of_others_are_no_concern_of_ours(project: Path) -> None:
    (project / "other").mkdir()
    (project / "other" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    (project / "other" / "x.py").write_text(FAULTY)
    found = Discovery(Run(Mode.CHECK, Settings())._configs).find(["other"])
    assert [candidate.path for candidate in found] == ["other/x.py"]


# nothing grows for ever


def test_what_is_not_used_is_removed_once_a_day(start: Start, cache_folder: Path) -> None:
    start()
    old, used, *_ = entries(cache_folder)
    mine, left_over = cache_folder / "mine.txt", cache_folder / "x.result.1-2.tmp"
    mine.touch()
    left_over.touch()
    ages = {old: 15, used: 13, mine: 100, left_over: 2}
    for path, days in ages.items():
        os.utime(path, (time.time() - days * cache.DAY,) * 2)
    store = Cache(str(cache_folder))
    store.look_through()
    assert all(path.exists() for path in ages), "it was looked through today"
    os.utime(cache_folder / "looked-through", (time.time() - 2 * cache.DAY,) * 2)
    store.look_through()
    assert [path for path in ages if not path.exists()] == [old, left_over]


def test_what_is_used_stays(start: Start, cache_folder: Path) -> None:
    start()
    for path in (*entries(cache_folder), cache_folder / "looked-through"):
        os.utime(path, (time.time() - 13 * cache.DAY,) * 2)
    assert start().known == 5
    assert all(time.time() - path.stat().st_mtime < cache.DAY for path in entries(cache_folder))


def test_the_oldest_of_too_much_is_removed(start: Start, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start()
    paths = entries(cache_folder)
    for days, path in enumerate(paths):
        os.utime(path, (time.time() - days * cache.DAY,) * 2)
    monkeypatch.setattr(cache, "MOST_BYTES", sum(path.stat().st_size for path in paths[:2]))
    (cache_folder / "looked-through").unlink()
    Cache(str(cache_folder)).look_through()
    assert entries(cache_folder) == sorted(paths[:2])


# files that do not matter


@pytest.fixture
def many(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes a run ask the index however few files there are; the files of the project that are read."""
    monkeypatch.setattr("fabric_fix.run.MANY", 1)
    monkeypatch.setattr(recall, "SETTLED", -(10**18))
    read: list[str] = []

    def opened(path: str) -> bytes:
        read.append(os.path.basename(path))
        return read_file(path)

    monkeypatch.setattr("fabric_fix.run.read_file", opened)
    return read


def test_a_file_that_does_not_matter_is_read_once(start: Start, project: Path, many: list[str]) -> None:
    good = start()
    assert "e.py" in many
    many.clear()
    assert start().said == good.said
    assert many == ["a.py", "b.py", "c.py", "d.py", "f.py"]
    (project / "e.py").write_text(FAULTY)
    assert b"e.py" in start(output_format="concise").out
    (project / "e.py").write_text(UNRELATED)
    start()
    many.clear()
    start()
    assert "e.py" not in many


def test_an_exchanged_file_is_noticed_whatever_its_times(start: Start, project: Path, many: list[str]) -> None:
    path = project / "e.py"
    path.write_text("#" * len(FAULTY))
    start()
    status = path.stat()
    path.write_text(FAULTY)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert b"e.py" in start(output_format="concise").out


def test_a_file_that_has_just_changed_is_not_trusted(
    start: Start, project: Path, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "SETTLED", 10**11)
    start()
    many.clear()
    start()
    assert "e.py" in many


def test_the_index_forgets_what_is_gone_and_keeps_what_was_not_looked_at(
    project: Path, cache_folder: Path, many: list[str]
) -> None:
    for name in ("one", "two", "three"):
        (project / name).mkdir()
        (project / name / "x.py").write_text(UNRELATED)
        (project / name / "y.py").write_text(UNRELATED)

    def run(*paths: str) -> set[str]:
        Run(Mode.CHECK, Settings(cache_dir=str(cache_folder))).files(paths)
        (name,) = (path.stem for path in cache_folder.glob("*.index"))
        index = Cache(str(cache_folder)).get_index(name)
        return {os.path.relpath(os.path.join(folder, name), project) for folder in index for name in index[folder]}

    everything = {f"{folder}/{name}.py" for folder in ("one", "two", "three") for name in "xy"} | {"e.py"}
    assert run(".") == everything
    shutil.rmtree(project / "three")
    (project / "one" / "x.py").write_text(UNRELATED + "#\n")
    (project / "one" / "y.py").unlink()
    assert run("one") == everything - {"three/x.py", "three/y.py", "one/y.py"}


def test_a_spoilt_index_is_as_good_as_none(start: Start, cache_folder: Path, many: list[str]) -> None:
    good = start()
    (index,) = cache_folder.glob("*.index")
    spoil_content(index)
    many.clear()
    assert start().said == good.said
    assert "e.py" in many
