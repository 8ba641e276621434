"""Which agent a turn has: the one that is passed, or the session's definition in a loop. Spec: 10 §C7.1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harnpy.session.agents.definition import AgentDef
from harnpy.session.agents.running import check_agent, name_of_agent
from harnpy.session.errors import InvalidArgument
from harnpy.storage.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.session.agents.definition import Budget
    from harnpy.session.runtime.calling import Caller
    from harnpy.session.runtime.txn import Txn


#: The option of any agent: how often it is called again with a smaller window when a request was too long.
RETRIES: Final = "overflow_retries"


class AgentFactory(ABC):
    """Makes what runs a definition: an object with ``run(turn)``, for one turn."""

    @abstractmethod
    def __call__(self, definition: AgentDef, session: Any) -> Any:
        """Return what runs the definition in the session's next turn.

        Nothing has been appended yet: whatever is wrong with the definition raises here.
        """

    @abstractmethod
    def check(self, definition: AgentDef) -> None:
        """Raise for a definition that can't be run, as far as shows without a session."""

    @abstractmethod
    def close(self, call: Caller) -> None:
        """End the connections that were opened for what ``call`` called."""


def check_send(agent: Any, session_id: str, options: Mapping[str, Any]) -> None:
    """Raise `InvalidArgument` for what is no agent, and for options that it can't have."""
    if agent is None or isinstance(agent, AgentDef | AgentFactory):
        return
    if isinstance(agent, type) and (issubclass(agent, AgentDef | AgentFactory) or hasattr(agent, "run")):
        raise InvalidArgument(f"an agent is no class: pass an instance of {agent.__name__}", session_id)
    check_agent(agent, session_id)
    retries = options.get(RETRIES, 0)
    if type(retries) is not int or retries < 0:
        raise InvalidArgument(f"send: {RETRIES} must be an int >= 0, got {retries!r}", session_id)
    given = next((name for name in options if name != RETRIES), None)
    if given is not None:
        name = name_of_agent(agent)
        raise InvalidArgument(
            f"send: unknown option '{given}': those of a loop are for definitions, and agent {name} is none",
            session_id,
        )


def resolved(agent: Any, session: Txn, options: Mapping[str, Any], budget: Budget | None = None) -> Any:
    """Return the agent to run in a session: a function, or an object with ``run(turn)``.

    ``options`` are added to those of a definition; a ``budget`` takes the place of its own. Raises
    `Unsupported` where there is no agent, or no loop for the definition, and whatever is wrong with it.
    """
    agents = session.agents
    if agent is None:
        agent = agents if agents is not None else session.agent_facts().get("definition")
    if isinstance(agent, AgentFactory):
        agents, agent = agent, session.agent_facts().get("definition")
    if isinstance(agent, dict):
        agent = AgentDef.stored(agent)
    check_send(agent, session.id, options)
    if not isinstance(agent, AgentDef):
        check_agent(agent, session.id)
        return agent
    if not isinstance(agents, AgentFactory):
        raise Unsupported(
            f"agent definition '{agent.name}' has no loop to run in: open the runtime with harnpy.runtime(), "
            "or pass agents=LoopFactory()"
        )
    if options:
        agent = replace(agent, options={**agent.options, **options})
    if budget is not None:
        agent = replace(agent, budget=budget)
    return agents(agent, session)
