"""The look at the bytes that spares nearly every file from being decoded and parsed."""

from __future__ import annotations

BETWEEN_WORDS = bytes(
    code if code >= 128 or chr(code).isalnum() or code == ord("_") else ord(" ") for code in range(256)
)
"""For `bytes.translate`: makes blanks of all that stands between words."""


def is_relevant(data: bytes) -> bool:
    """Whether a file can matter to a Fabric program: it makes a Fabric, or names one and a method that rules look at.

    "abric" stands for `Fabric`, `fabric` and `lightning_fabric` alike. All words are ASCII, and every encoding that
    Python takes for source holds them as such, so the bytes need no decoding.
    """
    return sorted_out(data)[0]


def names_fabric(data: bytes) -> bool:
    """Whether a file has the name of Fabric in it."""
    return b"abric" in data or b"LightningLite" in data


def sorted_out(data: bytes) -> tuple[bool, bool]:
    """Whether a file is relevant (`is_relevant`), and whether it can give a Fabric to others: `train(make_fabric())`.

    Both are asked in one look, as nearly all files are neither, and most time goes here.
    """
    if not names_fabric(data):
        return False, False
    gives = b"import" in data
    return has_methods(data) or (gives and makes_fabric(data)), gives


def makes_fabric(data: bytes) -> bool:
    """Whether a file makes a Fabric, which others may use that do not name it."""
    return b"Fabric(" in data or b"LightningLite(" in data


def has_methods(data: bytes) -> bool:
    """Whether a file has one of the methods of a Fabric in it that rules look at."""
    return b"setup" in data or b"backward" in data or b"no_sync" in data


def chooses_strategy(data: bytes) -> bool:
    """Whether a file can say which strategy others run with; only asked of those beside and above them."""
    return b"strategy" in data and b"import" in data


def can_be_wrong(data: bytes) -> bool:
    """Whether something may be found in a file because of what others do, whatever it says of Fabric itself.

    It can give them a Fabric, or what it trains; or it calls methods that are Fabric's where a Fabric program uses it.
    """
    gives = b"import" in data and (names_fabric(data) or b".parameters(" in data)
    return gives or b".backward(" in data or b".no_backward_sync(" in data or b".no_sync(" in data or b".setup" in data
