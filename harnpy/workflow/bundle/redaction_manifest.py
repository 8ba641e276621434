"""The redaction manifest: the altered values of a document, by JSON pointer. Spec: 08 §17."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


REASONS = ("secret", "path", "reasoning", "env", "payload", "oversize", "replay_only")
ACTIONS = ("masked", "removed", "hashed", "truncated")


class Manifest:
    """One entry for each altered value, with the first reason.

    ``carried`` are the entries of the bundle that the run came from.
    """

    def __init__(self, carried: Iterable[Dict] = ()) -> None:
        self._entries = {entry["path"]: entry for entry in carried}

    def add(self, pointer: str, reason: str, action: str, hashed: Any = None) -> None:
        """Note that the value at ``pointer`` was altered; ``hashed`` is the original."""
        if pointer not in self._entries:
            entry = {"path": pointer, "reason": reason, "action": action}
            self._entries[pointer] = entry if hashed is None else {**entry, "sha256": digest(hashed)}

    def has(self, pointer: str, reason: str) -> bool:
        entry = self._entries.get(pointer)
        return entry is not None and entry["reason"] == reason

    def pointers(self) -> list[str]:
        return sorted(self._entries)

    def entries(self, document: Any) -> list[Dict]:
        """Return the entries that point into the document, sorted by path."""
        return [entry for pointer, entry in sorted(self._entries.items()) if points_into(document, pointer)]


def step(pointer: str, key: str | int) -> str:
    """Return the pointer to a member of the value at ``pointer``. Spec: RFC 6901."""
    return f"{pointer}/{key}" if isinstance(key, int) else f"{pointer}/{_escape(key)}"


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def points_into(document: Any, pointer: str) -> bool:
    """Return whether there is a value at ``pointer``."""
    if pointer and not pointer.startswith("/"):
        return False
    value = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return True


def digest(value: Any) -> str:
    """Return the SHA-256 of a text, or of the canonical JSON of any other value: compact, sorted keys."""
    text = value if isinstance(value, str) else compact_json(value)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
