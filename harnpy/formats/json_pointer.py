"""JSON Pointer: naming one place in a value. RFC 6901. Spec: 04 §11.3.

What is there may be any value; what has no entries or items leads nowhere. Nothing is changed: what differs
is copied, down to the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from harnpy.faults import paced

Container = dict[str, Any] | list[Any]
Key = str | int

_INDEX = re.compile(r"0|[1-9][0-9]{0,18}")
_ESCAPE = re.compile(r"~(.?)", re.DOTALL)


class PointerError(ValueError):
    """A text is no pointer."""


class _Step(NamedTuple):
    container: Container
    key: Key


def tokens(pointer: str) -> list[str]:
    """Return the unescaped tokens of a pointer. Raises PointerError."""
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise PointerError("pointer must be empty or start with '/'")
    return [_ESCAPE.sub(_unescaped, token) for token in paced(pointer[1:].split("/"))]


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if not code:
        raise PointerError("dangling '~' in pointer")
    if code not in "01":
        raise PointerError(f"invalid escape '~{code}' in pointer")
    return "~" if code == "0" else "/"


def found_at(value: Any, pointer: str) -> Any:
    """Return what is at the place, None where nothing is."""
    for token in paced(tokens(pointer)):
        key = _key(value, token)
        if key is None:
            return None
        value = value[key]
    return value


def with_value(value: Any, pointer: str, new: Any) -> Any:
    """Return the value with ``new`` at a place in a container that is there, else the value itself."""
    names = tokens(pointer)
    if not names:
        return new
    *parents, last = names
    steps = _steps(value, parents)
    if steps is None:
        return value
    container = steps[-1].container[steps[-1].key] if steps else value  # type: ignore[index]
    key = _key(container, last)
    if key is not None:
        changed = copy(container)
        changed[key] = new
    elif isinstance(container, dict):
        changed = copy(container)
        changed[last] = new
    elif isinstance(container, list) and last in ("-", str(len(container))):
        changed = [*container, new]
    else:
        return value
    return _rebuilt(steps, changed)


def without_value(value: Any, pointer: str) -> Any:
    """Return the value without what is at the place, None without the whole."""
    names = tokens(pointer)
    if not names:
        return None
    steps = _steps(value, names)
    if steps is None:
        return value
    container, key = steps[-1]
    changed = copy(container)
    del changed[key]  # type: ignore[arg-type]
    return _rebuilt(steps[:-1], changed)


def _steps(value: Any, names: Sequence[str]) -> list[_Step] | None:
    """The way to a place, None where nothing is."""
    steps = []
    for token in names:
        key = _key(value, token)
        if key is None:
            return None
        steps.append(_Step(value, key))
        value = value[key]
    return steps


def _rebuilt(steps: Sequence[_Step], changed: Any) -> Any:
    for container, key in reversed(steps):
        outer = copy(container)
        outer[key] = changed  # type: ignore[index]
        changed = outer
    return changed


def _key(container: Any, token: str) -> Key | None:
    """Return the key or index that the token names in the container, None if nothing."""
    if isinstance(container, dict):
        return token if token in container else None
    if isinstance(container, list) and _INDEX.fullmatch(token) and int(token) < len(container):
        return int(token)
    return None
