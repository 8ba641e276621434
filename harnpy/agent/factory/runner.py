"""One turn of a definition: the agent loop on the session of the turn, with its approvals and questions.

Spec: 10 §C7, §C16.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.build import system_of
from harnpy.agent.factory.tools import Tool
from harnpy.agent.loop.loop import loop_of
from harnpy.agent.loop.loop_settings import read_settings
from harnpy.agent.rules.hooks import PRE_TOOL_USE
from harnpy.agent.tasks import OneTask
from harnpy.formats.json import compact_json
from harnpy.llm.providers import Connections
from harnpy.session.guards import ALLOW
from harnpy.session.turn_conversation import TurnConversation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, MutableMapping

    from harnpy.agent.factory.build import AgentBuild
    from harnpy.agent.rules.hooks import Hooks
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tasks import Tasks
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.llm.configuration.known_providers import ProviderConfig
    from harnpy.llm.providers.remote import Remote
    from harnpy.session.agent_turn import Turn
    from harnpy.session.calling import Caller
    from harnpy.session.guards import ApprovalGate, InputGate
    from harnpy.world import World

    #: Of each event loop: a connection belongs to the one that it was opened on.
    Pools = MutableMapping[asyncio.AbstractEventLoop, "Pool"]


def ask_before_calls(turn: Turn, gate: ApprovalGate, hooks: Hooks, tasks: Tasks) -> None:
    """Have the gate decide on each call of a tool, after the rules of the loop."""

    def decide(payload: Dict) -> Any:
        name, arguments = payload["tool"]["name"], compact_json(payload["tool"]["args"])
        approval = tasks.wait(gate.request(turn.session, name, arguments, turn=turn))
        if approval.decision == ALLOW:
            return None
        return {"deny": f"approval denied: {approval.reason}" if approval.reason else "approval denied"}

    hooks.add(PRE_TOOL_USE, decide)


def offer_questions(turn: Turn, gate: InputGate, entries: list[Dict], tasks: Tasks) -> None:
    """Offer the model the tool that asks a person, unless it has one of that name."""

    def ask(arguments: Dict) -> Any:
        return gate.request(turn.session, arguments["prompt"], turn)

    # A turn that is resumed has the answer, or the question is still open.
    asking = Tool(**gate.tool, handler=ask, idempotent=True, on_ambiguous="retry")
    if all(entry["name"] != asking.name for entry in entries):
        entries.append(asking.entry(tasks))


class TurnTasks(OneTask):
    """Waits as the turn's caller does: on its event loop, and until nobody wants the answer any more."""

    def __init__(self, call: Caller, world: World) -> None:
        super().__init__(world.clock)
        self._call = call

    def sleep(self, seconds: float) -> None:
        async def slept() -> None:
            await asyncio.to_thread(self._clock.sleep, seconds)

        self._call(slept)

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        try:
            return self._call(lambda: awaitable)
        finally:
            if (
                inspect.iscoroutine(awaitable)
                and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED
            ):
                awaitable.close()  # nobody wants it any more

    def go_on(self) -> None:
        self._call.check()


class Pool(Connections):
    """The connections of one event loop. `end` closes them, and so does the loop when it ends: it closes the
    generator that waits for that."""

    _guard: AsyncGenerator[None]

    async def begin(self, pools: Pools) -> None:
        """Stand in ``pools`` until the end. On the loop that it is of."""
        pools[asyncio.get_running_loop()] = self
        self._guard = self._until_the_end(pools)
        await anext(self._guard)

    async def end(self) -> None:
        await self._guard.aclose()

    async def _until_the_end(self, pools: Pools) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            pools.pop(asyncio.get_running_loop(), None)
            await self.aclose()


class TurnConnections(Connections):
    """The connections of the event loop that the turn waits on. They outlive it."""

    def __init__(self, call: Caller, models: Models, waiting: TurnTasks, pools: Pools) -> None:
        super().__init__(models.connections.http, waiting, now=models.connections.now)
        self._call = call
        self._pools = pools

    def provider(self, config: ProviderConfig) -> Remote:
        async def here() -> Pool:
            pool = self._pools.get(asyncio.get_running_loop())
            if pool is None:
                pool = Pool(self.http, self._waiting, self._caps, self.now)
                await pool.begin(self._pools)
            return pool

        found: Pool = self._call(here)
        return found.provider(config)


class LoopRunner:
    """Runs an agent that is put together, in a loop with these options; ``caller`` is named in errors.

    Raises `OptionError` for what the model can't do.
    """

    #: It makes its requests itself.
    is_loop = True

    def __init__(self, build: AgentBuild, runtime: Runtime, options: Dict, caller: str) -> None:
        definition, now = build.definition, build.world.clock.now()
        system, self._instructions = system_of(build)
        self.name = definition.name
        self._runtime = runtime
        self._settings = read_settings(runtime, "", system, options, caller, "text", prefers_native=True)
        self._seconds = None if definition.budget is None else definition.budget.seconds_left(now)

    def run(self, turn: Turn) -> None:
        """Run the loop to its end. Raises `CallError` when the model fails for good."""
        conversation = TurnConversation(turn, self._runtime.sessions)
        turn.session.on_appended = conversation.on_appended
        options, tasks = self._settings.options, self._runtime.tasks
        if turn.guards.approvals is not None:
            ask_before_calls(turn, turn.guards.approvals, self._runtime.hooks, tasks)
        if turn.guards.inputs is not None:
            offer_questions(turn, turn.guards.inputs, self._settings.tools, tasks)
        is_native = options.tool_format == "native"
        if self._runtime.hooks:
            turn.open()
        loop = loop_of(self._runtime, self._settings, conversation)
        loop.agent = self.name
        loop.offer.instructions = self._instructions
        loop.offer.asks_for_end = options.persistent
        if self._seconds is not None:
            loop.until = self._runtime.world.clock.monotonic() + self._seconds
        try:
            done = loop.run()
            if options.persistent or not is_native or loop.state.is_joined:
                turn.visible = done["visible_text"]
        finally:
            turn.session.on_appended = None
