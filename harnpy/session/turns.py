"""Turns in a session's log: how each ends, those left open, and what lists show of them.

Spec: 10 §C3, §C16.4.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.events import EventDraft
from harnpy.session.lifecycle import ToolStarted
from harnpy.session.messages import results_message, styled_result
from harnpy.session.rewind import active

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.formats.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.log import Session

# The last act of a turn that was cancelled, failed, or was left open by a crash. Spec: 10 §C16.4.
#
# Pure: from the events of a turn to what is missing in it. Every call of the last assistant's message gets
# its end and its result; whatever the turn still waits for is called off.


CANCELLED, FAILED, INTERRUPTED = "cancelled", "failed", "interrupted"

_UNFINISHED = {INTERRUPTED: "interrupted: it may or may not have run"}
_NOT_RUN = "not run: cancelled"


class Fact(NamedTuple):
    """An event, written or not."""

    type: str
    payload: Any


class _Call(NamedTuple):
    """A call that a native assistant's message makes; ``style`` is the shape of its result."""

    id: str | None
    name: str
    style: str

    def result(self, text: str) -> Dict:
        return styled_result({"id": self.id, "name": self.name}, text, self.style)


def closing(turn: Iterable[Fact], agent: str, reason: str, error: str) -> list[Fact]:
    """Return the facts that end a turn; ``turn`` are those from its ``turn_started`` on."""
    facts = list(turn)
    missing = _ends_of_calls(facts, reason)
    missing += _text_results([*facts, *missing])
    missing += _canceled(facts, error)
    steps = sum(fact.type == kinds.STEP_COMPLETED and "reply" in fact.payload for fact in facts)
    end: Dict = {"agent_id": agent, "steps": steps}
    used = usage(facts)
    if used is not None:
        end["usage"] = used
    missing.append(Fact(kinds.TURN_COMPLETED, {**end, "turn_stop_reason": reason, "error": error}))
    return missing


def usage(facts: Iterable[Fact]) -> Dict | None:
    """Return what the steps of a turn have used together; None without any. What is no number doesn't count:
    anybody may write a step."""
    total: dict[str, Any] = {}
    for kind, payload in facts:
        used = payload.get("usage") if kind == kinds.STEP_COMPLETED else None
        if isinstance(used, dict):
            for name, amount in used.items():
                if type(amount) in (int, float):
                    total[name] = total.get(name, 0) + amount
    return total or None


# Calls.


def _ends_of_calls(facts: list[Fact], reason: str) -> list[Fact]:
    """Return the ends and results that the calls of the last assistant's message lack, in call order."""
    at = last_answer(facts)
    later = facts[at + 1 :] if at is not None else facts
    calls = [] if at is None else _calls(facts[at].payload)
    answered = Counter(_answered(fact.payload) for fact in later if fact.type == kinds.MESSAGE_ADDED)
    started = [_begun(fact.payload) for fact in later if fact.type == kinds.TOOL_STARTED]
    ended = Counter(fact.payload.get("id") for fact in later if fact.type == kinds.TOOL_COMPLETED)
    missing: list[Fact] = []
    for call in calls:
        if answered[call.id]:
            answered[call.id] -= 1
            ended[call.id] -= 1
            continue
        ran = any(id == call.id for id, _ in started)
        text = _UNFINISHED.get(reason, "cancelled before it finished") if ran else _NOT_RUN
        if ended[call.id] > 0:
            ended[call.id] -= 1
        else:
            missing.append(_end(call.name, call.id, text))
        missing.append(Fact(kinds.MESSAGE_ADDED, call.result(f"Error: {text}")))
    known = {call.id for call in calls}
    return missing + _ends_of_text([call for call in started if call[0] not in known], later, reason)


def _ends_of_text(started: list[tuple[str | None, str]], later: list[Fact], reason: str) -> list[Fact]:
    """Return the ends that begun calls lack which are text: several of a step may have one id."""
    ends = [fact.payload for fact in later if fact.type == kinds.TOOL_COMPLETED]
    ended = Counter((end.get("id"), end.get("tool", "")) for end in ends if _was_begun(end))
    missing: list[Fact] = []
    for id, name in started:
        if ended[id, name] > 0:
            ended[id, name] -= 1
        else:
            missing.append(_end(name, id, _UNFINISHED.get(reason, "cancelled before it finished")))
    return missing


def _was_begun(end: Dict) -> bool:
    """Return whether the call of that end was begun. One that is refused wasn't, unless as a repetition."""
    return "rejected" not in end or "duration_ms" in end or end.get("error_category") == "rejected_loop"


def _text_results(facts: list[Fact]) -> list[Fact]:
    """Return the results of a text-format step, unless they were told."""
    at = last_answer(facts)
    if at is None or any(fact.type == kinds.MESSAGE_ADDED for fact in facts[at + 1 :]):
        return []
    ended = [fact.payload for fact in facts[at + 1 :] if fact.type == kinds.TOOL_COMPLETED]
    told = [(end.get("tool", ""), end.get("error", end.get("output", ""))) for end in ended]
    return [Fact(kinds.MESSAGE_ADDED, results_message(told))] if told else []


def _end(name: str, id: str | None, text: str) -> Fact:
    end = {"tool": name, "id": id, "error": f"Error: {text}", "error_category": CANCELLED}
    return Fact(kinds.TOOL_COMPLETED, end)


def last_answer(facts: list[Fact]) -> int | None:
    """Return where the assistant's last message is."""
    for at in range(len(facts) - 1, -1, -1):
        type, payload = facts[at]
        if type == kinds.MESSAGE_ADDED and payload.get("role") == "assistant":
            return at
    return None


def _begun(started: Any) -> tuple[str | None, str]:
    if isinstance(started, ToolStarted):
        return started.id, started.tool
    return started.get("id"), started.get("tool", "")


def _calls(message: Dict) -> list[_Call]:
    """Return the calls of an assistant's message, in any provider's shape."""
    calls: list[_Call] = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call
        style = "openai" if "id" in call else "ollama"
        calls.append(_Call(call.get("id"), function.get("name", ""), style))
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            calls.append(_Call(block.get("id"), block.get("name", ""), "anthropic"))
    return calls


def _answered(message: Dict) -> str | None:
    """Return the id of the call that a result answers."""
    if message.get("role") == "tool":
        return message.get("tool_call_id")
    content = message.get("content")
    if message.get("role") == "user" and isinstance(content, list) and content:
        return content[0].get("tool_use_id") if isinstance(content[0], dict) else ""
    return ""


# Approvals, waits and children.

#: What begins something that is waited for, what ends it, and how it is called off; by the key of its id.
_AWAITED: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (
        kinds.APPROVAL_REQUESTED,
        "id",
        (kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED),
        kinds.APPROVAL_CANCELED,
    ),
    (kinds.WAIT_STARTED, "external_id", (kinds.WAIT_RESOLVED,), kinds.WAIT_RESOLVED),
    (
        kinds.CHILD_REQUESTED,
        "child_id",
        (kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED),
        kinds.CHILD_CANCELED,
    ),
)
_COPIED = ("id", "tool", "external_id", "child_id", "child_session_id")


def _canceled(facts: list[Fact], error: str) -> list[Fact]:
    canceled: list[Fact] = []
    for begins, key, ends, cancels in _AWAITED:
        open_ones: Dict = {}
        for type, payload in facts:
            if type == begins:
                open_ones[payload.get(key)] = payload
            elif type in ends:
                open_ones.pop(payload.get(key), None)
        for payload in open_ones.values():
            if payload.get("metadata", {}).get("detached"):
                continue
            copied = {name: payload[name] for name in _COPIED if name in payload}
            canceled.append(Fact(cancels, {**copied, "reason": error}))
    return canceled


# Turns that nobody will end: of a process that is gone, or of the session that this one was forked from.
#
# Spec: 10 §C16.4.


_ERROR = "interrupted before it ended"


def events_of(session: Session, turn: Event) -> list[Event]:
    """Return the events of a turn but the one that starts it; none that was taken back."""
    later = active(list(session.stream.read(turn.seq)), turn.seq)
    return [event for event in later if event.turn is not None and event.turn.seq == turn.seq]


def end_open_turns(session: Session, reason: str = INTERRUPTED, error: str = _ERROR) -> None:
    """End the turns that are open, for a ``reason`` of C16.4. None of them may be running.

    A fork that was made during a turn begins before the step that it was made in.
    """
    for turn in list(session.view.open_turns.values()):
        events = events_of(session, turn)
        facts = [Fact(event.type, event.body) for event in events]
        ends = closing(facts, turn.body.get("agent_id", ""), reason, error)
        if turn.seq <= session.view.linked_at:
            _leave_step(session, events, facts)
            ends = ends[-1:]
        session.write(*(EventDraft(type, payload, turn=turn) for type, payload in ends))


def _leave_step(session: Session, events: list[Event], facts: list[Fact]) -> None:
    at = last_answer(facts)
    if at is None or not any(type in (kinds.TOOL_STARTED, kinds.TOOL_COMPLETED) for type, _ in facts[at:]):
        return
    gone = {event.seq for event in events[at:]}
    window = session.view.window
    entries = [entry for entry in window.entries.items() if entry.seq not in gone]
    session.replace("set", window.with_entries(entries))
