"""Claude Code's transcripts: a JSON line for each piece of a message, and of what happened between them.

Read by what version 2.1 writes. A line has a `uuid`, and the `parentUuid` of the line that it stands behind;
what a model answered at once is several lines of one `message.id`. Spec: 10 §C17.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from harnpy.formats.json import ordered_json
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut, joined
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, stamp
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import Loss, counted
from harnpy.session.transfer.anthropic_messages import from_anthropic, is_foreign, to_anthropic
from harnpy.session.transfer.blocks import ADDRESSES, text_block, text_of
from harnpy.session.transfer.foreign import Conversation, Entry, context, summary, time_of
from harnpy.session.transfer.message_formats import REASONING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.transfer.foreign import Json, Numbers, Rows

TOOL = "claude-code"
#: The model of answers that Claude Code made up itself.
_SYNTHETIC = "<synthetic>"
_COMPACTED = "compact_boundary"
#: Of a message, what its event's metadata says.
_TOLD = ("usage", "stop_reason")


def is_transcript(row: Json) -> bool:
    """Return whether a line is one of a transcript."""
    return isinstance(row.get("sessionId"), str) and isinstance(row.get("type"), str)


def conversations(rows: Rows) -> list[Conversation]:
    """Return the conversation of a transcript, and those of the agents that it asked (sidechains).

    Raises `TransferError`.
    """
    chains: defaultdict[str | None, _Chain] = defaultdict(lambda: _Chain(rows))
    whole: str | None = None
    for number, row in rows.each():
        if whole is None and isinstance(row.get("sessionId"), str):
            whole = f"{TOOL}-{row['sessionId']}"
        agent = str(row.get("agentId", "sidechain")) if row.get("isSidechain") else None
        rows.give(chains[agent].take, number, row)
    if whole is None:
        raise TransferError("there is no line with a sessionId: this is no transcript of Claude Code")
    found = []
    for agent, chain in chains.items():
        id, parent = (whole, None) if agent is None else (f"{whole}-{agent}", whole)
        found.append(chain.conversation(id, parent, rows.notes))
    return found


class _Line(NamedTuple):
    """What is kept of a line: ``at`` is where it is in the file, and is read again."""

    at: int
    uuid: str
    type: str
    is_meta: bool
    after: str | None
    time: int


class _Chain:
    """One chain of lines, which is read to its end before anything is made of it: then it yields entries."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._left_out: Counter[str] = Counter()
        self._facts: Json = {}
        #: The lines of each entry, by the id of the first of them.
        self._groups: dict[str, list[_Line]] = {}
        #: The entry that a line is of, or stands behind if it is of none; None for the beginning.
        self._entry: dict[str, str | None] = {}
        #: The last entry of the results of one answer.
        self._results: dict[str, str] = {}
        #: The entries that are compactions: a line for it, and one for the summary.
        self._cuts: set[str] = set()
        #: The first line of each answer, by the service's id of it.
        self._answers: dict[str, str] = {}

    def conversation(self, id: str, parent: str | None, notes: Sequence[str]) -> Conversation:
        losses = [Loss(id, "lines", note) for note in notes]
        if self._left_out:
            kinds_left = ", ".join(f"{count} {kind}" for kind, count in sorted(self._left_out.items()))
            losses.append(Loss(id, "lines that are no messages", kinds_left))
        facts = {"agent_label": self._facts.pop("title")} if self._facts.get("title") else {}
        return Conversation(id, self, facts, {"source": TOOL, **self._facts}, losses, parent)

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, entry: object) -> bool:
        return any(each == entry for each in self)

    def __iter__(self) -> Iterator[Entry]:
        for lines in self._groups.values():
            first, last = lines[0], lines[-1]
            type, data, told = kinds.CONTEXT_ADDED, partial(self._data, lines), None
            if first.type == "system":
                type = kinds.COMPACTION_TRIGGERED
            elif first.type != "attachment" and not first.is_meta:
                type, told = kinds.MESSAGE_ADDED, partial(self._told, last.at)
            yield Entry(last.uuid, self._name(first.after), first.time, type, data, told)

    def take(self, number: int, row: Json) -> None:
        """Find the entry that a line is of. Raises `TransferError` for a line that makes no sense."""
        kind, uuid = row.get("type"), row.get("uuid")
        for key, name in (("cwd", "cwd"), ("version", "version"), ("gitBranch", "git_branch")):
            if isinstance(row.get(key), str):
                self._facts[name] = row[key]
        if not isinstance(uuid, str):
            self._title(row)
            return
        if uuid in self._entry:
            self._left_out["lines twice"] += 1
            return
        time = time_of(number, row)
        behind = self._behind(row)
        after = self._results.get(behind, behind) if behind is not None and _is_result(row) else behind
        line = _Line(self._rows.at, uuid, str(kind), bool(row.get("isMeta")), after, time)
        self._rows.keep(row)
        message = row.get("message")
        if kind in ("user", "assistant"):
            if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
                self._entry[uuid] = behind  # where what comes behind it stands, if a part is enough
                raise TransferError(f"line {number} has type '{kind}', and no message")
            if row.get("isCompactSummary") and behind is not None and behind in self._cuts:
                self._entry[uuid] = behind
                self._groups[behind].append(line)
                return
            said = message.get("id") if kind == "assistant" else None
            first = self._answers.setdefault(said, uuid) if isinstance(said, str) else uuid
            self._entry[uuid] = first
            self._groups.setdefault(first, []).append(line)
            if behind is not None and _is_result(row):
                self._results[behind] = first
        elif kind == "system" and row.get("subtype") == _COMPACTED:
            self._entry[uuid] = uuid
            self._cuts.add(uuid)
            self._groups[uuid] = [line]
        elif kind == "attachment" and _file(row) is not None:
            self._entry[uuid] = uuid
            self._groups[uuid] = [line]
        else:
            self._left_out[_sort(row)] += 1
            self._entry[uuid] = behind

    def _title(self, row: Json) -> None:
        """Take in a line that is about the conversation as a whole."""
        for key in ("customTitle", "summary", "aiTitle"):
            if isinstance(row.get(key), str):
                self._facts["title"] = row[key]
                return
        if row.get("type") not in _SILENT:
            self._left_out[_sort(row)] += 1

    def _behind(self, row: Json) -> str | None:
        """Return the entry that a line stands behind; results of one answer stand behind one another. None:
        it begins the conversation, or a part of one whose line before isn't in the file."""
        parent = row.get("parentUuid") or row.get("logicalParentUuid")
        if parent is None or parent in self._entry or not self._rows.notes:
            return None if parent is None else self._entry.get(parent)
        return next(reversed(self._entry.values()), None)  # the line before may be one that can't be read

    def _data(self, lines: list[_Line], numbers: Numbers, last: int) -> Any:
        """Return the data of an entry's event."""
        if lines[0].type == "system":
            return self._compaction(lines, numbers, last)
        rows = self._read(lines)
        if lines[0].type == "attachment":
            return context(_file(rows[0]) or "")
        return context(text_of(rows[0]["message"].get("content"))) if lines[0].is_meta else _message(rows)

    def _read(self, lines: list[_Line]) -> list[Json]:
        rows = [self._rows.again(line.at) for line in lines]
        if [row.get("uuid") for row in rows] != [line.uuid for line in lines]:
            raise TransferError("the file has changed while it was read")
        return rows

    def _told(self, at: int) -> Json:
        """Return what the metadata says of a message: its last line does."""
        message = self._rows.again(at)["message"]
        return {key: message[key] for key in _TOLD if message.get(key)}

    def _name(self, first: str | None) -> str | None:
        """Return the id of an entry: that of its last line, so that one which has grown is another."""
        return None if first is None else self._groups[first][-1].uuid

    def _compaction(self, lines: list[_Line], numbers: Numbers, last: int) -> Cut:
        row, *summaries = self._read(lines)
        told = row.get("compactMetadata")
        kept = told.get("preservedMessages") if isinstance(told, dict) else None
        listed = kept.get("uuids") if isinstance(kept, dict) else None
        uuids = [uuid for uuid in listed if isinstance(uuid, str)] if isinstance(listed, list) else []
        preserved = [self._name(self._entry.get(uuid)) for uuid in uuids]
        known = [number for each in dict.fromkeys(preserved) if each and (number := numbers(each))]
        items: list[Any] = [summary(from_anthropic(each["message"])) for each in summaries]
        items += joined([[number, number] for number in known])
        return Cut.restored({"strategy": TOOL, "cutoff_seq": last, "entries": items})


#: Lines about the tool's own state, which say nothing of the conversation.
_SILENT = frozenset({"queue-operation", "mode", "last-prompt", "file-history-snapshot", "permission-mode"})


def _message(rows: list[Json]) -> Json:
    """Return the message that the lines of one answer are."""
    if rows[0]["type"] == "user":
        return from_anthropic(rows[0]["message"])
    blocks: list[Any] = []
    for row in rows:
        content = row["message"].get("content")
        blocks += content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
    message = from_anthropic({"role": "assistant", "content": blocks})
    model = rows[0]["message"].get("model")
    if isinstance(model, str) and model != _SYNTHETIC:
        message["origin"] = {"dialect": "anthropic", "base_url": ADDRESSES["anthropic"], "model": model}
    return message


def _is_result(row: Json) -> bool:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _file(row: Json) -> str | None:
    """Return the text of a file that a user has attached; None for other attachments."""
    given = row.get("attachment")
    if not isinstance(given, dict) or given.get("type") != "file":
        return None
    content = given.get("content")
    file = content.get("file") if isinstance(content, dict) else None
    text = file.get("content") if isinstance(file, dict) else None
    if not isinstance(text, str):
        return None
    return f'<file path="{given.get("filename", "")}">\n{text}\n</file>'


def _sort(row: Json) -> str:
    """Return what a line that is no message is called."""
    kind = str(row.get("type"))
    given = row.get("attachment")
    if isinstance(given, dict):
        return f"{given.get('type')} {kind}"
    return f"{row['subtype']} {kind}" if row.get("subtype") else kind


# Writing. A model's message is a line for each of its blocks, as Claude Code has them.


_UUID = 36
#: The version whose lines these are.
_VERSION = "2.1.197"


def dumps(session: Session) -> str:
    """Return what a model is shown of a session, as a transcript that Claude Code resumes."""
    return "".join(ordered_json(line) + "\n" for line in _lines(session))


def lost(session: Session) -> list[Loss]:
    """Return what of a session its transcript doesn't hold."""
    found = admission.lost(session, ())
    thoughts = sum(_unknown(entry.message) for entry in session.entries())
    if thoughts:
        found.append(Loss(session.id, "thoughts of other services", counted(thoughts, "block")))
    return found


def uuid_of(id: str) -> str:
    """Return an id as a UUID: what it ends with, as it was imported, else one that is made of it."""
    try:
        return str(UUID(id[-_UUID:]))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"harn:{id}"))


def _lines(session: Session) -> Iterator[Json]:
    metadata = session.metadata
    base = {
        "isSidechain": False,
        "userType": "external",
        "cwd": metadata.get("cwd") or session.origin.world.files.cwd(),
        "sessionId": uuid_of(session.id),
        "version": _VERSION,
        "gitBranch": metadata.get("git_branch", ""),
    }
    before: str | None = None
    for number, entry in enumerate(session.entries()):
        message = to_anthropic(entry.message)
        content = message["content"]
        if content in ("", []):
            continue
        id = entry.event_id or f"{session.id}:{number}"
        time = session.moment if entry.event is None else entry.event.moment
        if message["role"] == "assistant" and isinstance(content, str):
            content = [text_block(content)]  # Claude Code has no other form
        pieces = [content] if message["role"] == "user" else [[block] for block in content]
        for at, piece in enumerate(pieces, 1):
            uuid = uuid_of(id if at == len(pieces) else f"{id}:{at}")
            said: Json = {"role": message["role"], "content": piece}
            if message["role"] == "assistant":
                said = {**_answer(entry, uuid_of(id), content), **said}
            yield {
                "parentUuid": before,
                **base,
                "type": message["role"],
                "message": said,
                "uuid": uuid,
                "timestamp": stamp(round(time * MICROS))[:23] + "Z",
                **({"isMeta": True} if entry.event_type == kinds.CONTEXT_ADDED else {}),
            }
            before = uuid


def _answer(entry: HistoryEntry, id: str, content: list[Json]) -> Json:
    """Return what a line says of a model's message beside its content."""
    origin = entry.message.get("origin")
    told = {} if entry.event is None else entry.event.metadata
    calls = any(block.get("type") == "tool_use" for block in content)
    return {
        "id": f"msg_{id.replace('-', '')}",
        "type": "message",
        "model": origin["model"] if origin else _SYNTHETIC,
        "stop_reason": told.get("stop_reason", "tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": told.get("usage") or {"input_tokens": 0, "output_tokens": 0},
    }


def _unknown(message: Json) -> int:
    """Return how many thoughts of a message only another service understands, or nobody signed."""
    content, unsigned = message.get("content"), len(message.keys() & set(REASONING))
    return unsigned + (sum(map(is_foreign, content)) if isinstance(content, list) else 0)
