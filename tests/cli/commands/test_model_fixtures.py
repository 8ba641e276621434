"""`harnpy run --llm-mock`, `--llm-mock-record`, and fixtures beside tests. Spec: 09 §2.6, §3."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import PATIENCE, ROOT, Command

ASK = 'println(llm_call("hello", nil, {provider: "openai", model: "gpt-4o"}).text)\n'
ECHO = 'println(llm_call(argv.first, nil, {provider: "mock"}).text)\n'


def test_a_file_answers_the_calls_of_a_program(harnpy: Command, write) -> None:
    done = harnpy("run", "--llm-mock", write("m.jsonl", '{"text": "from the file"}'), write("a.harn", ASK))
    assert (done.stdout, done.stderr, done.returncode) == ("from the file\n", "", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "failed to read m.jsonl: No such file or directory"),
        (
            '{"text": "A"}\n{"text": 1}',
            "invalid --llm-mock fixture in m.jsonl line 2: `text` must be a string",
        ),
    ],
)
def test_a_file_that_can_not_be_used_ends_the_run(
    harnpy: Command, write, text: str | None, message: str
) -> None:
    if text is not None:
        write("m.jsonl", text)
    done = harnpy("run", "--llm-mock=m.jsonl", write("a.harn", 'println("ran")'))
    assert (done.stdout, done.stderr, done.returncode) == ("", f"error: {message}\n", 1)


def test_a_line_that_is_no_json_is_named(harnpy: Command, write) -> None:
    done = harnpy("run", "--llm-mock", write("m.jsonl", "{text}"), write("a.harn", ASK))
    assert done.stderr.startswith("error: invalid JSON in m.jsonl line 1: ")
    assert done.returncode == 1


def test_a_recording_is_replayed(harnpy: Command, write, tmp_path: Path) -> None:
    program = write("a.harn", ECHO + 'println(llm_call("again", nil, {provider: "mock"}).model)')
    live = harnpy("run", "--llm-mock-record", "new/dir/m.jsonl", program, "--", "hi")
    lines = [json.loads(line) for line in (tmp_path / "new/dir/m.jsonl").read_text().splitlines()]
    assert [line["text"].split()[-1] for line in lines] == ["hi", "again"]
    again = harnpy("run", "--llm-mock", "new/dir/m.jsonl", program, "--", "another prompt")
    assert (again.stdout, again.returncode) == (live.stdout, 0)


def test_a_program_without_calls_leaves_an_empty_recording(harnpy: Command, tmp_path: Path) -> None:
    assert harnpy("run", "--llm-mock-record", "m.jsonl", "-e", "nil").returncode == 0
    assert (tmp_path / "m.jsonl").read_text() == ""


@pytest.mark.parametrize(("end", "status"), [('throw "boom"', 1), ("exit(7)", 7)])
def test_a_recording_is_written_however_the_program_ends(
    harnpy: Command, write, tmp_path: Path, end: str, status: int
) -> None:
    done = harnpy("run", "--llm-mock-record", "m.jsonl", write("a.harn", ECHO + end), "--", "hi")
    assert done.returncode == status
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 1


def test_a_recording_is_written_when_a_signal_ends_the_program(write, tmp_path: Path) -> None:
    program = write(
        "a.harn", 'llm_call("hi", nil, {provider: "mock"})\neprintln("asked")\nwhile true { sleep(60000) }'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "harnpy", "run", "--llm-mock-record", "m.jsonl", program],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert process.stderr
    assert process.stderr.readline() == b"asked\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 124
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 1


def test_a_recording_that_can_not_be_written(harnpy: Command, write) -> None:
    write("file", "")
    done = harnpy("run", "--llm-mock-record", "file/m.jsonl", "-e", "nil")
    assert done.stderr.startswith("error: failed to write file/m.jsonl: ")
    assert done.returncode == 1


# The test runners.


def test_conformance_programs_have_the_fixtures_beside_them(harnpy: Command, write) -> None:
    write("conformance/a.harn", ASK)
    write("conformance/a.expected", "canned")
    write("conformance/a.llm-mock.jsonl", '{"text": "canned"}')
    write("conformance/b.harn", ASK)
    disabled = (
        "LLM calls are disabled by HARN_LLM_CALLS_DISABLED; provider `openai` would make a real LLM request"
    )
    write("conformance/b.error", disabled)
    done = harnpy("test", "conformance", OPENAI_API_KEY="sk-none", HARN_LLM_CALLS_DISABLED="")
    assert done.stdout.endswith("\n2 passed, 0 failed, 2 total\n")


def test_fixtures_that_can_not_be_used_fail_whatever_is_expected(harnpy: Command, write) -> None:
    for name in ("a.expected", "b.error"):
        write(f"conformance/{name}", "llm mock setup error")
        write(f"conformance/{name[0]}.harn", ASK)
        write(f"conformance/{name[0]}.llm-mock.jsonl", "[]")
    done = harnpy("test", "conformance")
    reason = "line 1: fixture line must be a JSON object"
    for name in "ab":
        file = f"conformance/{name}.llm-mock.jsonl"
        text = f"{name}.harn: llm mock setup error: invalid --llm-mock fixture in {file} {reason}"
        assert text in done.stdout
    assert "0 passed, 2 failed" in done.stdout


def test_user_tests_have_the_fixtures_beside_their_file(harnpy: Command, write) -> None:
    write("tests/x.llm-mock.jsonl", '{"text": "canned"}')
    body = 'assert_eq(llm_call("hello").text, "canned")'
    write("tests/x.harn", f"pipeline test_a(task) {{ {body} }}\npipeline test_b(task) {{ {body} }}\n")
    done = harnpy("test")
    assert "2 passed, 2 total" in done.stdout
    write("tests/x.llm-mock.jsonl", "{")
    done = harnpy("test")
    assert "        llm mock setup error: invalid JSON in " in done.stdout
    assert done.returncode == 1
