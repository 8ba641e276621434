"""`harnpy watch`: a program runs again on the tape of its last run. Spec: 13 §9."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.session.stored import StoredSession
from harnpy.storage.contract import HeadQuery
from harnpy.storage.opening import open_store
from harnpy.tape import Replaying, TapeError, read_tape
from harnpy.tape.watch import Watching, watched_files
from harnpy.world import World
from tests.durable.runs import Outside

TEXT = """let system = read_file("prompt.txt")
for n in 1 to 4 {
  println(llm_call("ask ${n}", system, {provider: "p", model: "m"}).text)
}
write_file("out.txt", "done")
println(llm_call("last", nil, {provider: "p", model: "m"}).text)
"""


class Watched:
    """A program that is saved and run again and again. ``made`` is what models were asked in the last run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made: list[str] = []
        (directory / "prompt.txt").write_text("be nice")
        self.save(TEXT)

    def save(self, text: str) -> None:
        (self.directory / "main.harn").write_text(text)

    def run(self) -> str:
        outside = Outside()
        self.world = Watching("run.tape", outside)
        vm: Any = Vm(self.world)
        outside.prepare(vm)
        try:
            vm.run_file("main.harn")
        except Exception as error:
            self.failure: Exception | None = error
        else:
            self.failure = None
        self.made = list(outside.asked)
        return outside.output()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.chdir(tmp_path)
    return Watched(tmp_path)


def test_the_second_run_makes_no_call(watched: Watched) -> None:
    printed = watched.run()
    assert watched.world.calls.text == "5 calls, all live"
    assert watched.run() == printed
    assert watched.made == []
    assert watched.world.calls.text == "5 of 5 calls from the tape"
    assert watched.world.parted is None


def test_calls_are_live_from_the_first_whose_request_has_changed(watched: Watched) -> None:
    watched.run()
    watched.save(TEXT.replace('"ask ${n}"', '"ask ${n == 3 ? "three" : n}"'))
    assert "<ask three>" in watched.run()
    assert watched.made == ["ask three", "ask 4", "last"]
    assert watched.world.calls.text == "2 of 5 calls from the tape, 3 live"
    assert watched.world.parted is not None
    assert watched.world.parted.place.startswith(" at main.harn:3:")


def test_an_edited_prompt_is_seen(watched: Watched) -> None:
    watched.run()
    (watched.directory / "prompt.txt").write_text("be kind")
    watched.run()
    assert watched.made == ["ask 1", "ask 2", "ask 3", "ask 4", "last"]
    watched.run()
    assert watched.made == []


def test_another_effect_costs_no_call(watched: Watched) -> None:
    watched.run()
    watched.save(TEXT.replace("for n", 'write_file("log.txt", "begun")\nfor n'))
    watched.run()
    assert watched.made == []
    assert watched.world.calls.text == "5 of 5 calls from the tape"
    assert (watched.directory / "log.txt").read_text() == "begun"


def test_the_file_of_the_last_run_is_read_from_its_tape(watched: Watched) -> None:
    text = 'let n = read_file("prompt.txt")\nwrite_file("prompt.txt", n + "!")\nprintln(n)\n'
    watched.save(text)
    assert watched.run() == watched.run() == "be nice\n"
    assert (watched.directory / "prompt.txt").read_text() == "be nice!"
    assert watched_files("main.harn", "run.tape") == {str(watched.directory / "main.harn")}


def test_a_run_leaves_the_files_that_a_run_leaves(watched: Watched) -> None:
    """Wherever it goes on live: what was written on the tape is written, and added to only once."""
    text = """
write_file("out", "start ")
append_file("out", llm_call("one", nil, {provider: "p", model: "m"}).text)
append_file("out", llm_call("TWO", nil, {provider: "p", model: "m"}).text)
println(read_file("out"))
"""
    out = watched.directory / "out"
    for said in ("two", "two", "three", "four"):
        watched.save(text.replace("TWO", said))
        assert watched.run() == f"start <one><{said}>\n"
        assert out.read_text() == f"start <one><{said}>"
    out.unlink()
    watched.run()
    assert watched.made == []
    assert out.read_text() == "start <one><four>"


def test_a_program_that_cannot_begin_leaves_the_tape(watched: Watched) -> None:
    watched.run()
    before = (watched.directory / "run.tape").read_bytes()
    watched.save("let x = = 1\n")
    assert watched.run() == ""
    assert watched.failure is not None
    assert not watched.world.has_run
    assert (watched.directory / "run.tape").read_bytes() == before
    assert not (watched.directory / "run.tape.partial").exists()
    watched.save(TEXT)
    watched.run()
    assert watched.made == []


def test_a_failure_on_the_tape_leaves_the_tape(watched: Watched) -> None:
    watched.run()
    watched.save(TEXT.replace("write_file(", 'throw "no"\nwrite_file('))
    watched.run()
    assert "no" in str(watched.failure)
    watched.save(TEXT)
    watched.run()
    assert watched.made == []


def test_the_new_tape_takes_the_place_of_the_last_one(watched: Watched) -> None:
    watched.run()
    watched.save(TEXT.replace("last", "latest"))
    printed = watched.run()
    outside = Outside()
    vm: Any = Vm(Replaying("run.tape", outside))
    outside.prepare(vm)
    vm.run_recorded()
    assert outside.output() == printed
    assert read_tape("run.tape").job.body["files"][str(watched.directory / "main.harn")] != TEXT


def test_several_tasks_go_on_live(watched: Watched) -> None:
    text = """let rs = parallel each [1, 2, 3] { n ->
  let a = llm_call("one ${n}", nil, {provider: "p", model: "m"}).text
  llm_call("two ${n} ${a}", nil, {provider: "p", model: "m"}).text
}
println("${rs}")
"""
    watched.save(text)
    watched.run()
    watched.save(text.replace('"two ${n}', '"${n == 2 ? "too" : "two"} ${n}'))
    printed = watched.run()
    assert "<too 2 <one 2>>" in printed
    assert {each for each in watched.made if each[:3] == "one"} == set()
    assert "too 2 <one 2>" in watched.made
    assert watched.run() == printed
    assert watched.made == []


STORED = """let id = agent_session_open("chat", {store: "sqlite:chat.db"})
for n in 1 to 2 {
  agent_loop("ask ${n}", nil, {session_id: id, provider: "p", model: "m"})
}
println("${agent_session_length(id)}, ${agent_session_snapshot(id).messages.last.content}")
"""


def kept(path: Path, name: str) -> list[str]:
    """Return what was said in a session of a store, as its program doesn't know it."""
    with closing(open_store(f"sqlite:{path}")) as store:
        session = StoredSession.load(name, store, World())
        assert session is not None
        return [message["content"] for message in session.messages()]


def forks(path: Path) -> list[str]:
    with closing(open_store(f"sqlite:{path}")) as store:
        return [head.name for head in store.heads(HeadQuery("session")).items if head.parent]


def test_a_stored_session_is_as_it_was_at_the_first_difference(watched: Watched) -> None:
    path = watched.directory / "chat.db"
    watched.save(STORED)
    assert watched.run() == "4, <ask 2>\n"
    watched.save(STORED.replace("1 to 2", "1 to 3"))
    assert watched.run() == "6, <ask 3>\n"
    assert watched.made == ["ask 3"]
    assert len(kept(path, "chat")) == 4  # the session of the first run stays as it left it
    (fork,) = forks(path)
    assert kept(path, fork)[-2:] == ["ask 3", "<ask 3>"]
    assert watched.run() == "6, <ask 3>\n"
    assert watched.made == []
    assert forks(path) == [fork]
    watched.save(STORED.replace('"ask ${n}"', 'if n == 2 { "or ${n}" } else { "ask ${n}" }'))
    assert watched.run() == "4, <or 2>\n"
    assert watched.made == ["or 2"]
    (last,) = set(forks(path)) - {fork}
    assert kept(path, last) == ["ask 1", "<ask 1>", "or 2", "<or 2>"]


def test_what_a_stored_session_is_told_otherwise_is_in_a_fork(watched: Watched) -> None:
    path, text = watched.directory / "chat.db", STORED.partition("for n")[0]
    watched.save(text + 'agent_session_inject(id, {role: "user", content: "one"})\nprintln("done")\n')
    assert watched.run() == "done\n"
    watched.save(text + 'agent_session_inject(id, {role: "user", content: "two"})\nprintln("done")\n')
    assert watched.run() == "done\n"
    assert kept(path, "chat") == ["one"]
    assert [kept(path, fork) for fork in forks(path)] == [["two"]]


def test_a_stored_session_that_is_gone_is_told(watched: Watched) -> None:
    watched.save(STORED)
    watched.run()
    with closing(open_store(f"sqlite:{watched.directory / 'chat.db'}")) as store:
        store.delete("session", "chat")
    watched.save(STORED.replace("1 to 2", "1 to 3"))
    watched.run()
    assert "session 'chat' with its" in str(watched.failure)
    assert str(watched.failure).endswith("there can't be a new run of run.tape: remove run.tape")
    assert watched.made == []


def test_the_files_that_are_watched(watched: Watched) -> None:
    (watched.directory / "lib.harn").write_text("pub fn one() { return 1 }\n")
    watched.save('import {one} from "lib"\n' + TEXT)
    watched.run()
    names = {Path(path).name for path in watched_files("main.harn", "run.tape")}
    assert names == {"main.harn", "lib.harn", "prompt.txt"}


def test_what_is_not_there_yet_is_watched(watched: Watched) -> None:
    watched.save('import {one} from "lib"\nprintln(one())\nprintln(read_file("later.txt"))\n')
    watched.run()
    names = {"main.harn", "lib.harn"}
    assert {Path(path).name for path in watched_files("main.harn", "run.tape")} == names
    (watched.directory / "lib.harn").write_text("pub fn one() { return 1 }\n")
    watched.run()
    assert "later.txt" in str(watched.failure)
    assert {Path(path).name for path in watched_files("main.harn", "run.tape")} == {*names, "later.txt"}
    (watched.directory / "later.txt").write_text("now")
    assert watched.run() == "1\nnow\n"
    (watched.directory / "lib.harn").unlink()  # as an editor does for a moment
    assert {Path(path).name for path in watched_files("main.harn", "run.tape")} == {*names, "later.txt"}


def test_what_is_no_tape_stays(watched: Watched) -> None:
    (watched.directory / "run.tape").write_text("mine")
    with pytest.raises(TapeError, match="is there already, and isn't a tape"):
        watched.run()


def test_once(tmp_path: Path, harnpy: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    (tmp_path / "a.harn").write_text('println(llm_call("x", nil, {provider: "mock"}).text)\nexit(3)\n')
    first = harnpy("watch", "--once", "--tape", "a.tape", "a.harn")
    assert first.returncode == 3
    assert "1 call, all live, " in first.stderr
    again = harnpy("watch", "--once", "--tape", "a.tape", "a.harn")
    assert again.stdout == first.stdout
    assert "1 of 1 call from the tape, " in again.stderr
    (tmp_path / "a.harn").write_text("let = 1\n")
    broken = harnpy("watch", "--once", "--tape", "a.tape", "a.harn")
    assert broken.returncode != 0
    assert "a.harn:1:" in broken.stderr
    assert "call" not in broken.stderr
    (tmp_path / "a.tape").write_text("mine")
    refused = harnpy("watch", "--once", "--tape", "a.tape", "a.harn")
    assert "isn't a tape: choose another name" in refused.stderr
    missing = harnpy("watch", "no.harn")
    assert missing.returncode == 1
    assert "no.harn" in missing.stderr


def test_each_save_runs_it_again(tmp_path: Path, popen: Callable[..., Any]) -> None:

    program = tmp_path / "a.harn"
    program.write_text('println("one")\n')
    command = [sys.executable, "-m", "harnpy", "watch", "a.harn"]
    process = popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "one\n"
        assert process.stderr.readline().startswith("no calls, ")
        assert process.stderr.readline().startswith("Waiting ")
        program.write_text("println(")
        assert "error" in process.stderr.readline()
        while not process.stderr.readline().startswith("Waiting "):
            pass
        program.write_text('println("two")\n')
        assert process.stdout.readline() == "two\n"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 124
