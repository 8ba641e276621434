"""Several processes that write the same files: no write that returned is lost (08 §8.2, §10, §11)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from harnpy.workflow.records import record_files
from harnpy.world import World
from tests.counts import COUNT
from tests.support import PATIENCE, ROOT, Popen

WRITES = COUNT.writes
NAMES = [f"p{number}" for number in range(8)]

PROGRAM = """
import { agent_state_init, agent_state_write } from "std/agent_state"
import { memory_store } from "std/memory"
let me = argv[0]
let state = agent_state_init("state", {session_id: "s"})
for i in range(0, to_int(argv[1])) {
  checkpoint("${me}-${i}", i)
  store_set("${me}-${i}", i)
  metadata_set("${me}-${i}", "n", {i: i})
  metadata_save()
  memory_store("n", "${me}-${i}", me.repeat(9000), nil, {root: "memories"})
  agent_state_write(state, "${me}/${i}", "${me} wrote ${i}")
  workflow.signal("w", me, i)
  run_record_save({id: "${me}-${i}"}, "records/${me}-${i}.json")
  run_record_save({id: me, task: me.repeat(i * 100)}, "records/shared.json")
  let event = {kind: "repeated_query", summary: me.repeat(9000), trace_id: "${me}-${i}"}
  friction_record(event, {log_path: "friction.jsonl"})
}
"""


def test_eight_processes_lose_nothing(popen: Popen, tmp_path: Path) -> None:
    (tmp_path / "p.harn").write_text(PROGRAM)
    command = [sys.executable, "-m", "harnpy", "run", "p.harn", "--"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    writers = [popen([*command, name, str(WRITES)], cwd=tmp_path, env=env) for name in NAMES]
    try:
        # Files that are rewritten as a whole take longer the more they hold.
        assert [writer.wait(timeout=PATIENCE + WRITES) for writer in writers] == [0] * len(NAMES)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()

    written = {f"{name}-{i}" for name in NAMES for i in range(WRITES)}
    for file in ("checkpoints/p.json", "store.json"):
        assert set(json.loads((tmp_path / ".harn" / file).read_text())) == written
    facts = json.loads((tmp_path / ".harn/metadata/n/entries.json").read_text())
    assert set(facts["entries"]) == written
    memories = [json.loads(line) for line in (tmp_path / "memories/n/events.jsonl").read_text().splitlines()]
    assert sorted(memory["key"] for memory in memories) == sorted(written)
    mailbox = json.loads((tmp_path / ".harn/workflows/w/state.json").read_text())["mailbox"]
    assert {f"{message['name']}-{message['payload']}" for message in mailbox} == written
    assert len(mailbox) == len(written)
    for name in NAMES:
        texts = [(tmp_path / f"state/s/{name}/{i}").read_text() for i in range(WRITES)]
        assert texts == [f"{name} wrote {i}" for i in range(WRITES)]
    records = [record_files.load_run(str(tmp_path / f"records/{id}.json"), World()) for id in sorted(written)]
    assert [record["id"] for record in records] == sorted(written)
    shared = record_files.load_run(str(tmp_path / "records/shared.json"), World())
    assert shared["task"] == shared["id"] * ((WRITES - 1) * 100)
    friction = [json.loads(line) for line in (tmp_path / "friction.jsonl").read_text().splitlines()]
    assert {event["trace_id"] for event in friction} == written
    assert len(friction) == len(written)
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if "partial" in name]
