"""The agents of a server: definitions, programs, tables of harn.toml. Spec: 11 §1.1."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.checking import Checker
from harnpy.project import ManifestError
from harnpy.serve.agents import Agents
from harnpy.serve.program import NotServed
from harnpy.session import AgentDef, ApprovalGate, InputGate, InvalidArgument
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.errors import ExecutionTimeout, NotController
from harnpy.vm.errors import VmError

CLERK = """
let stock = 40

/** How many of a part there are. */
tool count(part: string) -> string { return "${stock} of ${part}" }

tool order(part: string) -> string {
  let answer = ask_user("How many ${part}?", {schema: {type: "integer"}})
  return "ordered ${answer + 1}"
}

tool scrap(part: string) -> string {
  request_approval("scrap ${part}", {detail: {part: part}})
  return "scrapped"
}

pub fn agent() {
  llm_mock({text: "", tool_calls: [{name: "CALLED", arguments: {part: "bolts"}}]})
  llm_mock({text: "done"})
  return {
    description: "Counts parts.",
    model: "mock",
    options: {tool_format: "native", approval_policy: {require_approval: ["count"]}},
  }
}
"""

PROGRAM = """
/** Answers at length. */
pipeline main(prompt, session_id) {
  if prompt == "nothing" { return "no loop: ${session_id}" }
  if prompt == "wait" { sleep(1h) }
  if prompt == "fail" { throw "no" }
  if prompt == "ask" { return ask_user("Which?", {timeout: 5s}) }
  llm_mock({text: "you said ${prompt}"})
  return agent_loop(prompt, nil, {provider: "mock", session_id: session_id}).text
}
"""

Work = Callable[[Agents, AsyncSessionRuntime], Awaitable[Any]]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``served(work, "a.harn", …)``: what ``work(agents, runtime)`` returns, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "talker.harn").write_text(PROGRAM)

    def serve(work: Work, *given: str, clerk: str = "count") -> Any:
        (tmp_path / "clerk.harn").write_text(CLERK.replace("CALLED", clerk))

        async def main() -> Any:
            async with AsyncSessionRuntime("memory:") as runtime, Agents(given, runtime.store) as agents:
                await runtime.create(id="s")
                return await work(agents, runtime)

        return asyncio.run(main())

    return serve


def results(runtime: AsyncSessionRuntime, session: str = "s") -> list[str]:
    messages = runtime.runtime.get(session).messages()
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_definition_calls_the_tools_of_its_file(served: Callable[..., Any]) -> None:
    asked: list[str] = []
    pieces: list[str] = []

    def decide(request: Any) -> str:
        asked.append(f"{request.tool} {request.args}")
        return "allow"

    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> None:
        assert [agents.names, agents.kind("clerk"), agents.description("clerk")] == [
            ["clerk", "talker"],
            "definition",
            "Counts parts.",
        ]
        gate = ApprovalGate(decide)
        told = await agents.prompt(
            runtime, "s", "Count.", key="k", approvals=gate, sink=lambda text: pieces.append(text)
        )
        assert (told.status, told.text, results(runtime)) == ("completed", "done", ["40 of bolts"])
        again = await agents.prompt(runtime, "s", "Count.", key="k")
        assert again.turn_id == told.turn_id
        types = [event.type for event in runtime.runtime.get("s").events()]
        assert types.count("approval_requested") == types.count("approval_resolved") == 1

    served(work, "clerk.harn", "talker.harn")
    assert (asked, pieces) == (['count {"part":"bolts"}'], ["done"])


def test_without_anybody_to_ask_a_call_is_refused(served: Callable[..., Any]) -> None:
    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> list[str]:
        await agents.prompt(runtime, "s", "Count.")
        return results(runtime)

    assert "nobody is there to ask" in served(work, "clerk.harn")[0]


@pytest.mark.parametrize(
    ("tool", "result"), [("order", "ordered 8"), ("scrap", "scrapped")], ids=["question", "approval"]
)
def test_what_tools_ask_reaches_the_sender_of_the_prompt(
    served: Callable[..., Any], tool: str, result: str
) -> None:
    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> list[str]:
        gates: Any = {"approvals": ApprovalGate(), "inputs": InputGate(lambda prompt: "7")}
        turn = asyncio.ensure_future(agents.prompt(runtime, "s", "Go.", **gates))
        while tool == "scrap" and not gates["approvals"].pending:
            await asyncio.sleep(0.001)
        for request in gates["approvals"].pending:
            assert (request.tool, request.session_id) == ("scrap bolts", "s")
            gates["approvals"].resolve(request.id, "allow")
        await turn
        return results(runtime)

    assert served(work, "clerk.harn", clerk=tool) == [result]


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_the_log_names_who_decided(served: Callable[..., Any], decision: str) -> None:
    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> Any:
        gate = ApprovalGate()
        turn = asyncio.ensure_future(agents.prompt(runtime, "s", "Count.", approvals=gate))
        while not gate.pending:
            await asyncio.sleep(0.001)
        gate.resolve(gate.pending[0].id, decision, "why", "ada")
        await turn
        events = runtime.runtime.get("s").events()
        return next(event.data for event in events if event.type == "approval_resolved")

    decided = served(work, "clerk.harn")
    assert (decided["decision"], decided["reviewers"], decided["reason"]) == (decision, ["ada"], "why")


def test_a_session_is_answered_by_its_own_definition_else_its_agent_else_the_first(
    served: Callable[..., Any],
) -> None:
    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> list[str]:
        await runtime.create("talker", id="named")
        await runtime.create(AgentDef("own", model="mock"), id="own")
        assert agents.definition("talker") is None
        agents.loops._usual.mock.add({"text": "my own"})
        given: Any = [("named", None), ("own", None), ("own", "talker"), ("s", None)]
        gate = ApprovalGate(lambda request: "allow")
        return [
            (await agents.prompt(runtime, id, "x", agent=agent, approvals=gate)).text for id, agent in given
        ]

    assert served(work, "clerk.harn", "talker.harn") == ["you said x", "my own", "you said x", "done"]


def test_a_program_answers_on_the_session_of_the_prompt(served: Callable[..., Any]) -> None:
    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> None:
        assert agents.description("talker") == "Answers at length."
        pieces: list[str] = []
        told = await agents.prompt(runtime, "s", "hi", sink=pieces.append)
        assert (told.text, told.status, pieces) == ("you said hi", "completed", ["you said hi"])
        plain = await agents.prompt(runtime, "s", "nothing")
        assert plain.text == "no loop: s"
        asked = await agents.prompt(runtime, "s", "ask", inputs=InputGate(lambda prompt: prompt + "!"))
        assert asked.text == "Which?!"
        said = [message["content"] for message in (await runtime.get("s")).session.messages()]
        assert said == ["hi", "you said hi", "nothing", "no loop: s", "ask", "Which?!"]
        with pytest.raises(VmError, match="no"):
            await agents.prompt(runtime, "s", "fail")
        with pytest.raises(ExecutionTimeout):
            await agents.prompt(runtime, "s", "wait", timeout=0.01)
        await runtime.attach("s", "one", mode="controller")
        with pytest.raises(NotController):
            await agents.prompt(runtime, "s", "hi", client="two")
        for given in ("key", "budget"):
            more: Any = {given: "k"}
            with pytest.raises(InvalidArgument, match=f"take no `{given}`"):
                await agents.prompt(runtime, "s", "x", **more)

    served(work, "talker.harn")


def test_a_table_of_the_manifest_needs_trust(
    served: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "harn.toml").write_text('[agents.desk]\ndescription = "At the desk."\nmodel = "mock"\n')

    async def work(agents: Agents, runtime: AsyncSessionRuntime) -> tuple[str, str]:
        definition = agents.definition("desk")
        assert definition is not None
        return agents.description("desk"), definition.name

    with pytest.raises(ManifestError, match=r"^agents takes effect only once you trust the project"):
        served(work, "desk")
    monkeypatch.setenv("HARN_TRUST", "1")
    assert served(work, "desk") == ("At the desk.", "desk")
    with pytest.raises(NotServed, match="neither a Harn file nor a table"):
        served(work, "nobody")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("fn helper() { }", "neither a `pub fn agent\\(\\)` nor a pipeline"),
        ("pub fn agent() { return 3 }", "must return a dict"),
        ("pub fn agent() { return {modell: 3} }", "unknown key 'modell'"),
        ("pub fn agent() { return {options: {tools: []}} }", "option 'tools' isn't one of a definition"),
        ("pub fn agent() { throw 'no' }".replace("'", '"'), "agent\\(\\) failed: no"),
    ],
)
def test_files_that_are_no_agents(served: Callable[..., Any], tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "bad.harn").write_text(source)
    with pytest.raises(NotServed, match=said):
        served(lambda agents, runtime: asyncio.sleep(0), "bad.harn")


def test_the_checker_knows_what_a_served_program_s_pipeline_names() -> None:
    """Spec: 11 §1.1, 02 §10.3."""
    names = "prompt, session_id, mcp_servers"
    for known in (PROGRAM, f"pipeline main({names}) {{ return [{names}] }}"):
        assert Checker().check({"a.harn": known}) == {"a.harn": []}
    unnamed = PROGRAM.replace("(prompt, session_id)", "(task)")
    assert {found.code for found in Checker().check({"a.harn": unnamed})["a.harn"]} == {"undefined-name"}
