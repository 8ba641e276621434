"""`SessionExtension`: sessions for an agent that knows nothing of them. Spec: 10 §A2.5, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import SessionExists
from harnpy.session.extension import current
from harnpy.session.extension import memory as memories
from harnpy.session.extension.handlers import AgentHandlers
from harnpy.session.extension.request_prompt import (
    CHAT_HISTORY,
    MEMO,
    RequestPrompt,
    input_text,
    prompt_of,
    reply_text,
)
from harnpy.session.extension.strict_roles import strictly_ordered
from harnpy.session.log import Session
from harnpy.session.parts.arguments import instance, mapping
from harnpy.session.parts.history import ANY, message_drafts
from harnpy.session.resize.resizable import Resizing
from harnpy.session.resize.resize_policy import ResizePolicy
from harnpy.session.runtime import bus
from harnpy.session.runtime.bus import EventBus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.session.extension.memory import Memory
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.resize.resize_policy import Analysis, Strategy
    from harnpy.session.runtime.runtime import SessionRuntime
    from harnpy.session.settings.levels import Level

    Message = dict[str, Any]

#: The setting that names the active session.
SESSION_ID = "runtime.session_id"


class SessionExtension:
    """The sessions of one agent, one of them active at most.

    Before a request `prepare` puts the active session into its prompt, afterwards `finish` records in it
    what was asked and answered. ``events`` tells of all that: the runtime's, or its own without a runtime.
    Its sessions are the runtime's, without one each is by itself (`Session()`).

    ``agent`` is the agent's name, or what else `SessionRuntime.create` takes. ``input_keys`` and
    ``reply_keys`` choose what is recorded (10 §A2.6); a session's own setting counts first, as for all
    ``settings`` (10 §C8.1). ``strict_roles``: user and assistant take turns in what a request shows.
    ``memory`` is what it remembers beyond one session.
    """

    def __init__(
        self,
        runtime: SessionRuntime | None = None,
        agent: Any = None,
        *,
        input_keys: str | list[str] | None = None,
        reply_keys: str | list[str] | None = None,
        strict_roles: bool = False,
        memory: Memory | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.runtime = runtime
        self.events = EventBus() if runtime is None else runtime.events
        self.strict_roles = strict_roles
        self.memory = memory
        #: The slots that each request of the agent has.
        self.prompt: dict[str, Any] = {}
        self._agent = agent or ""
        self._sessions: dict[str, Session] = {}
        self._session: Session | None = None
        self._plain: list[Message] = []
        keys = {"input_keys": input_keys, "reply_keys": reply_keys}
        self._handlers = AgentHandlers({**keys, **mapping("settings", settings)})

    @property
    def agent_name(self) -> str:
        return self._agent if isinstance(self._agent, str) else str(self._agent.name)

    # Which session.

    @property
    def session(self) -> Session | None:
        """The active session."""
        return self._session

    @property
    def sessions(self) -> dict[str, Session]:
        """All that were ever active, by id."""
        return dict(self._sessions)

    def activate(self, id: str | None = None) -> Session:
        """Make a session active, one that is made now if there is none of that id; None: of a new id."""
        session = self._opened(id)
        self._handlers.bind(session)
        self._sessions[session.id] = self._session = session
        self.settings[SESSION_ID] = session.id
        self._tell(bus.ACTIVATED, session.id, agent_name=self.agent_name)
        return session

    def deactivate(self) -> None:
        """Go on without a session, and without a history. The session stays in `sessions`."""
        session, self._session = self._session, None
        self._plain = []
        if session is None:
            return
        self.settings[SESSION_ID] = None
        self._tell(bus.DEACTIVATED, session.id, agent_name=self.agent_name)

    def _opened(self, id: str | None) -> Session:
        if self.runtime is None:
            return self._sessions.get(id or "") or self._alone(id)
        if id is not None and self.runtime.exists(id):
            return self.runtime.get(id)
        try:
            return self.runtime.create(self._agent, id=id)
        except SessionExists:
            return self.runtime.get(id or "")  # somebody was faster

    def _alone(self, id: str | None) -> Session:
        session = Session(id)
        session.resize_by(Resizing(ResizePolicy(), tell=self._tell_resize))
        return session

    def _tell_resize(self, report: ResizeReport) -> None:
        self.events.emit(bus.RESIZED, report.data())

    # What holds for all its sessions.

    @property
    def settings(self) -> Level:
        """The agent's settings, which its sessions inherit (10 §C8.1)."""
        return self._handlers.settings

    def set_settings(self, key: str, value: Any) -> None:
        """Set one of the agent's settings; None unsets it. Raises `InvalidArgument`."""
        self.settings[key] = value

    def on_analyze(self, fn: Analysis | None) -> None:
        """Have ``fn`` name the resize strategy that is due, in all sessions, those to come too; None: the
        default analysis. See `ResizePolicy`."""
        self._handlers.on_analyze(fn, self._sessions.values())

    def strategy(self, name: str, fn: Strategy) -> None:
        """Register a resize strategy in all sessions, those to come too. Raises `InvalidArgument` for a
        blank name."""
        self._handlers.strategy(name, fn, self._sessions.values())

    # What the agent remembers: the active session's window, or a plain list.

    @property
    def chat_history(self) -> list[Message]:
        """The messages that requests show."""
        return list(self._plain) if self._session is None else self._session.messages()

    def set_history(self, messages: Any) -> None:
        """Restart the history with these messages."""
        if self._session is None:
            self._plain = _messages(messages)
        else:
            self._session.set_history(messages)

    def add_history(self, messages: Any) -> None:
        """Append one message or several."""
        if self._session is None:
            self._plain += _messages(messages)
        else:
            self._session.add_history(messages)

    def reset(self) -> None:
        """Empty the history; a session's memo stays."""
        if self._session is None:
            self._plain = []
        else:
            self._session.reset()

    def clean_window(self) -> None:
        """Empty what requests show; a session's history stays."""
        if self._session is None:
            self._plain = []
        else:
            self._session.clean_window()

    # The life of a request.

    def prepare(self, prompt: RequestPrompt | dict[str, Any]) -> RequestPrompt:
        """Put the window into the slot ``chat_history``, and the memo, if there is one, into
        ``CHAT SESSION MEMO``. Return the prompt, for `finish`."""
        prompt = prompt_of(prompt, self.prompt)
        session = self._session
        prompt.tie(session)
        current.enter(None if session is None else session.id)
        if session is None:
            if self._plain:
                self._show(prompt, self._plain)
            return prompt
        session.refresh()
        messages, memo = session.window(), session.memo
        self._show(prompt, messages)
        prompt.request.pop(MEMO, None)
        if memo is not None:
            prompt.request[MEMO] = memo
        if self.memory is not None:
            memories.show(self.memory, prompt)
        counts = {"context_window_size": len(messages), "memo_size": _size(memo)}
        self._tell(bus.APPLIED, session.id, **counts)
        return prompt

    def _show(self, prompt: RequestPrompt, messages: list[Message]) -> None:
        shown = strictly_ordered(messages) if self.strict_roles else list(messages)
        prompt.request[CHAT_HISTORY] = shown

    def finish(self, prompt: RequestPrompt, result: Any) -> None:
        """Append what was asked and what was answered, in one append, to the session that the prompt was
        prepared with. A second time nothing happens, nor without a session."""
        session = instance("prompt", prompt, RequestPrompt, "what `prepare` returned").session
        if session is None:
            return
        asked = input_text(prompt, session.settings.get("input_keys"))
        answered = reply_text(result, session.settings.get("reply_keys"))
        said = {"user": asked, "assistant": answered}
        messages = [{"role": role, "content": text} for role, text in said.items() if text]
        if not session.whole(lambda: _record(prompt, messages)):
            return
        if messages:
            session.history_changed()
            if self.memory is not None:
                memories.tell(self.memory, session.id, asked, answered)
        facts = {"has_user_content": bool(asked), "has_assistant_content": bool(answered)}
        self._tell(bus.CONTEXT_APPENDED, session.id, **facts, context_window_size=session.length)

    def _tell(self, name: str, session_id: str, **data: Any) -> None:
        self.events.emit(name, {"session_id": session_id, **data})


def _record(prompt: RequestPrompt, messages: list[Message]) -> bool:
    """Append the messages to the prompt's session. Return False if that has been done before."""
    session = prompt.session
    if session is None:
        return False
    if messages:
        session.append(*message_drafts(messages), expected_version=ANY)
    prompt.tie(None)
    return True


def _messages(given: Any) -> list[Message]:
    return [draft.data for draft in message_drafts(given)]


def _size(value: Any) -> int:
    """Return how many elements a memo has; 0 if it has none to count."""
    return len(value) if isinstance(value, str | list | dict) else 0
