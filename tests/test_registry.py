"""Rules are found by walking, chosen by words, and refused when they contradict each other."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from fabric_fix.problem import RegistryError
from fabric_fix.registry import all_rules, collect, matches, select, similar
from fabric_fix.rule import Rule


def rule_of(module: ModuleType, code: str, name: str) -> type[Rule]:
    rule = type("Made", (Rule,), {"code": code, "name": name, "__module__": module.__name__})
    vars(module)["Made"] = rule
    return rule


def test_rules_are_sorted_and_named_like_their_modules() -> None:
    rules = all_rules()
    assert [rule.code for rule in rules] == sorted({rule.code for rule in rules})
    assert [rule.name.replace("-", "_") for rule in rules] == [rule.__module__.rpartition(".")[2] for rule in rules]


def test_rule_that_a_module_imports_is_not_its_own() -> None:
    home, guest = ModuleType("home"), ModuleType("guest")
    rule = rule_of(home, "FF101", "one")
    vars(guest)["Made"] = rule
    assert collect([home, guest]) == (rule,)


@pytest.mark.parametrize(("code", "name"), [("FF101", "other"), ("FF102", "one")])
def test_two_rules_of_one_code_or_name_end_the_run(code: str, name: str) -> None:
    first, second = ModuleType("first"), ModuleType("second")
    rule_of(first, "FF101", "one")
    rule_of(second, code, name)
    with pytest.raises(RegistryError, match=r"first and second both have the (code FF101|name one)"):
        collect([first, second])


def test_rule_that_does_not_load_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    load = importlib.import_module

    def broken(name: str) -> ModuleType:
        if name.startswith("fabric_fix.codemods."):
            raise ZeroDivisionError("at import")
        return load(name)

    monkeypatch.setattr("importlib.import_module", broken)
    all_rules.cache_clear()
    with pytest.raises(RegistryError, match=r"fabric_fix\.codemods\.\w+ do not load: ZeroDivisionError: at import"):
        all_rules()


@pytest.mark.parametrize("word", ["FF101", "ff101", "FF1", "FF", "ALL", "one", " One "])
def test_words_that_mean_a_rule(word: str) -> None:
    assert matches(rule_of(ModuleType("m"), "FF101", "one"), word)


@pytest.mark.parametrize("word", ["FF102", "FF2", "", "on", "101", "FF1011"])
def test_words_that_do_not(word: str) -> None:
    assert not matches(rule_of(ModuleType("m"), "FF101", "one"), word)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("FF1", "; there are FF101"),
        ("ff199", "; there are FF101"),
        ("FF999", "; --list-rules shows all"),
        ("FF", "; --list-rules shows all"),
        ("two-", "; did you mean 'two'?"),
        ("nothing like it", "; --list-rules shows all"),
    ],
)
def test_hint_beside_a_word_that_means_no_rule(word: str, hint: str) -> None:
    one, two = rule_of(ModuleType("a"), "FF101", "one"), rule_of(ModuleType("b"), "FF201", "two")
    assert similar(word, [one, two]) == hint


def test_ignored_wins_over_selected() -> None:
    one, two = rule_of(ModuleType("a"), "FF101", "one"), rule_of(ModuleType("b"), "FF201", "two")
    assert select([one, two], None, ()) == (one, two)
    assert select([one, two], (), ()) == ()
    assert select([one, two], ("FF1", "two"), ("FF201",)) == (one,)
