"""When the checkpoints of a run reach its file: at once while it is small (08 §7.2), else soon."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.faults import MisuseError
from harnpy.workflow.records import record
from harnpy.workflow.records.record_files import RunWriter
from tests.worlds import world_with

Dict = dict[str, Any]


class Pace:
    """A clock that only moves when a file is written, by a second each time, and chores for idle hours."""

    def __init__(self, directory: Path) -> None:
        self.time = 0.0
        self.chores: list[Callable[[], None]] = []
        self.path = directory / "r.json"
        self.world = world_with(
            cwd=lambda: str(directory), monotonic=lambda: self.time, write_text=self.write
        )
        self.run = record.new_run("r", self.world, workflow_id="w", task="t", policy={})
        self.writer = RunWriter(self.run, "r.json", self.world, self.chores.append)
        self.full = False

    def write(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.time += 1.0
        Path(path).write_text(text, encoding="utf-8")

    def grow(self, size: int) -> None:
        self.run["stages"].append(record.new_stage(id=f"s{len(self.run['stages'])}", visible_text="x" * size))

    def stages_on_disk(self) -> int:
        return len(json.loads(self.path.read_text(encoding="utf-8"))["stages"])


@pytest.fixture
def world(tmp_path: Path) -> Pace:
    return Pace(tmp_path)


def test_a_small_record_is_written_at_every_checkpoint(world: Pace) -> None:
    for number in range(1, 20):
        world.grow(10)
        world.writer.checkpoint()
        assert world.stages_on_disk() == number
    assert not world.chores


def test_a_large_record_waits_until_the_program_is_idle(world: Pace) -> None:
    world.grow(2_000_000)
    world.writer.checkpoint()
    for _ in range(3):
        world.grow(10)
        world.writer.checkpoint()
    assert world.stages_on_disk() == 1
    assert len(world.chores) == 1
    world.chores.pop()()
    assert world.stages_on_disk() == 4


def test_a_large_record_takes_a_share_of_the_time(world: Pace) -> None:
    world.grow(2_000_000)
    world.writer.checkpoint()
    for _ in range(1000):
        world.grow(10)
        world.time += 0.1
        world.writer.checkpoint()
    assert 20 <= world.time - 100 <= 26  # a fifth of all the time, one second a save
    assert world.stages_on_disk() > 950


def test_what_was_put_off_is_written_once_at_the_end(world: Pace) -> None:
    world.grow(2_000_000)
    world.writer.checkpoint()
    world.grow(10)
    world.writer.checkpoint()
    world.writer.catch_up()
    assert world.stages_on_disk() == 2
    written = world.time
    world.writer.catch_up()
    world.chores.pop()()
    assert world.time == written


def test_a_full_disk_is_met_by_the_run_and_not_in_passing(world: Pace) -> None:
    world.grow(2_000_000)
    world.writer.checkpoint()
    world.grow(10)
    world.writer.checkpoint()
    world.full = True
    world.chores.pop()()
    assert world.stages_on_disk() == 1
    with pytest.raises(MisuseError, match=r"failed to persist run record: .*/r.json: No space left"):
        world.writer.save()


def test_an_interrupted_run_leaves_its_last_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    vm = Vm()
    vm.register("stop_here() -> nil", _stop)
    source = """
    fn stops(query, chunks) { stop_here() }
    pipeline main(task) {
      let big = artifact({kind: "note", text: "x".repeat(2000000)})
      llm_mock({match: "*", text: "ok"})
      let quick = {model_policy: {provider: "mock"}, context_policy: {max_artifacts: 0}}
      let nodes = {
        a: quick, b: quick, c: quick,
        d: quick + {context_policy: {}, context_assembler: {ranker_callback: stops}},
      }
      let edges = [{from: "a", to: "b"}, {from: "b", to: "c"}, {from: "c", to: "d"}]
      workflow_execute("t", workflow_graph({nodes: nodes, edges: edges}), [big], {persist_path: argv[0]})
    }
    """
    with pytest.raises(KeyboardInterrupt):
        vm.run_source(source, args=[str(path)])
    stages = json.loads(path.read_text(encoding="utf-8"))["stages"]
    assert [stage["node_id"] for stage in stages] == ["a", "b", "c"]


def _stop() -> None:
    raise KeyboardInterrupt
