"""`harnpy run --record`, `harnpy replay`: the same bytes on both streams, the same status. Spec: 13 §3."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.counts import COUNT
from tests.support import Command

_LOOP = """
let tools = tool_define(tool_registry(), "look", "Looks", {parameters: {}, handler: { _args ->
  write_file("seen.txt", "seen")
  "nothing"
}})
llm_mock({text: "", tool_calls: [{name: "look", arguments: {}}]})
llm_mock({text: "done"})
println(agent_loop("Look around", nil, {provider: "mock", tools: tools, max_iterations: 3}).visible_text)
"""
PROGRAMS = {
    "streams": 'println("a")\neprintln("b")\nprint("c")\nlog_info("d")\nprintln("e")',
    "exits": 'println("before")\nwrite_file("f", "x")\nexit(7)',
    "status": 'println("${now_ms() > 0}")\nreturn 3',
    "err": 'eprintln("to come")\nreturn Err("it failed")',
    "error": 'fn inner(n) { throw "oh ${n}" }\nprintln("x")\ninner(len(cwd()) > 0)',
    "tasks": "let all = [1, 2, 3].map({ n -> spawn { sleep(2ms)\nprintln(n)\n"
    "if n == 2 { throw uuid() }\nn } })\n"
    "for one in all { await(one) }",
    "warns": "let unused = 1\nprintln(random_int(1, 1000000))",
    "wrong": "println(undefined_name)",
    "no syntax": "let = = 1",
    "agent": _LOOP,
    "stdin": 'println("read ${read_line()} and ${read_stdin()}")',
    "skills": 'println("${skills}")',
}
OPTIONS = {
    "trace": ["--trace"],
    "watch": ["--watch-agents"],
    "deny": ["--deny", "write_file,exec"],
    "allow": ["--allow", "println,now_ms"],
    "steps": ["--limit", "steps=20"],
    "calls": ["--limit", "model_calls=1"],
    "seconds": ["--limit", "seconds=0.05"],
    "walk": ["--walk"],
    "mocks": ["--llm-mock", "mocks.jsonl"],
    "skills": ["--skill-dir", "more"],
}


def same(harnpy: Command, tmp_path: Path, *arguments: str, stdin: str = "") -> None:
    recorded = harnpy("run", "--record", "run.tape", *arguments, stdin=stdin)
    tape = (tmp_path / "run.tape").rename(tmp_path / "elsewhere" / "run.tape")
    shutil.rmtree(tmp_path / "more")
    (tmp_path / "mocks.jsonl").unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    replayed = harnpy("replay", tape, stdin="nothing of it")
    assert (replayed.stdout, replayed.stderr) == (recorded.stdout, recorded.stderr)
    assert replayed.returncode == recorded.returncode
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mocks.jsonl").write_text('{"text": "from a file"}\n')
    (tmp_path / "more" / "cook").mkdir(parents=True)
    (tmp_path / "more" / "cook" / "SKILL.md").write_text("---\nname: cook\ndescription: Cooks.\n---\nCook.\n")


@pytest.mark.parametrize("name", list(PROGRAMS)[:: COUNT.taped_commands_share])
def test_a_replay_prints_the_same_and_ends_alike(harnpy: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "p.harn").write_text(PROGRAMS[name])
    same(harnpy, tmp_path, "p.harn", stdin="one\ntwo\n")


@pytest.mark.parametrize("name", list(OPTIONS)[:: COUNT.taped_commands_share])
def test_the_options_of_the_run_are_those_of_its_replay(harnpy: Command, tmp_path: Path, name: str) -> None:
    program = PROGRAMS["agent"] if name not in ("skills", "seconds") else PROGRAMS["skills"]
    if name == "mocks":
        program = 'println(llm_call("hi", nil, {provider: "mock"}).text)'
    if name == "seconds":
        program = 'println("begins")\nvar n = 0\nwhile true { n = n + 1 }'
    (tmp_path / "p.harn").write_text(program)
    same(harnpy, tmp_path, *OPTIONS[name], "p.harn")


def test_code_of_the_command_line_is_recorded(harnpy: Command, tmp_path: Path) -> None:
    same(harnpy, tmp_path, "-e", 'println("${cwd()} ${uuid()}")\nwrite_file("f", "x")\nthrow "no"')


def test_a_program_from_standard_input_is_recorded(harnpy: Command, tmp_path: Path) -> None:
    same(harnpy, tmp_path, "-", stdin='println("${uuid()}")\nprintln("${read_line()}")')


def test_arguments_are_on_the_tape(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "p.harn").write_text("println(argv)")
    same(harnpy, tmp_path, "p.harn", "--", "one", "--two")
