"""The look at the bytes that spares nearly every file from being decoded and parsed."""

from __future__ import annotations


def is_relevant(data: bytes) -> bool:
    """Whether a file can matter to a Fabric program: it names Fabric, and a method that the rules look at.

    "abric" stands for `Fabric`, `fabric` and `lightning_fabric` alike. All words are ASCII, and every encoding that
    Python takes for source holds them as such, so the bytes need no decoding.
    """
    return names_fabric(data) and (b"setup" in data or b"backward" in data or b"no_sync" in data)


def chooses_strategy(data: bytes) -> bool:
    """Whether a file that calls no method of Fabric itself can make one, or say which strategy it has."""
    return (b"strategy" in data or names_fabric(data)) and b"import" in data


def names_fabric(data: bytes) -> bool:
    """Whether a file names Fabric."""
    return b"abric" in data or b"LightningLite" in data


def is_trained(data: bytes) -> bool:
    """Whether a file goes backward: if a Fabric program uses it, that matters although it does not name Fabric."""
    return b".backward(" in data or b".no_backward_sync(" in data
