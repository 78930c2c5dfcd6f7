"""Random choices that have names: the same choice comes out the same, whatever else is chosen."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Choices by name, from one seed.

    A choice depends on the seed and its name alone, so the program with a fault and the one without share all others.
    The first option of each choice is the simplest: `forced` sets choices to an option by its index, and a program is
    made smaller by forcing choices to 0.
    """

    def __init__(self, seed: int, forced: Mapping[str, int] | None = None) -> None:
        self.seed = seed
        self._forced = dict(forced or {})
        self.chosen: dict[str, int] = {}
        """The index of the option that each choice came out as, for those that were made."""

    def one(self, name: str, *options: T) -> T:
        """One of the options, each as likely."""
        index = self._forced.get(name)
        if index is None:
            index = random.Random(f"{self.seed}/{name}").randrange(len(options))
        index = min(index, len(options) - 1)
        self.chosen[name] = index
        return options[index]

    def chance(self, name: str, percent: int) -> bool:
        """Whether something is so, `percent` times in a hundred."""
        index = self._forced.get(name)
        if index is None:
            index = int(random.Random(f"{self.seed}/{name}").random() * 100 < percent)
        self.chosen[name] = index
        return bool(index)

    def apart(self, prefix: str, names: Collection[str] | None = None) -> Draw:
        """The same choices but for some, which are made on their own: all, or those whose names begin as given."""
        return _Apart(self, prefix, names)


class _Apart(Draw):
    """Choices that are partly those of another draw."""

    def __init__(self, other: Draw, prefix: str, names: Collection[str] | None) -> None:
        super().__init__(other.seed)
        self._other, self._prefix, self._names = other, prefix, names
        self.chosen = other.chosen

    def _name(self, name: str) -> str:
        is_own = self._names is None or name.startswith(tuple(self._names))
        return f"{self._prefix} {name}" if is_own else name

    def one(self, name: str, *options: T) -> T:
        """One of the options, each as likely."""
        return self._other.one(self._name(name), *options)

    def chance(self, name: str, percent: int) -> bool:
        """Whether something is so, `percent` times in a hundred."""
        return self._other.chance(self._name(name), percent)
