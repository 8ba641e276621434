"""The provider that needs no model, and the fixtures that it replays. Spec: 07 §2, 09 §2.6.

Its replies come from a queue, by pattern, or are an echo. It takes a call that asks for it, and every call
while its queue isn't empty or fixtures are replayed. Every call is logged first, even one that then fails.
"""

from __future__ import annotations

import json
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError, OptionError
from harnpy.formats.display import display
from harnpy.formats.globs import glob_matches
from harnpy.formats.json import compact_json, ordered_json
from harnpy.formats.text_size import byte_length
from harnpy.llm.errors import CATEGORIES, CallError, FixtureError
from harnpy.llm.reply import Reply
from harnpy.llm.request_messages import match_text, prompt_text, strings_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.formats.dicts import Dict
    from harnpy.llm.request import Request

MOCK_NAME = "mock"

_ECHO_CHARS = 100
_UNMATCHED_CHARS = 200
_PLACEHOLDERS: dict[str, Any] = {"integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}}


class Mock:
    """One queued reply."""

    provider = MOCK_NAME
    blocks: list[dict[str, Any]] | None = None

    def __init__(self, given: dict[str, Any]) -> None:
        def string(key: str) -> str | None:
            return None if given.get(key) is None else display(given[key])

        def count(*keys: str) -> int | None:
            found = [given[key] for key in keys if type(given.get(key)) is int]
            return found[0] if found else None

        self.text = string("text") or ""
        self.calls = _tool_calls(given.get("tool_calls"))
        self.pattern = string("match")
        self.consumed = bool(given.get("consume_match"))
        self.input_tokens = count("input_tokens")
        self.output_tokens = count("output_tokens")
        self.cache_read = count("cache_read_tokens")
        self.cache_write = count("cache_write_tokens", "cache_creation_input_tokens")
        self.thinking = string("thinking")
        self.thinking_summary = string("thinking_summary")
        self.stop_reason = string("stop_reason")
        self.refusal = string("refusal")
        self.model = string("model") or MOCK_NAME
        self.error = None if given.get("error") is None else _read_error(given["error"])

    def matches(self, text: str) -> bool:
        return self.pattern is not None and glob_matches(self.pattern, text)


class _Scope:
    """The queue, the call log and the cache memory: what pushing a scope saves."""

    def __init__(self) -> None:
        self.queue: list[Mock] = []
        # Each with the number of its messages: a request's list only grows, so no copy is needed.
        self.calls: list[tuple[dict[str, Any], int]] = []
        self.cached: set[str] = set()
        self.meter = _Meter()


class _Meter:
    """The length of match texts. Each message is read once: a request has those of the former one first."""

    def __init__(self) -> None:
        self._seen: list[dict[str, Any]] = []
        self._bytes = 0

    def bytes(self, messages: list[dict[str, Any]]) -> int:
        """Return the UTF-8 length of the messages' match text."""
        known = len(self._seen)
        if len(messages) < known or not all(map(is_, self._seen, messages)):
            self._seen, self._bytes, known = [], 0, 0
        new = messages[known:]
        self._seen += new
        text = match_text(new)
        if text:
            self._bytes += byte_length(text) + 1
        return max(0, self._bytes - 1)


class MockProvider:
    def __init__(self) -> None:
        self._scope = _Scope()
        self._saved: list[_Scope] = []
        self._fixtures: list[Mock] | None = None

    def replay(self, fixtures: Iterable[Mock]) -> None:
        """Reply to every call from ``fixtures``, or else from the queue; a call for which neither has a reply
        is an error."""
        self._fixtures = list(fixtures)

    # For programs.

    def add(self, given: Any) -> None:
        """Queue a reply. Raises `MisuseError` for a wrong one."""
        if not isinstance(given, dict):
            raise MisuseError("llm_mock: expected a dict argument")
        self._scope.queue.append(Mock(given))

    def calls(self) -> list[dict[str, Any]]:
        """The calls taken so far, as ``{messages, system, tools, thinking}``."""
        return [{**call, "messages": call["messages"][:count]} for call, count in self._scope.calls]

    def clear(self) -> None:
        self._scope = _Scope()
        self._saved.clear()
        self._fixtures = None

    def push_scope(self) -> None:
        """Start with an empty queue, log and cache memory until `pop_scope`."""
        self._saved.append(self._scope)
        self._scope = _Scope()

    def pop_scope(self) -> None:
        if not self._saved:
            raise OptionError("llm_mock_pop_scope: no scope to pop")
        self._scope = self._saved.pop()

    # For the caller.

    @property
    def queued(self) -> bool:
        """Return True if there are replies in the queue or in fixtures, which then serve every call."""
        return bool(self._scope.queue) or self._fixtures is not None

    def intercepts(self, provider: str) -> bool:
        return provider == MOCK_NAME or self.queued

    def complete(self, request: Request) -> Reply:
        call = {
            "messages": request.messages,
            "system": request.system,
            "tools": request.tools,
            "thinking": request.thinking,
        }
        self._scope.calls.append((call, len(request.messages)))
        mock = self._next(request)
        reply = self._default(request) if mock is None else self._answer(mock, request)
        if request.cache and (mock is None or (mock.cache_read is None and mock.cache_write is None)):
            self._remember(request, reply)
        return reply

    def _next(self, request: Request) -> Mock | None:
        """The reply prepared for the request. Raises `MisuseError` when no fixture matches."""
        if self._fixtures is None:
            return _chosen(self._scope.queue, request)
        mock = _chosen(self._fixtures, request) or _chosen(self._scope.queue, request)
        if mock is None:
            prompt = prompt_text(request.messages)
            shown = prompt if len(prompt) <= _UNMATCHED_CHARS else f"{prompt[:_UNMATCHED_CHARS]}…"
            raise MisuseError(f'No --llm-mock fixture matched prompt: "{shown}"')
        return mock

    def _answer(self, mock: Mock, request: Request) -> Reply:
        if mock.error is not None:
            raise CallError(*mock.error)
        input_tokens = mock.input_tokens
        if input_tokens is None:
            input_tokens = self._scope.meter.bytes(request.messages)
        return Reply(
            text=mock.text,
            model=mock.model,
            provider=mock.provider,
            requested_model=request.model,
            input_tokens=input_tokens,
            output_tokens=30 if mock.output_tokens is None else mock.output_tokens,
            cache_read_tokens=mock.cache_read or 0,
            cache_write_tokens=mock.cache_write or 0,
            tool_calls=mock.calls,
            thinking=mock.thinking,
            thinking_summary=mock.thinking_summary,
            stop_reason=mock.stop_reason,
            refusal=mock.refusal,
            given_blocks=mock.blocks,
        )

    def _default(self, request: Request) -> Reply:
        """An echo of the prompt, or a call of the first tool with placeholders.

        The model `mock`, which stands for no other, calls no tool: nobody has queued a call.
        """
        prompt, is_itself = prompt_text(request.messages), request.model == MOCK_NAME
        calls = [_placeholder_call(request.tools[0])] if request.tools and not is_itself else []
        note = _NOTHING_QUEUED if request.tools and is_itself else ""
        return Reply(
            text="" if calls else _echo(prompt, request.system, note),
            model=request.model,
            provider=MOCK_NAME,
            requested_model=request.model,
            input_tokens=byte_length(prompt),
            output_tokens=20 if calls else 30,
            tool_calls=calls,
        )

    def _remember(self, request: Request, reply: Reply) -> None:
        """Act as a prompt cache: the first such call writes it, later ones read it."""
        key = compact_json([request.model, request.system, request.messages])
        if key in self._scope.cached:
            reply.cache_read_tokens = reply.input_tokens
        else:
            self._scope.cached.add(key)
            reply.cache_write_tokens = reply.input_tokens


#: The pattern of a mock that replies to everything.
ANY = "*"


def _chosen(mocks: list[Mock], request: Request) -> Mock | None:
    """Take the oldest mock without a pattern, else the first whose pattern matches."""
    for i, mock in enumerate(mocks):
        if mock.pattern is None:
            return mocks.pop(i)
    if mocks and mocks[0].pattern == ANY:
        return mocks.pop(0) if mocks[0].consumed else mocks[0]
    if mocks:
        text = match_text(request.messages)
        for i, mock in enumerate(mocks):
            if mock.matches(text):
                return mocks.pop(i) if mock.consumed else mock
    return None


def _read_error(given: Any) -> tuple[str, str, float | None]:
    """Return category, message and `retry_after` of a reply that is an error."""
    if not isinstance(given, dict):
        raise MisuseError("llm_mock: error must be a dict {category, message, retry_after_ms?}")
    if given.get("category") is None:
        raise MisuseError("llm_mock: error.category is required")
    category = display(given["category"])
    if category not in CATEGORIES:
        raise MisuseError(f"llm_mock: unknown error category `{category}`")
    message = f"mock {category} error" if given.get("message") is None else display(given["message"])
    after = given.get("retry_after_ms")
    if after is None:
        return category, message, None
    if type(after) is not int or after < 0:
        raise MisuseError("llm_mock: error.retry_after_ms must be a non-negative int")
    return category, f"{message}\nretry-after: {after / 1000}", after / 1000


def mock_id(number: int) -> str:
    """The id of a reply's tool call, counted from 1."""
    return f"mock_call_{number}"


def _tool_calls(given: Any) -> list[dict[str, Any]]:
    """The calls of a reply, with ids of our own."""
    calls = [call for call in given if isinstance(call, dict)] if isinstance(given, list) else []
    return [
        {
            "id": mock_id(i),
            "type": "tool_call",
            "name": display(call.get("name") or "unknown"),
            "arguments": {} if call.get("arguments") is None else call["arguments"],
        }
        for i, call in enumerate(calls, 1)
    ]


def _placeholder_call(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function", tool)
    schema = function.get("parameters") or function.get("input_schema") or {}
    properties = schema.get("properties") or {}
    arguments = {
        name: _PLACEHOLDERS.get(str((properties.get(name) or {}).get("type")), "")
        for name in schema.get("required") or []
    }
    return _tool_calls([{"name": function.get("name"), "arguments": arguments}])[0]


#: What the model `mock` says where another would have had tools to call.
_NOTHING_QUEUED = " (nothing is queued for the mock, so it calls no tool: queue replies with llm_mock)"


def _echo(prompt: str, system: str | None, note: str = "") -> str:
    text = "Mock LLM response"
    if prompt:
        text = f"Mock response to {len(prompt.split())}-word prompt: {prompt[:_ECHO_CHARS]}"
    text += note
    if "<done>" in (system or ""):
        return f"<assistant_prose>{text}</assistant_prose>\n<done>##DONE##</done>"
    return text


# Models' replies as lines of a file, read by `--llm-mock` and written by `--llm-mock-record`.
#
# Spec: 07 §2.5, 09 §2.6.
#
# A recorded file gives the same program the same replies. The calls of a single task are told apart by their
# order. The order of several tasks is a matter of chance, so there each line says what was asked.


_STRINGS = ("match", "text", "thinking", "thinking_summary", "stop_reason", "refusal", "model", "provider")
_INTEGERS = tuple(
    "input_tokens output_tokens cache_read_tokens cache_write_tokens cache_creation_input_tokens".split()
)
#: What a line holds of a reply besides its text and calls; absent when it is empty.
_OPTIONAL = ("thinking", "thinking_summary", "stop_reason", "refusal")


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
    """A line is not a fixture; the message says why."""


def _checked(given: Any) -> Dict:
    """The line as `Mock` takes it, once its keys have the types that they must have."""
    if not isinstance(given, dict):
        raise _Invalid("fixture line must be a JSON object")
    _require(given, _STRINGS, str, "a string")
    _require(given, _INTEGERS, int, "an integer")
    _require(given, ("consume_match",), bool, "a boolean")
    _require(given, ("blocks",), list, "an array")
    _check_error(given.get("error"))
    return {**given, "tool_calls": _fixture_calls(given.get("tool_calls"))}


def _require(given: Dict, keys: Iterable[str], kind: type, name: str) -> None:
    for key in keys:
        value = given.get(key)
        if value is not None and type(value) is not kind:
            raise _Invalid(f"`{key}` must be {name}")


def _fixture_calls(given: Any) -> list[Dict]:
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


class FixtureRecording:
    """The replies of models, one line a call, in the order of the calls.

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
        return "".join(f"{ordered_json(line)}\n" for line in lines)


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
