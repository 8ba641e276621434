"""Events that Canto itself has written, in harnpy's terms. Spec: 10 §A1.2, §A1.7, §A1.9, §C17."""

from __future__ import annotations

import json
from typing import Any

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.transfer.canto import approvals

Json = dict[str, Any]

_CONTEXT_KINDS = ("working_set",)
#: Types of events that name others by their ids, and are kept by their numbers.
NAMING = frozenset({kinds.LEAF_MOVED, kinds.COMPACTION_TRIGGERED, kinds.HISTORY_REPLACED})


class Unreadable(Exception):
    """An event that Canto's own readers pass over, too."""


class Foreign:
    """What is known of the log so far: where its events are, and its turns."""

    def __init__(self) -> None:
        #: The number of each event, by its id there.
        self._numbers: dict[str, int] = {}
        self._messages: dict[int, Json] = {}
        self._versions: dict[str, int] = {}
        self._tip: int | None = None
        #: The number of each turn's begin, by the turn's id there.
        self.turns: dict[str, int] = {}
        self.last_turn: int | None = None

    def alias(self, id: str) -> None:
        """Note a line that stands for no event of its own."""
        self._numbers[id] = self._tip or 1

    def note(self, id: str, number: int, row: Json) -> None:
        """Note an event under its id there."""
        self._numbers[id] = self._tip = number
        if row["type"] == kinds.MESSAGE_ADDED:
            self._messages[number] = row["data"]
        if row["type"] == kinds.LEAF_MOVED:
            self._tip = row["stored"].get("target_seq", 1)

    def switch(self, parent: str | None, number: int) -> Json | None:
        """Return the move of the leaf that an event with that parent needs; None when it stands behind the
        one before it."""
        if not parent:
            return None
        at = self._numbers.get(parent)
        if at is None:
            raise TransferError(f'session tree: parent event "{parent}" not found')
        return None if at == self._tip else {"target_seq": at}

    def read(self, envelope: Json, number: int) -> Json:
        """Return type and data of an event, and its stored form where that differs. Raises `Unreadable`."""
        type, data = envelope["type"], envelope.get("data")
        if type in _READERS:
            if not isinstance(data, dict):
                raise Unreadable(f"the data of {type} is no object")
            found: Json = _READERS[type](self, data)
        else:
            found = {"data": data}
        if type == kinds.TURN_STARTED:
            self.last_turn = number
            if envelope.get("turn_id"):
                self.turns[envelope["turn_id"]] = number
        return found

    # One sort of event each.

    def message(self, data: Json) -> Json:
        if not isinstance(data.get("role"), str):
            raise Unreadable("a message has no role")
        return {"data": data}

    def context(self, data: Json) -> Json:
        content = data.get("content", "")
        return {"data": {**data, "content": content if isinstance(content, str) else json.dumps(content)}}

    def branch_summary(self, data: Json) -> Json:
        return {"data": {**data, "summary": str(data.get("summary", ""))}}

    def approval(self, data: Json) -> Json:
        return {"data": approvals.from_canto(kinds.APPROVAL_REQUESTED, data)}

    def turn(self, data: Json) -> Json:
        return {"data": data}

    def tool_started(self, data: Json) -> Json:
        args = data.get("args") or "{}"
        try:
            json.loads(args)
        except (ValueError, TypeError):
            args = json.dumps(args)
        return {"data": {"tool": "", "id": "", **data, "args": args}}

    def tool_completed(self, data: Json) -> Json:
        said = {} if data.get("error") else {"output": ""}
        known = {key: value for key, value in data.items() if key != "error" or value}
        return {"data": {"tool": "", "id": "", **said, **known}}

    def leaf_moved(self, data: Json) -> Json:
        target = data.get("target_event_id")
        at = self._numbers.get(target) if target else 1
        if at is None:
            raise TransferError(f'session tree: target event "{target}" not found')
        return {"data": data, "stored": {**data, "target_seq": at}}

    def model(self, data: Json) -> Json:
        chosen = {key: data[key] for key in ("provider_id", "model") if data.get(key)}
        return self._register("model", chosen if data.get("model") else None)

    def thinking(self, data: Json) -> Json:
        return self._register("thinking", data.get("level") or "off")

    def tools(self, data: Json) -> Json:
        return self._register("tools", data.get("names") or [])

    def _register(self, key: str, value: Any) -> Json:
        version = self._versions[key] = self._versions.get(key, 0) + 1
        return {"type": kinds.REGISTER_SET, "data": {"key": key, "value": value, "version": version}}

    def compaction(self, data: Json) -> Json:
        """A snapshot counts with a cut-off and something in it: what it shows, and what came after that."""
        stored: Json = {"strategy": str(data.get("strategy", "")), "foreign": True}
        entries = data.get("entries") or [{"message": message} for message in data.get("messages") or ()]
        cutoff = self._numbers.get(data.get("cutoff_event_id") or "")
        if data.get("cutoff_event_id") and cutoff is None:
            raise TransferError(f'effective history: compaction cutoff "{data["cutoff_event_id"]}" not found')
        if cutoff is None or not entries:
            return {"data": data, "stored": stored}
        items: list[Any] = [item for entry in entries if (item := self._item(entry)) is not None]
        named = {item[0] for item in items if isinstance(item, list)}
        items += [[at, at] for at in self._messages if at > cutoff and at not in named]
        files = {key: data[key] for key in ("read_files", "modified_files") if data.get(key)}
        return {"data": data, "stored": {**stored, "cutoff_seq": cutoff, "entries": _joined(items), **files}}

    def history(self, data: Json) -> Json:
        """A new beginning: its messages by their numbers, what the log hasn't spelt out."""
        items: list[Any] = []
        before = 0
        for message in data.get("messages") or ():
            same = (at for at, known in self._messages.items() if at > before and known == message)
            at = next(same, None)
            items.append({"message": message} if at is None else [at, at])
            before = before if at is None else at
        return {"data": data, "stored": {**data, "messages": _joined(items)}}

    def _item(self, entry: Any) -> Any:
        """Return what a snapshot's entry stands for: a message of the log by its number, or spelt out."""
        message = entry.get("message") if isinstance(entry, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return None
        at = self._numbers.get(entry.get("event_id") or "")
        if at in self._messages:
            return [at, at] if self._messages[at] == message else {"message": message}
        if at is not None or entry.get("context_kind") in _CONTEXT_KINDS:
            return None  # the views make it of the log themselves
        return {"message": message}


def _joined(items: list[Any]) -> list[Any]:
    """Return the items with neighbours in one span."""
    found: list[Any] = []
    for item in items:
        last = found[-1] if found else None
        if isinstance(item, list) and isinstance(last, list) and last[1] + 1 == item[0]:
            found[-1] = [last[0], item[1]]
        else:
            found.append(item)
    return found


_READERS = {
    kinds.MESSAGE_ADDED: Foreign.message,
    kinds.CONTEXT_ADDED: Foreign.context,
    kinds.BRANCH_SUMMARY: Foreign.branch_summary,
    kinds.APPROVAL_REQUESTED: Foreign.approval,
    kinds.TURN_STARTED: Foreign.turn,
    kinds.TURN_COMPLETED: Foreign.turn,
    kinds.STEP_STARTED: Foreign.turn,
    kinds.STEP_COMPLETED: Foreign.turn,
    kinds.TOOL_STARTED: Foreign.tool_started,
    kinds.TOOL_COMPLETED: Foreign.tool_completed,
    kinds.LEAF_MOVED: Foreign.leaf_moved,
    kinds.MODEL_CHANGED: Foreign.model,
    kinds.THINKING_CHANGED: Foreign.thinking,
    kinds.TOOLS_CHANGED: Foreign.tools,
    kinds.COMPACTION_TRIGGERED: Foreign.compaction,
    kinds.HISTORY_REPLACED: Foreign.history,
}
