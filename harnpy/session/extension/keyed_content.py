"""Texts made of chosen values: what a session records of a request and of its result. Spec: 10 §A2.6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def keys_of(setting: Any) -> list[str] | None:
    """Return the keys that a setting names, None where it is None. What is neither a text nor a list names
    none."""
    if setting is None:
        return None
    if isinstance(setting, str):
        return [setting]
    if not isinstance(setting, list | tuple):
        return []
    return [str(key) for key in setting if key is not None]


def keyed_content(keys: Iterable[str], find: Callable[[str], Any], missing: object) -> str:
    """Return the values of the keys that ``find`` doesn't give ``missing`` for, each below its key."""
    blocks = []
    for key in map(str.strip, keys):
        value = find(key) if key else missing
        if value is not missing:
            blocks.append(f"[{key}]:\n{formatted(value)}")
    return "\n".join(blocks).strip()


def formatted(value: Any) -> str:
    """Return a value as text: a text as it is, numbers, bools and None as Python prints them, all else as a
    YAML block, or Python's text of what YAML has no form for."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    from yaml import YAMLError

    from harnpy.session.transfer.documents import YAML, write_text

    try:
        return write_text(value, YAML).rstrip("\n")
    except (YAMLError, RecursionError):
        return str(value)
