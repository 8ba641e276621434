"""Secrets in the text of a program, and what excerpts of it show. Spec: 03 §16, 08 §17."""

from __future__ import annotations

import pytest

from harnpy.formats.secrets.forms import hidden, kind_of_secret
from harnpy.syntax.diagnostic import Lines

_KEY = "ghp_" + "9fQ2mZ7Lx0Vb4Tn8Rk1WcY5Hd3Gs6JpA"


def test_an_excerpt_shows_no_secret() -> None:
    source = f'let a = 1\nlet key = "{_KEY}" + nil'
    assert Lines(source).excerpt(2, 5) == (f'let key = "{"*" * len(_KEY)}" + nil', 5)


@pytest.mark.parametrize("line", ["", "let a = 1", 'get("https://api.acme.com/v1/things")', "x" * 500])
def test_other_lines_stay(line: str) -> None:
    assert hidden(line) == line


def test_an_example_is_no_secret() -> None:
    assert kind_of_secret(_KEY) == "GitHub token"
    assert kind_of_secret(_KEY + "example") is None
    assert kind_of_secret("A" * 40 + "0") is None
    assert kind_of_secret("-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEF") is None
