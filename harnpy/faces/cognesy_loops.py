"""Agent loops of definitions: harnpy's, by Cognesy's names. Spec: 10 §A3.1, §B2, §C7.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.build import AgentBuild, Capabilities, use_bash
from harnpy.agent.factory.loops import LoopFactory

if TYPE_CHECKING:
    from harnpy.faces.cognesy_sessions import EventDispatcher

AgentCapabilityRegistry = Capabilities


class UseBash:
    """The capability of running commands: tool ``bash``."""

    def __call__(self, build: AgentBuild) -> None:
        use_bash(build)


class DefinitionLoopFactory(LoopFactory):
    """Runs definitions in harnpy's loop. ``options`` are those of `harnpy.LoopFactory`.

    ``events`` is told of what the loop does as well, event by event: `EventDispatcher.add_agent_listener`.
    """

    def __init__(
        self,
        capabilities: Capabilities | None = None,
        events: EventDispatcher | None = None,
        **options: Any,
    ) -> None:
        super().__init__(capabilities, events=None if events is None else events.agent_event, **options)
