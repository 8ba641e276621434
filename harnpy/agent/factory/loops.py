"""`LoopFactory`: makes of a definition what runs it in a session's next turn. Spec: 10 §C7.1."""

from __future__ import annotations

import asyncio
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from harnpy.agent.factory.approvals import asker
from harnpy.agent.factory.build import AgentBuild
from harnpy.agent.factory.capabilities import Capabilities
from harnpy.agent.factory.options import check_options, loop_options
from harnpy.agent.factory.tools import tool_of
from harnpy.net.egress_policies import embedders_policy
from harnpy.session.agents.factories import AgentFactory
from harnpy.world import World
from harnpy.world.net.egress import Egress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.agent.factory.runner import LoopRunner, Pools
    from harnpy.agent.skills.library import FoundSkill
    from harnpy.llm.call import Models
    from harnpy.llm.providers import Provider
    from harnpy.llm.providers.mock import MockProvider
    from harnpy.reading.dicts import Dict
    from harnpy.session.agents.definition import AgentDef
    from harnpy.session.runtime.calling import Caller
    from harnpy.session.runtime.txn import Txn


class LoopFactory(AgentFactory):
    """Runs definitions in the agent loop of chapter 7, without a line of Harn.

    ``tools`` are there for every definition: `Tool`s, or functions. ``providers`` answer calls of models by
    name, as with `Vm.provide`; services that the environment has keys for, and `mock`, are there as well.
    ``host`` is the world that agents act in, by default the real one; its ``people.ask`` is asked for
    approvals. ``events`` is called with each agent event (07 §9). ``egress`` is what model calls may reach,
    as with `Vm`; by default the environment says so. Threads may share it.
    """

    def __init__(
        self,
        capabilities: Capabilities | None = None,
        *,
        tools: Iterable[Any] = (),
        providers: Mapping[str, Provider] | None = None,
        host: World | None = None,
        events: Callable[[Dict], Any] | None = None,
        egress: Mapping[str, Any] | None = None,
    ) -> None:
        self.capabilities = capabilities or Capabilities()
        self.tools = [tool_of(each) for each in tools]
        self._providers = dict(providers or {})
        self._world = host or World()
        self._events = events
        self._egress = None if egress is None else Egress(embedders_policy(egress))
        self._pools: Pools = WeakKeyDictionary()
        self._lock = Lock()
        self._made: Models | None = None

    @property
    def mock(self) -> MockProvider:
        """The provider that needs no model: `add({"text": …})` queues a reply, `calls()` are those it got."""
        return self._models.mock

    @property
    def _models(self) -> Models:
        from harnpy.llm.call import Models

        with self._lock:
            if self._made is None:
                http = None if self._egress is None else self._world.http.behind(self._egress)
                self._made = Models(self._world, provided=self._providers, http=http)
            return self._made

    @cached_property
    def _skills(self) -> list[FoundSkill]:
        """The skills of files: of the project at the working directory, the user, the system."""
        from harnpy.agent.skills.sources import discover
        from harnpy.project import project_root, skill_places

        files, here = self._world.files, self._world.files.cwd()
        root = project_root(here, files) or here
        places = skill_places(self._world.environment.get, here, root, ())
        found = [place for place in places if files.is_dir(place[1])]
        return discover(files, root, found, lambda text: self._world.warn("skills", text))

    def check(self, definition: AgentDef) -> None:
        self.capabilities.of(definition.capabilities)
        check_options(definition, self._providers)

    def close(self, call: Caller) -> None:
        async def close() -> None:
            pool = self._pools.pop(asyncio.get_running_loop(), None)
            if pool is not None:
                await pool.aclose()

        call(close)

    def __call__(self, definition: AgentDef, session: Txn) -> LoopRunner:
        """Return what runs the definition in the session's next turn.

        Raises `AgentError` for an unknown capability, tool or skill, `InvalidArgument` for an unknown option,
        `OptionError` for what the model can't do. Nothing is appended.
        """
        from harnpy.agent.factory.runner import LoopRunner, TurnConnections, TurnTasks
        from harnpy.agent.runtime import Runtime
        from harnpy.session.registry import SessionRegistry

        self.check(definition)
        world, call = self._world, session.caller
        tasks = TurnTasks(call, world)
        build = AgentBuild(definition, session, world, tasks)
        for each in self.tools:
            build.add_tool(each)
        for capability in self.capabilities.of(definition.capabilities):
            capability(build)
        models = self._models
        models = models.beside(tasks, TurnConnections(call, models.connections.http, tasks, self._pools))
        sessions = SessionRegistry(world=world)
        sessions.admit(session)
        if self._events is not None:
            sessions.observers.append(self._events)
        skills = self._skills if definition.skills else []
        options = loop_options(build, models, skills)
        runtime = Runtime(models, sessions, tasks, hooks=build.hooks, found_skills=skills)
        runtime.ask = asker(runtime, session)
        return LoopRunner(build, runtime, options, f"agent '{definition.name}'")
