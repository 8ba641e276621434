"""Registries of tools and of skills: immutable dicts ``{_type, <entries>}``; a change makes a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.reading.dicts import Dict


class RegistryKind:
    """What registries of one kind have in common; ``noun`` is what an entry is called."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._type = f"{noun}_registry"
        self._key = f"{noun}s"

    def registry_of(self, entries: Iterable[Dict]) -> Dict:
        return {"_type": self._type, self._key: list(entries)}

    def is_registry(self, value: Any) -> bool:
        return isinstance(value, dict) and value.get("_type") == self._type

    def entries_of(self, registry: Any, caller: str, what: str | None = None) -> list[Dict]:
        """Return the entries of an argument of ``caller``; errors say ``what`` it should have been."""
        if not isinstance(registry, dict):
            raise OptionError(f"{caller}: {what or f'requires a {self.noun} registry'}")
        entries: Any = registry.get(self._key)
        if not self.is_registry(registry) or not are_entries(entries):
            made = f"created with {self._type}()"
            raise OptionError(f"{caller}: argument must be a {self.noun} registry ({made})")
        found: list[Dict] = entries
        return found

    def first_entries(self, registry: Any, caller: str) -> list[Dict]:
        """Return the entries of a builtin's first argument of several."""
        return self.entries_of(registry, caller, f"first argument must be a {self.noun} registry")

    def select(self, registry: Any, names: Any, name_of: Callable[[Any], Any]) -> Dict:
        """Return the registry with only the entries that ``names``, a program's value, list."""
        caller = f"{self.noun}_select"
        entries = self.first_entries(registry, caller)
        if not isinstance(names, list):
            raise OptionError(f"{caller}: second argument must be a list of {self.noun} names")
        wanted = [name_of(name) for name in names]
        return self.registry_of(entry for entry in entries if entry["name"] in wanted)


def are_entries(value: Any) -> bool:
    """Whether ``value`` is a list of entries, each with a name."""
    return isinstance(value, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in value
    )


def find(entries: Iterable[Dict], name: Any) -> Dict | None:
    return next((entry for entry in entries if entry["name"] == name), None)
