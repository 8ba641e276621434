"""Live clients of a runtime's sessions: any number observe, at most one controls (08 §1.10, 10 §C7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harnpy.session import InvalidArgument, NotController, SessionConflict, SessionNotFound, SessionRuntime
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.clients import append_message
from harnpy.storage import Store
from tests.clock import SimulatedClock
from tests.counts import COUNT

LONG = 20.0
NAMES = st.sampled_from(["web", "tui", "phone"])


def answer(messages: Any) -> str:
    return "ok"


def actions(runtime: SessionRuntime) -> list[str]:
    """What the log says that clients did."""
    events = runtime.get("s").events(types=["transcript_event"])
    return [event.data["text"] for event in events if event.data["kind"] == "live_session_client"]


class Clients(RuleBasedStateMachine):
    """Clients of two servers on one store, beside a model of who is attached, and when each was heard of."""

    url = "memory:"

    @initialize()
    def begin(self) -> None:
        self.stack = ExitStack()
        self.clock = SimulatedClock(tick=0)
        url = self.url.format(self.stack.enter_context(TemporaryDirectory()))
        first = self.stack.enter_context(SessionRuntime(url, clock=self.clock))
        other = first.store if url == "memory:" else url
        second = self.stack.enter_context(SessionRuntime(other, clock=self.clock))
        self.servers = [first, second]
        first.create(id="s")
        self.heard: dict[str, float] = {}
        self.controller: str | None = None

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()

    def is_free_for(self, name: str) -> bool:
        """Whether nobody else controls the session, or that one is released now."""
        rival = self.controller
        if rival in (None, name):
            return True
        if self.clock.passed - self.heard[rival] > 30:
            self.controller = None
            return True
        return False

    @rule(seconds=st.sampled_from([1, 29, 31]))
    def time_passes(self, seconds: int) -> None:
        self.clock.passed += seconds

    @rule(server=st.integers(0, 1), name=NAMES, controls=st.booleans(), takeover=st.booleans())
    def attach(self, server: int, name: str, controls: bool, takeover: bool) -> None:
        before, runtime = self.controller, self.servers[server]
        mode = "controller" if controls else "observer"
        if controls and not takeover and not self.is_free_for(name):
            with pytest.raises(NotController, match=f"already has controller '{before}'") as refused:
                runtime.attach("s", name, mode=mode)
            assert (refused.value.controller, refused.value.code) == (before, "not_controller")
            return
        done = runtime.attach("s", name, mode=mode, takeover=takeover)
        self.heard[name] = self.clock.passed
        if controls:
            self.controller = name
        elif self.controller == name:
            self.controller = None
        expected = {"mode": mode, "previous_controller_id": before, "live_controller_id": self.controller}
        assert {key: done[key] for key in expected} == expected

    @rule(server=st.integers(0, 1), name=NAMES)
    def takeover(self, server: int, name: str) -> None:
        self.servers[server].takeover("s", name)
        self.heard[name], self.controller = self.clock.passed, name

    @rule(server=st.integers(0, 1), name=NAMES, leaves=st.booleans())
    def heartbeat_or_detach(self, server: int, name: str, leaves: bool) -> None:
        runtime = self.servers[server]
        verb = runtime.detach if leaves else runtime.heartbeat
        if name not in self.heard:
            with pytest.raises(InvalidArgument, match=f"client '{name}' is not attached to session 's'"):
                verb("s", name)
            return
        verb("s", name)
        if leaves:
            del self.heard[name]
            self.controller = None if self.controller == name else self.controller
        else:
            self.heard[name] = self.clock.passed

    @rule(server=st.integers(0, 1), name=NAMES)
    def send(self, server: int, name: str) -> None:
        runtime = self.servers[server]
        if not self.is_free_for(name):
            with pytest.raises(NotController, match=f"client '{self.controller}' controls it"):
                runtime.send("s", "go", agent=answer, client=name)
            return
        runtime.send("s", "go", agent=answer, client=name)
        said = runtime.get("s").messages()[-2]
        assert said["metadata"] == {"live_session": {"client_id": name}}

    @invariant()
    def all_servers_know_who_is_there(self) -> None:
        for runtime in getattr(self, "servers", ()):
            records = {record["client_id"]: record["mode"] for record in runtime.clients("s")}
            modes = {name: "controller" if name == self.controller else "observer" for name in self.heard}
            assert records == modes


class ClientsOnSqlite(Clients):
    url = "sqlite:{}/s.db?durability=relaxed"


def test_nothing_of_a_former_controller_stands_behind_a_takeover(tmp_path: Path) -> None:
    """Even where another process takes over between the look and the append."""
    url = f"sqlite:{tmp_path}/s.db?durability=relaxed"
    with SessionRuntime(url) as here, SessionRuntime(url) as there:
        here.create(id="s")
        here.attach("s", "laptop", mode="controller")

        class Agent:
            @property
            def name(self) -> str:
                there.takeover("s", "phone")  # the turn is about to begin
                return "late"

            def run(self, turn: Any) -> str:
                return "no"

        with pytest.raises(NotController, match="client 'phone' controls it"):
            here.send("s", "go", agent=Agent(), client="laptop")
        here.takeover("s", "laptop")
        seen = here.get("s")
        there.takeover("s", "phone")
        with pytest.raises(SessionConflict):
            append_message(seen, "laptop", {"content": "go"}, LONG)
        with pytest.raises(NotController):
            append_message(here.get("s"), "laptop", {"content": "go"}, LONG)
        assert here.get("s").messages() == []


def _tested(machine: type[Clients], examples: int) -> Any:
    case = machine.TestCase
    case.settings = settings(max_examples=COUNT.examples(examples), stateful_step_count=15, deadline=None)
    return case


TestClients = _tested(Clients, 10)
TestClientsOnSqlite = _tested(ClientsOnSqlite, 3)


def test_clients_come_and_go_while_a_turn_runs_elsewhere(url: str, opened: Callable[[], Store]) -> None:
    """Nobody waits for the turn's lease, and the turn goes on behind what they write."""
    begun, may_end = Flag(), Flag()

    def agent(messages: Any, turn: Any) -> Iterator[str]:
        begun.set()
        assert may_end.wait(LONG)
        with turn.step("m"):
            pass
        yield "done"

    with SessionRuntime(url) as here, ThreadPoolExecutor(1) as pool:
        here.create(id="s")
        here.attach("s", "web", mode="controller")
        with SessionRuntime(here.store if url == "memory:" else opened(), wait_timeout=0.1) as other:
            turn = pool.submit(here.send, "s", "go", agent=agent, client="web")
            assert begun.wait(LONG)
            other.attach("s", "phone", metadata={"os": "x"})
            other.heartbeat("s", "phone", metadata={"tab": 2})
            taken = other.takeover("s", "phone")
            with pytest.raises(NotController):
                here.send("s", "more", agent=answer, client="web")
            may_end.set()
            assert turn.result(LONG).text == "done"
            assert taken["client"]["metadata"] == {"os": "x", "tab": 2}
            assert [each["client_id"] for each in here.clients("s")] == ["web", "phone"]
            assert actions(here) == ["attach web", "attach phone", "heartbeat phone", "takeover phone"]
            assert not here.get("s").view.open_turns


def test_of_two_that_want_control_at_once_one_has_it(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/s.db?durability=relaxed"
    with SessionRuntime(url) as here, SessionRuntime(url) as there, ThreadPoolExecutor(2) as pool:
        for number in range(10):
            id = here.create().id

            def attach(runtime: SessionRuntime, id: str = id) -> str | None:
                try:
                    runtime.attach(id, "here" if runtime is here else "there", mode="controller")
                except NotController as refused:
                    return refused.controller
                return None

            first, second = pool.map(attach, (here, there))
            modes = {record["client_id"]: record["mode"] for record in here.clients(id)}
            assert modes in ({"here": "controller"}, {"there": "controller"})
            assert {first, second} == {None, *modes}, number


def test_a_turn_that_a_client_has_begun_is_found_by_its_key_whoever_controls_now() -> None:
    with SessionRuntime("memory:") as runtime:
        runtime.create(id="s")
        runtime.attach("s", "web", mode="controller")
        first = runtime.send("s", "go", agent=answer, client="web", idempotency_key="k")
        runtime.takeover("s", "tui")
        again = runtime.send("s", "go", agent=answer, client="web", idempotency_key="k")
        assert again.turn_id == first.turn_id
        assert runtime.send("s", "the program itself", agent=answer).text == "ok"


def test_a_silent_controller_is_released_in_the_log() -> None:
    clock = SimulatedClock(tick=0)
    with SessionRuntime("memory:", clock=clock, controller_timeout=5) as runtime:
        runtime.create(id="s")
        runtime.attach("s", "killed", mode="controller")
        clock.passed += 6
        runtime.attach("s", "looks on")  # who only looks on changes nothing
        assert runtime.clients("s")[0]["mode"] == "controller"
        assert runtime.attach("s", "web", mode="controller")["previous_controller_id"] == "killed"
        assert actions(runtime)[2:] == ["release killed", "attach web"]
        released = runtime.get("s").events(types=["transcript_event"])[2].data["metadata"]
        assert released == {
            "action": "release",
            "client_id": "killed",
            "mode": "observer",
            "previous_controller_id": "killed",
            "live_controller_id": None,
            "reason": "not heard of since 2023-11-14T22:13:20.000Z",
        }


def test_what_is_no_client() -> None:
    with SessionRuntime("memory:") as runtime:
        runtime.create(id="s")
        with pytest.raises(SessionNotFound):
            runtime.attach("gone", "web")
        for wrong, text in (("", "must not be empty"), (3, "must be a string")):
            with pytest.raises(InvalidArgument, match=f"`client_id` {text}"):
                runtime.send("s", "go", agent=answer, client=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="invalid mode 'boss'"):
            runtime.attach("s", "web", mode="boss")
        with pytest.raises(InvalidArgument, match="`controller_timeout` must be a number of seconds"):
            SessionRuntime("memory:", controller_timeout=-1)
        assert actions(runtime) == []


def test_the_same_for_asyncio() -> None:
    async def main() -> list[Any]:
        async with AsyncSessionRuntime("memory:") as runtime:
            await runtime.create(id="s")
            await runtime.attach("s", "web", mode="controller")
            await runtime.takeover("s", "tui")
            await runtime.heartbeat("s", "tui")
            await runtime.detach("s", "web", reason="gone")
            with pytest.raises(NotController):
                await runtime.send("s", "go", agent=answer, client="web")

            async def agent(messages: Any) -> Any:
                for piece in ("a", "b"):
                    yield piece

            async with await runtime.watch("s", types=["turn_completed"], chunks=True) as watch:
                await runtime.send("s", "go", agent=agent, client="tui")
                found = [await watch.next(LONG), await watch.next(LONG)]
            assert [each["client_id"] for each in await runtime.clients("s")] == ["tui"]
            return found

    chunk, event = asyncio.run(main())
    assert (chunk.text, chunk.start, event.type) == ("ab", True, "turn_completed")
