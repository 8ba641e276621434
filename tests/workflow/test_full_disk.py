"""A disk that is full at any write: what was written before stays, nothing half is left, and it goes on."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm, VmError
from harnpy.workflow.records import record_files
from harnpy.world import World
from tests.worlds import OwnWorld

#: Each line is printed once the write that it names has returned.
PROGRAM = """
import { agent_state_init, agent_state_write } from "std/agent_state"
let state = agent_state_init("state", {session_id: "s"})
let tried = { name, write -> try { write()
 println(name) } catch (e) { println("failed: ${e}") } }
for i in [1, 2] {
  tried("checkpoint ${i}", { -> checkpoint("c${i}", i) })
  tried("state ${i}", { -> agent_state_write(state, "k${i}", "${i}") })
  tried("signal ${i}", { -> workflow.signal("w", "s${i}", i) })
  tried("record ${i}", { -> run_record_save({id: "r${i}"}, "records/r${i}.json") })
}
let graph = {entry: "a", nodes: {a: {kind: "reduce"}, b: {kind: "reduce"}}, edges: [{from: "a", to: "b"}]}
tried("run", { -> workflow_execute("t", graph, nil, {persist_path: "records/run.json"}) })
"""


class SmallDisk(OwnWorld):
    """Write number ``full`` writes half of what it should, and fails."""

    def __init__(self, directory: Path, full: int) -> None:
        self.printed: list[str] = []
        super().__init__(self.printed.append)
        self._directory = str(directory)
        self._full = full
        #: Shared with the copy that `private` makes.
        self._written: list[str] = []

    @property
    def writes(self) -> int:
        return len(self._written)

    def cwd(self) -> str:
        return self._directory

    def write_bytes(self, path: str, data: bytes, *how: Any, **named: Any) -> None:
        self._written.append(path)
        if self.writes == self._full:
            super().write_bytes(path, data[: len(data) // 2], *how, **named)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write_bytes(path, data, *how, **named)

    def lines(self) -> list[str]:
        return "".join(self.printed).splitlines()


def run(directory: Path, full: int) -> SmallDisk:
    world = SmallDisk(directory, full)
    try:
        Vm(world).run_source(PROGRAM, directory=str(directory))
    except VmError as error:  # outside of any `tried`
        pytest.fail(str(error))
    return world


def found(directory: Path, name: str) -> bool:
    """Whether what was acknowledged with ``name`` is on the disk."""
    what, _, number = name.partition(" ")
    match what:
        case "checkpoint":
            kept = json.loads((directory / ".harn/checkpoints/default.json").read_text())
            return bool(kept[f"c{number}"] == int(number))
        case "state":
            return (directory / f"state/s/k{number}").read_text() == number
        case "signal":
            state = json.loads((directory / ".harn/workflows/w/state.json").read_text())
            return f"s{number}" in [message["name"] for message in state["mailbox"]]
        case "record":
            return (
                record_files.load_run(str(directory / f"records/r{number}.json"), World())["id"]
                == f"r{number}"
            )
    run = record_files.load_run(str(directory / "records/run.json"), World())
    return len(run["stages"]) == 2


def test_a_disk_that_is_full_at_any_write(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    writes = run(tmp_path / "0", full=0).writes
    assert writes > 10
    for full in range(1, writes + 1):
        directory = tmp_path / str(full)
        directory.mkdir()
        lines = run(directory, full).lines()
        (failure,) = [line for line in lines if line.startswith("failed")]
        assert failure.count("No space left on device") == failure.count(str(directory)) == 1
        for name in lines:
            assert name == failure or found(directory, name), (full, name)
        files = [name for _, _, names in os.walk(directory) for name in names]
        assert not [name for name in files if "partial" in name or name.endswith("agent_state_tmp")]
        again = run(directory, full=0).lines()
        assert len(again) == 9
        assert all(found(directory, name) for name in again)


NODES = ["a", "b", "c", "d"]
GRAPH = """
let graph = {
  entry: "a",
  nodes: {a: {kind: "reduce"}, b: {kind: "reduce"}, c: {kind: "reduce"}, d: {kind: "reduce"}},
  edges: [{from: "a", to: "b"}, {from: "b", to: "c"}, {from: "c", to: "d"}],
}
"""
BEGIN = GRAPH + 'println(workflow_execute("t", graph, nil, {persist_path: "run.json"}).status)'
GO_ON = GRAPH + 'println(workflow_execute("t", graph, nil, {resume_path: "run.json"}).status)'


def execute(directory: Path, program: str, full: int = 0) -> SmallDisk:
    world = SmallDisk(directory, full)
    try:
        Vm(world).run_source(program, directory=str(directory))
    except VmError as error:
        if not full or "No space left on device" not in str(error):
            raise
    return world


def test_a_run_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    writes = execute(tmp_path / "0", BEGIN).writes
    assert writes > len(NODES)
    for full in range(1, writes + 1):
        directory = tmp_path / str(full)
        directory.mkdir()
        execute(directory, BEGIN, full)
        path = directory / "run.json"
        done = record_files.load_run(str(path), World())["stages"] if path.exists() else []
        assert [name for name in os.listdir(directory) if name != "run.json"] == []
        execute(directory, GO_ON if done else BEGIN)
        stages = record_files.load_run(str(path), World())["stages"]
        assert [stage["node_id"] for stage in stages] == NODES, full
        assert [stage["id"] for stage in stages[: len(done)]] == [stage["id"] for stage in done], full
