"""What checking data against a schema needs to know of values: their types, parts, equality and text."""

from __future__ import annotations

import json
from typing import Any


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
        from harnpy.text.regex.dialect import compiled  # the library takes a while to load
        from harnpy.text.regex.matching import found

        return found(compiled(pattern), text) is not None

    def read_json(self, text: str) -> Any:
        """Return the value of a JSON text. Raises `ValueError`."""
        return json.loads(text)
