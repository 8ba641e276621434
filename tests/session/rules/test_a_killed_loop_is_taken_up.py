"""A loop is killed in its third step; one of another process goes on with its session at once.

Spec: 10 §C9, §C12.1 a, §C16.4.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llm.wire import OPENAI
from tests.session.rules.provider_rules import assert_accepted
from tests.storage.conftest import STORES
from tests.storage.test_processes import WORKER, wait_for_the_dead
from tests.support import PATIENCE, ROOT, Popen

#: What a tool has injected is acknowledged before it says so. The last tool never returns.
DRIVEN = """
let tools = tool_define(tool_registry(), "work", "", {
  parameters: {part: "string"},
  handler: { args ->
    agent_session_inject("s", {role: "user", content: "noted ${args.part}"})
    println(args.part)
    if args.part == "3b" { sleep(100h) }
    return "did ${args.part}"
  },
})
fn call(part) { return {name: "work", arguments: {part: part}} }
llm_mock({text: "step 1", tool_calls: [call("1")]})
llm_mock({text: "step 2", tool_calls: [call("2")]})
llm_mock({text: "step 3", tool_calls: [call("3a"), call("3b"), call("3c")]})
agent_session_open("s", {store: true})
agent_loop("go", nil, {session_id: "s", provider: "mock", tools: tools, tool_format: "native"})
"""

RESUMED = """
llm_mock({text: "I go on."})
agent_session_open("s", {store: true})
agent_loop("go on", nil, {session_id: "s", provider: "mock"})
println(json_stringify(llm_mock_calls()[0].messages))
"""

#: `harnpy run`, except that its loops wait for no session that another process drives.
IMPATIENT = """
import sys
from harnpy import Vm
vm = Vm()
vm.sessions.lease_wait = 0.0
vm.run_source(sys.argv[1])
"""

pytestmark = pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)


@pytest.fixture
def driven(url: str, popen: Popen, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process whose loop runs until it is killed."""
    program = tmp_path / "driven.harn"
    program.write_text(DRIVEN, "utf-8")
    command = [sys.executable, "-m", "harnpy", "run", str(program)]
    environment = {**os.environ, "HARN_SESSION_STORE": url, "PGAPPNAME": WORKER}
    pipe = subprocess.PIPE
    process = popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)
    yield process
    process.kill()
    process.communicate()


def resume(popen: Popen, url: str) -> list[dict[str, Any]]:
    """Go on with the session in a new process; return the messages of its first request."""
    command = [sys.executable, "-c", IMPATIENT, RESUMED]
    environment = {**os.environ, "HARN_SESSION_STORE": url}
    pipe = subprocess.PIPE
    with popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    messages: list[dict[str, Any]] = json.loads(out)
    return messages


def test_a_loop_that_was_killed_is_taken_up_at_once_with_all_that_it_stored(
    driven: subprocess.Popen[str], popen: Popen, url: str
) -> None:
    assert driven.stdout is not None
    assert [driven.stdout.readline() for _ in range(4)] == ["1\n", "2\n", "3a\n", "3b\n"]
    driven.kill()
    driven.wait()
    wait_for_the_dead(url)
    asked = resume(popen, url)
    assert_accepted(asked, OPENAI)
    said = [message["content"] for message in asked if message["role"] != "tool"]
    step_1, step_2 = ["step 1", "noted 1"], ["step 2", "noted 2"]
    assert said == ["go", *step_1, *step_2, "step 3", "noted 3a", "noted 3b", "go on"]
    results = [message["content"] for message in asked if message["role"] == "tool"]
    assert results[:3] == ["did 1", "did 2", "did 3a"]
    assert len(results) == 5
    assert all(result.startswith("Error: ") for result in results[3:])
