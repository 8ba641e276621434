"""Mailboxes that processes share (08 §10): nothing gets lost between them, and no half of a state is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import PATIENCE, ROOT, Command, Popen, last_written, wait_for_rewrite

Started = Callable[..., "subprocess.Popen[str]"]

STATE = ".harn/workflows/w/state.json"


def program(directory: Path, name: str, text: str) -> list[str]:
    (directory / name).write_text(text, encoding="utf-8")
    return [sys.executable, "-m", "harnpy", "run", name]


@pytest.fixture
def started(popen: Popen, tmp_path: Path) -> Started:
    """Start a command with its input."""

    def started(command: list[str], stdin: str = "") -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = popen(command, cwd=tmp_path, env=env, text=True, **pipes)
        assert process.stdin
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        return process

    return started


def test_writers_in_several_processes_lose_nothing(started: Started, tmp_path: Path) -> None:
    each = 40
    text = f'for i in range(0, {each}) {{ workflow.signal("w", argv[0], i) }}\n'
    command = program(tmp_path, "send.harn", text)
    writers = [started([*command, "--", name]) for name in ("a", "b", "c")]
    assert [writer.wait(timeout=PATIENCE) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.communicate()
    state = json.loads((tmp_path / STATE).read_text())
    assert [message["seq"] for message in state["mailbox"]] == list(range(1, 3 * each + 1))
    for name in ("a", "b", "c"):
        sent = [message["payload"] for message in state["mailbox"] if message["name"] == name]
        assert sent == list(range(each))


def test_readers_in_several_processes_get_each_message_once(
    started: Started, harnpy: Command, tmp_path: Path
) -> None:
    (tmp_path / "fill.harn").write_text('for i in range(0, 60) { workflow.signal("w", "m", i) }\n')
    assert harnpy("run", "fill.harn").returncode == 0
    take = (
        'var m = workflow.receive("w")\nwhile m != nil { println(m.payload)\n m = workflow.receive("w") }\n'
    )
    command = program(tmp_path, "take.harn", take)
    readers = [started(command) for _ in range(2)]
    taken = [int(line) for reader in readers for line in reader.communicate(timeout=PATIENCE)[0].split()]
    assert sorted(taken) == list(range(60))


RECEIVE = """
var got = {}
while len(got) < to_int(argv[0]) {
  let m = workflow.receive("w")
  if m == nil { sleep(2ms) } else { got = got.merge({[m.name]: m.payload}) }
}
println(got.keys().sort().join(" "))
"""
WHERE = {
    "file beside it": ("run", "flows/send.harn"),
    "file elsewhere": ("run", "tools/send.harn"),
    "stdin": ("run", "-"),
    "-e": ("run", "-e"),
}


def test_senders_of_every_kind_reach_a_receiver(started: Started, tmp_path: Path) -> None:
    """Messages by id and by the workflow's record, from four processes to one that receives by id."""
    for name in ("flows", "tools", "records"):
        (tmp_path / name).mkdir()
    (tmp_path / "harn.toml").touch()
    (tmp_path / "records/r.json").write_text('{"_type": "run_record", "workflow_id": "w"}')
    (tmp_path / "flows/receive.harn").write_text(RECEIVE)
    receiver = started(
        [sys.executable, "-m", "harnpy", "run", "flows/receive.harn", "--", str(len(WHERE) * 50)]
    )
    senders = []
    for number, command in enumerate(WHERE.values()):
        by_record = '{workflow_id: "w", persisted_path: "records/r.json"}'
        text = (
            f'for i in 0 to 24 {{ workflow.signal("w", "{number}-i${{i}}", i)\n'
            f'workflow.signal({by_record}, "{number}-r${{i}}", i) }}\n'
        )
        sender = [sys.executable, "-m", "harnpy", *command, *([text] if command[-1] == "-e" else [])]
        if command[-1].endswith(".harn"):
            (tmp_path / command[-1]).write_text(text)
        senders.append(started(sender, text if command[-1] == "-" else ""))
    names = {f"{number}-{how}{i}" for number in range(len(WHERE)) for how in "ir" for i in range(25)}
    assert set(receiver.communicate(timeout=PATIENCE)[0].split()) == names
    for sender in senders:
        sender.communicate()


def test_what_inline_code_keeps_is_that_of_the_working_directory(harnpy: Command, tmp_path: Path) -> None:
    assert harnpy("run", "-e", 'checkpoint("a", 1)\nworkflow.signal("w", "m")').returncode == 0
    assert (
        harnpy("run", "-e", 'println([checkpoint_get("a"), workflow.receive("w").name])').stdout == "[1, m]\n"
    )
    assert (tmp_path / STATE).exists()


def test_another_process_answers_an_update(started: Started, tmp_path: Path) -> None:
    serve = (
        'var m = workflow.receive("w")\nwhile m == nil { sleep(5)\n m = workflow.receive("w") }\n'
        'workflow.respond_update("w", m.request_id, m.payload + 1)\n'
    )
    server = started(program(tmp_path, "serve.harn", serve))
    asker = started(program(tmp_path, "ask.harn", 'println(workflow.update("w", "inc", 41))\n'))
    assert asker.communicate(timeout=PATIENCE)[0] == "42\n"
    server.communicate(timeout=PATIENCE)


def test_a_killed_writer_leaves_a_mailbox_that_others_can_use(
    started: Started, harnpy: Command, tmp_path: Path
) -> None:
    text = 'let text = "x".repeat(300000)\nwhile true { workflow.publish_query("w", "q", text) }\n'
    command, state = program(tmp_path, "write.harn", text), tmp_path / STATE
    (tmp_path / "read.harn").write_text(
        'println(workflow.query("w", "q").count)\nprintln(workflow.signal("w", "m").status.query_count)\n'
    )
    for pause in (0.0, 0.01, 0.025):
        before = last_written(state)
        with started(command) as writer:
            wait_for_rewrite(state, before)
            time.sleep(pause)
            writer.send_signal(signal.SIGKILL)
        assert harnpy("run", "read.harn").stdout == "300000\n1\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "EOF while parsing an object"),
        ("[]", "`_type` must be workflow_mailbox"),
        ('{"_type": "other"}', "`_type` must be workflow_mailbox"),
        ('{"_type": "workflow_mailbox", "mailbox": {}}', "`mailbox` has the wrong type"),
        ('{"_type": "workflow_mailbox", "mailbox": [1]}', "`mailbox` has the wrong type"),
        ('{"_type": "workflow_mailbox", "queries": {"q": 1}}', "`queries` has the wrong type"),
        ('{"_type": "workflow_mailbox", "next_seq": "1"}', "`next_seq` has the wrong type"),
    ],
)
def test_a_state_that_is_none_is_refused_and_kept(
    harnpy: Command, tmp_path: Path, content: str, problem: str
) -> None:
    state = tmp_path / STATE
    state.parent.mkdir(parents=True)
    state.write_text(content)
    (tmp_path / "p.harn").write_text('println(try { workflow.signal("w", "m") } catch (e) { e })\n')
    shown = harnpy("run", "p.harn").stdout
    assert shown.startswith("Runtime error: workflow state read error: ")
    assert problem in shown
    assert str(state) in shown
    assert state.read_text() == content


def test_parts_of_a_state_that_are_missing_are_fresh(harnpy: Command, tmp_path: Path) -> None:
    state = tmp_path / STATE
    state.parent.mkdir(parents=True)
    state.write_text('{"_type": "workflow_mailbox", "workflow_id": "w", "paused": true}')
    (tmp_path / "p.harn").write_text('println(workflow.signal("w", "m").status.remove("base_dir"))\n')
    assert harnpy("run", "p.harn").stdout == (
        "{continue_as_new_count: 0, generation: 1, last_continue_as_new_at: nil, paused: true, "
        "pending_count: 1, query_count: 0, response_count: 0, workflow_id: w}\n"
    )


def test_the_mailbox_is_below_the_root_of_the_project(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_text("")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/p.harn").write_text('workflow.signal("w", "m")\n')
    assert harnpy("run", "deep/p.harn").returncode == 0
    assert (tmp_path / STATE).exists()


def test_the_state_directory_replaces_the_dot_directory(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "p.harn").write_text('workflow.signal({workflow: "w", base_dir: "base"}, "m")\n')
    harnpy("run", "p.harn", HARN_STATE_DIR="state")
    assert (tmp_path / "base/state/workflows/w/state.json").exists()
