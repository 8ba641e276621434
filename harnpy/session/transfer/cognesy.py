"""Cognesy's file of a session: header, definition of the agent, state, messages. Spec: 10 §A3.7, §C17."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from harnpy.faults import shape_problem
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import TransferError
from harnpy.session.events import EventDraft, position, read_stamp, stamp
from harnpy.session.registers import ACTIVE, METADATA, TaskList, check_transition
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import Loss, NewLog
from harnpy.session.transfer.blocks import shape_of
from harnpy.session.view import SAVES_BEFORE

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.stored import StoredSession
    from harnpy.session.transfer.blocks import CallPart
    from harnpy.storage import Store
    from harnpy.world import World

    Json = dict[str, Any]

# Messages as Cognesy writes them. Spec: 10 §C17.


#: Where a message stands as it is, when Cognesy's shape doesn't say all of it.
_OURS = "harn"


def to_cognesy(message: Json) -> Json:
    """Return a message without id and time, in Cognesy's shape."""
    shown = _shown(message)
    if from_cognesy(shown) != message:
        shown["_metadata"] = {**shown.get("_metadata", {}), _OURS: message}
    return shown


def from_cognesy(message: Json) -> Json:
    """Return the message that Cognesy's is. Raises ValueError for one without a role."""
    metadata = message.get("_metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    ours = metadata.get(_OURS)
    if isinstance(ours, dict) and isinstance(ours.get("role"), str):
        return ours
    role = message.get("role")
    if not isinstance(role, str):
        raise ValueError("it has no role")
    facts = {**metadata, **{key: message[key] for key in _FACTS if message.get(key) is not None}}
    found: Json = {"role": role, "content": message.get("content", "")}
    if message.get("name"):
        found["name"] = message["name"]
    if isinstance(facts.get("tool_calls"), list) and facts["tool_calls"]:
        found["tool_calls"] = facts["tool_calls"]
    result = facts.get("tool_result")
    if isinstance(result, dict):
        found |= _result(result)
    rest = {key: value for key, value in metadata.items() if key not in _FACTS}
    return {**found, "metadata": rest} if rest else found


_FACTS = ("tool_calls", "tool_result")


def _result(result: Json) -> Json:
    found: Json = {"role": "tool", "content": result.get("content", "")}
    for ours, theirs in (("tool_call_id", "call_id"), ("name", "tool_name")):
        if result.get(theirs):
            found[ours] = result[theirs]
    return {**found, "is_error": True} if result.get("is_error") else found


def _shown(message: Json) -> Json:
    shape = shape_of(message)
    shown: Json = {"role": shape.role}
    if isinstance(message.get("name"), str) and message["name"]:
        shown["name"] = message["name"]
    shown["content"] = [*_text_parts(shape.texts), *shape.others] if shape.others else shape.text
    if isinstance(message.get("metadata"), dict) and message["metadata"]:
        shown["_metadata"] = message["metadata"]
    if shape.calls:
        shown["tool_calls"] = [_call(call) for call in shape.calls]
    if shape.results:
        result = shape.results[0]
        shown |= {"role": "tool", "content": "\n".join(each.text for each in shape.results)}
        shown["tool_result"] = {
            "content": result.text,
            "call_id": result.id,
            "tool_name": result.name,
            "is_error": result.is_error,
        }
    return shown


def _text_parts(texts: list[str]) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts]


def _call(call: CallPart) -> Json:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    return {"id": call.id, "name": call.name, "arguments": arguments}


# Cognesy's file of a session: header, definition of the agent, and state. Spec: 10 §A3.7, §C17.


_TRUE_ID = "harn.id"
_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*", re.ASCII)
#: Cognesy's keys of a definition → ours. Other keys have one name.
_DEFINITION = {"systemPrompt": "system_prompt", "llmConfig": "model", "toolsDeny": "denied_tools"}
_BUDGET = {
    "maxSteps": "max_steps",
    "maxTokens": "max_tokens",
    "maxSeconds": "max_seconds",
    "maxCost": "max_cost",
}
_KEPT = (admission.REGISTERS, admission.STATUSES)
#: Registers that the file has a place for.
_REGISTERS = ("model", "system_prompt", "task", "tasks")


def cognesy_id(id: str) -> str:
    """Return the id that Cognesy knows a session by: its own, if Cognesy accepts that."""
    if _ID.fullmatch(id):
        return id
    name = re.sub(r"[^A-Za-z0-9_-]", "-", id).lstrip("-_") or "session"
    return f"{name[:100]}-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def dump_file(session: Session) -> Json:
    """Return the value of a session's file."""
    created, facts = session.event(1), session.event(1).stored()
    times = {"createdAt": _iso(created.time), "updatedAt": _iso(max(created.time, _last(session).time))}
    definition = facts.get("definition") or {}
    name, label = facts.get("agent_name", ""), facts.get("agent_label", "")
    id = cognesy_id(session.id)
    return {
        "header": {
            "sessionId": id,
            "parentId": facts.get("parent_session_id"),
            "status": session.status,
            "version": session.revision,
            "agentName": name,
            "agentLabel": label,
            **times,
        },
        "definition": {"name": name, **(_cognesy_definition(definition) or {"label": label})},
        "state": {
            "agentId": id,
            "parentAgentId": None,
            **times,
            "context": {
                "metadata": _metadata(session),
                "systemPrompt": session.get("system_prompt") or definition.get("system_prompt") or "",
                "responseFormat": None,
                "messageStore": {
                    "sections": [{"name": "messages", "messages": _messages(session)}],
                    "parameters": {},
                },
            },
            "llmConfig": session.get("model"),
            "executionCount": sum(event.type == kinds.TURN_COMPLETED for event in session.events()),
            "execution": None,
        },
    }


def dumps(session: Session) -> str:
    """Return the text of a session's file."""
    return json.dumps(dump_file(session), indent=4, ensure_ascii=False) + "\n"


def lost(session: Session) -> list[Loss]:
    """Return what of a session isn't in its file."""
    found = admission.lost(session, _KEPT)
    others = [key for key, known in session.view.registers.items() if _has_no_place(key, known.value)]
    if others:
        found.append(Loss(session.id, admission.REGISTERS, ", ".join(sorted(others))))
    if cognesy_id(session.id) != session.id:
        found.append(Loss(session.id, admission.NAME, f"Cognesy knows it as {cognesy_id(session.id)}"))
    return found


def load_file(file: Any, store: Store, world: World, id: str | None = None) -> StoredSession:
    """Make a session of a file's value, under ``id`` (None: its own).

    An execution that was running is a turn that is open: whoever goes on closes it as interrupted. Raises
    `TransferError`, `EventRejected`, `InvalidArgument` and `SessionExists`; nothing is stored then.
    """
    header, definition, state = (_part(file, key) for key in ("header", "definition", "state"))
    context = state.get("context")
    context = context if isinstance(context, dict) else {}
    metadata = context.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    own, true = header.get("sessionId"), metadata.pop(_TRUE_ID, None)
    name = id or true or own
    if not isinstance(name, str) or not name:
        raise TransferError("Missing or invalid header: there is no 'sessionId'")
    parent = header.get("parentId")
    facts = _facts(header, _harn_definition(definition))
    created, updated = (_time(header, key) for key in ("createdAt", "updatedAt"))
    log = NewLog(name, world, facts, created, parent=parent if isinstance(parent, str) else None)
    running = _is_running(state.get("execution"))
    _add_messages(log, name, _listed(context.get("messageStore")), running)
    if running:
        log.add(time=updated)
    else:
        log.add(_import(log.version), time=updated)
    for key, value in _registers(state, context, metadata, facts).items():
        log.add(EventDraft(kinds.REGISTER_SET, {"key": key, "value": value, "version": 1}))
    status = header.get("status", ACTIVE)
    check_transition(name, ACTIVE, status)
    if status != ACTIVE:
        log.add(EventDraft(kinds.STATUS_CHANGED, {"from": ACTIVE, "to": status}))
    return log.store(store)


# Writing.


def _messages(session: Session) -> list[Json]:
    shown = []
    for event in session.view.window.history():
        own: Event = session.origin.own(event)
        shown.append({"id": own.id, "createdAt": _iso(own.time), **to_cognesy(own.body)})
    return shown


def _metadata(session: Session) -> Json:
    metadata = session.metadata
    for key in ("tasks", "task"):
        value = session.get(key)
        if value is not None:
            metadata[key] = value
    if cognesy_id(session.id) != session.id:
        metadata[_TRUE_ID] = session.id
    return metadata


def _has_no_place(key: str, value: Any) -> bool:
    if value is None or key in _REGISTERS or key in ("memo", "pins"):
        return False
    return not key.startswith((METADATA, "settings."))


def _last(session: Session) -> Event:
    return session.event(session.version)


def _iso(time: int) -> str:
    return f"{stamp(time)[:19]}+00:00"


def _cognesy_definition(definition: Json) -> Json:
    names = {ours: theirs for theirs, ours in _DEFINITION.items()}
    found = {names.get(key, key): value for key, value in definition.items()}
    if isinstance(found.get("budget"), dict):
        names = {ours: theirs for theirs, ours in _BUDGET.items()}
        found["budget"] = {names.get(key, key): value for key, value in found["budget"].items()}
    return found


# Reading.


def _harn_definition(definition: Json) -> Json:
    found = {_DEFINITION.get(key, key): value for key, value in definition.items() if value is not None}
    if "title" in found:
        found.setdefault("label", found.pop("title"))
    if isinstance(found.get("budget"), dict):
        budget = found["budget"]
        found["budget"] = {_BUDGET.get(key, key): value for key, value in budget.items() if value is not None}
    return found


def _part(file: Any, key: str) -> Json:
    part = file.get(key) if isinstance(file, dict) else None
    if not isinstance(part, dict):
        raise TransferError(f"Missing or invalid {key}")
    return part


def _facts(header: Json, definition: Json) -> Json:
    name = header.get("agentName") or definition.get("name", "")
    label = header.get("agentLabel") or definition.get("label", "")
    facts: Json = {key: value for key, value in (("agent_name", name), ("agent_label", label)) if value}
    if definition.keys() - {"name", "label"}:
        facts["definition"] = definition
    version = header.get("version", 1)
    if type(version) is not int or version < 0:
        raise TransferError(f"Missing or invalid header: 'version' is {version!r}")
    return facts | ({SAVES_BEFORE: version - 1} if version > 1 else {})


def _time(header: Json, key: str) -> int | None:
    value = header.get(key)
    if value is None:
        return None
    try:
        return read_stamp(value)
    except ValueError as error:
        raise TransferError(f"Missing or invalid header: '{key}': {error}") from None


def _listed(messages: Any) -> list[Json]:
    """Return the messages of a message store, which may be a plain list."""
    if isinstance(messages, dict):
        sections = messages.get("sections") or ()
        named = (section for section in sections if isinstance(section, dict))
        messages = [message for section in named for message in section.get("messages") or ()]
    if messages is None:
        return []
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise TransferError("Missing or invalid state: 'messageStore' is no list of messages")
    return messages


def _add_messages(log: NewLog, name: str, messages: list[Json], running: bool) -> None:
    """Add the messages; with what was said last begins a turn, if one is ``running``."""
    seen: set[str] = set()
    users = [number for number, message in enumerate(messages) if message.get("role") == "user"]
    begin = (users or [0])[-1] if running else None
    if running and not messages:
        log.begin_turn()
    for number, message in enumerate(messages):
        if number == begin:
            log.begin_turn()
        id = message.get("id")
        if not isinstance(id, str) or not id or id in seen or position(id, name) is not None:
            id = None
        else:
            seen.add(id)
        try:
            draft = EventDraft(kinds.MESSAGE_ADDED, from_cognesy(message), id=id)
            time = read_stamp(message["createdAt"]) if message.get("createdAt") else None
        except (ValueError, TypeError) as error:
            raise TransferError(f"message {number + 1} can't be read: {shape_problem(error)}") from None
        log.add(draft, time=time)


def _import(version: int) -> EventDraft:
    messages = [[2, version]] if version > 1 else []
    return EventDraft(kinds.HISTORY_REPLACED, Cut.restored({"messages": messages, "reason": "import"}))


def _is_running(execution: Any) -> bool:
    return isinstance(execution, dict) and execution.get("status") in ("in_progress", "pending", "running")


def _registers(state: Json, context: Json, metadata: Json, facts: Json) -> Json:
    found: Json = {}
    if isinstance(metadata.get("tasks"), list):
        found["tasks"] = TaskList.of(metadata.pop("tasks")).data()
    if isinstance(metadata.get("task"), str):
        found["task"] = metadata.pop("task")
    prompt = context.get("systemPrompt")
    if prompt and prompt != facts.get("definition", {}).get("system_prompt"):
        found["system_prompt"] = prompt
    if state.get("llmConfig") is not None:
        found["model"] = state["llmConfig"]
    return found | {f"{METADATA}{key}": value for key, value in metadata.items() if value is not None}
