"""Files that processes of a recorded run write: on the tape, in branches, in the past. Spec: 13 §1, §5.2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harnpy.cli.debugger.commands import told
from harnpy.durable.values import decode
from harnpy.embedding import Vm
from harnpy.tape import Changes, Recording, Replaying, Tape, TapeError, read_tape
from harnpy.tape import directory as room
from harnpy.tape.branch import Branching
from harnpy.tape.comparison import compared
from harnpy.tape.edits import files_read
from harnpy.tape.history import History
from harnpy.tape.watch import Watching
from harnpy.world.files import RealFiles
from harnpy.world.processes import RealProcesses
from tests.durable.runs import Outside
from tests.tape.branched import files_of

ASK = 'let usual = {provider: "p", model: "m"}\nfn ask(text) { return llm_call(text, nil, usual).text }\n'
BUILD = (
    'shell("echo 1 > build.out")\nask("one")\nshell("echo 2 >> build.out")\nprintln(read_file("build.out"))\n'
)


class Real(Outside):
    """An outside with real processes."""

    def __init__(self) -> None:
        super().__init__()
        self.processes = RealProcesses()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded(source: str, name: str = "run.tape") -> Tape:
    outside = Real()
    vm = Vm(world=Recording(name, outside))
    outside.prepare(vm)
    vm.run_source(ASK + source, file="main.harn")
    return read_tape(name)


def changed(tape: Tape) -> list[dict[str, Any]]:
    """Return what each step says that processes have changed."""
    return [
        decode(step.output["files"])
        for step in tape.steps
        if isinstance(step.output, dict) and "files" in step.output
    ]


def branched(tape: Tape, at: int, changes: Changes | None = None) -> tuple[str, Tape]:
    """Run a branch; return what it has printed, and its tape."""
    outside = Real()
    with Branching(tape, at, changes, real=outside) as world:
        world.run(outside.prepare)
    return outside.output(), read_tape(world.path)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_branch_has_what_a_process_wrote_before_its_call(here: Path, at: int, is_there: bool) -> None:
    tape = recorded(BUILD)
    assert changed(tape) == [{"build.out": b"1\n"}, {"build.out": b"1\n2\n"}]
    if not is_there:
        (here / "build.out").unlink()
    before = files_of(here)
    printed, made = branched(tape, at)
    assert printed == "1\n2\n\n"
    assert changed(made) == changed(tape)  # so a branch of it has them, too
    assert files_of(here) == before


def test_a_branch_of_a_branch_has_them(here: Path) -> None:
    source = BUILD.replace("println", 'ask("two")\nshell("echo 3 >> build.out")\nprintln')
    _, made = branched(recorded(source), 1)
    (here / "build.out").unlink()
    assert branched(made, 2)[0] == "1\n2\n3\n\n"


def test_what_processes_wrote_behind_the_call_isnt_seen(here: Path) -> None:
    (here / "old.txt").write_text("old\n")
    (here / "read.txt").write_text("read\n")
    source = 'read_file("read.txt")\nask("one")\nshell("mkdir made; echo x > made/x; echo y > y; '
    source += 'mv old.txt moved.txt; echo z > read.txt")\nask("two")'
    tape = recorded(source)
    look = f'{ASK}read_file("read.txt")\nask("one")\nprintln(list_dir("."))\nprintln(read_file("read.txt"))'
    (here / "look.harn").write_text(look)
    printed, _ = branched(tape, 1, Changes(code="look.harn"))
    assert "made" not in printed
    assert '"y"' not in printed
    assert "moved" not in printed
    assert "old.txt" in printed
    assert "read\n" in printed


def test_what_somebody_has_changed_since_is_seen(here: Path) -> None:
    tape = recorded('ask("one")\nshell("echo x > x")')
    (here / "x").write_text("a person's")
    (here / "look.harn").write_text(f'{ASK}ask("one")\nprintln(read_file("x"))')
    assert branched(tape, 1, Changes(code="look.harn"))[0] == "a person's\n"


def test_deleted_renamed_binary_and_executable_files(here: Path) -> None:
    (here / "gone").write_text("gone")
    (here / "old").write_bytes(b"\xff\x00")
    source = "shell(\"rm gone; mv old new; mkdir bin; printf '#!/bin/sh\\necho ran' > bin/run; "
    source += 'chmod +x bin/run")\n'
    source += (
        'ask("one")\nprintln(shell("./bin/run").stdout)\nprintln([file_exists("gone"), file_exists("new")])'
    )
    tape = recorded(source)
    assert changed(tape) == [
        {
            "gone": None,
            "old": None,
            "bin/": True,
            "bin/run": b"#!/bin/sh\necho ran",
            "new": b"\xff\x00",
        }
    ]
    for path in ("bin/run", "new"):
        (here / path).unlink()
    (here / "bin").rmdir()
    (here / "gone").write_text("back")
    assert branched(tape, 1)[0] == "ran\n\n[false, true]\n"


def test_of_parallel_processes_all_is_on_the_tape_once(here: Path) -> None:
    source = 'parallel each [1, 2, 3, 4] { n -> shell("echo ${n} > ${n}.txt") }\nask("one")\n'
    tape = recorded(source + 'println(shell("cat 1.txt 2.txt 3.txt 4.txt").stdout)')
    found = [path for each in changed(tape) for path in each]
    assert sorted(set(found)) == [f"{n}.txt" for n in (1, 2, 3, 4)]
    for n in (1, 2, 3, 4):
        (here / f"{n}.txt").unlink()
    assert branched(tape, 1)[0] == "1\n2\n3\n4\n\n"


def test_what_the_program_writes_itself_isnt_a_processs(here: Path) -> None:
    source = 'shell("echo 1 > a")\nwrite_file("b", "b")\nappend_file("a", "2")\nmkdir("d/e")\n'
    tape = recorded(source + 'write_file("d/f", "f")\ndelete_file("d/f")\ncopy_file("a", "c")\nshell("true")')
    assert changed(tape) == [{"a": b"1\n"}]


def test_writes_in_one_tick_of_the_clock_are_told_apart(here: Path) -> None:
    (here / "f").write_text("1")
    status = (here / "f").stat()
    seen = room.Directory(str(here), RealFiles(), lambda: {"f": mark}, [])
    mark = room.Mark(2**63, status.st_size, status.st_ino, status.st_mode)
    seen.begin()
    assert not seen.changed().files
    (here / "f").write_text("2")
    assert seen.changed().files == {"f": b"2"}


def test_large_files_are_told_by_their_sums(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_OF_FILE", 10)
    monkeypatch.setattr(room, "MOST_OF_STEP", 15)
    source = 'ask("one")\nshell("printf 0123456789 > a; printf 01234567890 > b; printf 0123456789 > c")'
    tape = recorded(source + '\nask("two")\nprintln(read_file("b"))')
    (found,) = changed(tape)
    assert found["a"] == b"0123456789"
    assert (found["b"]["size"], found["c"]["size"]) == (11, 10)
    assert branched(tape, 2)[0] == "01234567890\n"


def test_too_large_a_directory_isnt_looked_at(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_ENTRIES", 3)
    for n in range(4):
        (here / f"{n}").write_text("")
    tape = recorded('shell("echo 1 > a")\nshell("echo 1 > b")\nask("one")')
    assert changed(tape) == []
    said = [step.output["ok"] for step in tape.steps if step.key == "files:env"]
    assert said == [f"{here} has too many files: what processes change there isn't recorded"]


@pytest.mark.parametrize("store", ["sqlite:s.db", "jsonl:s"])
def test_links_git_the_tape_and_stores_are_left_out(here: Path, store: str) -> None:
    source = f'let s = agent_session_open("s", {{store: "{store}"}})\n'
    source += 'shell("mkdir .git; echo 1 > .git/x; ln -s / link; echo 1 > a")\n'
    source += 'agent_session_inject(s, {role: "user", content: "x"})\n'
    assert changed(recorded(source + 'shell("true")')) == [{"a": b"1\n"}]


def test_secrets_in_them_are_masked(here: Path) -> None:
    begins, rest = "sk-ant-api03-", "aB3dE5gH7jK9" * 8
    tape = recorded(f'shell("printf {begins} > type; printf {rest} >> type")\nprintln("x")')
    assert changed(tape) == [{"type": b"<not on the tape>"}]
    assert begins + rest not in Path("run.tape").read_text()


def test_what_processes_write_is_no_file_that_the_program_depends_on(here: Path) -> None:
    (here / "in.txt").write_text("in")
    tape = recorded('shell("cat in.txt > out.txt")\nread_file("out.txt")\nread_file("in.txt")')
    assert list(files_read(tape.steps)) == ["in.txt"]


def test_a_replay_writes_nothing(here: Path) -> None:
    tape = recorded(BUILD)
    (here / "build.out").unlink()
    outside = Real()
    vm: Any = Vm(world=Replaying(tape, outside))
    outside.prepare(vm)
    vm.run_recorded()
    assert not (here / "build.out").exists()


def test_a_damaged_record_of_files_ends_the_replay(here: Path) -> None:
    tape = recorded(BUILD)
    step = next(step for step in tape.steps if isinstance(step.output, dict) and "files" in step.output)
    step.output["files"] = {"build.out": 7}
    vm: Any = Vm(world=Replaying(tape, Real()))
    said = r"run\.tape is damaged at effect 1, .*:process: record the run again"
    with pytest.raises(TapeError, match=said):
        vm.run_recorded()


def test_a_process_is_named_and_its_files_are_compared(here: Path) -> None:
    tape = recorded(BUILD)
    history = History(tape)
    history.is_whole = True
    effect = history.writing("build.out", 1)
    assert effect is not None
    assert effect.key.endswith(":process")
    assert effect.asked[1][-1] == "echo 2 >> build.out"
    other = recorded(BUILD.replace("echo 2", "echo 3"), "other.tape")
    found = compared(tape, other, prepare=lambda vm, file: Real().prepare(vm))
    assert [(file.path, file.change) for file in found.files] == [("build.out", "changed")]
    assert "-2" in found.files[0].diff
    assert "+3" in found.files[0].diff


#: A server of MCP whose tool writes a file, and one more when its input ends.
SERVER = """import json, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def say(id, result): print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            server = {"name": "s", "version": "1"}
            able = {"tools": {}}
            say(asked["id"], {"protocolVersion": version, "capabilities": able, "serverInfo": server})
        case "tools/list":
            say(asked["id"], {"tools": [{"name": "put", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            open("put.txt", "a").write("put\\n")
            say(asked["id"], {"content": [{"type": "text", "text": "done"}]})
        case _ if "id" in asked:
            refusal = {"code": -32601, "message": "Method not found"}
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": refusal}), flush=True)
open("last.txt", "w").write("last")
"""


def test_a_process_that_is_talked_to_has_them_step_by_step(here: Path) -> None:
    (here / "server.py").write_text(SERVER)
    source = f'let server = mcp_connect("{sys.executable}", ["server.py"])\nmcp_call(server, "put", {{}})\n'
    source += 'ask("one")\nmcp_call(server, "put", {})\nmcp_disconnect(server)\nask("two")\n'
    tape = recorded(source + 'println([read_file("put.txt"), read_file("last.txt")])')
    assert changed(tape) == [{"put.txt": b"put\n"}, {"put.txt": b"put\nput\n"}, {"last.txt": b"last"}]
    history = History(tape)
    history.is_whole = True
    effect = history.writing("put.txt", 1)
    assert effect is not None
    assert told(effect).endswith(f", of the process {sys.executable}")
    for path in ("put.txt", "last.txt"):
        (here / path).unlink()
    printed, made = branched(tape, 2)
    assert printed == "[put\nput\n, last]\n"
    assert changed(made) == changed(tape)
    # It is started anew, in a copy; what it leaves there is seen once it has stopped.
    printed, made = branched(tape, 1)
    assert printed == "[put\nput\n, last]\n"
    assert changed(made)[0] == {"put.txt": b"put\n"}
    assert changed(made)[-1] == {"last.txt": b"last", "put.txt": b"put\nput\n"}


def test_in_a_large_directory_lines_have_none(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_FOR_LINES", 0)
    (here / "server.py").write_text(SERVER)
    source = f'let server = mcp_connect("{sys.executable}", ["server.py"])\nmcp_call(server, "put", {{}})\n'
    tape = recorded(source + "mcp_disconnect(server)")
    assert changed(tape) == [{"last.txt": b"last", "put.txt": b"put\n"}]


def watched(source: str) -> str:
    """Run a program on the tape of its last run; return what it has printed."""
    Path("main.harn").write_text(ASK + source)
    outside = Real()
    vm = Vm(world=Watching("run.tape", outside))
    outside.prepare(vm)
    vm.run_file("main.harn")
    return outside.output()


def test_a_watched_run_goes_on_with_what_processes_wrote_by_then(here: Path) -> None:
    assert watched(BUILD) == "1\n2\n\n"
    edited = BUILD.replace("echo 2", "echo 3")
    assert watched(edited) == "1\n3\n\n"
    (here / "build.out").unlink()
    assert watched(BUILD) == "1\n2\n\n"
    (here / "build.out").write_text("a person's\n")
    assert watched(edited) == "a person's\n3\n\n"
