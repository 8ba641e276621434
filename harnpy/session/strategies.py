"""The resize strategies by name, and what each wants to change. Spec: 10 §C8, §A1.17, §A2.4."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harnpy.faults import paced
from harnpy.formats.dicts import detached
from harnpy.formats.json import pretty_json
from harnpy.formats.tool_messages import RESULT_ROLES, calls_of, results_of
from harnpy.session import compaction
from harnpy.session import events as kinds
from harnpy.session.arguments import checked
from harnpy.session.compaction import (
    STRATEGIES,
    Compaction,
    CompactPolicy,
    conversation_lines,
    estimate_tokens,
    last_text,
    length_of,
    printed_length,
)
from harnpy.session.cuts import RESIZE, Cut
from harnpy.session.errors import ResizeError, SessionConflict
from harnpy.session.events import ARTIFACT_RECORDED, BRANCH_SUMMARY, EventDraft, Summary
from harnpy.session.messages import as_dict
from harnpy.session.pairs import Pairs
from harnpy.session.resize_policy import CLEAR, Size
from harnpy.session.rewind import pinned_entries
from harnpy.session.window_rewriting import Rewritten, key_of, rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.resize_policy import Artifacts, ResizePolicy

    Message = dict[str, Any]

# What a resize needs of a session. Spec: 10 §C8.


T = TypeVar("T")

# What one resize works on: the session as it stood when the resize began. Spec: 10 §C8.


class StrategyInput:
    """``entries`` are those of the window up to an assistant's message whose calls are still open, which
    stays with all that follows.

    ``pinned`` are the numbers of the entries that stay in any case, ``made`` those of summaries.
    """

    def __init__(self, session: Session, settings: Mapping[str, Any]) -> None:
        window = session.view.window
        shown = window.entries.items()
        self.session_id = session.id
        self.settings = settings
        self.memo = session.memo
        self.entries: list[Event] = list(shown[: _open_at(session, shown)])
        pins = set(session.view.pins)
        self.pinned = {
            number for number, entry in enumerate(self.entries) if entry.is_logged and entry.seq in pins
        }
        self.made = {number for number, entry in enumerate(self.entries) if isinstance(entry, Summary)}
        self._behind = [entry.body for entry in shown[len(self.entries) :]]
        self._beside = _beside(session)
        self.size = _size([*(entry.body for entry in shown), *self._beside])
        self._session_window = window

    @cached_property
    def past(self) -> list[Event]:
        """The entries of the history."""
        return self._session_window.history()

    @cached_property
    def full(self) -> list[Message]:
        """Copies of the history's messages."""
        return [detached(entry.body) for entry in self.past]

    @cached_property
    def window(self) -> list[Message]:
        """Copies of the entries' messages."""
        return [detached(entry.body) for entry in self.entries]

    def arguments(self) -> tuple[list[Message], list[Message], Any, Mapping[str, Any]]:
        """Return what a handler is given."""
        return list(self.full), list(self.window), detached(self.memo), self.settings

    def given(self) -> Iterator[tuple[Message, Event]]:
        """Yield the copies that were handed out, each with its entry; those of the window last."""
        if "full" in vars(self):
            yield from zip(self.full, self.past, strict=True)
        yield from zip(self.window, self.entries, strict=True)

    def room(self, max_length: int) -> int:
        """Return what ``max_length`` leaves to the messages: context, pinned ones, and what stands behind
        the entries are counted first."""
        pinned = [self.window[number] for number in self.pinned]
        return max(0, max_length - length_of([*self._behind, *self._beside, *pinned]))


def size_of(session: Session) -> Size:
    """Return how much of the session a model is shown."""
    return _size([*session.view.window.messages(), *_beside(session)])


def _size(messages: list[Message]) -> Size:
    return Size(len(messages), length_of(messages), estimate_tokens(messages))


def _beside(session: Session) -> list[Message]:
    """Return what a model is shown that isn't among the window's messages: context, and pinned messages that
    a cut has taken out."""
    window, pins = session.view.window, session.view.pins
    keys = ((event, "summary" if event.type == BRANCH_SUMMARY else "content") for _, event in window.contexts)
    found = [{"role": "user", "content": event.data[key]} for event, key in keys]
    return found + ([entry.body for entry in pinned_entries(window, pins)] if pins else [])


def _open_at(session: Session, shown: list[Event]) -> int:
    """Return the number of the first message whose calls may still be answered, or of none."""
    running = session.view.open_turns
    answered: set[str | None] = set()
    found = len(shown)
    only_results = True
    for number in range(len(shown) - 1, -1, -1):
        entry = shown[number]
        results = results_of(entry.body)
        if results is not None:
            answered.update(results)
            continue
        runs = entry.turn is not None and entry.turn.seq in running
        calls = calls_of(entry.body) if only_results or runs else []
        if any(call.id not in answered for call in calls):
            found = number
        only_results = False
        if not running:
            break
    return found


# What a strategy wants, as one append: the events of a resize. Spec: 10 §C8.


def carry_out(
    session: Session,
    seen: StrategyInput,
    strategy: str,
    outcome: Change | Compaction,
    started: EventDraft,
    turn: Event | None = None,
) -> int | None:
    """Append what the outcome changes, behind ``started``. Return the number of events, 0 if nothing changes;
    None when it is stale: somebody took something away of what it is about.

    Raises `ResizeError` for what is no message, `EventRejected` for what isn't JSON.
    """
    wanted = outcome if isinstance(outcome, Compaction) else _Wanted(session, seen, outcome)

    def attempt() -> int | None:
        if isinstance(wanted, Compaction):
            drafts = _compaction(session, seen, wanted)
        else:
            drafts = wanted.drafts(session, strategy)
        if not drafts:
            return None if drafts is None else 0
        for draft in (started, *drafts):
            draft.turn = turn
        events = session.write(started, *drafts, expected_version=session.version)
        for event in events:
            if isinstance(event.body, Cut):
                event.body.identify(event)
        return len(events)

    while True:
        session.refresh()
        try:
            return session.locked(attempt)
        except SessionConflict:
            continue  # made again for what the log is now


def _compaction(session: Session, seen: StrategyInput, compaction: Compaction) -> list[EventDraft] | None:
    if not session.view.window.begins_with(seen.entries[: compaction.split]):
        return None
    return [EventDraft(kinds.COMPACTION_TRIGGERED, session.compaction_cut(compaction))]


class _Wanted:
    """A change whose messages are told apart: the session's own, and new ones."""

    def __init__(self, session: Session, seen: StrategyInput, change: Change) -> None:
        known = {id(copy): (copy, entry) for copy, entry in seen.given()}

        def entries(messages: list[Any] | None, before: str) -> list[Event] | None:
            if messages is None:
                return None
            found = list(_entries(session, messages, known))
            return None if _same(found, getattr(seen, before)) else found

        self.seen = seen
        self.window = entries(change.window, "entries")
        self.full = entries(change.full, "past")
        memo = None if change.memo is CLEAR else change.memo
        self.sets_memo = (change.memo is not None) and memo != seen.memo
        self.memo = checked(memo)
        self.facts = change.facts

    def drafts(self, session: Session, strategy: str) -> list[EventDraft] | None:
        """Return the events that make the change of what the session is now; None when it is stale."""
        drafts: list[EventDraft] = []
        if self.window is not None or self.full is not None:
            former = session.view.window
            shown, history = former.entries.items(), former.history()
            if not _has_all(shown, self.seen.entries):
                return None
            if self.full is not None and not _has_all(history, self.seen.past):
                return None
            entries = shown
            if self.window is not None:
                entries = [*self.window, *_without(shown, self.seen.entries)]
            is_trim = self.full is None and _same(entries, shown[len(shown) - len(entries) :])
            window = former.trimmed(len(entries)) if is_trim else rewritten(former, entries)
            if self.full is None:
                cut = Cut(strategy, window, former, cutoff=session.stream.last(), rewrites=not is_trim)
                drafts.append(EventDraft(kinds.COMPACTION_TRIGGERED, cut))
            else:
                window.past = [*self.full, *_without(history, self.seen.past)], None
                window.repeated = len(window)
                drafts.append(EventDraft(kinds.HISTORY_REPLACED, Cut(RESIZE, window, former, rewrites=True)))
        if self.sets_memo:
            drafts.append(session.setting("memo", self.memo))
        return [*self.facts, *drafts] if drafts else []


def _entries(
    session: Session, messages: Iterable[Any], known: dict[int, tuple[Message, Event]]
) -> Iterable[Event]:
    """Yield the entry of each message: its own if it is one that the strategy was given, unchanged, for the
    first time."""
    used: set[tuple[bool, int]] = set()
    for message in messages:
        copy, entry = known.get(id(message), (None, None))
        if entry is not None and copy == entry.body and key_of(entry) not in used:
            used.add(key_of(entry))
            yield entry
        else:
            yield Rewritten(session.origin, detached(_message(message)))


def _message(given: Any) -> Message:
    """Return a message that a strategy made. Raises `ResizeError`, `EventRejected`."""
    given = as_dict(given)
    if not isinstance(given, dict) or not isinstance(given.get("role", ""), str):
        kind = "a role that is no text" if isinstance(given, dict) else type(given).__name__
        raise ResizeError(f"a resize strategy must return messages, dicts with a string `role`: got {kind}")
    message: Message = checked({"role": "user", **given})
    return message


def _same(entries: Sequence[Event], before: Sequence[Event]) -> bool:
    return list(map(key_of, entries)) == list(map(key_of, before))


def _has_all(entries: Sequence[Event], wanted: Sequence[Event]) -> bool:
    """Return whether the wanted ones are still among the entries. Some may have been read again meanwhile."""
    return {entry.id for entry in wanted} <= {entry.id for entry in entries}


def _without(entries: Sequence[Event], seen: Sequence[Event]) -> list[Event]:
    known = {entry.id for entry in seen}
    return [entry for entry in entries if entry.id not in known]


# The files that a conversation's tools have read and modified, over all its summaries. Spec: 10 §A1.17.


_READ = frozenset({"read", "read_file", "view"})
_MODIFIED = frozenset({"write", "write_file", "edit", "edit_file", "apply_patch", "delete_file"})
_PATHS = ("path", "file_path", "file")
_BLOCK = "<{0}>\n{1}\n</{0}>"


def files_of(messages: Sequence[Message]) -> list[str]:
    """Return the blocks that name the files: ``<read-files>``, ``<modified-files>``, as far as there are any.

    A file both read and modified counts as modified.
    """
    read, modified = _listed(messages, "read-files"), _listed(messages, "modified-files")
    for name, path in _calls(messages):
        if name in _READ:
            read.add(path)
        elif name in _MODIFIED:
            modified.add(path)
    blocks = (("read-files", read - modified), ("modified-files", modified))
    return [_BLOCK.format(name, "\n".join(sorted(paths))) for name, paths in blocks if paths]


def _listed(messages: Iterable[Message], name: str) -> set[str]:
    """Return the files that earlier summaries name."""
    pattern = re.compile(rf"^<{name}>\n(.*?)\n</{name}>$", re.DOTALL | re.MULTILINE)
    texts = (message.get("content") for message in messages if message.get("role") == "user")
    summaries = (text for text in texts if isinstance(text, str) and "<conversation_summary>" in text)
    return {path for text in summaries for found in pattern.findall(text) for path in found.split("\n")}


def _calls(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """Yield the tool's name and the path of each call that names one."""
    for message in messages:
        listed, content = message.get("tool_calls"), message.get("content")
        calls = [*(listed if isinstance(listed, list) else ())]
        calls += content if isinstance(content, list) else ()
        for call in calls:
            name, arguments = _parts(call)
            path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), None)
            if name and path:
                yield name, path


def _parts(call: Any) -> tuple[str | None, dict[str, Any]]:
    if not isinstance(call, dict):
        return None, {}
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    name, given = said.get("name"), said.get("arguments", said.get("input"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    return (name if isinstance(name, str) else None), (given if isinstance(given, dict) else {})


# Shortening one long text to its beginning, its end, and the lines that report errors.
#
# Lengths are UTF-8 bytes. Spec: 08 §4.10.


MAX_CHARS = 20000
_LEAST_LIMIT = 200
_LINES_KEPT = 32
_LEAST_SIDE = 80

_FAILURE = re.compile(r"FAIL|panic|Panic")
_POSITION = re.compile(r"[^:]*:[0-9]")
_AT_POSITION = re.compile(r"error|undefined|expected|got")
_AT_POSITION_ANY_CASE = (
    "cannot find",
    "not found",
    "no such",
    "unresolved",
    "missing",
    "declared but not used",
    "unused",
    "mismatch",
)
_OPENING = ("error:", "warning:", "note:")


def microcompact(text: str, limit: int = MAX_CHARS) -> str:
    """Return ``text`` in about ``limit`` bytes; unchanged if it is no longer, or if the limit is tiny."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit or limit < _LEAST_LIMIT:
        return text
    diagnostics = "\n".join([line for line in paced(text.split("\n")) if _is_diagnostic(line)][:_LINES_KEPT])
    if diagnostics:
        size = len(diagnostics.encode("utf-8", "surrogatepass"))
        side = max(0, limit - (size + 64)) // 2
        if side >= _LEAST_SIDE and len(data) > 2 * side:
            head, tail = _head(data, side), _tail(data, side)
            kept = f"[diagnostic lines preserved]\n{diagnostics}\n\n[... output compacted ...]"
            return f"{head}\n\n{kept}\n\n{tail}"
    head, tail = _head(data, limit // 2), _tail(data, limit // 2)
    snipped = (
        len(data) - len(head.encode("utf-8", "surrogatepass")) - len(tail.encode("utf-8", "surrogatepass"))
    )
    return f"{head}\n\n[... {snipped} characters snipped ...]\n\n{tail}"


def _is_diagnostic(line: str) -> bool:
    line = line.strip()
    if _FAILURE.search(line):
        return True
    lowered = line.lower()
    if _POSITION.match(line) and (
        _AT_POSITION.search(line) or any(words in lowered for words in _AT_POSITION_ANY_CASE)
    ):
        return True
    return " error " in lowered or "panic:" in lowered or lowered.startswith(_OPENING)


def _head(data: bytes, size: int) -> str:
    """Return the first ``size`` bytes up to and including their last line break."""
    head = data[:size]
    end = head.rfind(b"\n") + 1
    return (head[:end] if end else head).decode("utf-8", "ignore")


def _tail(data: bytes, size: int) -> str:
    """Return the last ``size`` bytes, from after their first line break if text follows it."""
    tail = data[len(data) - size :].decode("utf-8", "ignore")
    line_break = tail.find("\n")
    return tail[line_break + 1 :] if 0 <= line_break < len(tail) - 1 else tail


# `offload` and `summarize`: what becomes of the turns behind the last few users' turns. Spec: 10 §A1.17.


#: Tool outputs of more characters are offloaded.
LONG_OUTPUT = 1000
KIND = "context_offload"

_SUMMARY = re.compile(r"<conversation_summary>\n(.*)\n</conversation_summary>", re.DOTALL)
_PROMPT = (
    "Summarize the conversation below, so that another agent can go on with it: keep goals, limits, "
    "decisions, finished tool work, open problems and next steps. Answer with the summary alone."
)
_UPDATE = "It goes on from this summary: keep what still holds of it, and add what is new."


def older_turns(seen: StrategyInput, keep_turns: int) -> int:
    """Return how many messages stand before the last ``keep_turns`` users' turns; 0 if there are no more."""
    starts = [number for number, message in enumerate(seen.window) if _begins_turn(seen, number, message)]
    if len(starts) <= keep_turns:
        return 0
    return starts[-keep_turns] if keep_turns else len(seen.window)


def _begins_turn(seen: StrategyInput, number: int, message: Message) -> bool:
    return message.get("role") == "user" and number not in seen.made and results_of(message) is None


# Offload.


def offload(seen: StrategyInput, policy: ResizePolicy) -> tuple[list[Message], list[dict[str, Any]]]:
    """Put long tool outputs of older turns into artifacts. Return the window's messages with references to
    them, and the artifacts' descriptors."""
    if policy.artifacts is None:
        raise ResizeError('resize strategy "offload" needs an artifact store: give the policy `artifacts`')
    older = older_turns(seen, policy.min_keep_turns)
    descriptors: list[dict[str, Any]] = []
    keep = _keeper(policy.artifacts, seen.session_id, descriptors)
    shorter = [_offloaded(message, keep) for message in seen.window[:older]]
    return [*shorter, *seen.window[older:]], descriptors


def _keeper(
    artifacts: Artifacts, session_id: str, descriptors: list[dict[str, Any]]
) -> Callable[[str, str], str]:
    def keep(text: str, tool: str) -> str:
        given = {"kind": KIND, "mime_type": "text/plain", "producer_session_id": session_id}
        if tool:
            given["label"] = tool
        descriptors.append(artifacts.put(given, text.encode("utf-8", "surrogatepass")))
        return f"[Content offloaded to {descriptors[-1]['uri']}. Use read_offload tool to retrieve.]"

    return keep


def _offloaded(message: Message, keep: Callable[[str, str], str]) -> Message:
    """Return the message with references in place of its long tool outputs: itself if it has none."""
    if message.get("role") in RESULT_ROLES:
        return _kept(message, keep)
    content = message.get("content")
    if results_of(message) is None or not isinstance(content, list):
        return message
    blocks = [_kept(block, keep) if _is_result(block) else block for block in content]
    is_same = all(one is other for one, other in zip(blocks, content, strict=True))
    return message if is_same else {**message, "content": blocks}


def _kept(result: Message, keep: Callable[[str, str], str]) -> Message:
    text, name = result.get("content"), result.get("name")
    if not isinstance(text, str) or len(text) <= LONG_OUTPUT:
        return result
    return {**result, "content": keep(text, name if isinstance(name, str) else "")}


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


# Summarize.


def summarize(seen: StrategyInput, policy: ResizePolicy, ask: Callable[[str], str]) -> Compaction | None:
    """Replace older turns with a summary that ``ask(prompt)`` writes, going on from an earlier one. None when
    there are too few turns."""
    older = older_turns(seen, policy.min_keep_turns)
    archived = seen.window[:older]
    if older <= len([number for number in seen.made if number < older]):
        return None
    former = _former_summary(seen, older)
    news = [message for number, message in enumerate(archived) if number not in seen.made or former is None]
    parts = [_PROMPT] if former is None else [_PROMPT, _UPDATE, _said(former)]
    reply = ask("\n\n".join([*parts, f"Conversation:\n{conversation_lines(news, only_text=True)}"])).strip()
    if not reply:
        raise ResizeError('resize strategy "summarize": the model\'s summary is empty')
    text = "\n\n".join([*files_of(archived), _said(reply)])
    message = {"role": "user", "content": text}
    after = estimate_tokens([message, *seen.window[older:]])
    return Compaction(0, older, text, "summarize", estimate_tokens(seen.window), after)


def _said(summary: str) -> str:
    return f"<conversation_summary>\n{summary}\n</conversation_summary>"


def _former_summary(seen: StrategyInput, older: int) -> str | None:
    for number in sorted(seen.made):
        content = seen.window[number].get("content")
        found = _SUMMARY.search(content) if number < older and isinstance(content, str) else None
        if found is not None:
            return found[1]
    return None


# `simple_cut`: the newest messages that fit, whole. Spec: 10 §A2.4.


def simple_cut(
    messages: Sequence[Message], limit: int, room: int | None = None, free: Collection[int] = ()
) -> list[Message]:
    """Return the newest messages whose printed lengths add up to ``room`` at most (None: the ``limit``).

    If not even the newest fits, return it with that many last characters of its text (with ``limit`` ones
    where there is no room at all), and with its call, if it is a result. Those whose numbers are ``free``
    take no room. Calls and results never part.
    """
    room = limit if room is None else room
    start = taken = len(messages)
    total = 0
    for number in range(taken - 1, -1, -1):
        if number not in free:
            total += printed_length(messages[number])
        if total > room:
            break
        start = number
    pairs = Pairs(messages)
    start = pairs.open_cut(start)
    while start in pairs.orphans:
        start = pairs.open_cut(start + 1)
    if start < len(messages) or not messages:
        return list(messages[start:])
    return _shortened(messages[_last_round(pairs, len(messages)) :], room or limit)


def _last_round(pairs: Pairs, count: int) -> int:
    """Return the number of the newest message, or of the call that it can't be parted from."""
    start = count - 1
    while pairs.spans[start]:
        start -= 1
    return start


def _shortened(messages: Sequence[Message], room: int) -> list[Message]:
    """Give the room to the texts, the newest first."""
    kept = []
    for message in reversed(messages):
        shorter, room = last_text(message, room)
        kept.append(shorter)
    return kept[::-1]


# The strategies by name, and what they want to change. Spec: 10 §C8.


class Change(NamedTuple):
    """A replacement for history, window and memo; None leaves one as it is.

    ``facts`` are written before it.
    """

    full: list[Any] | None = None
    window: list[Any] | None = None
    memo: Any = None
    facts: tuple[EventDraft, ...] = ()


def _simple_cut(seen: StrategyInput, policy: ResizePolicy) -> Change:
    limit = policy.max_length
    if limit is None:
        return Change()
    return Change(window=simple_cut(seen.window, limit, seen.room(limit), seen.pinned))


def _trim(seen: StrategyInput, policy: ResizePolicy) -> Change:
    start = Pairs(seen.window).open_cut(max(0, len(seen.window) - policy.keep_last))
    return Change(window=seen.window[start:])


def _offload(seen: StrategyInput, policy: ResizePolicy) -> Change:
    window, descriptors = offload(seen, policy)
    facts = (EventDraft(ARTIFACT_RECORDED, {"artifact": descriptor}) for descriptor in descriptors)
    return Change(window=window, facts=tuple(facts))


def _summarize(seen: StrategyInput, policy: ResizePolicy) -> Compaction | None:
    return summarize(seen, policy, _model(policy, "summarize"))


def compacting(name: str) -> Callable[[StrategyInput, ResizePolicy], Compaction | None]:
    """Return the strategy of the compaction engine (08 §4) with that name."""

    def run(seen: StrategyInput, policy: ResizePolicy) -> Compaction | None:
        hard = policy.hard_limit_strategy
        if name == "llm":
            _model(policy, name)
        asked = CompactPolicy(
            keep_first=policy.keep_first,
            keep_last=policy.keep_last,
            strategy=name,
            hard_limit_tokens=policy.hard_limit_tokens if hard in STRATEGIES else None,
            hard_limit_strategy=hard if hard in STRATEGIES else "truncate",
            tool_output_max_chars=policy.tool_output_max_chars,
            custom_compactor=policy.custom_compactor,
            mask_callback=policy.mask_callback,
            compress_callback=policy.compress_callback,
            summarize=policy.summarize,
            prompt=policy.prompt,
            pretty=pretty_json,
        )
        return compaction.compact(seen.window, asked)

    return run


def _model(policy: ResizePolicy, name: str) -> Callable[[str], str]:
    if policy.summarize is None:
        raise ResizeError(f'resize strategy "{name}" needs a model: give the policy `summarize`')
    return policy.summarize


BUILT_IN: dict[str, Callable[[StrategyInput, ResizePolicy], Change | Compaction | None]] = {
    "simple_cut": _simple_cut,
    "trim": _trim,
    "offload": _offload,
    "summarize": _summarize,
    **{name: compacting(name) for name in STRATEGIES},
}
