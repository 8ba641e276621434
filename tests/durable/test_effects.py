"""What is recorded of each kind of effect, what a changed program is told, and what is refused.

Spec: 10 §C19.1 "Program runs".
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.durable.programs import program_job, run
from harnpy.faults import MisuseError
from harnpy.vm.errors import VmError
from harnpy.workflow.engines.contract import Step
from harnpy.workflow.engines.errors import ReplayDiverged, RunCancelled
from harnpy.world.environment import Variables
from harnpy.world.host import Host, People
from harnpy.world.streams import RealStreams
from tests.durable.runs import MemoryRun, Outside, done, job_of, without_output
from tests.support import happens


def kinds(context: MemoryRun) -> list[str]:
    return [step.key.rpartition(":")[2] for step in context.steps]


def twice(source: str, outside: Outside, directory: Path | str = "/tmp", **body: Any) -> tuple[str, str]:
    """Return what a program prints, and what it prints when all of it is recorded."""
    context, job = MemoryRun(), job_of(source, directory, **body)
    value = done(job, context, outside)
    first = outside.output()
    again = MemoryRun(context.steps)
    assert done(job, again, outside) == value
    assert again.steps == context.steps
    return first, outside.output()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("println(now_ms())", "now"),
        ("println(random_int(1, 6))", "random"),
        ("println(uuid_v7())", "id"),
        ('println(env_or("LANG", "?"))', "env"),
        ('try { read_file("nothing") } catch (e) { println(e) }', "read"),
        ('write_file("some", "text")', "write"),
        ("sleep(60ms)", "sleep"),
        ('println(exec("tool", "x").stdout)', "process"),
        ('println(llm_call("hi", nil, {provider: "p", model: "m"}).text)', "model"),
        ('println(ask_user("really?"))', "human"),
        ("println(read_line())", "stdin"),
        ('println(host_call("test.op", {a: 1}))', "host"),
    ],
)
def test_an_effect_is_recorded_and_given_out_again(source: str, kind: str, tmp_path: Path) -> None:
    outside = Outside()
    outside.people = People(lambda request: {"answer": "yes"})
    outside.host = Host({"test.op": lambda params: {"got": params}})
    outside.streams = RealStreams(outside.print, stdin=io.StringIO("a line\n"))
    context, job = MemoryRun(), job_of(source, tmp_path)
    value = done(job, context, outside)
    assert kind in kinds(context)
    assert done(job, MemoryRun(context.steps), Outside()) == value


def test_what_is_printed_between_an_append_and_the_end_of_the_process_is_not_printed_twice() -> None:
    job = job_of('println("a")\nexec("tool", "x")\nprintln("b")')
    outside = Outside()
    killed = MemoryRun(kill=lambda append: append == -1)
    done(job, killed, outside)
    assert outside.output() == ""  # recorded, and killed before it was shown
    done(job, MemoryRun(killed.steps), outside)
    assert outside.output() == "b\n"


def test_values_that_json_has_no_word_for_come_back(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\x00\xff")
    source = 'println(read_file_bytes("data"))\nprintln(stat("data").size)\nprintln(list_dir("."))'
    first, again = twice(source, Outside(), tmp_path)
    assert "2\n" in first
    assert again == ""


def test_an_error_is_the_same_when_it_is_given_out_again() -> None:
    source = """
try { llm_call("fail", nil, {provider: "p", model: "m", llm_retries: 0}) }
catch (e) { println("${error_category(e)}: ${e}") }
"""
    outside, context = Outside(), MemoryRun()
    done(job_of(source), context, outside)
    said = outside.output()
    assert said.startswith("rate_limit: ")
    steps = [step for step in context.steps if not step.key.endswith(":out")]
    done(job_of(source), MemoryRun(steps), outside)
    assert outside.output() == said
    assert outside.asked["fail"] == 1


@pytest.mark.parametrize(
    ("changed", "asked", "recorded"),
    [
        ('println("a")\nread_file("f")', "task_root/1:read at /tmp/main.harn:2:1", "task_root/1:process"),
        ('exec("tool", "x")', "other output, of 0 characters", "output/1:out"),
        ('println("b")\nexec("tool", "x")', "other output, of 2 characters", "output/1:out"),
        (
            'println("a")\nllm_call("x", nil, {provider: "p", model: "m"})',
            "task_root/1:now",
            "task_root/1:process",
        ),
        ('println("a")', "nothing more", "task_root/1:process"),
        ('println("a")\nsleep(1h)', "task_root/1:sleep", "task_root/1:process"),
    ],
)
def test_a_changed_program_says_where_it_differs(changed: str, asked: str, recorded: str) -> None:
    context = MemoryRun()
    done(job_of('println("a")\nexec("tool", "x")\nprintln("c")'), context, Outside())
    outside = Outside()
    with pytest.raises(ReplayDiverged) as caught:
        done(job_of(changed), MemoryRun(context.steps), outside)
    assert caught.value.asked.startswith(asked)
    assert caught.value.recorded == recorded
    assert not outside.asked
    assert not outside.ran


def test_a_program_runs_as_it_was_when_the_run_began(tmp_path: Path) -> None:
    (tmp_path / "main.harn").write_text('import "lib"\nprintln(greeting())')
    (tmp_path / "lib.harn").write_text('pub fn greeting() { return "hello" }')
    job = program_job(str(tmp_path / "main.harn"))
    (tmp_path / "lib.harn").unlink()
    (tmp_path / "main.harn").unlink()
    outside = Outside()
    done(job, MemoryRun(), outside)
    assert outside.output() == "hello\n"


def test_paths_count_from_where_the_run_began(tmp_path: Path) -> None:
    outside = Outside()
    twice('write_file("here", "x")\nprintln(cwd())', outside, tmp_path)
    assert (tmp_path / "here").read_text() == "x"


def test_secrets_and_settings_are_not_recorded() -> None:
    outside = Outside()
    outside.environment = Variables({"APP_API_KEY": "s3cret", "MODE": "fast", "HARN_LLM_TIMEOUT": "7"})
    context = MemoryRun()
    done(job_of('println("${env("APP_API_KEY") == nil} ${env("MODE")}")'), context, outside)
    assert outside.output() == "false fast\n"
    assert "s3cret" not in str(context.steps)
    assert [step for step in context.steps if step.key == "variable/MODE:env"]


def test_no_value_that_is_a_secret_is_recorded(tmp_path: Path) -> None:
    outside, context = Outside(), MemoryRun()
    secrets = {
        "GH_PAT": "ghp_" + "aB3dE5fG7hI9" * 3,
        "REDIS_URL": "redis://:pw4redis@host/0",
        "DATABASE_URL": "postgresql://me:s3cret@host/db",
    }
    outside.environment = Variables({**secrets, "MODE": "fast", "LANG": "C"})
    reads = " ".join(f'${{env("{name}") == nil}}' for name in secrets)
    run = '{mode: "argv", argv: ["tool", "x"], env: {A: "1"}, env_mode: "merge"}'
    source = f'host_call("process.exec", {run})\nprintln("{reads} ${{env("MODE")}}")'
    done(job_of(source, tmp_path), context, outside)
    assert outside.output() == "false false false fast\n"
    assert [step for step in context.steps if step.key.startswith("variable")] == [
        Step("variable/MODE:env", {"ok": "fast"})
    ]
    assert not [text for text in (*secrets.values(), "pw4redis", "s3cret") if text in repr(context.steps)]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("http_server_listen(http_server(), {port: 0})", "can't listen"),
        ('mcp_connect("cat")', "can't talk to a process"),
    ],
)
def test_what_would_not_survive_is_refused(source: str, said: str) -> None:
    outside = Outside()
    with pytest.raises(VmError, match=said):
        done(job_of(source), MemoryRun(), outside)


def test_cancel_reaches_a_model_call() -> None:
    outside, context = Outside(), MemoryRun()
    began, ended = threading.Event(), threading.Event()

    async def complete(request: Any) -> Any:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    outside.complete = complete  # type: ignore[method-assign]
    threading.Thread(target=lambda: (happens(began), context.cancel()), daemon=True).start()
    with pytest.raises(RunCancelled):
        done(job_of('try { llm_call("x", nil, {provider: "p", model: "m"}) } catch (e) {}'), context, outside)
    assert ended.is_set()


def test_cancel_reaches_a_program_that_computes() -> None:
    context = MemoryRun()
    timer = threading.Timer(0.2, context.cancel)
    timer.start()
    with pytest.raises(RunCancelled):
        done(job_of("while true { }"), context, Outside())


def test_output_is_shown_while_a_program_computes() -> None:
    outside, context = Outside(), MemoryRun()
    shown = threading.Event()
    plain: Callable[[str], object] = outside.print

    def write(text: str) -> None:
        plain(text)
        shown.set()

    outside.streams = RealStreams(write)
    threading.Thread(target=lambda: (shown.wait(20), context.cancel()), daemon=True).start()
    with pytest.raises(RunCancelled):
        done(job_of('println("now")\nwhile true { }'), context, outside)
    assert outside.output() == "now\n"


def test_time_passes_where_a_program_waits_or_looks_at_the_clock() -> None:
    source = """
try { deadline 20ms { while true { now_ms() } } } catch (e) { println(e) }
let begin = monotonic_ms()
sleep(20ms)
println(monotonic_ms() - begin >= 20)
"""
    first, again = twice(source, Outside())
    assert first == "Deadline exceeded\ntrue\n"
    assert again == ""


def test_a_program_that_fails_fails_again_and_exit_is_its_end() -> None:
    context = MemoryRun()
    for steps in ((), context.steps):
        with pytest.raises(VmError, match="oh"):
            run(job_of('println("x")\nthrow "oh"'), MemoryRun(steps), world=Outside())
    assert run(job_of("exit(3)"), MemoryRun(), world=Outside()) == {"$exit": 3}


def test_an_err_that_the_entry_returns_is_a_failure() -> None:
    with pytest.raises(MisuseError, match="no luck"):
        run(job_of('return Err("no luck")'), MemoryRun(), world=Outside())


def test_arguments_and_the_pipeline_are_the_jobs() -> None:
    outside = Outside()
    source = 'pipeline one(task) { println("one ${argv}") }\npipeline two(task) { println("two ${argv}") }'
    done(job_of(source, args=["a", "b"], pipeline="two"), MemoryRun(), outside)
    assert outside.output() == "two [a, b]\n"


TOOLS = """
let tools = tool_define(tool_registry(), "look", "Looks", {
  parameters: {name: "string"},
  POLICY
  handler: { args ->
    let first = exec("tool", "first ${args.name}").stdout
    exec("tool", "second ${args.name}").stdout
  },
})
let options = {provider: "p", model: "m", tool_format: "native", tools: tools, max_iterations: 3}
let done = agent_loop("g", nil, options)
for event in done.transcript.events {
  if event.kind == "tool_execution" { println(event.text) }
}
"""


@pytest.mark.parametrize("policy", ["", 'on_ambiguous: "retry",'])
def test_a_tool_that_was_cut_off_runs_again_only_if_it_may(policy: str) -> None:
    job, whole = job_of(TOOLS.replace("POLICY", policy)), MemoryRun()
    done(job, whole, Outside())
    cut_off = 0
    for number in range(1, whole.appends + 1):
        outside, killed = Outside(), MemoryRun(kill=lambda append, number=number: append == number)
        done(job, killed, outside)
        again = MemoryRun(killed.steps)
        done(job, again, outside)
        twice = [name for name, times in outside.ran.items() if times > 1]
        said = outside.output()
        if policy:
            assert "Error" not in said
        else:
            assert twice == []
            cut_off += said.count("Error: ")
        assert len(twice) <= 1
        # What it came to then, it comes to again.
        done(job, MemoryRun(without_output(again.steps)), outside)
        assert outside.output() == said
    assert policy or cut_off >= 4


def test_output_that_is_recorded_in_the_middle_of_a_computation_is_found_again() -> None:
    """Between a value that is held back and the line that shows it, its steps may be appended."""
    source = "let x = 0\nfor n in 1 to 1500 { println(random_int(1, 6))\nnow_ms()\nprintln(n) }"
    first, again = twice(source, Outside())
    assert first.count("\n") == 3000
    assert again == ""


def test_a_deadline_strikes_while_a_task_computes_at_the_same_turn_again() -> None:
    source = """
var n = 0
try { deadline 30ms { while true { n = n + 1 } } } catch (e) { println("${e} ${n > 0}") }
println(n)
try { deadline 30ms { parallel each [1, 2] { x -> while true { println(x) } } } } catch (e) { println(e) }
try { deadline 30ms { while true { range(0, 5000).to_list().map({ x -> x + 1 }) } } } catch (e) { println(e) }
"""
    outside, context = Outside(), MemoryRun()
    done(job_of(source), context, outside)
    printed = outside.output()
    assert printed.startswith("Deadline exceeded true\n")
    for _ in range(3):
        done(job_of(source), MemoryRun(without_output(context.steps)), outside)
        assert outside.output() == printed
