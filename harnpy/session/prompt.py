"""Prompts made from a session: its entries, the messages of a request, and the part that a cache can reuse.

Spec: 10 §C5, §C16.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.formats.json import compact_json
from harnpy.formats.tool_messages import RESULT_ROLES, calls_of, results_of
from harnpy.session import events as kinds
from harnpy.session.events import Payload, Summary
from harnpy.session.messages import Record, Round, has_payload, rounds
from harnpy.session.rewind import standing
from harnpy.session.window import is_prefix_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.messages import Message
    from harnpy.session.window import Window

    ReadTools = Callable[[int, int | None], Iterable[Event]]

# What a model is shown of a session: valid for every provider, whatever the log went through.
#
# Spec: 10 §A1.8, §C5.


#: How many files of each sort a working set names.
FILES_LIMIT = 5

_ROLES = ("user", "assistant", *RESULT_ROLES)
_PRIVILEGED = ("system", "developer")
_BACK = "The following is a summary of a branch that this conversation came back from:"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A message as a model is shown it, and where it comes from.

    ``event_id`` is empty for what no event says. Context has a ``context_kind`` and a ``placement``
    (``prefix`` or ``history``), a result what the log knows of its call: ``tool``. A system's message is the
    user's in ``message``, for readers that know no other, and the system's where it is ``spoken``.
    """

    message: Message
    event_id: str = ""
    event_type: str = ""
    context_kind: str | None = None
    placement: str | None = None
    tool: dict[str, Any] | None = None
    event: Event | None = None
    system: Message | None = None

    @property
    def spoken(self) -> Message:
        """The message under its own role, as a request has it."""
        return self.message if self.system is None else self.system

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


def entries_in_log_order(
    kept: Sequence[HistoryEntry],
    events: Iterable[Event],
    read_tools: Callable[[int, int | None], Iterable[Event]],
) -> list[HistoryEntry]:
    """Return what a reader shows that takes the ``events`` as they come, behind what a snapshot ``kept``, and
    pairs calls with results before it leaves out or moves anything (A1.8)."""
    paired = _repaired([*kept, *map(_entry, events)], read_tools, False, in_order=True)
    found = [normal for entry in paired if (normal := _normal(entry)) is not None]
    return sorted(found, key=lambda entry: not entry.is_prefix)


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
    """Return the entry with a role that every reader knows; None when it says nothing."""
    message = entry.message
    role = message.get("role")
    if role in _PRIVILEGED:
        return replace(entry, message=known_to_all(message), system=message)
    return entry if role in _ROLES else None


def known_to_all(message: Message) -> Message:
    """Return a message of the system as one of the user, and any other as it is."""
    if message.get("role") not in _PRIVILEGED:
        return message
    return {key: value for key, value in message.items() if key != "cache_control"} | {"role": "user"}


def _repaired(
    shown: list[HistoryEntry],
    read_tools: Callable[[int, int | None], Iterable[Event]],
    annotate: bool,
    *,
    in_order: bool = False,
) -> list[HistoryEntry]:
    """Pair calls with results. Those that the log knows stand before the next entry that follows the call.

    ``in_order``: as a reader does that moves no result up, and for which any entry follows.
    """

    def lookup(at: int, end: int) -> dict[str, Record]:
        return _records(shown, at, end, read_tools, _is_any if in_order else _follows)

    found: list[HistoryEntry] = []
    for at, what in rounds([entry.message for entry in shown], lookup, moves_up=not in_order):
        entry = shown[at]
        if not isinstance(what, Round):
            found += _said(entry, what)
            continue
        found += _said(entry, what.message)
        records = lookup(at, what.end) if annotate else {}
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
    return [entry if message is entry.message else replace(entry, message=message, system=None)]


def _records(
    shown: list[HistoryEntry],
    at: int,
    end: int,
    read_tools: Callable[[int, int | None], Iterable[Event]],
    follows: Callable[[Event, Event], bool],
) -> dict[str, Record]:
    """Return what the log knows of the calls of entry number ``at``: up to the next message of its turn, so
    that an id used again never gets a result of another turn."""
    caller = shown[at].event
    if caller is None or not caller.is_logged:
        return {}
    turn = None if caller.turn is None else caller.turn.seq
    until = next((e for e in map(_logged, shown[end:]) if e is not None and follows(e, caller)), None)
    found: dict[str, Record] = {}
    for event in standing(read_tools(caller.seq, None if until is None else until.seq)):
        if (None if event.turn is None else event.turn.seq) == turn:
            _take(found, event)
    return found


def _logged(entry: HistoryEntry) -> Event | None:
    event = entry.event
    return event if event is not None and event.is_logged else None


def _follows(event: Event, caller: Event) -> bool:
    """Return whether the event ends what belongs to the caller's calls."""
    if event.seq < caller.seq or event.type != kinds.MESSAGE_ADDED:
        return False
    return caller.turn is None or (event.turn is not None and event.turn.seq == caller.turn.seq)


def _is_any(event: Event, caller: Event) -> bool:
    return True


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


# The payload of ``step_started``, with what tells whether a provider's prompt cache can still be hit.
#
# Hashes are computed when somebody looks at them: in memory perhaps never, on a store with each step. A chain
# of them is carried along, one hash a message. Spec: 10 §C16.3.


class Prompt:
    """The part of a request beside its messages: ``system``, and ``tools`` as the provider gets them, or the
    text of their contract. ``parts`` are the registers from which a reader of the log makes both."""

    __slots__ = ("parts", "system", "tools")

    def __init__(
        self, system: str | None = None, tools: list[Dict] | str | None = None, parts: Dict | None = None
    ) -> None:
        self.system = system
        self.tools = tools
        self.parts = parts or {}

    def equals(self, other: Prompt) -> bool:
        return self is other or (self.system == other.system and self.tools == other.tools)


class PromptCache:
    """The common part of all requests to ``model`` with this ``prompt``: a list of ``messages`` that only
    grows, the first ``prefix`` of them context before the conversation."""

    __slots__ = ("_chain", "_messages", "_prefix", "_tools", "model", "prompt")

    def __init__(self, model: str, prompt: Prompt, messages: list[Dict], prefix: int) -> None:
        self.model = model
        self.prompt = prompt
        self._messages = messages
        self._prefix = prefix
        self._tools: str | None = None
        self._chain: list[str] = []  # of the prefix, then of each message

    def is_of(self, model: str, prompt: Prompt) -> bool:
        return self.model == model and self.prompt.equals(prompt)

    def at(self, count: int, fresh: Sequence[Dict] = ()) -> Dict:
        """Return what the log says of a request: the first ``count`` messages, and ``fresh`` behind them."""
        hash = self._upto(count)
        for message in fresh:
            hash = chained(hash, message)
        shown: Dict = {} if self._tools is None else {"tool_schema_hash": self._tools}
        numbers = {"stable_messages": count + len(fresh), "stable_hash": hash}
        return {**shown, "prefix_hash": self._chain[0], **numbers}

    def _upto(self, count: int) -> str:
        chain, messages = self._chain, self._messages
        if not chain:
            self._tools = tool_schema_hash(self.prompt.tools)
            prefix = messages[: self._prefix]
            chain.append(prefix_hash(self.model, self.prompt.system, self._tools, prefix))
        for message in messages[len(chain) - 1 : count]:
            chain.append(chained(chain[-1], message))
        return chain[count]


class StepStarted(Payload):
    """A model is about to be asked: ``facts``, and what its request has in common with others.

    The request has the first ``count`` messages of ``cache``, and ``fresh`` behind them: those that the same
    append holds.
    """

    __slots__ = ("_cache", "_count", "_fresh", "_shown", "facts")

    def __init__(self, facts: Dict, cache: PromptCache, count: int, fresh: Sequence[Dict]) -> None:
        self.facts = facts
        self._cache = cache
        self._count = count
        self._fresh = fresh
        self._shown: Dict | None = None

    def data(self, event: Event) -> Dict:
        if self._shown is None:
            self._shown = {**self.facts, "prompt_cache": self._cache.at(self._count, self._fresh)}
        return self._shown

    def stored(self, event: Event) -> Dict:
        return self.data(event)


def tool_schema_hash(tools: list[Dict] | str | None) -> str | None:
    """Return the hash of a list of tools or the text of their contract; None without tools."""
    if not tools:
        return None
    return _hash(tools if isinstance(tools, str) else compact_json(tools))


def prefix_hash(model: str, system: str | None, tools: str | None, prefix: Sequence[Dict]) -> str:
    """Return the hash of what stands before the conversation; ``tools`` is the hash of the tools."""
    return _hash(compact_json({"model": model, "system": system, "tools": tools, "prefix": prefix}))


def chained(before: str, message: Dict) -> str:
    """Return the hash of a message behind those whose hash is ``before``."""
    return _hash(before + compact_json(message))


def _hash(text: str) -> str:
    from hashlib import sha256

    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


# What a step's request is made of beside the conversation: registers of the log. Spec: 10 §C16.2.


#: The caller's system prompt, and what a definition and a loop add to it, in that order.
SYSTEM = "system_prompt"
DEFINITION = "settings.request.definition"
SKILLS = "settings.request.skills"
CONTRACT = "settings.request.contract"
PERSISTENCE = "settings.request.persistence"
#: The list of native tools.
TOOLS = "settings.request.tools"


def joined_system(part: Callable[[str], str | None]) -> str | None:
    """Return the system prompt that is sent; ``part`` returns the value of a register. Spec: 07 §6.2."""
    system = (part(SYSTEM) or "").strip()
    added = (part(DEFINITION), part(SKILLS), part(CONTRACT), part(PERSISTENCE))
    return "\n\n".join(filter(None, (system, *added))) or None


def memo_message(memo: Any) -> Dict:
    """Return the message that shows a model the session's memo."""
    text = memo if isinstance(memo, str) else compact_json(memo)
    content = f'<runtime_injection kind="memo">\n{text}\n</runtime_injection>'
    return {"role": "user", "content": content}


# The messages of a step's request: the window as a model gets it, kept from one request to the next.
#
# A conversation in order passes through: each new message is looked at once. What isn't in order, and
# whatever changes the window other than at its end, is a reason to show all of it anew. Spec: 10 §C16.2,
# §C16.4.


class WindowView(Protocol):
    """A view, as far as it matters here."""

    pins: tuple[int, ...]

    @property
    def window(self) -> Window: ...

    def entries(self, read_tools: ReadTools) -> list[HistoryEntry]: ...


class Stable:
    """``messages`` are those of `Session.window` under their own roles, each as ``convert`` makes it; the
    list only ever grows.

    The first ``prefix`` of them are context that stands before the conversation. ``cache`` is the prompt
    cache of the last step that sent them.
    """

    __slots__ = ("_calls", "_count", "_entries", "_seen", "_waits", "cache", "convert", "messages", "prefix")

    def __init__(self, view: WindowView, convert: Callable[[Message], Any], read_tools: ReadTools) -> None:
        shown = view.entries(read_tools)
        self.convert = convert
        self.messages = [convert(entry.spoken) for entry in shown]
        self.prefix = sum(entry.is_prefix for entry in shown)
        self.cache: PromptCache | None = None
        self._waits = _lacks_results(view, shown)
        self._entries = view.window.entries
        self._seen = self._state(view)
        self._count = len(view.window)
        self._calls: list[str | None] = []  # those of the last message that have no result yet

    def grows_to(self, view: WindowView) -> bool:
        """Take in what the view shows by now. Return False if it has to be shown anew."""
        window = view.window
        entries, seen = window.entries, self._count
        if entries is not self._entries or self._seen != self._state(view):
            return False
        count = len(entries)
        if seen < count:
            messages = window.messages()[seen:]
            for message in messages:
                if not _stable_follows(message, self._calls):
                    return False
            self.messages += map(self.convert, messages)
            self._count = count
        return not self._calls

    def takes(self, messages: Sequence[Message]) -> bool:
        """Return whether these messages may stand behind the others as they are."""
        calls = list(self._calls)
        for message in messages:
            if not _stable_follows(message, calls):
                return False
        return not calls

    def _state(self, view: WindowView) -> tuple[Any, ...]:
        """Return the facts that the window depends on beside its messages. A call that isn't shown, as it has
        no result, may get one from the log: then other events count, too."""
        window = view.window
        others = len(window.notes) if self._waits else 0
        return window.contexts, window.files, view.pins, others


def _lacks_results(view: WindowView, shown: list[HistoryEntry]) -> bool:
    """Return whether there are calls that aren't shown."""
    whole = {id(entry.message) for entry in shown}
    return any(id(message) not in whole and calls_of(message) for message in view.window.messages())


def _stable_follows(message: Message, calls: list[str | None]) -> bool:
    """Return whether a message may stand as it is behind those before it. ``calls`` are the ids of calls
    without result yet, before the message and, when this returns, behind it."""
    role, content = message.get("role"), message.get("content")
    if role == "user" and type(content) is str:
        return not calls
    if role == "assistant":
        if calls:
            return False
        if type(content) is str and "tool_calls" not in message and content.strip():
            return True
        calls += [call.id for call in calls_of(message)]
        named = [id for id in calls if id is not None]
        return len(set(named)) == len(named) if calls else has_payload(message)
    answered = results_of(message)
    if answered is None:
        return role == "user" and not calls
    if calls[: len(answered)] != answered:
        return False
    del calls[: len(answered)]
    return True
