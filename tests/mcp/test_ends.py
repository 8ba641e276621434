"""However a run ends, no server is left. Spec: 07 §15.1.

Ends that need no process of their own are in `test_loops`, too.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import COUNT
from tests.mcp.programs import RAW
from tests.support import wait_until

#: A server in a loop, one of the program's that ignores the end of its input, and one in `harn.toml`.
_PROGRAM = """
let stubborn = mcp_connect(WORDS[0], [WORDS[1], "note=NOTE", "stubborn=1"])
llm_mock({tool_calls: [{id: "c", name: "raw__add", arguments: {a: 1}}]})
llm_mock({text: "on"})
agent_loop("go", nil, {provider: "mock", tool_format: "native", mcp_servers: [
  {name: "raw", command: [...WORDS, "note=NOTE"]},
], post_turn_callback: { turn ->
  println("ready")
  END
}})
"""
pytestmark = pytest.mark.usefixtures("trusted")

_MANIFEST = """
[[mcp]]
name = "declared"
command = WORDS
args = ["note=NOTE"]
"""

#: What the program does at its end, and the signal that ends it.
_ENDS: dict[str, tuple[str, signal.Signals | None]] = {
    "interrupted": ("sleep(1h)", signal.SIGINT),
    "killed": ("sleep(1h)", signal.SIGKILL),
    "done": ("nil", None),
    "error": ('throw "no"', None),
}


@pytest.mark.parametrize("number", range(COUNT.mcp_ends))
def test_no_server_is_left(number: int, tmp_path: Path) -> None:
    end, sent = list(_ENDS.values())[number % len(_ENDS)]
    note = tmp_path / "pids"
    for name, text in (("main.harn", _PROGRAM), ("harn.toml", _MANIFEST)):
        text = text.replace("WORDS", RAW).replace("NOTE", str(note)).replace("END", end)
        (tmp_path / name).write_text(text)
    with subprocess.Popen(
        [sys.executable, "-m", "harnpy", "run", "main.harn"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n"
        if sent is not None:
            run.send_signal(sent)
    pids = note.read_text().split()
    assert len(pids) == 3
    wait_until(lambda: all(_is_gone(pid) for pid in pids))


def _is_gone(pid: str) -> bool:
    """Whether a process has ended; in a container nobody may have waited for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
