"""Which names of a file lead to Fabric, in the file itself or where they are imported from.

That is asked of the texts, a small part of the work that it would be to parse them: most of what a program imports has
nothing to do with Fabric, and then nothing else has to be known of it. What a text could be misread as says too much,
never too little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fabric_fix.analysis.paths import Paths
from fabric_fix.analysis.relevance import ACTING, TRAINS, Imported, Unit, spread, words_in

_IMPORT = re.compile(
    r"[ \t]*(?:from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*"
    r"(\((?:[^)#]|#[^\n]*)*\)|(?:\\\n|[^\n;#])*)|import[ \t]+((?:\\\n|[^\n;#])+))"
)
_BEFORE = re.compile(r"[^\n#]*[;:](?=[ \t]*(?:from|import)\b)")
"""What a line can have before an import: `try: import a`."""
_COMMENT = re.compile(r"#[^\n]*")
_PART = re.compile(r"([\w.]+|\*)(?:\s+as\s+(\w+))?")
_UNIT = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.M)
_INNER = re.compile(r"^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)", re.M)
_MAIN = re.compile(r"^if[ \t(]+__name__\b", re.M)


class Seeds(NamedTuple):
    """What names are asked to lead to."""

    pattern: re.Pattern[str]
    """What a file has in it that has to do with it by itself."""
    words: frozenset[str]
    """The words of a function that has."""


FABRIC = Seeds(
    re.compile(r"\.(?:setup(?:_\w+)?|backward|no_backward_sync|no_sync|launch)\b|Fabric\(|LightningLite\("), ACTING
)
"""What acts on a Fabric: makes one, or calls a method of one."""
TRAINING = Seeds(TRAINS, frozenset({TRAINS.pattern}))
"""What trains, or makes an optimizer."""


class Binding(NamedTuple):
    """A name that an import binds."""

    file: str
    """The file of the project that it comes from."""
    name: str
    """What it is called there, '*' for everything, '' for the module itself."""
    bound: str
    """What it is called where it is imported; '' for '*'."""


class Outline:
    """What the text of a file shows: what it imports of its project, and its functions and classes by name."""

    def __init__(self, text: str, bindings: tuple[Binding, ...]) -> None:
        self.bindings = bindings
        self.text = text
        self._has: dict[Seeds, bool] = {}
        self._units: list[Unit] | None = None

    @property
    def units(self) -> list[Unit]:
        """Its functions, classes and methods, in their order."""
        if self._units is None:
            self._units = list(_units(self.text))
        return self._units

    def has(self, seeds: Seeds) -> bool:
        """Whether it has something of that kind in itself."""
        found = self._has.get(seeds)
        if found is None:
            found = self._has[seeds] = seeds.pattern.search(self.text) is not None
        return found

    def names(self, seeds: Seeds, imported: Imported) -> frozenset[str]:
        """The names of the file that lead there, when what it imports does."""
        if not (self.has(seeds) or imported.names or imported.members):
            return frozenset()
        found = {*seeds.words, *imported.names}
        spread(found, [(unit.name, unit.words) for unit in self.units], imported.members)
        return frozenset((found | imported.members.keys()) - seeds.words)


def _units(text: str) -> Iterator[Unit]:
    """The functions, classes and methods of a file with the words in them."""
    for names, first, source in _parts(_UNIT, _plain(text), 1):
        main = _MAIN.search(source)
        code = source if main is None else source[: main.start()]
        words = frozenset[str]()
        for inner_names, line, inner in _parts(_INNER, code, first):
            found = words_in(inner)
            words |= found
            yield from (Unit(name, line, line + inner.count("\n"), found) for name in inner_names)
        yield from (Unit(name, first, first + source.count("\n"), words) for name in names)


def _plain(text: str) -> str:
    """A text with lines that end as regular expressions have it."""
    if "\r" in text or "\f" in text:
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "")
    return text


def _parts(heads: re.Pattern[str], text: str, line: int) -> Iterator[tuple[list[str], int, str]]:
    """What follows each head up to the next one, its line, and the name that it gives.

    A head that may be in a string ends nothing: both names then stand for the whole.
    """
    names: list[str] = []
    start = 0
    for head in heads.finditer(text):
        before = text[start : head.start()]
        if before.count('"""') % 2 or before.count("'''") % 2:
            names.append(head[1])
            continue
        if names or start < head.start():
            yield names, line, before
        line += before.count("\n")
        names, start = [head[1]], head.start()
    yield names, line, text[start:]


def _imports(text: str) -> Iterator[re.Match[str]]:
    """The import statements of a text, and what looks like one in a string."""
    end = at = 0
    while (at := text.find("import", at)) >= 0:
        start = max(text.rfind("\n", 0, at) + 1, end)
        match = _IMPORT.match(text, start)
        if match is None and (before := _BEFORE.match(text, start)) is not None:
            match = _IMPORT.match(text, before.end())
        if match is not None:
            yield match
        at = end = max(match.end() if match is not None else 0, at + 1)


class Leading:
    """Answers for the files of one project, as to one kind of seeds."""

    def __init__(self, paths: Paths, text_of: Callable[[str], str | None], seeds: Seeds = FABRIC) -> None:
        self._paths = paths
        self._text_of = text_of
        self._seeds = seeds
        self._outlines: dict[str, Outline] = {}
        """Of files as they were read."""
        self._given: dict[str, Outline] = {}
        self._names: dict[str, frozenset[str]] = {}

    def towards(self, seeds: Seeds) -> Leading:
        """The same for seeds of another kind."""
        other = Leading(self._paths, self._text_of, seeds)
        other._outlines, other._given = self._outlines, self._given
        return other

    def names(self, path: str) -> frozenset[str]:
        """The names of a file that lead there: of its functions and classes, and what it imports of such."""
        if path not in self._names:
            self._settle(path)
        return self._names[path]

    def acts(self, path: str) -> bool:
        """Whether a file has something of the kind in it, or imports what leads to such."""
        return self.outline_acts(self.outline(path))

    def outline_acts(self, outline: Outline) -> bool:
        """The same of an outline."""
        return outline.has(self._seeds) or any(self.imported(outline.bindings))

    def imported(self, bindings: tuple[Binding, ...]) -> Imported:
        """What of some imports leads to Fabric where they come from."""
        for binding in bindings:
            if binding.file not in self._names:
                self._settle(binding.file)
        return self._bound(bindings)

    def files(self, path: str) -> frozenset[str]:
        """The files of the project that a file imports."""
        return frozenset(binding.file for binding in self.outline(path).bindings)

    def outline(self, path: str) -> Outline:
        """The outline of a file; that of an empty one, when it cannot be read."""
        found = self._outlines.get(path)
        if found is None:
            found = self._outlines[path] = self.outline_of(path, self._text_of(path) or "")
        return found

    def outline_of(self, path: str, text: str) -> Outline:
        """The outline of a text that a file has, or is to have; the file is not read for it."""
        found = self._given.get(path)
        if found is None or found.text != text:
            found = self._given[path] = self._outlined(path, text)
        return found

    def _outlined(self, path: str, text: str) -> Outline:
        """The outline of a file with a text."""
        return Outline(text, tuple(dict.fromkeys(self._bindings(path, text))) if "import" in text else ())

    def _bindings(self, path: str, text: str) -> Iterator[Binding]:
        for match in _imports(_plain(text)):
            dots, module, names, plain = match.groups()
            if plain is not None:
                for name, alias in _PART.findall(plain):
                    file = self._file(self._paths.resolve(path, name, 0))
                    if file is not None:
                        yield Binding(file, "", alias or name.rpartition(".")[2])
                continue
            place = self._paths.resolve(path, module, len(dots)) if module or dots else None
            if place is not None:
                yield from self._members(place, _COMMENT.sub("", names))

    def _members(self, place: str, names: str) -> Iterator[Binding]:
        file = self._file(place)
        if file is not None:
            yield Binding(file, "", "")
        for name, alias in _PART.findall(names):
            if file is not None:
                yield Binding(file, name, "" if name == "*" else alias or name)
            below = None if place.endswith(".py") or name == "*" else self._file(self._paths.below(place, name))
            if below is not None:
                yield Binding(below, "", alias or name)

    def _file(self, place: str | None) -> str | None:
        return None if place is None else self._paths.file_of(place)

    def _bound(self, bindings: tuple[Binding, ...]) -> Imported:
        found: set[str] = set()
        members: dict[str, frozenset[str]] = {}
        for file, name, bound in bindings:
            names = self._names.get(file)
            if not names:
                continue
            if name == "*":
                found |= names
            elif name and name in names:
                found.add(bound)
            elif bound and not name:
                members[bound] = members.get(bound, names) | names
        return Imported(found, members)

    def _settle(self, path: str) -> None:
        """Find the names of a file and of all that it leads to; files that import each other grow together."""
        users: dict[str, list[str]] = {path: []}
        pending = [path]
        while pending:
            file = pending.pop()
            for other in self.files(file):
                if other not in users and other not in self._names:
                    users[other] = []
                    pending.append(other)
                if other in users:
                    users[other].append(file)
        pending = list(users)
        self._names.update(dict.fromkeys(users, frozenset[str]()))
        waiting = set(pending)
        while pending:
            file = pending.pop()
            waiting.discard(file)
            outline = self.outline(file)
            found = outline.names(self._seeds, self._bound(outline.bindings))
            if found != self._names[file]:
                self._names[file] = found
                more = [user for user in users[file] if user not in waiting]
                waiting.update(more)
                pending += more
