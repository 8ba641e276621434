"""Claude Code's transcripts: a JSON line for each piece of a message, and of what happened between them.

Read by what version 2.1 writes. A line has a `uuid`, and the `parentUuid` of the line that it stands behind;
what a model answered at once is several lines of one `message.id`. Spec: 10 §C17.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

from harnpy.formats.json import ordered_json
from harnpy.session import events as kinds
from harnpy.session.cuts import Cut, joined
from harnpy.session.errors import TransferError
from harnpy.session.events import MICROS, stamp
from harnpy.session.transfer import admission
from harnpy.session.transfer.admission import Loss, counted
from harnpy.session.transfer.anthropic_messages import from_anthropic, is_foreign, to_anthropic
from harnpy.session.transfer.blocks import ADDRESSES, text_of
from harnpy.session.transfer.foreign import Conversation, Entry, context, time_of

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
    chains: defaultdict[str | None, _Chain] = defaultdict(_Chain)
    whole: str | None = None
    for number, row in rows.each():
        if whole is None and isinstance(row.get("sessionId"), str):
            whole = f"{TOOL}-{row['sessionId']}"
        agent = str(row.get("agentId", "sidechain")) if row.get("isSidechain") else None
        try:
            chains[agent].take(number, row)
        except TransferError as error:
            rows.skip(str(error))
    if whole is None:
        raise TransferError("there is no line with a sessionId: this is no transcript of Claude Code")
    found = []
    for agent, chain in chains.items():
        id, parent = (whole, None) if agent is None else (f"{whole}-{agent}", whole)
        found.append(chain.conversation(id, parent, rows.notes))
    return found


class _Chain:
    """One chain of lines, which is read to its end before anything is made of it."""

    def __init__(self) -> None:
        self._left_out: Counter[str] = Counter()
        self._facts: Json = {}
        #: The lines of each entry, by the id of the first of them.
        self._groups: dict[str, list[Json]] = {}
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
        entries = [entry for first, lines in self._groups.items() for entry in self._entries(first, lines)]
        if self._left_out:
            kinds_left = ", ".join(f"{count} {kind}" for kind, count in sorted(self._left_out.items()))
            losses.append(Loss(id, "lines that are no messages", kinds_left))
        facts = {"agent_label": self._facts.pop("title")} if self._facts.get("title") else {}
        return Conversation(id, entries, facts, {"source": TOOL, **self._facts}, losses, parent)

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
        message = row.get("message")
        if kind in ("user", "assistant"):
            if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
                raise TransferError(f"line {number} has type '{kind}', and no message")
            if row.get("isCompactSummary") and behind is not None and behind in self._cuts:
                self._entry[uuid] = behind
                self._groups[behind].append(row)
                return
            said = message.get("id") if kind == "assistant" else None
            first = self._answers.setdefault(said, uuid) if isinstance(said, str) else uuid
            self._entry[uuid] = first
            self._groups.setdefault(first, []).append({**row, "after": behind, "time": time})
        elif kind == "system" and row.get("subtype") == _COMPACTED:
            self._entry[uuid] = uuid
            self._cuts.add(uuid)
            self._groups[uuid] = [{**row, "after": behind, "time": time}]
        elif kind == "attachment" and _file(row) is not None:
            self._entry[uuid] = uuid
            self._groups[uuid] = [{**row, "after": behind, "time": time}]
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
        """Return the entry that a line stands behind. Results of one answer stand behind one another."""
        parent = row.get("parentUuid") or row.get("logicalParentUuid")
        if parent is None:
            return None
        if parent not in self._entry:
            # The line before isn't in the file: this one begins a part of it.
            return None
        entry = self._entry[parent]
        if _is_result(row) and entry is not None:
            entry, self._results[entry] = self._results.get(entry, entry), str(row["uuid"])
        return entry

    def _entries(self, first: str, lines: list[Json]) -> Iterator[Entry]:
        row, last = lines[0], lines[-1]
        behind = self._name(row["after"])
        time: int = row["time"]
        if row["type"] == "system":
            yield Entry(last["uuid"], behind, time, kinds.COMPACTION_TRIGGERED, self._compaction(*lines))
        elif row["type"] == "attachment":
            data = context(_file(row) or "")
            yield Entry(first, behind, time, kinds.CONTEXT_ADDED, data)
        elif row.get("isMeta"):
            text = text_of(row["message"].get("content"))
            data = context(text)
            yield Entry(first, behind, time, kinds.CONTEXT_ADDED, data)
        else:
            message = _message(lines)
            told = {key: last["message"][key] for key in _TOLD if last["message"].get(key)}
            yield Entry(last["uuid"], behind, time, kinds.MESSAGE_ADDED, message, told)

    def _name(self, first: str | None) -> str | None:
        """Return the id of an entry: that of its last line, so that one which has grown is another."""
        return None if first is None else str(self._groups[first][-1]["uuid"])

    def _compaction(self, row: Json, *summaries: Json) -> Any:
        told = row.get("compactMetadata")
        kept = told.get("preservedMessages") if isinstance(told, dict) else None
        listed = kept.get("uuids") if isinstance(kept, dict) else None
        uuids = [uuid for uuid in listed if isinstance(uuid, str)] if isinstance(listed, list) else []
        preserved = [self._name(self._entry.get(uuid)) for uuid in uuids]

        def cut(numbers: Numbers, last: int) -> Cut:
            known = [number for each in dict.fromkeys(preserved) if each and (number := numbers(each))]
            items: list[Any] = [{"message": from_anthropic(each["message"])} for each in summaries]
            items += joined([[number, number] for number in known])
            return Cut.restored({"strategy": TOOL, "cutoff_seq": last, "entries": items})

        return cut


#: Lines about the tool's own state, which say nothing of the conversation.
_SILENT = frozenset({"queue-operation", "mode", "last-prompt", "file-history-snapshot", "permission-mode"})


def _message(lines: list[Json]) -> Json:
    """Return the message that lines of one answer are."""
    if lines[0]["type"] == "user":
        return from_anthropic(lines[0]["message"])
    blocks: list[Any] = []
    for row in lines:
        content = row["message"].get("content")
        blocks += content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
    message = from_anthropic({"role": "assistant", "content": blocks})
    model = lines[0]["message"].get("model")
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
        pieces = (
            [content] if message["role"] == "user" or isinstance(content, str) else [[b] for b in content]
        )
        for at, piece in enumerate(pieces, 1):
            uuid = uuid_of(id if at == len(pieces) else f"{id}:{at}")
            said: Json = {"role": message["role"], "content": piece}
            if message["role"] == "assistant":
                said = {**_answer(entry, uuid_of(id)), **said}
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


def _answer(entry: HistoryEntry, id: str) -> Json:
    """Return what a line says of a model's message beside its content."""
    origin = entry.message.get("origin")
    told = {} if entry.event is None else entry.event.metadata
    content = entry.message.get("content")
    calls = isinstance(content, list) and any(block.get("type") == "tool_use" for block in content)
    return {
        "id": f"msg_{id.replace('-', '')}",
        "type": "message",
        "model": origin["model"] if origin else _SYNTHETIC,
        "stop_reason": told.get("stop_reason", "tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": told.get("usage") or {"input_tokens": 0, "output_tokens": 0},
    }


def _unknown(message: Json) -> int:
    """Return how many blocks of a message only another service understands."""
    content = message.get("content")
    return sum(is_foreign(block) for block in content) if isinstance(content, list) else 0
