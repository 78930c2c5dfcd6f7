"""Frozen value classes, as `dataclasses` makes them, without the code that it compiles for each one at import.

That takes half a millisecond a class, which together was a tenth of a run over a small project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_options: bool) -> Any:
        """Mean nothing at run time: it tells type checkers that subclasses get an `__init__` of their fields."""
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """Base of classes whose annotations are their fields; instances are compared by these and cannot be changed."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Take the fields from the annotations, in their order."""
        cls._names = tuple(name for name in cls.__annotations__ if not name.startswith("_"))

    def __init__(self, *values: Any, **named: Any) -> None:
        """Set the fields, by position or by name; TypeError when one is missing or unknown."""
        names = self._names
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} fields, not {len(values)}")
        fields = dict(zip(names, values, strict=False))
        for name in named:
            if name not in names or name in fields:
                raise TypeError(f"{type(self).__name__} has no field {name!r}, or it is given twice")
        fields.update(named)
        for name in names:
            if name not in fields:
                if not hasattr(type(self), name):
                    raise TypeError(f"{type(self).__name__} needs the field {name!r}")
                fields[name] = getattr(type(self), name)
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse; AttributeError."""
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot be set")

    def __eq__(self, other: object) -> bool:
        """Whether another one is of the same class and has the same fields."""
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        """Of all fields."""
        return hash(tuple(self.__dict__[name] for name in self._names))

    def __repr__(self) -> str:
        """As it would be written."""
        fields = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._names)
        return f"{type(self).__name__}({fields})"


R = TypeVar("R", bound=Record)


def replace(record: R, **fields: Any) -> R:
    """A copy with some other fields."""
    return type(record)(**{**record.__dict__, **fields})
