"""Tapes that are cut off, damaged, foreign or of another version, and disks that are full: one sentence each,
and nothing lost. Spec: 13 §2.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harnpy import Vm
from harnpy.syntax.diagnostic import SourceFault
from harnpy.tape import Recording, Replaying, TapeError, read_tape
from harnpy.vm.errors import VmError
from tests.counts import COUNT
from tests.tape.worlds import Scattered, Untouched

_PROGRAM = """
write_file("f.txt", "text")
println(read_file("f.txt"))
let s = agent_session_open("s", {store: "sqlite:sessions.db"})
agent_session_inject(s, {role: "user", content: "hi"})
for piece in llm_stream("a few pieces", nil, {provider: "p", model: "m"}) { println(piece) }
println(llm_call("hi", nil, {provider: "p", model: "m"}).text)
println(exec("tool", "x").stdout)
try { http_get("http://service.test/refuse") } catch (e) { println("${e}") }
sleep(1ms)
println("end ${random()} ${now_ms()}")
return [1, 2]
"""


def recorded(directory: Path, monkeypatch: pytest.MonkeyPatch, program: str = _PROGRAM) -> tuple[Path, str]:
    monkeypatch.chdir(directory)
    outside = Scattered(1)
    vm = Vm(Recording("run.tape", outside))
    vm.provide("p", outside)
    vm.run_source(program, file="main.harn")
    return directory / "run.tape", outside.output()


def replayed(tape: Path) -> tuple[str | None, str]:
    """Return the text of the error that a replay ends with, None if it doesn't, and what it printed."""
    untouched = Untouched()
    try:
        Vm(Replaying(tape, untouched)).run_recorded()
    except (TapeError, VmError, SourceFault) as error:
        return str(error), untouched.output()[0]
    return None, untouched.output()[0]


def test_a_tape_is_cut_off_at_any_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape, printed = recorded(tmp_path, monkeypatch)
    data = tape.read_bytes()
    cut = tmp_path / "cut.tape"
    share = COUNT.tape_cuts_share
    for size in range(Random(share).randrange(share) if share > 1 else 0, len(data), share):
        cut.write_bytes(data[:size])
        error, said = replayed(cut)
        assert printed.startswith(said)
        if error is None:  # only the line that says how it ended is missing
            assert said == printed
            continue
        assert any(words in error for words in (" was cut off ", " is cut off ", " isn't a tape: "))
        assert "\n" not in error
    cut.write_bytes(data.removesuffix(b"\n"))
    error, said = replayed(cut)
    assert error is None or " was cut off " in error
    assert said == printed


def test_a_tape_is_damaged_at_any_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape, _ = recorded(tmp_path, monkeypatch)
    data, chance = bytearray(tape.read_bytes()), Random(COUNT.seed)
    bad = tmp_path / "bad.tape"
    for _ in range(COUNT.damaged_tapes):
        place, other = (
            chance.randrange(len(data)),
            chance.choice([0, 10, 34, 48, 91, 93, 123, 125, 0xFF, 0x61]),
        )
        bad.write_bytes(data[:place] + bytes([other]) + data[place + 1 :])
        error, _ = replayed(bad)
        assert error is None or "Traceback" not in error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (b"", "isn't a tape: `harnpy run --record FILE.tape PROGRAM` makes one"),
        (b"hello\n", "isn't a tape: `harnpy run --record FILE.tape PROGRAM` makes one"),
        (b'{"harn_tape":1', "is cut off within its first line: record the run again"),
        (b'{"harn_tape":9,"what":"comes later"}\n', "was made by a newer harnpy: it has the layout 9"),
        (b'{"harn_tape":1,"harnpy":"1"}\n', "is damaged at line 1: record the run again"),
        (b'{"harn_tape":0}\n', "is damaged at line 1: record the run again"),
    ],
)
def test_what_is_no_tape_of_ours_is_said(tmp_path: Path, change: bytes, said: str) -> None:
    tape = tmp_path / "x.tape"
    tape.write_bytes(change)
    with pytest.raises(TapeError) as caught:
        read_tape(tape)
    assert str(caught.value).startswith(f"{tape} {said}")
    assert tape.read_bytes() == change


@pytest.mark.parametrize(
    "change",
    [
        {"job": {"kind": "program", "name": "x", "body": {}}},
        {
            "job": {
                "kind": "program",
                "name": "x",
                "body": {"entry": "x", "files": {}, "args": [], "cwd": "/"},
            }
        },
        {"vm": {"limits": {"wishes": 3}}},
        {"vm": {"colour": "blue"}},
    ],
)
def test_a_damaged_header_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    tape, _ = recorded(tmp_path, monkeypatch, "println(1)")
    first, rest = tape.read_text().split("\n", 1)
    tape.write_text(f"{json.dumps({**json.loads(first), **change})}\n{rest}")
    with pytest.raises(TapeError, match="is damaged at line 1: record the run again"):
        Vm(Replaying(tape, Untouched()))


@pytest.mark.parametrize(
    "output", ['{"asked":1}', "[1]", '{"ok":{"$object":["os:system",true,["x"],null]}}', "7"]
)
def test_a_damaged_step_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    tape, _ = recorded(tmp_path, monkeypatch, "println(random())")
    lines = tape.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if ':random"' in line)
    lines[place] = f'["task_root/1:random",{output}]'
    tape.write_text("\n".join(lines) + "\n")
    error, said = replayed(tape)
    assert error is not None
    assert "is damaged at" in error
    assert said == ""


def test_a_file_that_is_no_tape_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.txt").write_text("mine")
    with pytest.raises(TapeError, match=r"mine.txt is there already, and isn't a tape: choose another name"):
        Recording("mine.txt")
    assert Path("mine.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_said_before_anything_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outside = Scattered(1)
    vm = Vm(Recording("nowhere/run.tape", outside))
    with pytest.raises(TapeError, match=r"the tape nowhere/run.tape.partial can't be written: "):
        vm.run_source('write_file("f.txt", "x")\nprintln(1)')
    assert not Path("f.txt").exists()
    assert outside.output() == ""


@pytest.mark.parametrize("room", [400, 2_000, 4_000])
def test_on_a_full_disk_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path, monkeypatch, "println(0)")
    former = (tmp_path / "run.tape").read_bytes()
    outside = Scattered(1)
    vm = Vm(Recording("run.tape", outside))
    vm.provide("p", outside)
    writer = vm._taped.writer
    begin = writer.begin

    def beginning(header: Any) -> None:
        begin(header)
        writer._file = _Full(writer._file, room)

    monkeypatch.setattr(writer, "begin", beginning)
    assert vm.run_source(_PROGRAM, file="main.harn") == [1, 2]
    printed = outside.output()
    assert printed.splitlines()[-1].startswith("end ")
    [warning] = filter(None, outside.errors)
    assert warning == (
        "warning: tape: the tape run.tape.partial can't be written: No space left on device (os error 28); "
        "the program goes on, and isn't recorded any more\n"
    )
    assert (tmp_path / "run.tape").read_bytes() == former
    error, said = replayed(tmp_path / "run.tape.partial")
    assert error is not None
    assert " was cut off after effect " in error
    assert printed.startswith(said)


class _Full:
    """A file on a disk with so many bytes left."""

    def __init__(self, file: Any, room: int) -> None:
        self._file = file
        self._room = room

    def write(self, data: memoryview) -> int:
        if not self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size = min(len(data), self._room)
        self._room -= size
        self._file.write(data[:size])
        return size

    def close(self) -> None:
        self._file.close()


def test_a_tape_that_is_being_written_is_replayed_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found: list[tuple[str | None, str]] = []

    def look(text: str) -> None:
        if text == "three\n":
            found.append(replayed(tmp_path / "run.tape.partial"))

    outside = Scattered(1)
    outside.streams.write_out = look
    with pytest.raises(TapeError, match="can't be read"):
        read_tape("run.tape")
    vm = Vm(Recording("run.tape", outside))
    vm.run_source('println("one")\nwrite_file("f", "x")\nprintln("three")\nwrite_file("g", "x")\n')
    [(error, said)] = found
    assert error is not None
    assert " was cut off after effect 1: the program goes on at " in error
    assert said == "one\nthree\n"


def test_a_tape_that_is_not_there_yet_is_said(tmp_path: Path) -> None:
    (tmp_path / "run.tape.partial").write_text("")
    with pytest.raises(
        TapeError, match=r"run.tape isn't there yet: the run that is recorded in .*run.tape.partial"
    ):
        read_tape(tmp_path / "run.tape")
