"""Do type arguments and a call follow this ``<``? Spec: 01 §8.3.

A look-ahead over undecided tokens. Deeply nested arguments are given up as a comparison, which bounds
the work when thousands of ``<`` stand in a row.
"""

from __future__ import annotations

_MAX_DEPTH = 24
_LITERALS = frozenset("nil true false STRING RAW_STRING INT".split())


def closes_type_args(kinds: list[str], i: int) -> bool:
    """Whether ``type {, type} > (`` stands at token ``i``."""
    end = _type_list(kinds, i, ">", 0)
    return end >= 0 and kinds[end] == "("


def _skip(kinds: list[str], i: int) -> int:
    while kinds[i] == "NL":
        i += 1
    return i


def _type_list(kinds: list[str], i: int, closer: str, depth: int) -> int:
    """The token after the list and its closer, or -1."""
    while True:
        i = _type(kinds, _skip(kinds, i), depth + 1)
        if i < 0:
            return -1
        i = _skip(kinds, i)
        if kinds[i] == ",":
            i = _skip(kinds, i + 1)
        elif kinds[i] != closer:
            return -1
        if kinds[i] == closer:
            return i + 1


def _type(kinds: list[str], i: int, depth: int) -> int:
    """The token after the type at ``i``, or -1."""
    if depth > _MAX_DEPTH:
        return -1
    i = _atom(kinds, i, depth)
    while i >= 0 and kinds[i] == "|":
        i = _atom(kinds, _skip(kinds, i + 1), depth)
    return i


def _atom(kinds: list[str], i: int, depth: int) -> int:
    kind = kinds[i]
    if kind == "IDENT" or kind[:1] == "~":
        return _type_list(kinds, i + 2, ">", depth) if kinds[i + 1] == "<" else i + 1
    if kind in _LITERALS:
        return i + 1
    if kind == "-" and kinds[i + 1] == "INT":
        return i + 2
    if kind == "[":
        i = _type(kinds, _skip(kinds, i + 1), depth + 1)
        return i + 1 if i >= 0 and kinds[i] == "]" else -1
    if kind == "{":
        return _shape(kinds, _skip(kinds, i + 1), depth)
    if kind == "fn" and kinds[i + 1] == "(":
        empty = kinds[i + 2] == ")"
        i = i + 3 if empty else _type_list(kinds, i + 2, ")", depth)
        return _type(kinds, i + 1, depth + 1) if i >= 0 and kinds[i] == "->" else -1
    return -1


def _shape(kinds: list[str], i: int, depth: int) -> int:
    """The token after the shape whose first field is at ``i``, or -1."""
    while kinds[i] != "}":
        if kinds[i] == "$END":
            return -1
        i += 1
        if kinds[i] == "?":
            i += 1
        if kinds[i] != ":":
            return -1
        i = _type(kinds, _skip(kinds, i + 1), depth + 1)
        if i < 0:
            return -1
        while kinds[i] in (",", "NL"):
            i += 1
    return i + 1
