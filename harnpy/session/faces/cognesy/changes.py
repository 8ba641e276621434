"""Writing what a value differs in from the session that it was read from. Spec: 10 §B2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import SessionNotFound
from harnpy.session.faces.cognesy.sessions import TASKS, AgentSession
from harnpy.session.statuses import PENDING

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.sessions import AgentState
    from harnpy.session.log import Session


def write_changes(session: Session, before: AgentSession, after: object) -> None:
    """Write to ``session``, whose value is ``before``, what ``after`` differs in. Identity, definition,
    version and times of a session don't change.

    Raises TypeError for what is no value, `SessionNotFound` for one of another session.
    """
    if after is before:
        return
    if not isinstance(after, AgentSession):
        raise TypeError(f"session '{session.id}': expected an AgentSession back, got {type(after).__name__}")
    if after.session_id != before.session_id:
        raise SessionNotFound(str(after.session_id))
    if after.state is not before.state:
        _write_messages(session, before.state, after.state)
        _write_registers(session, before.state, after.state)
    if after.status != before.status:
        session.set_status(str(after.status))


def _write_messages(session: Session, before: AgentState, after: AgentState) -> None:
    count = len(before.messages)
    forgets_run = after.execution_status == PENDING != before.execution_status
    if not after.messages and (before.messages or forgets_run):
        session.reset()
    elif after.messages[:count] != before.messages:
        session.set_history(after.messages)
    elif len(after.messages) > count:
        session.add_history(after.messages[count:])


def _write_registers(session: Session, before: AgentState, after: AgentState) -> None:
    if after.system_prompt != before.system_prompt:
        session.set("system_prompt", after.system_prompt)
    if after.llm_config != before.llm_config:
        session.set("model", after.llm_config)
    for key in {**before.metadata, **after.metadata}:
        value = after.metadata.get(key)
        if value != before.metadata.get(key):
            _write_metadata(session, key, value)


def _write_metadata(session: Session, key: str, value: Any) -> None:
    if key not in TASKS or value is None:
        session.set(key if key in TASKS else f"metadata.{key}", value)
    elif key == "task":
        session.set_task(value)
    else:
        session.set_tasks(value)
