"""What scripts, configurations and documentation say of the strategies that programs run with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabric_fix.analysis.hints import Hint, Hints, around, hints
from fabric_fix.check import Surroundings, check_text
from fabric_fix.registry import all_rules

SPLIT = """\
import lightning as L
import torch

fabric = L.Fabric({arguments})
model = torch.nn.Linear(2, 1)
model = fabric.setup_module(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = fabric.setup_optimizers(optimizer)
fabric.backward(model(torch.randn(4, 2)).sum())
optimizer.step()
"""


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def said(root: Path) -> list[tuple[str, str, int, str | None, str]]:
    """The hints, with the programs relative to the root."""
    found = hints(str(root))
    return [(h.strategy, h.path, h.line, h.script and str(Path(h.script).relative_to(root)), h.how) for h in found]


def command(root: Path, name: str, text: str) -> list[tuple[str, int, str | None]]:
    """Strategy, line and program of the hints of one file beside `train.py` and `sub/other.py`."""
    write(root, {"train.py": "", "sub/other.py": "", name: text})
    return [(strategy, line, script) for strategy, _, line, script, _ in said(root)]


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "fabric run train.py --strategy deepspeed",
        "fabric run --strategy=deepspeed --devices=2 ./train.py",
        "fabric run model --devices 2 --strategy deepspeed train.py --lr 0.1",
        "lightning run model --strategy deepspeed train.py",
        "X=1 srun -n 4 /opt/bin/fabric run --strategy 'deepspeed' \"train.py\" > log.txt 2>&1",
        "true && (cd sub; cd ..; fabric run --strategy deepspeed train.py) | tee log",
        "bash -c 'fabric run --strategy deepspeed train.py'",
        "S=deepspeed; fabric run --strategy ${S} train.py",
        "fabric run --strategy ${1:-deepspeed} train.py",
        "LT_STRATEGY=deepspeed python -u train.py",
        "env LT_STRATEGY=DeepSpeed torchrun --nproc-per-node 2 train.py",
        "LT_STRATEGY=deepspeed python -m train",
        "export LT_STRATEGY=deepspeed; fabric run train.py",
        "cd $(dirname $0) && fabric run --strategy deepspeed train.py",
    ],
)
def test_command_that_starts_a_program_with_a_strategy(text: str, tmp_path: Path) -> None:
    assert command(tmp_path, "run.sh", f"#!/bin/sh\n{text}\n") == [("deepspeed", 2, "train.py")]


@pytest.mark.parametrize(
    "text",
    [
        "fabric run train.py",
        "fabric run --strategy deepspeed missing.py",
        "fabric run --strategy deepspeed $SCRIPT",
        "fabric run --strategy $STRATEGY train.py",
        "fabric run --strategy turbo train.py",
        "fabric run --strategy deepspeed_stage_3_offload train.py",  # `fabric run` refuses it
        "fabric run --accelerator cpu --strategy deepspeed train.py",  # DeepSpeed does
        "fabric run train.py -- --strategy deepspeed",
        "python train.py --strategy deepspeed",
        "STRATEGY=deepspeed python train.py",
        "LT_STRATEGY=deepspeed",
        "LT_STRATEGY=deepspeed cat train.py",
        "# fabric run --strategy deepspeed train.py",
        "cd elsewhere && fabric run --strategy deepspeed train.py",
    ],
)
def test_command_that_says_nothing(text: str, tmp_path: Path) -> None:
    assert command(tmp_path, "run.sh", f"{text}\n") == []


def test_commands_over_several_lines_and_broken_quotes(tmp_path: Path) -> None:
    text = "echo it's\nfabric run \\\n  --strategy ddp \\\n  train.py\ncd sub\nfabric run --strategy fsdp other.py\n"
    assert command(tmp_path, "run.bash", text) == [("ddp", 2, "train.py"), ("fsdp", 6, "sub/other.py")]


def test_makefile_with_variables_and_a_shell_for_each_line(tmp_path: Path) -> None:
    text = (
        "S ?= deepspeed\nexport LT_STRATEGY := fsdp\n\na:\n\t@cd sub && fabric run --strategy $(S) other.py\n"
        "\tpython train.py\n"
    )
    assert command(tmp_path, "Makefile", text) == [("deepspeed", 5, "sub/other.py"), ("fsdp", 6, "train.py")]


def test_justfile(tmp_path: Path) -> None:
    text = 's := "deepspeed"\n\ntrain:\n    fabric run --strategy {{s}} train.py\n'
    assert command(tmp_path, "justfile", text) == [("deepspeed", 4, "train.py")]


def test_dockerfile(tmp_path: Path) -> None:
    start = 'CMD ["fabric", "run", "--strategy", "ddp", "train.py"]'
    text = f"FROM a\nENV LT_STRATEGY deepspeed\nRUN python sub/other.py\n{start}\n"
    assert command(tmp_path, "Dockerfile", text) == [("deepspeed", 3, "sub/other.py"), ("ddp", 4, "train.py")]


def test_prose_counts_for_its_code_only(tmp_path: Path) -> None:
    text = (
        "Say fabric run --strategy fsdp train.py or `fabric run --strategy ddp train.py`.\n\n"
        "~~~\n$ fabric run --strategy=deepspeed \\\n    train.py\n~~~\n\n    fabric run --strategy dp sub/other.py\n"
    )
    expected = [("ddp", 1, "train.py"), ("deepspeed", 4, "train.py"), ("dp", 8, "sub/other.py")]
    assert command(tmp_path, "docs/use.md", text) == expected


def test_workflow_steps_see_the_environment_of_their_job(tmp_path: Path) -> None:
    text = """\
env: {LT_STRATEGY: ddp}
jobs:
  one:
    env:
      LT_STRATEGY: deepspeed
    strategy: {matrix: {python: [3]}}
    steps:
      - uses: actions/checkout@v4
      - run: |
          pip install .
          python train.py
  two:
    steps:
      - run: fabric run --strategy fsdp other.py
        working-directory: sub
      - run: python train.py
"""
    expected = [("deepspeed", 11, "train.py"), ("fsdp", 14, "sub/other.py"), ("ddp", 16, "train.py")]
    assert command(tmp_path, ".github/workflows/ci.yml", text) == expected


def test_script_without_a_suffix_needs_a_shell_in_its_first_line(tmp_path: Path) -> None:
    line = "fabric run --strategy ddp train.py\n"
    write(
        tmp_path, {"bin/go": "#!/usr/bin/env bash\n" + line, "bin/notes": line, "bin/tool": "#!/usr/bin/perl\n" + line}
    )
    assert [path for _, path, *_ in (write(tmp_path, {"train.py": ""}), said(tmp_path))[1]] == ["bin/go"]


def test_program_that_may_be_one_of_two_is_none(tmp_path: Path) -> None:
    files = {"train.py": "", "scripts/train.py": "", "scripts/run.sh": "fabric run --strategy ddp train.py\n"}
    assert said(write(tmp_path, files)) == []


# --- configurations ---------------------------------------------------------------------------------------------------


def config(root: Path, text: str) -> list[tuple[str, int]]:
    return [(strategy, line) for strategy, _, line, _, _ in said(write(root, {"conf/config.yaml": text}))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  b:\n    _target_: lightning.Fabric\n    strategy: deepspeed_stage_2\n", ("deepspeed_stage_2", 4)),
        ("x: [{_target_: lightning_fabric.Fabric, strategy: FSDP}]\n", ("fsdp", 1)),
        ("strategy: ddp\nprecision: 32\n", ("ddp", 1)),
        ("fabric:\n  num_nodes: 2\n  strategy: ddp_spawn\n", ("ddp_spawn", 3)),
        ("s:\n  _target_: lightning.fabric.strategies.DeepSpeedStrategy\n  stage: 3\n", ("deepspeed_stage_3", 2)),
        ("fabric:\n  devices: 1\n  strategy: {_target_: lightning.fabric.strategies.FSDPStrategy}\n", ("fsdp", 3)),
        ("a: {b: deepspeed}\nfabric: {devices: 2, strategy: '${a.b}'}\n", ("deepspeed", 2)),
        ("n: 2\nfabric: {devices: 2, strategy: 'deepspeed_stage_${n}'}\n", ("deepspeed_stage_2", 2)),
        ("fabric: {devices: 2, strategy: '${oc.env:STRATEGY, fsdp}'}\n", ("fsdp", 1)),
        ("accelerator: tpu\nstrategy: auto\n", ("xla", 2)),
        ("accelerator: tpu\nstrategy: fsdp\n", ("xla_fsdp", 2)),
        ("b: &b {strategy: ddp}\nfabric:\n  <<: *b\n  devices: 2\n", ("ddp", 1)),
        ("other: !mine {a: 1}\n---\nfabric: {devices: 2, strategy: ddp}\n", ("ddp", 3)),
    ],
)
def test_configuration_that_says_a_strategy(text: str, expected: tuple[str, int], tmp_path: Path) -> None:
    assert config(tmp_path, text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "strategy: ddp\n",
        "trainer: {devices: 2, strategy: ddp}\n",
        "fabric: {_target_: lightning.pytorch.Trainer, devices: 2, strategy: ddp}\n",
        "fabric: {devices: 2, strategy: null}\n",
        "fabric: {devices: 2, strategy: auto}\n",
        "fabric: {devices: 2, strategy: '???'}\n",
        "fabric: {devices: 2, strategy: !env ddp}\n",
        "fabric: {devices: 2, strategy: '${missing}'}\n",
        "a: '${b}'\nb: '${a}'\nfabric: {devices: 2, strategy: '${a}'}\n",
        "fabric: {accelerator: cpu, strategy: deepspeed}\n",
        "fabric: {devices: [2, strategy: ddp}\n",
        "fabric: {devices: {% n %}, strategy: ddp}\n",
        "a: &a [*a]\nstrategy: ddp\ndevices: 1\n",
        "\x00strategy: ddp\ndevices: 1\n",
    ],
)
def test_configuration_that_says_nothing(text: str, tmp_path: Path) -> None:
    assert config(tmp_path, text) == []


def test_aliases_that_repeat_one_another_are_given_up(tmp_path: Path) -> None:
    text = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert config(tmp_path, text + "strategy: ddp\ndevices: 1\n") == []


HYDRA = '@hydra.main(version_base=None, config_path="conf", config_name="main")\n'
GROUPS = {
    "train.py": HYDRA,
    "conf/fabric/ddp.yaml": "_target_: lightning.Fabric\nstrategy: ddp\n",
    "conf/fabric/ds.yaml": "_target_: lightning.Fabric\nstrategy: deepspeed\n",
    "conf/trainer/x.yaml": "strategy: fsdp\ndevices: 1\n",
}


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        ("defaults:\n  - fabric: ds\n", ["conf/fabric/ds.yaml"]),
        ("defaults: [fabric: ds.yaml, trainer: x]\n", ["conf/fabric/ds.yaml"]),
        ("defaults:\n  - optional fabric@own.fabric: ds\n", ["conf/fabric/ds.yaml"]),
        ("defaults:\n  - fabric: ddp\n  - override fabric: ds\n", ["conf/fabric/ds.yaml"]),
        ("defaults:\n  - fabric/ds\n", ["conf/fabric/ds.yaml"]),
        ("defaults:\n  - base\n", ["conf/fabric/ddp.yaml"]),
        ("defaults:\n  - fabric: ds\n  - _self_\nfabric: {strategy: ddp}\n", ["conf/main.yaml"]),
        ("defaults:\n  - _self_\n  - fabric: ds\nfabric: {strategy: ddp}\n", ["conf/fabric/ds.yaml"]),
        ("defaults:\n  - fabric: ds\nfabric: {strategy: ddp}\n", []),  # which one holds depends on hydra's version
        ("defaults:\n  - fabric: null\n  - other: ???\n", []),
        ("defaults:\n  - fabric: missing\n", []),
        ("seed: 1\n", []),
    ],
)
def test_only_what_the_main_configuration_takes_of_its_groups_counts(
    main: str, expected: list[str], tmp_path: Path
) -> None:
    root = write(tmp_path, {**GROUPS, "conf/base.yaml": "defaults: [fabric: ddp]\n", "conf/main.yaml": main})
    assert [path for _, path, *_ in said(root)] == expected
    assert {script for *_, script, _ in said(root)} <= {"train.py"}


def test_main_configuration_in_a_computed_folder_is_known_by_its_name(tmp_path: Path) -> None:
    program = '@hydra.main(\n    config_path=str(HERE / "conf"),\n    config_name="main.yaml",\n)\ndef main(cfg): ...\n'
    other = "defaults: [fabric: ddp]\n"
    files = {**GROUPS, "train.py": program, "conf/main.yaml": "defaults: [fabric: ds]\n", "conf/other.yaml": other}
    assert [(strategy, script) for strategy, _, _, script, _ in said(write(tmp_path, files))] == [
        ("deepspeed", "train.py")
    ]


def test_experiments_are_not_chosen_and_packages_are_followed(tmp_path: Path) -> None:
    experiment = "# @package _global_\ndefaults:\n  - override /fabric: ds\n"
    chosen = "# a note\n# @package _global_\ndefaults:\n  - /fabric: ddp\n"
    files = {**GROUPS, "conf/experiment/e.yaml": experiment, "conf/setup/s.yaml": chosen}
    root = write(tmp_path, {**files, "conf/main.yaml": "defaults: [setup: s]\n"})
    assert [(strategy, path) for strategy, path, *_ in said(root)] == [("ddp", "conf/fabric/ddp.yaml")]


# --- which program ----------------------------------------------------------------------------------------------------


def test_hint_is_for_a_program_and_what_it_imports(tmp_path: Path) -> None:
    files = {
        "run.sh": "fabric run --strategy ddp train.py\n",
        "train.py": "import os, steps\nfrom lib.fit import (\n    fit,\n)\n",
        "steps.py": "",
        "src/lib/__init__.py": "",
        "src/lib/fit.py": "from . import deep\nfrom .wide import x\n",
        "src/lib/deep.py": "from lib import fit\n",
        "src/lib/wide.py": "",
        "src/lib/other.py": "",
        "finetune.py": "",
    }
    root = write(tmp_path, files)
    found = around(str(root))
    told = {name for name in files if name.endswith(".py") and found.of(str(root / name), "")}
    assert told == {"train.py", "steps.py"} | {f"src/lib/{name}.py" for name in ("__init__", "fit", "deep", "wide")}


def test_configuration_that_nobody_names_is_for_the_programs_beside_it(tmp_path: Path) -> None:
    root = write(tmp_path, {"a/conf/x.yaml": "fabric: {devices: 2, strategy: ddp}\n"})
    found = around(str(root))
    assert [hint.strategy for hint in found.of(str(root / "a/train.py"), "cfg = load(sys.argv[1])")] == ["ddp"]
    assert found.of(str(root / "a/train.py"), "fabric = Fabric()") == ()
    assert found.of(str(root / "a/train.py"), 'cfg = load("b.yaml")') == ()
    assert found.of(str(root / "b/train.py"), "cfg = load(sys.argv[1])") == ()


def test_what_is_no_part_of_the_project_is_passed_over(tmp_path: Path) -> None:
    line = "fabric run --strategy ddp train.py\n"
    folders = [".venv", "env", "node_modules", "outputs", ".hidden", "other", "ignored"]
    files = {f"{folder}/run.sh": line for folder in folders}
    files |= {
        "env/pyvenv.cfg": "",
        "other/.git/HEAD": "",
        ".gitignore": "ignored/\n",
        "large.sh": "#" * 2_000_000 + "\n" + line,
    }
    root = write(tmp_path, {"train.py": "", **files})
    (root / "bad.sh").write_bytes(b"\xff\xfe" + line.encode())
    assert said(root) == []


def test_files_that_a_hint_depends_on_are_known(tmp_path: Path) -> None:
    root = write(
        tmp_path, {"run.sh": "fabric run --strategy ddp train.py\n", "train.py": "import steps\n", "a/b.md": ""}
    )
    found = Hints(str(root))
    assert found.of(str(root / "train.py"), "")
    assert {str(root / name) for name in ("run.sh", "train.py", "a", "a/b.md", "steps.py")} < set(found.read)


# --- the look at a file -----------------------------------------------------------------------------------------------


def messages(root: Path, arguments: str, strategies: tuple[str, ...] = ()) -> list[str]:
    text = SPLIT.format(arguments=arguments)
    write(root, {"train.py": text})
    path = str(root / "train.py")
    found = check_text(text, path, rules=all_rules(), real=path, around=Surroundings(str(root)), strategies=strategies)
    return [finding.message for finding in found.findings]


def test_finding_names_the_hint_that_it_is_due_to(tmp_path: Path) -> None:
    script = "fabric run --strategy ddp train.py\nfabric run --strategy deepspeed train.py\n"
    write(tmp_path, {"run.sh": script})
    (message,) = messages(tmp_path, "devices=2")
    assert message.endswith("(strategy deepspeed: `fabric run` in run.sh, line 2)")


def test_user_who_names_a_strategy_is_told_of_no_hint(tmp_path: Path) -> None:
    write(tmp_path, {"run.sh": "fabric run --strategy deepspeed train.py\n"})
    (message,) = messages(tmp_path, "devices=2", strategies=("xla",))
    assert "run.sh" not in message


@pytest.mark.parametrize(
    ("arguments", "with_run", "with_yaml"),
    [("devices=2", 1, 0), ('strategy="auto"', 1, 0), ("strategy=input()", 1, 1), ('strategy="ddp"', 0, 0)],
)
def test_environment_decides_for_auto_and_a_configuration_for_what_the_source_does_not_show(
    arguments: str, with_run: int, with_yaml: int, tmp_path: Path
) -> None:
    write(tmp_path / "a", {"run.sh": "fabric run --strategy deepspeed train.py\n"})
    write(tmp_path / "b", {"c.yaml": "strategy: deepspeed\ndevices: 2\n", "main.py": 'import train\nload("c.yaml")\n'})
    assert len(messages(tmp_path / "a", arguments)) == with_run
    assert len(messages(tmp_path / "b", arguments)) == with_yaml


def test_nothing_is_read_when_the_source_shows_every_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(root: str) -> Hints:
        raise AssertionError(root)

    monkeypatch.setattr("fabric_fix.analysis.hints.around", fail)
    assert messages(tmp_path, 'strategy="ddp"') == []
    with pytest.raises(AssertionError):
        messages(tmp_path, "strategy=input()")


def test_yaml_is_not_loaded_where_it_says_no_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    write(tmp_path, {"a.yaml": "devices: 2\n", "run.sh": "fabric run --strategy ddp train.py\n", "train.py": ""})
    assert [hint.strategy for hint in Hints(str(tmp_path)).hints] == ["ddp"]


def test_hint_as_a_message_names_it() -> None:
    hint = Hint("fsdp", "conf/a.yaml", 3, None, "yaml")
    assert str(hint) == "strategy fsdp: `strategy` in conf/a.yaml, line 3"
