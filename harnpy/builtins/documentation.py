"""The docstring of a builtin, taken apart: what it says, and the example at its end. Spec: 09 §4.5.

    Example: trim("  a ")  // "a"

An example is Harn code, indented below `Example:` when it has several lines. Behind two slashes its last
line states its value, or what it prints (`// prints hello`). `tests/builtins/test_documented_examples.py`
runs them all.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harnpy.vm.declare import Declaration


_EXAMPLE = re.compile(r"\n\nExample:\s")
#: The citation at the end of a docstring.
_SOURCE = re.compile(r"\s*Spec: [^\"`]*$")
_SENTENCE = re.compile(r"(?s).*?[.!?](?=\s|$)")
_SPACES = re.compile(r"\s+")


class Documentation(NamedTuple):
    """The prose of a docstring, citations included, and its example, ``""`` if it has none."""

    prose: str
    example: str


def documentation(declaration: Declaration) -> Documentation:
    """Return what the docstring of a builtin says."""
    prose, *example = _EXAMPLE.split(cleandoc(declaration.doc), maxsplit=1)
    return Documentation(prose, cleandoc("".join(example)))


def without_citation(doc: str) -> str:
    """Return a docstring without the sections that it cites at its end."""
    return _SOURCE.sub("", doc)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line; all of it where none ends."""
    found = _SENTENCE.match(text)
    return _SPACES.sub(" ", found[0] if found else text).strip()
