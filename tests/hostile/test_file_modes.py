"""What harnpy keeps is its user's alone, whatever the umask; what a program writes isn't. Issue 30."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from harnpy.cli.repl_terminal import _history_file
from harnpy.session import SessionRuntime, drafts
from harnpy.session.artifacts import Artifact, FileArtifactStore
from harnpy.storage import open_store
from tests.conftest import Command

#: Everything that a program has kept: by sessions, topics, waitpoints, agents, records, and beside them.
PROGRAM = """
import "std/agent_state"
import "std/memory"

pipeline main(task) {
  for store in ["sqlite:kept/deep/sessions.db", "jsonl:kept/sessions"] {
    let id = agent_session_open("talk-" + store.split(":")[0], {store: store})
    agent_loop("hello", nil, {session_id: id, provider: "mock"})
    let fork = agent_session_fork(id)
    agent_session_compact(id, {keep_last: 1})
    agent_session_close(fork)
    agent_session_close(id)
  }
  checkpoint("step", 1)
  store_set("key", 1)
  metadata_set("docs", "review", {by: "ada"})
  metadata_save()
  agent_state_init("state", {session_id: "s"}) |> { state -> agent_state_write(state, "note", "x") }
  memory_store("facts", "key", "a fact")
  continue_as_new("orders")
  waitpoint_create("approved")
  event_log.emit("orders", "placed", {n: 1})
  friction_record({kind: "missing_context", summary: "Which shop?"}, {log_path: "friction/log.jsonl"})
  wait_agent(spawn_agent({task: "Count", node: {kind: "stage", model_policy: {provider: "mock"}}}))
  daemon_stop(daemon_spawn({task: "Watch", persist_path: "desk", provider: "mock"}))
  let graph = workflow_graph({act: {mode: "llm", model_policy: {provider: "mock"}}})
  workflow_execute("go", graph, [], {provider: "mock"})
  workflow_execute("go", graph, [], {provider: "mock", persist_path: "records/named.json"})
  mkdir("mine")
  write_file("mine/text", "x")
}
"""
#: What the user named, or had before, with the directories.
MINE = {"program.harn": 0o644, "mine": 0o755, "mine/text": 0o644, "out": 0o755, "out/talk.jsonl": 0o644}


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): S_IMODE(path.stat().st_mode) for path in directory.rglob("*")}


def test_what_a_program_keeps_is_its_users_alone(
    harnpy: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program.harn").write_text(PROGRAM)
    places = {"HARN_LLM_TRANSCRIPT_DIR": "logs/llm", "HARN_EVENT_LOG_DIR": "logs/events"}
    done = harnpy("run", "program.harn", XDG_CACHE_HOME=str(tmp_path / "cache"), **places)
    assert (done.returncode, done.stderr) == (0, "")
    store = "sqlite:kept/deep/sessions.db"
    with SessionRuntime(f"sqlite:{tmp_path}/kept/deep/sessions.db") as runtime:
        runtime.search("hello", raw=True)  # which makes an index
    (tmp_path / "out").mkdir()
    exported = harnpy("sessions", "--store", store, "export", "talk-sqlite", "-o", "out/talk.jsonl")
    assert exported.returncode == 0, exported.stderr
    FileArtifactStore(str(tmp_path / "kept/artifacts")).put(Artifact(), b"body")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _history_file()
    found = modes(tmp_path)
    assert {name: found.pop(name) for name in MINE} == MINE
    assert {name: mode for name, mode in found.items() if mode not in (0o600, 0o700)} == {}
    assert {mode for name, mode in found.items() if (tmp_path / name).is_dir()} == {0o700}
    kinds = (
        "kept/deep/sessions.db", "kept/deep/sessions.db-search", "kept/sessions/logs/", "kept/artifacts/",
        ".harn-runs/", "records/named.json", "desk/", "logs/llm/", "logs/events/", "friction/", "state/",
        "cache/harnpy/", "home/.harn/repl_history", ".harn/workers/", ".harn/memory/",
    )  # fmt: skip
    assert [kind for kind in kinds if not any(name.startswith(kind) for name in found)] == []


@pytest.mark.parametrize("url", ["sqlite:a/b/sessions.db", "jsonl:a/sessions"])
def test_a_store_of_a_group(
    harnpy: Command, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = 'import "std/session"\nagent_session_open("note", {store: true})\n'
    (tmp_path / "program.harn").write_text(program + 'session_artifact_put("note", {id: "a"}, "x")')
    with SessionRuntime(f"{url}?group=1") as runtime:
        runtime.open("talk", create=True).append(drafts.user("hello"))
        runtime.search("hello", raw=url.startswith("sqlite:"))
        done = harnpy("run", "program.harn", HARN_SESSION_STORE=f"{url}?group=1")
        assert done.returncode == 0, done.stderr
        (tmp_path / "program.harn").unlink()
        found = modes(tmp_path)
        assert any(name.endswith("/body") for name in found)
        assert {mode for name, mode in found.items() if (tmp_path / name).is_dir()} == {0o770}
        assert {mode for name, mode in found.items() if not (tmp_path / name).is_dir()} == {0o660}


@pytest.mark.parametrize("url", ["sqlite:sessions.db", "jsonl:sessions"])
def test_what_is_there_keeps_its_mode(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SessionRuntime(url) as runtime:
        runtime.open("talk", create=True).append(drafts.user("hello"))
    for name in modes(tmp_path):
        (tmp_path / name).chmod(0o750 if (tmp_path / name).is_dir() else 0o640)
    with SessionRuntime(url) as runtime:
        runtime.open("talk").append(drafts.user("more"))
        runtime.open("talk").append(drafts.user("again"))
    assert not set(modes(tmp_path).values()) & {0o644, 0o755, 0o666, 0o777}
    open_store(url).close()
