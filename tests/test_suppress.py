"""Comments that silence a statement, and those that do not."""

from __future__ import annotations

import ast

import pytest

from fabric_fix.finding import Finding, Span
from fabric_fix.suppress import is_silenced, silences


def silenced(text: str, code: str = "FF201", name: str = "split-setup") -> bool:
    """Whether a finding at the first call of `setup` is silenced."""
    calls = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and "setup" in ast.dump(node.func)
    ]
    finding = Finding(code, name, "a.py", Span.of(calls[0]), "message")
    return is_silenced(finding, silences(text))


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "#noqa:FF201",
        "# NOQA: ff201",
        "# noqa: E501, FF201",
        "# noqa: FF201 since the strategy is fixed",
        "# fabric-fix: ignore",
        "# fabric-fix:ignore[FF201]",
        "# fabric-fix: ignore[FF101, FF201] for now",
        "# fabric-fix: ignore[split-setup]",
        "# type: ignore  # noqa: FF201",
        "# noqa: E501  # fabric-fix: ignore[FF201]",
    ],
)
def test_comment_on_the_line_silences(comment: str) -> None:
    assert silenced(f"m = fabric.setup(m)  {comment}\n")


@pytest.mark.parametrize(
    "comment",
    ["# noqa: E501", "# noqa: FF202", "# fabric-fix: ignore[FF101]", "# noqable", "# see fabric-fix", "# no qa"],
)
def test_comment_about_something_else_does_not(comment: str) -> None:
    assert not silenced(f"m = fabric.setup(m)  {comment}\n")


@pytest.mark.parametrize(
    "text",
    [
        "m, o = fabric.setup(\n    m,  # noqa: FF201\n    o,\n)\n",
        "m, o = fabric.setup(\n    m,\n    o,\n)  # noqa: FF201\n",
        "m, o = fabric.setup(  # noqa: FF201\n    m,\n    o)\n",
        "m, o = fabric.setup(\n    m,\n    # noqa: FF201\n    o)\n",
        "m = [\n    fabric.setup(x)\n    for x in y  # noqa: FF201\n]\n",
        "m = \\\n    fabric.setup(m)  # noqa: FF201\n",
        "if a: m = fabric.setup(m)  # noqa: FF201\n",
        "a = 1; m = fabric.setup(m)  # noqa: FF201\n",
        "m = fabric.setup(m)  # noqa: FF201",
        "a = 1\r\nm = fabric.setup(m)  # noqa: FF201\r\n",
        "a = 1\rm = fabric.setup(m)  # noqa: FF201\r",
        "a = 1\n\x0c\nm = fabric.setup(m)  # noqa: FF201\n",
        "with fabric.setup(m):  # noqa: FF201\n    pass\n",
    ],
)
def test_comment_anywhere_on_the_statement_silences(text: str) -> None:
    assert silenced(text)


@pytest.mark.parametrize(
    "text",
    [
        "# noqa: FF201\nm = fabric.setup(m)\n",
        "m = fabric.setup(m)\n# noqa: FF201\n",
        "m = fabric.setup(m, '# noqa: FF201')\n",
        "m = fabric.setup(m)\nx = 1  # noqa: FF201\n",
        "with fabric.setup(m):\n    x = 1  # noqa: FF201\n",
        "m = fabric.setup(m, '''\n# noqa\n''')\n",
    ],
)
def test_comment_beside_the_statement_does_not(text: str) -> None:
    assert not silenced(text)
