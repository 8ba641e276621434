"""What programs and records are told of calls: usage, experiments, spent budgets. Spec: 07 §1.12, §1.16."""

from __future__ import annotations

import json
import pickle
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import AgentDef, LoopFactory, Vm, runtime
from harnpy.llm.account import Trace
from harnpy.llm.call import Models
from harnpy.llm.errors import BudgetSpent
from harnpy.llm.experiments import apply, read_experiment
from harnpy.llm.streaming import stream_into
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import OPENAI, Say, Wire
from tests.worlds import models_with, world_with

_CALLS = """
llm_mock({text: "a", input_tokens: 3, output_tokens: 4})
llm_mock({text: "b", input_tokens: 10, output_tokens: 20})
llm_call("one", nil, {provider: "mock"})
llm_call("two", nil, {provider: "mock"})
"""


def test_a_host_that_traces_lets_programs_see_the_usage() -> None:
    usage = Vm(trace_llm=True).run_source(f"pipeline main(task) {{ {_CALLS} return llm_usage() }}")
    assert usage.pop("total_duration_ms") >= 0
    assert usage == {"input_tokens": 13, "output_tokens": 24, "call_count": 2, "total_calls": 2}
    cost = Vm(trace_llm=True).run_source(f"pipeline main(task) {{ {_CALLS} return llm_session_cost() }}")
    assert cost == {
        "input_tokens": 13, "output_tokens": 24, "call_count": 2, "total_cost": 0.000399, "unpriced_calls": 0
    }  # fmt: skip


def test_run_traces_when_asked_to(harnpy: Any) -> None:
    code = 'llm_call("one", nil, {provider: "mock"})\nprintln(llm_usage().call_count)'
    assert harnpy("run", "-e", code).stdout == "0\n"
    assert harnpy("run", "--trace", "-e", code).stdout == "1\n"


def test_the_trace_counts_what_loops_report() -> None:
    trace = Trace()
    trace.record(
        "tool_execution",
        tool_name="t",
        tool_use_id="1",
        duration_ms=5,
        status="ok",
        classification=None,
        iteration=0,
    )
    trace.record("tool_rejected", tool_name="t", reason="no", iteration=0)
    trace.record("loop_intervention", tool_name="t", kind="warn", count=2, iteration=1)
    for accepted in (True, False):
        trace.record(
            "native_tool_fallback",
            iteration=1,
            accepted=accepted,
            policy="allow_once",
            fallback_index=1,
            tool_call_count=1,
        )
    trace.record_loop("done", 2, 9, tools_used=["t", "t"], successful=["t"])
    assert trace.events[-1]["successful_tools"] == ["t"]
    summary = trace.summary()
    assert summary["total_tool_duration_ms"] == 5
    assert (summary["tool_executions"], summary["tool_rejections"], summary["interventions"]) == (1, 1, 1)
    assert summary["native_text_tool_fallbacks"] == 2
    assert summary["native_text_tool_fallback_rejections"] == 1
    assert summary["tools_used"] == ["t", "t"]


def test_a_spent_budget_pickles() -> None:
    error = pickle.loads(pickle.dumps(BudgetSpent(1.5, 1)))
    assert str(error) == "LLM budget exceeded: spent $1.5000 of $1.0000 budget"


# Structural experiments.


def request(models: Models, **options: Any) -> Any:
    return models.request("hi", None, models.options({"provider": "mock", **options}))


def test_the_environment_has_a_default_experiment() -> None:
    models = models_with({"HARN_STRUCTURAL_EXPERIMENT": "doubled_prompt"})
    assert len(request(models).messages) == 3
    assert len(request(models, structural_experiment=None).messages) == 3
    assert len(request(models, structural_experiment=False).messages) == 1
    assert request(models, structural_experiment="chain_of_draft").experiment_note["name"] == "chain_of_draft"
    assert request(models_with({"HARN_STRUCTURAL_EXPERIMENT": " "})).experiment_note is None


def test_the_arguments_of_a_spec_are_values() -> None:
    experiment = read_experiment('doubled_prompt(seed: -3, on: true, name: "x y", bare: word)')
    assert experiment is not None
    assert experiment.args == {"seed": -3, "on": True, "name": "x y", "bare": "word"}


@given(
    sections=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    seed=st.integers(),
    system=st.none() | st.text(),
)
def test_a_permutation_loses_nothing_and_changes_what_can_be_changed(
    sections: list[str], seed: int, system: str | None
) -> None:
    experiment = read_experiment({"name": "prompt_order_permutation", "args": {"seed": seed}})
    assert experiment is not None
    messages = [{"role": "user", "content": "\n\n".join(sections)}]
    sent = apply(experiment, messages, system)
    assert sent.system == system
    mixed = sent.messages[0]["content"].split("\n\n")
    assert sorted(mixed) == sorted(sections)
    assert (mixed != sections) == (len(set(sections)) > 1)
    assert messages == [{"role": "user", "content": "\n\n".join(sections)}]


def test_the_sidecar_names_the_experiment() -> None:
    rows: list[str] = []
    env = {"HARN_LLM_TRANSCRIPT_DIR": "/logs"}
    models = models_with(env, write_text=lambda path, line, append: rows.append(line))
    models.ask(request(models, structural_experiment="doubled_prompt"))
    models.ask(request(models))
    found = [
        (row["type"], (row["structural_experiment"] or {}).get("label"))
        for row in map(json.loads, rows)
        if row["type"].startswith("provider_call")
    ]
    assert found == [
        ("provider_call_request", "doubled_prompt"),
        ("provider_call_response", "doubled_prompt"),
        ("provider_call_request", None),
        ("provider_call_response", None),
    ]


# Streams.


def streamed(models: Models, request: Any, most: int = 99) -> list[str]:
    """What a stream sends to somebody who wants at most so many pieces."""
    got: list[str] = []

    def take(piece: str) -> bool:
        got.append(piece)
        return len(got) < most

    stream_into(take, models, request)
    return got


def test_an_intercepted_stream_is_the_queued_reply() -> None:
    models = models_with({})
    models.mock.add({"text": "Hello there"})
    made = models.request("hi", None, models.options({"provider": "openai"}))
    assert streamed(models, made) == ["Hello there"]


class Streaming:
    """A provider that sends its answer in pieces."""

    ended = False

    async def stream(self, request: Any) -> AsyncIterator[str]:
        try:
            for piece in ("Hel", "lo th", "ere"):
                yield piece
        finally:
            self.ended = True


@pytest.mark.parametrize(
    ("most", "want", "tokens"), [(99, ["Hel", "lo th", "ere"], 3), (2, ["Hel", "lo th"], 2)]
)
def test_a_providers_pieces_are_passed_on_while_they_are_wanted_and_charged(
    most: int, want: list[str], tokens: int
) -> None:
    provider = Streaming()

    class WithStreaming(Models):
        def provider(self, request: Any) -> Any:
            return provider if request.provider == "real" else super().provider(request)

    models = WithStreaming(world_with(get={}.get))
    made = request(models)
    made.provider = "real"
    assert streamed(models, made, most) == want
    assert provider.ended
    (call,) = models.trace.events
    assert (call["input_tokens"], call["output_tokens"]) == (5, tokens)
    assert models.trace.cost > 0
    models.waiting.wait(models.connections.aclose())
    models.waiting.close()


def test_a_stream_waits_for_a_permit() -> None:
    slept: list[float] = []

    class Slept(Exception):
        pass

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        raise Slept

    models = models_with({"HARN_RATE_LIMIT_MOCK": "1"}, monotonic=lambda: 0.0, sleep=sleep)
    made = request(models)
    assert streamed(models, made) == ["hi"]
    with pytest.raises(Slept):
        streamed(models, made)
    assert slept == [60.0]


def test_the_producer_leaves_no_task_behind() -> None:
    vm = Vm(world=World(streams=RealStreams(stdout=lambda text: None)))
    vm.run_source('pipeline main(task) { llm_stream("a b", nil, {provider: "mock"}).iter().to_list() }')
    assert not vm.tasks.root.children


# Who answers by default.


@pytest.mark.parametrize(
    ("env", "want"),
    [
        ({"HARN_LLM_PROVIDER": "mock"}, {"provider": "mock", "model": "", "api_key_set": True}),
        ({"HARN_LLM_PROVIDER": "openai"}, {"provider": "openai", "model": "", "api_key_set": False}),
        ({"HARN_LLM_MODEL": "mid"}, {"provider": "openai", "model": "gpt-4o-mini", "api_key_set": False}),
        (
            {"HARN_LLM_MODEL": "frontier", "ANTHROPIC_API_KEY": "k"},
            {"provider": "anthropic", "model": "claude-sonnet-4-20250514", "api_key_set": True},
        ),
    ],
)
def test_what_the_environment_says_of_a_call(env: dict[str, str], want: dict[str, Any]) -> None:
    assert models_with(env).info() == want


def test_a_configured_limit_holds() -> None:
    def read(path: str) -> str:
        if path != "/p.toml":
            raise FileNotFoundError(path)
        return "[providers.openai]\nrpm = 4\n"

    models = models_with({"HARN_PROVIDERS_CONFIG": "/p.toml"}, read_text=read)
    assert [models.rates.rpm("openai"), models.rates.rpm("anthropic")] == [4, None]


def test_a_session_says_which_calls_have_no_known_price(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("ok")) as wire:
        world = World(environment=WireHost(environment(wire, tmp_path)).environment)
        with runtime("memory:", agents=LoopFactory(host=world)) as desk:
            session = desk.create(AgentDef("a", model="acme/m-1"), id="s")
            results = [desk.send("s", "Go."), desk.send("s", "On.")]
            assert [(result.cost, result.usage["unpriced_calls"]) for result in results] == [(0.0, 1)] * 2
            assert (session.unpriced_calls, session.total_cost) == (2, 0.0)
