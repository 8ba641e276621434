"""The conversation of an agent loop: a list of its own, or a session's. Spec: 08 §1.11, 10 §C16."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from operator import is_
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import detached
from harnpy.session import events as kinds
from harnpy.session.compaction import merged_summary
from harnpy.session.errors import SessionConflict
from harnpy.session.events import EventDraft, TurnRef
from harnpy.session.lifecycle import (
    ToolStarted,
    TranscriptOrder,
    is_in_transcript,
    lifecycle_value,
    note_of,
    transcript_form,
)
from harnpy.session.open_sessions import begin_turn, is_stored
from harnpy.session.prompt import SYSTEM, PromptCache, Stable, StepStarted, memo_message
from harnpy.session.registers import DONE, HANDED_OVER
from harnpy.session.transcript import message_event, plain_message, transcript
from harnpy.session.turns import CANCELLED, FAILED, Fact, closing, end_open_turns, events_of
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from harnpy.formats.dicts import Dict
    from harnpy.session.compaction import Compaction
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import Follower, Registry
    from harnpy.session.prompt import Prompt
    from harnpy.session.transaction import RecordedCall
    from harnpy.world import World

# The conversation of a running agent loop that has no session: its own list of messages. Spec: 08 §1.11.


#: What the log calls a loop that has no name.
AGENT = "agent_loop"


class Conversation:
    """The messages of a loop without a session. ``summary`` is that of earlier compactions, ``agent`` what
    the log calls the loop."""

    agent = AGENT

    def __init__(self, id: str, world: World) -> None:
        self.id = id
        self.world = world
        self.messages: list[Dict] = []
        self.summary: str | None = None
        #: Asks the loop's own model, for compactions of the session while the loop runs.
        self.summarize: Callable[[str], str] | None = None
        self._began: Event | EventDraft | None = None
        self._lifecycle: list[tuple[str, Any]] = []
        self._order: TranscriptOrder[Any] = TranscriptOrder()
        self._sent: list[Dict] = []
        self._sent_of: object = None  # what it is the request form of

    @property
    def turn(self) -> Event | None:
        """What began the turn that runs, if a session has it."""
        if isinstance(self._began, EventDraft):
            self.store()
        began = self._began
        return None if isinstance(began, EventDraft) else began

    def begin(self, system: str | None, tool_format: str) -> None:
        """Load what came before. ``system`` is the caller's system prompt."""

    def add(self, message: Dict) -> None:
        self.messages.append(message)

    def note(self, event: Dict) -> None:
        """Record a transcript event that has no type of its own."""
        self.fact(kinds.TRANSCRIPT_EVENT, event)

    def fact(self, type: str, payload: Any, cost: float = 0.0) -> None:
        """Record an event of this run. `store` writes it."""
        self._lifecycle += self._order.add(type, payload, (type, payload))

    def call_started(self, tool: str, arguments: Dict, id: str | None, number: int, parallel: bool) -> None:
        """Record that call ``number`` of the assistant's last message is made."""
        self.fact(kinds.TOOL_STARTED, ToolStarted(tool, arguments, id, parallel))

    def step_started(
        self, provider: str, model: str, iteration: int, prompt: Prompt | None = None, **facts: Any
    ) -> bool:
        """Store the conversation and record that the model is about to be asked.

        ``prompt`` is what it is asked with beside what `sent` returned; None for a call that isn't about the
        conversation. Return False if others' messages have come meanwhile: they are to be sent, too.
        """
        return True

    def recorded_call(self, type: str, **names: Any) -> RecordedCall | None:
        """Return what an earlier run of this turn left of the call that was begun last with an event of that
        type and those names in its data. Spec: 10 §C16.5."""
        return None

    def sent(self, convert: Callable[[Dict], Dict]) -> list[Dict]:
        """Return the messages of a request, each as ``convert`` makes it: the same function each time.

        The list only ever grows; what isn't the former messages and more comes in another list.
        """
        if self._sent_of is not self.messages:
            self._sent_of, self._sent = self.messages, []
        self._sent += map(convert, self.messages[len(self._sent) :])
        return self._sent

    def tail(self) -> list[Dict]:
        """Return the messages that follow those in this one request. Spec: 10 §C16.2."""
        return []

    def active_skills(self) -> list[str]:
        """Return the skills that were active at the end of the session's last loop."""
        return []

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
        """Return the former messages, if somebody else cut the conversation since the last call."""
        return None

    def compact(self, compaction: Compaction, note: Dict | None) -> bool:
        """Replace older messages with a summary; ``note`` is what its transcript event says, if it has one.

        Return False, having done nothing, if somebody else has cut the conversation meanwhile (`replaced`).
        """
        self.messages = compaction.applied(self.messages)
        self.summary = merged_summary(self.summary, compaction.text)
        if note is not None:
            self.note(note_of(note))
        return True

    def make_room(self) -> None:
        """Do what the session's policy says about its window, before the model is asked."""

    #: Whether `shrink` may be of use.
    can_shrink = False

    def shrink(self) -> bool:
        """Make the window smaller for a model that it is too long for. Return False if it isn't smaller."""
        return False

    def total(self, measure: Callable[[Dict], int]) -> int:
        """Return the sum of ``measure(message)``."""
        return sum(map(measure, self.messages))

    @property
    def is_watched(self) -> bool:
        """Return whether somebody may watch its answers come."""
        return False

    def start_answer(self) -> None:
        """Have what is shown next take the place of what was shown of the answer."""

    def show(self, text: str) -> None:
        """Show the next piece of the model's answer to those who watch the session."""

    def show_sender(self, text: str) -> Future[None] | None:
        """Show it to whoever has sent the turn. Return what has a result once it was seen, if they want to be
        waited for."""
        return None

    def store(self) -> None:
        """Write the conversation to the session."""

    def end(self, stop_reason: str, steps: int = 0, skills: Sequence[str] = ()) -> None:
        """Store that the loop has ended, with these skills active for the session's next one. What the loop
        left can be read on."""

    def fail(self, error: BaseException) -> None:
        """Record that an error or a cancellation ended the loop: calls that are open get an end."""

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
        return [{"id": self.world.ids.new(), **transcript_form(*fact)} for fact in self._lifecycle]


# What a running agent loop needs of a session. Spec: 08 §1.7, §1.11.


def prompt_state(registry: Registry, id: str) -> tuple[list[Dict], str | None]:
    """Return what a loop starts from: the messages, led by the summary, and the summary."""
    messages, summary = registry.find(id).session.prompt_state()
    return detached(messages), summary


def store_transcript(registry: Registry, id: str, transcript: Dict) -> None:
    """Replace the session's contents with the transcript's. Ignores unknown ids."""
    opened = registry.by_id.get(id)
    if opened is None:
        return
    registry.touch(id)
    opened.session.restore(detached(transcript))


def follow(registry: Registry, follower: Follower) -> Session:
    """Open the follower's session and notify the follower of what others do to it."""
    opened = registry.get_or_open(follower.id)
    begin_turn(registry, opened, follower)
    opened.follow(follower)
    return opened.session


def is_alone(registry: Registry, follower: Follower) -> bool:
    """Return whether no other loop runs on the follower's session."""
    return registry.by_id[follower.id].followers == (follower,)


def notify_cut(registry: Registry, follower: Follower) -> None:
    """Notify the session's other followers that this one compacted it."""
    opened = registry.by_id.get(follower.id)
    for other in opened.followers if opened is not None else ():
        if other is not follower:
            other.on_cut()


def unfollow(registry: Registry, follower: Follower) -> None:
    opened = registry.by_id.get(follower.id)
    if opened is not None:
        opened.unfollow(follower)


def inject_feedback(registry: Registry, id: str, kind: str, content: str) -> None:
    """Queue a note for the loop that runs under ``id`` now or next."""
    registry.feedback.setdefault(id, []).append((kind, content))


def has_feedback(registry: Registry, id: str) -> bool:
    """Return whether a note is queued for the loop that runs under ``id``."""
    return bool(registry.feedback.get(id))


def take_feedback(registry: Registry, id: str) -> list[tuple[str, str]]:
    """Remove and return the queued (kind, content) pairs."""
    return registry.feedback.pop(id, [])


# The conversation of an agent loop that runs on a session. Spec: 08 §1.11, 10 §C16.
#
# A `SessionConversation` is a loop's own message list and keeps the session in step with it: `store` appends
# what is new. What others do to the session meanwhile holds for the loop, too: their messages join it, and it
# goes on from what their cuts leave.


#: The register of the skills that were active at a loop's end. It names its session: a fork has none
#: (Spec: 08 §1.4).
_SKILLS = "settings.active_skills"


class SessionConversation(Conversation):
    """The conversation of a loop that runs on a session."""

    def __init__(self, id: str, sessions: Registry) -> None:
        super().__init__(id, sessions.world)
        self._sessions = sessions
        self.session: Session | None = None
        self._pending: list[EventDraft] = []
        self._arrived: list[Dict] = []
        self._noted: list[Event] = []
        self._usage: Counter[str] = Counter()
        self._handed_over = False  # and nothing was called since
        self._answer: Event | EventDraft | None = None  # the last one: its calls are made
        # The session as `store` left it. While it still looks like that, the order of its messages is known.
        self._seen: object = None
        self._seen_version = -1
        self._count = 0
        self._joined = False  # others' messages have, since the last step began
        self._was_cut = False
        self._former: list[Dict] | None = None  # the messages before somebody else cut them
        self._ended: Session | None = None  # the session, once the loop has let it go
        self._registers: Dict = {}
        self._fresh: list[Dict] = []  # of what `sent` returned, those that the log doesn't have yet
        self._sent_at = 0  # the log's version then

    def begin(self, system: str | None, tool_format: str) -> None:
        session = follow(self._sessions, self)
        if session.view.open_turns and is_alone(self._sessions, self):
            end_open_turns(session)
        self._registers = {SYSTEM: system, "settings.tool_format": tool_format}
        self._began = _started(session, self._registers)
        self.messages, self.summary = session.messages(), session.view.window.summary
        self._arrived, self._was_cut = [], False
        self._mark(session)

    def add(self, message: Dict) -> None:
        self.messages.append(message)
        draft = EventDraft(kinds.MESSAGE_ADDED, message, turn=self._began)
        if message.get("role") == "assistant":
            self._answer = draft
        self._pending.append(draft)

    def fact(self, type: str, payload: Any, cost: float = 0.0) -> None:
        self._pending.append(EventDraft(type, payload, cost=cost, turn=self._began))
        if type == kinds.STEP_COMPLETED and "usage" in payload:
            for name, amount in payload["usage"].items():
                self._usage[name] += amount
        elif type == kinds.HANDOFF:
            self._handed_over = True

    def step_started(
        self, provider: str, model: str, iteration: int, prompt: Prompt | None = None, **facts: Any
    ) -> bool:
        session = self.session
        if session is None:
            return True
        step = {"agent_id": self.agent, "iteration": iteration, "model": model, "provider": provider, **facts}
        in_order = self._is_next(session)
        if prompt is not None:
            return in_order and self._begin_step(session, step, prompt)
        if not in_order:
            self.store()
        self._joined = False  # a step's messages stand behind all others
        self.fact(kinds.STEP_STARTED, step)
        self.store()
        return True

    def _begin_step(self, session: Session, step: Dict, prompt: Prompt) -> bool:
        """Append the step right behind what its request was made of. Return False if that isn't the end."""
        stable, seen = self._sent_of, session.version
        if not isinstance(stable, Stable) or seen != self._sent_at:
            return False
        cache = stable.cache
        if cache is None or not cache.is_of(step["model"], prompt):
            cache = stable.cache = PromptCache(step["model"], prompt, stable.messages, stable.prefix)
        started = StepStarted(step, cache, len(stable.messages), self._fresh)
        pending, joined = self._pending, self._joined
        self._joined = False
        self._pending = [*pending, *_changed(session, self._began, self._registers, prompt.parts)]
        self.fact(kinds.STEP_STARTED, started)
        try:
            self._write(session, seen)
        except SessionConflict:
            self._pending, self._joined, self._sent_of = pending, joined, None
            session.refresh()
            return False
        self._mark(session)
        return True

    def sent(self, convert: Callable[[Dict], Dict]) -> list[Dict]:
        session = self.session
        if session is None:
            return super().sent(convert)
        stable, fresh = session.stable(convert), self._pending_messages()
        if fresh and not stable.takes(fresh):
            self.store()
            stable, fresh = session.stable(convert), []
        if self._sent_of is not stable:
            self._sent_of, self._sent = stable, []
        sent, known = self._sent, len(stable.messages)
        sent += stable.messages[len(sent) :]
        self._fresh = [convert(message) for message in fresh]
        sent += self._fresh[len(sent) - known :]
        self._sent_at = session.version
        return sent

    def tail(self) -> list[Dict]:
        session = self.session
        memo = None if session is None else session.view.register("memo")
        return [] if memo is None else [memo_message(memo)]

    def call_started(self, tool: str, arguments: Dict, id: str | None, number: int, parallel: bool) -> None:
        self._handed_over = False
        place = None if self._answer is None else (self._answer, number)
        self.fact(kinds.TOOL_STARTED, ToolStarted(tool, arguments, id, parallel, place))

    def active_skills(self) -> list[str]:
        session = self.session
        kept = None if session is None else session.view.register(_SKILLS)
        return list(kept["names"]) if kept is not None and kept["session_id"] == self.id else []

    def restore(self, messages: list[Dict], summary: str | None, events: list[Dict]) -> None:
        session = self.session
        if session is None:
            super().restore(messages, summary, events)
            return
        session.restore({"messages": messages, "summary": summary, "events": events, "state": "active"})
        self.messages, self.summary = session.messages(), summary
        self._mark(session)

    def waiting(self) -> list[Dict]:
        return list(self._arrived)

    def on_message(self, message: Dict) -> None:
        """Take a message that was injected while the loop runs."""
        self._arrived.append(message)
        self._count += 1

    def arrivals(self) -> list[Dict]:
        if self._arrived and self._pending_messages():
            self.store()  # what was said before they join
        arrived, self._arrived = self._arrived, []
        self.messages += arrived
        self._joined = self._joined or bool(arrived)
        return arrived

    def on_cut(self) -> None:
        """Note that somebody else cut the session while the loop runs."""
        self._was_cut = True

    def replaced(self) -> list[Dict] | None:
        session = self.session
        if session is not None and not self._is_next(session):
            self.store()
        former, self._former = self._former, None
        return former

    def compact(self, compaction: Compaction, note: Dict | None) -> bool:
        self.store()
        session = self.session
        if session is None:
            return super().compact(compaction, note)
        while self._former is None:
            try:
                self._noted += session.compact(compaction, note, self.turn)
                break
            except SessionConflict:
                session.refresh()  # messages that have arrived come after those to replace
                self.store()
        else:
            return False
        notify_cut(self._sessions, self)
        self._mark(session)
        self.messages = session.messages()[: self._count - len(self._arrived)]
        self.summary = session.view.window.summary
        return True

    def total(self, measure: Callable[[Dict], int]) -> int:
        session = self.session
        if session is None or self._arrived or not self._is_next(session):
            return super().total(measure)
        return session.total(measure) + sum(map(measure, self._pending_messages()))

    @property
    def is_watched(self) -> bool:
        session = self.session
        return session is not None and is_stored(session) and session.has_audience

    def start_answer(self) -> None:
        session = self.session
        if session is not None and is_stored(session) and self.turn is not None:
            session.end_answer(self.turn.seq)

    def show(self, text: str) -> None:
        session = self.session
        if session is not None and is_stored(session) and self.turn is not None:
            session.show(self.turn.seq, text)

    def store(self) -> None:
        session = self.session
        if session is None:
            return
        in_order = self._is_next(session)
        if in_order and not self._pending:
            return
        in_order = in_order and not (self._joined and self._pending_messages())
        if self._pending:
            self._write(session)
        if self._was_cut or not (in_order or self._agrees(session)):
            self._take_over(session)
        self._mark(session)

    def _write(self, session: Session, expected_version: int | None = None) -> None:
        """Append what is pending."""
        self._sessions.touch(self.id)
        pending, self._pending = self._pending, []
        events = self._append(session, pending, expected_version)
        if isinstance(self._began, EventDraft):
            self._began = self._began.event
        for event in events:
            if event.type == kinds.MESSAGE_ADDED and event.body.get("role") == "assistant":
                self._answer = event

    def _append(
        self, session: Session, drafts: list[EventDraft], expected_version: int | None
    ) -> list[Event]:
        """Append the drafts, and have those events be part of the loop's result that results show."""
        events = session.write(*drafts, expected_version=expected_version)
        for event in events:
            if event.type != kinds.MESSAGE_ADDED:
                self._noted += self._order.add(event.type, event.body, event)
        return events

    def _store_end(self) -> None:
        self.store()

    def end(self, stop_reason: str, steps: int = 0, skills: Sequence[str] = ()) -> None:
        if self._handed_over and stop_reason == DONE:
            stop_reason = HANDED_OVER
        self._end_turn(stop_reason, steps)
        session, names = self.session, list(skills)
        pending = self._pending
        while True:
            if session is not None and names != self.active_skills():
                skills_set = session.setting(_SKILLS, {"session_id": self.id, "names": names})
                skills_set.turn = self._began
                self._pending = [*pending, skills_set]
            try:
                self._store_end()
                break
            except SessionConflict:
                assert session is not None, "a session that is gone has no conflicts"
                session.refresh()
                self._pending = pending
        unfollow(self._sessions, self)
        self._ended = session

    def _end_turn(self, stop_reason: str, steps: int) -> None:
        done: Dict = {"agent_id": self.agent, "steps": steps}
        if self._usage:
            done["usage"] = dict(self._usage)
        self.fact(kinds.TURN_COMPLETED, {**done, "turn_stop_reason": stop_reason})

    def fail(self, error: BaseException) -> None:
        session = self.session
        if session is not None and self.turn is not None and self.turn.seq in session.view.open_turns:
            facts = [Fact(event.type, event.body) for event in events_of(session, self.turn)]
            facts += [Fact(draft.type, draft.data) for draft in self._pending]
            reason = FAILED if isinstance(error, Exception) else CANCELLED
            for type, payload in closing(facts, self.agent, reason, str(error) or reason):
                if type == kinds.MESSAGE_ADDED:
                    self.add(payload)
                else:
                    self.fact(type, payload)
            with suppress(StorageError):  # whoever loads the session next closes the turn
                self.store()
        unfollow(self._sessions, self)

    def transcript(self, state: str) -> Dict:
        session = self._ended or self.session
        if session is None or not self._is_next(session):
            return super().transcript(state)
        messages, events = session.view.window.plain()
        return self._transcript(messages, events, state)

    def _pending_messages(self) -> list[Dict]:
        return [draft.data for draft in self._pending if draft.type == kinds.MESSAGE_ADDED]

    def _lifecycle_events(self) -> list[Dict]:
        waiting = [
            (draft.type, draft.data) for draft in self._pending if is_in_transcript(draft.type, draft.data)
        ]
        unstored = [{"id": self.world.ids.new(), **transcript_form(*fact)} for fact in waiting]
        session = self._ended or self.session
        live = [] if session is None else session.view.window.live_events()
        return [*live, *(lifecycle_value(event) for event in self._noted), *unstored]

    def _is_next(self, session: Session) -> bool:
        """Return whether what is pending belongs right behind what the session holds."""
        if self._was_cut or (self._arrived and self._pending_messages()):
            return False
        if session.version == self._seen_version:
            return True
        window = session.view.window
        return window is self._seen and len(window.entries) == self._count

    def _agrees(self, session: Session) -> bool:
        """Return whether the session has the loop's messages, followed by those that haven't joined yet."""
        wanted, found = self.messages + self._arrived, session.view.window.messages()
        return len(wanted) == len(found) and all(map(is_, wanted, found))

    def _mark(self, session: Session) -> None:
        self._seen = session.view.window
        self._count, self._seen_version = len(self._seen.entries), session.version

    def _take_over(self, session: Session) -> None:
        """Continue from what the session holds."""
        if self._former is None:
            self._former = self.messages
        self.messages, self._arrived = session.messages(), []
        self.summary = session.view.window.summary
        self._was_cut, self._joined = False, True


def _started(session: Session, registers: Dict) -> Event:
    """Begin a turn, and set those of the registers that have another value. Return what began it."""
    while True:
        try:
            session.show_summary()
            changed = _changed(session, TurnRef(session.origin, session.version + 1), registers)
            if not changed:
                return session.record(kinds.TURN_STARTED, {"agent_id": AGENT})
            return session.write(EventDraft(kinds.TURN_STARTED, {"agent_id": AGENT}), *changed)[0]
        except SessionConflict:
            session.refresh()


def _changed(
    session: Session, turn: Event | TurnRef | EventDraft | None, *registers: Dict
) -> list[EventDraft]:
    """Return the events that set those registers that have another value."""
    changed = []
    given = session.view.registers
    for values in registers:
        for key, value in values.items():
            known = given[key][1] if key in given else None
            if known is value:
                continue
            if known == value:
                values[key] = known  # compared once
            else:
                setting = session.setting(key, value)
                setting.turn = turn
                changed.append(setting)
    return changed
