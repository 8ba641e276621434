"""A session as a value: header, definition of its agent, and state. Every change gives a new one.

`value_of` reads one from a session of harnpy's; `changes` writes what another differs in. Spec: 10 §A3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harnpy.session.faces.cognesy.definitions import AgentDefinition
from harnpy.session.faces.cognesy.values import AgentSessionInfo, SessionId, SessionStatus, moment
from harnpy.session.identity import micros
from harnpy.session.statuses import PENDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from harnpy.session.log import Session

    Message = dict[str, Any]

#: Registers that Cognesy keeps among the metadata.
TASKS = ("task", "tasks")


@dataclass(frozen=True)
class AgentState:
    """What an agent has done: the messages, and what later runs go by.

    ``execution_status`` is what became of the last run: ``pending``, ``in_progress``, ``completed``,
    ``stopped`` or ``failed``; ``execution_count`` is how many there were.
    """

    agent_id: str
    created_at: datetime
    updated_at: datetime
    messages: tuple[Message, ...] = ()
    system_prompt: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    llm_config: Any = None
    execution_count: int = 0
    execution_status: str = PENDING
    parent_agent_id: str | None = None

    def with_messages(self, messages: Iterable[Message]) -> AgentState:
        return replace(self, messages=tuple(messages))

    def with_message(self, message: Message) -> AgentState:
        """Return a state with one message more."""
        return self.with_messages((*self.messages, message))

    def with_metadata(self, key: str, value: Any) -> AgentState:
        """Return a state in which one key of the metadata is set; None clears it."""
        return replace(self, metadata={**self.metadata, key: value})

    def with_system_prompt(self, text: str) -> AgentState:
        return replace(self, system_prompt=text)

    def with_llm_config(self, config: Any) -> AgentState:
        """Return a state with another model; None is the default one."""
        return replace(self, llm_config=config)

    def for_next_execution(self) -> AgentState:
        """Return a state in which no run is under way or over."""
        return replace(self, execution_status=PENDING)


@dataclass(frozen=True)
class AgentSession:
    """One session. ``seq`` is how many events its log had when it was read; 0: it comes from no store."""

    info: AgentSessionInfo
    definition: AgentDefinition
    state: AgentState
    seq: int = field(default=0, compare=False, repr=False)

    @staticmethod
    def reconstitute(session: AgentSession, version: int, updated_at: datetime) -> AgentSession:
        """Return the session as a store has it: with that version and time."""
        return replace(session, info=session.info.with_(version=version, updated_at=updated_at))

    @property
    def session_id(self) -> SessionId:
        return self.info.session_id

    @property
    def status(self) -> SessionStatus:
        return self.info.status

    @property
    def version(self) -> int:
        return self.info.version

    def with_state(self, state: AgentState) -> AgentSession:
        """Return a session with another state. Its status stays."""
        return replace(self, state=state)

    def with_status(self, status: SessionStatus) -> AgentSession:
        return replace(self, info=self.info.with_(status=status))

    def with_parent_id(self, parent_id: str | None) -> AgentSession:
        return replace(self, info=self.info.with_parent_id(parent_id))

    def suspended(self) -> AgentSession:
        return self.with_status(SessionStatus.SUSPENDED)

    def resumed(self) -> AgentSession:
        return self.with_status(SessionStatus.ACTIVE)

    def completed(self) -> AgentSession:
        return self.with_status(SessionStatus.COMPLETED)

    def failed(self) -> AgentSession:
        return self.with_status(SessionStatus.FAILED)

    def deleted(self) -> AgentSession:
        return self.with_status(SessionStatus.DELETED)


def value_of(session: Session) -> AgentSession:
    """Return what a session is now. Its messages are those of `Session.history`."""
    created = session.event(1)
    facts = created.stored()
    definition = AgentDefinition.of(facts)
    began, updated = moment(created.time), moment(micros(session.moment))
    info = AgentSessionInfo(
        session_id=SessionId(session.id),
        agent_name=definition.name,
        agent_label=definition.label,
        created_at=began,
        updated_at=max(began, updated),
        parent_id=facts.get("parent_session_id"),
        status=SessionStatus(session.status),
        version=session.revision,
    )
    kept = {key: session.get(key) for key in TASKS}
    state = AgentState(
        agent_id=session.id,
        created_at=info.created_at,
        updated_at=info.updated_at,
        messages=tuple(session.history()),
        system_prompt=session.get("system_prompt", definition.system_prompt),
        metadata=session.metadata | {key: value for key, value in kept.items() if value is not None},
        llm_config=session.get("model", definition.llm_config),
        execution_count=len(session.view.turns) - len(session.view.open_turns),
        execution_status=session.execution_status,
    )
    return AgentSession(info, definition, state, session.version)
