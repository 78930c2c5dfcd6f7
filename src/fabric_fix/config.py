"""Settings: what the command line and `[tool.fabric-fix]` in the nearest `pyproject.toml` say, the former first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from fabric_fix.problem import Problem, os_reason
from fabric_fix.records import Record, replace

OUTPUT_FORMATS = ("text", "concise", "json")


class Settings(Record):
    """The options that a run or a project can set; None means that nobody said anything."""

    strategy: tuple[str, ...] | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    """Patterns of `.gitignore`, relative to `base`."""
    unsafe_fixes: bool | None = None
    output_format: str | None = None
    quiet: bool | None = None
    verbose: bool | None = None
    base: str = ""
    """The folder that `exclude` is relative to."""
    cache_dir: str | None = None
    """The folder that keeps what was found out; without one it is in the root of the repository or project."""
    no_cache: bool | None = None
    """Whether nothing is kept; said on the command line only."""
    timeout: float | None = None
    """Seconds for one file; 0 for no limit."""
    total_timeout: float | None = None
    """Seconds for the whole run; 0 for no limit. Counts where the run begins, in the working directory."""

    def over(self, other: Settings) -> Settings:
        """These settings where they say something, else the other ones."""
        said = {name: value for name, value in vars(self).items() if value is not None and name != "base"}
        if self.quiet or self.verbose:
            said |= {"quiet": bool(self.quiet), "verbose": bool(self.verbose)}  # these exclude each other
        return replace(other, **said, base=self.base if self.exclude is not None else other.base)


class ConfigError(Exception):
    """Settings that cannot be used; carries the problem to report."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Configs:
    """The settings that hold in each folder, looked up once for each.

    A `pyproject.toml` without the table is passed over, so a package inside a repository follows the repository.
    """

    def __init__(self, command_line: Settings) -> None:
        self.command_line = command_line
        self._known: dict[str, Settings | Problem] = {}

    def at(self, folder: str) -> Settings:
        """The settings for files in an absolute folder; ConfigError when its `pyproject.toml` is bad."""
        found = self._known.get(folder)
        if found is None:
            found = self._known[folder] = self._find(folder)
        if isinstance(found, Problem):
            raise ConfigError(found)
        return found

    def _find(self, folder: str) -> Settings | Problem:
        file = os.path.join(folder, "pyproject.toml")
        try:
            own = read_settings(file) if os.path.exists(file) else None
        except ConfigError as error:
            return error.problem
        if own is not None:
            return self.command_line.over(own)
        parent = os.path.dirname(folder)
        if parent == folder or os.path.lexists(os.path.join(folder, ".git")):
            return self.command_line
        try:
            return self.at(parent)
        except ConfigError as error:
            return error.problem


def read_settings(file: str) -> Settings | None:
    """The `[tool.fabric-fix]` table of a file, None when it has none; ConfigError when it cannot be used."""
    tool = _load(file).get("tool", {})
    table = tool.get("fabric-fix") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigError(Problem(file, "tool.fabric-fix must be a table"))
    values = dict(_setting(file, key, value) for key, value in table.items())
    if values.get("quiet") and values.get("verbose"):
        raise ConfigError(Problem(file, "tool.fabric-fix.quiet and tool.fabric-fix.verbose exclude each other"))
    base = os.path.dirname(file)
    if "cache_dir" in values:
        values["cache_dir"] = os.path.join(base, values["cache_dir"])
    return Settings(**values, base=base)


def _load(file: str) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(file, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise ConfigError(Problem(file, f"cannot be read: {os_reason(error)}")) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(file, f"not valid TOML: {error}")) from error


def _setting(file: str, key: str, value: object) -> tuple[str, Any]:
    """The field and its value for one key of the table; ConfigError for an unknown key or a wrong value."""
    name = f"tool.fabric-fix.{key}"
    if key not in _READERS:
        from fabric_fix.registry import closest

        hint = closest(key, tuple(_READERS)) or f"; known keys: {', '.join(sorted(_READERS))}"
        raise ConfigError(Problem(file, f"unknown key {name}{hint}"))
    try:
        return key.replace("-", "_"), _READERS[key](value)
    except ValueError as error:
        raise ConfigError(Problem(file, f"{name} {error}")) from error


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def _strategies(value: object) -> tuple[str, ...]:
    return strategy_names(_words(value))


def _rules(value: object) -> tuple[str, ...]:
    return rule_words(_words(value))


def _selected(value: object) -> tuple[str, ...]:
    if not (words := _rules(value)):
        raise ValueError("names no rule")
    return words


def _patterns(value: object) -> tuple[str, ...]:
    return exclude_patterns(_words(value))


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _folder(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be the path of a folder")
    return os.path.expanduser(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number of seconds")
    return seconds(value)


def _format(value: object) -> str:
    if value not in OUTPUT_FORMATS:
        raise ValueError(f"must be one of {', '.join(OUTPUT_FORMATS)}")
    return str(value)


_READERS: Mapping[str, Callable[[object], Any]] = {
    "strategy": _strategies,
    "select": _selected,
    "ignore": _rules,
    "exclude": _patterns,
    "unsafe-fixes": _flag,
    "timeout": _number,
    "total-timeout": _number,
    "output-format": _format,
    "quiet": _flag,
    "verbose": _flag,
    "cache-dir": _folder,
}


def seconds(value: float) -> float:
    """A length of time, 0 for no limit; ValueError when it is none."""
    if not 0 <= value < float("inf"):
        raise ValueError("must be a number of seconds, 0 for no limit")
    return float(value)


def strategy_names(words: tuple[str, ...]) -> tuple[str, ...]:
    """Lightning's spelling of each strategy, commas split; ValueError names the bad one, what is like it, and all."""
    from fabric_fix.strategies import NAMES, normal_name

    names = []
    if words and not split_commas(words):
        raise ValueError("names no strategy")
    for word in split_commas(words):
        if (name := normal_name(word)) is None:
            from fabric_fix.registry import closest

            raise ValueError(f"has no strategy '{word}'{closest(word, NAMES)} (known: {', '.join(NAMES)})")
        names.append(name)
    return tuple(dict.fromkeys(names))


def rule_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words that each mean at least one rule, commas split; ValueError names the first that means none."""
    from fabric_fix.registry import all_rules, matches, similar

    split = split_commas(words)
    if words and not split:
        raise ValueError("names no rule")
    rules = all_rules() if split else ()
    for word in split:
        if not any(matches(rule, word) for rule in rules):
            raise ValueError(f"has no rule '{word}'{similar(word, rules)}")
    return split


def split_commas(words: tuple[str, ...]) -> tuple[str, ...]:
    """Every word between commas, blanks around it taken off, empty ones left out."""
    return tuple(part for word in words for part in map(str.strip, word.split(",")) if part)


def exclude_patterns(words: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns as `.gitignore` has them; ValueError names the first that is none, or that no path can match."""
    if words:
        from fabric_fix.ignoring import excluding
    for word in words:
        try:
            meaning = excluding("/", (word,)).spec.patterns
        except ValueError as error:
            raise ValueError(f"has a bad pattern '{word}': {error}") from error
        if not any(pattern.include is not None for pattern in meaning):
            raise ValueError(f"has a bad pattern '{word}': it matches nothing")
    if words and all(word.startswith("!") for word in words):
        raise ValueError(f"leaves nothing out that '{words[0]}' could take back in")
    return words
