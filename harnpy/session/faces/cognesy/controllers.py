"""Controllers: what may change a session at each stage of an action. Spec: 10 §A3.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.session.faces.cognesy.contracts import AgentSessionStage, CanControlAgentSession
    from harnpy.session.faces.cognesy.sessions import AgentSession


class PassThroughSessionController:
    """Changes nothing."""

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        return session


class SessionHookStack:
    """Controllers in the order in which they are asked, each with what the one before gave. Immutable."""

    def __init__(self) -> None:
        self._entries: tuple[tuple[int, str, CanControlAgentSession], ...] = ()

    @classmethod
    def empty(cls) -> SessionHookStack:
        return cls()

    def with_(
        self, hook: CanControlAgentSession, priority: int = 0, name: str | None = None
    ) -> SessionHookStack:
        """Return a stack with one controller more: before those of a lower priority, behind those of the
        same. ``name`` is for people."""
        stack = SessionHookStack()
        entries = [*self._entries, (priority, name or type(hook).__name__, hook)]
        stack._entries = tuple(sorted(entries, key=lambda entry: -entry[0]))
        return stack

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name, _ in self._entries)

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        for _, _, hook in self._entries:
            session = hook.on_stage(stage, session)
        return session
