"""Codex's rollouts: a JSON line for each item that goes to the Responses API, and for what happens around it.

Read by what version 0.171 writes, and its forerunners: an envelope of `type` and `payload`, the first line
being `session_meta`. Spec: 10 §C17.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harnpy.formats.json import ordered_json
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, stamp
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import Loss, counted
from harnpy.session.transfer.blocks import ADDRESSES, blocks_of
from harnpy.session.transfer.claude_code import uuid_of
from harnpy.session.transfer.foreign import Conversation, Entry, context, summary, time_of
from harnpy.session.transfer.message_formats import REASONING
from harnpy.session.transfer.response_items import (
    OUTPUTS,
    from_response_item,
    from_response_output,
    from_response_parts,
    to_response_items,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.session.log import Session
    from harnpy.session.transfer.foreign import Json, Numbers, Row, Rows

    Find = Callable[[str], Rows | None]

TOOL = "codex"
#: Whom Codex asks, unless it is told otherwise: what only that service understands goes back to it.
_DIALECT = "responses"
_META = "session_meta"
#: What Codex notes in items for itself.
_OWN = frozenset({"internal_chat_message_metadata_passthrough", "metadata"})
#: How a user's message begins that Codex wrote itself, in the rollouts that don't say so.
_MARKS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
)
#: Lines about the tool's own state, or that say an item again.
_SILENT = frozenset({
    "event_msg", "turn_context", "world_state", "token_usage_record", "ghost_snapshot", _META
})  # fmt: skip


def is_rollout(row: Json) -> bool:
    """Return whether a line is the first of a rollout."""
    payload = row.get("payload")
    return row.get("type") == _META and isinstance(payload, dict) and isinstance(payload.get("id"), str)


def conversation(rows: Rows, find: Find) -> Conversation:
    """Return the conversation of a rollout; ``find`` returns the rows of another one, by its id.

    A fork that holds no history is joined with what it came from. Raises `TransferError`.
    """
    lines = rows.each()
    meta = _meta(lines)
    id = f"{TOOL}-{meta['id']}"
    losses: list[Loss] = []
    rollout = _Rollout(id, meta["id"])
    origin = meta.get("forked_from_id")
    if isinstance(origin, str):
        _join(rollout, meta, find, losses, {meta["id"]})
    _read(rollout, rows, lines)
    entries = rollout.finished()
    losses += [Loss(id, "lines", note) for note in rows.notes]
    if rollout.left_out:
        said = ", ".join(f"{count} {kind}" for kind, count in sorted(rollout.left_out.items()))
        losses.append(Loss(id, "lines that are no messages", said))
    facts = {key: meta[key] for key in ("cwd", "cli_version", "originator") if isinstance(meta.get(key), str)}
    git = meta.get("git")
    if isinstance(git, dict) and isinstance(git.get("branch"), str):
        facts["git_branch"] = git["branch"]
    parent = f"{TOOL}-{origin}" if isinstance(origin, str) else None
    return Conversation(id, entries, {}, {"source": TOOL, **facts}, losses, parent)


def _meta(lines: Iterator[Row]) -> Json:
    """Return what the first line of a rollout says."""
    _, first = next(lines, (0, {}))
    if not is_rollout(first):
        raise TransferError(f"line 1 isn't {_META}: this is no rollout of Codex")
    meta: Json = first["payload"]
    return meta


def _read(rollout: _Rollout, rows: Rows, lines: Iterator[Row], until: int | None = None) -> None:
    """Take in the lines whose ordinals are below ``until``."""
    for number, row in lines:
        ordinal = row.get("ordinal", number)
        if until is None or (type(ordinal) is int and ordinal < until):
            rows.give(rollout.take, number, row)


def _join(rollout: _Rollout, meta: Json, find: Find, losses: list[Loss], seen: set[str]) -> None:
    """Take in what a fork shares with the conversation that it came from."""
    origin, until = meta["forked_from_id"], meta.get("forked_from_ordinal_exclusive")
    if type(until) is not int or origin in seen:
        return  # it holds its history itself
    rows = find(origin)
    lines = iter(()) if rows is None else rows.each()
    above = {} if rows is None else _meta(lines)
    if rows is None or above["id"] != origin:  # another one's name may end so, too
        losses.append(Loss(rollout.id, "messages before the fork", f"the rollout of {origin} isn't there"))
        return
    if isinstance(above.get("forked_from_id"), str):
        _join(rollout, above, find, losses, {*seen, origin})
    rollout.thread = origin
    _read(rollout, rows, lines, until)
    rollout.flush()
    rollout.thread = meta["id"]


class _Rollout:
    """The entries of the lines so far. What a model answered at once is one message."""

    def __init__(self, id: str, thread: str) -> None:
        self.id = id
        self.thread = thread
        self.left_out: Counter[str] = Counter()
        self._entries: list[Entry] = []
        self._last: str | None = None
        self._blocks: list[Json] = []
        self._name = ""
        self._time = 0
        self._model: str | None = None
        #: The last entry before each message of the user's.
        self._turns: list[str | None] = []
        #: Where the last answer stands among the entries; None while it comes.
        self._answer: int | None = None
        self._told: Json = {}

    def take(self, number: int, row: Json) -> None:
        payload = row.get("payload")
        if not isinstance(payload, dict):
            raise TransferError(f"line {number} has no payload")
        kind, time = row.get("type"), time_of(number, row)
        if kind == "response_item":
            self._item(f"{self.thread}:{row.get('ordinal', number)}", time, payload)
        elif kind == "compacted":
            self._compacted(f"{self.thread}:{row.get('ordinal', number)}", time, payload)
        elif kind == "turn_context" and isinstance(payload.get("model"), str):
            self._model = payload["model"]
        elif kind == "event_msg":
            self._event(payload)
        elif kind not in _SILENT:
            self.left_out[str(kind)] += 1

    def flush(self) -> None:
        """End the message that a model's items are of."""
        if not self._blocks:
            return
        message: Json = {"role": "assistant", "content": self._blocks}
        if self._model is not None:
            message["origin"] = {"dialect": _DIALECT, "base_url": ADDRESSES[_DIALECT], "model": self._model}
        name, self._blocks = self._name, []
        self._answer = len(self._entries)
        self._add(name, self._time, kinds.MESSAGE_ADDED, message)
        self._count(self._told)
        self._told = {}

    def finished(self) -> list[Entry]:
        self.flush()
        return self._entries

    def _add(self, id: str, time: int, type: str, data: Any) -> None:
        self._entries.append(Entry(id, self._last, time, type, data))
        self._last = id

    def _item(self, id: str, time: int, item: Json) -> None:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") != "assistant":
            self.flush()
            return self._said(id, time, item)
        item = {key: value for key, value in item.items() if key not in _OWN}
        if kind in OUTPUTS:
            self.flush()
            return self._add(id, time, kinds.MESSAGE_ADDED, from_response_output(item))
        if kind in _SILENT:
            return None
        self._blocks += from_response_item(item)
        self._name, self._time = id, time
        return None

    def _said(self, id: str, time: int, item: Json) -> None:
        """Take in a message of the user's; what Codex itself says in his name is context."""
        content = item.get("content")
        parts = content if isinstance(content, list) else [{"type": "input_text", "text": str(content or "")}]
        if item.get("role") == "user" and not _is_codexs(item, parts):
            self._turns.append(self._last)
            said = {"role": "user", "content": from_response_parts(parts)}
            return self._add(id, time, kinds.MESSAGE_ADDED, said)
        text = "\n\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
        data = context(text)
        return self._add(id, time, kinds.CONTEXT_ADDED, data)

    def _event(self, payload: Json) -> None:
        """Take in what is told of the conversation without an item: usage, and turns that were taken back."""
        if payload.get("type") == "token_count":
            info = payload.get("info")
            usage = info.get("last_token_usage") if isinstance(info, dict) else None
            if isinstance(usage, dict):
                self._count({"usage": usage})
        if payload.get("type") != "thread_rolled_back":
            return
        self.flush()
        count = payload.get("num_turns")
        if type(count) is int and 0 < count <= len(self._turns):
            self._last = self._turns[-count]
            del self._turns[-count:]

    def _count(self, told: Json) -> None:
        """Note what is told of the last answer."""
        if self._blocks:
            self._told = told
        elif told and self._answer is not None:
            self._entries[self._answer] = self._entries[self._answer]._replace(metadata=told)

    def _compacted(self, id: str, time: int, payload: Json) -> None:
        self.flush()
        history = payload.get("replacement_history")
        shown = (
            [_shown(item) for item in history if isinstance(item, dict)] if isinstance(history, list) else []
        )
        messages = [message for message in shown if message is not None]
        if not messages and payload.get("message"):
            messages = [{"role": "user", "content": str(payload["message"])}]

        def cut(numbers: Numbers, last: int) -> Cut:
            items = [summary(message) for message in messages]
            return Cut.restored({"strategy": TOOL, "cutoff_seq": last, "entries": items})

        self._add(id, time, kinds.COMPACTION_TRIGGERED, cut)


def _shown(item: Json) -> Json | None:
    """Return a message of the history that a compaction leaves."""
    if item.get("type", "message") != "message":
        return None
    role = "assistant" if item.get("role") == "assistant" else "user"
    return {"role": role, "content": from_response_parts(item.get("content") or [])}


def _is_codexs(item: Json, parts: Sequence[Any]) -> bool:
    told = item.get("internal_chat_message_metadata_passthrough")
    given = told.get("content_item_kinds") if isinstance(told, dict) else None
    if isinstance(given, list) and given:
        return not any(str(kind).startswith("user") for kind in given)
    return all(isinstance(part, dict) and str(part.get("text", "")).startswith(_MARKS) for part in parts)


# Writing.


#: The version whose lines these are.
_VERSION = "0.171.0"


def dumps(session: Session) -> str:
    """Return what a model is shown of a session, as a rollout that Codex resumes."""
    return "".join(ordered_json(line) + "\n" for line in _lines(session))


def lost(session: Session) -> list[Loss]:
    """Return what of a session its rollout doesn't hold."""
    found = admission.lost(session, ())
    said = [entry.message for entry in session.entries()]
    left_out = [block for message in said for block in _left_out(message)]
    thoughts = sum(str(block.get("type")).endswith("thinking") for block in left_out)
    unsigned = sum(len(message.keys() & set(REASONING)) for message in said)
    if thoughts + unsigned:
        found.append(Loss(session.id, "thoughts of other services", counted(thoughts + unsigned, "block")))
    others = len(left_out) - thoughts
    return found if not others else [*found, Loss(session.id, "other blocks", counted(others, "block"))]


def _lines(session: Session) -> Iterator[Json]:
    metadata, id = session.metadata, uuid_of(session.id)
    cwd = metadata.get("cwd") or session.origin.world.files.cwd()
    begin = stamp(round(session.event(1).moment * MICROS))[:23] + "Z"
    meta = {
        "id": id,
        "timestamp": begin,
        "cwd": cwd,
        "originator": "harnpy",
        "cli_version": _VERSION,
        "source": "exec",
    }
    yield {"timestamp": begin, "type": _META, "payload": meta}
    model: str | None = None
    calls: dict[str, str] = {}
    for entry in session.entries():
        time = session.moment if entry.event is None else entry.event.moment
        at = stamp(round(time * MICROS))[:23] + "Z"
        origin = entry.message.get("origin")
        is_own = _is_own(entry.message)
        if origin is not None and is_own and origin["model"] != model:
            model = origin["model"]
            yield {"timestamp": at, "type": "turn_context", "payload": {"cwd": cwd, "model": model}}
        for item in to_response_items(entry.message, is_own, calls):
            if entry.event_type == kinds.CONTEXT_ADDED and item.get("role") == "user":
                item = {**item, "role": "developer"}
            yield {"timestamp": at, "type": "response_item", "payload": item}


#: What every item of a rollout's own has a place for.
_HELD = ("text", "image", "tool_use", "tool_result")


def _left_out(message: Json) -> list[Json]:
    """Return the blocks of a message that only another service understands."""
    if _is_own(message):
        return []
    return [block for block in blocks_of(message) if block.get("type") not in _HELD]


def _is_own(message: Json) -> bool:
    """Return whether a message goes back to the service that wrote it."""
    origin = message.get("origin")
    return isinstance(origin, dict) and origin.get("dialect") == _DIALECT
