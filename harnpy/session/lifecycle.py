"""Lifecycle events: what a transcript shows between the messages of a window. Spec: 08 §2.3, 10 §C5, §C16.1.

What a model replied or a tool did is in the log once, as a typed event; the transcript event that shows it is
derived when a transcript is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harnpy.formats.json import compact_json
from harnpy.session import events as kinds
from harnpy.session.events import COMPACTION_TRIGGERED, TRANSCRIPT_EVENT, EventDraft, Payload, event_id
from harnpy.session.transcript import LIVE_KINDS, lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.formats.dicts import Dict
    from harnpy.session.events import Event

    #: What stands behind so many messages.
    PlacedNote = tuple[int, "Event | Pack"]

# The payload of ``tool_started``. Spec: 10 §A1.2, §A1.13.


class ToolStarted(Payload):
    """A call that is made: its arguments are turned into text when somebody asks for them.

    ``parallel``: it runs beside others, and is settled after all of them have ended. ``place`` is the
    assistant's message that asks for it, or the draft of that, and the call's number there.
    """

    __slots__ = ("arguments", "id", "parallel", "place", "tool")

    def __init__(
        self,
        tool: str,
        arguments: dict[str, Any],
        id: str | None,
        parallel: bool = False,
        place: tuple[Event | EventDraft, int] | None = None,
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.id = id
        self.parallel = parallel
        self.place = place

    def data(self, event: Event) -> dict[str, Any]:
        args = compact_json(self.arguments)
        started: dict[str, Any] = {"tool": self.tool, "args": args, "id": self.id}
        if self.place is not None:
            message, number = self.place
            if isinstance(message, EventDraft):
                assert message.event is not None, "a call is written behind the message that makes it"
                message = message.event
            key = tool_key(event.owner.id, event.owner.own(message).id, self.tool, number, args)
            started["idempotency_key"] = key
        return {**started, "parallel": True} if self.parallel else started

    def stored(self, event: Event) -> dict[str, Any]:
        return self.data(event)


def tool_key(session_id: str, message_id: str, tool: str, number: int, args: str) -> str:
    """Return the key that a call has in every attempt to make it; the provider's id isn't part of it."""
    from hashlib import sha256

    digest = sha256(args.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{session_id}:{message_id}:{tool}:{number}:{digest}"


# How a compaction is reported: its transcript event and its agent event. Spec: 08 §4.9.


#: What a loop's compactions are called, by their ``mode``: when they happened.
_TEXTS = {
    "preflight": "Transcript compacted before agent LLM call",
    "auto": "Transcript compacted during agent loop",
    "overflow": "Transcript compacted after a context overflow",
}


def note_of(metadata: Dict) -> Dict:
    """Return the transcript event of a compaction."""
    text = _TEXTS.get(metadata.get("mode", ""))
    text = text or f"Transcript compacted via {metadata.get('strategy', 'custom')}"
    return lifecycle_event("compaction", text, metadata=metadata)


def compacted_event(session_id: str, mode: str, report: Dict, asset_id: str | None = None) -> Dict:
    """Return the agent event of a compaction: ``report`` and where the former transcript is stored."""
    event = {"type": "transcript_compacted", "session_id": session_id, "mode": mode}
    return {**event, **report, "snapshot_asset_id": asset_id}


# The transcript events that typed events of the log are shown as. Spec: 08 §2.3, 10 §C16.1.
#
# A transcript derives, it doesn't repeat: what a model replied and a tool did is in the log once, in
# ``step_completed``, ``tool_started`` and ``tool_completed``, the scratchpad in its register, sub-agents in
# ``child_…``, a compaction in the cut that it is. They are read from there.


_ENDS_OF_CHILDREN = (kinds.CHILD_COMPLETED, kinds.CHILD_FAILED)

#: The one register whose changes transcripts show.
SCRATCHPAD = "scratchpad"


def is_in_transcript(type: str, payload: Any) -> bool:
    """Return whether transcripts show an event of this type beside the messages."""
    if type == kinds.STEP_COMPLETED:
        return payload.get("reply") is not None and payload.get("purpose") is None
    if type == kinds.CHILD_REQUESTED:
        return "worker" not in (payload.get("metadata") or {})
    if type in _ENDS_OF_CHILDREN:
        return "budget_exceeded" in (payload.get("metadata") or {})
    if type == kinds.COMPACTION_TRIGGERED:
        return payload.note is not None
    if type == kinds.REGISTER_SET:
        return bool(payload["key"] == SCRATCHPAD)
    return type in _FORMS


T = TypeVar("T")


class TranscriptOrder(Generic[T]):
    """Puts what transcripts show into their order: calls that run side by side are shown one after the other,
    each when it has ended."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: tuple[tuple[str | None, T], ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Return whether something waits to be shown behind what hasn't come yet."""
        return bool(self._begun)

    def branch(self) -> TranscriptOrder[T]:
        branch: TranscriptOrder[T] = TranscriptOrder()
        branch._begun = self._begun
        return branch

    def add(self, type: str, payload: Any, item: T) -> list[T]:
        """Return what is shown from now on: ``item``, if it is shown, behind what waited for it."""
        if type == kinds.TOOL_STARTED and _is_parallel(payload):
            self._begun = (*self._begun, (_call_id(payload), item))
            return []
        if type == kinds.TOOL_COMPLETED and self._begun:
            for at, (id, begun) in enumerate(self._begun):
                if id == payload.get("id"):
                    self._begun = self._begun[:at] + self._begun[at + 1 :]
                    return [begun, item]
        return [item] if is_in_transcript(type, payload) else []


def _is_parallel(started: Any) -> bool:
    return started.parallel if isinstance(started, ToolStarted) else "parallel" in started


def _call_id(started: Any) -> str | None:
    id: str | None = started.id if isinstance(started, ToolStarted) else started.get("id")
    return id


def transcript_form(type: str, payload: Any) -> Dict:
    """Return the transcript event, which has no id unless the payload itself is one with an id."""
    return _FORMS[type](payload)


def _itself(payload: Any) -> Dict:
    event: Dict = payload
    return event


def _provider_payload(step: Dict) -> Dict:
    reply, usage = step["reply"], step.get("usage") or {}
    details = reply.get("details")
    metadata = {
        "model": reply.get("model"),
        "input_tokens": usage.get("input_tokens", 0),
        "output_tokens": usage.get("output_tokens", 0),
        "tool_calls": reply.get("tool_calls", 0),
        "thinking_summary": reply.get("thinking_summary"),
        "structural_experiment": None,
        **(details if isinstance(details, dict) else {}),
    }
    return lifecycle_event("provider_payload", role="assistant", metadata=metadata)


def _tool_intent(started: Any) -> Dict:
    if isinstance(started, ToolStarted):
        tool, arguments, id = started.tool, started.arguments, started.id
    else:
        tool, id = started.get("tool", ""), started.get("id")
        arguments = _arguments(started.get("args", "{}"))
    metadata = {"arguments": arguments, "tool_use_id": id}
    return lifecycle_event("tool_intent", tool, role="assistant", metadata=metadata)


def _arguments(text: str) -> Any:
    """Return a call's arguments; those that are no JSON as the text that they are."""
    from harnpy.formats.json import JsonError, parse_json

    try:
        return parse_json(text)
    except JsonError:
        return text


def _tool_execution(completed: Dict) -> Dict:
    metadata = {
        "tool_name": completed.get("tool", ""),
        "tool_use_id": completed.get("id"),
        "rejected": completed.get("rejected", False),
    }
    if "error_category" in completed:
        metadata["error_category"] = completed["error_category"]
    metadata |= completed.get("details", {})
    error = completed.get("error")
    text = completed.get("output", "") if error is None else error
    return lifecycle_event("tool_execution", text, role="tool", metadata=metadata)


def _scratchpad(register: Dict) -> Dict:
    action, text = ("clear", "scratchpad cleared") if register["value"] is None else ("set", "scratchpad set")
    metadata = {"action": action, "version": register["version"]}
    metadata |= {key: register.get(key) for key in ("source", "reason", "metadata")}
    return lifecycle_event("session_scratchpad", text, metadata=metadata)


def _compaction(cut: Any) -> Dict:
    return note_of(cut.note)


def _sub_agent_start(requested: Dict) -> Dict:
    metadata = {
        "name": requested.get("agent_id"),
        "child_session_id": requested.get("child_session_id"),
        "task": requested.get("task"),
    }
    return lifecycle_event("sub_agent_start", metadata=metadata)


def _sub_agent_result(ended: Dict) -> Dict:
    known = {**ended, **ended["metadata"]}
    metadata = {
        "name": known.get("name"),
        "child_session_id": ended.get("child_session_id"),
        "ok": "error" not in ended,
        "summary": known.get("summary"),
        "evidence_added": known.get("evidence_added"),
        "budget_exceeded": known["budget_exceeded"],
        "error": known.get("error"),
    }
    return lifecycle_event("sub_agent_result", metadata=metadata)


_FORMS: dict[str, Callable[[Any], Dict]] = {
    kinds.TRANSCRIPT_EVENT: _itself,
    kinds.STEP_COMPLETED: _provider_payload,
    kinds.TOOL_STARTED: _tool_intent,
    kinds.TOOL_COMPLETED: _tool_execution,
    kinds.REGISTER_SET: _scratchpad,
    kinds.COMPACTION_TRIGGERED: _compaction,
    kinds.CHILD_REQUESTED: _sub_agent_start,
    kinds.CHILD_COMPLETED: _sub_agent_result,
    kinds.CHILD_FAILED: _sub_agent_result,
}


# Lifecycle events: what a transcript shows between the messages of a window. Spec: 08 §2.3, 10 §C5.


class Pack:
    """Lifecycle events at one position, shared by all windows that have them there. ``size`` counts them."""

    __slots__ = ("_parts", "size")

    def __init__(self, parts: list[Event | Pack]) -> None:
        self._parts = parts
        self.size: int = sum(part.size for part in parts)

    def events(self) -> list[Event]:
        """Return the events in order."""
        return unpacked([self], lambda part: part._parts if isinstance(part, Pack) else None)


def unpacked(parts: list[Any], inside: Callable[[Any], Iterable[Any] | None]) -> list[Event]:
    """Return the events among ``parts`` and ``inside`` them, in order.

    Not recursive: each cut adds a level of packing, each compaction one of summaries.
    """
    waiting = parts[::-1]
    found: list[Event] = []
    while waiting:
        part = waiting.pop()
        inner = inside(part)
        if inner is None:
            found.append(part)
        else:
            waiting += [*inner][::-1]
    return found


def lifecycle_value(event: Event) -> dict[str, Any]:
    """Return the transcript event that an event of the log is shown as."""
    form = transcript_form(event.type, event.body)
    return form if "id" in form else {"id": _shown_id(event.first), **form}


def _shown_id(event: Event) -> str:
    """Return the id of a lifecycle event. That of a compaction is its own: its summary has the event's."""
    if event.type != COMPACTION_TRIGGERED:
        return event.id
    return event_id(f"{event.owner.id}#compaction", event.seq, event.time)


def is_live(event: Event) -> bool:
    """Return whether the event is about live clients."""
    return event.type == TRANSCRIPT_EVENT and event.body.get("kind") in LIVE_KINDS


def live_among(notes: list[PlacedNote]) -> list[Event]:
    """Return the events about live clients, in order; most lists have none."""
    found: list[Event] = []
    for _, what in notes:
        if isinstance(what, Pack):
            found += filter(is_live, what.events())
        elif what.type == TRANSCRIPT_EVENT and is_live(what):
            found.append(what)
    return found


def values_of(note: PlacedNote) -> list[dict[str, Any]]:
    """Return the transcript events of one position."""
    return [lifecycle_value(event) for event in events_at(note[1])]


def events_at(what: Event | Pack) -> list[Event]:
    """Return the events of one position."""
    return what.events() if isinstance(what, Pack) else [what]
