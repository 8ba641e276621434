"""A model call on the active session of a task. Spec: 10 §A2.5, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.log import ANY
from harnpy.session.parts.history import message_drafts
from harnpy.session.runtime import bus
from harnpy.session.turns.request_parts import memo_message

if TYPE_CHECKING:
    from harnpy.agent.context import ActiveSession
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session


class ActiveCall:
    """One model call on the active session: what is sent, and what is recorded of it."""

    def __init__(self, active: ActiveSession, prompt: str) -> None:
        self._events = active.runtime.events
        self._session: Session = active.runtime.get(active.id)
        self._prompt = {"role": "user", "content": prompt}

    def messages(self) -> list[Dict]:
        """Return the window, the prompt, and the memo, if there is one."""
        session = self._session
        window, memo = session.window(), session.memo
        size = len(memo) if isinstance(memo, str | list | dict) else 0
        counts = {"context_window_size": len(window), "memo_size": size}
        self._events.emit(bus.APPLIED, {"session_id": session.id, **counts})
        return [*window, self._prompt, *([] if memo is None else [memo_message(memo)])]

    def record(self, text: str) -> None:
        """Append what was asked and what was answered, in one append."""
        session = self._session
        answer = [{"role": "assistant", "content": text}] if text.strip() else []
        session.append(*message_drafts([self._prompt, *answer]), expected_version=ANY)
        session.history_changed()
        facts = {"has_user_content": True, "has_assistant_content": bool(answer)}
        counts = {"context_window_size": session.length}
        self._events.emit(bus.CONTEXT_APPENDED, {"session_id": session.id, **facts, **counts})
