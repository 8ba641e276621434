"""The `llm_transcript.jsonl` sidecar: its rows, and that a session can be made of them again (08 §3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.llm.transcript_log import FILE_NAME, VARIABLE
from harnpy.session import SessionRegistry
from tests.worlds import OwnWorld

COMMON = {"type", "timestamp", "span_id", "session_id", "loop_id", "loop_depth"}
KEYS = {
    "system_prompt": "hash content",
    "message": "iteration role content tool_calls tool_call_id name",
    "provider_call_request": "iteration call_id model provider max_tokens temperature thinking tool_choice "
    "tool_format native_tool_count message_count structural_experiment route_policy fallback_chain "
    "routing_decision",
    "provider_call_response": "iteration call_id provider model text tool_calls input_tokens output_tokens "
    "cost_usd cache_read_tokens cache_write_tokens cache_creation_input_tokens cache_hit_ratio "
    "cache_savings_usd cache_hit thinking thinking_summary response_ms structural_experiment",
    "interpreted_response": "iteration call_id tool_format prose tool_calls tool_parse_errors",
}
TWO_TURNS = """
    llm_mock({text: "one"})
    llm_mock({text: "two"})
    agent_loop("hi", "be brief", {session_id: "s", provider: "mock", persistent: true, max_iterations: 2})
"""


class RecordingHost(OwnWorld):
    def __init__(self, directory: Path | str) -> None:
        super().__init__(stdout=lambda text: None, stderr=lambda text: None)
        self.directory = str(directory)

    def get(self, name: str) -> str | None:
        return self.directory if name == VARIABLE else None


def recorded(source: str, directory: Path) -> list[dict[str, Any]]:
    """The rows that a program leaves."""
    Vm(RecordingHost(directory)).run_source(source)
    lines = (directory / FILE_NAME).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_loops_rows_in_their_order(tmp_path: Path) -> None:
    rows = recorded(TWO_TURNS, tmp_path / "new")
    call = ["provider_call_request", "provider_call_response", "interpreted_response", "message", "message"]
    assert [row["type"] for row in rows] == ["message", "system_prompt", *call, *call]
    assert [row["iteration"] for row in rows if "iteration" in row] == [None] + [0] * 5 + [1] * 5
    assert rows[1]["content"].startswith("be brief")


def test_every_row_has_the_keys_of_its_type(tmp_path: Path) -> None:
    for row in recorded(TWO_TURNS, tmp_path):
        assert set(row) == COMMON | set(KEYS[row["type"]].split())
        whole, _, decimals = row["timestamp"].partition(".")
        assert (whole.isdigit(), len(decimals)) == (True, 3)


def test_request_and_response_share_a_call_id(tmp_path: Path) -> None:
    rows = recorded(TWO_TURNS, tmp_path)
    ids = [row["call_id"] for row in rows if "call_id" in row]
    assert ids == ["llm_call_1"] * 3 + ["llm_call_2"] * 3


def test_a_call_outside_any_loop_has_rows_of_its_own(tmp_path: Path) -> None:
    rows = recorded('llm_call("hi", "sys", {provider: "mock"})', tmp_path)
    assert [row["type"] for row in rows] == [
        "system_prompt", "provider_call_request", "provider_call_response"
    ]  # fmt: skip
    assert {(row["loop_id"], row["session_id"], row["loop_depth"]) for row in rows} == {(None, None, 0)}


def test_parallel_loops_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    source = """
        parallel settle ["a", "b", "c"] { id ->
          let options = {session_id: id, provider: "mock", persistent: true, max_iterations: 3}
          agent_loop("hello ${id}", nil, options)
        }
    """
    rows = recorded(source, tmp_path)
    loops: dict[str, set[str]] = {}
    for row in rows:
        loops.setdefault(row["loop_id"], set()).add(row["session_id"])
    assert sorted(map(sorted, loops.values())) == [["a"], ["b"], ["c"]]
    assert {row["loop_depth"] for row in rows} == {0}


def test_a_loop_inside_a_loop_is_deeper(tmp_path: Path) -> None:
    source = """
        agent_subscribe("outer", { e ->
          if e.type == "turn_start" { agent_loop("inner", nil, {session_id: "inner", provider: "mock"}) }
        })
        agent_loop("outer", nil, {session_id: "outer", provider: "mock"})
    """
    depths = {(row["session_id"], row["loop_depth"]) for row in recorded(source, tmp_path)}
    assert depths == {("outer", 0), ("inner", 1)}
    seeded = SessionRegistry().seed_from_jsonl(str(tmp_path / FILE_NAME))
    assert (seeded["ok"], seeded["messages_loaded"]) == (True, 2)


def test_a_directory_that_cannot_be_written_costs_only_the_record(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    vm = Vm(RecordingHost(tmp_path / "file"))
    assert vm.run_source('return agent_loop("hi", nil, {provider: "mock"}).status') == "done"


def test_a_program_can_go_on_from_its_own_record(tmp_path: Path) -> None:
    source = f"""{TWO_TURNS}
        let path = {json.dumps(str(tmp_path / FILE_NAME))}
        let r = agent_session_seed_from_jsonl(path, {{rename_session: "t"}})
        let same = agent_session_snapshot("t").messages == agent_session_snapshot("s").messages
        return [r.ok, same, r.turns_loaded]
    """
    assert Vm(RecordingHost(tmp_path)).run_source(source) == [True, True, 2]


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": st.text(max_size=20)},
        optional={"name": st.text(max_size=5)},
    ),
    max_size=8,
)


@given(MESSAGES, MESSAGES)
def test_what_a_loop_had_comes_back_verbatim(
    tmp_path_factory: pytest.TempPathFactory, first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    directory = tmp_path_factory.mktemp("sidecar")
    vm = Vm(RecordingHost(directory))
    vm.sessions.open("s")
    for messages in (first, second):
        for message in messages:
            vm.sessions.inject("s", message)
        vm.run_source('agent_loop("go on", nil, {session_id: "s", provider: "mock"})')
    seeded = vm.sessions.seed_from_jsonl(str(directory / FILE_NAME), {"rename_session": "t"})
    assert seeded["ok"]
    assert vm.sessions.messages("t") == vm.sessions.messages("s")


def test_a_summary_call_is_no_part_of_the_loops_record(tmp_path: Path) -> None:
    source = """
        agent_session_open("s")
        for n in 1 to 4 { agent_session_inject("s", {role: "user", content: "message ${n}"}) }
        let options = {session_id: "s", provider: "mock", compaction: {keep_last: 1}, compact_threshold: 0}
        agent_loop("go", "be brief", options)
    """
    rows = recorded(source, tmp_path)
    mine = [row for row in rows if row["loop_id"] is not None]
    assert [row["content"] for row in mine if row["type"] == "system_prompt"] == ["be brief"]
    summary = next(row for row in mine if row["type"] == "message" and "auto-compacted" in row["content"])
    assert summary["iteration"] == 0


def test_what_others_compacted_and_injected_is_recorded(tmp_path: Path) -> None:
    source = """
        agent_subscribe("s", { e ->
          if e.type == "iteration_end" && e.iteration == 0 {
            agent_session_inject("s", {role: "user", content: "important"})
            agent_session_compact("s", {keep_last: 1, compact_strategy: "truncate"})
          }
        })
        agent_loop("go", nil, {session_id: "s", provider: "mock", persistent: true, max_iterations: 2})
    """
    messages = [row["content"] for row in recorded(source, tmp_path) if row["type"] == "message"]
    assert "important" in messages
    assert sum("auto-compacted" in content for content in messages) == 1


def test_a_number_that_json_has_not_is_null(tmp_path: Path) -> None:
    source = """
        agent_session_open("s")
        agent_session_inject("s", {role: "user", content: [{type: "text", text: "a", score: 0.0 / 0.0}]})
        agent_loop("go", nil, {session_id: "s", provider: "mock"})
    """
    assert recorded(source, tmp_path)[0]["content"] == [{"type": "text", "text": "a", "score": None}]
