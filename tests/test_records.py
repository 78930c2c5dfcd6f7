"""Frozen value classes."""

from __future__ import annotations

import pickle

import pytest

from fabric_fix.records import Record, replace


class Point(Record):
    x: int
    y: int = 2


class Other(Record):
    x: int
    y: int = 2


def test_fields_come_by_position_by_name_and_by_default() -> None:
    point = Point(1)
    assert (point.x, point.y) == (1, 2)
    assert Point(y=3, x=4) == Point(4, 3)
    assert repr(point) == "Point(x=1, y=2)"


def test_equal_ones_are_of_one_class_and_have_one_hash() -> None:
    assert Point(1) == Point(1, 2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)


def test_a_record_cannot_be_changed_but_replaced() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 3  # type: ignore[misc]
    assert replace(point, y=7) == Point(1, 7)
    assert point == Point(1)


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2})], ids=str)
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="field"):
        Point(*values, **named)


def test_a_record_survives_the_way_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(Point(5))) == Point(5)
