"""Spans by the conventions for generative AI, seen by OpenTelemetry's own exporter. Spec: 11 §5."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv.attributes import error_attributes

from harnpy import Vm, telemetry, tool
from harnpy.llm.errors import CallError
from harnpy.llm.telemetry import tell_reply
from harnpy.serve.server import _traced
from harnpy.session.aio import AsyncSessionRuntime
from tests.agent.factory.agents import call, runtime_with, said
from tests.agent.factory.test_services import runtime_on
from tests.llm.wire import OPENAI, Fail, Say, Wire
from tests.mcp.test_http import BEGUN, JSON, TAKEN, Script, scripted, text

#: Words that are in prompts, answers, arguments and results here, and may be in no span.
SECRETS = ("Rome", "sunny", "hello there", "the answer is", "Be brief")


class Spans:
    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[ReadableSpan]:
        found = list(self._exporter.get_finished_spans())
        told = " ".join(each.to_json() for each in found)
        assert not [word for word in SECRETS if word in told]
        return found

    def tree(self) -> list[str]:
        """Return the names of spans, those within others indented, in the order of their starts."""
        spans = sorted(self.all(), key=lambda span: span.start_time or 0)
        by_id = {span.context.span_id: span for span in spans}

        def depth(span: ReadableSpan) -> int:
            above = None if span.parent is None else by_id.get(span.parent.span_id)
            return 0 if above is None else 1 + depth(above)

        return ["  " * depth(span) + span.name for span in spans]

    def one(self, name: str) -> dict[str, Any]:
        (found,) = (span for span in self.all() if span.name == name)
        return dict(found.attributes or {})


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """An application has set a tracer provider."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield Spans(exporter)
    provider.shutdown()


CHAT = "chat claude-sonnet-4-20250514"  # what mocks of a loop play without another word
TURN = ["invoke_agent helper", "  chat mock", "  execute_tool weather", "  chat mock"]


def test_a_turn(spans: Spans) -> None:
    replies = (call("weather", city="Rome"), {"text": "the answer is", "input_tokens": 7})
    with runtime_with(*replies) as runtime:
        runtime.send("s", "hello there")
    assert spans.tree() == TURN
    agent, tool = spans.one("invoke_agent helper"), spans.one("execute_tool weather")
    assert (agent[names.GEN_AI_CONVERSATION_ID], agent[names.GEN_AI_AGENT_NAME]) == ("s", "helper")
    assert tool[names.GEN_AI_TOOL_NAME] == "weather"
    assert tool[names.GEN_AI_TOOL_CALL_ID]
    operations = {span.attributes[names.GEN_AI_OPERATION_NAME] for span in spans.all() if span.attributes}
    assert operations == {"invoke_agent", "chat", "execute_tool"}
    assert operations <= {each.value for each in names.GenAiOperationNameValues}


def test_every_name_is_one_of_the_conventions(spans: Spans) -> None:
    with runtime_with(call("weather", city="Rome"), {"text": "the answer is"}) as runtime:
        runtime.send("s", "hello there", temperature=0.5, stop=["x"])
    known = {value for name, value in vars(names).items() if name.startswith("GEN_AI_")}
    ours = {name for span in spans.all() for name in span.attributes or {}}
    assert {name for name in ours if name.startswith("gen_ai.")} <= known
    assert {name.split(".")[0] for name in ours} == {"gen_ai", "harn"}


def test_cached_tokens_have_both_names(spans: Spans) -> None:
    with telemetry.span("chat", {}) as span:
        request: Any = type("Request", (), {"model": "m", "provider": "p"})
        tell_reply(span, said(request, cache_read_tokens=3, cache_write_tokens=2))
    told = spans.one("chat")
    assert (
        told[names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS] == told["gen_ai.usage.cache_read_input_tokens"] == 3
    )
    assert told[names.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS] == 2
    assert told["gen_ai.usage.cache_creation_input_tokens"] == 2


def test_a_call_that_fails(spans: Spans, tmp_path: Path) -> None:
    with Wire(OPENAI, Fail(401)) as wire, runtime_on(wire, tmp_path) as runtime, pytest.raises(CallError):
        runtime.send("s", "hello there")
    for name in ("chat m-1", "invoke_agent a"):
        assert spans.one(name)[error_attributes.ERROR_TYPE] == "auth"
    assert all(not span.status.is_ok for span in spans.all())


def test_a_tool_that_fails(spans: Spans) -> None:
    def broken() -> str:
        """Break."""
        raise OSError("sunny")

    with runtime_with(call("broken"), {"text": "the answer is"}, tools=[tool(broken)]) as runtime:
        runtime.send("s", "hello there")
    assert spans.one("execute_tool broken")[error_attributes.ERROR_TYPE] == "tool_error"


def test_a_function_as_agent(spans: Spans) -> None:
    async def forecast(args: Any) -> str:
        await asyncio.sleep(0)
        with telemetry.span("inside", {}):
            return "sunny"

    async def agent(messages: Any, turn: Any) -> str:
        await turn.tool("weather", {"city": "Rome"}, forecast)
        return "the answer is"

    async def main() -> None:
        async with AsyncSessionRuntime("memory:") as runtime:
            await runtime.create(id="s")
            await runtime.send("s", "hello there", agent=agent)

    asyncio.run(main())
    assert spans.tree() == ["invoke_agent agent", "  execute_tool weather", "    inside"]


def test_a_workflow_and_its_stages(spans: Spans) -> None:
    vm = Vm()
    vm.run_source("""
        llm_mock({match: "*", text: "the answer is"})
        let edges = [{from: "a", to: "b"}]
        let graph = workflow_graph({name: "trip", entry: "a", nodes: {a: {}, b: {}}, edges: edges})
        workflow_execute("hello there", graph)
    """)
    tree = spans.tree()
    assert [name for name in tree if "chat" not in name] == ["invoke_workflow trip", "  stage a", "  stage b"]
    assert spans.one("invoke_workflow trip")[names.GEN_AI_WORKFLOW_NAME] == "trip"


def test_the_current_span_is_the_callers_in_every_task_and_thread(spans: Spans) -> None:
    source = """
        llm_mock({match: "*", text: "the answer is"})
        let calls = parallel 3 { n -> llm_call("hello there", nil, {provider: "mock", model: "m${n}"}) }
        let late = spawn { llm_call("hello there", nil, {provider: "mock", model: "m3"}) }
        await(late)
    """
    traces: list[int] = []

    def run(vm: Vm) -> None:
        with telemetry.span("caller", {}):
            traces.append(trace.get_current_span().get_span_context().trace_id)
            vm.run_source(source)

    run(Vm())
    thread = Thread(target=run, args=(Vm(),))
    thread.start()
    thread.join()
    for id in traces:
        own = [span for span in spans.all() if span.context.trace_id == id]
        assert sorted(span.name for span in own) == ["caller", "chat m0", "chat m1", "chat m2", "chat m3"]
        (caller,) = (span for span in own if span.name == "caller")
        assert {span.parent and span.parent.span_id for span in own} == {None, caller.context.span_id}


def test_requests_carry_the_trace(spans: Spans, tmp_path: Path) -> None:
    with Wire(OPENAI, Say("the answer is")) as wire, runtime_on(wire, tmp_path) as runtime:
        runtime.send("s", "hello there")
        sent = wire.requests[0].headers["traceparent"]
    (chat,) = (span for span in spans.all() if span.name == "chat m-1")
    assert sent.startswith(f"00-{chat.context.trace_id:032x}-{chat.context.span_id:016x}-")
    with telemetry.within({"traceparent": sent}), telemetry.span("served", {}):
        pass
    (served,) = (span for span in spans.all() if span.name == "served")
    assert served.parent
    assert served.parent.span_id == chat.context.span_id


def test_calls_of_mcp_servers_carry_the_trace(spans: Spans) -> None:
    script = Script(BEGUN, TAKEN, (200, JSON, text(2, "sunny")))

    async def use(client: Any) -> int:
        with telemetry.span("caller", {}):
            await client.call("t", {})
            return trace.get_current_span().get_span_context().trace_id

    id: int = scripted(script, use)
    asked = next(body for _, _, body in script.asked if body and body.get("method") == "tools/call")
    assert f"-{id:032x}-" in asked["params"]["_meta"]["traceparent"]


def test_a_server_goes_on_in_the_trace_of_a_request(spans: Spans) -> None:
    seen: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)

    scope = {"type": "http", "headers": [(b"traceparent", b"00-%032x-%016x-01" % (7, 9))]}
    asyncio.run(_traced(app)(scope, None, None))  # type: ignore[arg-type]
    assert seen == [7]


def test_without_a_provider_nothing_is_recorded_or_imported() -> None:
    program = (
        "import sys; from harnpy import Vm; "
        'Vm().run_source(\'llm_mock({text: "x"})\\nllm_call("y", nil, {provider: "mock"})\'); '
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert not telemetry.is_on()


def test_a_loop_in_a_program_and_its_own_sessions(spans: Spans) -> None:
    Vm().run_source("""
        llm_mock({match: "*", text: "the answer is"})
        agent_loop("hello there", nil, {session_id: "mine", provider: "mock"})
    """)
    assert spans.tree() == ["invoke_agent", f"  {CHAT}"]
    assert spans.one("invoke_agent")[names.GEN_AI_CONVERSATION_ID] == "mine"
