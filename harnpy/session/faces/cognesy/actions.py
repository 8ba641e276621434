"""Actions: objects whose ``execute_on`` takes a session and returns what it becomes. Spec: 10 §A3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harnpy.session.agents.send import Send
from harnpy.session.faces.cognesy.factories import forked
from harnpy.session.faces.cognesy.trying import tried
from harnpy.session.runtime import actions
from harnpy.session.tasks import TaskList

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.faces.cognesy.sessions import AgentSession
    from harnpy.session.tasks import Task


class SendMessage(Send):
    """Appends a user's message (a text, what has one, or a message) and runs the agent of ``loop_factory``,
    one that `SessionRuntime.send` takes."""

    name: ClassVar[str] = "SendMessage"

    def __init__(self, message: Any, loop_factory: Any) -> None:
        super().__init__(message if isinstance(message, dict) else str(message), loop_factory)

    def execute_on(self, session: AgentSession) -> AgentSession:
        """Return the session with what was said. Only the messages and the state tell of the run."""
        return tried(session, self)


class SuspendSession:
    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.suspended()


class ResumeSession:
    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.resumed()


class ClearSession:
    """Drops the messages; identity, definition, metadata, prompt and model stay."""

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_messages(()).for_next_execution())


class ForkSession:
    """Makes a session that isn't stored. It is for use outside `SessionRuntime.execute`."""

    def __init__(self, new_id: str | None = None) -> None:
        self._new_id = new_id

    def execute_on(self, session: AgentSession) -> AgentSession:
        return forked(session, self._new_id)


class ChangeSystemPrompt:
    """``text`` may be anything that has a text."""

    def __init__(self, text: object) -> None:
        self._text = str(text)

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_system_prompt(self._text))


class ChangeModel:
    """None is the default model."""

    def __init__(self, config: Any = None) -> None:
        self._config = config

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_llm_config(self._config))


class WriteMetadata:
    def __init__(self, key: str, value: Any) -> None:
        self._key = key
        self._value = value

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_metadata(self._key, self._value))


class UpdateTask:
    """Sets what the session is about, by a text, or its todo list, by a list. Raises TypeError,
    `InvalidArgument`."""

    def __init__(self, task: str | Iterable[Task | dict[str, Any]]) -> None:
        checked = actions.UpdateTask(task).task
        self._key = "task" if isinstance(checked, str) else "tasks"
        self._value = checked if isinstance(checked, str) else TaskList.of(checked).data()

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_metadata(self._key, self._value))
