"""The extension for asyncio. Spec: 10 §C7.2, §C9."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from harnpy.session import SessionExtension, current_session_id
from harnpy.session.aio import AsyncSession, AsyncSessionExtension, AsyncSessionRuntime
from harnpy.storage import Store
from tests.session.shapes import said


def test_the_life_of_requests(store: Store) -> None:
    async def ask(agent: AsyncSessionExtension, id: str) -> list[Any]:
        session = await agent.activate(id)
        for number in range(3):
            prompt = await agent.prepare({"input": f"question {number}"})
            assert current_session_id() == id
            await asyncio.sleep(0)
            await agent.finish(prompt, f"answer {len(prompt.slots()['chat_history'])}")
            await agent.finish(prompt, "again")
        return [message["content"] for message in await session.messages()]

    async def main() -> None:
        async with AsyncSessionRuntime(store) as runtime:
            agents = [AsyncSessionExtension(runtime, "clerk", settings={"n": 1}) for _ in range(2)]
            said_in = await asyncio.gather(*(ask(agent, f"s{n}") for n, agent in enumerate(agents)))
            spoken = ["question 0", "answer 0", "question 1", "answer 2", "question 2", "answer 4"]
            assert said_in == [spoken, spoken]
            agent = agents[0]
            assert isinstance(agent.session, AsyncSession)
            assert (agent.session.id, list(agent.sessions), agent.settings["n"]) == ("s0", ["s0"], 1)
            agent.strategy("none", lambda *_: (None, [], None))
            agent.on_analyze(lambda full, window, *_: "none" if len(window) > 6 else None)
            agent.set_settings("m", 2)
            await agent.add_history(said("user", "more"))
            assert await agent.chat_history() == []
            await agent.set_history(said("user", "new"))
            await agent.clean_window()
            assert await agent.session.history() == [said("user", "new")]
            await agent.reset()
            assert await agent.session.history() == []
            agent.prompt["role"] = "clerk"
            assert (await agent.prepare({})).slots() == {"role": "clerk", "chat_history": []}
            await agent.deactivate()
            assert (agent.session, agent.agent_name, agent.events) == (None, "clerk", runtime.events)

    asyncio.run(main())


def test_it_has_the_names_of_the_other_one() -> None:
    def names(face: object) -> set[str]:
        return {name for name, _ in inspect.getmembers(face) if not name.startswith("_")}

    own = {"runtime", "strict_roles", "memory", "extension"}
    assert names(AsyncSessionExtension()) - own == names(SessionExtension()) - own
