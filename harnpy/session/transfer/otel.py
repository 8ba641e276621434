"""Spans of OpenTelemetry's GenAI conventions: what programs report of their calls of models, as OTLP's JSON.

A line or a document is an export of `resourceSpans` or `resourceLogs`. A call has its whole conversation in
attributes, `gen_ai.input.messages` and `gen_ai.output.messages`, or in events of older conventions. Spec: 10
§C17.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.json import lines_of
from harnpy.session.errors import TransferError
from harnpy.session.transfer import listed
from harnpy.session.transfer.blocks import alone, arguments_of, as_text, kind_of, media
from harnpy.session.transfer.listed import Listing, Thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.transfer.foreign import Conversation, Json
    from harnpy.world import World

TOOL = "otel"
_EXPORTS = ("resourceSpans", "resourceLogs")
_IN, _OUT, _SYSTEM = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"
_OPERATION, _CONVERSATION = "gen_ai.operation.name", "gen_ai.conversation.id"
#: The operation of a span around calls of models, which have the same messages.
_AROUND = ("invoke_agent", "invoke_workflow", "create_agent", "execute_tool")
#: Where the key of an export stands, at the latest.
_LOOKED_AT = 200
#: Events of the older conventions, by who speaks.
_SPEAKERS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_CHOICE = "gen_ai.choice"


def is_export(value: Any) -> bool:
    """Return whether a JSON value is an export of spans or logs."""
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in _EXPORTS)


def tool_of(path: str, world: World) -> str | None:
    """Return this format, if a file is of it."""
    if not path.endswith(".json"):
        return None
    try:
        text = world.files.read_text(path)
    except (OSError, UnicodeDecodeError):
        return None
    if not any(f'"{key}"' in text[:_LOOKED_AT] for key in _EXPORTS):
        return None
    try:
        return TOOL if is_export(next(_exports(text), None)) else None
    except TransferError:
        return None


class _Call(NamedTuple):
    """A call of a model: its attributes, and the messages that events tell."""

    begin: int
    end: int
    trace: str
    told: Json
    said: list[Json]


def threads(path: str, world: World) -> Iterator[Thread]:
    """Yield the conversations of an export: those of the calls' own ids, else one a trace.

    Raises `TransferError` for a file that is none.
    """
    calls = listed.understood(_calls, world.files.read_text(path))
    if not calls:
        raise TransferError("no span of this file has the messages of a model's call")
    grouped: dict[str, list[_Call]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.begin):
        grouped[str(call.told.get(_CONVERSATION) or call.trace)].append(call)
    for id, group in grouped.items():
        inner = [call for call in group if call.told.get(_OPERATION) not in _AROUND]
        yield Thread(id, lambda id=id, calls=inner or group: _conversation(id, calls))  # type: ignore[misc]


def _calls(text: str) -> list[_Call]:
    spans: dict[tuple[Any, Any], Json] = {}
    events: dict[tuple[Any, Any], list[Json]] = defaultdict(list)
    for export in _exports(text):
        for resource in export.get("resourceSpans") or ():
            for scope in resource.get("scopeSpans") or ():
                for span in scope.get("spans") or ():
                    spans[span.get("traceId"), span.get("spanId")] = span
        for resource in export.get("resourceLogs") or ():
            for scope in resource.get("scopeLogs") or ():
                for record in scope.get("logRecords") or ():
                    events[record.get("traceId"), record.get("spanId")].append(record)
    found = []
    for place in dict.fromkeys([*spans, *events]):
        span = spans.get(place, {})
        told, said = _attributes(span), []
        for event in [*(span.get("events") or ()), *events.get(place, ())]:
            given, name = _attributes(event), event.get("name") or event.get("eventName")
            name = name or given.get("event.name")
            body = _value(event.get("body"))
            if name in (*_SPEAKERS, _CHOICE):
                said.append({"event": name, **given, **(body if isinstance(body, dict) else {})})
            else:
                told |= {key: value for key, value in given.items() if key in (_IN, _OUT, _SYSTEM)}
        if said or _IN in told or _OUT in told:
            begin, end = (_nanoseconds(span.get(key)) for key in ("startTimeUnixNano", "endTimeUnixNano"))
            found.append(_Call(begin, end, str(place[0] or "none"), told, said))
    return found


def _exports(text: str) -> Iterator[Json]:
    """Yield the exports of a file: a line each, or one document."""
    lines = [line for line in lines_of(text) if line.strip()]
    try:
        values = [listed.read_document(line) for line in lines]
    except TransferError:
        values = [listed.read_document(text)]
    for number, value in enumerate(values, 1):
        if not is_export(value):
            raise TransferError(f"line {number} is no export of OTLP: it has no {' and no '.join(_EXPORTS)}")
        yield value


def _attributes(holder: Json) -> Json:
    return {each["key"]: _value(each.get("value")) for each in holder.get("attributes") or ()}


def _value(value: Any) -> Any:
    """Return a value of OTLP's JSON, which says its type."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(sort, given)] = value.items()
    if sort == "arrayValue":
        return [_value(each) for each in given.get("values") or ()]
    if sort == "kvlistValue":
        return {each["key"]: _value(each.get("value")) for each in given.get("values") or ()}
    return int(given) if sort == "intValue" else given


def _nanoseconds(value: Any) -> int:
    """Return a time in microseconds since 1970."""
    return int(value) // 1000 if isinstance(value, (int, str)) and str(value).isdigit() else 0


# A conversation: each call repeats what was said before it, and adds its answer.


def _conversation(id: str, calls: list[_Call]) -> Conversation:
    listing = Listing(TOOL)
    for call in calls:
        listing.rewind()
        told = call.told
        model = told.get("gen_ai.response.model") or told.get("gen_ai.request.model")
        _tell(listing, _listed(told.get(_SYSTEM)), call.begin)
        before, after = _listed(told.get(_IN)), _listed(told.get(_OUT))
        for message in before or [each for each in call.said if each["event"] != _CHOICE]:
            _take(listing, message, call.begin, None)
        more: Json = {"model": model} if model else {}
        usage = {
            key: told[f"gen_ai.usage.{key}"]
            for key in ("input_tokens", "output_tokens")
            if f"gen_ai.usage.{key}" in told
        }
        if usage:
            more["usage"] = usage
        for message in after or [each for each in call.said if each["event"] == _CHOICE]:
            reason = message.get("finish_reason")
            _take(listing, message, call.end, {**more, **({"stop_reason": reason} if reason else {})})
    return listing.conversation(id)


def _listed(value: Any) -> list[Json]:
    """Return a list of messages or parts, which may be written as JSON."""
    if isinstance(value, str):
        value = listed.read_document(value)
    return [] if value is None else listed.objects_of(value, "the messages of a call")


def _tell(listing: Listing, parts: list[Json], time: int) -> None:
    """Take in what the system says."""
    if parts:
        listing.instruct("\n".join(as_text(part.get("content", part)) for part in parts), None, time)


def _take(listing: Listing, message: Json, time: int, told: Json | None) -> None:
    """Take in a message of either convention."""
    event = message.get("event")
    if event is None:
        role, parts = str(message.get("role")), listed.objects_of(message.get("parts") or [], "the parts")
    else:
        role, parts = _older(message)
    if role in ("system", "developer"):
        _tell(listing, parts, time)
        return
    blocks: list[Json] = []
    thoughts: list[str] = []
    for part in parts:
        if part.get("type") in ("tool_call_response", "server_tool_call_response"):
            content = as_text(part.get("response", part.get("result", "")))
            said = {"role": "tool", "tool_call_id": str(part.get("id") or ""), "content": content}
            named = {"name": part["name"]} if isinstance(part.get("name"), str) else {}
            listing.say({**said, **named}, None, time)
        elif part.get("type") in ("reasoning", "thinking"):
            thoughts.append(str(part.get("content") or ""))
        elif (block := _block(listing, part)) is not None:
            blocks.append(block)
    if role == "assistant":
        if blocks or any(thoughts):
            listing.say(listed.answer(blocks, list(filter(None, thoughts)), None), None, time, told)
    elif blocks:
        listing.say({"role": "user", "content": alone(blocks)}, None, time)


def _block(listing: Listing, part: Json) -> Json | None:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": as_text(part.get("content", ""))}
    if kind in ("tool_call", "server_tool_call"):
        call = {"id": str(part.get("id") or ""), "name": str(part.get("name") or "")}
        return {"type": "tool_use", **call, "input": arguments_of(part.get("arguments"))}
    media_type = part.get("mime_type")
    sort = part.get("modality") if part.get("modality") in ("image", "audio", "video") else None
    if kind == "blob" and isinstance(part.get("content"), str):
        return media(sort or kind_of(media_type), media_type, part["content"])
    if kind == "uri" and isinstance(part.get("uri"), str):
        return media(sort or kind_of(media_type), media_type, url=part["uri"])
    listing.lose(f"{kind} parts", what=part)
    return None


def _older(message: Json) -> tuple[str, list[Json]]:
    """Return who speaks and the parts, of an event of the older conventions."""
    role = _SPEAKERS.get(message["event"], "assistant")
    said = message.get("message")
    said = listed.read_document(said) if isinstance(said, str) and said.startswith("{") else said
    said = said if isinstance(said, dict) else message
    content, calls = said.get("content"), said.get("tool_calls")
    if role == "tool":
        return role, [{"type": "tool_call_response", "id": said.get("id"), "response": content}]
    parts = [] if content is None else [{"type": "text", "content": content}]
    for call in _listed(calls):
        function = call.get("function")
        given = function if isinstance(function, dict) else call
        parts.append(
            {
                "type": "tool_call",
                "id": call.get("id"),
                "name": given.get("name"),
                "arguments": given.get("arguments"),
            }
        )
    return str(said.get("role") or role), parts
