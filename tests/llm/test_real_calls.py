"""Programs that call services: over a socket, through the SDKs, with `llm_call` and `agent_loop`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.builtins.bridge.agent_tasks import AgentTasks
from harnpy.vm.errors import VmError
from tests.clock import SimulatedClock
from tests.llm.wire import ANTHROPIC, KEY, OPENAI, Answer, Call, Fail, Played, Raw, Say, Silence, Wire
from tests.support import PATIENCE, Command
from tests.worlds import OwnWorld

BOTH = pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])

_ENTRY = '[providers.acme]\nbase_url = "{url}"\nauth_envs = ["ACME_KEY"]\ndefault_model = "m-1"\n'
_FURTHER = {
    ANTHROPIC: 'chat_endpoint = "/messages"\nauth_style = "header"\nauth_header = "x-api-key"\n',
}


class WireHost(OwnWorld):
    """The real world, whose environment names the service and its key."""

    def __init__(self, env: dict[str, str], clock: SimulatedClock | None = None) -> None:
        self.out, self.err = StringIO(), StringIO()
        super().__init__(self.out.write, self.err.write, clock=clock)
        self._env = env

    def get(self, name: str) -> str | None:
        return self._env.get(name)


def entry(wire: Wire) -> str:
    """The service as a provider of the configuration."""
    return f'{_ENTRY.format(url=wire.url)}protocol = "{wire.protocol}"\n{_FURTHER.get(wire.protocol, "")}'


def environment(wire: Wire, directory: Path, **more: str) -> dict[str, str]:
    file = directory / "providers.toml"
    file.write_text(entry(wire), encoding="utf-8")
    named = {"HARN_LLM_PROVIDER": "acme", "HARN_PROVIDERS_CONFIG": str(file)}
    return {**named, "ACME_KEY": KEY, **more}


class AskedClock(SimulatedClock):
    """Stands still until the service was asked that many times; then all timers are due."""

    def __init__(self, wire: Wire, asked: int) -> None:
        super().__init__(tick=0)
        self._wire = wire
        self._asked = asked

    def monotonic(self) -> float:
        return 1000.0 if len(self._wire.requests) >= self._asked else 0.0


def program(wire: Wire, directory: Path, source: str, clock: SimulatedClock | None = None, **env: str) -> str:
    """What the program printed."""
    host = WireHost(environment(wire, directory, **env), clock)
    Vm(world=host).run_source(source)
    return host.out.getvalue()


@BOTH
def test_a_call(protocol: str, tmp_path: Path) -> None:
    source = """
    let r = llm_call("hi", "Be brief.", {temperature: 0.5})
    println(r.text)
    println("${r.provider} ${r.model} ${r.input_tokens} ${r.output_tokens} ${r.cache_read_tokens}")
    println(r.transcript.messages)
    """
    with Wire(protocol, Say("Hello, world", cache_read=3)) as wire:
        printed = program(wire, tmp_path, source)
        assert wire.requests[0].body["temperature"] == 0.5
    assert printed.splitlines()[:2] == ["Hello, world", "acme wire-1 11 7 3"]
    assert "Hello, world" in printed.splitlines()[2]


@BOTH
@pytest.mark.parametrize("value", ["0", "false"])
def test_streaming_can_be_switched_off(protocol: str, value: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("Hello")) as wire:
        assert program(wire, tmp_path, 'println(llm_call("hi").text)', HARN_LLM_STREAM=value) == "Hello\n"
        assert program(wire, tmp_path, 'println(llm_call("hi", nil, {stream: false}).text)') == "Hello\n"
        program(wire, tmp_path, 'llm_call("hi", nil, {stream: true})', HARN_LLM_STREAM=value)
    assert [received.body["stream"] for received in wire.requests] == [False, False, True]


@BOTH
@pytest.mark.parametrize(
    ("answer", "category"),
    [
        (Fail(429, after="7"), "rate_limit transient rate_limit 7000"),
        (Fail(500), "server_error transient server_error nil"),
        (Fail(529), "overloaded transient server_error nil"),
        (Fail(401), "auth terminal auth_failure nil"),
        (Fail(404), "not_found terminal model_unavailable nil"),
        (Raw(b"{oops"), "server_error transient server_error nil"),
        (Say("Hello, world", cut_after=4), "transient_network transient network_error nil"),
        (Say("", stop="length"), "server_error transient server_error nil"),
        (Silence(), "timeout transient timeout nil"),
    ],
)
def test_the_error_that_a_program_sees(protocol: str, answer: Answer, category: str, tmp_path: Path) -> None:
    source = """
    try { llm_call("hi") } catch (e) {
      println("${e.category} ${e.kind} ${e.reason} ${e.retry_after_ms}")
      println("${e.provider} ${e.model} ${error_category(e)}")
    }
    """
    with Wire(protocol, answer) as wire:
        patience = "0.5" if isinstance(answer, Silence) else "300"
        printed = program(wire, tmp_path, source, HARN_LLM_TIMEOUT=patience)
    assert printed == f"{category}\nacme m-1 {category.split()[0]}\n"


@BOTH
def test_nobody_listens(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("ok")) as wire:
        gone = environment(wire, tmp_path)
    host = WireHost(gone)
    Vm(world=host).run_source('println(llm_call_safe("hi").error.category)')
    assert host.out.getvalue() == "transient_network\n"


@BOTH
def test_llm_retries_decide_how_often_a_service_is_asked(protocol: str, tmp_path: Path) -> None:
    source = """
    let r = llm_call("hi", nil, {llm_retries: 3, llm_backoff_ms: 1})
    println(r.text)
    println(agent_trace_summary().empty_completion_retries)
    """
    answers = Fail(500), Say("", stop="length"), Fail(429, after="0.01"), Say("at last")
    with Wire(protocol, *answers) as wire:
        assert program(wire, tmp_path, source) == "at last\n1\n"
        assert len(wire.requests) == 4


@BOTH
def test_tasks_wait_side_by_side(protocol: str, tmp_path: Path) -> None:
    """The service answers nobody before all three have asked."""
    source = """
    let replies = parallel each [1, 2, 3] { n -> llm_call("hi", nil, {timeout: 300}).text }
    println(replies)
    """
    with Wire(protocol, Say("ok", meet=3)) as wire:
        assert program(wire, tmp_path, source) == "[ok, ok, ok]\n"


@BOTH
def test_the_program_goes_on_while_a_call_waits(protocol: str, tmp_path: Path) -> None:
    source = """
    let call = spawn { llm_call("hi").text }
    sleep(1ms)
    println("meanwhile")
    println(await(call))
    """
    with Wire(protocol, Say("answer", pause=0.05)) as wire:
        assert program(wire, tmp_path, source) == "meanwhile\nanswer\n"


@BOTH
def test_a_deadline_ends_the_request_and_leaves_the_session_whole(protocol: str, tmp_path: Path) -> None:
    source = """
    let s = agent_session_open("talk")
    agent_loop("one", nil, {session_id: s})
    try {
      deadline 300ms { agent_loop("two", nil, {session_id: s}) }
    } catch (e) { println(e) }
    println(agent_session_snapshot(s).messages.map({ m -> "${m.role}: ${m.content}" }))
    println(agent_loop("three", nil, {session_id: s}).text)
    println(agent_session_snapshot(s).messages.count)
    """
    with Wire(protocol, Say("first"), Silence(), Say("third")) as wire:
        clock = AskedClock(wire, asked=2)
        printed = program(wire, tmp_path, source, clock=clock).splitlines()
        assert wire.hung_up.wait(PATIENCE), "the request went on"
    assert printed == [
        "Deadline exceeded",
        "[user: one, assistant: first, user: two]",
        "third",
        "5",
    ]


@BOTH
def test_a_cancelled_task_ends_its_request(protocol: str, tmp_path: Path) -> None:
    source = """
    let call = spawn { llm_call("hi") }
    sleep(300ms)
    cancel(call)
    println("on")
    """
    with Wire(protocol, Silence()) as wire:
        assert program(wire, tmp_path, source, clock=AskedClock(wire, asked=1)) == "on\n"
        assert wire.hung_up.wait(PATIENCE)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handling of SIGINT, which a shell turns off for what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@BOTH
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_the_session_whole(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("first"), Silence(), Say("third")) as wire:
        host = WireHost(environment(wire, tmp_path))
        vm = Vm(world=host)
        vm.run_source('agent_loop("one", nil, {session_id: agent_session_open("talk")})')
        wire.asked.clear()

        def interrupt() -> None:
            wire.asked.wait(PATIENCE)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            vm.run_source('agent_loop("two", nil, {session_id: "talk"})')
        assert wire.hung_up.wait(PATIENCE)
        vm.run_source("""
        println(agent_session_snapshot("talk").messages.map({ m -> "${m.role}: ${m.content}" }))
        println(agent_loop("three", nil, {session_id: "talk"}).text)
        """)
    assert host.out.getvalue() == "[user: one, assistant: first, user: two]\nthird\n"
    assert host.err.getvalue() == ""


@BOTH
def test_connections_end_with_the_program(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("ok")) as wire:
        program(wire, tmp_path, 'llm_call("a")\nllm_call("b")')
        assert wire.connections == 1, "the calls of a program share a connection"
        assert wire.closed.wait(PATIENCE)


@BOTH
def test_inside_a_running_loop(protocol: str, tmp_path: Path) -> None:
    async def embed(wire: Wire) -> str:
        host = WireHost(environment(wire, tmp_path))
        await Vm(world=host).run_async('println(llm_call("hi").text)')
        assert await asyncio.to_thread(wire.closed.wait, PATIENCE)
        return host.out.getvalue()

    with Wire(protocol, Say("ok")) as wire:
        assert asyncio.run(embed(wire)) == "ok\n"


@BOTH
def test_inputs_of_a_repl_call_one_after_another(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("ok")) as wire:
        session = Vm(world=WireHost(environment(wire, tmp_path))).repl()
        assert [session.run('llm_call("hi").text') for _ in range(3)] == ["ok"] * 3


@BOTH
def test_tools_are_told_and_calls_come_back(protocol: str, tmp_path: Path) -> None:
    source = """
    var tools = tool_registry()
    tools = tool_define(tools, "look", "Look into a file.", {
      parameters: {path: "string"}, handler: { args -> "x" }, returns: {type: "string"},
    })
    let r = llm_call("hi", nil, {tools: tools})
    for call in r.tool_calls { println("${call.id} ${call.name} ${call.arguments}") }
    """
    calls = Call("look", '{"path": "a.txt"}', "id_1"), Call("look", '{"path": ', "id_2")
    with Wire(protocol, Say(calls=calls)) as wire:
        first, second = program(wire, tmp_path, source).splitlines()
        (tool,) = wire.requests[0].body["tools"]
    assert first == "id_1 look {path: a.txt}"
    assert second.startswith("id_2 look {__parse_error: The arguments of tool 'look' are not valid JSON")
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    told = {"name": "look", "description": "Look into a file."}
    if protocol == ANTHROPIC:
        assert tool == {**told, "input_schema": schema}
    else:
        assert tool == {"type": "function", "function": {**told, "parameters": schema}}


@BOTH
def test_a_loop_answers_the_calls_of_its_model(protocol: str, tmp_path: Path) -> None:
    source = """
    var tools = tool_registry()
    tools = tool_define(tools, "add", "Add.", {
      parameters: {a: "int", b: "int"}, handler: { args -> args.a + args.b }, returns: {type: "int"},
    })
    let r = agent_loop("2 + 3?", nil, {tools: tools, tool_format: "native"})
    println("${r.status} ${r.text} ${r.tools.successful}")
    """
    calls = Call("add", '{"a": 2, "b": 3}', "id_1"), Call("add", '{"a": ', "id_2")
    table = '[[capabilities.provider.acme]]\nmodel_match = "*"\nnative_tools = true\n'
    (tmp_path / "harn.toml").write_text(table, encoding="utf-8")
    with Wire(protocol, Say("I add.", calls=calls), Say("It is 5.")) as wire:
        host = WireHost(environment(wire, tmp_path))
        vm = Vm(world=host)
        vm.run_source(source, directory=str(tmp_path))
        messages = wire.requests[1].body["messages"]
    assert host.out.getvalue() == "done I add.It is 5. [add]\n"
    if protocol == OPENAI:
        _system, _user, assistant, *results = messages
        assert [call["id"] for call in assistant["tool_calls"]] == ["id_1", "id_2"]
        answered = [(result["tool_call_id"], result["content"]) for result in results]
    else:
        _user, assistant, last = messages
        assert [block["type"] for block in assistant["content"]] == ["text", "tool_use", "tool_use"]
        answered = [(block["tool_use_id"], block["content"]) for block in last["content"]]
    (first, second) = answered
    assert first == ("id_1", "5")
    assert second[0] == "id_2"
    assert second[1].startswith("ERROR: The arguments of tool 'add' are not valid JSON")


@BOTH
def test_a_stream_comes_piece_by_piece(protocol: str, tmp_path: Path) -> None:
    source = """
    for piece in llm_stream("hi") { println(piece) }
    for piece in llm_stream("hi") { println(piece) }
    """
    with Wire(protocol, Say("abcdefghij"), Fail(401, message="key {key}")) as wire:
        first, second, third, error = program(wire, tmp_path, source).splitlines()
    assert [first, second, third] == ["abcd", "efgh", "ij"]
    assert error.startswith("error: ")
    assert error.endswith("key [redacted]")


def test_pieces_that_come_together_cost_few_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Any] = []
    wait = AgentTasks.wait

    def counted(tasks: AgentTasks, awaitable: Any) -> Any:
        waits.append(awaitable)
        return wait(tasks, awaitable)

    monkeypatch.setattr(AgentTasks, "wait", counted)
    chunks = [{"choices": [{"index": 0, "delta": {"content": f"{n} "}}]} for n in range(600)]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    source = """
    var pieces = []
    for piece in llm_stream("hi") { pieces = pieces.push(piece) }
    println(pieces.join(""))
    """
    with Wire(OPENAI, Played(body.encode())) as wire:
        # More than the channel holds: who sends them waits for the program now and then.
        assert program(wire, tmp_path, source).split() == [str(n) for n in range(600)]
    assert len(waits) < 60


def test_a_fallback_of_the_other_protocol_takes_over(tmp_path: Path) -> None:
    with Wire(OPENAI, Fail(500)) as first, Wire(ANTHROPIC, Say("from the other")) as second:
        env = environment(first, tmp_path)
        spare = entry(second).replace("acme", "spare")
        with open(env["HARN_PROVIDERS_CONFIG"], "a", encoding="utf-8") as file:
            file.write(spare)
        host = WireHost(env)
        Vm(world=host).run_source("""
        let r = llm_call("hi", nil, {fallback_chain: ["spare"]})
        println("${r.text} ${r.provider}")
        """)
    assert host.out.getvalue() == "from the other spare\n"


def test_structured_output_is_asked_for_again(tmp_path: Path) -> None:
    source = """
    let schema = {type: "object", properties: {n: {type: "integer"}}, required: ["n"]}
    println(llm_call("hi", nil, {output_schema: schema, output_validation: "error"}).data)
    """
    with Wire(OPENAI, Say("no json"), Say('{"n": 4}')) as wire:
        assert program(wire, tmp_path, source) == "{n: 4}\n"
        assert len(wire.requests[1].body["messages"]) == 2


# --- the key ------------------------------------------------------------------------------------------

_EVERYTHING = """
pipeline main(task) {
  let s = agent_session_open("talk")
  let r = llm_call("hi", "Be brief.")
  println(r)
  println(json_stringify(llm_call_safe("hi")))
  try { llm_call("hi") } catch (e) { println(e); log_error("failed: ${e}") }
  println(agent_loop("go", nil, {session_id: s}).text)
  try { agent_loop("go", nil, {session_id: s, llm_retries: 0}) } catch (e) { println(e) }
  println(agent_session_snapshot(s))
  println(llm_config())
  println(llm_config("acme"))
  println(agent_trace())
  llm_call("hi")
}
"""


@BOTH
def test_the_key_is_in_nothing_that_a_run_writes(protocol: str, tmp_path: Path, harnpy: Command) -> None:
    echo = f"Incorrect API key provided: {KEY}. Again: {{key}}, Bearer {{key}}" + " x" * 400 + KEY
    answers = (
        Say("fine", thinking="hm", calls=(Call("look", '{"a": 1}'),)),
        Fail(401, message=echo, code="invalid_api_key"),
        Fail(500, message=echo),
        Say("done"),
        Say("Hello, world", cut_after=4, error_after={"error": {"type": "api_error", "message": echo}}),
        Fail(403, message=echo),
    )
    (tmp_path / "program.harn").write_text(_EVERYTHING, encoding="utf-8")
    records = tmp_path / "records"
    with Wire(protocol, *answers) as wire:
        env = environment(
            wire,
            tmp_path,
            HARN_LLM_TRANSCRIPT_DIR=str(records / "transcript"),
            HARN_EVENT_LOG_DIR=str(records / "events"),
            OPENAI_LOG="debug",
            ANTHROPIC_LOG="debug",
            PYTHONASYNCIODEBUG="1",
        )
        done = harnpy("run", "--trace", "--debug", "program.harn", **env)
        assert len(wire.requests) == 6
    assert done.returncode == 1
    assert "[redacted]" in done.stdout
    assert "HTTP 403 Forbidden" in done.stderr
    written = {"stdout": done.stdout, "stderr": done.stderr}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            written[str(path.relative_to(tmp_path))] = path.read_bytes().decode("utf-8", "replace")
    assert any("llm_transcript" in name for name in written)
    assert any(name.startswith("records/events") for name in written)
    assert [name for name, text in written.items() if KEY in text or KEY[:16] in text] == []


@BOTH
def test_the_key_is_in_nothing_that_an_embedder_sees(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Fail(401, message="key {key}")) as wire:
        host = WireHost(environment(wire, tmp_path))
        vm = Vm(world=host)
        with pytest.raises(VmError) as caught:
            vm.run_source('llm_call("hi")')
    error: BaseException = caught.value
    seen = "".join(traceback.format_exception(error)) + repr(error) + str(error) + repr(vm.__dict__)
    models = _models(vm)
    seen += repr(models.connections.__dict__) + repr(models.config.__dict__) + repr(models.trace.__dict__)
    assert "[redacted]" in seen
    assert KEY not in seen


def _models(vm: Vm) -> Any:
    from harnpy.builtins.live_models import models_of

    return models_of(vm)
