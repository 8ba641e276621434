"""What a loop tries again, and how long it waits: a host's tools, the model (07 §6.1, §1.8)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.agent.tool_registry import ToolFailure
from harnpy.llm.errors import CallError, NobodyListens
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session import SessionRegistry
from harnpy.world import World
from harnpy.world.host import Host as Bridge
from tests.worlds import Waits, models_with


class Host:
    """A host whose tool fails ``failures`` times; ``slept`` are the seconds that a loop waited."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0
        self.slept: list[float] = []

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "here"

    def loop(self, **options: Any) -> str:
        """What the model reads of one call."""
        models = models_with({}, sleep=self.slept.append)
        models.mock.add({"tool_calls": [{"name": "ask"}]})
        tools = [{"name": "ask", "executor": "host_bridge", "host_capability": "interaction.ask"}]
        sessions = SessionRegistry(world=World(host=Bridge(bridge=self)))
        runtime = Runtime(models, sessions, Waits(self.slept.append))
        given = {"provider": "mock", "tools": tools, "tool_format": "native", "max_iterations": 1, **options}
        return str(run_loop(runtime, "go", None, given)["transcript"]["messages"][2]["content"])


def test_not_at_all_when_not_told() -> None:
    host = Host(1, ConnectionError("gone"))
    assert host.loop() == "Error: gone"
    assert (host.calls, host.slept) == (1, [])


def test_as_often_as_the_options_say() -> None:
    host = Host(2, ConnectionError("gone"))
    assert host.loop(tool_retries=2) == "here"
    assert (host.calls, host.slept[1]) == (3, 2 * host.slept[0])
    assert Host(3, ConnectionError("gone")).loop(tool_retries=2) == "Error: gone"


def test_the_wait_doubles_five_times_from_the_given_one() -> None:
    host = Host(9, ConnectionError("gone"))
    host.loop(tool_retries=8, tool_backoff_ms=10)
    assert host.slept == [pytest.approx(0.01 * 2 ** min(n, 5)) for n in range(8)]


@pytest.mark.parametrize("category", ["timeout", "tool_rejected", None])
def test_what_a_tool_itself_answers_stands(category: str | None) -> None:
    host = Host(1, ToolFailure("no", category))
    assert "no" in host.loop(tool_retries=3)
    assert host.calls == 1


class Silent:
    """A provider that is always overloaded."""

    def complete(self, request: Request) -> Reply:
        raise CallError("overloaded", "busy")


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({}, [4.0, 8.0]),
        ({"llm_retries": 5, "llm_backoff_ms": 10}, [0.02, 0.04, 0.08, 0.16, 0.16]),
        ({"llm_retries": 0}, []),
    ],
)
def test_a_model_is_waited_for_longer_and_longer(options: dict[str, Any], waits: list[float]) -> None:
    slept: list[float] = []
    models = models_with({}, sleep=slept.append, provided={"silent": Silent()})
    with pytest.raises(CallError, match="busy"):
        run_loop(Runtime(models, SessionRegistry()), "go", None, {"provider": "silent", **options})
    assert slept == [pytest.approx(wait) for wait in waits]


def test_a_long_wait_is_told() -> None:
    told: list[str] = []
    models = models_with({}, sleep=lambda seconds: None, provided={"silent": Silent()}, write_err=told.append)
    for backoff in (2000, 100):
        options = {"provider": "silent", "llm_backoff_ms": backoff}
        with pytest.raises(CallError, match="busy"):
            run_loop(Runtime(models, SessionRegistry()), "go", None, options)
    assert told == [
        "warning: model: busy; retry 1 of 2 in 4 s\n",
        "warning: model: busy; retry 2 of 2 in 8 s\n",
    ]


def test_nobody_waits_for_a_server_that_is_not_running() -> None:
    class Gone:
        def complete(self, request: Request) -> Reply:
            raise NobodyListens("transient_network", "gone: connection refused by localhost:1")

    slept: list[float] = []
    models = models_with({}, sleep=slept.append, provided={"gone": Gone()})
    with pytest.raises(CallError, match="refused"):
        run_loop(Runtime(models, SessionRegistry()), "go", None, {"provider": "gone"})
    assert slept == []
