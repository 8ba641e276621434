"""harnpy's sessions as the memory of the OpenAI Agents SDK: `HarnpySession`. Spec: 10 §C20.

The conversation is a session like any other: `harnpy sessions` lists it, programs fork and compact it, and
what is popped or cleared stays in its log. Extra: ``openai-agents``.

A call and its result take the shapes that every reader of sessions knows; whatever these have no field for is
stored beside them under ``openai_item``. Items come out equal to what went in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from harnpy.adapters.session_memory import DEFAULT_STORE, SessionMemory
from harnpy.llm.request_messages import result_text
from harnpy.session.events import (
    COMPACTION_TRIGGERED,
    HISTORY_REPLACED,
    LEAF_MOVED,
    MESSAGE_ADDED,
    EventDraft,
)
from harnpy.session.history import ANY
from harnpy.session.rewind import LeafMoved
from harnpy.session.transfer.response_items import to_response_items
from harnpy.version import install_command

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

    from harnpy.session.stored import StoredSession
    from harnpy.storage import Store

Item = dict[str, Any]

#: Where a message keeps what it has no other place for.
REST = "openai_item"
#: The role of items that are no message: no model is shown them.
ROLE = "item"
#: Blocks of sessions, which items of the SDK don't have.
_BLOCKS = ("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking", "reasoning")


def message_of(item: Item) -> dict[str, Any]:
    """Return an item as a message."""
    kind = item.get("type")
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        rest = _without(item, "name", "arguments", "call_id")
        return {"role": "assistant", "content": "", "tool_calls": [call], REST: rest}
    if kind == "function_call_output":
        rest = _without(item, "output", "call_id")
        return {
            "role": "tool",
            "tool_call_id": item.get("call_id"),
            "content": item.get("output"),
            REST: rest,
        }
    if isinstance(item.get("role"), str) and item["role"] != ROLE and REST not in item:
        return item
    return {"role": ROLE, REST: item}


def items_of(message: dict[str, Any]) -> list[Item]:
    """Return a message as items; one that something else has written may be several."""
    rest = message.get(REST)
    if isinstance(rest, dict):
        return [_item(message, rest)]
    if message.get("role") in ("tool", "tool_result"):
        id = message.get("tool_call_id", message.get("tool_use_id"))
        output = message.get("content")
        if isinstance(output, list) and all(isinstance(part, dict) for part in output):
            output = result_text(output)
        return [{"type": "function_call_output", "call_id": id, "output": output}]
    content = message.get("content")
    if isinstance(content, list) and any(
        isinstance(each, dict) and each.get("type") in _BLOCKS for each in content
    ):
        # What only a service understands goes back to none: nobody says here which one asks.
        return list(map(_without_id, to_response_items(message, False, {})))
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return [message]
    said = [_without(message, "tool_calls")] if message.get("content") else []
    return said + [_call(call) for call in calls if isinstance(call, dict)]


def _item(message: dict[str, Any], rest: Item) -> Item:
    if message["role"] == ROLE:
        return rest
    if message["role"] == "tool":
        return {**rest, "call_id": message["tool_call_id"], "output": message["content"]}
    call = message["tool_calls"][0]
    return {**rest, "call_id": call["id"], **call["function"]}


def _without_id(item: Item) -> Item:
    """Return an item; a model's message as a text alone: a list of texts needs an id."""
    if item.get("role") != "assistant":
        return item
    return {"role": "assistant", "content": "".join(part["text"] for part in item["content"])}


def _call(call: dict[str, Any]) -> Item:
    function = call.get("function", call)
    return {
        "type": "function_call",
        "call_id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments"),
    }


def _without(item: Item, *keys: str) -> Item:
    return {key: value for key, value in item.items() if key not in keys}


try:
    from agents.memory import SessionSettings
    from agents.memory.session_settings import resolve_session_limit
except ImportError as error:
    raise ImportError(
        f"harnpy.adapters.openai_agents needs the OpenAI Agents SDK: {install_command('openai-agents')}"
    ) from error


class HarnpySession:
    """A session of the SDK, kept in a store.

    ``store`` is a store's URL, e.g. ``sqlite:.harn/sessions.db``, or an open store, which stays the caller's
    to close. Safe to use from many tasks and processes: items are written at the end, each `add_items` whole.
    """

    def __init__(
        self,
        session_id: str,
        store: Store | str = DEFAULT_STORE,
        *,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else session_settings
        self._memory = SessionMemory(session_id, store)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items of the window, the newest ``limit`` of them, oldest first."""
        most = resolve_session_limit(limit, self.session_settings)
        return await self._memory.run(lambda session: _items(session, most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append the items, all or none."""
        if not items:
            return
        drafts = [EventDraft(MESSAGE_ADDED, message_of(cast("dict[str, Any]", item))) for item in items]
        await self._memory.run(lambda session: session.append(*drafts, expected_version=ANY))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out of the window and return it; None when there is none."""
        return await self._memory.run(_pop)

    async def clear_session(self) -> None:
        """Empty the window."""
        await self._memory.run(lambda session: session.reset())


def _items(session: StoredSession, most: int | None) -> list[TResponseInputItem]:
    items = [item for message in session.messages() for item in items_of(message)]
    if most is not None and most >= 0:
        items = items[len(items) - most :] if most < len(items) else items
    return cast("list[TResponseInputItem]", items)


def _pop(session: StoredSession) -> TResponseInputItem | None:
    window = session.view.window
    entries = list(window.entries.items())
    if not entries:
        return None
    last = entries[-1]
    *before, item = items_of(last.body) or [last.body]
    if before or _is_cut(session, last.seq):
        session.replace("set", window.with_entries(entries[:-1]))
        session.append(*(EventDraft(MESSAGE_ADDED, message_of(other)) for other in before))
    else:
        session.record(LEAF_MOVED, LeafMoved(last.seq - 1))
    return cast("TResponseInputItem", item)


def _is_cut(session: StoredSession, after: int) -> bool:
    """Return whether the window was replaced since: it isn't what it was behind an earlier event."""
    return any(event.type in (HISTORY_REPLACED, COMPACTION_TRIGGERED) for event in session.events(after))
