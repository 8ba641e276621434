"""Cells and maps that tasks share, and swaps that fail when somebody else was faster. Spec: 05 §8.2, §8.3.

Each write counts the version up by one. A snapshot is a value with the version it was read at.
"""

from __future__ import annotations

from harnpy.vm.values.equality import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Value = Any

_SNAPSHOT = "shared_snapshot"


class Versioned:
    """What is shared, and how often it was used."""

    def __init__(self) -> None:
        self.version = self.reads = self.writes = self.swaps = self.refusals = self.stale = 0

    def metrics(self) -> dict[str, Value]:
        return {
            "version": self.version,
            "read_count": self.reads,
            "write_count": self.writes,
            "cas_success_count": self.swaps,
            "cas_failure_count": self.refusals,
            "stale_read_count": self.stale,
        }

    def _written(self) -> None:
        self.version += 1
        self.writes += 1

    def _snapshot(self, value: Value) -> dict[str, Value]:
        self.reads += 1
        return {"_type": _SNAPSHOT, "value": value, "version": self.version}

    def _is_as_expected(self, value: Value, expected: Value) -> bool:
        """Whether a swap may go on: ``expected`` is a value, or a snapshot that nothing was written since."""
        is_old = False
        if type(expected) is dict and expected.get("_type") == _SNAPSHOT:
            is_old, expected = expected.get("version") != self.version, expected.get("value")
        if not is_old and equal(value, expected):
            self.swaps += 1
            return True
        self.refusals += 1
        self.stale += is_old
        return False


class Cell(Versioned):
    """One value."""

    def __init__(self, value: Value = None) -> None:
        super().__init__()
        self._value = value

    def get(self) -> Value:
        self.reads += 1
        return self._value

    def snapshot(self) -> dict[str, Value]:
        return self._snapshot(self._value)

    def set(self, value: Value) -> Value:
        """Store ``value``; return the former one."""
        before, self._value = self._value, value
        self._written()
        return before

    def swap(self, expected: Value, new: Value) -> bool:
        """Store ``new`` if the value is the expected one; return whether it was."""
        if not self._is_as_expected(self._value, expected):
            return False
        self.set(new)
        return True


class SharedMap(Versioned):
    """Values by their keys. The version is that of the whole map."""

    def __init__(self, entries: dict[str, Value] | None = None) -> None:
        super().__init__()
        self._entries = dict(entries or {})

    def get(self, key: str, default: Value = None) -> Value:
        self.reads += 1
        return self._entries.get(key, default)

    def entries(self) -> dict[str, Value]:
        self.reads += 1
        return dict(self._entries)

    def snapshot(self, key: str) -> dict[str, Value]:
        return self._snapshot(self._entries.get(key))

    def set(self, key: str, value: Value) -> Value:
        """Store ``value``; return the former one."""
        before = self._entries.get(key)
        self._entries[key] = value
        self._written()
        return before

    def delete(self, key: str) -> Value:
        """Remove an entry; return its value. Without one, nothing was written."""
        before = self._entries.pop(key, None)
        if before is not None:
            self._written()
        return before

    def swap(self, key: str, expected: Value, new: Value) -> bool:
        """Store ``new`` if the entry is the expected one, nil standing for none; return whether it was."""
        if not self._is_as_expected(self._entries.get(key), expected):
            return False
        if new is None:
            self._entries.pop(key, None)
            self._written()
        else:
            self.set(key, new)
        return True
