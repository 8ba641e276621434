"""A process is killed in the middle of a turn, in a tool; another one goes on with it (10 §C12.1 g)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from harnpy import LoopFactory, tool
from harnpy.session import SessionRuntime
from tests.support import PATIENCE, ROOT

KILLED = """
import os, signal, sys
from harnpy import AgentDef, LoopFactory, tool
from harnpy.session import SessionRuntime

@tool
def look() -> str:
    "Look around."
    os.kill(os.getpid(), signal.SIGKILL)

loops = LoopFactory(tools=[look])
loops.mock.add({"tool_calls": [{"name": "look", "arguments": {}}]})
with SessionRuntime(sys.argv[1], agents=loops) as runtime:
    runtime.create(AgentDef("helper", model="mock"), id="s")
    runtime.send("s", "go", idempotency_key="k")
"""


@tool
def look() -> str:
    """Look around."""
    raise AssertionError("it may have looked before")


def test_another_process_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    command = [sys.executable, "-c", KILLED, url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    loops = LoopFactory(tools=[look])
    loops.mock.add({"text": "done"})
    with SessionRuntime(url, agents=loops) as runtime:
        ended = runtime.send("s", "go", idempotency_key="k")
        assert runtime.get("s").revision == 2
    assert (ended.status, ended.text, ended.steps) == ("completed", "done", 2)
    assert "acrfence: prior tool execution" in ended.messages[1]["content"]
    assert len(loops.mock.calls()) == 1
