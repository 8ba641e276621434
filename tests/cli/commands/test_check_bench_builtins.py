"""`harnpy check`, `bench` and `builtins`. Spec: 09 §4.1, §6.5."""

from __future__ import annotations

import json
import re
from pathlib import Path

from harnpy.cli.builtin_help import describe_library
from harnpy.cli.library_help import library_functions
from tests.support import Command


def test_check_says_ok(harnpy: Command, write) -> None:
    write("src/b.harn", "println(1)")
    write("src/a/a.harn", "println(2)")
    done = harnpy("check", "src", "src/b.harn")
    assert (done.stdout, done.stderr, done.returncode) == ("src/a/a.harn: ok\nsrc/b.harn: ok\n", "", 0)


def test_check_runs_nothing(harnpy: Command, write) -> None:
    assert harnpy("check", write("a.harn", 'println("ran")')).stdout == "a.harn: ok\n"


def test_check_ends_at_a_syntax_error(harnpy: Command, write) -> None:
    write("a.harn", "let a =")
    write("b.harn", "let b = 1")
    done = harnpy("check", ".")
    assert done.stderr.startswith("error: unexpected end of file, expected expression\n")
    assert (done.stdout, done.returncode) == ("", 1)


def test_check_finds_undefined_calls_and_goes_on(harnpy: Command, write) -> None:
    write("a.harn", "let a = 1\n\nprintn(a)")
    write("b.harn", "println(1)")
    done = harnpy("check", ".")
    assert done.stderr == (
        "error: call target `printn` is not defined or imported — did you mean `print`?\n"
        "  --> a.harn:3:1\n"
        "   |\n"
        " 3 | printn(a)\n"
        "   | ^^^^^^^^^ undefined-call\n"
        "   = help: did you mean `print`?\n"
    )
    assert (done.stdout, done.returncode) == ("b.harn: ok\n", 1)


def test_check_finds_structure_errors(harnpy: Command, write) -> None:
    done = harnpy("check", write("a.harn", "break"))
    assert "Compile error at line 1: " in done.stderr
    assert done.returncode == 1


def test_check_without_programs(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = harnpy("check", "empty")
    assert (done.stderr, done.returncode) == ("no .harn files found under the given target(s)\n", 1)


def test_check_of_a_missing_file(harnpy: Command) -> None:
    done = harnpy("check", "gone.harn")
    assert (done.stderr, done.returncode) == ("Error reading gone.harn: No such file or directory\n", 1)


def test_check_wants_a_target(harnpy: Command) -> None:
    done = harnpy("check")
    message = (
        "`harnpy check` requires at least one target path, or `--workspace` with `[workspace].pipelines`"
    )
    assert done.stderr.startswith(f"error: {message}\n")
    assert done.returncode == 2


def test_check_refuses_what_comes_later(harnpy: Command) -> None:
    done = harnpy("check", "--invariants", "x.harn")
    assert done.stderr.startswith("error: `--invariants` is not supported by this version of harnpy\n")
    assert done.returncode == 2


def test_bench_report(harnpy: Command, write) -> None:
    done = harnpy("bench", write("a.harn", 'println("noise")'), "-n", "3")
    assert re.sub(r"\d+\.\d\d ms", "T ms", done.stdout) == (
        "Benchmark: a.harn\n"
        "Iterations: 3\n"
        "Wall time: min T ms | avg T ms | max T ms | total T ms\n"
        "LLM time: total 0 ms | avg T ms/run\n"
        "LLM calls: total 0 | avg 0.00/run\n"
        "Input tokens: total 0 | avg 0.00/run\n"
        "Output tokens: total 0 | avg 0.00/run\n"
        "Cost: total $0.0000 | avg $0.0000/run\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_bench_counts_model_calls(harnpy: Command, write) -> None:
    name = write("a.harn", 'pipeline main(t) { llm_call("hello", nil, {provider: "mock"}) }')
    out = harnpy("bench", name, "--iterations", "2").stdout
    assert "LLM calls: total 2 | avg 1.00/run\n" in out


def test_bench_wants_an_iteration(harnpy: Command, write) -> None:
    done = harnpy("bench", write("a.harn", ""), "-n", "0")
    assert (done.stderr, done.returncode) == ("error: `harnpy bench` requires at least one iteration\n", 1)


def test_bench_of_a_missing_file(harnpy: Command) -> None:
    done = harnpy("bench", "gone.harn")
    assert done.stderr.startswith("Error reading gone.harn: No such file or directory\n")
    assert done.returncode == 1


def test_bench_of_a_failing_program(harnpy: Command, write) -> None:
    done = harnpy("bench", write("a.harn", "throw 1"))
    assert done.stderr.startswith("error: Thrown: 1\n")
    assert done.stderr.endswith("benchmark aborted on iteration 1\n")
    assert (done.stdout, done.returncode) == ("", 1)


def test_builtins_as_json(harnpy: Command) -> None:
    table = json.loads(harnpy("builtins", "--json").stdout)
    entry = next(entry for entry in table if entry["name"] == "println")
    assert entry["family"] == "io"
    assert entry["signature"] == "println(msg: string) -> nil"
    assert entry["doc"]
    assert len({entry["name"] for entry in table}) == len(table)


def test_builtins_by_family(harnpy: Command) -> None:
    lines = harnpy("builtins").stdout.splitlines()
    assert lines.index("io:") < lines.index("  println(msg: string) -> nil") < lines.index("list methods:")


def test_one_builtin_and_its_namesakes(harnpy: Command) -> None:
    out = harnpy("builtins", "println").stdout
    assert out.startswith("println(msg: string) -> nil  [io]\n\n  Write `msg` and a newline")
    assert "list.map(" in harnpy("builtins", "map").stdout


def test_the_methods_of_a_kind(harnpy: Command) -> None:
    lines = harnpy("builtins", "list").stdout.splitlines()
    assert lines[lines.index("list.count() -> int") + 1] == "    The number of items."
    both = harnpy("builtins", "set").stdout
    assert both.startswith("set(...items: any) -> set  [collections]\n")
    assert "\n\nset.add(" in both


def test_a_function_of_the_library_says_what_to_import(harnpy: Command) -> None:
    out = harnpy("builtins", "session_send").stdout
    assert out.startswith('session_send(id, prompt, opts = nil)  [import "std/session"]\n\n  Run an agent on')
    assert '[import "std/collections"]\n\n  Without the entries' in harnpy("builtins", "filter_nil").stdout
    (entry,) = json.loads(harnpy("builtins", "session_send", "--json").stdout)
    assert (entry["name"], entry["family"]) == ("session_send", "std/session")
    near = harnpy("builtins", "session_sendd").stderr
    assert near == "error: no builtin is called `session_sendd` (did you mean `session_send`?)\n"


def test_every_function_of_the_library_has_help() -> None:
    functions = list(library_functions())
    assert {function.module for function in functions} >= {"std/async", "std/session", "std/text"}
    assert [function.name for function in functions if not describe_library(function).doc] == []


def test_words_are_searched_for_in_names_and_documentation(harnpy: Command) -> None:
    done = harnpy("builtins", "thousands")
    assert "\nformat_number(n: any, opts?: dict) -> any\n    Return a number as text.\n" in done.stdout
    assert (done.stderr, done.returncode) == ("", 0)
    assert "\nformat_number(" in harnpy("builtins", "number", "format").stdout
    many = harnpy("builtins", "the").stdout
    assert many.endswith(" more: add a word\n")
    assert len(many.split("\n\n")) == 22


def test_an_unknown_builtin(harnpy: Command) -> None:
    done = harnpy("builtins", "prntln")
    assert done.stderr == "error: no builtin is called `prntln` (did you mean `println`?)\n"
    assert (done.stdout, done.returncode) == ("", 1)
