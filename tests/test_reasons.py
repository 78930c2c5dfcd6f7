"""Reasons for what is left: they say what is true of the code, and where it is to be changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fabric_fix.cli import command
from tests.cases import load_cases

CASES = {case.name: case for case in load_cases()}


@pytest.mark.parametrize(
    ("name", "place", "reason"),
    [
        (
            "split_setup/model_set_up_in_parts",
            "train.py:10",
            "only a part of the model is set up, on line 13 of agents.py",
        ),
        ("split_setup/model_set_up_in_parts", "train.py:13", "(line 13 of agents.py sets up another, or a part of it)"),
        ("split_setup/optimizer_over_two_models", "train.py:12", "can have, the parameters of several models"),
        (
            "missing_setup/made_in_different_blocks",
            "train.py:21",
            "made in different blocks: set both up below line 15",
        ),
        ("backward_without_model/items_that_may_be_raw_or_others", "train.py:35", "no name here surely stands for"),
        ("backward_without_model/items_that_may_be_raw_or_others", "train.py:19", "that `models[k]` is set up"),
        ("discarded_setup/items_of_a_tuple", "train.py:27", "`pair` is a tuple, which takes no assignment"),
        ("discarded_setup/items_of_a_tuple", "train.py:36", "does not show that `view` takes an assignment"),
        ("discarded_setup/set_up_in_init_of_a_module", "train.py:15", "`net` would be a wrapped part of a module"),
        ("discarded_setup/set_up_in_init_of_a_module", "train.py:40", "whether line 41 uses `part.net`"),
        ("discarded_setup/models_of_a_dict_set_up_again", "train.py:16", "it may be set up already, on line 10"),
        (
            "split_setup/function_for_strategies_that_disagree",
            "setup_utils.py:7",
            "branch on the strategy by hand, as XLA FSDP",
        ),
        (
            "joint_setup/function_inside_the_call_asks_for_shapes",
            "train.py:34",
            "`p.ndim` on line 5 of optim_util.py is another one for sharded parameters",
        ),
        ("backward_without_model/no_name_in_scope", "train.py:8", "has no name here: pass it to this function"),
    ],
)
def test_reason(name: str, place: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CASES[name].input, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    options = [*CASES[name].options, "--no-cache", "--check", "--output-format", "json", "."]
    entries = json.loads(CliRunner().invoke(command, options, catch_exceptions=False).stdout)
    said = {f"{Path(entry['filename']).name}:{entry['location']['row']}": entry["reason"] for entry in entries}
    assert reason in said[place]
