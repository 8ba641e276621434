"""Running a turn on a value that no runtime has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harnpy.session.faces.cognesy.saving import saved_by
from harnpy.session.faces.cognesy.stores import InMemorySessionStore

if TYPE_CHECKING:
    from harnpy.session.agents.send import Send
    from harnpy.session.faces.cognesy.sessions import AgentSession


def tried(session: AgentSession, action: Send) -> AgentSession:
    """Return the session with the messages and the state that the turn leaves."""
    with InMemorySessionStore() as store:
        store.create(replace(session, info=session.info.with_(version=0)))
        state = saved_by(lambda: store.runtime.execute(str(session.session_id), action)).state
    return session.with_state(replace(state, execution_count=session.state.execution_count + 1))
