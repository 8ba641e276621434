"""Checking values against schemas. Spec: 04 §12.2.

Nothing here knows the language: what its values are is asked of a `SchemaValues`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from harnpy.faults import paced
from harnpy.formats.display import display, type_name

if TYPE_CHECKING:
    from harnpy.formats.schemas import Schema


class SchemaValues:
    """JSON's values as Python represents them. A language with other types overrides what differs."""

    def equal(self, a: Any, b: Any) -> bool:
        return type(a) is type(b) and bool(a == b)

    def items(self, value: Any) -> list[Any] | None:
        """Return the items of a list or set, None for anything else."""
        return value if isinstance(value, list) else None

    def rebuilt(self, value: Any, parts: Any) -> Any:
        """Return a container of the type of ``value`` with other entries or items."""
        return parts

    def look(self) -> None:
        """Called at every part of a value; may raise to stop."""

    def search(self, pattern: str, text: str) -> bool:
        """Return whether the pattern matches anywhere. Raises `ValueError` for a pattern that is none."""
        from harnpy.formats.regex import (
            compiled,  # the library takes a while to load
            found,
        )

        return found(compiled(pattern), text) is not None

    def read_json(self, text: str) -> Any:
        """Return the value of a JSON text. Raises `ValueError`."""
        return json.loads(text)


_SCALARS = ("string", "int", "float", "bool", "nil")


class Checked(NamedTuple):
    """``value`` is normalised where it is valid."""

    value: Any
    errors: list[str]


def check(value: Any, schema: Schema, values: SchemaValues, *, defaults: bool = False) -> Checked:
    """Check ``value`` against a canonical schema; ``defaults``: fill in absent keys."""
    return _Check(schema, values, defaults).run(value)


class _Check:
    """One check of one value; methods return its normalised form and add to ``errors``."""

    def __init__(self, root: Schema, values: SchemaValues, defaults: bool) -> None:
        self.root = root
        self.values = values
        self.defaults = defaults
        self.errors: list[str] = []
        # References being followed, each with the path: one that leads back to itself is an error.
        self._open: set[tuple[str, str]] = set()

    def run(self, value: Any) -> Checked:
        return Checked(self._value("", value, self.root), self.errors)

    def _fail(self, path: str, problem: str) -> None:
        self.errors.append(f"at {path or 'root'}: {problem}")

    def _value(self, path: str, value: Any, schema: Schema) -> Any:
        self.values.look()
        if "$ref" in schema:
            return self._by_reference(path, value, schema["$ref"])
        if value is None and schema.get("nullable") is True:
            return value
        if "const" in schema and not self.values.equal(value, schema["const"]):
            wanted, actual = display(schema["const"]), display(value)
            self._fail(path, f"expected constant {wanted}, got {actual}")
            return value
        for branch in schema.get("all_of", ()):
            value = self._valid_or_given(path, value, branch)
        if "union" in schema:
            value = self._union(path, value, schema["union"])
        if not self._has_type(path, value, schema.get("type")):
            return value
        return self._contents(path, value, schema)

    def _by_reference(self, path: str, value: Any, reference: Any) -> Any:
        here = (path, display(reference))
        target = None if here in self._open else self._referred(reference)
        if target is None:
            self._fail(path, f"unresolved schema reference '{here[1]}'")
            return value
        self._open.add(here)
        value = self._value(path, value, target)
        self._open.remove(here)
        return value

    def _referred(self, reference: Any) -> Schema | None:
        if reference == "#":
            return self.root
        for start, path in (
            ("#/definitions/", ("definitions",)),
            ("#/components/schemas/", ("components", "schemas")),
        ):
            if isinstance(reference, str) and reference.startswith(start):
                place: Any = self.root
                for key in (*path, reference.removeprefix(start)):
                    place = place.get(key) if isinstance(place, dict) else None
                return place if isinstance(place, dict) else None
        return None

    def _union(self, path: str, value: Any, branches: list[Schema]) -> Any:
        """The value normalised by the first branch that fits."""
        before = len(self.errors)
        for branch in branches:
            normalised = self._value(path, value, branch)
            if len(self.errors) == before:
                return normalised
            del self.errors[before:]
        self._fail(path, "value did not match any union branch")
        return value

    def _has_type(self, path: str, value: Any, wanted: Any) -> bool:
        if wanted is None or wanted == "any":
            return True
        actual = "dict" if isinstance(value, dict) else type_name(value)
        if wanted in (actual, type_name(value)):
            return True
        self._fail(path, f"expected type '{display(wanted)}', got '{actual}'")
        return False

    def _contents(self, path: str, value: Any, schema: Schema) -> Any:
        items = self.values.items(value)
        if isinstance(value, dict):
            value = self.values.rebuilt(value, self._entries(path, value, schema))
        elif items is not None:
            self._bounds(path, len(items), schema, "items", ("at least {} items", "at most {} items"))
            if isinstance(schema.get("items"), dict):
                value = self.values.rebuilt(value, self._items(path, items, schema["items"]))
        elif isinstance(value, str):
            self._bounds(path, len(value), schema, "length", ("length >= {}", "length <= {}"))
            self._pattern(path, value, schema.get("pattern"))
        self._scalar(path, value, schema)
        return value

    def _entries(self, path: str, value: dict[str, Any], schema: Schema) -> dict[str, Any]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        found = dict(value)
        if self.defaults:
            found |= {
                key: properties[key]["default"]
                for key in paced(sorted(properties))
                if key not in found and "default" in properties[key]
            }
        required = schema.get("required")
        for key in paced(required) if isinstance(required, list) else ():
            if not isinstance(key, str) or key not in found:
                self._fail(path, f"missing required key '{display(key)}'")
        for key in paced(sorted(properties)):
            if key in found:
                found[key] = self._valid_or_given(_under(path, key), found[key], properties[key])
        extra = schema.get("additional_properties")
        for key in paced(sorted(found.keys() - properties.keys())):
            if extra is False:
                self._fail(path, f"unexpected key '{key}'")
            elif isinstance(extra, dict):
                found[key] = self._valid_or_given(_under(path, key), found[key], extra)
        return found

    def _valid_or_given(self, path: str, value: Any, schema: Schema) -> Any:
        """The normalised value, or the value as given when it is invalid."""
        before = len(self.errors)
        normalised = self._value(path, value, schema)
        return normalised if len(self.errors) == before else value

    def _items(self, path: str, items: list[Any], schema: Schema) -> list[Any]:
        """The normalised items without the invalid ones."""
        valid = []
        for i, item in enumerate(items):
            before = len(self.errors)
            normalised = self._value(f"{path}[{i}]", item, schema)
            if len(self.errors) == before:
                valid.append(normalised)
        return valid

    def _bounds(self, path: str, size: int, schema: Schema, what: str, words: tuple[str, str]) -> None:
        lowest, highest = schema.get(f"min_{what}"), schema.get(f"max_{what}")
        if _is_number(lowest) and size < lowest:
            self._fail(path, f"expected {words[0].format(self._plain(lowest))}, got {size}")
        if _is_number(highest) and size > highest:
            self._fail(path, f"expected {words[1].format(self._plain(highest))}, got {size}")

    def _pattern(self, path: str, value: str, pattern: Any) -> None:
        if not isinstance(pattern, str):
            return
        try:
            matches = self.values.search(pattern, value)
        except ValueError as problem:
            self._fail(path, f"invalid regex pattern '{pattern}': {problem}")
            return
        if not matches:
            self._fail(path, f"value does not match pattern '{pattern}'")

    def _scalar(self, path: str, value: Any, schema: Schema) -> None:
        allowed = schema.get("enum")
        if (
            isinstance(allowed, list)
            and type_name(value) in _SCALARS
            and not any(self.values.equal(value, item) for item in allowed)
        ):
            self._fail(path, f"value must be one of [{', '.join(map(display, allowed))}]")
        if not _is_number(value):
            return
        lowest, highest = schema.get("min"), schema.get("max")
        if _is_number(lowest) and value < lowest:
            self._fail(path, f"expected value >= {self._plain(lowest)}, got {self._plain(value)}")
        if _is_number(highest) and value > highest:
            self._fail(path, f"expected value <= {self._plain(highest)}, got {self._plain(value)}")

    def _plain(self, number: Any) -> str:
        """A number in decimal, with a fraction only if it has one."""
        return display(number).removesuffix(".0")


def _under(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _is_number(value: Any) -> TypeGuard[int | float]:
    return type(value) is int or type(value) is float
