"""The `llm_transcript.jsonl` sidecar: reading a conversation back, and continuing it. Spec: 08 §3.2–3.4."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.dicts import boolean, count, string
from harnpy.formats.json import parse_json
from harnpy.formats.tool_messages import RESULT_ROLES
from harnpy.session import events as kinds
from harnpy.session.events import EventDraft
from harnpy.session.pairs import Pairs
from harnpy.session.verbs import check, not_blank, read_options
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.formats.dicts import Dict
    from harnpy.session.open_sessions import Registry

# Reading a conversation back from an `llm_transcript.jsonl` sidecar. Spec: 08 §3.2–3.4.
#
# `read_rows` parses the lines, `reconstruct` interprets them. Pure.


MESSAGE_EVENTS = "message_events"
REQUEST_SNAPSHOTS = "request_snapshots"
RESPONSES_ONLY = "provider_responses_only"

_REQUESTS = ("provider_call_request", "request", "llm_request")
_RESPONSES = ("provider_call_response", "response", "llm_response")
#: How the types of OpenAI's items end, which a sidecar doesn't have.
_ITEMS = ("_call", "_output", "reasoning")
_KEPT_WHEN_SET = ("tool_calls", "tool_call_id", "name", "tool_use_id")
_TOOL_BLOCKS = ("tool_use", "tool_call", "tool_result")


class SidecarError(Exception):
    """The file can't be read as a sidecar. ``str()`` says why."""


class Rows(NamedTuple):
    """The records of a file; ``partial`` if its last line was cut off and left out."""

    records: list[Dict]
    partial: bool


class Source(NamedTuple):
    """The conversation that the rows hold; provider, model and tool format are the last request's."""

    format: str | None
    messages: list[Dict]
    provider: str | None
    model: str | None
    tool_format: str | None
    system_prompt: str | None


def read_rows(text: str, parse: Callable[[str], Any]) -> Rows:
    """Return the rows of a file. Raises `SidecarError` for invalid JSON, unless in a torn last line."""
    records: list[Dict] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = parse(line)
        except ValueError:
            if number == len(lines):  # no line end follows: the writer was cut off here
                return Rows(records, partial=True)
            raise SidecarError(f"invalid JSON on line {number}") from None
        records.append(record if isinstance(record, dict) else {})
    return Rows(records, partial=False)


def reconstruct(records: list[Dict]) -> Source:
    """Return the conversation that the rows hold, by the first format that fits."""
    loop_id = _last_loop_id(records)
    rows = records if loop_id is None else [row for row in records if row.get("loop_id") == loop_id]
    request: Dict = next((row for row in reversed(rows) if row.get("type") in _REQUESTS), {})
    prompts = [row for row in rows if row.get("type") == "system_prompt"]
    format, messages = _conversation(rows)
    return Source(
        format=format,
        messages=messages,
        provider=_text(request.get("provider")),
        model=_text(request.get("model")),
        tool_format=_text(request.get("tool_format")),
        system_prompt=(_text(prompts[-1].get("content")) if prompts else None) or None,
    )


def without_tool_calls(messages: list[Dict]) -> list[Dict]:
    """Return only what people and models said to each other."""
    return [spoken for spoken in map(_spoken, messages) if spoken is not None]


def last_messages(messages: list[Dict], count: int) -> list[Dict]:
    """Return the last ``count`` messages, without leading results whose call was cut away."""
    kept = messages[max(0, len(messages) - count) :] if count else []
    orphans = Pairs(kept).orphans if len(kept) < len(messages) else set()
    begin = next((number for number in range(len(kept)) if number not in orphans), len(kept))
    return kept[begin:]


def _conversation(records: list[Dict]) -> tuple[str | None, list[Dict]]:
    segment = _last_segment(records)
    if segment:
        return MESSAGE_EVENTS, [_message(row) for row in segment]
    requests = [
        number
        for number, row in enumerate(records)
        if row.get("type") in _REQUESTS and isinstance(row.get("messages"), list)
    ]
    if requests:
        return REQUEST_SNAPSHOTS, _snapshot(records, requests[-1])
    responses = [row for row in records if row.get("type") in _RESPONSES]
    if responses:
        return RESPONSES_ONLY, [_reply(row) for row in responses]
    return None, []


def _is_message(row: Dict) -> bool:
    return row.get("type") == "message" and isinstance(row.get("role"), str)


def _last_loop_id(records: list[Dict]) -> str | None:
    """Return the last outermost loop with messages; None when the rows have no loop ids."""
    rows = [row for row in records if _is_message(row) and isinstance(row.get("loop_id"), str)]
    outermost = min(map(_depth, rows), default=0)
    return next((row["loop_id"] for row in reversed(rows) if _depth(row) == outermost), None)


def _last_segment(records: list[Dict]) -> list[Dict]:
    """Return the message rows of the last loop. A loop with an id is one segment."""
    segment: list[Dict] = []
    under_way = False
    for row in records:
        if _is_message(row):
            if under_way and row.get("iteration") is None and not isinstance(row.get("loop_id"), str):
                segment, under_way = [], False
            segment.append(row)
        under_way |= row.get("iteration") is not None
    return segment


def _snapshot(records: list[Dict], number: int) -> list[Dict]:
    """Return the messages of a request row, and the reply to it."""
    request = records[number]
    messages = [message for message in request["messages"] if isinstance(message, dict)]
    responses = [row for row in records[number + 1 :] if row.get("type") in _RESPONSES]
    call_id = request.get("call_id")
    same = [row for row in responses if call_id is not None and row.get("call_id") == call_id]
    reply = next(iter(same or responses), None)
    return messages if reply is None else [*messages, _reply(reply)]


def _message(row: Dict) -> Dict:
    kept = {key: row[key] for key in _KEPT_WHEN_SET if row.get(key) is not None}
    return {"role": row["role"], "content": row.get("content"), **kept}


def _reply(row: Dict) -> Dict:
    reply: Dict = {"role": "assistant", "content": _text(row.get("text")) or ""}
    calls = row.get("tool_calls")
    return {**reply, "tool_calls": calls} if calls else reply


def _spoken(message: Dict) -> Dict | None:
    """Return a message without its tool parts, None when nothing is left."""
    if message.get("role") in RESULT_ROLES:
        return None
    spoken = {key: value for key, value in message.items() if key != "tool_calls"}
    content = spoken.get("content")
    if isinstance(content, list):
        spoken["content"] = [block for block in content if not _is_tool_block(block)]
        if content and not spoken["content"]:
            return None
    return None if spoken.get("role") == "assistant" and not _has_text(spoken.get("content")) else spoken


def _is_tool_block(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _TOOL_BLOCKS


def _has_text(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return isinstance(content, list) and any(
        not isinstance(block, dict) or _has_text(block.get("text") or block.get("content"))
        for block in content
    )


def _depth(row: Dict) -> int:
    depth = row.get("loop_depth")
    return depth if isinstance(depth, int) else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# `seed_from_jsonl`: create a session that continues a recorded one. Spec: 08 §3.4.
#
# A wrong argument raises. A bad file is reported in the result, and no session is created.


_VERB = "agent_session_seed_from_jsonl"
_OPTIONS = {
    "truncate_to_last": count,
    "drop_tool_calls": boolean,
    "rename_session": string,
    "validate": boolean,
    "provider": string,
    "model": string,
}


def seed_from_jsonl(registry: Registry, jsonl_path: str, opts: Dict | None = None) -> Dict:
    """Create a session from a sidecar's messages. Return ``{ok, session_id?, …, error?}``."""
    check("jsonl_path", jsonl_path, string)
    options = read_options(opts, _OPTIONS)
    not_blank("rename_session", options.get("rename_session"))
    known: Dict = {}  # what a failure reports beside its reason
    try:
        rows = read_rows(_text_of(registry, jsonl_path), parse_json)
        if not rows.records:
            raise SidecarError(f"'{jsonl_path}' contains no transcript records")
        known["source_records"] = len(rows.records)
        source = reconstruct(rows.records)
        if source.format is not None:
            known["source_format"] = source.format
        if options.get("validate", True):
            _validate(source, rows.records, options)
        messages, truncated = _chosen(source, options)
        id = _new_id(registry, options)
    except SidecarError as error:
        return {"ok": False, **known, "error": f"{_VERB}: {error}"}
    seeded_from = {"path": jsonl_path, **known}
    _seed(registry, id, source, messages, seeded_from)
    return {
        "ok": True,
        **known,
        "session_id": id,
        "turns_loaded": sum(message.get("role") == "assistant" for message in messages),
        "messages_loaded": len(messages),
        "partial": rows.partial or source.format == RESPONSES_ONLY,
        "truncated": truncated,
        "provider": source.provider,
        "model": source.model,
        "tool_format": source.tool_format,
    }


def _text_of(registry: Registry, path: str) -> str:
    try:
        return registry.world.files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = system_reason(error)
    except ValueError:
        reason = "file name contained an unexpected NUL byte"
    raise SidecarError(f"failed to read '{path}': {reason}")


def _new_id(registry: Registry, options: Dict) -> str:
    """Make room for the new session and return its id."""
    id: str = options.get("rename_session") or registry.world.ids.new()
    if id not in registry.by_id:
        registry.make_room(id)
    if id in registry.by_id:  # before, or opened by an eviction subscriber
        raise SidecarError(f"session id '{id}' already exists")
    return id


def _seed(registry: Registry, id: str, source: Source, messages: list[Dict], seeded_from: Dict) -> None:
    session = registry.make(id, registry.stores.usual())
    for key, value in (
        ("system_prompt", source.system_prompt), ("settings.tool_format", source.tool_format)
    ):  # fmt: skip
        if value is not None:
            session.set(key, value)
    entries = session.write(*(EventDraft(kinds.MESSAGE_ADDED, message) for message in messages))
    window = session.view.window.with_entries(entries)
    window.metadata = {"seeded_from": seeded_from}
    session.replace("import", window)
    registry.admit(session)


def _validate(source: Source, records: list[Dict], options: Dict) -> None:
    """Raise `SidecarError` unless the source is exact and of the requested provider and model."""
    items = Counter(kind for row in records if (kind := str(row.get("type"))).endswith(_ITEMS))
    if items:
        told = ", ".join(f"{number} {kind}" for kind, number in sorted(items.items()))
        raise SidecarError(
            f"source has items that are no messages ({told}): import it with session_import, "
            "or pass validate: false to leave them out"
        )
    if source.format == RESPONSES_ONLY:
        raise SidecarError(
            "source has only provider responses; pass validate: false for a best-effort import"
        )
    for key, found in (("provider", source.provider), ("model", source.model)):
        wanted = options.get(key)
        if wanted is not None and wanted != found:
            shown = "nil" if found is None else found
            raise SidecarError(f"{key} mismatch: expected '{wanted}', transcript has '{shown}'")


def _chosen(source: Source, options: Dict) -> tuple[list[Dict], bool]:
    """Return the messages to load, and whether some were dropped at the front."""
    messages = [message for message in source.messages if isinstance(message.get("role"), str)]
    if not messages:
        raise SidecarError("no messages could be reconstructed")
    if options.get("drop_tool_calls"):
        messages = without_tool_calls(messages)
    limit = options.get("truncate_to_last")
    if limit is None or limit >= len(messages):
        return messages, False
    return last_messages(messages, limit), True
