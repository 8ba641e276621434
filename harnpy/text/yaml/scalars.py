"""What a plain scalar means by the core schema of YAML 1.2. Spec: 04 §11.5.

`yes`, `on`, `1:30` and dates are texts, as they are in JSON.
"""

from __future__ import annotations

import re
from typing import Any

_NIL = frozenset(["", "~", "null", "Null", "NULL"])
_BOOLS = {word: word.lower() == "true" for word in "true True TRUE false False FALSE".split()}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = frozenset([".nan", ".NaN", ".NAN"])
_BASES = {"0o": 8, "0x": 16}
#: The digits of the longest int.
_LONGEST_INT = 21

_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


def plain_value(text: str) -> Any:
    """Return what a plain scalar means; an integer of more than 64 bits is a float, as in JSON."""
    if text in _NIL:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in _NAN else text


def _integer(text: str) -> int | float:
    if len(text) <= _LONGEST_INT:
        number = int(text, _BASES.get(text[:2], 10))
        if -(2**63) <= number < 2**63:
            return number
    if text[:2] in _BASES:
        raise ValueError(f"integer out of range: {text[:_LONGEST_INT]}")
    return float(text)


def tagged_value(tag: str, text: str) -> Any:
    """Return what a scalar with a tag means. Raises ValueError."""
    kind = tag.removeprefix(_TAG)
    if kind in ("!", "str"):
        return text
    if kind not in _TYPES:
        raise ValueError(f"unsupported tag '{_short(tag)}'")
    value = plain_value(text)
    if type(value) not in _TYPES[kind]:
        raise ValueError(f"'{text}' is no value of the tag '{_short(tag)}'")
    return float(value) if kind == "float" else value


def check_container_tag(tag: str | None, kind: str) -> None:
    """Raise ValueError unless the tag of a ``"seq"`` or ``"map"`` says no more than that."""
    if tag not in (None, "!", _TAG + kind):
        raise ValueError(f"unsupported tag '{_short(tag)}'")


def _short(tag: str | None) -> str:
    return (tag or "").replace(_TAG, "!!")
