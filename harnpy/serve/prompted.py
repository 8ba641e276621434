"""Who answers prompts: what a service needs of the agents of a server, and a server that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from harnpy.serve.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.agents import AgentDef, TurnResult
    from harnpy.session.aio import AsyncSessionRuntime


class Prompted(Protocol):
    """The agents of a server, and what has them answer: `harnpy.serve.agents.Agents`."""

    @property
    def names(self) -> Sequence[str]: ...

    def kind(self, name: str) -> Literal["definition", "program"]: ...

    def description(self, name: str) -> str: ...

    def file(self, name: str) -> str | None:
        """Return the file of a program; None for a definition."""

    def definition(self, name: str) -> AgentDef | None:
        """Return the definition of an agent; None of one that is a program. Raises `Fault` for no agent."""

    async def prompt(
        self, runtime: AsyncSessionRuntime, session_id: str, prompt: Any, **options: Any
    ) -> TurnResult:
        """Run a turn of the session, and return what became of it."""


class Definitions:
    """The agents of a server without AGENTs: sessions are answered by their own definitions."""

    names: Sequence[str] = ()

    def kind(self, name: str) -> Literal["definition", "program"]:
        raise _no_agent(name)

    def description(self, name: str) -> str:
        raise _no_agent(name)

    def file(self, name: str) -> str | None:
        raise _no_agent(name)

    def definition(self, name: str) -> AgentDef | None:
        raise _no_agent(name)

    async def prompt(
        self, runtime: AsyncSessionRuntime, session_id: str, prompt: Any, **options: Any
    ) -> TurnResult:
        agent, client, key = (options.pop(name, None) for name in ("agent", "client", "key"))
        if agent is not None:
            self.definition(agent)
        if client is not None:
            options["client"] = client
        return await runtime.send(session_id, prompt, idempotency_key=key, **options)


def _no_agent(name: str) -> Refused:
    return Refused(422, "invalid", f"there is no agent `{name}`: this server has none")
