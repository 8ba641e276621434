"""Finding a value in JSON by its path: `info.task`, `items[0].name`, or `info/task`. Spec: 10 §A2.6.

| style | keys | indexes | each item |
|---|---|---|---|
| dots | ``info.task`` | ``items[0]`` | ``items[*].id`` |
| slashes | ``info/task`` | ``items/0`` | ``items/*/id``, ``items/[*]/id`` |

A path with a slash in it is of the second style; its empty parts count for nothing. Negative indexes count
from the end.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


#: What a path that leads nowhere gives; one that leads to None gives that.
MISSING: Final = _Missing()


class _Each(NamedTuple):
    """Every item of a list."""


#: A key, an index, every item; or of a path with slashes, a number that may be either.
_Step = str | int | _Each | tuple[str, int]

_DOTTED: Final = re.compile(r"([^\[\]]*)((?:\[(?:-?\d+|\*)\])*)")
_BRACKETED: Final = re.compile(r"\[(-?\d+|\*)\]")
_NUMBER: Final = re.compile(r"-?\d+")


def find(value: Any, path: str) -> Any:
    """Return what is at ``path`` in ``value``, `MISSING` where that is nothing.

    A path with "each item" gives a list, and is missing if it is for one of the items.
    """
    steps = _slashed(path) if "/" in path else _dotted(path)
    return _follow(value, steps) if steps else MISSING


def _dotted(path: str) -> list[_Step]:
    """Return the steps of a path with dots, none for one that is malformed."""
    steps: list[_Step] = []
    for number, part in enumerate(path.split(".")):
        whole = _DOTTED.fullmatch(part)
        if whole is None or not part or (number and not whole[1]):
            return []
        if whole[1]:
            steps.append(whole[1])
        steps += [_Each() if index == "*" else int(index) for index in _BRACKETED.findall(whole[2])]
    return steps


def _slashed(path: str) -> list[_Step]:
    return [_slashed_step(part) for part in path.split("/") if part]


def _slashed_step(part: str) -> _Step:
    if part in ("*", "[*]"):
        return _Each()
    return (part, int(part)) if _NUMBER.fullmatch(part) else part


def _follow(value: Any, steps: list[_Step]) -> Any:
    for number, step in enumerate(steps):
        if isinstance(step, _Each):
            return _of_each(value, steps[number + 1 :])
        value = _at(value, step)
        if value is MISSING:
            break
    return value


def _of_each(value: Any, steps: list[_Step]) -> Any:
    if not isinstance(value, list | tuple):
        return MISSING
    found = [_follow(item, steps) for item in value]
    return MISSING if any(item is MISSING for item in found) else found


def _at(value: Any, step: str | int | tuple[str, int]) -> Any:
    key, index = step if isinstance(step, tuple) else (step, step)
    if isinstance(value, dict):
        return value.get(key, MISSING)
    if isinstance(value, list | tuple) and isinstance(index, int) and -len(value) <= index < len(value):
        return value[index]
    return MISSING
