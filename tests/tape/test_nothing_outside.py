"""What a replay does to the system: it opens no socket, starts no process, writes no file. Spec: 13 §3."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.llm.wire import OPENAI, Call, Say, Wire
from tests.support import PATIENCE, ROOT

#: Files, processes, HTTP, a stored session, a model by its SDK, streams, tasks, a sub-agent.
_PROGRAM = """
let local = {provider: "local", model: "m"}
write_file("x.txt", "hello")
mkdir("d")
append_file("d/y.txt", "more")
println(read_file("x.txt"))
println(exec("echo", "hi").stdout)
println("${now_ms() > 0} ${uuid()} ${random()} ${env_or("HOME", "none")}")
let tools = tool_define(tool_registry(), "look", "Looks", {parameters: {}, handler: { _args ->
  exec("echo", "looked").stdout
}})
let s = agent_session_open("stored", {store: "sqlite:sessions.db"})
let options = {...local, tools: tools, tool_format: "native", session_id: s, max_iterations: 3}
println(agent_loop("Look around", nil, options).visible_text)
println("${agent_session_length(s)}")
for piece in llm_stream("Tell me", nil, local) { println(piece) }
println("${parallel each [1, 2] { n -> llm_call("ask ${n}", nil, local).text }}")
println(sub_agent_run("Go", {...local, max_iterations: 1})?.summary)
println(http_get(URL).status)
checkpoint("k", 1)
event_log.emit("topic", "kind", {n: 1})
sleep(5ms)
eprintln("end")
"""

#: Reports events of the interpreter to a file that is open before anything else is.
_AUDIT = """
import os, sys
seen = os.open(os.environ["AUDIT"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
effects = ("socket.", "subprocess.", "sqlite3.", "tempfile.", "os.fork", "os.posix_spawn", "os.exec",
    "os.system", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.link", "os.symlink")
writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def hook(event, args):
    writing = event == "open" and isinstance(args[2], int) and args[2] & writes
    if writing or event.startswith(effects) and event != "socket.gethostname":
        os.write(seen, f"{event} {args}\\n".encode())

sys.addaudithook(hook)
"""


@pytest.fixture
def tape(tmp_path: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The tape of the program, in a directory that has nothing else, and its run."""
    work, answers = tmp_path / "work", [Say("", (Call("look"),)), Say("Looked around")]
    work.mkdir()
    with Wire(OPENAI, *answers, Say("One two three four")) as wire:
        base = wire.url.removesuffix("/v1")
        (work / "p.harn").write_text(_PROGRAM.replace("URL", f'"{base}/v1/models"'))
        run = _harnpy(work, "run", "--record", "run.tape", "p.harn", LOCAL_LLM_BASE_URL=base)
    assert run.returncode == 0, run.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    return (work / "run.tape").rename(elsewhere / "run.tape"), run


def _harnpy(
    directory: Path, *words: str, before: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-m", "harnpy", *words],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HARN_TRUST": "1", **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def _same(replay: subprocess.CompletedProcess[str], run: subprocess.CompletedProcess[str]) -> None:
    assert (replay.stdout, replay.stderr, replay.returncode) == (run.stdout, run.stderr, run.returncode)


def test_a_replay_does_nothing_that_the_interpreter_would_report(
    tape: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "sitecustomize.py").write_text(_AUDIT)
    path, seen = tape[0], tmp_path / "seen"
    places = f"{tmp_path / 'audit'}{os.pathsep}{ROOT}"
    _harnpy(path.parent, "replay", path.name)  # compiles what isn't yet
    replay = _harnpy(
        path.parent, "replay", path.name, PYTHONPATH=places, AUDIT=str(seen), HOME=str(tmp_path / "h")
    )
    _same(replay, tape[1])
    assert seen.read_text() == ""
    assert [*path.parent.iterdir()] == [path]


def test_a_replay_makes_no_such_system_call(
    tape: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace isn't installed")
    path, seen = tape[0], tmp_path / "seen"
    calls = "network,process,creat,open,openat,rename,renameat2,mkdir,unlink,ftruncate,truncate"
    tracing = (strace, "-f", "-qq", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(seen))
    if subprocess.run([*tracing, "true"], capture_output=True, timeout=PATIENCE).returncode:
        pytest.skip("strace may not trace here")
    _harnpy(path.parent, "replay", path.name)
    replay = _harnpy(path.parent, "replay", path.name, before=tracing)
    _same(replay, tape[1])
    writes = re.compile("creat|open.*(O_WRONLY|O_RDWR|O_CREAT)")
    # The first is strace's own, and each ends as it began.
    lines = [line.partition(" ")[2].strip() for line in seen.read_text().splitlines()][1:]
    opened = [line for line in lines if writes.match(line)]
    quiet = ("open", "exit", "+++", "<... ")
    others = [line for line in lines if not line.startswith(quiet) and "CLONE_THREAD" not in line]
    assert (opened, others) == ([], [])
    assert [*path.parent.iterdir()] == [path]
