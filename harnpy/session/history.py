"""Writing a session's messages: appending, restarting, cutting, and replacing older ones with a summary.

All of them are verbs of `Session`. Spec: 10 §A1.4, §A2.2, §C3, §C5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.formats.dicts import detached
from harnpy.session import events as kinds
from harnpy.session.arguments import count
from harnpy.session.artifacts import recorded
from harnpy.session.cuts import Cut
from harnpy.session.errors import EventNotFound, InvalidArgument, RewindError, SessionBusy, SessionError
from harnpy.session.events import EventDraft, Summary
from harnpy.session.messages import as_dict
from harnpy.session.rewind import REDO, REWIND, LeafMoved, has_ended, missing, position, start_of
from harnpy.session.rewind import REGISTER as PINS
from harnpy.session.transcript import MESSAGE_KINDS
from harnpy.session.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.compaction import Compaction
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.view import View

    Message = dict[str, Any]
    Messages = Message | Iterable[Message]

#: As an expected version: at the end, whatever it is.
ANY = -1
_NO_MESSAGES: Final = "messages must be dicts with a string `role`"

# Appending.


def append_user(session: Session, text: str) -> Event:
    """Append what a user says."""
    return session.append_message({"role": "user", "content": text})


def append_message(session: Session, message: Message) -> Event:
    """Append one message; a role that isn't given is ``user``."""
    return session.append_prompt(message)[0]


def append_prompt(session: Session, messages: Messages) -> list[Event]:
    """Append messages, all or none. Raises `InvalidArgument` when there are none."""
    drafts = message_drafts(messages)
    if not drafts:
        raise InvalidArgument("a prompt must contain at least one message", session.id)
    events = session.append(*drafts, expected_version=ANY)
    session.history_changed()
    return events


def append_context(
    session: Session, content: str, kind: str = "generic", placement: str | None = None
) -> Event:
    """Append what the model is to know and nobody has said. ``placement``: ``prefix`` or ``history``."""
    if placement not in (None, "prefix", "history"):
        raise InvalidArgument(f"`placement` must be `prefix` or `history`, not {placement!r}", session.id)
    data = {"kind": kind, "content": content}
    if placement is not None:
        data["placement"] = placement
    return session.append(EventDraft(kinds.CONTEXT_ADDED, data), expected_version=ANY)[0]


def add_history(session: Session, messages: Messages) -> None:
    """Append messages that are no turn's, one or several; a role that isn't given is ``user``."""
    session.append(*message_drafts(messages), expected_version=ANY)
    session.history_changed()


def message_drafts(messages: Messages) -> list[EventDraft]:
    """Return the drafts of copies of the messages: dicts, or objects that have a role and a content.

    Raises `InvalidArgument`, `EventRejected`.
    """
    one = as_dict(messages)
    drafts = []
    if not isinstance(one, dict) and not hasattr(messages, "__iter__"):
        raise InvalidArgument(_NO_MESSAGES)
    for message in map(as_dict, [one] if isinstance(one, dict) else messages):
        if not isinstance(message, dict) or not isinstance(message.get("role", ""), str):
            raise InvalidArgument(_NO_MESSAGES)
        draft = EventDraft(kinds.MESSAGE_ADDED, {"role": "user", **message})
        draft.check()
        draft.data = detached(draft.data)
        drafts.append(draft)
    return drafts


# Cuts.


def set_history(session: Session, messages: Messages) -> None:
    """Restart the history with these messages. The log keeps what was; memo and registers stay."""
    drafts = message_drafts(messages)
    data: dict[str, Any] = {"messages": [], "reason": "set"}
    if drafts:
        data["messages"] = [[session.version + 1, session.version + len(drafts)]]
    if session.view.window.summary is not None:
        data["summary"] = None
    session.append(*drafts, EventDraft(kinds.HISTORY_REPLACED, Cut.restored(data)))
    session.history_changed()


def reset(session: Session) -> None:
    """Empty window and history; registers stay."""
    session.replace("reset", Window())
    session.history_changed()


def clean_window(session: Session) -> None:
    """Empty the window. The history stays."""
    session.shrink("clean_window", session.view.window.trimmed(0))
    session.history_changed()


def trim(session: Session, keep_last: int) -> int:
    """Keep the newest messages in the window. Return how many there are."""
    if count("keep_last", keep_last) < session.length:
        session.shrink("trim", session.view.window.trimmed(keep_last))
    return session.length


def replace(session: Session, reason: str, window: Window, branched_at: int | None = None) -> Event:
    """Restart the history with ``window``. The log keeps what was."""
    cut = Cut(reason, window, session.view.window, branched_at)
    return session.record(kinds.HISTORY_REPLACED, cut)


def become_fork_of(session: Session, parent: Session, view: View) -> None:
    """Replace everything with what ``view`` shows of the session ``parent``: a fork onto this one."""
    cut = Cut.fork(parent.id, view.window, view.registers, parent.info.depth + 1)
    session.record(kinds.HISTORY_REPLACED, cut)


def shrink(session: Session, strategy: str, window: Window) -> None:
    """Replace the window with a smaller one. The history behind it stays readable."""
    session.record(
        kinds.COMPACTION_TRIGGERED, Cut(strategy, window, session.view.window, cutoff=session.stream.last())
    )


def compact(
    session: Session, compaction: Compaction, note: dict[str, Any] | None, turn: Event | None = None
) -> list[Event]:
    """Replace older messages with a summary; ``note`` is what its transcript event says of it, if it has
    one.

    The messages stay readable behind it (`history`). Return the event, if transcripts show it.
    """
    cut = session.compaction_cut(compaction, note)
    event = session.record(kinds.COMPACTION_TRIGGERED, cut, turn)
    cut.identify(event)
    return [] if note is None else [event]


def compaction_cut(session: Session, compaction: Compaction, note: dict[str, Any] | None = None) -> Cut:
    """Return the cut that carries out a compaction of the window."""
    former = session.view.window
    archived = former.entries.items()[compaction.start : compaction.split]
    summary = Summary(session.origin, compaction.message, archived)
    window = former.compacted(compaction.start, compaction.split, summary)
    cut = Cut(compaction.strategy, window, former, cutoff=session.stream.last(), note=note)
    window.summary = cut.merged(former, compaction.text)
    return cut


def show_summary(session: Session) -> None:
    """Put the summary before the messages, unless they show it (08 §1.11)."""
    former = session.view.window
    if former.shows_summary():
        return
    summary = Summary(session.origin, {"role": "user", "content": former.summary}, [])
    cut = Cut("summary", former.compacted(0, 0, summary), former, cutoff=session.stream.last())
    summary.made_by(session.record(kinds.COMPACTION_TRIGGERED, cut))


def restore(session: Session, transcript: dict[str, Any]) -> None:
    """Replace the window's contents with the transcript's. Earlier lifecycle events stay, before its own;
    metadata and assets stay unless it brings some (08 §1.11)."""
    for message in transcript.get("messages", []):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise SessionError("a transcript's messages must be dicts with a string `role`", session.id)
    former = session.view.window
    messages = [EventDraft(kinds.MESSAGE_ADDED, message) for message in transcript.get("messages", [])]
    known = {event["id"] for event in former.events()}
    news = [
        EventDraft(kinds.TRANSCRIPT_EVENT, event)
        for event in transcript.get("events", [])
        if event.get("kind") not in MESSAGE_KINDS and event.get("id") not in known
    ]
    assets = [asset for asset in transcript.get("assets") or () if asset not in former.assets]
    kept = [EventDraft(type, payload) for type, payload in recorded(assets, session.id)]
    events = session.write(*messages, *news, *kept)
    window = former.with_entries(events[: len(messages)])
    window.summary = transcript.get("summary")
    window.state = transcript.get("state")
    window.metadata = transcript.get("metadata", former.metadata)
    window.assets = transcript.get("assets") or former.assets
    window.past = None
    session.replace("set", window)


# What the user chooses to be shown: pinned messages, and turns taken back. Spec: 10 §A1.9, §C5.


def pin(session: Session, event_id: str) -> bool:
    """Keep a message in the window, whatever is trimmed or compacted (10 §C5). Return False if it is
    pinned already. Raises `EventNotFound` unless it is a message of the history."""
    seq = position(session.view.window.history(), session.origin, event_id)
    if seq is None:
        raise EventNotFound(event_id, session.id)
    if seq in session.view.pins:
        return False
    session.write(session.setting(PINS, sorted({*session.view.pins, seq})))
    return True


def unpin(session: Session, event_id: str) -> bool:
    """Take a pin out. Return False if the event isn't pinned."""
    seq = position(session.view.window.history(), session.origin, event_id)
    if seq not in session.view.pins:
        return False
    session.write(session.setting(PINS, [pin for pin in session.view.pins if pin != seq]))
    return True


def rewind(session: Session, turns: int = 1) -> list[dict[str, Any]]:
    """Take back the last turns; the log keeps them. Return the messages that left the window.

    Raises `RewindError` when there are fewer, `SessionBusy` while a turn is open.
    """
    _check_idle(session)
    start = start_of(session.view.turns.items(), turns, session.id)
    former, now = _moved(session, start - 1, REWIND)
    return missing(former, now)


def redo(session: Session) -> list[dict[str, Any]]:
    """Undo the last rewind. Return the messages that came back.

    Raises `RewindError` when something was added since, `SessionBusy` while a turn is open.
    """
    _check_idle(session)
    rewound = session.view.rewound
    if not rewound.leaves or session.view.has_added(rewound.at, session.version):
        raise RewindError(f"session '{session.id}' has nothing to redo", session.id)
    former, now = _moved(session, rewound.leaves[-1], REDO)
    return missing(now, former)


def _check_idle(session: Session) -> None:
    own = (turn for seq, turn in session.view.open_turns.items() if seq > session.view.linked_at)
    if any(
        not has_ended(turn, session.stream.read(turn.seq)) for turn in own
    ):  # a fork doesn't run its parent's
        raise SessionBusy(f"session '{session.id}' is busy: a turn is open", session.id)


def _moved(session: Session, target: int, reason: str) -> tuple[list[Event], list[Event]]:
    """Go on behind event number ``target``. Return the entries of the window before and now."""
    former = list(session.view.window.entries.items())
    session.record(kinds.LEAF_MOVED, LeafMoved(target, reason))
    return former, session.view.window.entries.items()


def move_leaf(session: Session, event_id: str, summary: str | None = None) -> list[Event]:
    """Go on behind an earlier event; an empty id is the begin. Later events stay in the log and leave
    the window.

    ``summary`` tells the model what became of it. Raises `EventRejected` for an event that isn't there or
    is the leaf, and for a blank summary; `SessionBusy` while a turn is open.
    """
    from harnpy.session.drafting import ROOT, moved, summarized

    _check_idle(session)
    drafts = []
    if summary is not None:
        begin = event_id or session.read(ROOT - 1, ROOT)[0].id
        told = summarized(session, {"from_event_id": begin, "summary": summary})
        drafts = [EventDraft(kinds.BRANCH_SUMMARY, told)]
    return session.write(EventDraft(kinds.LEAF_MOVED, moved(session, event_id)), *drafts)
