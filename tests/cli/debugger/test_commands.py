"""`harnpy debug` with commands from a pipe: stops, steps, calls, names, tasks, sessions. Spec: 09 §15."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.debugger.program import LIBRARY, PROGRAM
from tests.support import ROOT, Command


@pytest.fixture
def shown(harnpy: Command, write: Callable[[str, str], str]) -> Callable[..., str]:
    """All that a program being debugged shows."""

    def run(text: str, *commands: str) -> str:
        write("lib.harn", LIBRARY)
        done = harnpy("debug", write("main.harn", text), stdin="".join(line + "\n" for line in commands))
        assert "Traceback" not in done.stderr
        return done.stdout

    return run


def stops(text: str) -> list[str]:
    """Where the program has stopped, and why."""
    lines = text.splitlines()
    return [line.removeprefix("stopped at ") for line in lines if line.startswith("stopped at ")]


def test_it_stops_before_the_first_statement_and_shows_it(shown) -> None:
    text = shown(PROGRAM)
    assert text == (
        "stopped at main.harn:1, the start\n"
        '> 1  import { scale } from "lib"\n  2\n  3  let factor = 3\n  4\n  5  fn total(xs) {\n'
    )


def test_breakpoints_by_line_and_file(shown) -> None:
    text = shown(PROGRAM, "b 9", "b lib.harn:2", "c", "c", "b", "d 1", "c", "c")
    assert "breakpoint 1 at main.harn:9\nbreakpoint 2 at lib.harn:2\n" in text
    assert "1  main.harn:9\n2  lib.harn:2\n" in text
    assert stops(text)[1:] == [
        "lib.harn:2, breakpoint 2",
        "main.harn:9, breakpoint 1",
        "lib.harn:2, breakpoint 2",
    ]
    assert text.endswith("total 9\nthe program has ended with status 0\n")


def test_a_line_without_a_statement_means_the_next_one(shown) -> None:
    text = shown(PROGRAM, "b lib.harn:3", "b 5", "c", "c")
    assert "breakpoint 1 at lib.harn:4, the next statement\n" in text
    assert "breakpoint 2 at main.harn:6, the next statement\n" in text
    assert stops(text)[1:] == ["main.harn:6, breakpoint 2", "lib.harn:4, breakpoint 1"]


def test_conditions(shown) -> None:
    text = shown(PROGRAM, "b 8 if x == 2", "b 11 if nothing", "c", "p x", "c", "c")
    assert stops(text)[1:] == ["main.harn:8, breakpoint 1", "main.harn:11, breakpoint 2"]
    assert "\n2\n" in text
    assert "error: condition `nothing`: Undefined variable: nothing\n" in text


def test_steps(shown) -> None:
    text = shown(PROGRAM, "b 8", "c", "d 1", "s", "n", "n", "n", "", "o", "n", "n")
    assert stops(text)[2:] == [
        "lib.harn:2, a step",
        "lib.harn:4, a step",
        "main.harn:9, a step",
        "main.harn:8, a step",
        "main.harn:9, a step",
        "main.harn:17, a step",
    ]


def test_the_calls_and_what_each_sees(shown) -> None:
    text = shown(PROGRAM, "b lib.harn:4", "c", "w", "v", "f 1", "v", "p factor + x", "f 2", "v", "p total")
    assert "> 0  scale at lib.harn:4\n  1  total at main.harn:8\n  2  pipeline at main.harn:16\n" in text
    assert "\n  x = 1\n  by = 3\n  y = 3\n" in text
    assert "\n  xs = [1, 2]\n  sum = 0\n  x = 1\ncaptured:\n  factor = 3\n4\n" in text
    assert "\n  factor = 3\n  xs = [1, 2]\n<fn(xs)>\n" in text


def test_an_expression_runs_as_code_of_the_frame(shown) -> None:
    commands = ("p sum = 100", "p sum + scale(2, 5)", "p xs = 1", "p xs[9]", "p sum.", "c")
    text = shown(PROGRAM, "b 11", "c", *commands)
    assert "\n110\n" in text
    assert "error: Cannot assign to immutable binding: xs\n" in text
    assert "total 100\n" in text


NAMES = """\
let x = "outer"
fn f(flag) {
  let x = 1
  if flag {
    let x = 2
    println(x)
  }
  for i in [1, 2] {
    println(i)
    let late = i
  }
  match [7, 8] {
    [a, b] -> { println(a + b) }
  }
  try { throw "e" } catch (e) { println(e) }
  return x
}
println(f(true))
"""


@pytest.mark.parametrize(
    ("line", "variables"),
    [
        (5, "flag = true\n  x = 1\n"),
        (6, "flag = true\n  x = 2\n"),
        (9, "flag = true\n  x = 1\n  i = 2\n"),
        (13, "flag = true\n  x = 1\n  a = 7\n  b = 8\n"),
        (16, "flag = true\n  x = 1\n"),
    ],
)
def test_only_what_is_visible_is_shown(shown, line: int, variables: str) -> None:
    commands = [f"b {line}" + (" if i == 2" if line == 9 else ""), "c", "v"]
    assert shown(NAMES, *commands).endswith("  " + variables)


FAILURES = """\
fn risky(n) {
  try { throw "caught ${n}" } catch (e) { println(e) }
  retry 2 { if n < 2 { throw "tried ${n}" } }
  return 1 / n
}
let t = spawn { throw "of a task" }
println(try { await(t) })
risky(0)
"""


def test_all_failures(shown) -> None:
    text = shown(FAILURES, "catch all", "c", "c", "c", "c", "c")
    assert stops(text)[1:] == [
        "main.harn:6, failure: of a task, in task 2",
        "main.harn:2, failure: caught 0",
        "main.harn:3, failure: tried 0",
        "main.harn:3, failure: tried 0",
    ]


def test_uncaught_failures(shown) -> None:
    text = shown(FAILURES, "catch uncaught", "c", "v", "c", "w", "c", "c")
    assert stops(text)[1:] == ["main.harn:6, failure: of a task, in task 2", "main.harn:3, failure: tried 0"]
    assert "> 0  risky at main.harn:3\n  1  pipeline at main.harn:8\n" in text
    assert text.endswith("the program has ended with status 1\n")


TASKS = """\
fn work(n) {
  sleep(1ms)
  return n * 2
}
let a = spawn { let mine = 5
  work(mine) }
let b = spawn { work(6) }
println(await(a) + await(b))
"""


def test_tasks_have_stacks_of_their_own(shown) -> None:
    text = shown(TASKS, "b 3", "c", "t", "w", "t 1", "w", "t 3", "f 1", "t 9", "t 2", "f 1", "v", "o", "c")
    assert stops(text)[1] == "main.harn:3, breakpoint 1, in task 2"
    assert (
        "  1  task_root  pipeline at main.harn:8\n"
        "> 2  task_root:spawn:1  work at main.harn:3\n"
        "  3  task_root:spawn:2  work at main.harn:2\n"
        "> 0  work at main.harn:3\n  1  <task> at main.harn:6\n"
        "> 0  pipeline at main.harn:8\n"
        "> 0  pipeline at main.harn:8\n"
        "> 0  work at main.harn:2\n  1  <task> at main.harn:7\n"
    ) in text
    assert "error: there is no task 9 (try `t`)\n" in text
    assert "  mine = 5\n" in text


def test_a_step_past_the_end_of_a_task_stops_in_another(shown) -> None:
    text = shown('let a = spawn {\n  println("x")\n}\nawait(a)\nprintln("y")\n', "b 2", "c", "n", "n")
    assert stops(text)[1:] == ["main.harn:2, breakpoint 1, in task 2", "main.harn:5, a step"]


def test_a_generator_is_called_by_whoever_asks_for_an_item(shown) -> None:
    program = "fn numbers() {\n  yield 1\n  yield 2\n}\nfor n in numbers() {\n  println(n)\n}\n"
    text = shown(program, "b 3", "c", "w", "o")
    assert "> 0  numbers at main.harn:3\n  1  pipeline at main.harn:5\n" in text
    assert stops(text)[1:] == ["main.harn:3, breakpoint 1", "main.harn:6, a step"]


def test_deferred_blocks_are_stepped_through(shown) -> None:
    program = 'fn f() {\n  defer {\n    println("last")\n  }\n  println("first")\n}\nf()\n'
    text = shown(program, "b 5", "c", "n", "n")
    assert stops(text)[1:] == ["main.harn:5, breakpoint 1", "main.harn:3, a step"]


def test_sessions(shown) -> None:
    program = """\
let s = agent_session_open("talk")
agent_session_inject(s, {role: "user", content: "hello"})
println("x")
"""
    text = shown(program, "b 3", "c", "session", "session ta", "session nope")
    assert (
        "id    messages  parent  clients  last event\ntalk         1  -       -        user: hello\n" in text
    )
    assert "talk  1 message\nuser: hello\n" in text
    assert "error: no session begins with `nope` (try `session`)\n" in text


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("jump", "unknown command `jump` (try `help`)"),
        ("b x", "a breakpoint is `b LINE`, `b FILE:LINE` or `b LINE if CONDITION`"),
        ("b 999", "main.harn has no statement at or below line 999"),
        ("b none.harn:1", "none.harn: No such file or directory"),
        ("d 7", "there is no breakpoint 7 (try `b`)"),
        ("d x", "`d N` needs a number"),
        ("catch some", "failures to stop at are `catch all`, `catch uncaught` or `catch none`"),
        ("f 3", "there is no call 3 (try `w`)"),
        ("t x", "`t N` needs a number"),
        ("p", "`p` needs an expression, such as `p x + 1`"),
        ("p nothing", "Undefined variable: nothing"),
        ("p exit(3)", "the expression would end the program"),
        ("n 3", "this command takes no argument (try `help`)"),
    ],
)
def test_wrong_input_is_explained(shown, command: str, message: str) -> None:
    error = shown(PROGRAM, command).splitlines()[-1]
    assert error.startswith("error: ")
    assert error.endswith(message)


def test_the_exit_status_is_the_programs(harnpy: Command, write) -> None:
    done = harnpy("debug", write("x.harn", "println(argv)\nexit(7)"), "--", "-a", "b", stdin="c\n")
    assert done.returncode == 7
    assert "[-a, b]\nthe program has ended with status 7\n" in done.stdout


def test_a_program_that_does_not_parse(harnpy: Command, write) -> None:
    done = harnpy("debug", write("x.harn", "let ="))
    assert done.returncode == 1
    assert "expected" in done.stderr
    assert "Traceback" not in done.stderr


def test_leaving_ends_the_program(harnpy: Command, write) -> None:
    program = 'defer { println("not this") }\nprintln("nor this")'
    done = harnpy("debug", write("x.harn", program), stdin="q\n")
    assert done.returncode == 124
    assert "this" not in [line.strip() for line in done.stdout.splitlines() if line[:1] not in " >"]


def test_the_guide_shows_what_happens(harnpy: Command, write) -> None:
    write("to_debug.harn", (ROOT / "examples" / "to_debug.harn").read_text(encoding="utf-8"))
    guide = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    _, _, rest = guide.partition("$ harnpy debug to_debug.harn\n")
    lines = rest.partition("```")[0].splitlines(keepends=True)
    commands = [line.removeprefix("debug〉") for line in lines if line.startswith("debug〉")]
    answers = [line for line in lines if not line.startswith("debug〉")]
    assert harnpy("debug", "to_debug.harn", stdin="".join(commands)).stdout == "".join(answers)
