"""Settings of a project, and how the command line overrides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric_fix.config import ConfigError, Configs, Settings, read_settings, strategy_names


def project(tmp_path: Path, text: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(text)
    return tmp_path


def test_all_options(tmp_path: Path) -> None:
    project(
        tmp_path,
        '[tool.fabric-fix]\nstrategy = ["DeepSpeed", "xla"]\nselect = ["FF1"]\nignore = ["FF101"]\n'
        'exclude = ["tests/"]\nunsafe-fixes = true\noutput-format = "json"\nquiet = true\n',
    )
    settings = Configs(Settings()).at(str(tmp_path))
    assert settings == Settings(
        ("deepspeed", "xla"), ("FF1",), ("FF101",), ("tests/",), True, "json", True, None, str(tmp_path)
    )


def test_command_line_wins(tmp_path: Path) -> None:
    project(tmp_path, '[tool.fabric-fix]\nunsafe-fixes = true\nstrategy = "ddp"\nexclude = "a"\n')
    settings = Configs(Settings(strategy=("xla",), unsafe_fixes=False)).at(str(tmp_path))
    assert settings == Settings(("xla",), exclude=("a",), unsafe_fixes=False, base=str(tmp_path))


def test_command_line_chooses_between_quiet_and_verbose(tmp_path: Path) -> None:
    project(tmp_path, "[tool.fabric-fix]\nquiet = true\n")
    assert Configs(Settings()).at(str(tmp_path)).quiet is True
    settings = Configs(Settings(verbose=True)).at(str(tmp_path))
    assert (settings.quiet, settings.verbose) == (False, True)


def test_empty_lists_but_for_the_selection(tmp_path: Path) -> None:
    project(tmp_path, "[tool.fabric-fix]\nstrategy = []\nignore = []\nexclude = []\n")
    settings = Configs(Settings()).at(str(tmp_path))
    assert (settings.strategy, settings.ignore, settings.exclude) == ((), (), ())


def test_excluded_folder_with_a_file_taken_back_in(tmp_path: Path) -> None:
    project(tmp_path, '[tool.fabric-fix]\nexclude = ["tests/*", "!tests/keep.py"]\n')
    assert Configs(Settings()).at(str(tmp_path)).exclude == ("tests/*", "!tests/keep.py")


def test_excludes_of_the_command_line_are_relative_to_its_folder(tmp_path: Path) -> None:
    project(tmp_path, '[tool.fabric-fix]\nexclude = "a"\n')
    settings = Configs(Settings(exclude=("b",), base="/here")).at(str(tmp_path))
    assert (settings.exclude, settings.base) == (("b",), "/here")


def test_nearest_table_counts_and_not_a_nearer_file_without_one(tmp_path: Path) -> None:
    project(tmp_path, '[tool.fabric-fix]\nstrategy = "ddp"\n')
    inner = tmp_path / "package" / "module"
    inner.mkdir(parents=True)
    project(inner.parent, "[project]\nname = 'x'\n")
    assert Configs(Settings()).at(str(inner)).strategy == ("ddp",)


def test_nothing_above_the_repository(tmp_path: Path) -> None:
    project(tmp_path, '[tool.fabric-fix]\nstrategy = "ddp"\n')
    inner = tmp_path / "repository"
    (inner / ".git").mkdir(parents=True)
    assert Configs(Settings()).at(str(inner)).strategy is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.fabric-fix\n", "not valid TOML"),
        ("[tool.fabric-fix]\nstrategie = 'ddp'\n", "unknown key tool.fabric-fix.strategie; did you mean 'strategy'?"),
        ("[tool.fabric-fix]\nunsafe_fixes = true\n", "did you mean 'unsafe-fixes'?"),
        ("[tool.fabric-fix]\nzzz = 1\n", "known keys: cache-dir, exclude"),
        ("[tool.fabric-fix]\nstrategy = 3\n", "tool.fabric-fix.strategy must be a list of strings"),
        ("[tool.fabric-fix]\nselect = [1]\n", "tool.fabric-fix.select must be a list of strings"),
        ("[tool.fabric-fix]\nselect = ['FF9999']\n", "has no rule 'FF9999'"),
        ("[tool.fabric-fix]\nselect = ['']\n", "tool.fabric-fix.select names no rule"),
        ("[tool.fabric-fix]\nselect = []\n", "tool.fabric-fix.select names no rule"),
        ("[tool.fabric-fix]\nexclude = ['[']\n", "tool.fabric-fix.exclude has a bad pattern '[': it matches nothing"),
        ("[tool.fabric-fix]\nexclude = '!a'\n", "tool.fabric-fix.exclude leaves nothing out that '!a' could take"),
        ("[tool.fabric-fix]\nquiet = true\nverbose = true\n", "tool.fabric-fix.verbose exclude each other"),
        ("[tool.fabric-fix]\nunsafe-fixes = 'yes'\n", "tool.fabric-fix.unsafe-fixes must be true or false"),
        ("[tool.fabric-fix]\noutput-format = 'xml'\n", "must be one of text, concise, json"),
        ("[tool]\nfabric-fix = 3\n", "must be a table"),
    ],
)
def test_bad_settings_name_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    project(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        read_settings(str(tmp_path / "pyproject.toml"))
    assert words in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "pyproject.toml"))


def test_bad_file_of_a_parent_is_told_as_that(tmp_path: Path) -> None:
    project(tmp_path, "[tool.fabric-fix\n")
    (tmp_path / "sub").mkdir()
    with pytest.raises(ConfigError, match=r"pyproject\.toml: not valid TOML"):
        Configs(Settings()).at(str(tmp_path / "sub"))


def test_strategies_in_any_case_and_with_commas() -> None:
    assert strategy_names(("DDP, xla_fsdp", "Deepspeed_Stage_3", "ddp")) == ("ddp", "xla_fsdp", "deepspeed_stage_3")


def test_unknown_strategy_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no strategy 'deepsped'; did you mean 'deepspeed'\?.*known: auto, dp, ddp"):
        strategy_names(("deepsped",))
