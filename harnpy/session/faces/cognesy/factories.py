"""Sessions that no store has yet: version 0. Spec: 10 §A3.1, §A3.5."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harnpy.session.faces.cognesy.sessions import AgentSession, AgentState
from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionId, now

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.definitions import AgentDefinition


class DefinitionStateFactory:
    """Makes the state that an agent's sessions begin with."""

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentState:
        """Return ``seed`` with what the definition says: its prompt, unless blank, and its metadata win."""
        time = now()
        state = seed or AgentState("", time, time)
        return replace(
            state,
            system_prompt=definition.system_prompt
            if definition.system_prompt.strip()
            else state.system_prompt,
            metadata={**state.metadata, **definition.metadata},
            llm_config=state.llm_config if definition.llm_config is None else definition.llm_config,
        )


class SessionFactory:
    """Makes sessions of agents."""

    def __init__(self, state_factory: DefinitionStateFactory | None = None) -> None:
        self._states = state_factory or DefinitionStateFactory()

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentSession:
        """Return a session that isn't stored. ``seed`` is the state to begin with."""
        info = AgentSessionInfo.fresh(SessionId.generate(), definition.name, definition.label)
        state = replace(self._states.create(definition, seed), agent_id=str(info.session_id))
        return AgentSession(info, definition, state)


def forked(source: AgentSession, new_id: str | None = None) -> AgentSession:
    """Return a fork that isn't stored: active, with the source's definition and state, but no run."""
    source_info = source.info
    info = AgentSessionInfo.fresh(
        new_id or SessionId.generate(), source_info.agent_name, source_info.agent_label
    ).with_parent_id(str(source.session_id))
    state = replace(source.state.for_next_execution(), agent_id=str(info.session_id), execution_count=0)
    return replace(source, info=info, state=state)
