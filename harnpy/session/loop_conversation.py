"""The conversation of a running agent loop, with or without a session to keep it in. Spec: 08 §1.11.

A `Conversation` is a loop's own message list. A `SessionConversation` also keeps a session in step with
it: `store` appends what is new, and reorders the session's messages only if somebody else has changed the
session meanwhile.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.events import Event, EventDraft, Summary
from harnpy.session.resize.engine import merged_summary
from harnpy.session.transcript import message_event, plain_message, transcript
from harnpy.session.verbs.loop_access import follow, followed, notify_overtaken, unfollow
from harnpy.session.window import lifecycle_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.residents import Residents
    from harnpy.session.resize.resize_policy import Compaction
    from harnpy.session.window import Window
    from harnpy.world import World


#: What the log calls a loop that has no name.
AGENT = "agent_loop"

#: The register of the skills that were active at a loop's end. It names its session: a fork has none
#: (Spec: 08 §1.4).
_SKILLS = "settings.active_skills"


class Conversation:
    """The messages of a loop without a session. ``summary`` is that of earlier compactions."""

    def __init__(self, id: str, world: World) -> None:
        self.id = id
        self.world = world
        self.messages: list[Dict] = []
        self.summary: str | None = None
        #: Asks the loop's own model, for compactions of the session while the loop runs.
        self.summarize: Callable[[str], str] | None = None
        self._lifecycle: list[Dict] = []

    def begin(self, system: str | None, tool_format: str) -> None:
        """Load what came before. ``system`` is the caller's system prompt."""

    def add(self, message: Dict) -> None:
        self.messages.append(message)

    def note(self, event: Dict) -> None:
        """Record a lifecycle event of this run."""
        self._lifecycle.append(event)

    def fact(self, type: str, data: Dict) -> None:
        """Record an event in the session's log, if there is one."""

    def active_skills(self) -> list[str]:
        """Return the skills that were active at the end of the session's last loop."""
        return []

    def keep_active_skills(self, names: list[str]) -> None:
        """Keep these skills for the session's next loop."""

    def restore(self, messages: list[Dict], summary: str | None, events: list[Dict]) -> None:
        """Continue from what an earlier run left; the conversation has no messages yet."""
        self.messages, self.summary = list(messages), summary

    def waiting(self) -> list[Dict]:
        """Return the injected messages that haven't joined the conversation yet."""
        return []

    def arrivals(self) -> list[Dict]:
        """Return the messages injected since the last call; they join the conversation now."""
        return []

    def replaced(self) -> list[Dict] | None:
        """Return the former messages, if somebody else compacted the conversation since the last call."""
        return None

    def compact(self, compaction: Compaction, note: Dict | None) -> None:
        """Replace older messages with a summary; ``note`` is the transcript event that records it."""
        self.messages = compaction.applied(self.messages)
        self.summary = merged_summary(self.summary, compaction.text)
        if note is not None:
            self.note(note)

    def converted(self, convert: Callable[[Dict], Any]) -> list[Any]:
        """Return ``convert(message)`` of every message, in a new list."""
        return [convert(message) for message in self.messages]

    def total(self, measure: Callable[[Dict], int]) -> int:
        """Return the sum of ``measure(message)``."""
        return sum(map(measure, self.messages))

    def store(self) -> None:
        """Write the conversation to the session."""

    def end(self, stop_reason: str, **details: Any) -> None:
        """Record that the loop has ended."""

    def fail(self, error: str) -> None:
        """Record that an error ended the loop."""

    def transcript(self, state: str) -> Dict:
        """Return the loop's result: these messages, their events, and this run's lifecycle events."""
        messages = [plain for plain in map(plain_message, self.messages) if plain is not None]
        new_id = self.world.ids.new
        events = [message_event(message, new_id()) for message in messages]
        return self._transcript(messages, events, state)

    def _transcript(self, messages: list[Dict], events: list[Dict], state: str) -> Dict:
        events = events + self._lifecycle_events()
        return transcript(self.id, messages, events, [], summary=self.summary, state=state)

    def _lifecycle_events(self) -> list[Dict]:
        return [{"id": self.world.ids.new(), **event} for event in self._lifecycle]


class SessionConversation(Conversation):
    """The conversation of a loop that runs on a session."""

    def __init__(self, id: str, sessions: Residents) -> None:
        super().__init__(id, sessions.world)
        self._sessions = sessions
        self._turn: Event | None = None
        self._pending: list[EventDraft] = []
        self._arrived: list[Dict] = []
        self._noted: list[Event] = []
        # The session as `store` left it. While it still looks like that, the order of its messages is known.
        self._seen: object = None
        self._count = 0
        self._shuffled = False
        self._overtaken = False
        self._former: list[Dict] | None = None  # the messages before somebody else compacted them
        #: The summary of what was compacted earlier, when the loop put it before the session's messages.
        self._opening: Dict | None = None

    def begin(self, system: str | None, tool_format: str) -> None:
        session = follow(self._sessions, self)
        self.messages, self.summary = session.prompt_state()
        self._turn = session.record(kinds.TURN_STARTED, {"agent_id": AGENT})
        for key, value in (("system_prompt", system), ("settings.tool_format", tool_format)):
            if session.view.register(key) != value:
                session.set(key, value)
        self._mark(session)
        self._shuffled = len(self.messages) != self._count
        self._opening = self.messages[0] if self._shuffled else None

    def add(self, message: Dict) -> None:
        super().add(message)
        self._pending.append(EventDraft(kinds.MESSAGE_ADDED, message, turn=self._turn))

    def note(self, event: Dict) -> None:
        self._pending.append(EventDraft(kinds.TRANSCRIPT_EVENT, event, turn=self._turn))

    def fact(self, type: str, data: Dict) -> None:
        self._pending.append(EventDraft(type, data, turn=self._turn))

    def active_skills(self) -> list[str]:
        session = followed(self._sessions, self)
        kept = None if session is None else session.view.register(_SKILLS)
        return list(kept["names"]) if kept is not None and kept["session_id"] == self.id else []

    def keep_active_skills(self, names: list[str]) -> None:
        session = followed(self._sessions, self)
        if session is not None and names != self.active_skills():
            session.set(_SKILLS, {"session_id": self.id, "names": names})

    def restore(self, messages: list[Dict], summary: str | None, events: list[Dict]) -> None:
        session = followed(self._sessions, self)
        if session is None:
            super().restore(messages, summary, events)
            return
        session.restore({"messages": messages, "summary": summary, "events": events, "state": "active"})
        self.messages, self.summary = session.messages(), summary
        self._mark(session)

    def waiting(self) -> list[Dict]:
        return list(self._arrived)

    def arrive(self, message: Dict) -> None:
        """Take a message that was injected while the loop runs."""
        self._arrived.append(message)
        self._count += 1

    def arrivals(self) -> list[Dict]:
        arrived, self._arrived = self._arrived, []
        if arrived:
            self._shuffled |= self._has_pending_messages()
            self.messages += arrived
        return arrived

    def overtaken(self) -> None:
        """Note that somebody else compacted the session while the loop runs."""
        self._overtaken = True

    def replaced(self) -> list[Dict] | None:
        if self._overtaken:
            self.store()
        former, self._former = self._former, None
        return former

    def compact(self, compaction: Compaction, note: Dict | None) -> None:
        self.store()
        session = followed(self._sessions, self)
        if session is None:
            super().compact(compaction, note)
            return
        self._noted += session.resize(compaction, note)
        notify_overtaken(self._sessions, self)
        self._mark(session)
        self.messages = session.messages()[: self._count - len(self._arrived)]
        self.summary = session.view.window.summary

    def converted(self, convert: Callable[[Dict], Any]) -> list[Any]:
        window = self._same_window()
        return super().converted(convert) if window is None else list(window.converted(convert))

    def total(self, measure: Callable[[Dict], int]) -> int:
        window = self._same_window()
        return super().total(measure) if window is None else window.total(measure)

    def _same_window(self) -> Window | None:
        """Return the session's window, if it holds exactly these messages."""
        session = followed(self._sessions, self)
        ahead = self._pending or self._arrived or self._shuffled
        if session is None or ahead or not self._in_step(session):
            return None
        return session.view.window

    def store(self) -> None:
        session = followed(self._sessions, self)
        if session is None:
            return
        self._sessions.touch(self.id)
        overtaken = bool(self._arrived) and self._has_pending_messages()
        in_step = self._in_step(session)
        if self._pending:
            events = session.write(*self._pending)
            self._noted += [event for event in events if event.type == kinds.TRANSCRIPT_EVENT]
            self._pending = []
        if self._overtaken:
            self._take_over(session)
        elif (self._shuffled or overtaken or not in_step) and not self._agrees(session):
            self._reorder(session)
        self._mark(session)

    def end(self, stop_reason: str, **details: Any) -> None:
        self.fact(kinds.TURN_COMPLETED, {"agent_id": AGENT, "turn_stop_reason": stop_reason, **details})
        self.store()
        unfollow(self._sessions, self)

    def fail(self, error: str) -> None:
        session = followed(self._sessions, self)
        if session is not None:
            session.record(kinds.TURN_COMPLETED, {"agent_id": AGENT, "error": error}, self._turn)
        unfollow(self._sessions, self)

    def transcript(self, state: str) -> Dict:
        session = followed(self._sessions, self)
        if session is None or not self._in_step(session):
            return super().transcript(state)
        messages, events = session.view.window.plain()
        return self._transcript(messages, events, state)

    def _has_pending_messages(self) -> bool:
        return any(draft.type == kinds.MESSAGE_ADDED for draft in self._pending)

    def _lifecycle_events(self) -> list[Dict]:
        waiting = [draft.data for draft in self._pending if draft.type == kinds.TRANSCRIPT_EVENT]
        unstored = [{"id": self.world.ids.new(), **event} for event in waiting]
        return [lifecycle_value(event) for event in self._noted] + unstored

    def _in_step(self, session: Session) -> bool:
        return session.view.window is self._seen and session.length == self._count

    def _agrees(self, session: Session) -> bool:
        """Whether the session has the loop's messages, followed by those that haven't joined yet."""
        wanted, found = self.messages + self._arrived, session.view.window.messages()
        return len(wanted) == len(found) and all(map(is_, wanted, found))

    def _mark(self, session: Session) -> None:
        self._seen = session.view.window
        self._count = session.length
        self._shuffled = False

    def _take_over(self, session: Session) -> None:
        """Continue from what the session holds."""
        if self._former is None:
            self._former = self.messages
        self.messages, self._arrived = session.messages(), []
        self.summary = session.view.window.summary
        self._overtaken = False

    def _reorder(self, session: Session) -> None:
        """Give the session the loop's messages, followed by those that haven't joined yet.

        Messages that the loop doesn't have stay in the history.
        """
        kept = session.view.window.kept()
        entries: dict[int, list[Event]] = {}
        for entry in reversed(kept):
            entries.setdefault(id(entry.payload), []).append(entry)

        def entry_of(message: Dict) -> Event:
            written = entries.get(id(message))
            if written:
                return written.pop()
            if message is self._opening:
                return Summary(session.origin, message, [])
            return session.record(kinds.MESSAGE_ADDED, message, self._turn)

        wanted = [entry_of(message) for message in self.messages + self._arrived]
        window = session.view.window.with_entries(wanted)
        unused = {id(entry) for written in entries.values() for entry in written}
        left = [entry for entry in kept if id(entry) in unused]
        window.past = (left, None) if left else None
        cut = session.replace("set", window)
        for entry in wanted:
            if isinstance(entry, Summary) and not entry.seq:
                entry.made_by(cut)
