"""Run records in files: the writer, atomic replacement, files that are no records (08 §8.1–8.2)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnpy.faults import MisuseError
from harnpy.workflow.artifacts import normalised_artifact as artifact
from harnpy.workflow.records import record, record_files
from harnpy.workflow.records.differences import run_diff
from harnpy.workflow.records.record_files import RunWriter
from harnpy.workflow.records.record_shapes import plain_json, pretty_record
from harnpy.world import World
from tests.counts import COUNT
from tests.worlds import world_with

Dict = dict[str, Any]
REFUSED = "failed to parse run record: run_record parse error"
HANDOFF = {"source_persona": "a", "target_persona_or_human": "b", "task": "t", "reason": "r"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_with(cwd=lambda: str(tmp_path), get={}.get)


def new_run(world: World) -> Dict:
    return record.new_run("r", world, workflow_id="w", task="é\n\x7f\u2028 \U0001f600", policy={"tools": []})


def add_stage(run: Dict, number: int, world: World, **metadata: Any) -> None:
    """What an executor adds after a stage."""
    transcript = {"id": f"t{number}", "messages": [{"role": "user", "content": "x" * 50}], "events": []}
    made = artifact({"kind": "plan", "text": "hi", "data": {"trace": {"llm_calls": 1, "x": 0.5}}}, world)
    stage = record.new_stage(
        id=f"s{number}", node_id=f"n{number}", kind="stage", status="completed", outcome="success",
        transcript=transcript, artifacts=[made], verification={"ok": True}, metadata=metadata,
        attempts=[record.new_attempt(status="completed")],
    )  # fmt: skip
    run["stages"].append(stage)
    run["artifacts"].append(made)
    run["transcript"] = transcript
    run["transitions"].append(
        record.new_transition(world, from_stage_id=f"s{number}", to_node_id=f"n{number + 1}")
    )
    run["checkpoints"].append(record.new_checkpoint(world, reason=record.STAGE_COMPLETE))


def test_a_record_comes_back_whole_and_a_copy_of_it_is_plain_json(world: World, tmp_path: Path) -> None:
    run = new_run(world)
    out = RunWriter(run, "runs/r.json", world)
    for number in range(5):
        add_stage(run, number, world, worker={"id": f"w{number}", "name": "helper", "status": "completed"})
        if number == 2:
            run["artifacts"].append(artifact({"kind": "handoff", "data": HANDOFF}, world))
        out.save()
        assert record_files.load_run("runs/r.json", world) == run
    run["status"], run["finished_at"] = "completed", "later"
    run["replay_fixture"] = record.fixture_of(run, world)
    out.save()
    loaded = record_files.load_run("runs/r.json", world)
    assert loaded == run
    record_files.save_run(loaded, world, "runs/r.json")
    assert (tmp_path / "runs/r.json").read_text(encoding="utf-8") == pretty_record(run)


def test_memory_file_and_copy_are_identical(world: World) -> None:
    run = new_run(world)
    out = RunWriter(run, "r.json", world)
    add_stage(run, 1, world, worker={"id": "w", "child_run_path": "c.json"})
    out.save()
    loaded = record_files.load_run("r.json", world)
    copied = record_files.save_run(loaded, world, "else/where.json")
    for left, right in ((run, loaded), (loaded, copied), (run, copied)):
        assert run_diff(left, right, world)["identical"]


def test_a_checkpoint_writes_what_is_new_only(world: World, tmp_path: Path) -> None:
    run = new_run(world)
    out = RunWriter(run, "r.json", world)
    out.checkpoint()
    sizes = [(tmp_path / "r.json").stat().st_size]
    for number in range(100, 300):
        add_stage(run, number, world)
        run["checkpoints"][-1]["completed_nodes"] = sorted(stage["node_id"] for stage in run["stages"])
        out.checkpoint()
        sizes.append((tmp_path / "r.json").stat().st_size)
    written = [after - before for before, after in pairwise(sizes)]
    assert written[199] == written[19] == written[5]


def test_a_file_that_somebody_else_wrote_is_written_anew(world: World, tmp_path: Path) -> None:
    run, path = new_run(world), tmp_path / "r.json"
    out = RunWriter(run, "r.json", world)
    out.checkpoint()
    for number, spoil in enumerate(
        [
            lambda: path.unlink(),
            lambda: path.write_text("{}"),
            lambda: path.write_text(path.read_text() + "x"),
            lambda: record_files.save_run({"id": "other"}, world, "r.json"),
            lambda: None,
        ]
    ):
        spoil()
        add_stage(run, number, world)
        run["completed_nodes"] = run["checkpoints"][-1]["completed_nodes"] = [
            f"n{n}" for n in range(number + 1)
        ]
        out.checkpoint()
        loaded = record_files.load_run("r.json", world)
        assert [stage["id"] for stage in loaded["stages"]] == [stage["id"] for stage in run["stages"]]
        assert loaded["checkpoints"] == run["checkpoints"]


def test_a_file_may_end_anywhere_after_its_head(world: World, tmp_path: Path) -> None:
    """Wherever the process is killed: whole stages are there, with what belongs to each."""
    run, path = new_run(world), tmp_path / "r.json"
    out = RunWriter(run, "r.json", world)
    out.checkpoint()
    shortest = path.stat().st_size
    ends = [shortest]
    for number in range(3):
        add_stage(run, number, world)
        out.checkpoint()
        ends.append(path.stat().st_size)
    run["status"] = "completed"
    out.save()
    data = path.read_bytes()
    near = {end + by for end in ends for by in (-1, 0, 1)} | {len(data) - 2}
    some = set(range(shortest, len(data) - 1, COUNT.cuts_share)) | near
    for size in sorted(some & {*range(shortest, len(data) - 1)}):
        path.write_bytes(data[:size])
        loaded = record_files.load_run("r.json", world)
        count = sum(size >= end for end in ends) - 1
        assert [len(loaded[key]) for key in ("stages", "artifacts", "transitions", "checkpoints")] == [
            count
        ] * 4
        assert loaded["status"] == "running"
        assert loaded["transcript"] == (run["stages"][count - 1]["transcript"] if count else None)


def test_a_file_is_whole_wherever_its_run_is_interrupted(world: World, tmp_path: Path) -> None:
    """An interruption may come at each line of a write, also behind the last of its bytes."""
    lines = interrupted(None, world)
    assert lines > 100
    for place in range(1, lines + 1):
        (tmp_path / "r.json").unlink(missing_ok=True)
        assert interrupted(place, world) == place
        if (tmp_path / "r.json").exists():
            json.loads((tmp_path / "r.json").read_text())
            record_files.load_run("r.json", world)


def interrupted(place: int | None, world: World) -> int:
    """Write a run of two stages, interrupted when that many lines of its writer were run; return how many
    were."""
    run, passed = new_run(world), 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal passed
        if frame.f_code.co_filename != record_files.__file__:
            return None
        if event == "line":
            passed += 1
            if passed == place:
                sys.settrace(None)
                raise KeyboardInterrupt
        return count

    out = RunWriter(run, "r.json", world)
    former = sys.gettrace()
    sys.settrace(count)
    try:
        out.checkpoint()
        for number in range(2):
            add_stage(run, number, world)
            out.checkpoint()
        out.save()
    except KeyboardInterrupt:
        out.leave()
    finally:
        sys.settrace(former)
    return passed


def test_functions_and_what_json_has_no_word_for_are_left_out(world: World) -> None:
    run = new_run(world)
    out = RunWriter(run, "r.json", world)
    add_stage(run, 1, world, model_policy={"post_turn_callback": print, "nan": float("nan")}, list=[print, 1])
    out.save()
    assert run["stages"][0]["metadata"] == {"model_policy": {"nan": None}, "list": [1]}
    assert record_files.load_run("r.json", world) == run


def test_lists_keep_their_identity_so_that_an_executor_may_hold_them(world: World) -> None:
    run = new_run(world)
    lists = {key: value for key, value in run.items() if isinstance(value, list)}
    add_stage(run, 1, world)
    RunWriter(run, "r.json", world).save()
    assert all(run[key] is lists[key] for key in ("stages", "artifacts", "transitions", "checkpoints"))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
STAGES = st.fixed_dictionaries(
    {"id": st.sampled_from("abc"), "node_id": st.sampled_from("xyz")},
    optional={"transcript": JSON, "verification": JSON, "branch": st.sampled_from(["u", "v"]),
              "metadata": st.dictionaries(st.sampled_from(["worker", "worker_id", "k"]), JSON),
              "artifacts": st.lists(st.fixed_dictionaries({"data": JSON}), max_size=2)},
)  # fmt: skip
RUNS = st.fixed_dictionaries(
    {},
    optional={
        "stages": st.lists(STAGES, max_size=4),
        "transitions": st.lists(st.fixed_dictionaries({"to_node_id": st.sampled_from("xyz")}), max_size=3),
        "metadata": st.dictionaries(st.sampled_from(["trigger_event", "replay_of_event_id", "k"]), JSON),
        "transcript": JSON,
        "tool_recordings": st.lists(st.fixed_dictionaries({"result": JSON}), max_size=2),
    },
)


@given(RUNS)
@settings(
    max_examples=COUNT.examples(12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_record_comes_back_from_its_file_as_it_was(world: World, run: Dict) -> None:
    saved = record_files.save_run(run, world, "r.json")
    loaded = record_files.load_run("r.json", world)
    assert loaded == saved
    assert record.normalised_run(saved, world) == saved
    assert run_diff(saved, loaded, world)["identical"]
    RunWriter(loaded, "r.json", world).save()
    assert record_files.load_run("r.json", world) == saved


@given(JSON)
def test_what_is_plain_already_stays_the_same_object(value: Any) -> None:
    assert plain_json(value) is value


CRASH = """
import os, signal, sys
from tests.worlds import world_with
from harnpy.workflow.records import record_files

def crash(old, new):
    os.kill(os.getpid(), signal.SIGKILL)

record_files.save_run({"id": "new", "task": "x" * 100_000}, world_with(rename=crash), sys.argv[1])
"""


def test_a_crash_before_the_rename_leaves_the_former_file(world: World, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    record_files.save_run({"id": "old"}, world, str(path))
    done = subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 2
    assert record_files.load_run(str(path), world)["id"] == "old"
    record_files.save_run({"id": "newest"}, world, str(path))
    assert record_files.load_run(str(path), world)["id"] == "newest"


def test_what_was_saved_is_on_the_disk(tmp_path: Path) -> None:
    written: list[bool] = []

    def write_text(path: str, text: str, append: bool = False, durable: bool = False) -> None:
        written.append(durable)
        Path(path).write_text(text, encoding="utf-8")

    record_files.save_run({}, world_with(cwd=lambda: str(tmp_path), write_text=write_text), "r.json")
    assert written == [True]


@pytest.mark.parametrize("path", ["a.json", "a", "a.b.txt", "d.x/a"])
def test_the_temporary_file_lies_beside_the_record(path: str, tmp_path: Path) -> None:
    renamed: list[tuple[str, str]] = []

    def rename(old: str, new: str) -> None:
        renamed.append((old, new))
        os.replace(old, new)

    record_files.save_run({}, world_with(cwd=lambda: str(tmp_path), rename=rename), path)
    ((temporary, record),) = renamed
    assert record == str(tmp_path / path)
    assert os.path.dirname(temporary) == os.path.dirname(record)
    assert re.fullmatch(r"\.[0-9a-f]{16}\.partial", os.path.basename(temporary))


def test_a_record_that_was_cut_off_anywhere_is_refused(world: World, tmp_path: Path) -> None:
    run = new_run(world)
    add_stage(run, 1, world)
    text = pretty_record(record_files.save_run(run, world, "r.json")).encode()
    for length in range(0, len(text), 37):
        (tmp_path / "r.json").write_bytes(text[:length])
        with pytest.raises(MisuseError, match=r"^failed to (parse|read) run record: "):
            record_files.load_run("r.json", world)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "failed to read run record: stream did not contain valid UTF-8"),
        (b"null", f"{REFUSED} at payload: expected dict, got nil | payload=null"),
        (b'{"stages": [null]}', f"{REFUSED} at stages[0]: expected dict, got nil | payload=null"),
    ],
)
def test_a_corrupt_file_is_refused(content: bytes, message: str, world: World, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(MisuseError) as refused:
        record_files.load_run("r.json", world)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("env", "directory"),
    [({}, ".harn-runs"), ({"HARN_RUN_DIR": " "}, ".harn-runs"), ({"HARN_RUN_DIR": "my/runs"}, "my/runs")],
)
def test_the_run_directory_is_below_the_working_directory(env: Dict, directory: str) -> None:
    assert record_files.run_directory(world_with(cwd=lambda: "/here", get=env.get)) == f"/here/{directory}"


def test_an_absolute_run_directory_is_taken_as_it_is() -> None:
    world = world_with(cwd=lambda: "/here", get={"HARN_RUN_DIR": "/runs"}.get)
    assert record_files.run_directory(world) == "/runs"


@pytest.mark.parametrize("make", [record.new_stage, record.new_attempt])
def test_a_part_with_a_field_that_there_is_not_is_a_mistake(make: Callable[..., Dict]) -> None:
    with pytest.raises(TypeError, match="no such field: oops"):
        make(oops=1)
