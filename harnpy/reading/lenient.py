"""Reading leniently: a value of the wrong type reads as absent, and unknown keys are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


class Options:
    """The options of a call."""

    def __init__(self, given: Any) -> None:
        self.given: dict[str, Any] = given if isinstance(given, dict) else {}

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def value(self, key: str) -> Any:
        return self.given.get(key)

    def string(self, key: str, default: str | None = None) -> str | None:
        value = self.given.get(key)
        return default if value is None else display(value)

    def integer(self, key: str) -> int | None:
        value = self.given.get(key)
        return value if type(value) is int else None

    def count(self, key: str, default: int) -> int:
        """Return an int; a negative one reads as 0."""
        value = self.integer(key)
        return default if value is None else max(0, value)

    def limit(self, key: str, caller: str) -> int | None:
        """Return an int. Raises `MisuseError`, naming ``caller``, for a negative one."""
        return not_negative(self.integer(key), key, caller)

    def number(self, key: str) -> float | None:
        value = self.given.get(key)
        return float(value) if type(value) is int or type(value) is float else None

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.given.get(key)
        return default if value is None else bool(value)

    def mapping(self, key: str) -> dict[str, Any] | None:
        value = self.given.get(key)
        return value if isinstance(value, dict) else None

    def strings(self, key: str) -> list[str] | None:
        """Return the texts of a list's items; an empty list reads as absent."""
        value = self.given.get(key)
        return [display(item) for item in value] if isinstance(value, list) and value else None


def not_negative(value: int | None, key: str, caller: str) -> int | None:
    """Return the value of an option that must not be negative. Raises `MisuseError`."""
    if value is not None and value < 0:
        raise MisuseError(f"{caller}: {key} must be >= 0")
    return value


def as_text(value: Any) -> str | None:
    """Return a text that isn't empty, None for anything else."""
    return value if isinstance(value, str) and value else None


def as_dict(value: Any) -> Dict:
    return value if isinstance(value, dict) else {}


def as_dicts(value: Any) -> list[Dict]:
    """Return the dicts in a list, in order."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def dicts_at(value: Any, key: str) -> list[Dict]:
    """Return the dicts in the list under a key of a dict."""
    return as_dicts(as_dict(value).get(key))
