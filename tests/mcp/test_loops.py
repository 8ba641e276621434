"""MCP servers in loops: their tools are tools like others. Spec: 07 §15.1, §6.7."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.vm.errors import ExitRequest, VmError
from tests.mcp.programs import output
from tests.support import wait_until
from tests.worlds import OwnWorld


def test_a_loop_goes_on_whatever_a_tool_does() -> None:
    lines = output("""
        agent_session_open("s")
        agent_subscribe("s", { e ->
          if e.type == "tool_call_update" && e.status != "in_progress" {
            println([e.tool_name, e.status, e.error_category, e.executor])
          }
        })
        calls([["raw__add", {a: 1, b: 41}], ["raw__fail", {}], ["raw__refuse", {}], ["raw__add", {}]])
        calls([["raw__crash", {}], ["raw__add", {a: 1}]])
        let result = loop({session_id: "s"})
        println([result.status, result.tools.successful])
    """)
    server = "{kind: mcp_server, server_name: raw}"
    assert lines == [
        f"[raw__add, completed, nil, {server}]",
        f"[raw__fail, failed, tool_error, {server}]",
        f"[raw__refuse, failed, mcp_server_error, {server}]",
        "[raw__add, failed, schema_validation, nil]",
        f"[raw__crash, failed, mcp_server_error, {server}]",
        f"[raw__add, failed, mcp_server_error, {server}]",
        "42",
        "Error: it broke",
        "badly",
        "Error: MCP error (-32602): no such thing",
        "ERROR: Tool 'raw__add' is missing required parameter(s): a. "
        "Provide all required parameters and try again.",
        "Error: MCP: server closed connection",
        "Error: MCP client is disconnected",
        "[done, [raw__add]]",
    ]


def test_what_a_tool_reports_of_its_progress_is_an_event() -> None:
    """A subscriber that comes late to a report gets the latest."""
    lines = output("""
        agent_session_open("s")
        agent_subscribe("s", { e ->
          if e.type == "tool_call_update" { println([e.tool_name, e.status, e.progress]) }
        })
        calls([["raw__progress", {}]])
        println(loop({session_id: "s"}).status)
    """)
    begun, *reports, ended, answer, status = lines
    assert begun == "[raw__progress, in_progress, nil]"
    steps = [f"[raw__progress, in_progress, {{progress: {step}, total: 3}}]" for step in range(3)]
    assert reports == [step for step in steps if step in reports]
    assert reports[-1] == steps[-1]
    assert [ended, answer, status] == ["[raw__progress, completed, nil]", "done", "done"]


def test_the_model_is_offered_the_servers_schemas() -> None:
    lines = output("""
        var own = tool_define(tool_registry(), "own", "Mine", {handler: { a -> "own" }})
        loop({tools: own})
        let offered = llm_mock_calls()[0].tools.map({ t -> t.function })
        println(offered.map({ f -> f.name }))
        println(offered[1].parameters)
    """)
    assert lines == [
        "[own, raw__add, raw__fail, raw__refuse, raw__crash, raw__echo, raw__nothing, raw__wait, "
        "raw__progress]",
        "{properties: {a: {type: integer}, b: {type: integer}}, required: [a], type: object}",
    ]


def test_rules_and_hooks_hold_for_them_as_for_others() -> None:
    lines = output("""
        calls([["raw__add", {a: 1}]])
        loop({policy: {tools: ["raw__fail"]}})
        calls([["raw__add", {a: 2}]])
        loop({approval_policy: {require_approval: ["raw__*"]}})
        calls([["raw__add", {a: 3}]])
        loop({permissions: {deny: ["raw__add"]}})
        register_tool_hook({pattern: "raw__add", deny: "no sums"})
        calls([["raw__add", {a: 4}]])
        loop({})
        clear_tool_hooks()
        register_tool_hook({pattern: "raw__echo", max_output: 300})
        calls([["raw__echo", {text: "long ".repeat(200)}]])
        loop({})
    """)
    text = "\n".join(lines)
    assert text.count('"error": "permission_denied"') == 4
    assert "no sums" in text
    assert len(lines[-1]) < 1000


def test_servers_end_with_their_loop_and_with_a_failure(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    written: list[str] = []
    output(
        f"""
        let noted = RAW + {{command: [...RAW.command, "note={note}"]}}
        loop({{mcp_servers: [noted, noted + {{name: "second"}}]}})
        let bad = {{name: "bad", command: "no-such-program"}}
        println(caught({{ -> loop({{mcp_servers: [noted, bad]}}) }}))
        let own = tool_define(tool_registry(), "raw__add", "Mine", {{handler: {{ a -> "own" }}}})
        println(caught({{ -> loop({{mcp_servers: [noted], tools: own}}) }}))
        println(read_lines("{note}").filter({{ pid -> file_exists("/proc/${{pid}}") }}))
        """,
        Vm(OwnWorld(written.append)),
    )
    assert "".join(written).splitlines() == [
        "agent_loop: failed to spawn 'no-such-program': No such file or directory (os error 2)",
        "Runtime error: agent_loop: duplicate tool name `raw__add` after MCP server prefixing",
        "[]",
    ]


def test_a_loop_that_is_stopped_ends_its_servers(tmp_path: Path) -> None:
    note, began = tmp_path / "pids", tmp_path / "began"
    output(f"""
        let noted = RAW + {{command: [...RAW.command, "note={note}"]}}
        calls([["raw__wait", {{note: "{tmp_path}/told", started: "{began}"}}]])
        let task = spawn {{ loop({{mcp_servers: [noted]}}) }}
        while !file_exists("{began}") {{ sleep(1ms) }}
        cancel(task)
        println(try {{ await(task) }} catch (e) {{ "${{e}}" }})
    """)
    assert (tmp_path / "told").read_text() == '["notifications/cancelled", true]'
    pids = note.read_text().split()
    assert len(pids) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_task_with_a_deadline_gives_up_and_others_go_on(tmp_path: Path) -> None:
    lines = output(f"""
        let client = connected()
        let began = "{tmp_path}/began"
        let given = {{note: "{tmp_path}/note", started: began}}
        let slow = spawn {{ deadline 50ms {{ mcp_call(client, "wait", given) }} }}
        while !file_exists(began) {{ sleep(1ms) }}
        println(try {{ await(slow) }} catch (e) {{ "${{e}}" }})
        println(mcp_call(client, "add", {{a: 1}}))
        let answers = parallel each range(100).to_list() {{ n -> mcp_call(client, "add", {{a: n}}) }}
        println(answers == range(100).to_list().map({{ n -> "${{n}}" }}))
    """)
    assert lines == ["Deadline exceeded", "1", "true"]


def test_an_embedder_who_grants_no_processes_is_obeyed() -> None:
    vm = Vm(capabilities=["read"])
    with pytest.raises(VmError, match="running 'cat' is not permitted"):
        output('mcp_connect("cat")', vm)
    with pytest.raises(VmError, match=r"running .* is not permitted"):
        output("loop({})", vm)


def test_tasks_that_all_wait_are_a_deadlock_beside_a_server() -> None:
    with pytest.raises(VmError, match="deadlock"):
        output("""
            let client = connected()
            mcp_call(client, "add", {a: 1})
            receive(channel("nobody"))
        """)


def test_no_process_is_left_at_the_end_of_a_program(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    endings = ["", 'throw "no"', "exit(3)", "mcp_disconnect(last)", 'mcp_call(last, "crash")']
    for ending in endings:
        with suppress(VmError, ExitRequest):
            output(f"""
                connected(["note={note}"])
                let last = connected(["note={note}"])
                {ending}
            """)
    pids = note.read_text().split()
    assert len(pids) == 2 * len(endings)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_synthesized_tool_calls_its_server() -> None:
    lines = output("""
        let client = connected()
        let named = {mcp_tool: "add", mcp_server: "raw"}
        let spec = {description: "Add", name: "sum", executor: "mcp_server"} + named
        let alone = tool_synthesize(spec)
        println(caught({ -> alone({a: 1}) }))
        let sum = tool_synthesize(spec + {mcp_client: client})
        println(sum({a: 1, b: 2}))
        println(tool_synthesis_cache().map({ t -> [t.mcp_tool, t.mcp_server, t.mcp_client] }))
    """)
    assert lines == [
        "sum: calling it needs `mcp_client`, a connection to the server",
        "3",
        "[[add, raw, nil]]",
    ]
