"""Which folder a path lies below, as the paths are written; both are absolute."""

from __future__ import annotations

import os


def is_below(path: str, folder: str) -> bool:
    """Whether a path is of something inside a folder, at any depth; `/a/bc` is not below `/a/b`."""
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def is_within(path: str, folder: str) -> bool:
    """Whether a path is that of a folder, or of something inside it."""
    return path == folder or is_below(path, folder)
