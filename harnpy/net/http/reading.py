"""Reading one dict of options: a value of the wrong type is an error that names the option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.net.http.errors import HttpError
from harnpy.text.display import display, type_name

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

_LONGEST_MS = 1 << 40


class Given:
    """The options that the builtin ``name`` was given; nil reads as absent."""

    def __init__(self, name: str, given: Dict, path: str = "") -> None:
        self._name = name
        self._given = given
        self._path = path

    def value(self, *keys: str) -> Any:
        """Return the first of these options that is there, None when none is."""
        return next((self._given[key] for key in keys if self._given.get(key) is not None), None)

    def text(self, *keys: str) -> str | None:
        value = self.value(*keys)
        return None if value is None else display(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.value(key)
        if value is None:
            return default
        if type(value) is not bool:
            raise self.wrong(key, "a bool", value)
        return value

    def count(self, *keys: str, default: int) -> int:
        """Return a whole number that isn't negative."""
        value = self.value(*keys)
        if value is None:
            return default
        if type(value) is not int or value < 0:
            raise self.wrong(keys[0], "an int that isn't negative", value)
        return value

    def seconds(self, *keys: str, least: int = 1) -> float | None:
        """Return the seconds that so many milliseconds are."""
        value = self.value(*keys)
        if value is None:
            return None
        if type(value) not in (int, float) or not least <= value <= _LONGEST_MS:
            raise self.wrong(keys[0], f"milliseconds from {least} on", value)
        return float(value) / 1000

    def mapping(self, key: str) -> Dict:
        value = self.value(key)
        if value is None:
            return {}
        if type(value) is not dict:
            raise self.wrong(key, "a dict", value)
        return value

    def items(self, key: str) -> list[Any] | None:
        value = self.value(key)
        if value is not None and type(value) is not list:
            raise self.wrong(key, "a list", value)
        return value

    def inner(self, key: str) -> Given:
        return Given(self._name, self.mapping(key), f"{self._path}{key}.")

    def wrong(self, key: str, expected: str, value: Any) -> HttpError:
        shown = display(value) if type(value) in (int, float) else type_name(value)
        return HttpError(f"{self._name}: {self._path}{key} must be {expected}, got {shown}")
