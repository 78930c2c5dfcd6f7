"""The commands that start programs with a strategy: `fabric run --strategy X train.py`, and `LT_STRATEGY=X`.

`fabric run` (once `lightning run model`) sets `LT_STRATEGY` (`_set_env_variables`, `lightning/fabric/cli.py`), which a
Fabric takes in the place of `strategy="auto"` (`_argument_from_env`, `connector.py`). Read are shell, Makefiles,
justfiles, Dockerfiles and the code in Markdown and reStructuredText, line by line: what a variable is when it was
assigned a literal, what `cd` went to, and no other logic.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

TELLING = re.compile(
    r"\b(?:fabric|lightning)(?:\s|\\)+run\b|\bLT_STRATEGY\b|[\"'](?:fabric|lightning)[\"'],\s*[\"']run"
)
"""A text without this holds no command that matters."""
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MADE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*(?::::?=|::=|:=|\?=|=)\s*(.*)")
_VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=]([^{}]*))?\}|\$\((\w+)\)|\$(\w+)|\{\{\s*(\w+)\s*\}\}")
_NOT_LAUNCHED = re.compile(r"spawn|fork|notebook|xla|tpu|offload|auto|model_parallel")
"""Strategies that `fabric run` does not take (`_get_supported_strategies`, `cli.py`)."""
_STARTERS = re.compile(r"python[\d.]*|torchrun|fabric|lightning|deepspeed|accelerate|mpirun|mpiexec|srun|debugpy")
_WITH_VALUE = frozenset(
    ["--accelerator", "--devices", "--num-nodes", "--node-rank", "--main-address", "--main-port", "--precision"]
)


class Command(NamedTuple):
    """A command that starts a program with a strategy, as it is written."""

    strategy: str
    accelerator: str | None
    script: str
    folder: str | None
    """Where `cd` went to, relative to where the commands start; None when that is not known."""
    line: int
    how: str


class Shell:
    """What a sequence of commands has assigned, and where it is."""

    def __init__(self, exported: str | None = None) -> None:
        self.folder: str | None = ""
        self._variables: dict[str, str] = {}
        self._exported = exported

    def assign(self, name: str, value: str) -> None:
        """Note what a variable is from here on."""
        self._variables[name] = value

    def export(self, name: str, value: str) -> None:
        """Note a variable that programs see."""
        self.assign(name, value)
        if name == "LT_STRATEGY":
            self._exported = value

    def run(self, line: int, text: str) -> Iterator[Command]:
        """The commands of one line that matter."""
        for words in _commands(self.expanded(text)):
            yield from self._command(line, [self.expanded(word) for word in words])  # set in this line

    def expanded(self, text: str) -> str:
        """A text with the variables that are known; the others stay."""

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[3] or match[4] or match[5]
            return self._variables.get(name, match[0] if match[2] is None else match[2])

        return _VARIABLE.sub(value, text)

    def _command(self, line: int, words: list[str]) -> Iterator[Command]:
        here = self._exported
        for word in words:  # `bash -c "…"`
            if " " in word and TELLING.search(word):
                yield from self.run(line, word)
                return
        assigned = [match for word in words if (match := _ASSIGNED.fullmatch(word))]
        if words[0] in ("export", "declare", "typeset"):
            for match in assigned:
                self.export(match[1], match[2])
        elif len(assigned) == len(words):
            for match in assigned:
                self.assign(match[1], match[2])
        elif words[0] in ("cd", "pushd"):
            self._go(words[1:])
        else:
            here = next((match[2] for match in assigned if match[1] == "LT_STRATEGY"), here)
            yield from _started(line, words, self.folder, here)

    def _go(self, words: list[str]) -> None:
        known = self.folder is not None and len(words) == 1 and not re.search(r"[$`~*]|^[-/]", words[0])
        self.folder = os.path.normpath(os.path.join(self.folder or "", words[0])) if known else None


def _started(line: int, words: list[str], folder: str | None, exported: str | None) -> Iterator[Command]:
    """What a command starts, when it says with which strategy."""
    names = [os.path.basename(word) for word in words]
    for index, name in enumerate(names[:-1]):
        if name in ("fabric", "lightning") and names[index + 1] == "run":
            options, script = _options(words[index + 2 :])
            strategy, accelerator = options.get("--strategy"), options.get("--accelerator")
            if strategy and script and not _NOT_LAUNCHED.search(strategy):
                yield Command(strategy, accelerator, script, folder, line, f"{name} run")
            if strategy:
                return
    if exported and (any(map(_STARTERS.fullmatch, names)) or words[0].endswith(".py")):
        script = next((word for word in words if word.endswith(".py")), None) or _module(words)
        if script:
            yield Command(exported, None, script, folder, line, "LT_STRATEGY")


def _options(words: list[str]) -> tuple[dict[str, str], str | None]:
    """The options of `fabric run`, which may stand behind the script too (click mixes them), and the script."""
    options: dict[str, str] = {}
    script = None
    coming = iter(words)
    for word in coming:
        if word == "--":
            break
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name == "--strategy" or name in _WITH_VALUE:
            options[name] = value if equals else next(coming, "")
        elif script is None and word.endswith(".py"):
            script = word
    return options, script


def _module(words: list[str]) -> str | None:
    """The file of `python -m package.train`."""
    name = next((after for word, after in pairwise(words) if word == "-m"), "")
    return name.replace(".", "/") + ".py" if re.fullmatch(r"\w+(\.\w+)*", name) else None


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command in a line; quotes that end on another line are no quotes."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    try:
        found = list(lexer)
    except ValueError:
        found = re.sub("[\"'`]", " ", text).split()
    words: list[str] = []
    for word in [*found, ";"]:
        if word.strip(";&|()"):
            words.append(word)
        elif words:
            yield words
            words = []


# --- kinds of files ---------------------------------------------------------------------------------------------------


def of_text(text: str, kind: str) -> Iterator[Command]:
    """The commands of a file of kind shell, make, docker or prose."""
    lines = list(joined(enumerate(text.splitlines(), 1)))
    yield from {"shell": _shell, "make": _make, "docker": _docker, "prose": _prose}[kind](lines)


def joined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines with those that a backslash continues, under the number of the first."""
    start, text = 0, ""
    for number, line in lines:
        start = start or number
        if line.endswith("\\") and not line.endswith("\\\\"):
            text += line[:-1] + " "
            continue
        yield start, text + line
        start, text = 0, ""
    if text:
        yield start, text


def _shell(lines: list[tuple[int, str]]) -> Iterator[Command]:
    shell = Shell()
    for number, line in lines:
        yield from shell.run(number, line)


def _make(lines: list[tuple[int, str]]) -> Iterator[Command]:
    """Makefiles and justfiles: every line of a recipe has a shell of its own."""
    shell = Shell()
    for number, line in lines:
        match = _MADE.fullmatch(line)
        if match and not line.startswith(("\t", " ")):
            value = shell.expanded(match[2].strip().strip("\"'"))
            (shell.export if "export" in line.split() else shell.assign)(match[1], value)
        elif line.startswith(("\t", " ")):
            shell.folder = ""
            yield from shell.run(number, line.lstrip("\t @-+").replace("$$", "$"))


def _docker(lines: list[tuple[int, str]]) -> Iterator[Command]:
    shell = Shell()
    for number, line in lines:
        instruction, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if instruction.upper() == "ENV":
            for words in _commands(rest if "=" in rest.partition(" ")[0] else rest.replace(" ", "=", 1)):
                for match in filter(None, map(_ASSIGNED.fullmatch, words)):
                    shell.export(match[1], match[2])
        elif instruction.upper() in ("RUN", "CMD", "ENTRYPOINT"):
            yield from shell.run(number, _listed(rest))


def _listed(text: str) -> str:
    """`["fabric", "run"]` as the command that it is."""
    try:
        words = json.loads(text) if text.startswith("[") else None
    except ValueError:
        return text
    return shlex.join(map(str, words)) if isinstance(words, list) else text


def _prose(lines: list[tuple[int, str]]) -> Iterator[Command]:
    """Code blocks, indented blocks and code between backticks; what a sentence says is no command."""
    shell, fence = Shell(), ""
    for number, line in lines:
        text = line.strip()
        mark = text[:3] if text.startswith(("```", "~~~")) else ""
        if mark and fence in ("", mark):
            shell, fence = Shell(), "" if fence else mark
        elif fence or line.startswith(("   ", "\t")):
            yield from shell.run(number, re.sub(r"^[$>%#]\s+", "", text))
        else:
            shell = Shell()
        if not fence and not mark:
            for code in re.findall(r"(`+)([^`]+)\1", line):
                yield from Shell().run(number, code[1])
