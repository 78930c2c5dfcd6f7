"""The rules: found by walking the package `codemods`, so that adding a rule is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import ModuleType

from fabric_fix.problem import RegistryError
from fabric_fix.rule import Rule


@lru_cache(maxsize=1)
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule there is, sorted by code; RegistryError when one cannot be loaded."""
    package = _import("fabric_fix.codemods")
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return collect(_import(f"fabric_fix.codemods.{name}") for name in names)


def collect(modules: Iterable[ModuleType]) -> tuple[type[Rule], ...]:
    """The rules that these modules define themselves, sorted by code; RegistryError when two claim a code or name."""
    rules = sorted((rule for module in modules for rule in _defined_in(module)), key=lambda rule: rule.code)
    for attribute in ("code", "name"):
        _refuse_duplicates(rules, attribute)
    return tuple(rules)


def select(rules: Sequence[type[Rule]], chosen: Sequence[str] | None, ignored: Sequence[str]) -> tuple[type[Rule], ...]:
    """The rules that `chosen` names (all for None, and none for an empty list) and `ignored` does not."""
    wanted = [rule for rule in rules if chosen is None or any(matches(rule, word) for word in chosen)]
    return tuple(rule for rule in wanted if not any(matches(rule, word) for word in ignored))


def matches(rule: type[Rule], word: str) -> bool:
    """Whether a word of the user means this rule: its code, a beginning of it such as "FF1", its name, or "ALL"."""
    word = word.strip().upper()
    return word in ("ALL", rule.name.upper()) or (word.startswith("F") and rule.code.startswith(word))


def similar(word: str, rules: Sequence[type[Rule]]) -> str:
    """What to say beside a word that means no rule: the codes of its group, or the name that is like it."""
    code = word.strip().upper()
    if code[:2] == "FF" and code[2:].isdecimal():
        group = [rule.code for rule in rules if rule.code.startswith(code[:3])]
        return f"; there are {', '.join(group)}" if group else "; --list-rules shows all"
    names = [name for rule in rules for name in (rule.code, rule.name)]
    return closest(word, names) or "; --list-rules shows all"


def closest(word: str, known: Sequence[str]) -> str:
    """A "did you mean" for a word that is not known, or nothing when no known one is like it."""
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in known}
    found = get_close_matches(word.casefold(), list(folded), n=1)
    return f"; did you mean '{folded[found[0]]}'?" if found else ""


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a broken rule raises at import, the run must end with its name
        raise RegistryError(f"the rules in {name} do not load: {type(error).__name__}: {error}") from error


def _defined_in(module: ModuleType) -> list[type[Rule]]:
    """Rule classes whose home is this module: one imported from a neighbour must not register twice."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Rule)]
    return [rule for rule in classes if rule.__module__ == module.__name__ and hasattr(rule, "code")]


def _refuse_duplicates(rules: Sequence[type[Rule]], attribute: str) -> None:
    seen: dict[str, type[Rule]] = {}
    for rule in rules:
        value = getattr(rule, attribute)
        if (other := seen.setdefault(value, rule)) is not rule:
            raise RegistryError(f"{other.__module__} and {rule.__module__} both have the {attribute} {value}")
