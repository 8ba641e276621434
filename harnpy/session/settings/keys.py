"""What a setting is called, and what the known ones may be. Spec: 10 §C8.1."""

from __future__ import annotations

from typing import Any

from harnpy.session.errors import InvalidArgument

#: The registers that hold a session's own.
REGISTERS = "settings."
_PREFIXES = ("session.", REGISTERS)


def name_of(key: str) -> str:
    """Return a setting's name: ``session.<k>``, ``settings.<k>`` and ``<k>`` are the same."""
    if not isinstance(key, str):
        raise InvalidArgument(f"set: the name of a setting is a text, got {type(key).__name__}")
    if "." not in key:
        return key
    return next((key.removeprefix(prefix) for prefix in _PREFIXES if key.startswith(prefix)), key)


def check(name: str, value: Any) -> None:
    """Raise `InvalidArgument` for a value that the setting can't have. None unsets any."""
    known = _KNOWN.get(name)
    if known is None or value is None:
        return
    fits, wanted = known
    if not fits(value):
        raise InvalidArgument(f"set: setting '{name}' must be {wanted}, got {value!r}")


def _is_length(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_keys(value: Any) -> bool:
    return isinstance(value, str | list)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


_KNOWN = {
    "max_length": (_is_length, "an int >= 0 or none"),
    "input_keys": (_is_keys, "a string, a list or none"),
    "reply_keys": (_is_keys, "a string, a list or none"),
    "auto_resize": (_is_bool, "a bool or none"),
}
