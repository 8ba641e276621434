"""What a strategy wants, as one append: the events of a resize. Spec: 10 §C8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.session import events as kinds
from harnpy.session.cuts import RESIZE, Cut
from harnpy.session.errors import ResizeError, SessionConflict
from harnpy.session.events import EventDraft
from harnpy.session.json_check import checked
from harnpy.session.resize.compaction import Compaction
from harnpy.session.resize.resize_policy import CLEAR
from harnpy.session.shown.message_parts import as_dict
from harnpy.session.shown.rewriting import Rewritten, key_of, rewritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.session.events import Event
    from harnpy.session.resize.seen import Seen
    from harnpy.session.resize.strategies import Change
    from harnpy.session.resize.subject import Subject

    Message = dict[str, Any]


def carry_out(
    session: Subject,
    seen: Seen,
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
            return session.whole(attempt)
        except SessionConflict:
            continue  # made again for what the log is now


def _compaction(session: Subject, seen: Seen, compaction: Compaction) -> list[EventDraft] | None:
    if not session.view.window.begins_with(seen.entries[: compaction.split]):
        return None
    return [EventDraft(kinds.COMPACTION_TRIGGERED, session.compaction_cut(compaction))]


class _Wanted:
    """A change whose messages are told apart: the session's own, and new ones."""

    def __init__(self, session: Subject, seen: Seen, change: Change) -> None:
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

    def drafts(self, session: Subject, strategy: str) -> list[EventDraft] | None:
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
    session: Subject, messages: Iterable[Any], known: dict[int, tuple[Message, Event]]
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
    """Whether the wanted ones are still among the entries. Some may have been read again meanwhile."""
    return {entry.id for entry in wanted} <= {entry.id for entry in entries}


def _without(entries: Sequence[Event], seen: Sequence[Event]) -> list[Event]:
    known = {entry.id for entry in seen}
    return [entry for entry in entries if entry.id not in known]
