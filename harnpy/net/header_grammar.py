"""The grammar that header values share: tokens, and `value; name=value; name="quoted"` (RFC 9110, 5.6)."""

from __future__ import annotations

import re

from harnpy.faults import Fault

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[^;]*+")
#: A browser writes `filename="C:\x.txt"` with single backslashes: only `\"` and `\\` are escapes.
_PARAMETER = re.compile(
    rf';[ \t]*+(?:({_TOKEN.pattern})[ \t]*+=[ \t]*+(?:"((?:[^"\\]++|\\.)*+)"|([^;"]*+))[ \t]*+)?', re.DOTALL
)
_ESCAPE = re.compile(r'\\([\\"])')
_ESCAPED = re.compile(r'[\\"]')


class Malformed(Fault):
    """A header value isn't `value; name=value; …`, or has a parameter twice. The message doesn't name it."""


def is_token(text: str) -> bool:
    """Return whether ``text`` may be the name of a header, a cookie or a parameter."""
    return _TOKEN.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Return ``text`` as a quoted string."""
    return '"' + _ESCAPED.sub(r"\\\g<0>", text) + '"'


def value_and_parameters(text: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the first `;`, and the parameters by lowercase names. Raises Malformed."""
    start = _VALUE.match(text)
    assert start is not None
    found: dict[str, str] = {}
    at = start.end()
    while at < len(text):
        parameter = _PARAMETER.match(text, at)
        if parameter is None or parameter.end() == at:
            raise Malformed(f"is malformed at position {at}")
        at = parameter.end()
        if at < len(text) and text[at] != ";":
            raise Malformed(f"is malformed at position {at}")
        name, in_quotes, plain = parameter.groups()
        if name is None:
            continue
        if name.lower() in found:
            raise Malformed(f"has `{name.lower()}` twice")
        found[name.lower()] = plain.rstrip(" \t") if in_quotes is None else _ESCAPE.sub(r"\1", in_quotes)
    return start[0].strip(" \t"), found
