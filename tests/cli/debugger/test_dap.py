"""`harnpy dap` as an editor uses it, over stdin and stdout. Spec: 09 §15.6."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.debugger.dap_client import Client, Refused
from tests.cli.debugger.program import LIBRARY, PROGRAM
from tests.support import Popen, wait_until


@pytest.fixture
def dap(popen: Popen, tmp_path: Path, write) -> Iterator[Client]:
    write("main.harn", PROGRAM)
    write("lib.harn", LIBRARY)
    client = Client(popen, tmp_path, dict(os.environ))
    yield client
    client.kill()


def test_breakpoints_are_verified_before_the_program_starts(dap: Client) -> None:
    found = dap.start("main.harn", 5, 99)
    assert [(point["verified"], point.get("line")) for point in found] == [(True, 6), (False, None)]
    assert dap.stopped() == ("breakpoint", 6)
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 0
    assert dap.output == "total 9\n"


def test_breakpoints_in_modules(dap: Client) -> None:
    dap.start("main.harn", stopOnEntry=True)
    assert dap.stopped() == ("entry", 1)
    (point,) = dap.breakpoints("lib.harn", 3)
    assert point["line"] == 4
    assert dap.step("continue") == ("breakpoint", 4)
    assert [frame["name"] for frame in dap.stack()] == ["scale", "total", "pipeline"]
    paths = [frame["source"]["path"] for frame in dap.stack()]
    assert paths == [str(dap.cwd / "lib.harn"), str(dap.cwd / "main.harn"), str(dap.cwd / "main.harn")]
    assert dap.breakpoints("lib.harn") == []
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 0


def test_conditional_breakpoints(dap: Client) -> None:
    dap.start("main.harn", (8, "x == 2"))
    assert dap.stopped() == ("breakpoint", 8)
    assert dap.request("evaluate", expression="x", frameId=dap.stack()[0]["id"])["result"] == "2"
    dap.breakpoints("main.harn", (9, "nothing"))
    assert dap.step("continue") == ("breakpoint", 9)
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 0


def test_steps(dap: Client) -> None:
    dap.start("main.harn", 8)
    assert dap.stopped() == ("breakpoint", 8)
    dap.breakpoints("main.harn")
    assert dap.step("stepIn") == ("step", 2)
    assert dap.step("next") == ("step", 4)
    assert dap.step("stepOut") == ("step", 9)
    assert dap.step("next") == ("step", 8)
    assert dap.step("stepOut") == ("step", 17)
    dap.request("next", threadId=dap.thread)
    assert dap.ends() == 0


def test_scopes_and_variables(dap: Client, write) -> None:
    write(
        "main.harn",
        """\
let whole = {list: [1, {deep: "text"}], nothing: nil}
struct Point { x: int }
fn f(a) {
  let p = Point {x: a}
  let r = Err("no")
  let show = { -> a + whole.list[0] }
  return show()
}
println(f(7))
""",
    )
    dap.start("main.harn", 7)
    dap.stopped()
    scopes = dap.scopes(dap.stack()[0])
    local = dap.variables(scopes["Locals"])
    assert list(local) == ["a", "p", "r", "show"]
    assert local["a"] == {"name": "a", "value": "7", "type": "int", "variablesReference": 0}
    assert (local["p"]["value"], local["p"]["type"]) == ("Point {x: 7}", "struct")
    assert dap.values(local["p"]["variablesReference"]) == {"x": "7"}
    assert dap.values(local["r"]["variablesReference"]) == {"[0]": '"no"'}
    whole = dap.variables(scopes["Captured"])["whole"]
    assert dap.values(whole["variablesReference"]) == {"list": "[1, {deep: text}]", "nothing": "nil"}
    items = dap.variables(dap.variables(whole["variablesReference"])["list"]["variablesReference"])
    assert items["[0]"]["value"] == "1"
    assert dap.values(items["[1]"]["variablesReference"]) == {"deep": '"text"'}
    assert dap.values(dap.scopes(dap.stack()[0])["File"])["f"] == "<fn(a)>"


def test_evaluate_and_set(dap: Client) -> None:
    dap.start("main.harn", 11)
    dap.stopped()
    frame, caller = dap.stack()
    assert dap.request("evaluate", expression="xs + [sum]", frameId=frame["id"])["result"] == "[1, 2, 9]"
    assert dap.request("evaluate", expression="scale(2, 5)", frameId=frame["id"])["result"] == "10"
    assert dap.request("evaluate", expression="xs", frameId=caller["id"])["result"] == "[1, 2]"
    with pytest.raises(Refused, match="Undefined variable: nothing"):
        dap.request("evaluate", expression="nothing", frameId=frame["id"])
    assert dap.request("evaluate", expression="sum = 50", frameId=frame["id"])["result"] == ""
    scope = dap.scopes(frame)["Locals"]
    changed = dap.request("setVariable", variablesReference=scope, name="sum", value="sum + 1")
    assert changed["value"] == "51"
    with pytest.raises(Refused, match="Cannot assign to immutable binding: xs"):
        dap.request("setVariable", variablesReference=scope, name="xs", value="[]")
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 0
    assert dap.output == "total 51\n"


FAILURES = """\
try { throw "caught" } catch (e) { println(e) }
fn fails(n) {
  return n / 0
}
fails(1)
"""


def test_stops_at_all_failures(dap: Client, write) -> None:
    write("main.harn", FAILURES)
    dap.start("main.harn", failures=["all"])
    assert dap.stopped() == ("exception", 1)
    info = dap.request("exceptionInfo", threadId=dap.thread)
    assert (info["description"], info["breakMode"]) == ("caught", "always")
    assert dap.step("continue") == ("exception", 3)
    assert dap.values(dap.scopes(dap.stack()[0])["Locals"]) == {"n": "1"}
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 1


def test_stops_at_uncaught_failures(dap: Client, write) -> None:
    write("main.harn", FAILURES)
    dap.start("main.harn", failures=["uncaught"])
    assert dap.stopped() == ("exception", 3)
    with pytest.raises(Refused, match="there is no thread 7"):
        dap.request("continue", threadId=7)
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 1


def test_tasks_are_threads(dap: Client, write) -> None:
    write(
        "main.harn",
        """\
fn work(n) {
  sleep(1ms)
  return n * 2
}
let a = spawn { work(5) }
let b = spawn { work(6) }
println(await(a) + await(b))
""",
    )
    dap.start("main.harn", (3, "n == 5"))
    assert dap.stopped() == ("breakpoint", 3)
    threads = dap.request("threads")["threads"]
    names = {thread["name"]: thread["id"] for thread in threads}
    assert set(names) == {"task_root", "task_root:spawn:1", "task_root:spawn:2"}
    assert dap.thread == names["task_root:spawn:1"]
    stacks = {name: [(frame["name"], frame["line"]) for frame in dap.stack(id)] for name, id in names.items()}
    assert stacks == {
        "task_root": [("pipeline", 7)],
        "task_root:spawn:1": [("work", 3), ("<task>", 5)],
        "task_root:spawn:2": [("work", 2), ("<task>", 6)],
    }
    waiting = dap.stack(names["task_root:spawn:2"])[0]
    assert dap.values(dap.scopes(waiting)["Locals"]) == {"n": "6"}
    dap.thread = names["task_root:spawn:2"]
    assert dap.step("next") == ("step", 3)
    assert dap.thread == names["task_root:spawn:2"]
    dap.request("continue", threadId=dap.thread)
    assert dap.ends() == 0


def test_sessions_can_be_opened(dap: Client, write) -> None:
    write(
        "main.harn",
        """\
let s = agent_session_open("talk")
agent_session_inject(s, {role: "user", content: "hello"})
println("x")
""",
    )
    dap.start("main.harn", 3)
    dap.stopped()
    session = dap.variables(dap.scopes(dap.stack()[0])["Sessions"])["talk"]
    events = dap.variables(session["variablesReference"])["events"]
    (event,) = dap.variables(events["variablesReference"]).values()
    assert dap.values(event["variablesReference"])["text"] == '"hello"'


def test_a_loop_is_paused(dap: Client, write) -> None:
    write("main.harn", 'var n = 0\nwhile true { if n == 0 { println("going") }; n = n + 1 }\n')
    dap.start("main.harn")
    dap.wait_for_output("going\n")
    with pytest.raises(Refused, match="the program is running"):
        dap.request("evaluate", expression="n")
    assert dap.request("threads")["threads"] == [{"id": 1, "name": "task_root"}]
    dap.request("pause", threadId=1)
    assert dap.stopped() == ("pause", 2)
    dap.request("terminate")
    assert dap.ends() == 124


@pytest.mark.parametrize("waiting", ["sleep(1h)", 'shell("cat pipe")'])
def test_a_program_that_waits_is_paused(dap: Client, write, waiting: str) -> None:
    os.mkfifo(dap.cwd / "pipe")
    write("main.harn", f'println("going")\n{waiting}\n')
    dap.start("main.harn")
    dap.wait_for_output("going\n")
    dap.request("pause", threadId=1)
    assert dap.stopped() == ("pause", 2)
    dap.request("continue", threadId=1)
    dap.request("terminate")
    assert dap.ends() == 124


def test_disconnect_while_running_ends_the_program(dap: Client, write) -> None:
    write("main.harn", 'println("going")\nwhile true { }\n')
    dap.start("main.harn")
    dap.wait_for_output("going\n")
    dap.request("disconnect", terminateDebuggee=True)
    assert dap.end() == 0


def test_disconnect_may_let_the_program_go_on(dap: Client, write) -> None:
    program = """\
println("going")
while shell("test -e go").status != 0 { sleep(1ms) }
shell("echo yes > done")
"""
    write("main.harn", program)
    dap.start("main.harn")
    dap.wait_for_output("going\n")
    dap.breakpoints("main.harn", 3)
    dap.request("disconnect", terminateDebuggee=False)
    write("go", "")
    assert dap.end() == 0
    assert (dap.cwd / "done").read_text() == "yes\n"


def test_a_client_that_goes_away_ends_a_stopped_program(dap: Client) -> None:
    dap.start("main.harn", 8)
    dap.stopped()
    assert dap.process.stdin
    dap.process.stdin.close()
    assert dap.end() == 0


def test_launch_options(dap: Client, write) -> None:
    program = """\
println(argv)
println(shell("echo $COLOUR").stdout)
println(read_line())
exit(3)
"""
    write("sub/main.harn", program)
    where = str(dap.cwd / "sub")
    dap.request("initialize", adapterID="x")
    dap.request("launch", program="main.harn", cwd=where, args=["a"], env={"COLOUR": "red"}, noDebug=True)
    dap.wait_for("initialized")
    dap.breakpoints("sub/main.harn", 1)
    dap.request("configurationDone")
    assert dap.ends() == 3
    assert dap.output.split() == ["[a]", "red", "nil"]


def test_lines_may_count_from_0(dap: Client) -> None:
    dap.request("initialize", adapterID="x", linesStartAt1=False, columnsStartAt1=False)
    dap.request("launch", program="main.harn")
    dap.wait_for("initialized")
    assert dap.breakpoints("main.harn", 4)[0]["line"] == 5
    dap.request("configurationDone")
    dap.wait_for("stopped")
    (frame, _) = dap.stack(1)
    assert (frame["line"], frame["column"]) == (5, 2)


def test_what_goes_wrong_is_said(dap: Client, write) -> None:
    with pytest.raises(Refused, match="no program has been launched"):
        dap.request("configurationDone")
    with pytest.raises(Refused, match="`restartFrame` is not supported"):
        dap.request("restartFrame", frameId=1)
    with pytest.raises(Refused, match="launch needs `program`, or `tape`"):
        dap.request("launch")
    with pytest.raises(Refused, match=r"none\.harn: No such file"):
        dap.request("launch", program="none.harn")
    write("main.harn", "let =")
    dap.start("main.harn")
    while "expected" not in (shown := dap.wait_for("output"))["output"]:
        pass
    assert shown["category"] == "stderr"
    assert dap.ends() == 1
    wait_until(lambda: dap.process.poll() is not None)
