"""When the checkpoints of a run reach its file: each at once, however large the record is (08 §7.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.faults import MisuseError
from harnpy.workflow.records import record
from harnpy.workflow.records.record_files import RunWriter, load_run
from tests.worlds import OwnWorld

Dict = dict[str, Any]


class Disk(OwnWorld):
    """``sizes`` are the bytes of every write; a full one takes nothing more."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)
        self.sizes: list[int] = []
        self.full = False

    def cwd(self) -> str:
        return self._directory

    def private(self) -> Disk:
        return self

    def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.sizes.append(len(data))
        super().write_bytes(path, data, append, durable)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def new_run(disk: Disk) -> Dict:
    run: Any = record.new_run("r", disk, workflow_id="w", task="t", policy={})
    return run


def grow(run: Dict, size: int) -> None:
    run["stages"].append(record.new_stage(id=f"s{len(run['stages'])}", visible_text="x" * size))


def stages_on_disk(disk: Disk) -> int:
    return len(load_run("r.json", disk)["stages"])


def test_a_record_of_any_size_is_written_at_every_checkpoint(disk: Disk) -> None:
    run: Any = new_run(disk)
    writer = RunWriter(run, "r.json", disk)
    writer.checkpoint()
    grow(run, 2_000_000)
    writer.checkpoint()
    for number in range(2, 20):
        grow(run, 10)
        writer.checkpoint()
        assert stages_on_disk(disk) == number
    assert max(disk.sizes[2:]) < 1_000


def test_a_full_disk_is_met_at_the_checkpoint_and_later_the_record_is_whole(disk: Disk) -> None:
    run: Any = new_run(disk)
    writer = RunWriter(run, "r.json", disk)
    writer.checkpoint()
    grow(run, 10)
    disk.full = True
    with pytest.raises(MisuseError, match=r"failed to persist run record: .*/r.json: No space left"):
        writer.checkpoint()
    assert stages_on_disk(disk) == 0
    grow(run, 10)
    disk.full = False
    writer.save()
    assert stages_on_disk(disk) == 2


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
