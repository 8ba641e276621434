"""The lines of a log in Canto's form, as rows of harnpy's. Spec: 10 §A1.6, §A1.10, §C17.

Logs that harnpy wrote say in ``metadata.harn`` what they were; `foreign` reads what Canto itself writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import DecodeError
from msgspec.json import decode as from_json

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.events import SESSION_CREATED
from harnpy.session.identity import event_id, position, read_stamp, stamp
from harnpy.session.transfer import losses
from harnpy.session.transfer.canto import approvals
from harnpy.session.transfer.canto.foreign import NAMING, Foreign, Unreadable
from harnpy.session.transfer.canto.ids import from_canto_id
from harnpy.session.transfer.losses import Loss

if TYPE_CHECKING:
    from collections.abc import Iterable

    Json = dict[str, Any]

_NEEDED = frozenset({"id", "session_id", "type", "timestamp"})


class Rows(NamedTuple):
    """A log's rows in the shown form, and what couldn't be read."""

    rows: list[Json]
    losses: list[Loss]


def are_cantos(lines: Iterable[str]) -> bool:
    """Whether the lines of a log are Canto's: by the first of them."""
    first = next((line for line in lines if line.strip()), "")
    try:
        row = from_json(first)
    except (DecodeError, UnicodeDecodeError):
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
            envelope = from_json(line)
        except (DecodeError, UnicodeDecodeError) as error:
            if number == texts[-1][0] and not line.endswith("\n"):
                torn = len(line.encode())
                break
            raise TransferError(f"line {number} isn't JSON: {error}") from None
        if not isinstance(envelope, dict) or not envelope.keys() >= _NEEDED:
            raise TransferError(f"line {number} is no event: it needs {', '.join(sorted(_NEEDED))}")
        envelopes.append(envelope)
    session_id = str(record["session_id"] if record else envelopes[0]["session_id"] if envelopes else "")
    if not session_id:
        raise TransferError("there is no event in it: this is no session's log")
    if torn:
        found.append(Loss(session_id, losses.TORN_LINE, f"{torn} bytes"))
    number = 1
    try:
        reader = Reader(session_id, record or {}, envelopes)
        for number, envelope in enumerate(envelopes, 1):
            try:
                reader.take(envelope)
            except Unreadable as error:
                found.append(Loss(session_id, losses.UNREADABLE, f"line {number}: {error}"))
    except TransferError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise TransferError(f"event {number} can't be read: {error}") from None
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
        row["data"] = approvals.from_canto(envelope["type"], envelope.get("data"))
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
        if row["type"] == kinds.TURN_COMPLETED and known is None:
            known = self._foreign.last_turn
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
