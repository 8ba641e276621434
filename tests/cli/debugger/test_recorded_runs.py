"""Recorded runs in the debugger: back and forth, and what wrote something. Spec: 09 §15.7."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.debugger.dap_client import Client, Refused
from tests.cli.debugger.test_commands import stops
from tests.support import Command, Popen

PROGRAM = """\
fn twice(x) {
  let y = x * 2
  return y
}
var sum = 0
for i in [1, 2, 3] {
  let t = twice(i)
  sum = sum + t
  println("sum ${sum}")
}
write_file("out.txt", "${sum}")
let one = spawn { twice(sum) }
println(await(one))
println(now_ms() > 0)
"""
CHAT = """\
let tools = tool_define(tool_registry(), "note", "Writes a note", {
  parameters: {text: "string"},
  handler: { args ->
    write_file("note.txt", args.text)
    "noted"
  },
})
llm_mock({tool_calls: [{name: "note", arguments: {text: "lamp"}}]})
llm_mock({text: "Done."})
let s = agent_session_open("orders")
agent_session_inject(s, {role: "user", content: "Hello"})
let options = {provider: "mock", model: "m", session_id: s, tools: tools, tool_format: "native"}
let r = agent_loop("Note the lamp", nil, options)
let t = spawn {
  agent_session_inject(s, {role: "user", content: "Thanks"})
  read_file("note.txt")
}
println(await(t))
"""


@pytest.fixture
def taped(harnpy: Command, write: Callable[[str, str], str]) -> Callable[..., str]:
    """Return what is shown of a recorded run being debugged."""

    def run(text: str, *commands: str, fails: bool = False) -> str:
        write("main.harn", text)
        assert harnpy("run", "--record", "run.tape", "main.harn").returncode == int(fails)
        write("main.harn", "// what is on the disk by now is no matter\n")
        done = harnpy("debug", "run.tape", stdin="".join(line + "\n" for line in commands))
        assert "Traceback" not in done.stderr
        return done.stdout

    return run


def test_steps_back(taped) -> None:
    text = taped(PROGRAM, "b 3", "c", "rs", "rn", "", "c", "ro", "rs", "rs", "s")
    assert stops(text) == [
        "main.harn:5, the start",
        "main.harn:3, breakpoint 1",
        "main.harn:2, a step",
        "main.harn:7, a step",
        "main.harn:6, a step",
        "main.harn:3, breakpoint 1",
        "main.harn:7, a step",
        "main.harn:6, a step",
        "main.harn:5, the start",
        "main.harn:6, a step",
    ]


def test_back_to_the_breakpoint_before_and_what_is_there(taped) -> None:
    text = taped(
        PROGRAM, "b 8", "goto end", "rc", "v", "rc", "p sum", "d 1", "b 8 if i == 1", "rc", "p t", "rc"
    )
    assert stops(text)[1:] == [
        "main.harn:8, breakpoint 1",
        "main.harn:8, breakpoint 1",
        "main.harn:8, breakpoint 2",
        "main.harn:5, the start",
    ]
    assert "\n  sum = 6\n  i = 3\n  t = 6\n" in text
    assert "\n2\nbreakpoint 2 at" in text
    assert text.count("sum 12\n") == 1, "nothing is printed on the way back"


def test_what_was_printed_is_printed_again_only_on_the_way_forward(taped) -> None:
    text = taped(PROGRAM, "b 11", "c", "rc", "c")
    assert text.count("\nsum 2\nsum 6\nsum 12\n") == 2


def test_places_to_go_to(taped) -> None:
    text = taped(
        PROGRAM, "goto effect 1", "effects", "goto effect 2", "effects", "goto effect 1", "goto effect 9"
    )
    assert stops(text)[1:] == [
        "main.harn:11, before it writes out.txt",
        "main.harn:14, before it reads the clock",
        "main.harn:11, before it writes out.txt",
    ]
    assert "no effects so far\n" in text
    assert "\n1  task_root  writes out.txt\n" in text
    assert text.endswith("error: there is no effect 9: the last one of run.tape is 2\n")
    assert "error: places to go to are" in taped(PROGRAM, "goto 3")


def test_the_end_is_a_place(taped) -> None:
    text = taped(PROGRAM, "c", "rs", "n", "c")
    end = "the recorded run has ended with status 0; `rn` and `rc` go back, `c` leaves\n"
    assert text.count(end) == 2
    assert stops(text)[1:] == ["main.harn:14, a step"]
    assert text.endswith("the program has ended with status 0\n")


def test_back_from_a_failure(taped) -> None:
    text = taped('var n = 1\nn = n + 1\nthrow "n is ${n}"\n', "c", "rs", "rs", "p n", fails=True)
    assert stops(text)[1:] == ["main.harn:3, a step", "main.harn:2, a step"]
    assert text.endswith("\n1\n")


def test_what_changed_a_variable(taped) -> None:
    text = taped(
        PROGRAM, "who sum", "b 3", "c", "c", "who x", "who y", "who sum", "f 1", "who i", "who nothing", "w"
    )
    lines = text.splitlines()
    assert "error: no variable sum is visible here (try `v`)" in lines
    assert "main.harn:7, in task_root: x was nothing, became 2" in lines
    assert "main.harn:2, in task_root: y was nothing, became 4" in lines
    assert "main.harn:6, in task_root: i was 1, became 2" in lines
    assert "error: no variable nothing is visible here (try `v`)" in lines
    assert lines[-2:] == ["  0  twice at main.harn:3", "> 1  pipeline at main.harn:7"]


def test_what_wrote_a_message(taped) -> None:
    asked = [f"who message {number}" for number in range(1, 8)]
    text = taped(CHAT, "who message 1 orders", "goto end", *asked, "who message 2 x")
    assert (
        text.splitlines()[-10:]
        == [
            "the recorded run has ended with status 0; `rn` and `rc` go back, `c` leaves",
            "main.harn:11, in task_root, before any model call",
            "main.harn:13, in task_root, before any model call",
            "main.harn:13, in task_root, after model call 1",
            "main.harn:13, in task_root, after model call 1",
            "main.harn:13, in task_root, after model call 2",
            "main.harn:15, in task_root:spawn:1, after model call 2",
            "error: session orders has 6 messages here, and no message 7",
            "error: no open session begins with `x` (try `session`)",
        ][-10:]
        or text
    )
    assert "error: no open session begins with `orders` (try `session`)" in text


def test_what_is_asked_of_a_run_without_that(taped, harnpy: Command, tmp_path: Path) -> None:
    text = taped("let n = 1\nprintln(n)\n", "who message 1", "goto call 1", "goto effect 1")
    assert text.splitlines()[-3:] == [
        "error: no session is open", "error: run.tape has no calls", "error: run.tape has no effects",
    ]  # fmt: skip
    text = taped('agent_session_open("a")\nagent_session_open("b")\n', "goto end", "who message 3")
    assert "error: 2 sessions are open: ask `who message 3 SESSION`" in text
    (tmp_path / "main.harn").write_text("nothing_like_it()\n")
    assert harnpy("run", "--record", "run.tape", "main.harn").returncode == 1
    done = harnpy("debug", "run.tape", "--who", "n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("error: the program of run.tape didn't begin, so it has written nothing\n")


def test_what_wrote_a_file(taped, harnpy: Command) -> None:
    text = taped(CHAT, "who file note.txt", "goto call 2", "who file ./note.txt", "who")
    lines = text.splitlines()
    assert lines[-2].startswith("main.harn:4, in task_root, in a call of the tool note: effect ")
    assert lines[-2].endswith(", writes note.txt")
    assert lines[-1] == "error: ask `who NAME`, `who message N [SESSION]` or `who file PATH`"
    assert "error: no effect of the program has written note.txt by now" in text
    assert harnpy("debug", "run.tape", "--who", "message 1").stdout == (
        "main.harn:11, in task_root, before any model call\n"
    )
    assert harnpy("debug", "run.tape", "--who", "s").stdout.startswith(
        "main.harn:10, in task_root: s was nothing"
    )
    done = harnpy("debug", "run.tape", "--who", "file none.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no effect of the program has written none.txt")


def test_an_expression_changes_nothing(taped) -> None:
    commands = ('p write_file("x", "y")', "p sleep(1s)", "p sum = 5", 'p send(ch, "more")', "c")
    text = taped(
        'let ch = channel("c", 9)\nvar sum = 0\nprintln(sum)\nprintln(try_receive(ch))\n', "n", "n", *commands
    )
    assert "error: Runtime error: an expression has no effects in a recorded run" in text
    assert "error: Runtime error: an expression can't wait in a recorded run" in text
    assert "error: a recorded run stays as it was: `harnpy branch` goes on differently" in text
    assert "\n0\nnil\nthe recorded run has ended with status 0" in text


def test_tasks(taped) -> None:
    text = taped(PROGRAM, "b 2", "goto end", "rc", "w", "t", "rs", "who sum")
    assert "\nerror: sum is as it was captured when this function was made: 12 (ask there" in text
    assert "main.harn:2, breakpoint 1, in task 2" in text
    assert "\n> 2  task_root:spawn:1  twice at main.harn:2\n" in text
    assert stops(text)[2] == "main.harn:12, a step, in task 2"


def test_only_a_tape_goes_back(harnpy: Command, write) -> None:
    write("main.harn", PROGRAM)
    done = harnpy("debug", "main.harn", stdin="rs\ngoto end\nwho sum\n")
    assert done.stdout.count("error: only a recorded run goes back: record it with `harnpy run --record") == 3
    assert harnpy("debug", "main.harn", "--who", "sum").returncode == 2
    harnpy("run", "--record", "run.tape", "main.harn")
    assert "is a tape, which has the program's arguments" in harnpy("debug", "run.tape", "x").stderr


def test_a_tape_from_elsewhere(harnpy: Command, write, tmp_path) -> None:
    write("main.harn", PROGRAM)
    assert harnpy("run", "--record", "run.tape", "main.harn").returncode == 0
    text = (tmp_path / "run.tape").read_text(encoding="utf-8").replace(str(tmp_path), f"{tmp_path}_gone")
    write("other.tape", text)
    os.remove(tmp_path / "main.harn")
    done = harnpy("debug", "other.tape", stdin="b 8\nc\ngoto end\nrc\np sum\nwho file out.txt\n")
    assert stops(done.stdout)[1:] == ["main.harn:8, breakpoint 1"] * 2, done
    assert "\n6\nerror: no effect of the program has written out.txt by now" in done.stdout


@pytest.fixture
def dap(popen: Popen, tmp_path, harnpy: Command, write) -> Iterator[Client]:
    write("main.harn", PROGRAM)
    assert harnpy("run", "--record", "run.tape", "main.harn").returncode == 0
    client = Client(popen, tmp_path, dict(os.environ))
    yield client
    client.kill()


def start(dap: Client, *lines: int, **launch: object) -> None:
    assert "supportsStepBack" not in dap.request("initialize", adapterID="harnpy")
    dap.request("launch", tape="run.tape", **launch)
    assert dap.wait_for("capabilities")["capabilities"]["supportsStepBack"] is True
    dap.wait_for("initialized")
    dap.breakpoints("main.harn", *lines)
    dap.request("configurationDone")


def test_an_editor_steps_back(dap: Client) -> None:
    start(dap, 8)
    assert dap.stopped() == ("breakpoint", 8)
    assert dap.step("continue") == ("breakpoint", 8)
    assert dap.values(dap.scopes(dap.stack()[0])["Locals"])["sum"] == "2"
    assert dap.step("stepBack") == ("step", 7)
    assert dap.step("reverseContinue") == ("breakpoint", 8)
    assert dap.values(dap.scopes(dap.stack()[0])["Locals"])["sum"] == "0"
    assert dap.step("reverseContinue") == ("entry", 5)
    with pytest.raises(Refused, match="a recorded run stays as it was"):
        dap.request("evaluate", expression="sum = 1", frameId=dap.stack()[0]["id"])
    dap.breakpoints("main.harn")
    dap.request("continue", threadId=dap.thread)
    assert dap.wait_for("stopped")["description"] == "the recorded run has ended with status 0"
    dap.request("continue", threadId=1)
    assert dap.ends() == 0
    assert dap.output == "sum 2\n" + "sum 2\nsum 6\nsum 12\n24\ntrue\n"


def test_an_editor_is_given_the_text_that_was_recorded(dap: Client, write) -> None:
    write("main.harn", "// another\n")
    start(dap, 9)
    assert dap.stopped() == ("breakpoint", 9)
    source = dap.stack()[0]["source"]
    assert dap.request("source", sourceReference=source["sourceReference"], source=source) == {
        "content": PROGRAM
    }


def test_what_an_editor_can_not_launch(dap: Client) -> None:
    with pytest.raises(Refused, match="launch needs `program`, or `tape`"):
        dap.request("launch")
    with pytest.raises(Refused, match="isn't a tape"):
        dap.request("launch", tape="main.harn")
    dap.start("main.harn", 8)
    assert dap.stopped() == ("breakpoint", 8)
    with pytest.raises(Refused, match="only a recorded run goes back: launch with `tape`"):
        dap.request("stepBack", threadId=dap.thread)
