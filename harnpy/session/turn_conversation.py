"""The conversation of an agent loop that is a turn of a runtime's session. Spec: 10 §C7.1, §C16.

`Send` has begun the turn, with its prompt, and ends it with the save: what is between is the loop's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.conversation import SessionConversation, follow, unfollow
from harnpy.session.errors import SessionError
from harnpy.session.prompt import SYSTEM
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from harnpy.formats.dicts import Dict
    from harnpy.session.agent_turn import Turn
    from harnpy.session.events import Event, EventDraft
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import Registry
    from harnpy.session.transaction import RecordedCall


class TurnConversation(SessionConversation):
    """``sessions`` are those of one turn: its own session."""

    def __init__(self, turn: Turn, sessions: Registry) -> None:
        super().__init__(turn.session.id, sessions)
        self.agent = turn.agent
        self._turn = turn

    def begin(self, system: str | None, tool_format: str) -> None:
        session = follow(self._sessions, self)
        self._registers = {SYSTEM: system, "settings.tool_format": tool_format}
        if self._sessions.has_audience(self.id) or not session.view.window.shows_summary():
            self._turn.open()
        opening = self._turn.opening(self.store)
        if opening:
            self._began = opening[0]
        else:
            self._began = self._turn.events[0]
            session.show_summary()
        self.messages, self.summary = session.messages(), session.view.window.summary
        self._mark(session)
        self._pending = [*opening]
        self.messages += self._pending_messages()

    def _append(
        self, session: Session, drafts: list[EventDraft], expected_version: int | None
    ) -> list[Event]:
        events = session.write(*drafts, expected_version=expected_version)
        self._turn.wrote(events)
        return events  # nobody asks for the transcript

    def _store_end(self) -> None:
        """Leave what is pending to the turn, which writes it with its end."""
        session = self.session
        if session is None or not self._is_next(session):
            self.store()
        else:
            self._turn.hold(self._pending)
            self._pending = []

    def _end_turn(self, stop_reason: str, steps: int) -> None:
        self._turn.looped(stop_reason, steps)

    def make_room(self) -> None:
        session = self._turn.session
        if session.resizes_itself:
            self.store()
            session.resize_if_due(turn=self.turn)

    can_shrink = True

    def shrink(self) -> bool:
        self.store()
        report = self._turn.session.resize_after_overflow(turn=self.turn)
        return report is not None and report.shrunk

    @property
    def is_watched(self) -> bool:
        return self._turn.is_streamed or self._turn.session.live.has_audience

    def start_answer(self) -> None:
        self._turn.start_answer()

    def show(self, text: str) -> None:
        self._turn.show_watches(text)

    def show_sender(self, text: str) -> Future[None] | None:
        return self._turn.show_sender(text)

    def recorded_call(self, type: str, **names: Any) -> RecordedCall | None:
        return self._turn.session.recorded_call(type, **names)

    def on_appended(self, events: Sequence[Event]) -> None:
        """Take what others have appended while the loop runs."""
        for event in events:
            if event.type == kinds.MESSAGE_ADDED:
                self.on_message(event.body)

    def fail(self, error: BaseException) -> None:
        with suppress(StorageError, SessionError):  # whoever ends the turn says what went wrong
            self.store()
        unfollow(self._sessions, self)

    def transcript(self, state: str) -> Dict:
        return {}  # nobody asks for it
