"""Filling in the placeholders of a skill's body: arguments and variables. Spec: 07 §13.1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SKILL_DIR, SESSION_ID = "HARN_SKILL_DIR", "HARN_SESSION_ID"

_HOLE = re.compile(r"\$(?:\$|ARGUMENTS|([0-9]+)|\{(HARN_[^}]*)\})")


def substituted(body: str, arguments: Sequence[str], variable: Callable[[str], str | None]) -> str:
    """Fill in `$ARGUMENTS`, `$1` … and `${HARN_…}`; a placeholder without a value stays."""

    def fill(hole: re.Match[str]) -> str:
        number, name = hole.groups()
        if name is not None:
            value = variable(name)
            return hole[0] if value is None else value
        if number is not None:
            index = int(number[-9:]) if len(number.lstrip("0")) < 10 else 0
            return arguments[index - 1] if 0 < index <= len(arguments) else hole[0]
        return "$" if hole[0] == "$$" else " ".join(arguments)

    return _HOLE.sub(fill, body)


def variables(
    env: Callable[[str], str | None], directory: str | None, session_id: str | None = None
) -> Callable[[str], str | None]:
    """Return the values of `${HARN_…}`. The session defaults to the environment's."""

    def value(name: str) -> str | None:
        if name == SKILL_DIR:
            return directory
        if name == SESSION_ID and session_id is not None:
            return session_id
        return env(name)

    return value
