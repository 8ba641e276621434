"""Registers: what a session keeps by key beside its messages. Spec: 10 §C3.1."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Those that go back with the conversation; all others are the session's.
OF_THE_BRANCH = ("model", "thinking", "tools")
METADATA = "metadata."

_KEYS = frozenset({*OF_THE_BRANCH, "memo", "pins", "scratchpad", "system_prompt", "task", "tasks"})


class Register(NamedTuple):
    """What a register holds; ``version`` counts from 1, ``seq`` is the number of the event that says so."""

    version: int
    value: Any
    seq: int


def is_register(key: str) -> bool:
    """Whether there is a register of that key."""
    return key in _KEYS or key.startswith((METADATA, "settings."))
