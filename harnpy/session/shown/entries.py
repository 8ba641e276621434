"""What a model is shown of a session: valid for every provider, whatever the log went through.

Spec: 10 §A1.8, §C5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.events import Summary
from harnpy.session.shown.message_parts import has_payload, results_of
from harnpy.session.shown.pairing import Record, Round, rounds
from harnpy.session.shown.rewinding import standing
from harnpy.session.transcript import RESULT_ROLES
from harnpy.session.window import is_prefix_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.session.events import Event
    from harnpy.session.shown.message_parts import Message

#: How many files of each sort a working set names.
FILES_LIMIT = 5

_ROLES = ("user", "assistant", *RESULT_ROLES)
_BACK = "The following is a summary of a branch that this conversation came back from:"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A message as a model is shown it, and where it comes from.

    ``event_id`` is empty for what no event says. Context has a ``context_kind`` and a ``placement``
    (``prefix`` or ``history``), a result what the log knows of its call: ``tool``.
    """

    message: Message
    event_id: str = ""
    event_type: str = ""
    context_kind: str | None = None
    placement: str | None = None
    tool: dict[str, Any] | None = None
    event: Event | None = None

    @property
    def is_prefix(self) -> bool:
        return self.placement == "prefix"

    def shown(self) -> dict[str, Any]:
        """Return it as snapshots show it. Spec: 10 §A1.7."""
        keys = ("event_id", "event_type", "context_kind", "placement", "message", "tool")
        return {key: value for key in keys if (value := getattr(self, key))}


def entries(
    visible: Sequence[Event],
    read_tools: Callable[[int, int | None], Iterable[Event]],
    pinned: Sequence[Event] = (),
    files: tuple[Sequence[str], Sequence[str]] = ((), ()),
    annotate: bool = False,
    files_limit: int = FILES_LIMIT,
) -> list[HistoryEntry]:
    """Return what a model is shown of the ``visible`` events, which are in the window's order.

    ``read_tools(after, before)`` returns the ``tool_*`` events between two positions (None: the log's end),
    and the moves of the leaf.
    ``pinned`` are messages that a cut has taken out, ``files`` those read and modified before it.
    """
    shown = _placed([normal for event in visible if (normal := entry_of(event)) is not None])
    kept = [normal for event in pinned if (normal := entry_of(event)) is not None]
    prefix = [entry for entry in shown if entry.is_prefix]
    text = working_set(*files, files_limit)
    if text is not None:
        message = {"role": "user", "content": text}
        prefix.append(HistoryEntry(message, context_kind="working_set", placement="prefix"))
    rest = [entry for entry in shown if not entry.is_prefix]
    return [*prefix, *_repaired(kept, read_tools, annotate), *_repaired(rest, read_tools, annotate)]


def _placed(shown: list[HistoryEntry]) -> list[HistoryEntry]:
    """Leave a compaction's summary where it stands, if messages that were kept stand before it (08 §4.9)."""
    first = next((at for at, entry in enumerate(shown) if not entry.is_prefix), len(shown))
    return [
        replace(entry, placement="history") if at > first and isinstance(entry.event, Summary) else entry
        for at, entry in enumerate(shown)
    ]


def working_set(read: Sequence[str], modified: Sequence[str], limit: int = FILES_LIMIT) -> str | None:
    """Return the text that names the files worked on, ``limit`` of each sort; None when there are none."""
    changed = sorted(set(modified))
    looked_at = sorted(set(read) - set(modified))
    blocks = []
    for title, paths in (("Modified files:", changed), ("Read-only files:", looked_at)):
        if paths:
            blocks += [title, *(f"- {path}" for path in paths[:limit])]
    return "\n".join(["<working_set>", *blocks, "</working_set>"]) if blocks else None


def entry_of(event: Event) -> HistoryEntry | None:
    """Return an event as a model is shown it, by itself; None when it says nothing."""
    return _normal(_entry(event))


def _entry(event: Event) -> HistoryEntry:
    id, payload = event.id, event.body
    if event.type == kinds.CONTEXT_ADDED:
        kind = payload.get("kind") or "generic"
        place = "prefix" if is_prefix_context(event) else "history"
        message = {"role": "user", "content": payload["content"]}
        return HistoryEntry(message, id, event.type, kind, place, event=event)
    if event.type == kinds.BRANCH_SUMMARY:
        text = f"{_BACK}\n<summary>\n{event.data['summary']}\n</summary>"
        return HistoryEntry({"role": "user", "content": text}, id, event.type, event=event)
    if isinstance(event, Summary) and payload.get("role") == "user" and results_of(payload) is None:
        return HistoryEntry(payload, id, event.type, "summary", "prefix", event=event)
    return HistoryEntry(payload, id, event.type, event=event)


def _normal(entry: HistoryEntry) -> HistoryEntry | None:
    """Return the entry with a role that every model knows; None when it says nothing."""
    message = entry.message
    role = message.get("role")
    if role in ("system", "developer"):
        message = {key: value for key, value in message.items() if key != "cache_control"} | {"role": "user"}
        return replace(entry, message=message)
    return entry if role in _ROLES else None


def _repaired(
    shown: list[HistoryEntry],
    read_tools: Callable[[int, int | None], Iterable[Event]],
    annotate: bool,
) -> list[HistoryEntry]:
    def lookup(at: int, end: int) -> dict[str, Record]:
        return _records(shown, at, end, read_tools)

    found: list[HistoryEntry] = []
    for at, what in rounds([entry.message for entry in shown], lookup):
        entry = shown[at]
        if not isinstance(what, Round):
            found += _said(entry, what)
            continue
        found += _said(entry, what.message)
        end = at + 1 + sum(answer.source is not None for answer in what.answers)
        records = lookup(at, end) if annotate else {}
        for answer in what.answers:
            record = records.get(answer.call.id or "") or answer.record
            source = HistoryEntry({}) if answer.source is None else shown[answer.source]
            if answer.record is not None:
                event = answer.record.completed
                source = HistoryEntry({}, event.id, event.type, event=event)
            tool = _tool(answer.call.id, answer.call.name, record) if annotate else None
            found.append(replace(source, message=answer.message, tool=tool))
    return found


def _said(entry: HistoryEntry, message: Message) -> list[HistoryEntry]:
    if message.get("role") == "assistant" and not has_payload(message):
        return []
    return [entry if message is entry.message else replace(entry, message=message)]


def _records(
    shown: list[HistoryEntry],
    at: int,
    end: int,
    read_tools: Callable[[int, int | None], Iterable[Event]],
) -> dict[str, Record]:
    """Return what the log knows of the calls of entry number ``at``: up to the next message of its turn, so
    that an id used again never gets a result of another turn."""
    caller = shown[at].event
    if caller is None or not caller.is_logged:
        return {}
    turn = None if caller.turn is None else caller.turn.seq
    until = next((e for e in map(_logged, shown[end:]) if e is not None and _follows(e, caller)), None)
    found: dict[str, Record] = {}
    for event in standing(read_tools(caller.seq, None if until is None else until.seq)):
        if (None if event.turn is None else event.turn.seq) == turn:
            _take(found, event)
    return found


def _logged(entry: HistoryEntry) -> Event | None:
    event = entry.event
    return event if event is not None and event.is_logged else None


def _follows(event: Event, caller: Event) -> bool:
    """Whether the event ends what belongs to the caller's calls."""
    if event.seq < caller.seq or event.type != kinds.MESSAGE_ADDED:
        return False
    return caller.turn is None or (event.turn is not None and event.turn.seq == caller.turn.seq)


def _take(found: dict[str, Record], event: Event) -> None:
    data = event.data
    id = data.get("id")
    if not isinstance(id, str) or not id:
        return
    known = found.get(id) or Record(data.get("tool", ""), None, None)
    key = data.get("idempotency_key") or known.key
    if event.type == kinds.TOOL_STARTED:
        found[id] = known._replace(args=data.get("args"), key=key)
    elif known.completed is None:
        output = data.get("output")
        text = output if output is None or isinstance(output, str) else str(output)
        found[id] = known._replace(key=key, completed=event, output=text, error=data.get("error"))


def _tool(id: str | None, name: str | None, record: Record | None) -> dict[str, Any]:
    """Return what is known of a result's call. Spec: 10 §A1.7."""
    facts: dict[str, Any] = {"id": id, "name": name}
    if record is not None:
        facts = {**facts, "name": name or record.tool, "args": record.args, "idempotency_key": record.key}
        if record.error:
            facts |= {"is_error": True, "error": record.error}
    return {key: value for key, value in facts.items() if value is not None}
