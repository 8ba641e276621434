"""An agent's resize handlers and settings, and the sessions that go by them. Spec: 10 §A2.5, §C8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.resize.resizable import Resizing
from harnpy.session.resize.resize_policy import ResizePolicy
from harnpy.session.settings.levels import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.session.log import Session
    from harnpy.session.resize.resize_policy import Analysis, Strategy


class AgentHandlers:
    """Each session of the agent has a policy of its own, to which these handlers are added: a later one of
    the session itself takes their place there.

    ``settings`` hold for all of them that haven't set their own.
    """

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self.settings = Level(settings)
        self._analysis: Analysis | None = None
        self._strategies: dict[str, Strategy] = {}

    def bind(self, session: Session) -> None:
        """Let a session go by them, instead of those of another agent."""
        if self._binds(session):
            return
        was = session.resizing or Resizing(ResizePolicy())
        was = was.unbound or was
        policy = was.policy.copy()
        if self._analysis is not None:
            policy.on_analyze(self._analysis)
        policy.strategies |= self._strategies
        session.resize_by(was._replace(policy=policy, agent=self.settings, unbound=was))

    def on_analyze(self, fn: Analysis | None, sessions: Iterable[Session]) -> None:
        """Have ``fn`` name the strategy that is due; None: the default analysis again."""
        self._analysis = fn
        for session in filter(self._binds, sessions):
            session.policy.on_analyze(fn)

    def strategy(self, name: str, fn: Strategy, sessions: Iterable[Session]) -> None:
        """Register a strategy. Raises `InvalidArgument` for a blank name."""
        ResizePolicy().strategy(name, fn)  # refuses what is no name
        self._strategies[name] = fn
        for session in filter(self._binds, sessions):
            session.policy.strategy(name, fn)

    def _binds(self, session: Session) -> bool:
        return session.resizing is not None and session.resizing.agent is self.settings
