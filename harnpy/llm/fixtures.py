"""Models' replies as lines of a file, read by `--llm-mock` and written by `--llm-mock-record`.

Spec: 07 §2.5, 09 §2.6.

A recorded file gives the same program the same replies. The calls of a single task are told apart by their
order. The order of several tasks is a matter of chance, so there each line says what was asked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.llm.categories import CATEGORIES
from harnpy.llm.errors import CallError, FixtureError
from harnpy.llm.providers.mock import Mock, mock_id
from harnpy.llm.request_messages import strings_in
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict


_STRINGS = ("match", "text", "thinking", "thinking_summary", "stop_reason", "model", "provider")
_INTEGERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_creation_input_tokens",
)
#: What a line holds of a reply besides its text and calls; absent when it is empty.
_OPTIONAL = ("thinking", "thinking_summary", "stop_reason")


# Reading.


class Fixture(Mock):
    """A line of the file: a reply of the mock provider, which may stand for another provider."""

    def __init__(self, given: Dict) -> None:
        super().__init__(given)
        self.provider = given.get("provider") or self.provider
        self.blocks = given.get("blocks")


def read_fixtures(text: str, path: str, read_json: Callable[[str], Any] = json.loads) -> list[Fixture]:
    """The fixtures in a file's text; ``path`` names it in messages. Raises `FixtureError`."""
    fixtures = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            given = read_json(line)
        except ValueError as error:
            raise FixtureError(f"invalid JSON in {path} line {number}: {error}") from error
        try:
            fixtures.append(Fixture(_checked(given)))
        except _Invalid as reason:
            raise FixtureError(f"invalid --llm-mock fixture in {path} line {number}: {reason}") from reason
    return fixtures


class _Invalid(Exception):
    """Why a line is not a fixture."""


def _checked(given: Any) -> Dict:
    """The line as `Mock` takes it, once its keys have the types that they must have."""
    if not isinstance(given, dict):
        raise _Invalid("fixture line must be a JSON object")
    _require(given, _STRINGS, str, "a string")
    _require(given, _INTEGERS, int, "an integer")
    _require(given, ("consume_match",), bool, "a boolean")
    _require(given, ("blocks",), list, "an array")
    _check_error(given.get("error"))
    return {**given, "tool_calls": _tool_calls(given.get("tool_calls"))}


def _require(given: Dict, keys: Iterable[str], kind: type, name: str) -> None:
    for key in keys:
        value = given.get(key)
        if value is not None and type(value) is not kind:
            raise _Invalid(f"`{key}` must be {name}")


def _tool_calls(given: Any) -> list[Dict]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise _Invalid("tool_calls must be an array")
    calls = []
    for i, call in enumerate(given):
        name = call.get("name") if isinstance(call, dict) else None
        if not isinstance(name, str):
            raise _Invalid(f"tool_calls[{i}] is missing string field `name`")
        calls.append({"name": name, "arguments": call.get("arguments", call.get("args"))})
    return calls


def _check_error(given: Any) -> None:
    if given is None:
        return
    if not isinstance(given, dict):
        raise _Invalid("error must be an object {category, message, retry_after_ms?}")
    category, after = given.get("category"), given.get("retry_after_ms")
    if category is None:
        raise _Invalid("error.category is required")
    if not isinstance(category, str) or category not in CATEGORIES:
        raise _Invalid(f"unknown error category `{category}`")
    if after is not None and (type(after) is not int or after < 0):
        raise _Invalid("error.retry_after_ms must be a non-negative integer")


# Writing.


class Recording:
    """What models replied, one line a call, in the order of the calls.

    ``asker`` returns who is asking: the calls of equal askers came one after another.
    """

    def __init__(self, asker: Callable[[], object]) -> None:
        self._asker = asker
        self._askers: set[object] = set()
        self._ids: set[str] = set()
        self._calls: list[tuple[str, Dict]] = []

    def record(self, request: Request, call: Callable[[], Reply]) -> Reply:
        """Make a call and record its reply or its error."""
        self._askers.add(self._asker())
        line: Dict = {}
        self._calls.append((self._pattern(request), line))
        try:
            reply = call()
        except CallError as error:
            line["error"] = {"category": error.category, "message": error.message}
            raise
        line.update(_line(reply))
        self._ids.update(call["id"] for call in reply.tool_calls)
        return reply

    def _pattern(self, request: Request) -> str:
        """The pattern that recognises the request: its match text, with any ids of tool calls."""
        return "\n".join("*" if text in self._ids else text for text in strings_in(request.messages))

    def clear(self) -> None:
        self._askers.clear()
        self._calls.clear()

    def lines(self) -> str:
        """The text of the file."""
        several = len(self._askers) > 1
        lines = (_matched(asked, line) if several else line for asked, line in self._calls if line)
        return "".join(f"{compact_json(line)}\n" for line in lines)


def _matched(asked: str, line: Dict) -> Dict:
    """The line as the reply to this one call."""
    return {**line, "match": asked, "consume_match": True}


def _line(reply: Reply) -> Dict:
    line = {
        "text": reply.text,
        "tool_calls": [{"name": call["name"], "args": call["arguments"]} for call in reply.tool_calls],
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cache_read_tokens": reply.cache_read_tokens,
        "cache_write_tokens": reply.cache_write_tokens,
        "model": reply.model,
        "provider": reply.provider,
        "blocks": _replayed(reply).blocks(),
    }
    return line | {key: getattr(reply, key) for key in _OPTIONAL if getattr(reply, key)}


def _replayed(reply: Reply) -> Reply:
    """The reply with the ids that its calls are given when it is replayed."""
    calls = [{**call, "id": mock_id(i)} for i, call in enumerate(reply.tool_calls, 1)]
    return replace(reply, tool_calls=calls)
