"""Canto's logs and directories, read and written. Spec: 10 §A1, §C17."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.faults import shape_problem
from harnpy.formats.json import refuse_depth
from harnpy.formats.mismatch import unread
from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.session import events as kinds
from harnpy.session.cuts import foreign_cut, joined
from harnpy.session.errors import TransferError
from harnpy.session.events import (
    APPROVAL_REQUESTED,
    SESSION_CREATED,
    Summary,
    event_id,
    position,
    read_stamp,
    stamp,
)
from harnpy.session.prompt import entries_in_log_order
from harnpy.session.rewind import LeafMoved, active
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import Loss
from harnpy.session.transfer.blocks import shape_of
from harnpy.session.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.transfer.blocks import Shape

    Json = dict[str, Any]

# Ids as Canto writes them: the same 128 bits as ULID. Spec: 10 §C17.
#
# Only ids that harnpy computes are written so; they say themselves whose they are, and which.


_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_LENGTH = 26


def to_canto_id(id: str, session_id: str) -> str:
    """Return an event's id as a ULID; one that isn't computed for the session as it is."""
    return id if position(id, session_id) is None else _ulid(int(id.replace("-", ""), 16))


def from_canto_id(id: str, session_id: str) -> str:
    """Return what `to_canto_id` was given."""
    number = _number(id)
    if number is None:
        return id
    text = f"{number:032x}"
    uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return id if position(uuid, session_id) is None else uuid


def next_id(id: str, step: int) -> str:
    """Return an id that sorts right behind that one."""
    number = _number(id)
    return f"{id}.{step}" if number is None else _ulid(number + step)


def _number(ulid: str) -> int | None:
    if len(ulid) != _LENGTH or not _VALUES.keys() >= set(ulid) or ulid[0] > "7":
        return None
    number = 0
    for digit in ulid:
        number = number << 5 | _VALUES[digit]
    return number


def _ulid(number: int) -> str:
    digits = (_DIGITS[number >> 5 * place & 31] for place in range(_LENGTH - 1, -1, -1))
    return "".join(digits)


# Approvals have keys of another spelling in Canto's logs. Spec: 10 §A1.2.


_SPELLINGS = {
    "id": "ID",
    "session_id": "SessionID",
    "tool": "Tool",
    "args": "Args",
    "category": "Category",
    "operation": "Operation",
    "resource": "Resource",
    "metadata": "Metadata",
}
_OURS = {theirs: ours for ours, theirs in _SPELLINGS.items()}


def approval_to_canto(type: str, data: Any) -> Any:
    """Return an event's data in Canto's spelling."""
    return _renamed(data, _SPELLINGS) if type == APPROVAL_REQUESTED else data


def approval_from_canto(type: str, data: Any) -> Any:
    """Return an event's data in ours."""
    return _renamed(data, _OURS) if type == APPROVAL_REQUESTED else data


def _renamed(data: Any, names: dict[str, str]) -> Any:
    return {names.get(key, key): value for key, value in data.items()} if isinstance(data, dict) else data


# Messages as Canto writes them. Spec: 10 §A1.3, §C17.


_KEYS = frozenset({
    "role", "content", "parts", "reasoning", "thinking_blocks", "name", "tool_id", "tool_calls",
    "cache_control",
})  # fmt: skip
_AS_THEY_ARE = ("reasoning", "cache_control")


def message_to_canto(message: Json) -> list[Json]:
    """Return a message in Canto's shape. Several results in one message are a message each."""
    if _is_cantos(message):
        return [message]
    shape = shape_of(message)
    found: list[Json] = [_result(message, shape, number) for number in range(len(shape.results))]
    if not found or shape.texts or shape.others:
        found.append(_said(message, shape))
    return found


def _is_cantos(message: Json) -> bool:
    """Return whether it has that shape already, as messages of Canto's logs have."""
    if not message.keys() <= _KEYS or not isinstance(message.get("content", ""), str):
        return False
    if message["role"] == "tool" and "tool_id" not in message:
        return False
    calls = message.get("tool_calls", [])
    return message["role"] != "tool_result" and all("function" in call for call in calls)


def _result(message: Json, shape: Shape, number: int) -> Json:
    result = shape.results[number]
    name = {"name": result.name} if result.name else {}
    return {"role": "tool", "content": result.text, **name, "tool_id": result.id}


def _said(message: Json, shape: Shape) -> Json:
    said: Json = {"role": shape.role, "content": shape.text}
    parts = [part for block in shape.others if (part := _part(block)) is not None]
    if parts:
        said["parts"] = [*({"type": "text", "text": text} for text in shape.texts), *parts]
    said |= {key: message[key] for key in _AS_THEY_ARE if message.get(key)}
    if shape.thinking:
        said["thinking_blocks"] = shape.thinking
    if isinstance(message.get("name"), str):
        said["name"] = message["name"]
    if shape.calls:
        said["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in shape.calls
        ]
    return said


def _part(block: Json) -> Json | None:
    """Return an image as Canto writes it; None for what it has no part for."""
    source = block.get("source")
    if isinstance(source, dict):
        return {"type": "image", "mime_type": source.get("media_type", ""), "data": source.get("data", "")}
    url = block.get("image_url", block.get("url"))
    url = url.get("url") if isinstance(url, dict) else url
    return {"type": "image", "url": url} if isinstance(url, str) else None


# Events that Canto itself has written, in harnpy's terms. Spec: 10 §A1.2, §A1.7, §A1.9, §C17.


#: Types of events that name others by their ids, and are kept by their numbers.
NAMING = frozenset({kinds.LEAF_MOVED, kinds.COMPACTION_TRIGGERED, kinds.HISTORY_REPLACED})


class Unreadable(Exception):
    """An event that Canto's own readers pass over, too."""


class Foreign:
    """The state of a log that is being read: the places of its events, and its turns."""

    def __init__(self) -> None:
        #: The number of each event, by its id there.
        self._numbers: dict[str, int] = {}
        self._messages: dict[int, Json] = {}
        self._versions: dict[str, int] = {}
        self._tip: int | None = None
        #: The number of each turn's begin, by the turn's id there.
        self.turns: dict[str, int] = {}
        self.open_turns: list[int] = []

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
            self.open_turns.append(number)
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
        return {"data": approval_from_canto(kinds.APPROVAL_REQUESTED, data)}

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
        cutoff = data.get("cutoff_event_id")
        if cutoff and cutoff not in self._numbers:
            raise TransferError(f'effective history: compaction cutoff "{cutoff}" not found')
        return {"data": data, "stored": foreign_cut(data, self._numbers.get, self._messages)}

    def history(self, data: Json) -> Json:
        """A new beginning: its messages by their numbers, what the log hasn't spelt out."""
        items: list[Any] = []
        before = 0
        for message in data.get("messages") or ():
            same = (at for at, known in self._messages.items() if at > before and known == message)
            at = next(same, None)
            items.append({"message": message} if at is None else [at, at])
            before = before if at is None else at
        return {"data": data, "stored": {**data, "messages": joined(items)}}


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


# The lines of a log in Canto's form, as rows of harnpy's. Spec: 10 §A1.6, §A1.10, §C17.
#
# Logs that harnpy wrote say in ``metadata.harn`` what they were; `foreign` reads what Canto itself writes.


_NEEDED = frozenset({"id", "session_id", "type", "timestamp"})


class Rows(NamedTuple):
    """A log's rows in the shown form, and what couldn't be read."""

    rows: list[Json]
    losses: list[Loss]


def are_cantos(lines: Iterable[str]) -> bool:
    """Return whether the lines of a log are Canto's: by the first of them."""
    first = next((line for line in lines if line.strip()), "")
    try:
        refuse_depth(first)
        row = from_json(first)
    except ValueError:
        return False
    return isinstance(row, dict) and row.keys() >= _NEEDED and row["type"] != SESSION_CREATED


def read_log(lines: Iterable[str], record: Json | None = None) -> Rows:
    """Return the rows of a log. ``record`` is the session's in the ancestry, if there is one.

    A last line that was cut off is left out. Raises `TransferError`.
    """
    found: list[Loss] = []
    texts = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    envelopes: list[Json] = []
    torn = 0
    for number, line in texts:
        try:
            refuse_depth(line)
            envelope = from_json(line)
        except ValueError as error:
            if number == texts[-1][0] and not line.endswith("\n"):
                torn = len(line.encode())
                break
            why = unread(line, Any) if isinstance(error, DecodeError) else error
            raise TransferError(f"line {number} isn't JSON: {why}") from error
        if not isinstance(envelope, dict) or not envelope.keys() >= _NEEDED:
            raise TransferError(f"line {number} is no event: it needs {', '.join(sorted(_NEEDED))}")
        envelopes.append(envelope)
    session_id = str(record["session_id"] if record else envelopes[0]["session_id"] if envelopes else "")
    if not session_id:
        raise TransferError("there is no event in it: this is no session's log")
    if torn:
        found.append(Loss(session_id, admission.TORN_LINE, f"{torn} bytes"))
    number = 1
    try:
        reader = Reader(session_id, record or {}, envelopes)
        for number, envelope in enumerate(envelopes, 1):
            try:
                reader.take(envelope)
            except Unreadable as error:
                found.append(Loss(session_id, admission.UNREADABLE, f"line {number}: {error}"))
    except TransferError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise TransferError(f"event {number} can't be read: {shape_problem(error)}") from None
    _end_append(reader.rows)
    return Rows(reader.rows, found)


def _end_append(rows: list[Json]) -> None:
    """Let the last append end with the last row: the file may have been cut off in it."""
    for follow, row in enumerate(reversed(rows)):
        if row.get("more", 0) <= follow:
            return
        row["more"] = follow


class Reader:
    """Turns envelopes into rows, one by one."""

    def __init__(self, session_id: str, record: Json, envelopes: list[Json]) -> None:
        self._session_id = session_id
        self._foreign = Foreign()
        self._time = 0
        self._shared, first = 0, self._first(record, envelopes)
        self.rows = [first]

    def _first(self, record: Json, envelopes: list[Json]) -> Json:
        harn = record.get("harn")
        harn = harn if isinstance(harn, dict) else {}
        facts = harn.get("stored") or self._facts(record, envelopes)
        self._shared = facts.get("fork_point_seq", 0)
        times = [
            text for text in (record.get("created_at"), *(e["timestamp"] for e in envelopes[:1])) if text
        ]
        moments = [read_stamp(text) for text in times] or [0]
        # Canto notes a session when it first saves one of its events; a fork's are older than itself.
        time = moments[0] if self._shared else min(moments)
        self._time = 0 if self._shared else time
        return {
            "id": event_id(self._session_id, 1, time),
            "session_id": self._session_id,
            "seq": 1,
            "type": SESSION_CREATED,
            "timestamp": stamp(time),
            "data": facts,
            "more": harn.get("more", 0),
        }

    def _facts(self, record: Json, envelopes: list[Json]) -> Json:
        """Return the facts of a session that Canto made; what it shares says where it comes from."""
        origins = [(envelope.get("metadata") or {}).get("fork_origin") for envelope in envelopes]
        count = next((at for at, origin in enumerate(origins) if origin is None), len(origins))
        parent = record.get("parent_session_id") or (origins[0] or {}).get("session_id") if origins else None
        parent = parent or record.get("parent_session_id")
        facts: Json = {key: record[key] for key in ("branch_label", "fork_reason") if record.get(key)}
        if parent is None:
            return facts
        if isinstance(record.get("depth"), int):
            facts["depth"] = record["depth"]
        return {**facts, "parent_session_id": parent, "fork_point_seq": count + 1 if count else 0}

    def take(self, envelope: Json) -> None:
        """Add the rows of the next line. Raises `Unreadable`, and ValueErrors and the like."""
        if envelope["session_id"] != self._session_id:
            raise TransferError(
                f'replay: session id mismatch: session="{self._session_id}" event="{envelope["session_id"]}"'
            )
        metadata = dict(envelope.get("metadata") or {})
        harn = metadata.pop("harn", None)
        own = harn if isinstance(harn, dict) else {}
        id: str = envelope["id"]
        if own.get("extra"):
            self._foreign.alias(id)
            return
        number = len(self.rows) + 1
        computed = from_canto_id(id, self._session_id)
        is_own = bool(own) or position(computed, self._session_id) == number
        moved = None if is_own else self._foreign.switch(envelope.get("parent_id"), number)
        if moved is not None:
            self._add(envelope, {"type": kinds.LEAF_MOVED, "data": moved, "stored": moved, "id": None})
            number += 1
        row: Json = {"type": envelope["type"], "data": envelope.get("data"), "id": computed if is_own else id}
        if is_own:
            row |= self._own(own, envelope)
            if "stored" not in row and row["type"] in NAMING:
                row |= self._foreign.read(envelope, number)
        else:
            row |= self._foreign.read(envelope, number)
            if envelope.get("seq") not in (None, number):
                metadata["origin_seq"] = envelope["seq"]
        self._foreign.note(id, number, row)
        self._add(envelope, {**row, **self._origin(metadata, row["id"], number)})

    def _own(self, harn: Json, envelope: Json) -> Json:
        """Return what harnpy wrote beside what Canto reads."""
        row: Json = {"more": harn.get("more", 0)}
        if "message" in harn:
            return {**row, "type": kinds.MESSAGE_ADDED, "data": harn["message"]}
        row["data"] = approval_from_canto(envelope["type"], envelope.get("data"))
        return {**row, "stored": harn["stored"]} if "stored" in harn else row

    def _origin(self, metadata: Json, id: str, number: int) -> Json:
        """Return the metadata, and the id: an event that a fork shares has the parent's."""
        origin = metadata.get("fork_origin")
        if not isinstance(origin, dict) or number > self._shared:
            return {"metadata": metadata}
        there = str(origin.get("event_id", ""))
        computed = from_canto_id(there, str(origin.get("session_id", "")))
        if computed != there:
            return {"metadata": {**metadata, "fork_origin": {**origin, "event_id": computed}}}
        return {"metadata": {k: v for k, v in metadata.items() if k != "fork_origin"}, "id": there or id}

    def _add(self, envelope: Json, row: Json) -> None:
        number = len(self.rows) + 1
        self._time = max(self._time, read_stamp(envelope["timestamp"]))
        turn = envelope.get("turn_id")
        known = self._foreign.turns.get(turn) if turn else None
        if row["type"] == kinds.TURN_COMPLETED:
            open_turns = self._foreign.open_turns
            if not turn and open_turns:
                known = open_turns[-1]
            if known in open_turns:
                open_turns.remove(known)
        if row["id"] is None:
            row["id"] = event_id(self._session_id, number, self._time)
        shown: Json = {
            "session_id": self._session_id,
            "seq": number,
            "timestamp": stamp(self._time),
            "cost": envelope.get("cost", 0.0),
            **row,
        }
        if known is not None:
            shown["turn"] = known
        elif turn:
            shown["turn_id"] = from_canto_id(turn, self._session_id)
        self.rows.append({key: value for key, value in shown.items() if value is not None or key == "data"})


# A session as Canto's log, and its record in the ancestry. Spec: 10 §A1.1, §A1.10, §A1.11, §C17.


#: Canto's logs have no first event: its facts are the record in the ancestry.
FIRST = 1
_RESET = "<conversation_summary>\nThe conversation was reset.\n</conversation_summary>"
_PRIVILEGED = ("system", "developer")
#: What Canto shows a model, beside snapshots.
_VISIBLE = frozenset({kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.BRANCH_SUMMARY})
#: What Canto reads as a snapshot of what a model is shown.
_MEASURES = ("max_tokens", "threshold_pct", "current_tokens")
SNAPSHOTS = frozenset({kinds.COMPACTION_TRIGGERED, kinds.PROJECTION_SNAPSHOTTED})


def ancestry_of(session: Session) -> Json:
    """Return a session's record in the ancestry."""
    first = session.event(FIRST)
    facts, parent = first.stored(), session.origin.parent
    record: Json = {"session_id": session.id}
    if parent is not None:
        point = first.data.get("fork_point_event_id")
        record["parent_session_id"] = parent.id
        record |= {"fork_point_event_id": to_canto_id(point, parent.id)} if point else {}
    record |= {key: facts[key] for key in ("branch_label", "fork_reason") if facts.get(key)}
    more = {"more": first.more} if first.more else {}
    harn = {"stored": facts, **more}
    return {**record, "depth": facts["depth"], "created_at": first.timestamp, "harn": harn}


def dump_lines(session: Session) -> Iterator[str]:
    """The lines of a session's log, each with its line break."""
    writer = _Writer(session)
    for envelope in chain(chain.from_iterable(map(writer.envelopes, session.events())), writer.closing()):
        yield to_json(envelope).decode() + "\n"


class _Writer:
    """Writes the events of a log in order, and what only Canto needs behind those that it stands for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: list[Event] = []
        self._append: list[Event] = []
        self._view = View()
        self._view.log = lambda until: self._seen[:until]
        self._count = 0
        #: The last line of an event that has several, by the event's id there.
        self._tips: dict[str, str] = {}
        #: The cut-off of each snapshot that counts there, by the number of its event.
        self._cutoffs: dict[int, int] = {}

    def envelopes(self, event: Event) -> list[Json]:
        self._show(event)
        if event.seq == FIRST:
            return []
        first, *more = self._forms(event)
        id, parent = self._id(event.id), self._parent(event)
        envelopes = [self._envelope(event, id, parent, *first)]
        for step, (type, data) in enumerate(more, 1):
            parent, self._tips[id] = self._tips.get(id, id), next_id(id, step)
            envelopes.append(self._envelope(event, self._tips[id], parent, type, data, {"extra": True}))
        return envelopes

    def closing(self) -> Iterator[Json]:
        """Yield a snapshot of the window if a reader of the lines so far would show something else: one takes
        events in their order, so that it loses a call and a result that don't follow each other, and knows no
        pins."""
        last = self._seen[-1]
        if (parent := self._standing(last.seq)) is None:
            return
        read_tools = self._session._read_tools
        branch = active(self._seen, 0)
        cut = next((event.seq for event in reversed(branch) if event.seq in self._cutoffs), 0)
        kept = self._view.at(cut).entries(read_tools) if cut else []
        cutoff = self._cutoffs.get(cut, 0)
        later = [event for event in branch if event.seq > cutoff and event.type in _VISIBLE]
        there = entries_in_log_order(kept, later, read_tools)
        if [entry.message for entry in there] != [entry.message for entry in self._view.entries(read_tools)]:
            snapshot = self._snapshot("window", last.seq, self._shown(is_cut=True))
            id = next_id(self._last_line(last.id), 1)
            yield self._envelope(last, id, parent, kinds.COMPACTION_TRIGGERED, snapshot, {"extra": True})

    def _show(self, event: Event) -> None:
        self._seen.append(event)
        self._append.append(event)
        # The last append of a log cut short by ``until`` may lack its end: a cut is shown at once.
        if not event.more or event.type in SNAPSHOTS or event.type == kinds.HISTORY_REPLACED:
            self._view.extend(self._append)
            self._append = []

    def _envelope(
        self, event: Event, id: str, parent: str | None, type: str, data: Any, harn: Json | None = None
    ) -> Json:
        self._count += 1
        metadata = self._metadata(event, {} if harn is None else harn)
        envelope: Json = {"id": id, "session_id": event.session_id}
        if event.turn_id is not None:
            envelope["turn_id"] = self._id(event.turn_id)
        envelope["seq"] = self._count
        if parent is not None:
            envelope["parent_id"] = parent
        envelope |= {"type": type, "timestamp": event.timestamp, "data": data}
        if metadata:
            envelope["metadata"] = metadata
        if event.cost and "extra" not in metadata.get("harn", {}):
            envelope["cost"] = event.cost
        return envelope

    def _metadata(self, event: Event, harn: Json) -> Json:
        if "extra" in harn:
            return {"harn": harn}
        metadata = dict(event.metadata)
        origin = metadata.get("fork_origin")
        if isinstance(origin, dict):
            metadata["fork_origin"] = {**origin, "event_id": to_canto_id(**_named(origin))}
        harn |= {"more": event.more} if event.more else {}
        if self._id(event.id) == event.id:
            harn["seq"] = event.seq
        return metadata | ({"harn": harn} if harn else {})

    def _parent(self, event: Event) -> str | None:
        parent = event.parent_id
        if parent is None or parent == self._seen[0].id:
            return None
        return self._last_line(parent)

    def _last_line(self, id: str) -> str:
        """Return the id of the last line of an event."""
        first = self._id(id)
        return self._tips.get(first, first)

    def _id(self, id: str) -> str:
        return to_canto_id(id, self._session.id)

    # What Canto reads in an event: its own form, then lines for Canto alone.

    def _forms(self, event: Event) -> list[tuple[Any, ...]]:
        if event.type == kinds.MESSAGE_ADDED:
            return self._message(event.body)
        if event.type == kinds.LEAF_MOVED:
            return [(event.type, self._target(event), {"stored": event.stored()})]
        if event.type in SNAPSHOTS:
            stored = event.stored()
            is_checkpoint = event.type == kinds.PROJECTION_SNAPSHOTTED
            cutoff = event.seq - 1 if is_checkpoint else stored.get("cutoff_seq")
            note = {"note": stored["note"]} if "note" in stored else {}
            said = {key: value for key, value in stored.get("said", {}).items() if key in _MEASURES}
            snapshot = self._snapshot(stored["strategy"], cutoff, self._shown(is_cut=not is_checkpoint))
            return [(event.type, {**snapshot, **note, **said}, {"stored": stored})]
        if event.type == kinds.HISTORY_REPLACED:
            snapshot = self._snapshot("history_replaced", event.seq, self._shown(is_cut=True))
            extra = (kinds.COMPACTION_TRIGGERED, snapshot)
            return [(event.type, event.data, {"stored": event.stored()}), extra]
        data, stored = approval_to_canto(event.type, event.data), event.stored()
        if event.type == kinds.BRANCH_SUMMARY and "from_event_id" in data:
            data = {**data, "from_event_id": self._id(data["from_event_id"])}
        harn = {} if stored == event.data else {"stored": stored}
        return [(event.type, data, harn)]

    def _message(self, message: Json) -> list[tuple[Any, ...]]:
        if message["role"] in _PRIVILEGED:
            context = {"kind": "harness", "placement": "history", "content": shape_of(message).text}
            return [(kinds.CONTEXT_ADDED, context, {"message": message})]
        first, *more = message_to_canto(message)
        harn = {} if first == message and not more else {"message": message}
        return [(kinds.MESSAGE_ADDED, first, harn), *((kinds.MESSAGE_ADDED, other) for other in more)]

    def _target(self, event: Event) -> Json:
        data = {key: value for key, value in event.data.items() if key != "target_event_id"}
        target = self._standing(event.body.target)
        return data if target is None else {"target_event_id": target, **data}

    def _standing(self, seq: int | None) -> str | None:
        """Return the id of the event that one behind number ``seq`` stands behind: no move, as they are on no
        branch. None at the begin."""
        while seq and isinstance(move := self._seen[seq - 1].body, LeafMoved):
            seq = move.target
        return self._last_line(self._seen[seq - 1].id) if seq and seq > FIRST else None

    def _shown(self, *, is_cut: bool) -> list[Json]:
        """Return the window at this point. A cut that left nothing would count for nothing; a checkpoint that
        was taken while a call was open must, or the call's result would stand without it."""
        if not is_cut and self._awaits_results():
            return []
        shown = self._view.entries(self._session._read_tools, annotate=True)
        entries = [form for entry in shown for form in self._entry(entry)]
        if is_cut and not entries:
            message = {"role": "user", "content": _RESET}
            return [{"context_kind": "summary", "placement": "prefix", "message": message}]
        return entries

    def _awaits_results(self) -> bool:
        """Return whether a call of the last answer has no result yet."""
        awaited: list[str | None] = []
        for message in self._view.window.messages():
            answered = results_of(message)
            if answered is None:
                awaited = [call.id for call in calls_of(message)]
            else:
                awaited = [id for id in awaited if id not in answered]
        return bool(awaited)

    def _snapshot(self, strategy: str, cutoff: int | None, entries: list[Json]) -> Json:
        """``cutoff`` is the number of the last event before the snapshot."""
        standing = self._standing(cutoff)
        if cutoff and standing and entries:
            self._cutoffs[self._seen[-1].seq] = cutoff
        known = {} if standing is None else {"cutoff_event_id": standing}
        read, modified = self._view.window.files
        files = {"read_files": list(read), "modified_files": list(modified)}
        return {"strategy": strategy, **known, "entries": entries, **{k: v for k, v in files.items() if v}}

    def _entry(self, entry: HistoryEntry) -> list[Json]:
        form = entry.shown()
        if isinstance(entry.event, Summary):
            form.pop("event_id", None)  # it is that of the cut itself
        elif "event_id" in form:
            form["event_id"] = self._id(form["event_id"])
        return [{**form, "message": message} for message in message_to_canto(form["message"])]


def _named(origin: Json) -> Json:
    return {"id": str(origin.get("event_id", "")), "session_id": str(origin.get("session_id", ""))}
