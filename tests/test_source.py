"""Bytes to text and back."""

from __future__ import annotations

import codecs

import pytest

from fabric_fix.prefilter import is_relevant
from fabric_fix.problem import Problem
from fabric_fix.source import Source, decode


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1\r\ny = 2\rz = 3\n",
        b"x = 1\n\x0c\ny = '\xe2\x80\xa8'",
        codecs.BOM_UTF8 + b"x = '\xe2\x82\xac'\n",
        b"# coding: cp1252\nprice = '5 \x80'\n",
        b"#!/usr/bin/env python\n# -*- coding: latin-1 -*-\nname = '\xe9'\n",
        b"# caf\xe9 -*- coding: latin-1 -*-\n",
        b"# coding: shift_jis\nx = '\x8a\xbf'\n",
        b"# coding=utf8\nx = '\xc3\xa9'\n",
        b"# coding: utf-8-sig\nx = 1\n",
        b"# coding: cp1252\rx = '\x80'\r",
    ],
)
def test_bytes_come_back_as_they_were(data: bytes) -> None:
    source = decode("a.py", data)
    assert isinstance(source, Source)
    assert source.encode(source.text) == data


def test_cookie_decides_what_a_byte_means() -> None:
    source = decode("a.py", b"# coding: cp1252\nprice = '5 \x80'\n")
    assert isinstance(source, Source)
    assert "5 €" in source.text


def test_no_cookie_in_the_third_line() -> None:
    problem = decode("a.py", b"\n\n# coding: cp1252\nx = '\x80'\n")
    assert isinstance(problem, Problem)


def test_no_cookie_behind_code() -> None:
    assert isinstance(decode("a.py", b"x = 1\n# coding: cp1252\ny = '\x80'\n"), Problem)


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"import x\n# caf\xe9 without a coding line\n", (2, 6), "0xe9"),
        (b"# coding: ascii\nx = '\xc3\xa9'\n", (2, 6), "ascii"),
        (b"# coding: klingon\n", (1, 1), "klingon"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", (1, 1), "latin-1"),
        ("x = 1\n".encode("utf-16"), (1, 1), "UTF-16"),
        (b"x = 1\r\ny = \0\n", (2, 5), "null"),
        (b"# coding: hex\n", (1, 1), "hex"),
    ],
)
def test_bytes_that_contradict_their_encoding_have_a_place(data: bytes, place: tuple[int, int], words: str) -> None:
    problem = decode("a.py", data)
    assert isinstance(problem, Problem)
    assert (problem.line, problem.column) == place
    assert words in problem.message
    assert str(problem).startswith(f"a.py:{place[0]}:{place[1]}: ")


@pytest.mark.parametrize(
    "data",
    [
        b"import lightning_fabric as lf\nf.setup(m)",
        b"self.fabric.backward(loss)",
        b"class T(LightningLite):\n  def run(self): self.setup(m)",
        b"Fabric\nmodel.no_sync()",
        b"from lightning import Fabric\nfrom loop import fit\nfit(Fabric())",
    ],
)
def test_files_with_a_word_of_fabric_and_a_method_are_relevant(data: bytes) -> None:
    assert is_relevant(data)


@pytest.mark.parametrize(
    "data", [b"", b"loss.backward()", b"import fabric\nfabric.run('ls')", b"FABRIC.setup()", b"Fabric()"]
)
def test_files_with_only_one_of_both_are_not(data: bytes) -> None:
    assert not is_relevant(data)
