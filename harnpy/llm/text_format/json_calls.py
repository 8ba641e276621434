"""Calls in the JSON of OpenAI's interface, the scanner's last resort. Spec: 07 §6.6, "Bare-call scanner"."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from harnpy.llm.text_format.heredocs import Heredocs
from harnpy.llm.text_format.written_literals import LiteralError, LiteralReader

#: The beginning of a list of objects.
OBJECTS = re.compile(r"\[\s*\{")


class JsonCall(NamedTuple):
    """``arguments`` is an object, its JSON, or something else."""

    id: str | None
    name: str
    arguments: Any

    def read_arguments(self) -> dict[str, Any]:
        """The arguments of a call. Raises `LiteralError` unless they are an object."""
        arguments = self.arguments
        if isinstance(arguments, str):
            text = arguments.strip() or "{}"
            reader = LiteralReader(text, Heredocs(text))
            arguments = reader.value()
            if reader.peek():
                reader.fail("expected nothing more after the object")
        if not isinstance(arguments, dict):
            raise LiteralError("the arguments are no object")
        return arguments


def read_json_calls(text: str, at: int, heredocs: Heredocs) -> list[JsonCall]:
    """The calls in the list at ``at``; none when it is not a list of calls."""
    try:
        items = LiteralReader(text, heredocs, at).value()
    except LiteralError:
        return []
    calls = [_call(item) for item in items]
    return [call for call in calls if call is not None] if None not in calls else []


def _call(item: Any) -> JsonCall | None:
    function = item.get("function") if isinstance(item, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        return None
    id = item.get("id")
    return JsonCall(id if isinstance(id, str) and id else None, name, function.get("arguments", {}))
