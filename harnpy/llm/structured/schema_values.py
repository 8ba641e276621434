"""What checking data against a schema must know of the values: their types, parts, equality and text."""

from __future__ import annotations

import json
import re
from typing import Any

from harnpy.reading.type_words import type_word
from harnpy.text.json.compact import compact_json


class PatternProblem(ValueError):
    """A text is no regular expression; ``str()`` says why."""


class SchemaValues:
    """JSON's values as Python has them. A language with other types overrides what differs."""

    def type_of(self, value: Any) -> str:
        return type_word(value)

    def show(self, value: Any) -> str:
        """The display of any value."""
        return value if isinstance(value, str) else compact_json(value)

    def equal(self, a: Any, b: Any) -> bool:
        return type(a) is type(b) and bool(a == b)

    def items(self, value: Any) -> list[Any] | None:
        """The items of a list or set, None for anything else."""
        return value if isinstance(value, list) else None

    def rebuilt(self, value: Any, parts: Any) -> Any:
        """A container of the kind of ``value`` with other entries or items."""
        return parts

    def search(self, pattern: str, text: str) -> bool:
        """Whether the pattern matches anywhere. Raises `PatternProblem`."""
        try:
            return re.search(pattern, text) is not None
        except re.error as error:
            raise PatternProblem(str(error)) from error

    def read_json(self, text: str) -> Any:
        """Raises `ValueError`."""
        return json.loads(text)
