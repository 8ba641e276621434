"""`LoopFactory`: makes a loop of a definition for a session's next turn; the runtime of the default store.

Spec: 07 §8.2; 10 §C7.1, §C16.1.
"""

from __future__ import annotations

import asyncio
import inspect
from copy import copy
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from harnpy.agent.factory.build import AgentBuild, Capabilities, check_options, loop_options
from harnpy.agent.factory.tools import tool_of
from harnpy.agent.people import (
    APPROVAL,
    CANCELLED,
    HumanCancelled,
    Request,
    history_entry,
    outcome,
    response_from,
)
from harnpy.agent.rules import permissions
from harnpy.net.egress_policies import embedders_policy
from harnpy.session.errors import AgentError
from harnpy.session.events import APPROVAL_REQUESTED
from harnpy.session.send import AgentFactory
from harnpy.world import World
from harnpy.world.clock import rfc3339
from harnpy.world.egress import Egress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harnpy.agent.factory.build import Capability
    from harnpy.agent.factory.runner import LoopRunner, Pools, TurnConnections, TurnTasks
    from harnpy.agent.rules.gate import Ask
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.skills import FoundSkill
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.llm.providers import Provider
    from harnpy.llm.providers.mock import MockProvider
    from harnpy.session.agents import AgentDef
    from harnpy.session.calling import Caller
    from harnpy.session.events import Event
    from harnpy.session.transaction import Txn

# Asking a person whether an agent may call a tool. Spec: 07 §8.2, 10 §C16.1.


def asker(runtime: Runtime, session: Txn, person: Callable[[Dict], Any] | None = None) -> Ask | None:
    """Return what asks a person, by default the world's, and answers why not; None where nobody is there.

    In a workflow the record of its run has the request, too.
    """
    human, world, session_id = person or runtime.world.people.ask, runtime.world, session.id
    if human is None:
        return None

    def keep(request: Request, responses: Sequence[Dict] = (), end: str | None = None) -> None:
        workflow = runtime.context().workflow
        if workflow is not None:
            workflow.hitl(history_entry(request, responses, end))

    def ask(tool: str, arguments: Dict) -> str | None:
        payload = {"action": f"call tool {tool}", "args": arguments, "quorum": 1, "reviewers": []}
        now = rfc3339(world.clock.now())
        request = Request(f"hitl_approval_{world.ids.new()}", APPROVAL, "", now, payload)
        runtime.record(session_id, permissions.request_facts(request, session_id, tool))
        known = session.recorded_call(APPROVAL_REQUESTED, tool=tool, args=arguments)
        if known is not None and known.end is not None:
            runtime.record(session_id, [(known.end.type, known.end.data)])
            refusal = _refusal(known.end.data)
            keep(request, [_recorded(known.end, refusal)])
            return refusal
        try:
            responses = _responses(human({**request.record(), "approved_by": [], "tool": tool}), runtime)
        except HumanCancelled as error:
            reason = str(error) or "cancelled"
            runtime.record(session_id, permissions.cancellation_facts(request, tool, reason))
            keep(request, (), CANCELLED)
            return reason
        ending = outcome(request, responses)
        keep(request, responses)
        if ending is None:
            runtime.record(session_id, permissions.cancellation_facts(request, tool, "nobody answered"))
            return "nobody answered"
        if ending.error:
            runtime.record(session_id, permissions.denial_facts(request, str(ending.error), responses))
            return str(ending.error)
        runtime.record(session_id, permissions.answer_facts(request, ending.value, responses))
        return None

    return ask


def _refusal(ended: Dict) -> str | None:
    """Return why a request was refused that ended earlier."""
    return None if ended.get("decision") == "allow" else ended["reason"]


def _recorded(end: Event, refusal: str | None) -> Dict:
    """Return the response that a request had which ended earlier."""
    firsts = {key: end.data[f"{key}s"][0] for key in ("reviewer", "signature") if end.data.get(f"{key}s")}
    given = {**firsts, "approved": refusal is None, "reason": refusal or end.data.get("reason") or None}
    return response_from(given, rfc3339(end.moment))


def _responses(answer: Any, runtime: Runtime) -> list[Dict]:
    if inspect.isawaitable(answer):
        answer = runtime.tasks.wait(answer)
    given = answer if isinstance(answer, list) else [] if answer is None else [answer]
    if not all(isinstance(each, dict) for each in given):
        kind = type(answer).__name__
        raise AgentError(f"people.ask returned {kind}: expected a dict, a list of dicts or None")
    return [response_from(each, rfc3339(runtime.world.clock.now())) for each in given]


class LoopFactory(AgentFactory):
    """Runs definitions in the agent loop of chapter 7, without a line of Harn.

    ``tools`` are there for every definition: `Tool`s, or functions. ``providers`` answer calls of models by
    name, as with `Vm.provide`; services that the environment has keys for, and `mock`, are there as well.
    ``host`` is the world that agents act in, by default the real one; its ``people.ask`` is asked for
    approvals. ``events`` is called with each agent event (07 §9). ``egress`` is what model calls may reach,
    as with `Vm`; by default the environment says so. ``models`` are there in the place of those that
    ``providers`` and ``egress`` would make. Threads may share it.
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
        models: Models | None = None,
    ) -> None:
        self.capabilities = Capabilities() if capabilities is None else capabilities
        self.tools = [tool_of(each) for each in tools]
        self._providers = dict((providers or {}) if models is None else models.provided)
        self._world = World() if host is None else host
        self._events = events
        self._egress = None if egress is None else Egress(embedders_policy(egress))
        self._pools: Pools = WeakKeyDictionary()
        self._lock = Lock()
        self._made = models
        self._more: tuple[Capability, ...] = ()

    def with_capability(self, capability: Capability) -> LoopFactory:
        """Return the same factory, whose definitions all have that capability, too."""
        made = copy(self)
        made._made, made._more = self._models, (*self._more, capability)
        return made

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
        from harnpy.agent.skills import discover_skills
        from harnpy.project import project_root, skill_places

        files, here = self._world.files, self._world.files.cwd()
        root = project_root(here, files) or here
        places = skill_places(self._world.environment.get, here, root, ())
        found = [place for place in places if files.is_dir(place[1])]
        return discover_skills(self._world, root, found, lambda text: self._world.warn("skills", text))

    def check(self, definition: AgentDef) -> None:
        self.capabilities.of(definition.capabilities)
        check_options(definition, self._providers)

    def close(self, call: Caller) -> None:
        async def close() -> None:
            pool = self._pools.get(asyncio.get_running_loop())
            if pool is not None:
                await pool.end()

        call(close)

    def __call__(self, definition: AgentDef, session: Txn) -> LoopRunner:
        """Return what runs the definition in the session's next turn.

        Raises `AgentError` for an unknown capability, tool or skill, `InvalidArgument` for an unknown option,
        `OptionError` for what the model can't do. Nothing is appended.
        """
        from harnpy.agent.factory.runner import LoopRunner, TurnConnections, TurnTasks
        from harnpy.agent.runtime import Runtime
        from harnpy.session.registry import SessionRegistry

        capabilities = self.capabilities.of(definition.capabilities)
        check_options(definition, self._providers)
        world, call = self._world, session.caller
        tasks = TurnTasks(call, world)
        build = self._build(definition, session, tasks)
        for each in self.tools:
            build.add_tool(each)
        for capability in (*capabilities, *self._more):
            capability(build)
        models = self._models_beside(tasks, TurnConnections(call, self._models, tasks, self._pools))
        sessions = SessionRegistry(world=world)
        sessions.admit(session)
        if self._events is not None:
            sessions.observers.append(self._events)
        skills = self._skills if definition.skills else []
        options = loop_options(build, models, skills)
        runtime = Runtime(models, sessions, tasks, hooks=build.hooks, found_skills=skills)
        runtime.ask = asker(runtime, session)
        return LoopRunner(build, runtime, options, f"agent '{definition.name}'")

    def _build(self, definition: AgentDef, session: Txn, tasks: TurnTasks) -> AgentBuild:
        return AgentBuild(definition, session, self._world, tasks)

    def _models_beside(self, tasks: TurnTasks, connections: TurnConnections) -> Models:
        """Return the models for one turn."""
        return self._models.beside(tasks, connections)
